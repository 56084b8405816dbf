"""Speech. What is heavy is imported when it is first used."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqvae.modality import Modality

if TYPE_CHECKING:
    import torch

    from sqvae.config import Experiment
    from sqvae.data import Progress, TakenAs
    from sqvae.export.exportable import Exportable
    from sqvae.modalities.exploring import ExampleView
    from sqvae.modalities.speech.tokenizer import SpeechTokenizer
    from sqvae.runs import CodeSet, Generator, Prepared
    from sqvae.tokenizers import Stored


class SpeechModality(Modality):
    """Recordings of speech, as log-mel frames."""

    kind = "speech"
    plural = "speech"
    noun = "utterance"
    recipe = "speech"
    learning_rate = 2e-3  # that of images is too high for recurrent layers
    smoke_data = "voices"
    tag = "speech-units"
    reading = ("Log-mel spectrograms: time to the right, frequency upwards, loud parts in white.",)

    @property
    def own_data(self) -> "Callable[[], Experiment]":
        from sqvae.recipes.speech import speech

        return speech

    def check(self, experiment: "Experiment") -> None:
        from sqvae.config import ConfigurationError

        if experiment.quantizer.name == "gaussian-2":
            raise ConfigurationError(
                "gaussian-2 has one variance for a whole example. It would be learned on crops of "
                f"{experiment.speech.segment} frames but used on whole utterances, so the paper does not use it for "
                "speech, and neither does sqvae. Use gaussian-1, gaussian-3 or gaussian-4"
            )

    def told(self, source: str, settings: Mapping[str, str]) -> str | None:
        from sqvae.data.speech import SPEECH_SETS

        if source in SPEECH_SETS:
            return f"because {source} is a data set of recordings"
        setting = next((key for key in settings if key.startswith("speech.")), None)
        return None if setting is None else f"because {setting} is set, which is for speech only"

    def recognised(self, source: str) -> "TakenAs | None":
        from sqvae.data import DATASETS, TakenAs
        from sqvae.data.speech import holds_speech

        path = Path(source)
        if source in DATASETS or not path.exists() or not holds_speech(source):
            return None
        return TakenAs(self.kind, f"because the {'folder' if path.is_dir() else 'file'} holds recordings")

    def prepare(self, experiment: "Experiment", **options: Any) -> "Prepared":
        from sqvae.modalities.speech.data import prepare_speech

        return prepare_speech(experiment, **options)

    def tokenizer(self, stored: "Stored", name: str | Path, device: "str | torch.device | None") -> "SpeechTokenizer":
        from sqvae.modalities.speech.tokenizer import tokenizer_of

        return tokenizer_of(stored, name, device)

    def code_set(self, tokenizer: Any, examples: Any, what: str, progress: "Progress | None") -> "CodeSet":
        from sqvae.modalities.speech.codes import code_set

        return code_set(tokenizer, examples, what, progress)

    def explorer(self, tokenizer: Any, prior: "Generator | None") -> "ExampleView":
        from sqvae.modalities.speech.exploring import SpeechView

        return SpeechView(tokenizer, prior)

    def encoder_and_decoder(self, tokenizer: Any) -> "tuple[Exportable, Exportable]":
        from sqvae.modalities.speech.export import encoder_and_decoder

        return encoder_and_decoder(tokenizer)

    def described(self, tokenizer: Any) -> dict[str, Any]:
        from sqvae.modalities.speech.export import described

        return described(tokenizer)

    def usage(self, tokenizer: Any, name: str) -> Iterator[str]:
        from sqvae.modalities.speech.card import usage

        return usage(tokenizer, name)

    def code_rate(self, tokenizer: Any, bits: float) -> Iterator[str]:
        from sqvae.modalities.speech.card import code_rate

        return code_rate(tokenizer, bits)

    def data_facts(self, tokenizer: Any) -> Iterator[str]:
        from sqvae.modalities.speech.card import data_facts

        return data_facts(tokenizer)

    def limits(self, tokenizer: Any) -> Iterator[str]:
        from sqvae.modalities.speech.card import limits

        return limits(tokenizer)


SPEECH = SpeechModality()

"""Speech. What is heavy is imported when it is first used."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqvae.modality import Modality

if TYPE_CHECKING:
    import torch

    from sqvae.config import Experiment
    from sqvae.data import Progress, TakenAs
    from sqvae.export.exportable import Exportable
    from sqvae.inference.coding import Encoded
    from sqvae.inference.folders import Saved
    from sqvae.modalities.exploring import ExampleViewer
    from sqvae.modalities.inspecting import Inspection
    from sqvae.modalities.page import PageView
    from sqvae.modalities.speech.tokenizer import SpeechTokenizer
    from sqvae.modalities.views import DifferenceKey
    from sqvae.runs import CodeSet, Generator, Prepared
    from sqvae.tokenizers import Stored


class SpeechModality(Modality):
    """Recordings of speech, as log-mel frames."""

    kind = "speech"
    plural = "speech"
    noun = "utterance"
    file_noun = "recording"
    inputs = "RECORDINGS"
    code_endings = (".npz", ".txt")
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

    def check_voice(self, run: str, speaker: str | None, audio: bool, seconds: float | None = None) -> None:
        """Every model of speech has voices."""

    def encode_files(self, tokenizer: Any, inputs: Sequence[str], path: Path, **options: Any) -> "Encoded":
        from sqvae.modalities.speech.coding import encode_files

        options.pop("batch")  # recordings are encoded one by one
        return encode_files(tokenizer, inputs, path, **options)

    def decode_file(self, tokenizer: Any, codes: Path, path: Path, **options: Any) -> "Saved":
        from sqvae.modalities.speech.coding import decode_file

        options.pop("batch")
        return decode_file(tokenizer, codes, path, **options)

    def reconstruct_files(self, tokenizer: Any, inputs: Sequence[str], path: Path, **options: Any) -> "Saved":
        from sqvae.modalities.speech.coding import reconstruct_files

        options.pop("batch")
        return reconstruct_files(tokenizer, inputs, path, **options)

    def sample_files(
        self, run: str | Path, prior: str | Path | None, path: Path, choices: Any, **options: Any
    ) -> "Saved":
        from sqvae.modalities.speech.sampling import sample_files

        return sample_files(run, prior, path, choices, **options)

    @property
    def difference_key(self) -> "DifferenceKey | None":
        from sqvae.modalities.speech.views import LOUDNESS

        return LOUDNESS

    @property
    def page(self) -> "PageView":
        from sqvae.modalities.speech.page import PAGE

        return PAGE

    @property
    def inspection(self) -> "Inspection":
        from sqvae.modalities.speech.inspecting import INSPECTION

        return INSPECTION

    def explorer(self, tokenizer: Any, prior: "Generator | None") -> "ExampleViewer":
        from sqvae.modalities.speech.exploring import SpeechViewer

        return SpeechViewer(tokenizer, prior)

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

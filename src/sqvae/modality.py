"""What every kind of data answers for, and which kinds there are.

A modality is one kind of data: images, label maps, grey levels, speech, or vectors. Everything that differs between
kinds is an attribute or a method of its :class:`Modality`. Other rooms ask it, and hold no branch of their own.

To add a kind of data: one package with such an object, and one line in :data:`MODALITIES`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from sqvae.config import Experiment, NetworkSettings
    from sqvae.data import Progress, TakenAs
    from sqvae.export.exportable import Exportable
    from sqvae.inference.coding import Encoded
    from sqvae.inference.folders import Saved
    from sqvae.modalities.exploring import ExampleViewer
    from sqvae.modalities.inspecting import Inspection
    from sqvae.modalities.page import PageView
    from sqvae.modalities.views import DifferenceKey
    from sqvae.runs import CodeSet, Generator, Prepared
    from sqvae.tokenizers import Stored, Tokenizer

MODALITIES: Mapping[str, str] = {
    "pictures": "sqvae.modalities.images:PICTURES",
    "labels": "sqvae.modalities.images:LABELS",
    "levels": "sqvae.modalities.images:LEVELS",
    "speech": "sqvae.modalities.speech:SPEECH",
    "vectors": "sqvae.modalities.vectors:VECTORS",
}
"""Every kind of data by the name that `data.kind` has, and the module and name of its object. They are tried in this
order where nobody says what some data is."""


@cache
def modality_of(kind: str) -> "Modality":
    """The modality of a kind of data. It is imported when it is first asked for."""
    module, _, name = MODALITIES[kind].partition(":")
    modality: Modality = getattr(import_module(module), name)
    return modality


class Modality(ABC):
    """One kind of data, with all that the library does differently for it."""

    kind: str
    """The value of `data.kind`."""
    plural: str
    """What such data is called: "label maps"."""
    noun: str
    """What one example is called: "label map"."""
    recipe: str
    """The name of the recipe for a person's own data."""
    likelihoods: tuple[str, ...] = ("gaussian",)
    """The likelihoods that suit such data. The first is the default."""
    learning_rate: float | None = None
    """Where the learning rate of the schedule for any number of steps begins; None: as for images."""
    smoke_data: str
    """A small data set that needs no download, for quick trials."""
    tag: str = ""
    """The tag of a model on the hub,"""
    pipeline: str | None = None
    """and the hub's own name for what such a model does, if one fits."""
    is_image: bool = False
    """Whether examples are images, which can be compressed, sampled and interpolated."""
    reading: tuple[str, ...] = ()
    """Sentences that say how to read figures of examples, where that needs to be said."""

    # Configuration

    @property
    @abstractmethod
    def own_data(self) -> "Callable[[], Experiment]":
        """The recipe for a person's own data. The first line of its docstring is what `sqvae list recipes` shows."""

    @property
    def network(self) -> "type[NetworkSettings] | None":
        """The class of the settings of the networks; None: that of images."""
        return None

    def check(self, experiment: "Experiment") -> None:  # noqa: B027  most have no rule of their own
        """Raise `ConfigurationError` if settings don't suit this kind of data."""

    # Data

    @abstractmethod
    def told(self, source: str, settings: Mapping[str, str]) -> str | None:
        """Why data is of this kind by its name or by a setting that only this kind has; None if nothing says so."""

    @abstractmethod
    def recognised(self, source: str) -> "TakenAs | None":
        """Whether data is of this kind by a look at it; None if it is not. May raise `OSError`."""

    @abstractmethod
    def prepare(self, experiment: "Experiment", **options: Any) -> "Prepared":
        """Load the data, and decide from it what the experiment leaves open: see :func:`sqvae.runs.prepare`."""

    # Models

    @abstractmethod
    def tokenizer(self, stored: "Stored", name: str | Path, device: "str | torch.device | None") -> "Tokenizer":
        """A tokenizer from a stored model: see :func:`sqvae.load`."""

    # Codes

    @abstractmethod
    def code_set(self, tokenizer: Any, examples: Any, what: str, progress: "Progress | None") -> "CodeSet":
        """The likeliest codes of all examples of a set.

        Arguments:
            what: the words for what is being done, for the progress bar.
        """

    code_endings: tuple[str, ...] = (".npz",)
    """The endings of files of codes that can be written, beside .safetensors."""
    file_noun: str = ""
    """What one file of such data is called, if not as one example."""
    inputs: str = "IMAGES"
    """How help names files of such data."""

    def check_voice(self, run: str, speaker: str | None, audio: bool, seconds: float | None = None) -> None:
        """Raise if a model without voices is asked for one, for sound, or for a duration."""
        if speaker is not None or audio or seconds is not None:
            name = "speaker=" if speaker is not None else "audio=" if audio else "seconds="
            raise ValueError(f"`{name}` is for models of speech, and {run} is one of {self.plural}")

    @abstractmethod
    def encode_files(self, tokenizer: Any, inputs: Sequence[str], path: Path, **options: Any) -> "Encoded":
        """Encode files to a file of codes: see :func:`sqvae.inference.encode`."""

    @abstractmethod
    def decode_file(self, tokenizer: Any, codes: Path, path: Path, **options: Any) -> "Saved":
        """Decode a file of codes to files in a folder: see :func:`sqvae.inference.decode`."""

    @abstractmethod
    def reconstruct_files(self, tokenizer: Any, inputs: Sequence[str], path: Path, **options: Any) -> "Saved":
        """Send files through a model and save what comes out in a folder: see :func:`sqvae.inference.reconstruct`."""

    def sample_files(
        self, run: str | Path, prior: str | Path | None, path: Path, choices: Any, **options: Any
    ) -> "Saved":
        """Draw examples from a model and its prior, and save them: see :func:`sqvae.inference.sample_to_files`."""
        raise ValueError(f"{run} is a model of {self.plural}, which can't be sampled")

    # Views

    @property
    @abstractmethod
    def difference_key(self) -> "DifferenceKey | None":
        """How to read the colours of differences; None where they show wrong classes."""

    @property
    @abstractmethod
    def page(self) -> "PageView":
        """What the page about a run shows."""

    @property
    @abstractmethod
    def inspection(self) -> "Inspection":
        """What `sqvae inspect` says and draws."""

    def legend(self, tokenizer: Any, measures: dict[str, float]) -> str:
        """The classes of the data as HTML, with how well each is reconstructed; empty where there are none."""
        return ""

    @abstractmethod
    def explorer(self, tokenizer: Any, prior: "Generator | None") -> "ExampleViewer":
        """What the page of `sqvae explore` shows of a model."""

    # Export

    @abstractmethod
    def encoder_and_decoder(self, tokenizer: Any) -> "tuple[Exportable, Exportable]":
        """Both networks of a tokenizer as programs that can be traced and written to files."""

    @abstractmethod
    def described(self, tokenizer: Any) -> dict[str, Any]:
        """What a user of an exported model must know about its data: preprocessing, classes, speakers..."""

    # The model card

    @abstractmethod
    def usage(self, tokenizer: Any, name: str) -> Iterator[str]:
        """Lines of Markdown that show how a model is used."""

    @abstractmethod
    def code_rate(self, tokenizer: Any, bits: float) -> Iterator[str]:
        """Lines of Markdown that say how many codes an example becomes.

        Arguments:
            bits: of one code, at most.
        """

    @abstractmethod
    def data_facts(self, tokenizer: Any) -> Iterator[str]:
        """Lines of Markdown that say what data the model takes."""

    def limits(self, tokenizer: Any) -> Iterator[str]:
        """Lines of Markdown about what the model can't do."""
        return iter(())


def without_voice(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without those that only speech has."""
    return {name: value for name, value in options.items() if name not in ("speaker", "audio", "seconds")}

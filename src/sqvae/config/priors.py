"""What a prior over a model's codes is, in values that a file can hold and a person can change one by one."""

import inspect
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from sqvae.config.experiment import ConfigurationError, check_name
from sqvae.priors import PRIORS, Prior
from sqvae.training import SCHEDULES, Plan


@dataclass(frozen=True)
class PriorSettings:
    """Which network, and how large. None leaves a size as the network has it."""

    name: str = "pixelcnn"
    """See `sqvae.priors.PRIORS`."""
    channels: int | None = None
    """The width of the network."""
    layers: int | None = None
    """Convolutions one after the other; of each block, where there are blocks."""
    kernel: int | None = None
    """The width of their windows."""
    blocks: int | None = None
    """Of PixelSNAIL, each with an attention at its end."""
    heads: int | None = None
    """Of an attention."""
    dropout: float | None = None
    """The share of numbers that is dropped in training."""
    crop: int = 128
    """Codes of a sequence that are trained on at a time. Maps are trained on whole."""

    def __post_init__(self) -> None:
        check_name(self.name, PRIORS, "prior.name")
        known = inspect.signature(PRIORS[self.name]).parameters
        for name in self._given():
            if name not in known:
                raise ConfigurationError(f"{self.name} has no prior.{name}: leave it out, or set prior.name to another")
        if self.crop < 2:
            raise ConfigurationError(f"prior.crop must be at least 2 codes, got {self.crop}")

    def _given(self) -> dict[str, Any]:
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in values.items() if value is not None and name not in ("name", "crop")}

    def build(self, codebook_size: int, *, ndim: int, classes: int | None, context: int | None) -> Prior:
        """The network, untrained."""
        return PRIORS[self.name](codebook_size, ndim=ndim, classes=classes, context=context, **self._given())


def prior_plan() -> Plan:
    """How a prior is trained, unless one says otherwise."""
    return Plan(epochs=20, batch_size=64, learning_rate=1e-3, schedule="cosine", clip=1.0)


@dataclass(frozen=True)
class PriorExperiment:
    """All that makes a run of a prior what it is."""

    entry = "prior"  # of a run's configuration file; no annotation, so it is no setting
    kind = "prior"

    tokenizer: str = ""
    """The run whose codes it is about, or hf:OWNER/NAME on the hub."""
    fingerprint: str | None = None
    """Of that model, once it is known."""
    above: str | None = None
    """The run of the next coarser level, given whose codes these are predicted, if there is one,"""
    above_fingerprint: str | None = None
    """its fingerprint,"""
    above_prior: str | None = None
    """and where its own prior is, if not in its folder."""
    by_class: bool = False
    """Whether the class of a picture is given, too."""
    class_names: tuple[str, ...] | None = None
    """The classes, once they are known,"""
    class_counts: tuple[int, ...] | None = None
    """and how many pictures of each there are in training."""
    data: str | None = None
    """Where the data is, if not where the run has found it."""
    codebook_size: int | None = None
    """The number of codes, once it is known,"""
    context: int | None = None
    """and of the level above,"""
    shape: tuple[int, ...] | None = None
    """and a map's height and width; of sequences, the longest in training."""
    sequences: bool = False
    """Whether codes come in sequences of any lengths rather than in maps."""
    seed: int = 0
    prior: PriorSettings = field(default_factory=PriorSettings)
    training: Plan = field(default_factory=prior_plan)

    def __post_init__(self) -> None:
        check_name(self.training.schedule, SCHEDULES, "training.schedule")

    @property
    def place(self) -> str:
        """Where its data is."""
        return self.data or f"the data of {self.tokenizer}"

    def moved(self, source: str) -> "PriorExperiment":
        """The same with its data in another place."""
        return replace(self, data=source)

    def found_in(self, folder: Path) -> "PriorExperiment":
        """The same with its model beside the prior, if that was moved together with it."""
        if not Path(self.tokenizer).exists() and (folder.resolve().parent / "config.json").exists():
            return replace(self, tokenizer=str(folder.resolve().parent))
        return self

    def build(self) -> Prior:
        """The network, untrained, of what is known."""
        assert self.codebook_size is not None
        classes = len(self.class_names) if self.class_names else None
        ndim = 1 if self.sequences else 2
        return self.prior.build(self.codebook_size, ndim=ndim, classes=classes, context=self.context)

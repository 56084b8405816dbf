"""The settings of a prior over a model's codes. A file can store them, and each can be changed by name."""

import inspect
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from sqvae.config.experiment import ConfigurationError, check_name
from sqvae.priors import PRIORS, Prior
from sqvae.training import SCHEDULES, Plan


@dataclass(frozen=True)
class PriorSettings:
    """The network of the prior, and its size. None leaves a size at the network's own default."""

    name: str = "pixelcnn"
    """The name of the network, in `sqvae.priors.PRIORS`."""
    channels: int | None = None
    """The number of channels of the network's layers."""
    layers: int | None = None
    """The number of convolutional layers; for a network of blocks, the number in each block."""
    kernel: int | None = None
    """The kernel size of the convolutions."""
    blocks: int | None = None
    """The number of blocks of PixelSNAIL, each of which ends with an attention layer."""
    heads: int | None = None
    """The number of attention heads."""
    dropout: float | None = None
    """The dropout probability in training."""
    crop: int = 128
    """The number of codes in a training crop of a sequence. Maps of codes are not cropped."""

    def __post_init__(self) -> None:
        check_name(self.name, PRIORS, "prior.name")
        known = inspect.signature(PRIORS[self.name]).parameters
        for name in self._given():
            if name not in known:
                raise ConfigurationError(f"{self.name} has no prior.{name}: leave it out, or choose another prior.name")
        if self.crop < 2:
            raise ConfigurationError(f"prior.crop must be at least 2 codes, got {self.crop}")

    def _given(self) -> dict[str, Any]:
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in values.items() if value is not None and name not in ("name", "crop")}

    def build(
        self,
        codebook_size: int,
        *,
        ndim: int,
        classes: int | None,
        context: int | None,
        code_layers: int | None = None,
    ) -> Prior:
        """The untrained network."""
        return PRIORS[self.name](
            codebook_size, ndim=ndim, classes=classes, context=context, code_layers=code_layers, **self._given()
        )


def prior_plan() -> Plan:
    """The default training settings of a prior."""
    return Plan(epochs=20, batch_size=64, learning_rate=1e-3, schedule="cosine", clip=1.0)


@dataclass(frozen=True)
class PriorExperiment:
    """All settings of a prior's run."""

    entry = "prior"  # the key in a run's configuration file; without annotation, so that it is not a setting
    kind = "prior"

    tokenizer: str = ""
    """The run whose codes the prior models, or hf:OWNER/NAME on the hub."""
    fingerprint: str | None = None
    """The fingerprint of that model, once it is known."""
    above: str | None = None
    """The run of the next coarser level, if the prior is conditioned on that level's codes."""
    above_fingerprint: str | None = None
    """The fingerprint of the model of the next coarser level."""
    above_prior: str | None = None
    """Where the prior of the next coarser level is. None means in the folder of its run."""
    by_class: bool = False
    """Whether the prior is conditioned on the class of an image."""
    class_names: tuple[str, ...] | None = None
    """The names of the classes, once they are known."""
    class_counts: tuple[int, ...] | None = None
    """The number of training images of each class."""
    data: str | None = None
    """Where the data is. None means where the model's run found it."""
    codebook_size: int | None = None
    """The number of codes in the codebook, once it is known; with layers, in that of each."""
    code_layers: int | None = None
    """The number of codes at each position, once it is known. None means that codes have no axis of layers."""
    context: int | None = None
    """The number of codes in the codebook of the next coarser level."""
    shape: tuple[int, ...] | None = None
    """The height and width of a map of codes, without layers; for sequences, the longest length in the training set."""
    sequences: bool = False
    """Whether codes form sequences of any length rather than maps."""
    seed: int = 0
    """The seed of all random numbers of the run."""
    prior: PriorSettings = field(default_factory=PriorSettings)
    training: Plan = field(default_factory=prior_plan)

    def __post_init__(self) -> None:
        check_name(self.training.schedule, SCHEDULES, "training.schedule")

    @property
    def place(self) -> str:
        """Where the data is."""
        return self.data or f"the data of {self.tokenizer}"

    def moved(self, source: str) -> "PriorExperiment":
        """The same experiment with its data in another place."""
        return replace(self, data=source)

    def found_in(self, folder: Path) -> "PriorExperiment":
        """The same experiment, with the model in the folder above the prior's if both were moved together."""
        if not Path(self.tokenizer).exists() and (folder.resolve().parent / "config.json").exists():
            return replace(self, tokenizer=str(folder.resolve().parent))
        return self

    def build(self) -> Prior:
        """The untrained network, for the codebook size and the classes that are set."""
        assert self.codebook_size is not None
        classes = len(self.class_names) if self.class_names else None
        ndim = 1 if self.sequences else 2
        return self.prior.build(
            self.codebook_size, ndim=ndim, classes=classes, context=self.context, code_layers=self.code_layers
        )

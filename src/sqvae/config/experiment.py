"""What an experiment is, in values that a file can hold and a person can change one by one."""

import difflib
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal

from sqvae.data import Preprocessing
from sqvae.data.detection import DataKind
from sqvae.likelihoods import LIKELIHOODS
from sqvae.likelihoods.categorical import DecoderConcentration
from sqvae.likelihoods.gaussian import DecoderVariance
from sqvae.modality import MODALITIES, modality_of
from sqvae.models import LatentTerms
from sqvae.quantizers import QUANTIZERS, class_of
from sqvae.quantizers.gaussian import PER_INPUT, Heads
from sqvae.training import SCHEDULES, Plan

LEVELS = 256
"""Of a grey picture."""

FeatureName = Literal["vctk", "zerospeech"]
ClassInputs = Literal["one-hot", "directions"]


class ConfigurationError(ValueError):
    """A name or a value that the configuration does not know; the message lists what it does know."""


@dataclass(frozen=True)
class DataSettings:
    """Which pictures, and how they are brought to one shape. None is decided from the data."""

    source: str = "demo"
    """A folder, a file, or a name: see `sqvae list data`."""
    kind: DataKind = "pictures"
    """Pictures of real numbers; label maps, whose pixels are classes; grey pictures whose levels are 256 classes; or
    recordings of speech."""
    size: int | tuple[int, int] | None = None
    """Height and width, or the side of a square."""
    crop: int | None = None
    """The side of a centred square that is cut out before resizing; None takes the largest."""
    channels: int | None = None
    """1 or 3."""
    classes: int | None = None
    """Of label maps: 0 ... classes - 1."""
    ignore: int | None = None
    """The label of pixels of which nothing is known. None: 255, if it stands apart from the other labels, or none."""
    class_names: tuple[str, ...] | None = None
    """Of label maps, from 0 on,"""
    class_colours: tuple[str, ...] | None = None
    """and how they are shown: #rrggbb each. None: as the maps' own palette has it, or by turns."""
    flip: bool = False
    """Whether every second picture, drawn anew each time, is mirrored left to right in training."""
    shift: int = 0
    """How many pixels pictures are moved at most, drawn anew each time, in training; their edges are repeated."""
    split_seed: int = 0
    """Of the division into training, validation and test pictures, where the data has none of its own."""
    strict: bool = False
    """Stop at the first picture that can't be read, rather than leave it out."""

    def __post_init__(self) -> None:
        check_name(self.kind, MODALITIES, "data.kind")
        if self.kind == "levels" and self.channels not in (None, 1):
            raise ConfigurationError(f"levels are of grey pictures: data.channels must be 1, got {self.channels}")
        if self.shift < 0:
            raise ConfigurationError(f"data.shift must be a number of pixels, 0 or more, got {self.shift}")
        _ = self.preprocessing  # which says what is wrong with them
        self._check_classes()

    def _check_classes(self) -> None:
        for name in ("class_names", "class_colours"):
            values = getattr(self, name)
            if values is None:
                continue
            if self.kind != "labels":
                raise ConfigurationError(f"data.{name} is of label maps, and data.kind is {self.kind}")
            if self.classes is not None and len(values) != self.classes:
                raise ConfigurationError(f"{len(values)} data.{name} for {self.classes} data.classes")
        if self.class_names is not None and len(set(self.class_names)) != len(self.class_names):
            raise ConfigurationError("data.class_names must differ from each other")
        wrong = [colour for colour in self.class_colours or () if not re.fullmatch("#[0-9a-fA-F]{6}", colour)]
        if wrong:
            raise ConfigurationError(f"data.class_colours must look like #1f77b4, got {wrong[0]!r}")

    @property
    def preprocessing(self) -> Preprocessing:
        """How pictures become arrays."""
        channels = 1 if self.kind == "levels" else self.channels
        return Preprocessing(self.size, self.crop, channels, self.kind == "labels", self.classes, self.ignore)

    @property
    def number_of_classes(self) -> int:
        """That a decoder tells apart, at each pixel; 0 for real numbers, or where it is yet to be seen in the data."""
        return {"levels": LEVELS, "labels": self.classes or 0}.get(self.kind, 0)


@dataclass(frozen=True)
class NetworkSettings:
    """The convolutional networks: see `sqvae.networks.convolutional`."""

    widths: tuple[int, ...] | None = None
    """Channels after each halving of the size. None: as many halvings as suit the size, doubling towards the codes'
    dimension."""
    mix: bool = False
    """A 3x3 convolution comes after the halvings."""
    blocks: int = 2
    """ResBlocks, in the encoder and in the decoder."""
    decoder_blocks: int | None = None
    """ResBlocks in the decoder, if not as many as in the encoder."""
    map_dim: int | None = None
    """Channels of a map that a linear layer turns into one vector of `quantizer.dim` numbers, and back, for a
    continuous latent. None: the map itself is the latent, with `quantizer.dim` channels."""

    def __post_init__(self) -> None:
        for name, least in (("blocks", 0), ("decoder_blocks", 0), ("map_dim", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigurationError(f"network.{name} must be at least {least}, got {value}")


WITH_HEAD = tuple(
    name
    for name, make in QUANTIZERS.items()
    if isinstance(make, partial) and make.keywords.get("variance") in PER_INPUT
)
"""The quantizers whose variance depends on what the encoder's second head says."""


@dataclass(frozen=True)
class QuantizerSettings:
    """The quantizer by name, and what it is built with. None leaves its own default."""

    name: str = "gaussian-1"
    codebook_size: int = 512
    dim: int = 64
    initial_variance: float | None = None
    initial_concentration: float | None = None
    concentration_offset: float | None = None
    codebook_scale: float | None = None
    dequantize: bool | None = None
    hard: bool | None = None
    commitment: float | None = None
    decay: float | None = None
    reset_every: int | None = None
    variance_offset: float | None = None
    heads: Heads | None = None

    def __post_init__(self) -> None:
        check_name(self.name, QUANTIZERS, "quantizer.name")
        for name in ("codebook_size", "dim"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"quantizer.{name} must be at least 1, got {getattr(self, name)}")

    @property
    def is_discrete(self) -> bool:
        """Whether it has a codebook."""
        return "codebook_size" in self._known()

    @property
    def draws_codes(self) -> bool:
        """Whether codes are drawn in training, so that a schedule has something to anneal."""
        return bool(class_of(self.name).relaxes)

    @property
    def options(self) -> dict[str, Any]:
        """What is given, of the settings that this quantizer has; one that it does not have is an error."""
        given = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "name"}
        known = self._known()
        # The size of a codebook is never None, so that a recipe keeps it for the next quantizer that has one.
        taken = known | {"codebook_size"}
        foreign = [f"quantizer.{name}" for name, value in given.items() if value is not None and name not in taken]
        if foreign:
            takes = ", ".join(name for name in given if name in known)
            raise ConfigurationError(f"{self.name} has no {', '.join(foreign)}; it takes {takes}")
        return {name: value for name, value in given.items() if value is not None and name in known}

    def renamed(self, name: str) -> "QuantizerSettings":
        """The settings of another quantizer: its own defaults for what they don't share."""
        check_name(name, QUANTIZERS, "quantizer.name")
        other = QuantizerSettings(name, self.codebook_size, self.dim)
        shared = {key: value for key, value in self.options.items() if key in other._known()}
        if "gaussian-fixed" in (name, self.name):
            shared.pop("initial_variance", None)  # what a variance starts from is not what one is fixed at
        if name != self.name:
            shared.pop("variance_offset", None)  # a form of one type: another type's variance has other parts
        if name not in WITH_HEAD:
            shared.pop("heads", None)
        return replace(other, **shared)

    def _known(self) -> set[str]:
        return set(inspect.signature(class_of(self.name)).parameters)


@dataclass(frozen=True)
class LikelihoodSettings:
    """What the decoder says of the data."""

    name: str | None = None
    """Of `sqvae.likelihoods.LIKELIHOODS`. None: gaussian for pictures, vmf for labels and levels."""
    inputs: ClassInputs | None = None
    """What the encoder sees of a class: a channel of its own, or its direction, which for label maps is the same, and
    for levels two numbers. None: its direction."""
    concentration: DecoderConcentration = "learned"
    """Of a vMF decoder: see `sqvae.likelihoods.VonMisesFisherLikelihood`."""
    initial_concentration: float | None = None
    """Before training. None: 100."""
    concentration_offset: float = 0.0
    """What is added to it: see `sqvae.likelihoods.VonMisesFisherLikelihood`."""
    variance: DecoderVariance = "closed_form"
    """Of the decoder: see `sqvae.likelihoods.GaussianLikelihood`."""
    initial_variance: float | None = None
    """Before training. None: 0.1, or if it is fixed, the variance of the numbers in the training data."""
    latent_terms: LatentTerms = "sum"
    """How the quantizer's terms enter the loss: see `sqvae.models.LatentModel`."""

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name, LIKELIHOODS, "likelihood.name")
        for name in ("initial_variance", "initial_concentration"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigurationError(f"likelihood.{name} must be > 0, got {value}")
        if not self.concentration_offset >= 0:
            raise ConfigurationError(f"likelihood.concentration_offset must be >= 0, got {self.concentration_offset}")


@dataclass(frozen=True)
class SpeechSettings:
    """Recordings and the networks for them: see `sqvae.networks.speech`. They count where `data.kind` is speech."""

    features: FeatureName = "zerospeech"
    """How sound becomes log-mel frames: see `sqvae.data.speech.FEATURES`."""
    speakers: tuple[str, ...] | None = None
    """Those that the model knows. None: those of the training set."""
    channels: int = 768
    """Of the encoder's convolutions."""
    hidden: int = 128
    """Of each direction of the decoder's recurrent layers."""
    speaker_dim: int = 64
    """Of a speaker's embedding."""
    jitter: float = 0.5
    """The probability that a position takes its neighbour's code in training."""
    segment: int = 32
    """Frames of a crop that is trained on."""
    segments_per_epoch: int = 52_000
    """Crops that make up an epoch, drawn from utterances by turns: 1,000 of the paper's batches."""
    abx: str | None = None
    """Recordings with a list of ABX items beside them, on which units are tested too where a run is recorded."""

    def __post_init__(self) -> None:
        for name in ("channels", "hidden", "speaker_dim", "segment", "segments_per_epoch"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"speech.{name} must be at least 1, got {getattr(self, name)}")
        if self.segment % 2:
            raise ConfigurationError(f"speech.segment must be even, two frames to a code; got {self.segment}")
        if not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"speech.jitter must lie between 0 and 1, got {self.jitter}")


@dataclass(frozen=True)
class Experiment:
    """All that makes a run what it is."""

    entry = "experiment"  # of a run's configuration file; no annotation, so it is no setting

    recipe: str = "pictures"
    seed: int = 0
    data: DataSettings = field(default_factory=DataSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    speech: SpeechSettings = field(default_factory=SpeechSettings)
    quantizer: QuantizerSettings = field(default_factory=QuantizerSettings)
    likelihood: LikelihoodSettings = field(default_factory=LikelihoodSettings)
    training: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        check_name(self.training.schedule, SCHEDULES, "training.schedule")
        if self.network.map_dim is not None and self.quantizer.is_discrete:
            raise ConfigurationError(
                f"network.map_dim={self.network.map_dim} makes a picture's latent one vector, and "
                f"{self.quantizer.name} would have a single code for it: set network.map_dim=none for a map of codes, "
                f"or quantizer.name=gaussian-latent for a continuous vector"
            )
        modality = modality_of(self.data.kind)
        suits = modality.likelihoods
        if self.likelihood.name not in (None, *suits):
            raise ConfigurationError(
                f"likelihood.name={self.likelihood.name} does not suit data.kind={self.data.kind}: take "
                f"{' or '.join(suits)}"
            )
        modality.check(self)

    @property
    def kind(self) -> str:
        """What it is about."""
        return self.data.kind

    @property
    def place(self) -> str:
        """Where its data is."""
        return self.data.source

    def moved(self, source: str) -> "Experiment":
        """The same with its data in another place."""
        return replace(self, data=replace(self.data, source=source))

    @property
    def likelihood_name(self) -> str:
        """The likelihood, whether chosen or the one that suits the data."""
        return self.likelihood.name or modality_of(self.data.kind).likelihoods[0]


def check_name(name: object, known: Iterable[str], what: str) -> None:
    """Raise if a name is not known, with all that are, and the one that was probably meant."""
    choices = list(known)
    if name not in choices:
        raise ConfigurationError(
            f"{what} {name!r} is unknown{nearest(str(name), choices)}; there is {', '.join(choices)}"
        )


def nearest(name: str, choices: Iterable[str]) -> str:
    """A question after the name that was probably meant, or nothing."""
    by_letters = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(name.lower(), list(by_letters), n=1, cutoff=0.5)
    return f" (did you mean {by_letters[close[0]]}?)" if close else ""

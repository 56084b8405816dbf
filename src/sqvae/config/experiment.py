"""The settings of an experiment. A file can store them, and each can be changed by name."""

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
from sqvae.quantizers import LATENTS, QUANTIZERS, class_of, has_codes, has_layers
from sqvae.quantizers.gaussian import PER_INPUT, Heads
from sqvae.training import SCHEDULES, Plan

LEVELS = 256
"""The number of grey levels of a grey image."""

MOST_LEVELS = 10
"""The largest number of levels of codes: the coarsest code of ten stands for thousands of pixels of a side."""

FeatureName = Literal["vctk", "zerospeech"]
ClassInputs = Literal["one-hot", "directions"]


class ConfigurationError(ValueError):
    """A name or a value that is not valid in a configuration. The message lists the valid ones."""


@dataclass(frozen=True)
class DataSettings:
    """The data set, and how its images are brought to one shape. A setting of None is decided from the data."""

    source: str = "demo"
    """The data: a folder, a file, or a name that `sqvae list data` prints."""
    kind: DataKind = "pictures"
    """The kind of the data. `pictures` are images with real-valued pixels. `labels` are label maps, whose pixels are
    classes. `levels` are grey images whose 256 grey levels are treated as classes. `speech` is recordings of speech."""
    size: int | tuple[int, int] | None = None
    """The size that images are resized to: height and width, or one number for a square."""
    crop: int | None = None
    """The side of the square that is cropped from the centre of each image before resizing. None crops the largest
    square."""
    channels: int | None = None
    """The number of channels of an image: 1 for grey or 3 for colour."""
    classes: int | None = None
    """The number of classes in label maps. Their labels are 0 ... classes - 1."""
    ignore: int | None = None
    """The label of pixels whose class is unknown. None takes 255 if the data has this label apart from its other
    labels, and otherwise ignores no label."""
    class_names: tuple[str, ...] | None = None
    """The names of the classes of label maps, in the order of their labels from 0 on."""
    class_colours: tuple[str, ...] | None = None
    """The colours in which the classes of label maps are shown, each as #rrggbb. None takes the palette of the label
    maps if they have one, and otherwise a built-in list of colours."""
    flip: bool = False
    """Whether images are mirrored left to right at random in training, each time with probability 1/2."""
    shift: int = 0
    """The largest number of pixels by which images are shifted at random in training. The pixels at the edge are
    repeated."""
    split_seed: int = 0
    """The seed of the random split into training, validation and test set, for data that has no split of its own."""
    strict: bool = False
    """Whether to stop at the first image that cannot be read. Otherwise such images are left out."""

    def __post_init__(self) -> None:
        check_name(self.kind, MODALITIES, "data.kind")
        if self.kind == "levels" and self.channels not in (None, 1):
            raise ConfigurationError(
                f"data.kind=levels needs grey images: data.channels must be 1, got {self.channels}"
            )
        if self.shift < 0:
            raise ConfigurationError(f"data.shift must be a number of pixels, 0 or more, got {self.shift}")
        _ = self.preprocessing  # raises if these settings are invalid
        self._check_classes()

    def _check_classes(self) -> None:
        for name in ("class_names", "class_colours"):
            values = getattr(self, name)
            if values is None:
                continue
            if self.kind != "labels":
                raise ConfigurationError(
                    f"data.{name} is for label maps (data.kind=labels) only, but data.kind is {self.kind}"
                )
            if self.classes is not None and len(values) != self.classes:
                raise ConfigurationError(
                    f"the number of data.{name} must equal data.classes: got {len(values)} and {self.classes}"
                )
        if self.class_names is not None and len(set(self.class_names)) != len(self.class_names):
            raise ConfigurationError("data.class_names must be different from each other")
        wrong = [colour for colour in self.class_colours or () if not re.fullmatch("#[0-9a-fA-F]{6}", colour)]
        if wrong:
            raise ConfigurationError(f"data.class_colours must look like #1f77b4, got {wrong[0]!r}")

    @property
    def preprocessing(self) -> Preprocessing:
        """The preprocessing that turns images into arrays."""
        channels = 1 if self.kind == "levels" else self.channels
        return Preprocessing(self.size, self.crop, channels, self.kind == "labels", self.classes, self.ignore)

    @property
    def number_of_classes(self) -> int:
        """The number of classes that a decoder predicts for each pixel. It is 0 for real-valued data, and 0 as long
        as it is not yet known from the data."""
        return {"levels": LEVELS, "labels": self.classes or 0}.get(self.kind, 0)


@dataclass(frozen=True)
class NetworkSettings:
    """The convolutional networks for images: see `sqvae.networks.convolutional`."""

    widths: tuple[int, ...] | None = None
    """The number of channels after each downsampling by 2. None chooses the number of downsamplings from the image
    size, and doubles the channels up to the dimension of the codes."""
    mix: bool = False
    """Whether a 3x3 convolution follows the downsampling."""
    blocks: int = 2
    """The number of ResBlocks, in the encoder and in the decoder."""
    decoder_blocks: int | None = None
    """The number of ResBlocks in the decoder. None takes the same number as in the encoder."""
    map_dim: int | None = None
    """For a continuous latent, the number of channels of the feature map that a linear layer turns into one vector
    of `quantizer.dim` numbers, and back. None uses the feature map itself as the latent, with `quantizer.dim`
    channels."""
    levels: int = 1
    """The number of levels of codes, each with twice the height and width of the level above it. The finest has as many
    codes as the only one has otherwise. See `sqvae.HierarchicalModel`."""

    def __post_init__(self) -> None:
        for name, least in (("blocks", 0), ("decoder_blocks", 0), ("map_dim", 1), ("levels", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigurationError(f"network.{name} must be at least {least}, got {value}")
        if self.levels > MOST_LEVELS:
            raise ConfigurationError(
                f"network.levels must be at most {MOST_LEVELS}, because each level needs images of twice the size; got "
                f"{self.levels}"
            )


WITH_HEAD = tuple(
    name
    for name, make in QUANTIZERS.items()
    if isinstance(make, partial) and make.keywords.get("variance") in PER_INPUT
)
"""The quantizers whose variance depends on what the encoder's second head says."""


@dataclass(frozen=True)
class QuantizerSettings:
    """The name of the quantizer and its arguments. None leaves an argument at the quantizer's own default."""

    name: str = "gaussian-1"
    """The name of the quantizer, in `sqvae.quantizers.QUANTIZERS`, or `gaussian-latent` for a VAE without codes."""
    codebook_size: int = 512
    """The number of codes in the codebook."""
    dim: int = 64
    """The dimension of a code, and of a latent vector."""
    initial_variance: float | None = None
    """The variance of a Gaussian quantizer before training. None takes 10, or 1 for gaussian-fixed."""
    initial_concentration: float | None = None
    """The concentration of the vMF quantizer before training. None takes 1."""
    concentration_offset: float | None = None
    """The constant that is added to the vMF quantizer's concentration. None takes 0."""
    codebook_scale: float | None = None
    """The standard deviation of the codes' components before training. None takes 1, or 1 / sqrt(dim) for vmf."""
    dequantize: bool | None = None
    """Whether noise is added to the encodings before they are quantized in training. None takes false."""
    hard: bool | None = None
    """Whether the decoder sees single codes in training rather than relaxed samples. None takes false."""
    commitment: float | None = None
    """The weight of the commitment loss of a VQ quantizer. None takes 0.25."""
    decay: float | None = None
    """The decay of the moving averages of vq-ema and vq-ema-reset. None takes 0.99."""
    reset_every: int | None = None
    """The number of batches between resets of the least used code. None takes 20 for vq-ema-reset, and never resets for
    vq-ema."""
    variance_offset: float | None = None
    """The constant that is added to a Gaussian quantizer's variance. None takes 0."""
    heads: Heads | None = None
    """How the encoder's log-variance and the trained scalar are combined for gaussian-2 to gaussian-4: see
    `sqvae.quantizers.GaussianQuantizer`. None takes `product`."""
    code_dim: int | None = None
    """The number of components of a code of a Gaussian or residual quantizer, if it is less than `dim`: see
    `sqvae.quantizers.GaussianQuantizer`. None takes `dim`."""
    layers: int | None = None
    """The number of codes at each position, for residual quantizers. None takes 4."""
    layer_dropout: float | None = None
    """The share of a training batch whose examples use a random number of layers, so that any number of them decodes
    well: see `sqvae.quantizers.ResidualQuantizer`. None takes 0."""
    shared_codebook: bool | None = None
    """Whether all layers of residual-1 and residual-3 have the same codes. None takes false."""

    def __post_init__(self) -> None:
        check_name(self.name, LATENTS, "quantizer.name")
        for name in ("codebook_size", "dim", "layers", "code_dim"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"quantizer.{name} must be at least 1, got {value}")
        if self.code_dim is not None and self.code_dim > self.dim:
            raise ConfigurationError(
                f"quantizer.code_dim must be at most quantizer.dim, which is {self.dim}; got {self.code_dim}"
            )
        if self.layer_dropout is not None and not 0 <= self.layer_dropout <= 1:
            raise ConfigurationError(f"quantizer.layer_dropout must be between 0 and 1, got {self.layer_dropout}")

    @property
    def is_discrete(self) -> bool:
        """Whether the quantizer has a codebook."""
        return has_codes(self.name)

    @property
    def number_of_layers(self) -> int:
        """The number of codes at each position."""
        default: int = inspect.signature(class_of(self.name)).parameters["layers"].default if self.has_layers else 1
        return self.layers or default

    @property
    def number_of_codes(self) -> int:
        """The number of codes of all layers together; 0 for a continuous latent."""
        return self.codebook_size * self.number_of_layers if self.is_discrete else 0

    @property
    def has_layers(self) -> bool:
        """Whether codes have an axis of layers."""
        return has_layers(self.name)

    @property
    def draws_codes(self) -> bool:
        """Whether codes are drawn in training, so that a schedule has something to anneal."""
        return bool(class_of(self.name).relaxes)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that are set, by name. A setting that this quantizer does not have is an error."""
        given = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "name"}
        known = self._known()
        # codebook_size is never None: a recipe keeps it for another quantizer that has a codebook.
        taken = known | {"codebook_size"}
        foreign = [f"quantizer.{name}" for name, value in given.items() if value is not None and name not in taken]
        if foreign:
            takes = ", ".join(name for name in given if name in known)
            raise ConfigurationError(f"{self.name} has no {', '.join(foreign)}; it takes {takes}")
        return {name: value for name, value in given.items() if value is not None and name in known}

    def renamed(self, name: str) -> "QuantizerSettings":
        """The settings for another quantizer: shared ones are kept, all others are that quantizer's defaults."""
        check_name(name, LATENTS, "quantizer.name")
        other = QuantizerSettings(name, self.codebook_size, self.dim)
        shared = {key: value for key, value in self.options.items() if key in other._known()}
        if "gaussian-fixed" in (name, self.name):
            shared.pop("initial_variance", None)  # a variance to start from is not a variance to stay at
        if name != self.name:
            shared.pop("variance_offset", None)  # its meaning differs between the types
        if name not in WITH_HEAD:
            shared.pop("heads", None)
        return replace(other, **shared)

    def _known(self) -> set[str]:
        return set(inspect.signature(class_of(self.name)).parameters)


@dataclass(frozen=True)
class LikelihoodSettings:
    """The likelihood: how the decoder's output describes the data."""

    name: str | None = None
    """A name in `sqvae.likelihoods.LIKELIHOODS`. None takes gaussian for images and speech, and vmf for labels and
    levels."""
    inputs: ClassInputs | None = None
    """How the encoder sees a class: `one-hot`, as one channel for each class, or `directions`, as the unit vector of
    the class. For label maps the two are the same; for levels the unit vector has two numbers. None takes
    `directions`."""
    concentration: DecoderConcentration = "learned"
    """How a vMF decoder's concentration is found: see `sqvae.likelihoods.VonMisesFisherLikelihood`."""
    initial_concentration: float | None = None
    """The concentration of a vMF decoder before training. None takes 100."""
    concentration_offset: float = 0.0
    """The constant that is added to a learned concentration: see `sqvae.likelihoods.VonMisesFisherLikelihood`."""
    variance: DecoderVariance = "closed_form"
    """How a Gaussian decoder's variance is found: see `sqvae.likelihoods.GaussianLikelihood`."""
    initial_variance: float | None = None
    """The variance of a Gaussian decoder before training. None takes 0.1 or, if the variance is fixed, the variance
    of the values in the training set."""
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
    """Speech features and networks: see `sqvae.networks.speech`. They are used only if `data.kind` is speech."""

    features: FeatureName = "zerospeech"
    """How audio becomes log-mel spectrogram frames: a name in `sqvae.data.speech.FEATURES`."""
    speakers: tuple[str, ...] | None = None
    """The speakers that the model knows. None takes the speakers of the training set."""
    channels: int = 768
    """The number of channels of the encoder's convolutions."""
    hidden: int = 128
    """The number of units in each direction of the decoder's recurrent layers."""
    speaker_dim: int = 64
    """The dimension of a speaker's embedding."""
    jitter: float = 0.5
    """The probability that a position takes its neighbour's code in training."""
    segment: int = 32
    """The number of frames in a training crop."""
    segments_per_epoch: int = 52_000
    """The number of crops in an epoch, drawn from the utterances in turn. The default is 1,000 of the paper's
    batches."""
    abx: str | None = None
    """A folder of recordings with a list of ABX items. The ABX error of the codes is then measured too when a run is
    recorded."""

    def __post_init__(self) -> None:
        for name in ("channels", "hidden", "speaker_dim", "segment", "segments_per_epoch"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"speech.{name} must be at least 1, got {getattr(self, name)}")
        if self.segment % 2:
            raise ConfigurationError(
                f"speech.segment must be even, because one code covers two frames; got {self.segment}"
            )
        if not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"speech.jitter must lie between 0 and 1, got {self.jitter}")


@dataclass(frozen=True)
class Experiment:
    """All settings of a run."""

    entry = "experiment"  # the key in a run's configuration file; without annotation, so that it is not a setting

    recipe: str = "pictures"
    """The name of the recipe that the settings come from."""
    seed: int = 0
    """The seed of all random numbers of the run."""
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
                f"network.map_dim={self.network.map_dim} makes the latent of an image one vector, for which "
                f"{self.quantizer.name} would have a single code: set network.map_dim=none for a map of codes, or "
                "quantizer.name=gaussian-latent for a continuous vector"
            )
        modality = modality_of(self.data.kind)
        if self.network.levels > 1 and not (modality.is_image and self.quantizer.is_discrete):
            what = modality.plural if not modality.is_image else f"quantizer.name={self.quantizer.name}"
            raise ConfigurationError(
                f"network.levels={self.network.levels} makes levels of codes, which models of images with a codebook "
                f"have; {what} has none: set network.levels=1"
            )
        suits = modality.likelihoods
        if self.likelihood.name not in (None, *suits):
            raise ConfigurationError(
                f"likelihood.name={self.likelihood.name} does not suit data.kind={self.data.kind}: use "
                f"{' or '.join(suits)}"
            )
        modality.check(self)

    @property
    def kind(self) -> str:
        """The kind of the data."""
        return self.data.kind

    @property
    def place(self) -> str:
        """Where the data is."""
        return self.data.source

    def moved(self, source: str) -> "Experiment":
        """The same experiment with its data in another place."""
        return replace(self, data=replace(self.data, source=source))

    @property
    def number_of_codes(self) -> int:
        """The number of codes of all layers of all levels together; 0 for a continuous latent."""
        return self.network.levels * self.quantizer.number_of_codes

    @property
    def likelihood_name(self) -> str:
        """The likelihood, whether chosen or the one that suits the data."""
        return self.likelihood.name or modality_of(self.data.kind).likelihoods[0]


def check_name(name: object, known: Iterable[str], what: str) -> None:
    """Raise if a name is not among the known ones. The message lists them and suggests the closest one."""
    choices = list(known)
    if name not in choices:
        raise ConfigurationError(
            f"{what} {name!r} is unknown{nearest(str(name), choices)}; choose from {', '.join(choices)}"
        )


def nearest(name: str, choices: Iterable[str]) -> str:
    """A " (did you mean ...?)" with the closest name, or "" if none is close."""
    by_letters = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(name.lower(), list(by_letters), n=1, cutoff=0.5)
    return f" (did you mean {by_letters[close[0]]}?)" if close else ""

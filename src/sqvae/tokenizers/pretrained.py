"""Trained models with all that is needed to use them, in folders and on the hub."""

import re
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from sqvae import __version__
from sqvae.config import Experiment, from_json, to_json
from sqvae.data import TakenAs
from sqvae.files import folder_within
from sqvae.modality import modality_of
from sqvae.quantizers import LayeredQuantizer, LevelQuantizers, Quantizer, codebook_names
from sqvae.tokenizers.card import model_card
from sqvae.tokenizers.claims import built
from sqvae.tokenizers.history import History, as_set, history_of, public_name
from sqvae.training import (
    Checkpoint,
    CheckpointError,
    RunFolder,
    fingerprint,
    no_such_folder,
    read_checkpoint,
    read_json,
    write_checkpoint,
)
from sqvae.training.checkpoints import MANIFEST, WEIGHTS

if TYPE_CHECKING:
    from typing_extensions import Self

FORMAT = 1

ENTRIES = {"experiment": "a model", "prior": "a prior over a model's codes"}
"""What a `config.json` may describe."""

REPLACING = 0.2
"""Seconds within which a run in progress has replaced a checkpoint."""

Model = TypeVar("Model", bound=nn.Module)


class Described(Protocol):
    """What can be trained, as far as its configuration file goes."""

    entry: str


Trained = TypeVar("Trained", bound=Described)


class Tokenizer(nn.Module, ABC):
    """A trained model with all that is needed to use it. :func:`sqvae.load` makes one.

    It unites the model with the configuration it was trained by, so that data is brought to the shape that the model
    knows, and codes are not taken for another model's. Every kind of data has a tokenizer with the same verbs:
    `encode`, `decode`, `reconstruct` and `encodings`. It is a module: `.to(device)` moves it, and `.parameters()` are
    those of the model.

    Arguments:
        model: the trained model.
        experiment: the configuration it was trained by.
        fingerprint: what codes of this model are marked with: equal only for equal weights.
        history: how it was trained and what was measured of it, as far as that is known.
    """

    model: Any

    def __init__(
        self, model: nn.Module, experiment: Experiment, fingerprint: str, history: History | None = None
    ) -> None:
        super().__init__()
        self.model = model
        self.experiment = experiment
        self.fingerprint = fingerprint
        self.history = History() if history is None else history
        self._for_inference: Any = None
        self.train(model.training)

    @abstractmethod
    def _folded(self) -> nn.Module:
        """A copy of the model in which normalisations are folded into the layers before them."""

    @property
    def inference_model(self) -> Any:
        """The model that data and codes go through: a faster copy, made again when the weights may have changed."""
        if self._for_inference is None:
            # In a tuple, so that it is no part of the module: its weights are the model's own.
            self._for_inference = (self._folded().to(self.device).eval(),)
        return self._for_inference[0]

    def train(self, mode: bool = True) -> "Tokenizer":
        """Put the model into training mode or out of it. What changed in between is seen by the next `encode`."""
        self._for_inference = None
        return super().train(mode)

    def _apply(self, fn: Any, recurse: bool = True) -> "Tokenizer":
        self._for_inference = None
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def forward(self, data: Any) -> Any:
        """The codes of data: the same as `encode`."""
        return self.encode(data)

    @abstractmethod
    def encode(self, data: Any, *options: Any, **named: Any) -> Any:
        """The likeliest codes of data; of a model with layers perhaps only those of the first."""

    @abstractmethod
    def decode(self, codes: Any, *options: Any) -> Any:
        """What codes stand for."""

    @abstractmethod
    def reconstruct(self, data: Any, *options: Any, **named: Any) -> Any:
        """Data after a round trip through its codes, or those of its first layers."""

    @abstractmethod
    def encodings(self, data: Any) -> Any:
        """What codes are chosen by: continuous, before quantization."""

    @classmethod
    def from_pretrained(cls, name: str | Path, *, device: str | torch.device | None = None, **download: Any) -> "Self":
        """A tokenizer from a run, a checkpoint's folder, or the Hugging Face hub: see :func:`sqvae.load`."""
        from sqvae.tokenizers.loading import load

        tokenizer = load(name, device=device, **download)
        if not isinstance(tokenizer, cls):
            kind = modality_of(tokenizer.experiment.kind).plural
            raise CheckpointError(
                f"{name} is a model of {kind}: it is a {type(tokenizer).__name__}, not a {cls.__name__}"
            )
        return tokenizer

    @property
    def codebook_size(self) -> int:
        """The number of codes, K; with layers the number of codes of each."""
        size = codebook_size_of(self.model)
        if not size:
            raise ValueError(
                f"a model with the quantizer {self.experiment.quantizer.name} has a continuous latent, and no codes"
            )
        return size

    @property
    def is_discrete(self) -> bool:
        """Whether it has codes."""
        return codebook_size_of(self.model) > 0

    @property
    def layers(self) -> int | None:
        """The number of codes of each position of a level; None for a model without layers, whose codes have no axis of
        them."""
        quantizer = self.model.quantizer.levels[0]
        return len(quantizer.codebook_sizes) if isinstance(quantizer, LayeredQuantizer) else None

    @property
    def layer_axis(self) -> tuple[int, ...]:
        """(layers,), the last axis of codes; () for a model without layers."""
        return () if self.layers is None else (self.layers,)

    def coarsest(self, codes: Tensor) -> Tensor:  # (...), or (..., layers) -> (...)
        """The codes themselves; with layers those of the first, as tools need them that look at codes one by one."""
        return codes if self.layers is None else codes[..., 0]

    def from_coarsest(self, codes: Tensor) -> Tensor:  # (...) -> (...), or (..., 1)
        """What :meth:`coarsest` gave, as :meth:`decode` takes it."""
        return codes if self.layers is None else codes.unsqueeze(-1)

    def check_without_layers(self, what: str) -> None:
        """Raise an error for models with layers, which a tool does not support.

        Arguments:
            what: a sentence's beginning, such as "a prior has".
        """
        if self.layers is not None:
            raise ValueError(
                f"{what} one code for each position, and this model has {self.layers} layers of them; it works with "
                "models without layers, such as those with quantizer.name=gaussian-1"
            )

    @property
    def levels(self) -> int:
        """The number of levels of codes; 1 for a model whose codes have one resolution."""
        return len(self.model.quantizer.levels)

    def check_one_level(self, what: str) -> None:
        """Raise an error for hierarchies, which a tool does not support.

        Arguments:
            what: a sentence's beginning, such as "a prior is trained on".
        """
        if self.levels > 1:
            raise ValueError(
                f"{what} codes of one resolution, and this model has {self.levels} levels of them; it works with "
                "models that were trained with network.levels=1"
            )

    def checked_levels(self, levels: int | None) -> int | None:
        """The number of levels to decode; None for all. A number that the model does not have is an error."""
        if levels is not None and not 1 <= levels <= self.levels:
            has = "one level of codes" if self.levels == 1 else f"{self.levels} levels of codes"
            raise ValueError(f"levels={levels}: this model has {has}, so levels must be between 1 and {self.levels}")
        return levels

    def first_layers(self, codes: Tensor, layers: int | None) -> Tensor:  # (..., layers) -> (..., n)
        """The codes of the first layers, which decode to a coarser version; None takes all of them."""
        if layers is None:
            return codes
        if self.layers is None:
            raise ValueError(
                f"layers={layers}: the codes of a model with the quantizer {self.experiment.quantizer.name} have no "
                "layers; residual quantizers have"
            )
        if not 1 <= layers <= codes.shape[-1]:
            raise ValueError(f"layers must be between 1 and {codes.shape[-1]}, the number of layers; got {layers}")
        return codes[..., :layers]

    @property
    def code_vectors(self) -> Tensor:  # -> (K, dim)
        """What the codes stand for, as the decoder sees them; with layers those of the first."""
        self.check_one_level("code vectors belong to")
        with torch.inference_mode():
            vectors: Tensor = self.model.quantizer.books[0].vectors()
            return vectors.detach()

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def taken_as(self) -> TakenAs:
        """As what its data was taken, and why."""
        return self.history.taken_as or as_set(self.experiment)

    def save_pretrained(self, folder: str | Path, *, name: str | None = None) -> None:
        """Write configuration, weights, what is known of their history, and a model card, as hubs want them.

        Where the data lay is nobody's business, and is left out. Files of the same names are replaced, and others that
        are in the folder stay; but not in a run, which could not go on with another model's files among its own.

        Arguments:
            name: what the card calls the model; the folder's name by default.
        """
        folder = Path(folder).expanduser()
        if any(RunFolder(place).log.exists() for place in (folder, folder.resolve().parent)):
            raise CheckpointError(f"{folder} is of a training run, and is left as it is: choose another folder")
        config = describe(self.experiment.moved(public_name(self.experiment.data.source)))
        try:
            with folder_within(folder, "model") as aside:
                model = aside / "model"
                write_checkpoint(model, Checkpoint(config, self.model.state_dict()))
                self.history.save(model)
                (model / "README.md").write_text(model_card(self, name or folder.resolve().name), encoding="utf-8")
                # The manifest comes last: with that of before, a model that is only half replaced does not load. The
                # weights come first: a folder with them is a model's, and may be written once more.
                for path in sorted(model.iterdir(), key=lambda path: (path.name == MANIFEST, path.name != WEIGHTS)):
                    path.replace(folder / path.name)
        except OSError as failure:
            raise CheckpointError(f"can't write a model to {folder}: {failure.strerror or failure}") from failure

    def push_to_hub(self, repository: str, *, private: bool = False, token: str | None = None, **commit: Any) -> str:
        """Upload what :meth:`save_pretrained` writes to the Hugging Face hub, and return the address.

        Arguments:
            repository: OWNER/NAME; it is created where there is none.
            commit: passed on to ``HfApi.upload_folder``: commit_message, revision...
        """
        from huggingface_hub import HfApi

        hub = HfApi(token=token)
        repository = hub.create_repo(repository, private=private, exist_ok=True).repo_id
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder) / "model", name=repository)
            return str(hub.upload_folder(repo_id=repository, folder_path=Path(folder) / "model", **commit))


def codebook_sizes_of(model: nn.Module) -> tuple[int, ...]:
    """The number of codes of each layer of each level; a single one without layers, and none for a continuous
    latent."""
    return quantizer_of(model).codebook_sizes


def codebook_names_of(model: nn.Module) -> tuple[str, ...]:
    """The name of each layer of each level, in the same order: see :func:`sqvae.quantizers.codebook_names`."""
    levels = quantizer_of(model).levels
    return codebook_names(len(levels), len(levels[0].codebook_sizes))


def quantizer_of(model: nn.Module) -> Quantizer | LevelQuantizers:
    """The quantizer of a model, or the quantizers of its levels."""
    quantizer = model.get_submodule("quantizer")
    assert isinstance(quantizer, Quantizer | LevelQuantizers)
    return quantizer


def codebook_size_of(model: nn.Module) -> int:
    """The number of codes, or the largest of the layers; 0 for a continuous latent."""
    return max(codebook_sizes_of(model), default=0)


def describe(experiment: Described) -> dict[str, Any]:
    """What `config.json` holds of an experiment, or of whatever else is trained."""
    return {"format": FORMAT, "sqvae": __version__, experiment.entry: to_json(experiment)}


def settings_from(kind: type[Trained], config: Mapping[str, Any], where: str | Path) -> Trained:
    """What a `config.json` describes, as an :class:`Experiment` or whatever else is trained."""
    if config.get("format") != FORMAT or not set(config) & set(ENTRIES):
        raise CheckpointError(
            f"{where} has the format {config.get('format')!r}, and this version of sqvae ({__version__}) reads "
            f"{FORMAT}; it was written by sqvae {config.get('sqvae', 'of an unknown version')}"
        )
    if kind.entry not in config:
        found = next(name for name in ENTRIES if name in config)
        raise CheckpointError(f"{where} holds {ENTRIES[found]}, and not {ENTRIES[kind.entry]}")
    return from_json(kind, config[kind.entry])


def experiment_from(config: Mapping[str, Any], where: str | Path) -> Experiment:
    """The experiment that a `config.json` describes."""
    return settings_from(Experiment, config, where)


class Stored(NamedTuple):
    """A model as it lies in a folder."""

    checkpoint: Checkpoint
    experiment: Experiment
    folder: Path

    def history(self, fingerprint: str) -> History:
        """What is known of it beside its weights, which have this fingerprint."""
        return history_of(self.folder, self.checkpoint.config, fingerprint, self.experiment.data.source)


def read(name: str | Path, download: Mapping[str, Any]) -> Stored:
    """The checkpoint of a run (its best), of a folder, or of a model of the Hugging Face hub, and its experiment."""
    checkpoint, folder = _read(name, download)
    return Stored(checkpoint, experiment_from(checkpoint.config, name), folder)


def read_trained(kind: type[Trained], name: str | Path, download: Mapping[str, Any]) -> tuple[Checkpoint, Trained]:
    """The checkpoint of whatever is trained, and its settings."""
    checkpoint, _ = _read(name, download)
    return checkpoint, settings_from(kind, checkpoint.config, name)


def _read(name: str | Path, download: Mapping[str, Any]) -> tuple[Checkpoint, Path]:
    try:
        folder = _find(name, download)
        return read_checkpoint(folder), folder
    except CheckpointError:  # a run in progress may just be replacing it
        time.sleep(REPLACING)
        folder = _find(name, download)
        return read_checkpoint(folder), folder


def read_settings(name: str | Path, download: Mapping[str, Any]) -> Experiment:
    """The experiment alone, without the weights."""
    try:
        return experiment_from(read_json(_find(name, download) / "config.json"), name)
    except CheckpointError:
        return read(name, download).experiment  # which waits for a run in progress, and says what is wrong


def with_weights(
    make: Callable[[], Model], checkpoint: Checkpoint, name: str | Path, device: str | torch.device | None
) -> tuple[Model, str]:
    """A model with a checkpoint's weights, on a device and in ``eval()``; and its fingerprint.

    Arguments:
        make: builds the model, untrained.
        name: of the checkpoint, for messages.
    """
    model = built(make, checkpoint.weights, name)
    model.load_state_dict(dict(checkpoint.weights))
    mark = fingerprint(model.state_dict())
    return model.to(_choose_device(device), memory_format=torch.channels_last).eval(), mark  # type: ignore[call-overload]


HUB = "hf:"
"""How the name of a model begins that is on the Hugging Face hub for sure."""

_ON_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
"""OWNER/NAME."""


def _find(name: str | Path, download: Mapping[str, Any]) -> Path:
    path = Path(name).expanduser()
    if (path / "model.safetensors").exists():
        return path
    if path.exists():
        return RunFolder(path).usable()
    check_there(name)
    return _download(on_hub(name) or "", download)


def check_there(name: str | Path) -> None:
    """Raise if there is neither such a folder, nor could it be on the hub; nothing is asked of the network."""
    if not Path(name).expanduser().exists() and on_hub(name) is None:
        missing = no_such_folder(name)
        if _ON_HUB.fullmatch(str(name)) and not str(name).startswith("runs/"):
            raise CheckpointError(f"{missing} (or from the Hugging Face hub: {HUB}{name})")
        raise missing


def on_hub(name: str | Path) -> str | None:
    """OWNER/NAME of a model of the Hugging Face hub; None for what can only be meant as a folder.

    A name that begins with ``hf:`` is one for sure. Without that a path is never one, nor is a text that may be a
    mistyped path: where there is a folder OWNER, or OWNER is "runs".
    """
    text = name if isinstance(name, str) else name.as_posix()
    marked, repository = text.startswith(HUB), text.removeprefix(HUB)
    if not _ON_HUB.fullmatch(repository):
        return None
    owner = repository.partition("/")[0]
    is_name = isinstance(name, str) and owner != "runs" and not Path(owner).exists()
    return repository if marked or is_name else None


def _download(name: str, options: Mapping[str, Any]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, **options))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as failure:
        raise CheckpointError(f"{name} is no folder here, and can't be had from the hub: {failure}") from failure


def _choose_device(device: str | torch.device | None) -> torch.device:
    if device is not None:
        return torch.device(device)
    return torch.accelerator.current_accelerator() or torch.device("cpu")

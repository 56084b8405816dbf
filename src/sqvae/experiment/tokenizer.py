"""A trained model, ready for use: pictures to codes and back."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sqvae import __version__
from sqvae.data import Preprocessing
from sqvae.distributions.checks import check_tensor
from sqvae.experiment.assembly import build_model, check_divisible, stride_of
from sqvae.experiment.configuration import Experiment
from sqvae.experiment.evaluation import codebook_size_of
from sqvae.experiment.media import Medium, medium_of
from sqvae.experiment.settings import from_json, to_json
from sqvae.models import LatentModel
from sqvae.networks import without_batch_norm
from sqvae.training import Checkpoint, CheckpointError, RunFolder, fingerprint, read_checkpoint, write_checkpoint

FORMAT = 1


@dataclass(frozen=True)
class Tokenizer:
    """A model with all that is needed to use it. :func:`load` makes one.

    It unites the model with the configuration it was trained by, so that pictures are brought to the shape that it
    knows, and codes are not taken for another model's.
    """

    model: LatentModel
    experiment: Experiment
    fingerprint: str
    """What codes of this model are marked with: equal only for equal weights."""
    _fast: LatentModel = field(init=False, repr=False)
    """The same model with its normalisations worked into its convolutions: what pictures and codes go through."""

    def __post_init__(self) -> None:
        encoder, decoder = (without_batch_norm(part) for part in (self.model.encoder, self.model.decoder))
        fast = LatentModel(encoder, self.model.quantizer, decoder, self.model.likelihood)
        object.__setattr__(self, "_fast", fast.eval())

    @property
    def preprocessing(self) -> Preprocessing:
        """How pictures are brought to the model's shape."""
        return self.experiment.data.preprocessing

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W) of its pictures."""
        return self.preprocessing.shape

    @property
    def codebook_size(self) -> int:
        """The number of codes."""
        size = codebook_size_of(self.model)
        if not size:
            raise ValueError(
                f"a model with the quantizer {self.experiment.quantizer.name} has a continuous latent, and no codes"
            )
        return size

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def medium(self) -> Medium:
        """What it turns into codes: pictures, label maps, or grey levels."""
        return medium_of(self.experiment)

    def encode(self, pictures: Tensor) -> Tensor:  # (batch, C, H, W), uint8 or in [0, 1] -> (batch, h, w)
        """The likeliest codes of pictures; or of label maps, integers (batch, H, W)."""
        self._check_shape(pictures)
        _ = self.codebook_size
        with torch.inference_mode():
            return self._fast.encode(self.medium.model_input(pictures, self.device))

    def decode(self, codes: Tensor) -> Tensor:  # (batch, h, w) -> (batch, C, H, W), in [0, 1]
        """The pictures that codes stand for; or label maps, integers (batch, H, W)."""
        with torch.inference_mode():
            return self.medium.output(self._fast.decode(codes.to(self.device)))

    def reconstruct(self, pictures: Tensor) -> Tensor:  # (batch, C, H, W) -> (batch, C, H, W), in [0, 1]
        """Pictures, or label maps, after a round trip through their codes."""
        self._check_shape(pictures)
        with torch.inference_mode():
            return self.medium.output(self._fast.reconstruct(self.medium.model_input(pictures, self.device)))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write configuration and weights to a folder, as hubs want them. Where the data lay is nobody's business."""
        data = replace(self.experiment.data, source=Path(self.experiment.data.source).name)
        config = describe(replace(self.experiment, data=data))
        write_checkpoint(Path(folder), Checkpoint(config, self.model.state_dict()))

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, device: str | torch.device | None = None, **download: Any
    ) -> "Tokenizer":
        """A tokenizer from a run, a checkpoint's folder, or a model of the Hugging Face hub.

        Arguments:
            name: a path, or OWNER/NAME on the hub.
            device: where to put it; an accelerator where there is one, by default.
            download: passed on to ``huggingface_hub.snapshot_download``: revision, token, cache_dir...
        """
        return load(name, device=device, **download)

    def push_to_hub(self, repository: str, *, private: bool = False, token: str | None = None, **commit: Any) -> str:
        """Upload configuration and weights to the Hugging Face hub, and return the address.

        Arguments:
            repository: OWNER/NAME; it is created where there is none.
            commit: passed on to ``HfApi.upload_folder``: commit_message, revision...
        """
        import tempfile

        from huggingface_hub import HfApi

        hub = HfApi(token=token)
        repository = hub.create_repo(repository, private=private, exist_ok=True).repo_id
        with tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(Path(folder) / "model")
            return str(hub.upload_folder(repo_id=repository, folder_path=Path(folder) / "model", **commit))

    def _check_shape(self, pictures: Tensor) -> None:
        what = f"{self.medium.noun}s"
        check_tensor(pictures, what)
        flat = pictures.ndim == 3 and self.experiment.data.kind == "labels"
        if not flat and (pictures.ndim != 4 or pictures.shape[1] != self.shape[0]):
            wanted = "(batch, height, width)" if what == "label maps" else f"(batch, {self.shape[0]}, height, width)"
            raise ValueError(f"{what} must be {wanted} for this model, got shape {tuple(pictures.shape)}")
        height, width = pictures.shape[-2:]
        check_divisible(height, width, stride_of(self.experiment, self.shape))


def describe(experiment: Experiment) -> dict[str, Any]:
    """What `config.json` holds."""
    return {"format": FORMAT, "sqvae": __version__, "experiment": to_json(experiment)}


def experiment_from(config: Mapping[str, Any], where: str | Path) -> Experiment:
    """The experiment that a `config.json` describes."""
    if config.get("format") != FORMAT or "experiment" not in config:
        raise CheckpointError(
            f"{where} has the format {config.get('format')!r}, and this version of sqvae ({__version__}) reads "
            f"{FORMAT}; it was written by sqvae {config.get('sqvae', 'of an unknown version')}"
        )
    return from_json(Experiment, config["experiment"])


def load(name: str | Path, *, device: str | torch.device | None = None, **download: Any) -> Tokenizer:
    """A tokenizer from a run (its best checkpoint), a checkpoint's folder, or a model of the Hugging Face hub.

    >>> tokenizer = load("runs/faces")                                       # doctest: +SKIP
    >>> codes = tokenizer.encode(pictures)                                   # doctest: +SKIP
    """
    try:
        checkpoint = read_checkpoint(_find(name, download))
    except CheckpointError:  # a run in progress may just be replacing it
        time.sleep(0.2)
        checkpoint = read_checkpoint(_find(name, download))
    experiment = experiment_from(checkpoint.config, name)
    model = build_model(experiment, experiment.data.preprocessing.shape)
    try:
        model.load_state_dict(dict(checkpoint.weights))
    except RuntimeError as failure:
        raise CheckpointError(f"the weights of {name} don't fit its configuration: {failure}") from failure
    mark = fingerprint(model.state_dict())
    model = model.to(_choose_device(device), memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    return Tokenizer(model, experiment, mark)


def _find(name: str | Path, download: Mapping[str, Any]) -> Path:
    path = Path(name)
    if (path / "model.safetensors").exists():
        return path
    if path.exists():
        return RunFolder(path).usable()
    parts = str(name).split("/")
    if len(parts) == 2 and all(parts) and not str(name).startswith((".", "~")):
        return _download(str(name), download)
    raise CheckpointError(
        f"there is no run {name}: give the folder that `sqvae train` has written, or OWNER/NAME on the hub"
    )


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

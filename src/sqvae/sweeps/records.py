"""What a finished run leaves: one small file of numbers, and one small picture."""

import hashlib
import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from sqvae.config import Experiment, PriorSettings, from_json, prior_plan, to_json
from sqvae.files import written
from sqvae.metrics import INCEPTION
from sqvae.runs import Evaluation
from sqvae.training import Plan, read_json, read_records, write_json

FORMAT = 1

CURVE_POINTS = 120
"""So many points of each curve are kept."""

SHOWN = 16
"""So many pictures are kept, with their reconstructions."""

_WITHOUT_EFFECT = {
    ("recipe",),
    ("training", "threads"),
    ("training", "log_every"),
    ("training", "checkpoint_minutes"),
    ("training", "compile"),
}
"""Settings that a result does not depend on, but for rounding."""


@dataclass(frozen=True)
class Sequel:
    """What is done with a model once it is trained: a prior over its codes, and what both make, measured."""

    prior: PriorSettings = field(default_factory=PriorSettings)
    training: Plan = field(default_factory=prior_plan)
    levels: tuple[int, ...] = ()
    """How many halvings more each coarser level has, from fine to coarse. None: there is one level alone."""
    features: str = INCEPTION
    """By which sets of pictures are compared: see `sqvae.metrics.FEATURES`."""
    pictures: int | None = None
    """How many are compared. None: as many as there are to test on."""

    @property
    def key(self) -> str:
        """A word for all of it. As of experiments, settings that have their default don't count."""
        return _word(_differences(to_json(self), to_json(Sequel())))

    @property
    def prior_key(self) -> str:
        """A word for the priors alone, which may be measured in several ways."""
        return replace(self, features=INCEPTION, pictures=None).key


STAGE = {"stage": "generation"}
"""The tag of a sequel."""


@dataclass(frozen=True)
class Planned:
    """A run that a table or a figure needs."""

    experiment: Experiment
    tags: Mapping[str, str]
    """What sets it apart from the others, by kind: {"data": "mnist", "method": "sq-vae-1", "k": "128", ...}."""
    sequel: Sequel | None = None
    """If so, what is recorded is the sequel, of the same model as without."""

    @property
    def model(self) -> "Planned":
        """The run of the model alone."""
        return Planned(self.experiment, {kind: tag for kind, tag in self.tags.items() if kind not in STAGE})

    @property
    def label(self) -> str:
        """The tags, as they stand in names of files."""
        itself = ("data", "method", "network", "scale")
        return "-".join(value if kind in itself else f"{kind}{value}" for kind, value in self.tags.items())

    @property
    def name(self) -> str:
        """Of its record: the tags, and a word that changes with the experiment."""
        key = key_of(self.experiment)
        return f"{self.label}-{key}" if self.sequel is None else f"{self.label}-{key}{self.sequel.key}"

    @property
    def title(self) -> str:
        """For people."""
        parts = (value if kind in ("data", "method") else f"{kind}={value}" for kind, value in self.tags.items())
        return " ".join(parts)


def key_of(experiment: Experiment) -> str:
    """A word for all that makes a result what it is.

    Settings that have their default don't count, so that a setting that is added later leaves the words as they are.
    """
    return _word(_differences(to_json(experiment), _defaults()))


def _word(settings: Any) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


@cache
def _defaults() -> dict[str, Any]:
    return to_json(Experiment())


def _differences(settings: Mapping[str, Any], defaults: Mapping[str, Any], path: tuple[str, ...] = ()) -> Any:
    different = {}
    for name, value in settings.items():
        where = (*path, name)
        if isinstance(value, Mapping):
            inner = _differences(value, defaults[name], where)
            if inner:
                different[name] = inner
        elif value != defaults[name] and where not in _WITHOUT_EFFECT:
            different[name] = value
    return different


@dataclass(frozen=True)
class Record:
    """A finished run in numbers."""

    name: str
    tags: dict[str, str]
    experiment: dict[str, Any]
    """All settings, with what was decided from the data."""
    pictures: dict[str, int]
    """How many there were to train on, to validate on, and to test on."""
    data_key: str
    """Equal only for equal pictures."""
    measures: dict[str, float]
    """On the test set, of the best checkpoint by validation, with its likeliest codes."""
    counts: list[int]
    """How often each code was taken there."""
    best_epoch: int
    steps: int
    seconds: float
    """Of training and validation."""
    training: dict[str, list[float]]
    """Curves over training steps, thinned out: "step", "mse", "variance", ..."""
    validation: dict[str, list[float]]
    """Curves over epochs: "epoch", "step", "mse", "perplexity", ..."""
    machine: dict[str, str]
    fingerprint: str
    """Of the weights."""
    shown: list[int] | None = None
    """(H, W) of each example in the picture; None: the pictures' own size."""
    sequel: dict[str, Any] | None = None
    """What was done with the model, if that is what was measured. Then curves and seconds are those of its prior, and
    below the originals are samples."""
    notes: list[str] = field(default_factory=list)
    """What could not be measured and why, in sentences."""
    format: int = FORMAT

    @property
    def codebook_size(self) -> int:
        """K; 0 for a continuous latent."""
        return len(self.counts)


def make_record(
    planned: Planned,
    experiment: Experiment,
    pictures: Mapping[str, int],
    data_key: str,
    evaluation: Evaluation,
    log: Path,
    fingerprint: str,
) -> Record:
    """A record from a run's evaluation and its log.

    Arguments:
        experiment: with nothing left open.
        pictures: how many there are of each set.
    """
    records = read_records(log) if log.exists() else []
    steps = [record for record in records if record["kind"] == "step"]
    validations = [record for record in records if record["kind"] == "validation"]
    best = next((record for record in reversed(validations) if record["best"]), {"epoch": 0})
    return Record(
        name=planned.name,
        tags=dict(planned.tags),
        experiment=to_json(experiment),
        pictures=dict(pictures),
        data_key=data_key,
        measures={name: _rounded(value) for name, value in evaluation.measures.items()},
        counts=list(evaluation.counts),
        best_epoch=best["epoch"],
        steps=max((record["step"] for record in records), default=0),
        seconds=max((record["seconds"] for record in steps), default=0.0),
        training=_columns(_thinned(steps)),
        validation=_columns(validations),
        machine=machine(),
        fingerprint=fingerprint,
        shown=list(evaluation.originals.shape[-2:]),
        sequel=None if planned.sequel is None else to_json(planned.sequel),
        notes=list(evaluation.notes),
    )


def machine() -> dict[str, str]:
    """Where and with what it ran."""
    return {
        "processor": _processor(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else "none",
        "threads": str(torch.get_num_threads()),
        "torch": torch.__version__,
        "sqvae": _version(),
        "python": platform.python_version(),
    }


def _version() -> str:
    try:
        return version("sqvae")
    except PackageNotFoundError:  # not installed, but on the path
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _thinned(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first, the last, and some between them, evenly."""
    if len(records) <= CURVE_POINTS:
        return list(records)
    return [records[round(index * (len(records) - 1) / (CURVE_POINTS - 1))] for index in range(CURVE_POINTS)]


def _columns(records: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    names = [
        name
        for name in (records[0] if records else {})
        if all(isinstance(record.get(name), int | float) for record in records)
    ]
    return {name: [_rounded(record[name]) for record in records] for name in names}


def _rounded(value: float) -> float:
    """Six digits are more than a run means, and make small files."""
    return value if isinstance(value, int) or not math.isfinite(value) else float(f"{value:.6g}")


def save_record(folder: Path, record: Record, originals: Tensor, reconstructions: Tensor) -> None:
    """Write a record and its picture. The record comes last: where it is, all is there.

    Arguments:
        originals, reconstructions: (n, C, H, W), in [0, 1].
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = [_row(pictures[:SHOWN]) for pictures in (originals, reconstructions)]
    grid = torch.cat(rows, 1).permute(1, 2, 0).squeeze(-1)
    with written(picture_path(folder, record.name)) as aside:
        Image.fromarray(grid.contiguous().numpy()).save(aside)
    write_json(record_path(folder, record.name), asdict(record))


def _row(pictures: Tensor) -> Tensor:  # (n, C, H, W) in [0, 1] -> uint8 (C, H, n W)
    return (pictures.clamp(0, 1) * 255).round().byte().permute(1, 2, 0, 3).flatten(2)


def load_record(folder: Path, planned: Planned) -> Record | None:
    """The record of a planned run; None where it isn't finished, its file is not whole, or it is of another run."""
    record = _read(record_path(folder, planned.name))
    if record is None or not fits(planned, from_json(Experiment, record.experiment)):
        return None
    before = None if record.sequel is None else from_json(Sequel, record.sequel).key
    return record if before == (None if planned.sequel is None else planned.sequel.key) else None


def labels_of_records(folder: Path) -> set[str]:
    """The labels of the runs that a folder may have records of."""
    return {path.stem.rpartition("-")[0] for path in folder.glob("*.json")}


def load_records(folder: Path) -> tuple[list[Record], list[Path]]:
    """All records of a folder, and the files that are not whole or of another version."""
    found = {path: _read(path) for path in sorted(folder.glob("*.json"))}
    return [record for record in found.values() if record is not None], [path for path in found if found[path] is None]


def _read(path: Path) -> Record | None:
    if not path.exists():
        return None
    try:
        content = read_json(path)
        record = Record(**content)
        from_json(Experiment, record.experiment)
    except Exception:  # a damaged record is one to make again
        return None
    return record if record.format == FORMAT else None


def fits(planned: Planned, carried_out: Experiment) -> bool:
    """Whether an experiment with nothing left open is the planned one."""
    return key_of(_reopened(carried_out, planned.experiment)) == key_of(planned.experiment)


def _reopened(carried_out: Experiment, planned: Experiment) -> Experiment:
    """An experiment with what the plan leaves open, and was decided from the data, open again."""
    return replace(
        carried_out,
        data=replace(planned.data, source=carried_out.data.source),
        likelihood=replace(carried_out.likelihood, initial_variance=planned.likelihood.initial_variance),
        training=replace(
            carried_out.training,
            passes_per_epoch=planned.training.passes_per_epoch,
            epochs=carried_out.training.epochs if planned.training.steps is None else planned.training.epochs,
        ),
        speech=replace(carried_out.speech, speakers=planned.speech.speakers, abx=planned.speech.abx),
    )


def load_pictures(folder: Path, record: Record) -> tuple[Tensor, Tensor] | None:
    """A record's originals and reconstructions, uint8 (n, H, W, C) each; None where its picture is missing."""
    try:
        with Image.open(picture_path(folder, record.name)) as image:
            channels = len(image.getbands())
            values = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
            grid = values.view(image.height, image.width, channels)
    except OSError:  # missing, or damaged
        return None
    height, width = _shape(record)
    rows = grid.view(2, height, -1, width, channels).permute(0, 2, 1, 3, 4)
    return rows[0], rows[1]


def _shape(record: Record) -> tuple[int, int]:
    if record.shown is not None:
        return record.shown[0], record.shown[1]
    size = record.experiment["data"]["size"]
    height, width = (size, size) if isinstance(size, int) else size
    return height, width


def record_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def picture_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.png"

"""The record of a finished run: one small file of numbers, and one small image."""

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
"""The largest number of points of a curve in a record."""

SHOWN = 16
"""The number of images in a record's image, with their reconstructions."""

_WITHOUT_EFFECT = {
    ("recipe",),
    ("training", "threads"),
    ("training", "log_every"),
    ("training", "checkpoint_minutes"),
    ("training", "compile"),
}
"""Settings that do not change a result, except by rounding."""


@dataclass(frozen=True)
class Sequel:
    """The second stage of a run: a prior over the model's codes, and the measures of their samples."""

    prior: PriorSettings = field(default_factory=PriorSettings)
    training: Plan = field(default_factory=prior_plan)
    levels: tuple[int, ...] = ()
    """The number of additional downsamplings of each coarser level, from fine to coarse. An empty tuple means a
    single level."""
    features: str = INCEPTION
    """The features by which sets of images are compared: a name in `sqvae.metrics.FEATURES`."""
    pictures: int | None = None
    """The number of images that are compared. None takes the whole test set."""

    @property
    def key(self) -> str:
        """A hash of the settings. As for experiments, settings at their defaults do not count."""
        return _word(_differences(to_json(self), to_json(Sequel())))

    @property
    def prior_key(self) -> str:
        """A hash of the settings of the prior only, so that one prior can be measured in several ways."""
        return replace(self, features=INCEPTION, pictures=None).key


STAGE = {"stage": "generation"}
"""The tag of a second stage."""


@dataclass(frozen=True)
class Planned:
    """A run that a table or a figure needs."""

    experiment: Experiment
    tags: Mapping[str, str]
    """The tags that distinguish it from other runs, by kind: {"data": "mnist", "method": "sq-vae-1", "k": "128",
    ...}."""
    sequel: Sequel | None = None
    """The second stage, if the record is of that stage. The model is the same as without it."""

    @property
    def model(self) -> "Planned":
        """The run of the model, without a second stage."""
        return Planned(self.experiment, {kind: tag for kind, tag in self.tags.items() if kind not in STAGE})

    @property
    def label(self) -> str:
        """The tags in the form that file names have."""
        itself = ("data", "method", "network", "scale")
        return "-".join(value if kind in itself else f"{kind}{value}" for kind, value in self.tags.items())

    @property
    def name(self) -> str:
        """The name of the record: the tags, and a hash of the experiment."""
        key = key_of(self.experiment)
        return f"{self.label}-{key}" if self.sequel is None else f"{self.label}-{key}{self.sequel.key}"

    @property
    def title(self) -> str:
        """The tags in a readable form."""
        parts = (value if kind in ("data", "method") else f"{kind}={value}" for kind, value in self.tags.items())
        return " ".join(parts)


def key_of(experiment: Experiment) -> str:
    """A hash of all settings that determine a result.

    Settings at their defaults do not count, so that a setting that is added later does not change the hash.
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
    """The results of a finished run."""

    name: str
    tags: dict[str, str]
    experiment: dict[str, Any]
    """All settings, including those that were decided from the data."""
    pictures: dict[str, int]
    """The number of images in the training, validation and test set."""
    data_key: str
    """A key of the data, which is equal only for equal data."""
    measures: dict[str, float]
    """The measures on the test set, of the best checkpoint by validation, with the likeliest codes."""
    counts: list[int]
    """The number of times that each code was used on the test set."""
    best_epoch: int
    steps: int
    seconds: float
    """The duration of training and validation."""
    training: dict[str, list[float]]
    """Curves over training steps, thinned out: "step", "mse", "variance", ..."""
    validation: dict[str, list[float]]
    """Curves over epochs: "epoch", "step", "mse", "perplexity", ..."""
    machine: dict[str, str]
    fingerprint: str
    """The fingerprint of the weights."""
    shown: list[int] | None = None
    """(H, W) of each example in the record's image; None if it is the size of the data's images."""
    sequel: dict[str, Any] | None = None
    """The settings of the second stage, if the record is of that stage. Then the curves and the duration are those
    of the prior, and the image shows samples below the originals."""
    notes: list[str] = field(default_factory=list)
    """Sentences on what could not be measured, and why."""
    format: int = FORMAT

    @property
    def codebook_size(self) -> int:
        """The codebook size K; 0 for a continuous latent."""
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
    """A record from the evaluation of a run and its log.

    Arguments:
        planned: the planned run.
        experiment: the settings, with none left open.
        pictures: the number of examples in each set.
        data_key: the key of the data.
        evaluation: the measures on the test set.
        log: the file of the run's log.
        fingerprint: the fingerprint of the weights.
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
    """The hardware and the software that a run used."""
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
    except PackageNotFoundError:  # on the path, but not installed
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _thinned(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first and the last record, and some between them at equal intervals."""
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
    """A value rounded to six digits, which are precise enough and keep files small."""
    return value if isinstance(value, int) or not math.isfinite(value) else float(f"{value:.6g}")


def save_record(folder: Path, record: Record, originals: Tensor, reconstructions: Tensor) -> None:
    """Write a record and its image. The record is written last, so that the image exists wherever a record exists.

    Arguments:
        folder: the folder of records.
        record: the record.
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
    """The record of a planned run; None if the run is not finished, or its record is damaged or belongs to another
    run."""
    record = _read(record_path(folder, planned.name))
    if record is None or not fits(planned, from_json(Experiment, record.experiment)):
        return None
    before = None if record.sequel is None else from_json(Sequel, record.sequel).key
    return record if before == (None if planned.sequel is None else planned.sequel.key) else None


def labels_of_records(folder: Path) -> set[str]:
    """The labels of the runs whose records a folder may hold."""
    return {path.stem.rpartition("-")[0] for path in folder.glob("*.json")}


def load_records(folder: Path) -> tuple[list[Record], list[Path]]:
    """All records in a folder, and the files that are damaged or of another version."""
    found = {path: _read(path) for path in sorted(folder.glob("*.json"))}
    return [record for record in found.values() if record is not None], [path for path in found if found[path] is None]


def _read(path: Path) -> Record | None:
    if not path.exists():
        return None
    try:
        content = read_json(path)
        record = Record(**content)
        from_json(Experiment, record.experiment)
    except Exception:  # the run of a damaged record is repeated
        return None
    return record if record.format == FORMAT else None


def fits(planned: Planned, carried_out: Experiment) -> bool:
    """Whether an experiment with no settings left open is the planned one."""
    return key_of(_reopened(carried_out, planned.experiment)) == key_of(planned.experiment)


def _reopened(carried_out: Experiment, planned: Experiment) -> Experiment:
    """An experiment in which the settings that the plan leaves open, and that were decided from the data, are open
    again."""
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
    """The originals and reconstructions of a record, uint8 (n, H, W, C) each; None if its image is missing."""
    try:
        with Image.open(picture_path(folder, record.name)) as image:
            channels = len(image.getbands())
            values = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
            grid = values.view(image.height, image.width, channels)
    except OSError:  # missing or damaged
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

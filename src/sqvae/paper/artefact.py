"""The parts of every table and figure of the paper: the runs that it needs, and a report on their results."""

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from sqvae.config import ConfigurationError, DataSettings, Experiment, nearest
from sqvae.data import DATASETS
from sqvae.metrics.measures import MEASURES
from sqvae.modality import modality_of
from sqvae.paper.methods import METHODS, vector_dimension
from sqvae.paper.scales import Scale
from sqvae.recipes.categories import camvid
from sqvae.reports import Claim, Picture, Report, Table
from sqvae.sweeps import STAGE, Planned, Record, Sequel

MSE = MEASURES["mse"]

UNDECIDED = 0.65
"""A quantization has not annealed if its final entropy is above this share of the entropy of a uniform choice."""

SMOKE_SIZE = 32
"""The largest size of images in smoke runs."""

STAND_INS: Mapping[str, Callable[[], Experiment]] = {"camvid": camvid}
"""Recipes of data sets that can replace the paper's. Their own data settings apply."""

ITSELF = ("data", "method")
"""The kinds of tags that are named by their value alone; other kinds are named as well, as in k=128."""


@dataclass(frozen=True)
class Results:
    """The finished runs of a table or a figure."""

    scale: Scale
    source: str | None
    """The data, if it is not that of the paper."""
    records: Sequence[Record]
    missing: int
    """The number of unfinished runs, of the rows and seeds that have finished ones."""
    folder: Path
    """The folder of the records and their images."""
    sequels: Sequence[Record] = ()
    """The records of the second stages of these runs."""

    @property
    def second_stage(self) -> "Results":
        """The results of the second stages only."""
        return replace(self, records=self.sequels, sequels=())

    @property
    def data(self) -> str:
        """The names of the data sets."""
        if self.scale.name == "smoke" and self.source is None:
            return "synthetic data"
        return ", ".join(dict.fromkeys(record.tags["data"] for record in self.records))

    def where(self, **tags: str) -> list[Record]:
        """The records with these tags."""
        return [record for record in self.records if all(record.tags.get(kind) == tag for kind, tag in tags.items())]

    def values(self, measure: str, **tags: str) -> list[float]:
        """The values of a measure on the test set, for all runs with these tags: one for each seed."""
        return [record.measures[measure] for record in self.where(**tags) if measure in record.measures]


@dataclass(frozen=True)
class Content:
    """The content of the report on a table or a figure."""

    tables: Sequence[Table] = ()
    drawings: Mapping[str, tuple[Figure, str]] | None = None
    """Figures and their captions, by the suffix of the report's name."""
    claims: Sequence[Claim] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Artefact:
    """A table or a figure of the paper."""

    heading: str
    title: str
    """A description in one line."""
    data: tuple[str, ...]
    """The names of its data sets."""
    plan: Callable[[Scale, str], list[tuple[Experiment, Mapping[str, str]]]]
    """A function that returns the experiments for a data set, without seeds, and the tags of each."""
    content: Callable[[Results], Content]
    extra: tuple[str, ...] = ()
    """Methods that are run only if they are named."""
    short_epochs: int | None = None
    """The number of epochs of a short run, if it is not the usual one."""
    sequel: Callable[[Scale], Sequel] | None = None
    """A function that returns the second stage for each model, if there is one."""
    of_sequels: bool = False
    """Whether the report needs the results of second stages."""
    own_schedule: bool = False
    """Whether it sets the duration and the learning rate itself, at every scale except smoke."""
    fitted: Callable[[Experiment, int], Experiment] | None = None
    """A function that adapts an experiment to images of another size, given the side in pixels."""


def plan(artefact: Artefact, scale: Scale, seeds: Sequence[int], data: str | None = None) -> list[Planned]:
    """All runs that a table or a figure needs.

    Arguments:
        artefact: the table or figure.
        scale: the size of the experiments.
        seeds: the seeds.
        data: the name of a data set or a path, in place of the paper's data.
    """
    if data is not None and len(artefact.data) > 1:
        raise ConfigurationError(
            f"this artefact uses {', '.join(artefact.data)}: `data=` must name a folder that contains a folder for "
            "each of them"
        )
    planned = []
    for name in artefact.data:
        for experiment, tags in artefact.plan(scale, name):
            sized = _with_vector_latent(_with_data(experiment, name, scale, data))
            if artefact.fitted is not None:
                sized = artefact.fitted(sized, min(_size(sized)))
            if scale.name == "smoke" or not artefact.own_schedule:
                sized = scale.applied(sized)
            if scale.name == "short" and artefact.short_epochs is not None:
                sized = replace(sized, training=replace(sized.training, epochs=artefact.short_epochs))
            label = slug(Path(data).name) if data is not None else name
            for seed in seeds:
                all_tags = {"data": label, **tags, "scale": scale.name, "seed": str(seed)}
                planned.append(Planned(replace(sized, seed=seed), all_tags))
    if artefact.sequel is not None:
        sequel = artefact.sequel(scale)
        planned += [replace(one, tags={**one.tags, **STAGE}, sequel=sequel) for one in planned]
    return planned


def slug(name: str) -> str:
    """A name that is valid in file names, URLs and tags."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "data"


def _with_data(experiment: Experiment, name: str, scale: Scale, data: str | None) -> Experiment:
    kind = experiment.data.kind
    source = modality_of(kind).smoke_data if data is None and scale.name == "smoke" else data
    if source is None:
        return experiment
    settings = STAND_INS[source]().data if source in STAND_INS else DataSettings(source, kind)
    if kind == "speech":
        return replace(experiment, data=settings)
    shape = DATASETS[name].preprocessing
    if source not in DATASETS or data is None:  # other images are resized to the size of those that they replace
        large = isinstance(shape.size, int) and shape.size > SMOKE_SIZE
        size = SMOKE_SIZE if scale.name == "smoke" and large else shape.size
        settings = replace(settings, size=size, channels=shape.channels if kind == "pictures" else None)
    return replace(experiment, data=settings)


def _with_vector_latent(experiment: Experiment) -> Experiment:
    """The experiment with one latent vector for a VAE, of as many bits as the codes would have; other models are
    unchanged."""
    quantizer, network = experiment.quantizer, experiment.network
    if quantizer.is_discrete:
        return experiment
    height, width = _size(experiment)
    stride = 2 ** len(network.widths or ())
    dim = vector_dimension((height // stride) * (width // stride), quantizer.codebook_size)
    return replace(experiment, network=replace(network, map_dim=quantizer.dim), quantizer=replace(quantizer, dim=dim))


def _size(experiment: Experiment) -> tuple[int, int]:
    """The height and width of the images."""
    size = experiment.data.size or DATASETS[experiment.data.source].preprocessing.size
    return (size, size) if isinstance(size, int) else size or (0, 0)


def chosen(planned: Sequence[Planned], only: Sequence[str], extra: Sequence[str] = ()) -> list[Planned]:
    """The runs that have the given tags.

    Arguments:
        planned: all runs.
        only: tags such as ``sq-vae-1``, ``mnist`` or ``k=128``. A run is chosen if it has one of the tags of each kind.
        extra: methods that are chosen only if they are named.
    """
    known = words(planned)
    wanted: dict[str, set[str]] = {}
    for word in only:
        if word not in known:
            raise ConfigurationError(
                f"`only={word}`: there is no such row{nearest(word, known)}; choose from {', '.join(known)}"
            )
        wanted.setdefault(known[word], set()).add(word.rpartition("=")[2])
    if "method" not in wanted:
        wanted["method"] = set(METHODS) - set(extra)
    return [one for one in planned if all(one.tags.get(kind) in tags for kind, tags in wanted.items())]


def words(planned: Sequence[Planned]) -> dict[str, str]:
    """The words that `--only` takes, and the kind of tag of each."""
    return {tag if kind in ITSELF else f"{kind}={tag}": kind for one in planned for kind, tag in one.tags.items()}


def resized(experiment: Experiment, codebook_size: int, dim: int) -> Experiment:
    """An experiment with K codes of d_b dimensions, and networks whose widths double towards the codes."""
    network = experiment.network
    halvings = len(network.widths or ())
    widths = tuple(max(1, dim >> (halvings - 1 - depth)) for depth in range(halvings)) or None
    return replace(
        experiment,
        network=replace(network, widths=widths),
        quantizer=replace(experiment.quantizer, codebook_size=codebook_size, dim=dim),
    )


def report(name: str, artefact: Artefact, results: Results) -> Report:
    """The report on a table or a figure.

    Arguments:
        name: the name of the table or figure.
        artefact: the table or figure.
        results: its finished runs.
    """
    content = artefact.content(results)
    stem = f"{name}-{results.scale.name}" + ("" if results.source is None else f"-{slug(results.data)}")
    smoke = results.scale.name == "smoke"
    notes = (
        ["This is a smoke run: its numbers have no meaning."]
        if smoke
        else [*content.notes, *_differences(artefact, results)]
    )
    return Report(
        name=stem,
        title=f"{artefact.heading}: {results.data}, {results.scale.name}",
        setting=_setting(results),
        command=_command(name, results),
        tables=[*content.tables, _what_was_run(results)],
        pictures=[Picture(stem + end, *drawing) for end, drawing in (content.drawings or {}).items()],
        claims=() if smoke else content.claims,
        notes=notes,
    )


def _setting(results: Results) -> str:
    records = results.records
    hours = sum(record.seconds for record in (*records, *results.sequels)) / 3600
    machines = sorted(
        {
            record.machine["processor"] if record.machine["accelerator"] == "none" else record.machine["accelerator"]
            for record in records
        }
    )
    threads = sorted({record.machine["threads"] for record in records})
    missing = f"; {results.missing} more are not finished" if results.missing else ""
    priors = f", priors of {len(results.sequels)} of them" if results.sequels else ""
    return (
        f"{len(records)} runs{priors}{missing}. {hours:.1f} hours of training in total on {', '.join(machines)}, "
        f"{' or '.join(threads)} thread(s) per run."
    )


def _command(name: str, results: Results) -> str:
    seeds = 1 + max(int(record.tags["seed"]) for record in results.records)
    parts = ["sqvae", "reproduce", name, "--scale", results.scale.name]
    parts += ["--seeds", str(seeds)] if seeds > 1 else []
    parts += ["--data", results.source] if results.source is not None else []
    return shlex.join(parts)


def _what_was_run(results: Results) -> Table:
    """A table of the data, the duration, the learning rate and the seeds of all runs."""
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in results.records:
        plan_ = record.experiment["training"]
        passes = f" x {plan_['passes_per_epoch']} passes" if plan_["passes_per_epoch"] not in (None, 1) else ""
        key = (
            Path(record.experiment["data"]["source"]).name,
            f"{record.pictures['train']:,} / {record.pictures['validation']:,} / {record.pictures['test']:,}",
            f"{plan_['epochs']}{passes} ({record.steps:,} steps of {plan_['batch_size']})",
            f"{plan_['learning_rate']:g}, {plan_['schedule']}",
            _temperature(record),
        )
        groups.setdefault(key, []).append(record)
    rows = []
    for (data, pictures, epochs, rate, temperature), records in groups.items():
        models = ", ".join(dict.fromkeys(METHODS[record.tags["method"]].label for record in records))
        seeds = ", ".join(sorted({record.tags["seed"] for record in records}))
        rows.append([data, models, pictures, epochs, rate, temperature, seeds, str(len(records))])
    header = ["data", "models", "train / validation / test", "epochs", "rate", "temperature", "seed", "runs"]
    return Table("What was run", header, rows)


def _temperature(record: Record) -> str:
    plan_ = record.experiment["training"]
    if not METHODS[record.tags["method"]].stochastic:
        return "-"
    end = plan_["temperature_end"]
    if end is None:
        return f"exp(-{plan_['temperature_decay']:g} t)"
    hold = plan_.get("temperature_hold", 0)
    return f"1 to {end:g}" + (f", from {100 * hold:.0f}% on" if hold else "")


def _differences(artefact: Artefact, results: Results) -> list[str]:
    """Sentences on how the runs differ from the paper's, and why."""
    said = []
    if results.scale.name == "short" and not artefact.own_schedule:
        said.append(
            "Difference from the paper: the paper trains for 100 epochs (70 on CelebA) with the learning rate 1e-3 "
            "(3e-4 for VQ-VAE), halved when validation stalls. A short run has a few epochs, over which the learning "
            "rate decays to 0. Models that draw codes follow the schedule for any number of steps, which "
            "every-budget compares with VQ-VAE at several learning rates; other models start at 1e-3. All models "
            "train for the same number of steps."
        )
    said += _not_annealed(results)
    versions: dict[tuple[str, str], set[str]] = {}
    for record in results.records:
        data = record.experiment["data"]
        versions.setdefault((data["source"], str(data["size"])), set()).add(record.data_key)
    said += [
        f"The data of {Path(source).name} has changed between these runs: they cannot be compared."
        for (source, _), keys in versions.items()
        if len(keys) > 1
    ]
    return said


def _not_annealed(results: Results) -> list[str]:
    """Sentences on runs that ended before their quantization had annealed."""
    found: dict[tuple[str, str, int], list[str]] = {}
    for record in results.records:
        entropy = record.training.get("entropy_per_position", [])
        if not METHODS[record.tags["method"]].self_annealing or not entropy or record.codebook_size < 2:
            continue
        blind = math.log(record.codebook_size)
        if entropy[-1] > UNDECIDED * blind:
            errors = ""
            if record.training.get("mse") and "miou" not in record.measures:
                mixed, single = record.training["mse"][-1], record.measures["mse"]
                if single <= mixed:
                    continue  # the likeliest code is no worse, although the choice is random
                errors = f"; error x 1000 with mixtures {MSE.scale * mixed:.2f}, with one code {MSE.scale * single:.2f}"
            point = ", ".join(f"{kind} = {record.tags[kind]}" for kind in ("k", "d") if kind in record.tags)
            key = (record.tags["data"], METHODS[record.tags["method"]].label, record.steps)
            found.setdefault(key, []).append(f"{point}: {entropy[-1]:.2f} of {blind:.2f} nats{errors}")
    return [
        f"{data}, {label}: {steps:,} steps were too few for the quantization to anneal. At the end of training the "
        "codes were still drawn at random, and the decoder saw mixtures of codes rather than single codes "
        f"({'; '.join(points)})."
        for (data, label, steps), points in found.items()
    ]

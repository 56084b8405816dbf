"""What every table and figure of the paper has: runs to be carried out, and a report of what came of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqvae.data import DATASETS
from sqvae.experiment import ConfigurationError, DataSettings, Experiment, Planned, Record
from sqvae.recipes.methods import METHODS, vector_dimension
from sqvae.recipes.scales import Scale
from sqvae.reports import Report

SMOKE_DATA = "shapes"
"""What smoke runs take in place of the real pictures."""


@dataclass(frozen=True)
class Results:
    """Finished runs."""

    scale: Scale
    planned: int
    """How many there were to be."""
    records: Sequence[Record]
    folder: Path
    """Where they are, with their pictures."""

    @property
    def data(self) -> str:
        """The names of the sets that they are about."""
        return " and ".join(dict.fromkeys(record.tags["data"] for record in self.records)) or "nothing yet"

    def where(self, **tags: str) -> list[Record]:
        """Those with these tags."""
        return [record for record in self.records if all(record.tags.get(kind) == tag for kind, tag in tags.items())]

    def values(self, measure: str, **tags: str) -> list[float]:
        """A measure on the test set of all runs with these tags: one for each seed."""
        return [record.measures[measure] for record in self.where(**tags) if measure in record.measures]


@dataclass(frozen=True)
class Artefact:
    """A table or a figure of the paper."""

    title: str
    data: tuple[str, ...]
    """The names of the sets that it is about."""
    plan: Callable[[Scale, str], list[tuple[Experiment, Mapping[str, str]]]]
    """For one of the sets: the experiments without their seeds, and the tags of each."""
    report: Callable[[Results], Report]
    extra: tuple[str, ...] = ()
    """Methods that are carried out only where they are asked for by name."""
    own_schedule: bool = False
    """Whether it says itself how long and how fast to train, whatever the scale; a smoke run is small all the same."""


def plan(artefact: Artefact, scale: Scale, seeds: Sequence[int], data: str | None = None) -> list[Planned]:
    """All runs that a table or a figure needs.

    Arguments:
        data: the name of a set or a path, in place of the set that it is about.
    """
    if data is not None and len(artefact.data) > 1:
        raise ConfigurationError(
            f"it is about {', '.join(artefact.data)}: --data is to name a folder that has a folder for each of them"
        )
    planned = []
    for name in artefact.data:
        for experiment, tags in artefact.plan(scale, name):
            sized = _with_vector_latent(_with_data(experiment, name, scale, data))
            if scale.name == "smoke" or not artefact.own_schedule:
                sized = scale.applied(sized)
            label = Path(data).name if data is not None else name
            for seed in seeds:
                all_tags = {"data": label, **tags, "scale": scale.name, "seed": str(seed)}
                planned.append(Planned(replace(sized, seed=seed), all_tags))
    return planned


def _with_data(experiment: Experiment, name: str, scale: Scale, data: str | None) -> Experiment:
    if data is not None:
        settings = DataSettings(source=data)
        if data not in DATASETS:  # other pictures are brought to the size of those that they stand for
            shape = DATASETS[name].preprocessing
            settings = replace(settings, size=shape.size, channels=shape.channels)
        return replace(experiment, data=settings)
    if scale.name == "smoke":
        shape = DATASETS[name].preprocessing
        return replace(experiment, data=DataSettings(SMOKE_DATA, size=shape.size, channels=shape.channels))
    return experiment


def _with_vector_latent(experiment: Experiment) -> Experiment:
    """A VAE gets one latent vector, which takes as many bits as the codes would; other models stay as they are."""
    quantizer, network = experiment.quantizer, experiment.network
    if quantizer.name != "gaussian-latent":
        return experiment
    size = experiment.data.size or DATASETS[experiment.data.source].preprocessing.size
    height, width = (size, size) if isinstance(size, int) else size or (0, 0)
    stride = 2 ** len(network.widths or ())
    dim = vector_dimension((height // stride) * (width // stride), quantizer.codebook_size)
    return replace(experiment, network=replace(network, map_dim=quantizer.dim), quantizer=replace(quantizer, dim=dim))


def chosen(planned: Sequence[Planned], only: Sequence[str], extra: Sequence[str] = ()) -> list[Planned]:
    """The runs that have the tags which a person names.

    Arguments:
        only: such as ``sq-vae-1``, ``mnist`` or ``k=128``. Of two of a kind one must be there; of each kind one must.
        extra: methods that count only where they are named.
    """
    known: dict[str, str] = {}
    for one in planned:
        for kind, tag in one.tags.items():
            known[tag if kind in ("data", "method") else f"{kind}={tag}"] = kind
    wanted: dict[str, set[str]] = {}
    for word in only:
        if word not in known:
            raise ConfigurationError(f"--only {word}: there is no such row; there is {', '.join(known)}")
        wanted.setdefault(known[word], set()).add(word.rpartition("=")[2])
    if "method" not in wanted:
        wanted["method"] = set(METHODS) - set(extra)
    return [one for one in planned if all(one.tags.get(kind) in tags for kind, tags in wanted.items())]


def resized(experiment: Experiment, codebook_size: int, dim: int) -> Experiment:
    """An experiment with K codes of d_b dimensions, and networks that go with them."""
    network = experiment.network
    widths = (
        (*(max(1, dim >> (len(network.widths) - 1 - at)) for at in range(len(network.widths) - 1)), dim)
        if (network.widths is not None)
        else None
    )
    return replace(
        experiment,
        network=replace(network, widths=widths),
        quantizer=replace(experiment.quantizer, codebook_size=codebook_size, dim=dim),
    )


def setting_of(results: Results) -> str:
    """On what, for how long, with which seeds, on which machine: in sentences."""
    records = results.records
    if not records:
        return f"No run has finished yet, of {results.planned}."
    schedules = sorted({_schedule(record) for record in records})
    seeds = sorted({int(record.tags["seed"]) for record in records})
    hours = sum(record.seconds for record in records) / 3600
    machines = sorted({record.machine["processor"] for record in records})
    threads = sorted({record.machine["threads"] for record in records})
    missing = f" of {results.planned}" if results.planned > len(records) else ""
    return (
        f"Scale: {results.scale.name}. {len(records)}{missing} runs, {'; '.join(schedules)}; "
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}; {hours:.1f} hours of training in all on "
        f"{', '.join(machines)}, {', '.join(threads)} thread(s) a run."
    )


def _schedule(record: Record) -> str:
    data, epochs = Path(record.experiment["data"]["source"]).name, record.experiment["training"]["epochs"]
    train, test = record.pictures["train"], record.pictures["test"]
    return f"{data}: {epochs} epochs of {train:,} pictures ({record.steps:,} steps), tested on {test:,}"

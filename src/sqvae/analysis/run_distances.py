"""How far what a run makes is from real pictures: Frechet distances, kept in its folder."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqvae.analysis.evaluation import NOT_KEPT
from sqvae.analysis.frechet import BASELINES, SETS, Makers, frechet_distances, sets_of
from sqvae.config import PriorExperiment, check_name
from sqvae.data import Progress
from sqvae.data.cache import cache_folder
from sqvae.metrics import FEATURES, INCEPTION, feature_network
from sqvae.modalities.images.tokenizer import load_tokenizer
from sqvae.runs import Announce, data_of_run, is_run, load_generator, prepare_prior
from sqvae.training import CheckpointError, RunFolder, read_json, write_json

SPLIT = "test"
"""What pictures are compared with."""


@dataclass(frozen=True)
class RunDistances:
    """Distances of what a run makes from the test pictures."""

    data: str
    """The set's path, or its name."""
    pictures: int
    """How many were compared, and as many real ones."""
    seed: int
    """Of samples and interpolations."""
    fingerprint: str
    """Of the model,"""
    prior: str | None
    """and of its prior, where samples were drawn from one."""
    distances: dict[str, float]
    """By their names."""
    notes: list[str]
    """Sentences about what to beware of."""

    @property
    def record(self) -> dict[str, Any]:
        """The values that are kept in the run's folder."""
        return {
            "data": self.data,
            "split": SPLIT,
            "pictures": self.pictures,
            "seed": self.seed,
            "fingerprint": self.fingerprint,
            "prior": self.prior,
            "distances": self.distances,
            "notes": self.notes,
        }

    @property
    def setting(self) -> str:
        """What was compared with what, in words."""
        return f"{self.pictures:,} pictures and as many {SPLIT} pictures of {Path(self.data).name}, seed {self.seed}"


def measure_distances(
    run: str | Path,
    sets: Sequence[str] = (),
    *,
    features: str = INCEPTION,
    weights: str | Path | None = None,
    download: bool = False,
    pictures: int | None = None,
    data: str | None = None,
    prior: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    announce: Announce = print,
    warn: Announce = print,
) -> RunDistances:
    """Measure how far sets of pictures that a run makes are from the test pictures.

    In a run's folder the distances are kept, as distances-test.json.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        sets: names of :data:`SETS`; none: all that the model can make but the baselines.
        features: what pictures are compared by, one of :data:`sqvae.metrics.FEATURES`.
        weights: the file of the Inception network; None: the one that was fetched before.
        download: whether the Inception network may be fetched.
        pictures: how many to compare; None: the whole test set.
        data: a path, or the name of a set; None: what the run was trained on.
        prior: the folder of the prior; None: the run's own.
        seed: of samples and interpolations.
        progress: called with what is being done, how many are done and how many there are.
        announce: takes sentences about the data, and about sets that can't be made.
        warn: takes sentences about what is fetched, and about what can't be kept.
    """
    run = Path(run)
    check_name(features, FEATURES, "the features")
    for name in sets:
        check_name(name, SETS, "the set")
    cache = cache_folder(None)
    tokenizer = load_tokenizer(run)
    wanted = list(sets) or [name for name in sets_of(tokenizer) if name not in BASELINES]
    generator = None
    if "samples" in wanted and tokenizer.is_discrete:
        try:
            generator = load_generator(run, prior)
        except CheckpointError as failure:
            if sets or prior is not None:
                raise
            announce(f"without samples: {failure}")
            wanted = [name for name in wanted if name != "samples"]
    place, prepared = data_of_run(run, tokenizer, data, progress=progress, announce=announce)
    counts = None
    if "samples-histogram" in wanted:
        codes = PriorExperiment(tokenizer=str(run), data=data)
        counts = prepare_prior(codes, announce=lambda text: None, progress=progress).counts
    real = prepared.part(SPLIT)
    made = Makers(tokenizer, real if pictures is None else real.spread(pictures), generator, counts, seed)
    network = feature_network(
        features, cache=cache, weights=weights, device=tokenizer.device, download=download, announce=warn
    )
    found, notes = frechet_distances(made, network, wanted, key=prepared.key_of(SPLIT), cache=cache, progress=progress)
    mark = generator.fingerprint if generator else None
    result = RunDistances(place, len(made), seed, tokenizer.fingerprint, mark, found, notes)
    if is_run(RunFolder(run)):
        try:
            _keep(run, result.record, own=place == tokenizer.experiment.data.source)
        except OSError as failure:  # a run that may only be read can be measured all the same
            warn(NOT_KEPT.format(run, failure.strerror or failure))
    return result


def _keep(run: Path, record: dict[str, Any], *, own: bool) -> None:
    """Write the record into the run's folder, beside what was measured before of the same pictures and models."""
    path = run / (f"distances-{SPLIT}.json" if own else f"distances-{SPLIT}-{Path(record['data']).stem}.json")
    before: dict[str, Any] = {}
    with suppress(CheckpointError):
        before = read_json(path)
    shared = ("data", "pictures", "seed", "fingerprint")
    one_prior = len({one for one in (before.get("prior"), record["prior"]) if one}) < 2
    if one_prior and all(before.get(name) == record[name] for name in shared):
        distances = {**before["distances"], **record["distances"]}
        record = {**record, "prior": record["prior"] or before["prior"], "distances": distances}
    write_json(path, record)

"""What `sqvae fid` puts together."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from sqvae.analysis import BASELINES, SETS, Makers, frechet_distances, sets_of
from sqvae.cli import console
from sqvae.cli.evaluation import NOT_KEPT, data_of
from sqvae.config import PriorExperiment, check_name
from sqvae.data import Progress
from sqvae.data.cache import cache_folder
from sqvae.metrics import FEATURES, feature_network
from sqvae.modalities.images.tokenizer import load_tokenizer
from sqvae.runs import Prepared, is_run, load_generator, prepare_prior
from sqvae.training import CheckpointError, RunFolder, read_json, write_json

SPLIT = "test"
"""What pictures are compared with."""


@dataclass(frozen=True)
class Asked:
    """What is to be compared."""

    sets: list[str]
    """Names; none: those that a person usually wants to know."""
    features: str
    weights: Path | None
    download: bool
    pictures: int | None
    data: str | None
    prior: Path | None
    seed: int


def report_distances(run: Path, asked: Asked, *, as_json: bool) -> None:
    """Measure the distances of sets that a run makes from the test pictures, print them, and keep them."""
    check_name(asked.features, FEATURES, "the features")
    for name in asked.sets:
        check_name(name, SETS, "the set")
    cache = cache_folder(None)
    with console.progress_bar() as progress:
        made, wanted, prepared, place = _makers(run, asked, progress, (lambda text: None) if as_json else console.note)
        device = made.tokenizer.device
        network = feature_network(
            asked.features,
            cache=cache,
            weights=asked.weights,
            device=device,
            download=asked.download,
            announce=console.note,
        )
        found, notes = frechet_distances(
            made, network, wanted, key=prepared.key_of(SPLIT), cache=cache, progress=progress
        )
    record = {
        "data": place,
        "split": SPLIT,
        "pictures": len(made),
        "seed": asked.seed,
        "fingerprint": made.tokenizer.fingerprint,
        "prior": made.generator.fingerprint if made.generator else None,
        "distances": found,
        "notes": notes,
    }
    _keep(run, record, own=place == made.tokenizer.experiment.data.source)
    if as_json:
        print(json.dumps(record, indent=2))
        return
    for note in notes:
        console.warning(note)
    title = f"{len(made):,} pictures and as many {SPLIT} pictures of {Path(place).name}, seed {asked.seed}"
    table = Table("distance", "value", title=title, title_justify="left")
    for name, value in found.items():
        table.add_row(name, f"{value:.2f}")
    console.out.print(table)


def _keep(run: Path, record: dict[str, Any], *, own: bool) -> None:
    """Write the record into the run's folder, beside what was measured before of the same pictures and models."""
    if not is_run(RunFolder(run)):
        return
    path = run / (f"distances-{SPLIT}.json" if own else f"distances-{SPLIT}-{Path(record['data']).stem}.json")
    before: dict[str, Any] = {}
    with suppress(CheckpointError):
        before = read_json(path)
    shared = ("data", "pictures", "seed", "fingerprint")
    one_prior = len({one for one in (before.get("prior"), record["prior"]) if one}) < 2
    if one_prior and all(before.get(name) == record[name] for name in shared):
        distances = {**before["distances"], **record["distances"]}
        record = {**record, "prior": record["prior"] or before["prior"], "distances": distances}
    try:
        write_json(path, record)
    except OSError as failure:  # a run that may only be read can be measured all the same
        console.note(NOT_KEPT.format(run, failure.strerror or failure))


def _makers(
    run: Path, asked: Asked, progress: Progress, announce: Callable[[str], None]
) -> tuple[Makers, list[str], Prepared, str]:
    """What pictures are made from, which sets, the real ones, and where those are."""
    tokenizer = load_tokenizer(run)
    wanted = asked.sets or [name for name in sets_of(tokenizer) if name not in BASELINES]
    generator = None
    if "samples" in wanted and tokenizer.is_discrete:
        try:
            generator = load_generator(run, asked.prior)
        except CheckpointError as failure:
            if asked.sets or asked.prior is not None:
                raise
            announce(f"without samples: {failure}")
            wanted = [name for name in wanted if name != "samples"]
    place, prepared = data_of(run, tokenizer, asked.data, progress, announce)
    counts = None
    if "samples-histogram" in wanted:
        codes = PriorExperiment(tokenizer=str(run), data=asked.data)
        counts = prepare_prior(codes, announce=lambda text: None, progress=progress).counts
    pictures = prepared.part(SPLIT)
    if asked.pictures is not None:
        pictures = pictures.spread(asked.pictures)
    return Makers(tokenizer, pictures, generator, counts, asked.seed), wanted, prepared, place

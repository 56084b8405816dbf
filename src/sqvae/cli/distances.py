"""What `sqvae fid` puts together."""

import json
from contextlib import suppress
from pathlib import Path

from rich.table import Table

from sqvae.cli import console
from sqvae.cli.evaluation import data_of
from sqvae.data import Progress
from sqvae.data.cache import cache_folder
from sqvae.experiment import (
    OF_CONTINUOUS,
    PLACE,
    SETS,
    Makers,
    PriorExperiment,
    Tokenizer,
    check_name,
    frechet_distances,
    load_generator,
    load_tokenizer,
    prepare_prior,
)
from sqvae.metrics import FEATURES, feature_network
from sqvae.training import RunFolder, write_json

SPLIT = "test"
BASELINES = ("samples-histogram", "samples-uniform")
"""What is compared only where it is asked for."""


def report_distances(
    run: Path,
    sets: list[str],
    features: str,
    weights: Path | None,
    number: int | None,
    source: str | None,
    prior: Path | None,
    seed: int,
    *,
    as_json: bool,
) -> None:
    """Measure the distances of sets that a run makes from the test pictures, print them, and keep them."""
    check_name(features, FEATURES, "the features")
    for name in sets:
        check_name(name, SETS, "the set")
    has_prior = prior is not None or (run / PLACE).exists()
    with console.progress_bar() as progress:
        tokenizer = load_tokenizer(run)
        usual = [name for name in SETS if name not in BASELINES and (has_prior or name != "samples")]
        wanted = sets or (usual if tokenizer.is_discrete else list(OF_CONTINUOUS))
        made, key, place = _makers(run, tokenizer, wanted, number, source, prior, seed, progress)
        network = feature_network(
            features, cache=cache_folder(None), weights=weights, device=made.tokenizer.device, announce=console.note
        )
        found, notes = frechet_distances(
            made, network, wanted, key=f"{key}-{SPLIT}", cache=cache_folder(None), progress=progress
        )
    record = {
        "data": place,
        "split": SPLIT,
        "pictures": len(made),
        "seed": seed,
        "fingerprint": made.tokenizer.fingerprint,
        "prior": made.generator.fingerprint if made.generator else None,
        "distances": found,
    }
    if RunFolder(run).config.exists():
        with suppress(OSError):  # a run that may only be read can be measured all the same
            write_json(run / f"distances-{SPLIT}.json", record)
    if as_json:
        print(json.dumps(record, indent=2))
        return
    for note in notes:
        console.warning(note)
    title = f"distances of {len(made):,} pictures from as many {SPLIT} pictures of {Path(place).name}, seed {seed}"
    table = Table("what", "value", title=title, title_justify="left")
    for name, value in found.items():
        table.add_row(name, f"{value:.2f}")
    console.out.print(table)


def _makers(
    run: Path,
    tokenizer: Tokenizer,
    sets: list[str],
    number: int | None,
    source: str | None,
    prior: Path | None,
    seed: int,
    progress: Progress,
) -> tuple[Makers, str, str]:
    """What pictures are made from, the key of the real ones, and where they are."""
    generator = load_generator(run, prior) if "samples" in sets and tokenizer.is_discrete else None
    place, prepared = data_of(run, tokenizer, source, progress, console.note)
    counts = None
    if "samples-histogram" in sets:
        counts = prepare_prior(
            PriorExperiment(tokenizer=str(run), data=source), announce=lambda text: None, progress=progress
        ).counts
    pictures = prepared.part(SPLIT)
    if number is not None:
        pictures = pictures.first(number)
    return Makers(tokenizer, pictures, generator, counts, seed), prepared.key, place

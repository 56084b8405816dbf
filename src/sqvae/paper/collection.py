"""Collects the records of finished runs into the results of tables and figures."""

from collections.abc import Mapping
from pathlib import Path

from sqvae.modality import MODALITIES, modality_of
from sqvae.paper.artefact import Artefact, Results, chosen, plan
from sqvae.paper.scales import SCALES, Scale
from sqvae.sweeps import labels_of_records, load_record, load_records

MOST_SEEDS = 10
"""The number of seeds that are searched for."""


def collect(artefact: Artefact, scale: Scale, folder: Path, source: str | None = None) -> Results | None:
    """The finished runs of a table or a figure; None if there are none.

    Arguments:
        artefact: the table or figure.
        scale: the size of the experiments.
        folder: the folder of the records.
        source: the data, if it is not that of the paper.
    """
    planned = plan(artefact, scale, range(MOST_SEEDS), source)
    there = labels_of_records(folder)  # most records do not exist, and this is faster than looking for each
    found = {one.label: record for one in planned if one.label in there and (record := load_record(folder, one))}
    if not found:
        return None
    seeds = {record.tags["seed"] for record in found.values()}
    rows = chosen([one for one in planned if one.tags["seed"] in seeds], [], artefact.extra)
    missing = sum(one.label not in found for one in rows)
    models = [record for record in found.values() if record.sequel is None]
    sequels = [record for record in found.values() if record.sequel is not None]
    if not models or (artefact.of_sequels and not sequels):
        return None
    return Results(scale, source, models, missing, folder, sequels)


def collect_all(
    artefacts: Mapping[str, Artefact], folder: Path
) -> tuple[dict[tuple[str, str, str | None], Results], int]:
    """All results in a folder of records, by artefact, scale and source, and the number of records that belong to
    none."""
    records, damaged = load_records(folder)
    sources = dict.fromkeys(record.experiment["data"]["source"] for record in records)
    found: dict[tuple[str, str, str | None], Results] = {}
    for name, artefact in artefacts.items():
        for scale in SCALES.values():
            for source in (None, *sources) if len(artefact.data) == 1 else (None,):
                own = source in artefact.data and scale.name != "smoke"
                stand_in = source in {modality_of(kind).smoke_data for kind in MODALITIES} and scale.name == "smoke"
                results = None if own or stand_in else collect(artefact, scale, folder, source)
                if results is not None:
                    found[name, scale.name, source] = results
    used = {record.name for results in found.values() for record in (*results.records, *results.sequels)}
    return found, len(damaged) + sum(record.name not in used for record in records)

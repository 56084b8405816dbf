"""The page about a run, in one file of HTML."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sqvae import __version__
from sqvae.analysis import (
    code_colours,
    code_positions,
    inspect_run,
    measured_rows,
    neighbour_table,
    training_views,
)
from sqvae.codec import check_ending
from sqvae.codec.writing import PlainFile
from sqvae.data import Progress
from sqvae.files import check_free
from sqvae.metrics.meanings import WRONG_LABELS, meanings
from sqvae.modalities.page import pixels_of
from sqvae.modalities.views import recorded_use
from sqvae.modality import modality_of
from sqvae.pages.shown import CONTINUOUS, NOTHING_YET, SPLIT, Shown, Wanted, found
from sqvae.reports import Table, error_of
from sqvae.reports.codes import Tiles
from sqvae.reports.page import Chapter, difference_key, paragraph
from sqvae.reports.run_codebook import Codebook, codebook_chapter, no_codebook
from sqvae.reports.run_examples import Example, examples_chapter
from sqvae.reports.run_page import (
    Drawn,
    Fact,
    about_chapter,
    made_chapter,
    measures_chapter,
    run_page,
    setting_without_places,
    training_chapter,
)
from sqvae.runs import Announce, findings_of
from sqvae.training import CheckpointError, read_json, read_records

TILES, AREA = 512, 200_000
"""Codes that are drawn alone, at most, and pixels of all of them together."""

NEAREST = 4

SOUND = 1_000_000
"""Bytes of sound in the page, at most: each takes a third more there."""


class Measured(NamedTuple):
    """What `sqvae evaluate` has kept in a run's folder."""

    records: list[dict[str, Any]]
    """With their rows for people."""
    own: dict[str, Any] | None
    """That of this model on its own data, of the test set if it is there."""
    problems: list[str]
    """HTML about what can't be read."""


def write_run_page(
    run: str | Path,
    path: str | Path,
    *,
    data: str | None = None,
    prior: str | Path | None = None,
    examples: int = 8,
    overwrite: bool = False,
    progress: Progress | None = None,
    announce: Announce = print,
) -> list[str]:
    """Write a page about a run: examples, codebook, training, measures, samples. It is one file that needs no other.

    Arguments:
        run: the run's folder.
        path: of the page, which ends in .html.
        data: a path, or the name of a set; None: what the run was trained on.
        prior: the folder of the prior; None: the run's own.
        examples: how many held-out examples to show.
        overwrite: whether a file of that name may be replaced.
        progress: called with what is being done, how many are done and how many there are.
        announce: takes sentences about the data.

    Returns:
        What could not be shown on the page, and why, in sentences.
    """
    path = Path(path)
    check_ending(path, (".html", ".htm"), "page")
    check_free(path, overwrite)
    wanted = Wanted(data, None if prior is None else Path(prior), examples, progress or _nothing, announce)
    shown = found(Path(run), wanted)
    content = report_of(shown, wanted)
    with PlainFile(path) as file:
        # The name of a file need not be text.
        file.put(content.encode("utf-8", "replace"))
    return shown.missing


def _nothing(what: str, done: int, total: int) -> None:
    """Where nobody wants to know how far it is."""


def report_of(shown: Shown, wanted: Wanted) -> str:
    """The page about a run."""
    measured = _measured(shown)
    book = _codebook(shown, wanted.progress)
    chapters = [
        _about(shown, measured),
        _examples(shown, wanted, book, measured),
        _codes(shown, wanted, book),
        _training(shown),
        _measures(shown, measured),
        _made(shown),
    ]
    name = shown.run.resolve().name
    introduction = (
        f"A run of sqvae {shown.config.get('sqvae', 'of an unknown version')}, as `sqvae report` of version "
        f"{__version__} shows it. This page is one file, and asks nothing of any other."
    )
    return run_page(name, introduction, chapters)


def _about(shown: Shown, measured: Measured) -> Chapter:
    sections = {section.title: section.lines for section in inspect_run(shown.run, plots=False)}
    settings = setting_without_places(shown.config["experiment"], shown.places)
    what, how = ([shown.clean(line) for line in sections[name]] for name in ("What it is", "How it trained"))
    wrong = [shown.clean(finding) for finding in findings_of(shown.folder, shown.experiment) or ()]
    return about_chapter(list(_facts(shown, measured)), what, how, settings, warnings=wrong)


def _facts(shown: Shown, measured: Measured) -> Iterator[Fact]:
    """The numbers that tell most: of the last measures, or else of the best validation."""
    best = [record for record in read_records(shown.folder.log) if record["kind"] == "validation" and record["best"]]
    where, measures = "validation", best[-1] if best else {}
    if measured.own is not None:
        where, measures = measured.own["split"], measured.own["measures"]
    if not measures:
        return
    name, _, value = error_of(measures).partition(" = ")
    yield Fact(value, f"{name}, {where}")
    if "perplexity" in measures:
        size = shown.experiment.quantizer.codebook_size
        yield Fact(f"{measures['perplexity']:.1f}", f"perplexity of {size:,} codes, {where}")
        yield Fact(f"{int(measures['codes_used']):,}", f"codes used of {size:,}, {where}")
    if best:
        yield Fact(f"{best[-1]['epoch']} of {shown.experiment.training.epochs}", "epochs, the best checkpoint")


def _examples(shown: Shown, wanted: Wanted, book: Codebook | None, measured: Measured) -> Chapter:
    modality = modality_of(shown.experiment.kind)
    before: list[str] = []
    examples: list[Example] = []
    if shown.tokenizer is not None:
        legend = modality.legend(shown.tokenizer, measured.own["measures"] if measured.own is not None else {})
        before += [legend] if legend else []
    if shown.held_out is None:
        before.append(shown.absent("Held-out examples", shown.no_data))
    else:
        total = len(shown.held_out)
        number = min(wanted.examples, total)
        before.append(paragraph(f"{number} of {total:,} {shown.data}."))
        room = SOUND
        for index in range(number):
            examples.append(_example(shown, index * total // number, room))
            room -= sum(len(content) for _, content in examples[-1].sounds)
        before += _about_sound(examples)
    colours, tiles = (book.colours, book.tiles) if book is not None else (None, None)
    signs = modality.difference_key
    reading = f"In the difference, {WRONG_LABELS}." if signs is None else signs.sentence
    key = "" if signs is None else difference_key(signs.colours, signs.less, signs.more, signs.full)
    return examples_chapter(examples, colours, tiles, legend=reading, key=key, before=before)


def _about_sound(examples: Sequence[Example]) -> list[str]:
    """How much there is to listen to."""
    heard = [one for one in examples if one.sounds]
    if not heard:
        return []
    size = sum(len(content) for one in heard for _, content in one.sounds)
    some = "All of them" if len(heard) == len(examples) else f"The first {len(heard)}"
    return [
        paragraph(
            f"{some} can be listened to: {size / 1000:,.0f} kB of sound (FLAC) lie in this page, {SOUND / 1e6:g} MB at "
            "most. Sound is made of codes by the method of Griffin and Lim, which a neural vocoder surpasses."
        )
    ]


def _example(shown: Shown, index: int, room: int) -> Example:
    """One example.

    Arguments:
        room: for sound, in bytes.
    """
    name, seen = shown.view.see(shown.tokenizer, shown.held_out, index, shown.generator)
    original, reconstruction, difference = map(pixels_of, (seen.original, seen.reconstruction, seen.difference))
    facts, codes = [seen.error], None
    if shown.tokenizer.is_discrete:
        facts.append(f"{seen.bits:,.0f} bits by {seen.bits_by}")
        codes = seen.codes.numpy().astype(np.int64)
    sounds: tuple[tuple[str, bytes], ...] = ()
    if room > 0 and shown.tokenizer.is_discrete:
        try:
            sounds = shown.view.sounds(shown.tokenizer, shown.held_out, index, seen)
        except (OSError, ValueError) as failure:
            facts.append(f"no sound: {shown.clean(str(failure))}")
    if sum(len(content) for _, content in sounds) > room:
        sounds = ()
    return Example(
        name,
        original,
        reconstruction,
        difference,
        codes,
        tuple(facts),
        shown.view.span(shown.tokenizer, seen),
        sounds,
    )


def _codebook(shown: Shown, progress: Progress) -> Codebook | None:
    """What is shown of the codes; None where there are none."""
    tokenizer = shown.tokenizer
    if tokenizer is None or not tokenizer.is_discrete:
        return None
    counts, where = recorded_use(shown.folder)
    size = tokenizer.codebook_size
    order = torch.arange(size) if counts is None else counts.sort(descending=True, stable=True).indices
    one = shown.view.alone(tokenizer, order[:1])
    codes = order[: max(1, min(TILES, AREA // (one.shape[-1] * one.shape[-2])))]
    drawn = shown.view.alone(tokenizer, codes)
    seen = None
    if shown.held_out is not None:
        seen = shown.view.seen(tokenizer, shown.held_out, len(codes), progress)
    tables = [neighbour_table(tokenizer, k).cpu() for k in range(1, min(NEAREST, size - 1) + 1)]
    nearest = torch.stack(tables, 1) if tables else torch.zeros(size, 0, dtype=torch.int64)
    return Codebook(
        code_positions(tokenizer).numpy(),
        code_colours(tokenizer).numpy(),
        nearest.numpy(),
        _tiles("code", codes, drawn),
        None if seen is None else _tiles("seen", *seen),
        None if counts is None else counts.numpy(),
        where,
    )


def _tiles(name: str, codes: Tensor, drawn: Tensor) -> Tiles:  # (n,), (n, 3, P, Q)
    return Tiles(name, codes.numpy(), drawn.permute(0, 2, 3, 1).contiguous().numpy())


def _codes(shown: Shown, wanted: Wanted, book: Codebook | None) -> Chapter:
    if book is None:
        reason = NOTHING_YET if shown.tokenizer is None else CONTINUOUS
        shown.missing.append(f"the codebook: {reason}")
        return no_codebook(reason)
    heard = None
    if shown.held_out is not None:
        heard = shown.view.heard(shown.tokenizer, shown.held_out, shown.data, wanted.progress)
    return codebook_chapter(book, drawn=shown.view.drawn, heard=heard)


def _training(shown: Shown) -> Chapter:
    quantizer, records = shown.experiment.quantizer, read_records(shown.folder.log)
    curves = training_views(records, quantizer.codebook_size if quantizer.is_discrete else 0)
    warnings = [
        f"After epoch {record['epoch']}: {shown.clean(record['message'])}"
        for record in records
        if record["kind"] == "warning"
    ]
    return training_chapter([Drawn(*curve) for curve in curves], warnings)


def _measured(shown: Shown) -> Measured:
    """What `evaluate` has kept: of the test set first, then of others."""
    records, problems = [], []
    for path in sorted(shown.run.glob("results-*.json"), key=lambda path: (path.stem != f"results-{SPLIT}", path.name)):
        try:
            record = read_json(path)
            rows = measured_rows(record, shown.experiment.quantizer.codebook_size)
            records.append({**record, "rows": rows, "data": Path(record["data"]).name})
        except (CheckpointError, KeyError, TypeError, ValueError) as failure:
            problems.append(shown.absent(path.name, f"it can't be read: {failure}"))
    if not records and not problems:
        problems.append(shown.absent("Measures", "`sqvae evaluate` has not been run"))
    mark = "" if shown.tokenizer is None else shown.tokenizer.fingerprint
    name = Path(shown.experiment.data.source).name
    own = [record for record in records if record.get("fingerprint") == mark and record["data"] == name]
    return Measured(records, own[0] if own else None, problems)


def _measures(shown: Shown, measured: Measured) -> Chapter:
    tables = []
    for record in measured.records:
        current = shown.tokenizer is not None and record.get("fingerprint") == shown.tokenizer.fingerprint
        note = "" if current else "Measured before the model was trained further: it is another one by now."
        note = " ".join([*([note] if note else []), *(f"{shown.clean(one)}." for one in record.get("notes", []))])
        title = f"On the {record['split']} set of {record['data']}"
        tables.append(Table(title, ("what", "value"), list(record["rows"].items()), note))
    size = shown.experiment.quantizer.codebook_size if shown.experiment.quantizer.is_discrete else 0
    told = dict.fromkeys(sentence for record in measured.records for sentence in meanings(record, size))
    return measures_chapter(tables, measured.problems, list(told))


def _made(shown: Shown) -> Chapter:
    parts = []
    if shown.tokenizer is not None:
        parts = shown.view.made(shown.tokenizer, shown.generator, shown.held_out)
    # Pictures of a model without codes are drawn from the normal distribution.
    if shown.generator is None and (shown.tokenizer is None or shown.tokenizer.is_discrete or not parts):
        parts.insert(0, shown.absent("Samples", shown.no_prior))
    return made_chapter(parts)

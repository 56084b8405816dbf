"""Write the page of a run as a single HTML file."""

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
from sqvae.pages.contents import CONTINUOUS, LEVELS, NO_CHECKPOINT, SPLIT, PageOptions, RunContents, load_contents
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

MAX_TILES, MAX_TILE_PIXELS = 512, 200_000
"""The largest number of images of single codes, and the largest number of pixels of all these images."""

NEIGHBOURS = 4
"""The number of nearest codes that are shown with each code."""

MAX_SOUND_BYTES = 1_000_000
"""The largest number of bytes of sound in a page, before base64 encoding, which adds a third."""


class Measured(NamedTuple):
    """The results of `sqvae evaluate` in the folder of a run."""

    records: list[dict[str, Any]]
    """All results, each with the rows of its table."""
    own: dict[str, Any] | None
    """The result of the current model on the data of the run, on the test set if there is one."""
    problems: list[str]
    """Placeholders as HTML for results that are missing or can't be read."""


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
    """Write a page about a run with examples, codebook, training curves, measures and samples, as a single HTML file.

    Arguments:
        run: the run's folder.
        path: the path of the page, which ends in .html.
        data: a path, or the name of a data set; None: the data of the run.
        prior: the folder of the prior; None: the prior of the run.
        examples: the number of held-out examples to show.
        overwrite: whether an existing file may be replaced.
        progress: called with the name of the current task, the number of finished items, and their total.
        announce: called with sentences about the data.

    Returns:
        Sentences about everything that is missing on the page, with the reasons.
    """
    path = Path(path)
    check_ending(path, (".html", ".htm"), "page")
    check_free(path, overwrite)
    options = PageOptions(data, None if prior is None else Path(prior), examples, progress or _nothing, announce)
    contents = load_contents(Path(run), options)
    html = page_html(contents, options)
    with PlainFile(path) as file:
        # File names need not be valid Unicode.
        file.put(html.encode("utf-8", "replace"))
    return contents.missing


def _nothing(what: str, done: int, total: int) -> None:
    """The default for progress, which is ignored."""


def page_html(contents: RunContents, options: PageOptions) -> str:
    """The page of a run as HTML."""
    measured = _measured(contents)
    codebook = _codebook(contents, options.progress)
    chapters = [
        _about(contents, measured),
        _examples(contents, options, codebook, measured),
        _codes(contents, options, codebook),
        _training(contents),
        _measures(contents, measured),
        _generation(contents),
    ]
    name = contents.run.resolve().name
    introduction = (
        f"This run was made by sqvae {contents.config.get('sqvae', 'of an unknown version')}, and this page by "
        f"`sqvae report` of version {__version__}. The page is a single file that loads no other files."
    )
    return run_page(name, introduction, chapters)


def _about(contents: RunContents, measured: Measured) -> Chapter:
    sections = {section.title: section.lines for section in inspect_run(contents.run, plots=False)}
    settings = setting_without_places(contents.config["experiment"], contents.places)
    summary, history = ([contents.clean(line) for line in sections[name]] for name in ("What it is", "How it trained"))
    problems = [contents.clean(finding) for finding in findings_of(contents.folder, contents.experiment) or ()]
    return about_chapter(list(_facts(contents, measured)), summary, history, settings, warnings=problems)


def _facts(contents: RunContents, measured: Measured) -> Iterator[Fact]:
    """The most important numbers, from the results of the current model or else from the best validation."""
    best = [record for record in read_records(contents.folder.log) if record["kind"] == "validation" and record["best"]]
    where, measures = "validation", best[-1] if best else {}
    if measured.own is not None:
        where, measures = measured.own["split"], measured.own["measures"]
    if not measures:
        return
    name, _, value = error_of(measures).partition(" = ")
    yield Fact(value, f"{name}, {where}")
    if "perplexity" in measures:
        size = contents.experiment.quantizer.codebook_size
        yield Fact(f"{measures['perplexity']:.1f}", f"perplexity of {size:,} codes, {where}")
        whole = contents.experiment.number_of_codes
        yield Fact(f"{int(measures['codes_used']):,}", f"codes used of {whole:,}, {where}")
    if best:
        yield Fact(f"{best[-1]['epoch']} of {contents.experiment.training.epochs}", "epochs, the best checkpoint")


def _examples(contents: RunContents, options: PageOptions, codebook: Codebook | None, measured: Measured) -> Chapter:
    modality = modality_of(contents.experiment.kind)
    before: list[str] = []
    examples: list[Example] = []
    if contents.tokenizer is not None:
        legend = modality.legend(contents.tokenizer, measured.own["measures"] if measured.own is not None else {})
        before += [legend] if legend else []
    if contents.held_out is None:
        before.append(contents.absent("Held-out examples", contents.no_data))
    else:
        total = len(contents.held_out)
        number = min(options.examples, total)
        before.append(paragraph(f"{number} of {total:,} {contents.data}."))
        sound_budget = MAX_SOUND_BYTES
        for index in range(number):
            examples.append(_example(contents, index * total // number, sound_budget))
            sound_budget -= sum(len(content) for _, content in examples[-1].sounds)
        before += _about_sound(examples)
    colours, tiles = (codebook.colours, codebook.tiles) if codebook is not None else (None, None)
    signs = modality.difference_key
    reading = f"In the difference, {WRONG_LABELS}." if signs is None else signs.sentence
    key = "" if signs is None else difference_key(signs.colours, signs.less, signs.more, signs.full)
    return examples_chapter(examples, colours, tiles, legend=reading, key=key, before=before)


def _about_sound(examples: Sequence[Example]) -> list[str]:
    """A paragraph about the sound in the page."""
    with_sound = [one for one in examples if one.sounds]
    if not with_sound:
        return []
    size = sum(len(content) for one in with_sound for _, content in one.sounds)
    which = "All examples have" if len(with_sound) == len(examples) else f"The first {len(with_sound)} have"
    return [
        paragraph(
            f"{which} sound: {size / 1000:,.0f} kB (FLAC) in this page. The limit is {MAX_SOUND_BYTES / 1e6:g} MB. "
            "Reconstructions are synthesized by the Griffin-Lim method; a neural vocoder gives better sound."
        )
    ]


def _example(contents: RunContents, index: int, sound_budget: int) -> Example:
    """One held-out example.

    Arguments:
        sound_budget: the largest number of bytes for its sound.
    """
    name, coded = contents.page_view.view(contents.tokenizer, contents.held_out, index, contents.generator)
    original, reconstruction, difference = map(pixels_of, (coded.original, coded.reconstruction, coded.difference))
    facts, codes = [coded.error], None
    if contents.tokenizer.is_discrete:
        facts.append(f"{coded.bits:,.0f} bits by {coded.bits_by}")
        codes = coded.codes.numpy().astype(np.int64) if contents.tokenizer.levels == 1 else None
    sounds: tuple[tuple[str, bytes], ...] = ()
    if sound_budget > 0 and contents.tokenizer.is_discrete:
        try:
            sounds = contents.page_view.sounds(contents.tokenizer, contents.held_out, index, coded)
        except (OSError, ValueError) as failure:
            facts.append(f"no sound: {contents.clean(str(failure))}")
    if sum(len(content) for _, content in sounds) > sound_budget:
        sounds = ()
    return Example(
        name,
        original,
        reconstruction,
        difference,
        codes,
        tuple(facts),
        contents.page_view.span(contents.tokenizer, coded),
        sounds,
    )


def _codebook(contents: RunContents, progress: Progress) -> Codebook | None:
    """The codebook for the page; None if there is none."""
    tokenizer = contents.tokenizer
    if tokenizer is None or not tokenizer.is_discrete or tokenizer.levels > 1:
        return None
    counts, where = recorded_use(contents.folder)
    size = tokenizer.codebook_size
    order = torch.arange(size) if counts is None else counts.sort(descending=True, stable=True).indices
    first = contents.page_view.code_images(tokenizer, order[:1])
    codes = order[: max(1, min(MAX_TILES, MAX_TILE_PIXELS // (first.shape[-1] * first.shape[-2])))]
    images = contents.page_view.code_images(tokenizer, codes)
    patches = None
    if contents.held_out is not None:
        patches = contents.page_view.mean_patches(tokenizer, contents.held_out, len(codes), progress)
    tables = [neighbour_table(tokenizer, k).cpu() for k in range(1, min(NEIGHBOURS, size - 1) + 1)]
    nearest = torch.stack(tables, 1) if tables else torch.zeros(size, 0, dtype=torch.int64)
    return Codebook(
        code_positions(tokenizer).numpy(),
        code_colours(tokenizer).numpy(),
        nearest.numpy(),
        _tiles("code", codes, images),
        None if patches is None else _tiles("seen", *patches),
        None if counts is None else counts.numpy(),
        where,
    )


def _tiles(name: str, codes: Tensor, images: Tensor) -> Tiles:  # (n,), (n, 3, P, Q)
    return Tiles(name, codes.numpy(), images.permute(0, 2, 3, 1).contiguous().numpy())


def _codes(contents: RunContents, options: PageOptions, codebook: Codebook | None) -> Chapter:
    if codebook is None:
        reason = NO_CHECKPOINT
        if contents.tokenizer is not None:
            reason = LEVELS if contents.tokenizer.is_discrete else CONTINUOUS
        contents.missing.append(f"the codebook: {reason}")
        return no_codebook(reason)
    spectra = None
    if contents.held_out is not None:
        spectra = contents.page_view.unit_spectra(
            contents.tokenizer, contents.held_out, contents.data, options.progress
        )
    return codebook_chapter(codebook, drawn=contents.page_view.tile_caption, heard=spectra)


def _training(contents: RunContents) -> Chapter:
    quantizer, records = contents.experiment.quantizer, read_records(contents.folder.log)
    curves = training_views(records, quantizer.codebook_size if quantizer.is_discrete else 0)
    warnings = [
        f"After epoch {record['epoch']}: {contents.clean(record['message'])}"
        for record in records
        if record["kind"] == "warning"
    ]
    return training_chapter([Drawn(*curve) for curve in curves], warnings)


def _measured(contents: RunContents) -> Measured:
    """Read the results of `sqvae evaluate`, those on the test set first."""
    records, problems = [], []
    for path in sorted(
        contents.run.glob("results-*.json"), key=lambda path: (path.stem != f"results-{SPLIT}", path.name)
    ):
        try:
            record = read_json(path)
            rows = measured_rows(record, contents.experiment.number_of_codes)
            records.append({**record, "rows": rows, "data": Path(record["data"]).name})
        except (CheckpointError, KeyError, TypeError, ValueError) as failure:
            problems.append(contents.absent(path.name, f"it can't be read: {failure}"))
    if not records and not problems:
        problems.append(contents.absent("Measures", "`sqvae evaluate` has not been run"))
    mark = "" if contents.tokenizer is None else contents.tokenizer.fingerprint
    name = Path(contents.experiment.data.source).name
    own = [record for record in records if record.get("fingerprint") == mark and record["data"] == name]
    return Measured(records, own[0] if own else None, problems)


def _measures(contents: RunContents, measured: Measured) -> Chapter:
    tables = []
    for record in measured.records:
        current = contents.tokenizer is not None and record.get("fingerprint") == contents.tokenizer.fingerprint
        note = (
            ""
            if current
            else "This was measured before the model was trained further, so it is not a result of the current model."
        )
        note = " ".join([*([note] if note else []), *(f"{contents.clean(one)}." for one in record.get("notes", []))])
        title = f"On the {record['split']} set of {record['data']}"
        tables.append(Table(title, ("what", "value"), list(record["rows"].items()), note))
    size = contents.experiment.number_of_codes
    sentences = dict.fromkeys(sentence for record in measured.records for sentence in meanings(record, size))
    return measures_chapter(tables, measured.problems, list(sentences))


def _generation(contents: RunContents) -> Chapter:
    parts = []
    if contents.tokenizer is not None:
        parts = contents.page_view.samples(contents.tokenizer, contents.generator, contents.held_out)
    # Images of a model with a continuous latent are sampled from the normal distribution, without a trained prior.
    if contents.generator is None and (contents.tokenizer is None or contents.tokenizer.is_discrete or not parts):
        parts.insert(0, contents.absent("Samples", contents.no_prior))
    return made_chapter(parts)

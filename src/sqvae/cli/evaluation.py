"""What `sqvae evaluate` puts together."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from sqvae.cli import console
from sqvae.cli.compression import Compressor, compressor_of, has_prior
from sqvae.cli.listing import SETS
from sqvae.cli.rates import draw_rates, measure_rates
from sqvae.data import Progress
from sqvae.files import write_text
from sqvae.metrics.meanings import meanings
from sqvae.reports import results_page, rows_of, save_pairs
from sqvae.reports.drawing import reading_of
from sqvae.runs import Evaluation, Prepared, diagnose, is_run, prepare, read_experiment
from sqvae.tokenizers import Tokenizer, load
from sqvae.training import CheckpointError, RunFolder, read_json, read_records, write_json


@dataclass(frozen=True)
class Result:
    """An evaluation, with what it is to be printed and stored with."""

    record: dict[str, Any]
    setting: str
    codebook_size: int
    kind: str
    """Of the data,"""
    examples: str
    """and how many of which part of it."""
    written: tuple[Path, ...]


def evaluate_run(
    run: Path,
    source: str | None,
    split: str,
    batch: int | None,
    progress: Progress,
    announce: Callable[[str], None],
    *,
    rates: bool = False,
) -> Result:
    """Measure a run on a part of its data, or of other data, and write the results into its folder.

    Arguments:
        rates: measure what pictures cost as files, too.
    """
    tokenizer: Tokenizer = load(run)
    experiment = tokenizer.experiment
    source, prepared = data_of(run, tokenizer, source, progress, announce)
    batch_size = batch or experiment.training.batch_size
    evaluation = prepared.evaluate(
        tokenizer.model, split, batch_size=batch_size, temperature=last_temperature(run), progress=progress
    )
    record = {
        "data": source,
        "split": split,
        f"{prepared.noun.replace(' ', '_')}s": prepared.sizes[split],
        "batch_size": batch_size,
        "likelihood": experiment.likelihood_name,
        "fingerprint": tokenizer.fingerprint,
        "measures": evaluation.measures,
        "counts": list(evaluation.counts),
        "findings": diagnose(
            evaluation.measures,
            evaluation.counts,
            what=f"{split} {prepared.noun}s",
            quantizer=experiment.quantizer.name,
        ),
    }
    if evaluation.notes:
        record["notes"] = list(evaluation.notes)
    if rates and experiment.kind in ("pictures", "levels") and tokenizer.is_discrete:
        record["rates"] = measure_rates(_compressor(run, announce), prepared.part(split), progress)
    result = Result(
        record,
        _setting(run, tokenizer, source, split, prepared),
        len(evaluation.counts),
        experiment.kind,
        _examples(source, split, prepared),
        (),
    )
    if is_run(RunFolder(run)):
        try:
            return replace(result, written=_write(run, result, evaluation, own=source == experiment.data.source))
        except OSError as failure:  # a run that may only be read can be measured all the same
            announce(NOT_KEPT.format(run, failure.strerror or failure))
    return result


NOT_KEPT = "what was measured can't all be kept in {}: {}"
"""Said where it is shown all the same."""


def last_temperature(run: Path) -> float | None:
    """That of the relaxation when a run was last recorded; None where nothing is."""
    recorded = [record for record in read_records(RunFolder(run).log) if "temperature" in record]
    return recorded[-1]["temperature"] if recorded else None


def _compressor(run: Path, announce: Callable[[str], None]) -> Compressor:
    """By the prior, if there is one that can be used; otherwise without, and it says why."""
    if has_prior(run, None):
        try:
            return compressor_of(run, None, batch=64, learned=True)
        except (ValueError, CheckpointError) as failure:
            announce(f"what files cost is measured without the prior: {failure}")
    return compressor_of(run, None, batch=64, learned=False)


def data_of(
    run: Path, tokenizer: Tokenizer, source: str | None, progress: Progress, announce: Callable[[str], None]
) -> tuple[str, Prepared]:
    """What a run was trained on, or other data as its model takes it; with its name."""
    experiment = tokenizer.experiment
    settings = experiment.data
    if source is None or (Path(source).exists() and str(Path(source).resolve()) == settings.source):
        source = settings.source
    named = source in SETS or source.startswith("hf:")
    if source == settings.source and not named and not Path(source).exists():
        raise FileNotFoundError(f"{source}, which {run} was trained on, is not here: say where the data is with --data")
    asked = replace(experiment, data=replace(settings, source=source))
    prepared = prepare(asked, announce=announce, progress=progress)
    config = RunFolder(run).config
    before = read_json(config).get("data_key") if source == settings.source and config.exists() else None
    if before not in (None, prepared.key):
        announce(f"the {prepared.noun}s have changed since this run was trained: it may have trained on some of these")
    return source, prepared


def _write(run: Path, result: Result, evaluation: Evaluation, *, own: bool) -> tuple[Path, ...]:
    """Keep the results in the run's folder, as JSON, as a page and as a picture; those of other data under its name."""
    record = result.record
    split, source = record["split"], record["data"]
    stem = f"results-{split}" if own else f"results-{split}-{Path(source).stem}"
    numbers, page, picture = written = tuple(run / f"{stem}{suffix}" for suffix in (".json", ".md", ".png"))
    caption = "Originals above reconstructions"
    if evaluation.errors is not None:
        caption += ", and below them what is wrong, in magenta"
    images = [f"![{caption}]({picture.name})", f"{caption}."]
    if RunFolder(run).curves.exists():
        images += ["![Curves of self-annealing](curves.png)", "How quantization annealed itself."]
    command = f"sqvae evaluate {run} --split {split}" + ("" if own else f" --data {source}")
    if "rates" in record:
        drawing = run / f"{stem.replace('results', 'rates')}.png"
        draw_rates(drawing, record["rates"], f"{run.name}, {split} pictures of {Path(source).name}")
        images += [f"![Bits per pixel]({drawing.name})", "What pictures cost as files, and how good they are then."]
        written += (drawing,)
    rows = measured_rows(record, result.codebook_size)
    images += record.get("notes", [])
    write_json(numbers, record)
    told = meanings(record, result.codebook_size)
    write_text(
        page,
        results_page(f"Results: {run.name}", command, result.setting, rows, images, told, warnings=record["findings"]),
    )
    save_pairs(
        picture,
        evaluation.originals,
        evaluation.reconstructions,
        evaluation.errors,
        title=f"{run.resolve().name}: {len(evaluation.originals)} of the {result.examples}",
        lines=(result.setting, *reading_of(result.kind)),
        classes=evaluation.classes,
    )
    return written


def show(result: Result) -> None:
    """Print what was measured, on what, and where it is kept."""
    table = Table("what", "value", title=result.setting, title_justify="left")
    for what, value in measured_rows(result.record, result.codebook_size).items():
        table.add_row(what, value)
    console.out.print(table)
    for sentence in meanings(result.record, result.codebook_size):
        console.note(sentence)
    for finding in result.record["findings"]:
        console.warning(finding)
    for note in result.record.get("notes", []):
        console.warning(note)
    for path in result.written:
        console.note(f"written: {path}")


def measured_rows(record: dict[str, Any], codebook_size: int) -> dict[str, str]:
    """What was measured, in words."""
    directions = record.get("likelihood") == "vmf"
    rows = rows_of(record["measures"], codebook_size, record["batch_size"], directions=directions)
    if rates := record.get("rates"):
        if "bits_per_pixel_by_log2_k" in rates:
            rows["bits per pixel, at log2 K for each code"] = f"{rates['bits_per_pixel_by_log2_k']:.4f}"
        rows["bits per pixel, compressed"] = (
            f"{rates['bits_per_pixel']:.4f}, {rates['bytes_per_picture']:.1f} bytes each"
        )
        rows["bits per code, compressed"] = f"{rates['bits_per_code']:.3f}, by {rates['by']}"
        rows[f"PSNR of {rates['pictures']:,} of them, as bytes"] = f"{rates['psnr']:.2f} dB"
    return rows


def _setting(run: Path, tokenizer: Tokenizer, source: str, split: str, prepared: Prepared) -> str:
    """On which data, after how much training, with which seed."""
    experiment = tokenizer.experiment
    validations = [r for r in read_records(RunFolder(run).log) if r["kind"] == "validation" and r["best"]]
    trained = ""
    if validations:
        best = validations[-1]
        # The plan of the run, which may have grown since these weights were kept.
        plan = read_experiment(RunFolder(run))[0].training
        planned = f"{plan.epochs} epochs" if plan.steps is None else f"{plan.steps:,} steps"
        trained = f" after epoch {best['epoch']}, {best['step']:,} steps of {plan.batch_size}, of {planned}"
    quantizer = experiment.quantizer
    size = f", K = {quantizer.codebook_size}" if quantizer.is_discrete else ""
    how = "likeliest codes" if quantizer.is_discrete else "the latent's mean"
    return (
        f"{quantizer.name}{size}, d = {quantizer.dim}, seed {experiment.seed}{trained}; "
        f"{_examples(source, split, prepared)}, {how}"
    )


def _examples(source: str, split: str, prepared: Prepared) -> str:
    """ "500 test pictures of demo"."""
    return f"{prepared.sizes[split]:,} {split} {prepared.noun}s of {Path(source).name}"

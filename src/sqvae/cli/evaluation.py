"""What `sqvae evaluate` puts together."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from sqvae.cli import console
from sqvae.data import DATASETS, Pictures, PictureSets, Progress
from sqvae.data import load as load_data
from sqvae.experiment import Evaluation, Tokenizer, evaluate, load
from sqvae.reports import results_page, rows_of, save_pairs
from sqvae.training import RunFolder, read_json, read_records, write_json


@dataclass(frozen=True)
class Result:
    """An evaluation, with what it is to be printed and stored with."""

    record: dict[str, Any]
    setting: str
    codebook_size: int
    written: tuple[Path, ...]


def evaluate_run(
    run: Path, source: str | None, split: str, batch: int | None, progress: Progress, announce: Callable[[str], None]
) -> Result:
    """Measure a run on a part of its data, or of other data, and write the results into its folder."""
    tokenizer = load(run)
    experiment = tokenizer.experiment
    source, data = data_of(run, tokenizer, source, progress, announce)
    for note in data.notes:
        announce(note)
    pictures = _part(data, split)
    batch_size = batch or experiment.training.batch_size
    evaluation = evaluate(
        tokenizer.model,
        pictures,
        medium=tokenizer.medium,
        batch_size=batch_size,
        sampled_bound=True,
        detailed=True,
        progress=progress,
    )
    record = {
        "data": source,
        "split": split,
        "pictures": len(pictures),
        "batch_size": batch_size,
        "fingerprint": tokenizer.fingerprint,
        "measures": evaluation.measures,
        "counts": list(evaluation.counts),
    }
    result = Result(record, _setting(run, tokenizer, source, split, len(pictures)), len(evaluation.counts), ())
    if RunFolder(run).config.exists() and not (run / "model.safetensors").exists():  # and not one of its checkpoints
        with contextlib.suppress(OSError):  # a run that may only be read can be measured all the same
            return replace(result, written=_write(run, result, evaluation, own=source == experiment.data.source))
    return result


def data_of(
    run: Path, tokenizer: Tokenizer, source: str | None, progress: Progress, announce: Callable[[str], None]
) -> tuple[str, PictureSets]:
    """What a run was trained on, or other data in the shape that its model knows; with its name."""
    settings = tokenizer.experiment.data
    if source is None or (Path(source).exists() and str(Path(source).resolve()) == settings.source):
        source = settings.source
    named = source in DATASETS or source.startswith("hf:")
    if source == settings.source and not named and not Path(source).exists():
        raise FileNotFoundError(f"{source}, which {run} was trained on, is not here: say where the data is with --data")
    data = load_data(
        source, tokenizer.preprocessing, split_seed=settings.split_seed, strict=settings.strict, progress=progress
    )
    config = RunFolder(run).config
    before = read_json(config).get("data_key") if source == settings.source and config.exists() else None
    if before not in (None, data.key):
        announce("the pictures have changed since this run was trained: it may have trained on some of these")
    return source, data


def _write(run: Path, result: Result, evaluation: Evaluation, *, own: bool) -> tuple[Path, ...]:
    """Keep the results in the run's folder, as JSON, as a page and as a picture; those of other data under its name."""
    record = result.record
    split, source = record["split"], record["data"]
    stem = f"results-{split}" if own else f"results-{split}-{Path(source).stem}"
    numbers, page, picture = (run / f"{stem}{suffix}" for suffix in (".json", ".md", ".png"))
    caption = "Originals above reconstructions"
    if evaluation.errors is not None:
        caption += ", and below them what is wrong, in full colour"
    images = [f"![{caption}]({picture.name})", f"{caption}."]
    if RunFolder(run).curves.exists():
        images += ["![Curves of self-annealing](curves.png)", "How quantization annealed itself."]
    command = f"sqvae evaluate {run} --split {split}" + ("" if own else f" --data {source}")
    rows = rows_of(record["measures"], result.codebook_size, record["batch_size"])
    write_json(numbers, record)
    page.write_text(results_page(f"Results: {run.name}", command, result.setting, rows, images))
    save_pairs(picture, evaluation.originals, evaluation.reconstructions, evaluation.errors)
    return numbers, page, picture


def show(result: Result) -> None:
    """Print what was measured, on what, and where it is kept."""
    table = Table("what", "value", title=result.setting, title_justify="left")
    for what, value in rows_of(result.record["measures"], result.codebook_size, result.record["batch_size"]).items():
        table.add_row(what, value)
    console.out.print(table)
    for path in result.written:
        console.note(f"written: {path}")


def _part(data: PictureSets, split: str) -> Pictures:
    return {"train": data.train, "validation": data.validation, "test": data.test}[split]


def _setting(run: Path, tokenizer: Tokenizer, source: str, split: str, pictures: int) -> str:
    """On which data, after how much training, with which seed."""
    experiment = tokenizer.experiment
    validations = [r for r in read_records(RunFolder(run).log) if r["kind"] == "validation" and r["best"]]
    trained = ""
    if validations:
        best = validations[-1]
        trained = (
            f" after {best['epoch']} of {experiment.training.epochs} epochs ({best['step']:,} steps of "
            f"{experiment.training.batch_size})"
        )
    quantizer = experiment.quantizer
    size = f", K = {quantizer.codebook_size}" if quantizer.is_discrete else ""
    how = "likeliest codes" if quantizer.is_discrete else "the latent's mean"
    return (
        f"{quantizer.name}{size}, d = {quantizer.dim}, seed {experiment.seed}{trained}; {pictures:,} {split} pictures "
        f"of {Path(source).name}, {how}"
    )

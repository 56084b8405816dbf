"""What `sqvae evaluate` puts together."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from sqvae.cli import console
from sqvae.data import Pictures, PictureSets, Progress
from sqvae.data import load as load_data
from sqvae.experiment import Tokenizer, evaluate, load
from sqvae.reports import results_page, rows_of, save_pairs
from sqvae.training import RunFolder, read_records, write_json


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
    source = source or experiment.data.source
    data = load_data(
        source,
        tokenizer.preprocessing,
        split_seed=experiment.data.split_seed,
        strict=experiment.data.strict,
        progress=progress,
    )
    for note in data.notes:
        announce(note)
    pictures = _part(data, split)
    batch_size = batch or experiment.training.batch_size
    evaluation = evaluate(tokenizer.model, pictures, batch_size=batch_size, sampled_bound=True, progress=progress)
    codes = len(evaluation.counts)
    record = {
        "data": source,
        "split": split,
        "pictures": len(pictures),
        "batch_size": batch_size,
        "fingerprint": tokenizer.fingerprint,
        "measures": evaluation.measures,
        "counts": list(evaluation.counts),
    }
    setting = _setting(run, tokenizer, source, split, len(pictures))
    rows = rows_of(evaluation.measures, codes, batch_size)
    written: tuple[Path, ...] = ()
    folder = RunFolder(run)
    if folder.config.exists():
        written = tuple(folder.path / f"results-{split}{suffix}" for suffix in (".json", ".md", ".png"))
        with contextlib.suppress(PermissionError):
            write_json(written[0], record)
            images = [f"![Originals above reconstructions]({written[2].name})", "Originals above reconstructions."]
            if folder.curves.exists():
                images += ["![Curves of self-annealing](curves.png)", "How quantization annealed itself."]
            page = results_page(f"Results: {run.name}", f"sqvae evaluate {run} --split {split}", setting, rows, images)
            written[1].write_text(page)
            save_pairs(written[2], evaluation.originals, evaluation.reconstructions)
    return Result(record, setting, codes, written)


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
    return (
        f"{experiment.quantizer.name}, K = {experiment.quantizer.codebook_size}, d = {experiment.quantizer.dim}, seed "
        f"{experiment.seed}{trained}; {pictures:,} {split} pictures of {Path(source).name}, likeliest codes"
    )

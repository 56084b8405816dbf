"""How good a run's model is on a part of some data."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqvae.analysis.rates import draw_rates, measure_rates
from sqvae.data import Progress
from sqvae.data.wording import counted
from sqvae.files import write_text
from sqvae.inference import Compressor, compressor_of
from sqvae.metrics.meanings import meanings
from sqvae.reports import results_page, rows_of, save_pairs
from sqvae.reports.drawing import reading_of
from sqvae.runs import (
    Announce,
    Evaluation,
    Prepared,
    data_of_run,
    diagnose,
    has_prior,
    is_run,
    last_temperature,
    read_experiment,
)
from sqvae.tokenizers import Tokenizer, load
from sqvae.training import CheckpointError, RunFolder, read_records, write_json

NOT_KEPT = "what was measured can't all be kept in {}: {}"
"""Said where it is shown all the same."""


@dataclass(frozen=True)
class EvaluatedRun:
    """What was measured of a run on a part of some data."""

    record: dict[str, Any]
    """All of it, as it is kept: the data, the part, measures, counts of codes, findings."""
    setting: str
    """A sentence: which model, trained for how long, on which examples."""
    codebook_size: int
    """K, of all layers together; 0 for a model with a continuous latent."""
    kind: str
    """Of the data,"""
    examples: str
    """and how many of which part of it."""
    written: tuple[Path, ...] = ()
    """Files in the run's folder."""

    @property
    def measures(self) -> dict[str, float]:
        """Errors, use of codes and likelihood by their names."""
        return dict(self.record["measures"])

    @property
    def rows(self) -> dict[str, str]:
        """What was measured, in words."""
        return measured_rows(self.record, self.codebook_size)

    @property
    def meanings(self) -> list[str]:
        """Sentences that say what the measures mean."""
        return list(meanings(self.record, self.codebook_size))

    @property
    def warnings(self) -> list[str]:
        """Sentences about what is wrong with the model, and about what could not be measured."""
        return [*self.record["findings"], *self.record.get("notes", [])]


def evaluate_run(
    run: str | Path,
    split: str = "test",
    *,
    data: str | None = None,
    batch: int | None = None,
    rates: bool = False,
    progress: Progress | None = None,
    announce: Announce = print,
) -> EvaluatedRun:
    """Measure a run on a part of its data, or of other data, and write the results into its folder.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``. Only in a run's folder are results kept.
        split: ``"train"``, ``"validation"`` or ``"test"``.
        data: a path, or the name of a set; None: what the run was trained on.
        batch: examples that are computed at a time; None: as in training.
        rates: whether to measure what pictures cost as files, too.
        progress: called with what is being done, how many are done and how many there are.
        announce: takes sentences about the data, and about what can't be done.
    """
    run = Path(run)
    tokenizer: Tokenizer = load(run)
    experiment = tokenizer.experiment
    source, prepared = data_of_run(run, tokenizer, data, progress=progress, announce=announce)
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
            layers=experiment.quantizer.number_of_layers,
            levels=experiment.network.levels,
        ),
    }
    if evaluation.notes:
        record["notes"] = list(evaluation.notes)
    measured = rates and experiment.kind in ("pictures", "levels") and tokenizer.is_discrete
    if measured and tokenizer.levels > 1:
        announce("bits per pixel are left out: compressed files hold codes of one resolution only")
    elif measured:
        record["rates"] = measure_rates(_compressor(run, announce), prepared.part(split), progress=progress)
    result = EvaluatedRun(
        record,
        _setting(run, tokenizer, source, split, prepared),
        len(evaluation.counts),
        experiment.kind,
        _examples(source, split, prepared),
    )
    if is_run(RunFolder(run)):
        try:
            return replace(result, written=_write(run, result, evaluation, own=source == experiment.data.source))
        except OSError as failure:  # a run that may only be read can be measured all the same
            announce(NOT_KEPT.format(run, failure.strerror or failure))
    return result


def _compressor(run: Path, announce: Announce) -> Compressor:
    """By the prior, if there is one that can be used; otherwise without, and it says why."""
    if has_prior(run):
        try:
            return compressor_of(run)
        except (ValueError, CheckpointError) as failure:
            announce(f"what files cost is measured without the prior: {failure}")
    return compressor_of(run, learned=False)


def _write(run: Path, result: EvaluatedRun, evaluation: Evaluation, *, own: bool) -> tuple[Path, ...]:
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
    images += record.get("notes", [])
    write_json(numbers, record)
    write_text(
        page,
        results_page(
            f"Results: {run.name}",
            command,
            result.setting,
            result.rows,
            images,
            result.meanings,
            warnings=record["findings"],
        ),
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


def measured_rows(record: dict[str, Any], codebook_size: int) -> dict[str, str]:
    """What was measured, in words.

    Arguments:
        record: of an evaluation, as it is kept in a run's folder.
        codebook_size: K, of all layers together.
    """
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
        for layers, each, bits, db in rates.get("layers", []):
            name = f"with {counted(layers, 'layer')}"
            rows[name] = f"{bits:.4f} bits per pixel, {each:.1f} bytes each, {db:.2f} dB"
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
    size += f", {quantizer.number_of_layers} layers" if quantizer.has_layers else ""
    size += f", {experiment.network.levels} levels" if experiment.network.levels > 1 else ""
    how = "likeliest codes" if quantizer.is_discrete else "the latent's mean"
    return (
        f"{quantizer.name}{size}, d = {quantizer.dim}, seed {experiment.seed}{trained}; "
        f"{_examples(source, split, prepared)}, {how}"
    )


def _examples(source: str, split: str, prepared: Prepared) -> str:
    """ "500 test pictures of demo"."""
    return f"{prepared.sizes[split]:,} {split} {prepared.noun}s of {Path(source).name}"

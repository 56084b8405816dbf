"""A summary of a run in sentences."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqvae.metrics.measures import MEASURES
from sqvae.metrics.reconstruction import codebooks_in
from sqvae.quantizers import LATENTS, description_of, has_codes
from sqvae.reports.results import error_of, kind_of
from sqvae.training import RunFolder, read_records

KINDS = {name: description_of(name) for name in LATENTS} | {
    "gaussian-1": "a Gaussian SQ-VAE (I), with one trained variance",
    "gaussian-2": "a Gaussian SQ-VAE (II), with a variance for each example",
    "gaussian-3": "a Gaussian SQ-VAE (III), with a variance for each position",
    "gaussian-4": "a Gaussian SQ-VAE (IV), with a variance for each position and dimension",
    "gaussian-fixed": "a stochastic quantizer with a fixed variance",
    "vmf": "a von Mises-Fisher SQ-VAE, which quantizes directions",
    "vq": "a plain VQ-VAE",
    "vq-ema": "a VQ-VAE whose codes are moving averages",
    "vq-ema-reset": "a VQ-VAE with moving averages and code reset",
    "residual-1": "a residual SQ-VAE (I), with several codes at each position",
    "residual-3": "a residual SQ-VAE (III), with several codes and a variance for each position",
    "residual-vq-ema": "a residual VQ-VAE whose codes are moving averages",
    "residual-vq-ema-reset": "a residual VQ-VAE with moving averages and code reset",
    "gaussian-latent": "a VAE, with a continuous latent",
}


@dataclass(frozen=True)
class Section:
    """A heading, and the lines below it."""

    title: str
    lines: tuple[str, ...]


def summarize(
    folder: RunFolder,
    experiment: Mapping[str, Any],
    *,
    taken_as: str,
    about: Sequence[str],
    parameters: int,
    fingerprint: str | None,
    steps: int,
    findings: Sequence[str] | None = None,
    plots: Sequence[str] = (),
) -> list[Section]:
    """A summary of a run: the model, its training and its codes.

    Arguments:
        folder: the run's folder.
        experiment: the settings, as in `config.json`.
        taken_as: the kind that the data was taken as, and why.
        about: the size of an example and its codes.
        parameters: the number of trained parameters.
        fingerprint: the fingerprint of the weights; None before the first checkpoint.
        steps: the number of steps so far.
        findings: the problems that the last validation shows; None before the first validation.
        plots: lines about the plots, which come after those of the files.
    """
    records = read_records(folder.log)
    size = experiment["quantizer"]["codebook_size"] if has_codes(experiment["quantizer"]["name"]) else 0
    return [
        Section("What it is", _what(experiment, taken_as, about, parameters, fingerprint)),
        Section("How it trained", _how(folder, experiment, records, steps)),
        Section("Self-annealing", _annealing(records, size)),
        Section("Codes", _codes(records, size)),
        Section("What is wrong now", _wrong(findings, records)),
        Section("Files", (*_files(folder), *plots)),
    ]


def _wrong(findings: Sequence[str] | None, records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The problems at the last validation, and earlier warnings, which may no longer apply."""
    if findings is None:
        return ("not validated yet",)
    epoch = max(record["epoch"] for record in records if record["kind"] == "validation")
    compared = any("mixture_gap" in record for record in records)
    unknown = "" if compared else "; single codes and mixtures were not compared: use `sqvae evaluate`"
    now = tuple(findings) or (f"no problems at the validation after epoch {epoch}{unknown}",)
    earlier = [record for record in records if record["kind"] == "warning" and record["epoch"] < epoch]
    return (*now, *(f"earlier, after epoch {record['epoch']}: {record['message']}" for record in earlier))


def _what(
    experiment: Mapping[str, Any], taken_as: str, about: Sequence[str], parameters: int, fingerprint: str | None
) -> tuple[str, ...]:
    name = experiment["quantizer"]["name"]
    mark = "no checkpoint yet" if fingerprint is None else f"fingerprint {fingerprint}"
    return (
        f"data: {taken_as}",
        f"{KINDS.get(name, name)} ({name}), recipe {experiment['recipe']}",
        *about,
        f"{parameters:,} trained parameters; {mark}",
    )


def _how(
    folder: RunFolder, experiment: Mapping[str, Any], records: Sequence[Mapping[str, Any]], done_steps: int
) -> tuple[str, ...]:
    plan = experiment["training"]
    validations = [record for record in records if record["kind"] == "validation"]
    steps = [record for record in records if record["kind"] == "step"]
    done = max((record["epoch"] for record in validations), default=0)
    lines = [f"data {experiment['data']['source']}, seed {experiment['seed']}, batch size {plan['batch_size']}"]
    if steps:
        minutes = steps[-1]["seconds"] / 60
        lines.append(f"{done_steps:,} steps so far, {minutes:.1f} minutes")
    unit, has, planned = "epochs", done, plan["epochs"]
    if plan.get("steps") is not None:
        unit, has, planned = "steps", done_steps, plan["steps"]
    if has >= planned:
        lines.append(f"all {planned:,} {unit} are done")
    else:
        lines.append(f"{has:,} of {planned:,} {unit} are done; resume with: sqvae resume {folder}")
    if validations:
        last = validations[-1]
        lines.append(f"validation after epoch {last['epoch']}: {error_of(last)}")
        for best in [record for record in validations if record["best"]][-1:]:
            lines.append(f"best by validation: epoch {best['epoch']}, {error_of(best)}")
    return tuple(lines)


def _annealing(records: Sequence[Mapping[str, Any]], size: int) -> tuple[str, ...]:
    steps = [record for record in records if record["kind"] == "step"]
    if len(steps) < 2:
        return ("too few records yet",)
    first, last = steps[0], steps[-1]
    lines = []
    for name in ("variance", "relative_variance", "concentration", "decoder_variance", "decoder_concentration"):
        if name in first and name in last:
            label, text = MEASURES[name].label, MEASURES[name].text
            lines.append(f"{label}: {text(first[name])} at step {first['step']:,}, now {text(last[name])}")
    if size > 1 and last["entropy_per_position"] > 0:
        entropy, share = MEASURES["entropy_per_position"], last["entropy_per_position"] / math.log(size)
        lines.append(
            f"{entropy.label}: {entropy.text(first[entropy.name])} nats, now {entropy.text(last[entropy.name])}, "
            f"{100 * share:.0f}% of that of a uniform choice"
        )
    gaps = [record["mixture_gap"] for record in records if "mixture_gap" in record]
    if gaps:
        lines.append(
            f"the error with single codes is {gaps[-1]:.2f} times that with the mixtures of codes in training; it was "
            f"{gaps[0]:.2f}, and the aim is 1"
        )
    return tuple(lines)


def _codes(records: Sequence[Mapping[str, Any]], size: int) -> tuple[str, ...]:
    with_counts = [record for record in records if record["kind"] == "validation" and record.get("counts")]
    if not size:
        return ("a continuous latent has no codes",)
    if not with_counts:
        return ("not validated yet",)
    # The counts of the best checkpoint, which commands and plots use.
    record = ([one for one in with_counts if one.get("best")] or with_counts)[-1]
    counts: list[int] = record["counts"]
    which = "the best checkpoint" if record.get("best") else "the newest checkpoint"
    if len(counts) > size:
        used = sum(count > 0 for count in counts)
        books = codebooks_in(record)
        each, kind = ", ".join(map(MEASURES["perplexity"].text, books.values())), kind_of(books)
        return (
            f"with {which}, after epoch {record['epoch']}: {used} of {len(counts)} are used on validation, {size} in "
            f"each of {len(counts) // size} {'levels' if kind == 'level' else 'layers'}; perplexity of each {kind}: "
            f"{each}",
        )
    total = sum(counts)
    ranked = sorted(range(size), key=lambda code: -counts[code])
    unused = [code for code in range(size) if not counts[code]]
    most = ", ".join(f"{code} ({100 * counts[code] / total:.1f}%)" for code in ranked[:5])
    lines = [
        f"with {which}, after epoch {record['epoch']}: {size - len(unused)} of {size} are used on validation; "
        f"perplexity {record['perplexity']:.1f}, the effective number of codes in use",
        f"most used: {most}",
    ]
    if unused:
        named = ", ".join(map(str, unused[:20])) + (", ..." if len(unused) > 20 else "")
        lines.append(f"never used: {named}")
    return tuple(lines)


def _files(folder: RunFolder) -> tuple[str, ...]:
    known = (
        (folder.best, "the best checkpoint, which other commands use"),
        (folder.last, "the newest checkpoint, for `sqvae resume`"),
        (folder.log, "the log, with one JSON object per line"),
        (folder.tensorboard, f"for: tensorboard --logdir {folder.tensorboard}"),
        (folder.curves, "self-annealing, error and codebook usage"),
        (folder.pictures, "originals above reconstructions, by epoch"),
    )
    return tuple(f"{path}: {what}" for path, what in known if path.exists())

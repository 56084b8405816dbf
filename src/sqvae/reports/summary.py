"""A run, in plain words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqvae.quantizers import QUANTIZERS, description_of
from sqvae.reports.results import error_of
from sqvae.training import RunFolder, read_records

KINDS = {name: description_of(name) for name in QUANTIZERS} | {
    "gaussian-1": "a Gaussian SQ-VAE (I), with one variance that is trained",
    "gaussian-2": "a Gaussian SQ-VAE (II), with a variance for each picture",
    "gaussian-3": "a Gaussian SQ-VAE (III), with a variance for each position",
    "gaussian-4": "a Gaussian SQ-VAE (IV), with a variance for each position and dimension",
    "gaussian-fixed": "a stochastic quantizer whose variance is fixed",
    "vmf": "a von Mises-Fisher SQ-VAE, which quantizes directions",
    "vq": "a plain VQ-VAE",
    "vq-ema": "a VQ-VAE whose codes follow moving averages",
    "vq-ema-reset": "a VQ-VAE with moving averages and code reset",
    "gaussian-latent": "a VAE, with a continuous latent",
}


@dataclass(frozen=True)
class Section:
    """A heading and sentences under it."""

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
    """What a run is, how it trained and which codes it uses.

    Arguments:
        experiment: as in `config.json`.
        taken_as: as what its data was taken, and why.
        about: what becomes of an example: see :func:`about_pictures` and :func:`about_speech`.
        parameters: how many numbers are trained.
        fingerprint: of the weights in use; None before the first checkpoint.
        steps: done so far.
        findings: what the last validation shows that is not as it should be; None before the first.
        plots: what was drawn and what was not, in lines that stand with the files.
    """
    records = read_records(folder.log)
    size = experiment["quantizer"]["codebook_size"] if experiment["quantizer"]["name"] != "gaussian-latent" else 0
    return [
        Section("What it is", _what(experiment, taken_as, about, parameters, fingerprint)),
        Section("How it trained", _how(folder, experiment, records, steps)),
        Section("Self-annealing", _annealing(records, size)),
        Section("Codes", _codes(records, size)),
        Section("What is wrong now", _wrong(findings, records)),
        Section("Files", (*_files(folder), *plots)),
    ]


def _wrong(findings: Sequence[str] | None, records: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What is wrong by the last validation; and what was said before it, which may no longer be so."""
    if findings is None:
        return ("not validated yet",)
    epoch = max(record["epoch"] for record in records if record["kind"] == "validation")
    compared = any("mixture_gap" in record for record in records)
    unknown = "" if compared else "; single codes and mixtures were not compared then: `sqvae evaluate` does"
    now = tuple(findings) or (f"nothing, as far as the validation after epoch {epoch} tells{unknown}",)
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
        f"{parameters:,} trained numbers; {mark}",
    )


def about_pictures(
    experiment: Mapping[str, Any], shape: tuple[int, int, int], code_shape: tuple[int, ...]
) -> tuple[str, ...]:
    """What becomes of a picture.

    Arguments:
        experiment: as in `config.json`.
        shape: (C, H, W) of the pictures.
        code_shape: of a picture's codes.
    """
    quantizer = experiment["quantizer"]
    channels, height, width = shape
    colour, pixels = ("grey picture" if channels == 1 else "colour picture"), 8 * channels * height * width
    if experiment["data"].get("kind") == "labels":
        classes = experiment["data"]["classes"]
        colour, pixels = f"label map of {classes:,} classes,", round(math.log2(classes) * height * width)
    if quantizer["name"] == "gaussian-latent":
        positions = f" at each of {'x'.join(map(str, code_shape))} positions" if code_shape else ""
        return (f"a {colour} of {height}x{width} becomes {quantizer['dim']} numbers{positions}",)
    size = quantizer["codebook_size"]
    codes = "x".join(map(str, code_shape))
    bits = math.prod(code_shape) * math.log2(size) if size > 1 else 0
    saved = f", {pixels / bits:.0f} times fewer" if bits else ""
    return (
        f"{size:,} codes of {quantizer['dim']} dimensions",
        f"a {colour} of {height}x{width} becomes {codes} codes: {bits:,.0f} bits instead of {pixels:,}{saved}",
    )


def about_speech(
    experiment: Mapping[str, Any], *, rate: int, mels: int, frames_per_second: float, codes_per_second: float
) -> tuple[str, ...]:
    """What becomes of a second of speech.

    Arguments:
        experiment: as in `config.json`.
        rate: samples a second.
        mels: the size of a frame.
    """
    quantizer, speakers = experiment["quantizer"], experiment["speech"]["speakers"] or ()
    size = quantizer["codebook_size"]
    frames = f"a second of speech, {rate:,} samples, is {frames_per_second:g} frames of {mels} mels"
    known = ", ".join(speakers[:8]) + (f" and {len(speakers) - 8} more" if len(speakers) > 8 else "")
    if quantizer["name"] == "gaussian-latent":
        becomes = f", and becomes {codes_per_second:g} times {quantizer['dim']} numbers"
    else:
        bits = codes_per_second * math.log2(size) if size > 1 else 0
        becomes = f", and becomes {codes_per_second:g} codes: {bits:,.0f} bits at most"
    return (
        *([] if quantizer["name"] == "gaussian-latent" else [f"{size:,} codes of {quantizer['dim']} dimensions"]),
        frames + becomes,
        f"speaks with {len(speakers)} voices: {known}",
    )


def _how(
    folder: RunFolder, experiment: Mapping[str, Any], records: Sequence[Mapping[str, Any]], done_steps: int
) -> tuple[str, ...]:
    plan = experiment["training"]
    validations = [record for record in records if record["kind"] == "validation"]
    steps = [record for record in records if record["kind"] == "step"]
    done = max((record["epoch"] for record in validations), default=0)
    lines = [f"on {experiment['data']['source']}, seed {experiment['seed']}, batches of {plan['batch_size']}"]
    if steps:
        minutes = steps[-1]["seconds"] / 60
        lines.append(f"{done_steps:,} steps so far, {minutes:.1f} minutes")
    unit, has, planned = "epochs", done, plan["epochs"]
    if plan.get("steps") is not None:
        unit, has, planned = "steps", done_steps, plan["steps"]
    if has >= planned:
        lines.append(f"all {planned:,} {unit} are done")
    else:
        lines.append(f"{has:,} of {planned:,} {unit} are done; go on with: sqvae resume {folder}")
    if validations:
        last = validations[-1]
        lines.append(f"validation after epoch {last['epoch']}: {error_of(last)}")
        for best in [record for record in validations if record["best"]][-1:]:
            lines.append(f"best by validation: epoch {best['epoch']}, {error_of(best)}")
    return tuple(lines)


def _annealing(records: Sequence[Mapping[str, Any]], size: int) -> tuple[str, ...]:
    steps = [record for record in records if record["kind"] == "step"]
    if len(steps) < 2:
        return ("too few records to tell yet",)
    first, last = steps[0], steps[-1]
    lines = []
    for name, words in (
        ("variance", "the quantization's variance"),
        ("relative_variance", "the same over the codes' mean squared distance"),
        ("concentration", "the quantization's concentration"),
        ("decoder_variance", "the decoder's variance"),
        ("decoder_concentration", "the decoder's concentration"),
    ):
        if name in first and name in last:
            lines.append(f"{words}: {first[name]:.4g} at step {first['step']:,}, now {last[name]:.4g}")
    if size > 1 and last["entropy_per_position"] > 0:
        share = last["entropy_per_position"] / math.log(size)
        lines.append(
            f"a position's entropy: {first['entropy_per_position']:.2f} nats, now {last['entropy_per_position']:.2f}, "
            f"{100 * share:.0f}% of what blind choice would have"
        )
    gaps = [record["mixture_gap"] for record in records if "mixture_gap" in record]
    if gaps:
        lines.append(
            f"single codes have {gaps[-1]:.2f} times the error of the mixtures of codes that training decodes; it was "
            f"{gaps[0]:.2f}, and 1 is the aim"
        )
    return tuple(lines)


def _codes(records: Sequence[Mapping[str, Any]], size: int) -> tuple[str, ...]:
    with_counts = [record for record in records if record["kind"] == "validation" and record.get("counts")]
    if not size:
        return ("a continuous latent has none",)
    if not with_counts:
        return ("not validated yet",)
    # The best checkpoint's, which commands use and plots are of.
    record = ([one for one in with_counts if one.get("best")] or with_counts)[-1]
    counts: list[int] = record["counts"]
    total = sum(counts)
    ranked = sorted(range(size), key=lambda code: -counts[code])
    unused = [code for code in range(size) if not counts[code]]
    most = ", ".join(f"{code} ({100 * counts[code] / total:.1f}%)" for code in ranked[:5])
    which = "the best checkpoint" if record.get("best") else "the newest checkpoint"
    lines = [
        f"with {which}, after epoch {record['epoch']}: {size - len(unused)} of {size} are used on validation; "
        f"perplexity {record['perplexity']:.1f}: as if so many were used equally often",
        f"most used: {most}",
    ]
    if unused:
        named = ", ".join(map(str, unused[:20])) + (", ..." if len(unused) > 20 else "")
        lines.append(f"never used: {named}")
    return tuple(lines)


def _files(folder: RunFolder) -> tuple[str, ...]:
    known = (
        (folder.best, "the best checkpoint, which other commands use"),
        (folder.last, "the newest checkpoint, from which `sqvae resume` goes on"),
        (folder.log, "one JSON object a record"),
        (folder.tensorboard, f"for: tensorboard --logdir {folder.tensorboard}"),
        (folder.curves, "self-annealing, error and use of codes"),
        (folder.pictures, "originals above reconstructions, by epoch"),
    )
    return tuple(f"{path}: {what}" for path, what in known if path.exists())

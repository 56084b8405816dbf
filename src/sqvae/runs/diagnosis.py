"""What is wrong with a model now, in words, with what to do: from what was measured on held-out data."""

import math
from collections.abc import Mapping, Sequence

from sqvae.config import Experiment
from sqvae.modality import modality_of
from sqvae.quantizers import class_of, codebook_names, has_layers
from sqvae.quantizers.faults import BLIND, WIDE_GAP
from sqvae.training import RunFolder, read_records

COLLAPSED, SPARSE = 0.1, 0.5
"""Below these shares of the codes that could be met, a codebook counts as collapsed, or as little used."""

UNEVEN = 0.1
"""Below this share of the codes in use, the perplexity says that few of them do all the work."""

SHARE = "entropy share of level "
RELATIVE_VARIANCE = "relative variance of level "
"""How the names of two measures of each level of a hierarchy begin: the entropy of its choices, as a share of the most
that there can be, and its variance over the mean squared distance between its codes."""

LONGER = "sqvae resume RUN --steps N"


def diagnose(
    measures: Mapping[str, float], counts: Sequence[int], *, what: str, quantizer: str, layers: int = 1, levels: int = 1
) -> tuple[str, ...]:  # counts: (K,), or (levels * layers * K,)
    """Sentences about what is not as it should be; none where all is well.

    Arguments:
        measures: as :class:`sqvae.runs.Evaluation` contains them, or a record of a validation.
        counts: how often each code was taken; nothing for a continuous latent.
        what: the data that they were measured on, such as "validation pictures".
        quantizer: its name: what to do depends on what it has.
        layers: the number of codes of each position; each layer is looked at by itself.
        levels: the number of levels of codes; each is looked at by itself, and named.
    """
    names = codebook_names(levels, layers)
    size = len(counts) // len(names)
    blind = _about_levels(measures, levels, what) if levels > 1 else _about_choice(measures, size, what)
    usage = []
    for index, name in enumerate(names):
        where = f"{what}, in {name}" if len(names) > 1 else what
        usage += _about_use(counts[index * size : (index + 1) * size], where, quantizer)
    return (*blind, *usage, *([] if blind else _about_mixtures(measures, what)))


def findings_of(folder: RunFolder, experiment: Experiment) -> tuple[str, ...] | None:
    """What the last validation of a run shows that is not as it should be; None before the first."""
    validations = [record for record in read_records(folder.log) if record["kind"] == "validation"]
    if not validations:
        return None
    last = validations[-1]
    what = f"validation {modality_of(experiment.kind).noun}s"
    quantizer = experiment.quantizer
    parts = {"layers": quantizer.number_of_layers, "levels": experiment.network.levels}
    return diagnose(last, last.get("counts", ()), what=what, quantizer=quantizer.name, **parts)


def _about_choice(measures: Mapping[str, float], size: int, what: str) -> list[str]:
    share = measures.get("entropy_per_position", 0.0) / math.log(size) if size > 1 else 0.0
    if share < BLIND:
        return []
    return [
        f"codes are chosen nearly blindly: on the {what} the entropy of a choice is {share:.0%} of the most there can "
        f"be, so that the decoder learns little from them. Train longer ({LONGER}), or raise training.learning_rate"
    ]


def _about_levels(measures: Mapping[str, float], levels: int, what: str) -> list[str]:
    found = []
    for number in range(1, levels + 1):
        share = measures.get(f"{SHARE}{number}", 0.0)
        if share < BLIND:
            continue
        variance = measures.get(f"{RELATIVE_VARIANCE}{number}")
        away = (
            ""
            if variance is None
            else f", and its variance is {variance:.2g} times the mean squared distance between its codes"
        )
        found.append(
            f"level {number} of {levels} says nothing: on the {what} the entropy of its choices is {share:.0%} of the "
            f"most there can be{away}, so that the decoder learns nothing from it. Train longer ({LONGER}), lower "
            "quantizer.initial_variance, or take fewer levels (network.levels)"
        )
    return found


def _about_use(counts: Sequence[int], what: str, quantizer: str) -> list[str]:
    size, positions = len(counts), sum(counts)
    if size < 2 or not positions:
        return []
    used = sum(count > 0 for count in counts)
    # As many as would be met if all were equally likely: a few positions can't show all of a large codebook.
    could = size * -math.expm1(-positions / size)
    if used < COLLAPSED * could:
        return [f"the codebook has collapsed: {used} of {size} codes are used on the {what}. {remedy(quantizer)}"]
    if used < SPARSE * could:
        return [f"{size - used:,} of {size:,} codes are never used on the {what}. {remedy(quantizer)}"]
    effective = math.exp(-sum(count / positions * math.log(count / positions) for count in counts if count))
    if effective < UNEVEN * used:
        return [
            f"few codes do nearly all the work: {used} of {size} are used on the {what}, but as unevenly as if there "
            f"were {effective:.1f}. {remedy(quantizer)}"
        ]
    return []


def _about_mixtures(measures: Mapping[str, float], what: str) -> list[str]:
    gap = measures.get("mixture_gap", 1.0)
    if gap <= WIDE_GAP:
        return []
    return [
        f"the decoder has learned mixtures of codes that no single code equals: on the {what} single codes have "
        f"{gap:.1f} times the error of what training decodes, and reconstructions may look too hard or too pale. "
        f"Train longer ({LONGER}); if the run had another schedule, a new one by `--profile any-budget` closes the gap"
    ]


def remedy(quantizer: str) -> str:
    """What helps where codes are not used."""
    longer = f"Train longer ({LONGER})"
    drawn = "residual-1" if has_layers(quantizer) else "gaussian-1"
    if not class_of(quantizer).relaxes:
        name = "residual-vq-ema-reset" if has_layers(quantizer) else "vq-ema-reset"
        more = f"take quantizer.name={name}, which revives codes, or {drawn}, which does not lose them"
        return f"{longer}, {more}, or lower quantizer.codebook_size"
    noise = "quantizer.initial_variance or " if quantizer.startswith(("gaussian", "residual")) else ""
    return f"{longer}, raise training.learning_rate, or lower {noise}quantizer.codebook_size"

"""Which schedule to take for a tenth of the paper's epochs: a small sweep on MNIST."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from matplotlib import colormaps
from matplotlib.figure import Figure

from sqvae.experiment import Experiment, Record, override
from sqvae.recipes.artefact import Artefact, Content, Results, resized
from sqvae.recipes.methods import METHODS
from sqvae.recipes.scales import SHORT, Scale
from sqvae.recipes.vision import mnist
from sqvae.reports import Claim, Table, mean_and_deviation
from sqvae.reports.plotting import fit_heights

EPOCHS = 10

Found: TypeAlias = Mapping[tuple[str, str], Sequence[Record]]
"""Finished runs by method and schedule."""

COSINE = "training.schedule=cosine"
USUAL = (COSINE, f"training.learning_rate={SHORT.rate:g}", f"training.temperature_end={SHORT.temperature:g}")
SMALL_CODES = "quantizer.codebook_scale=0.3"

SCHEDULES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sq-vae-1": {
        "cosine": (COSINE,),
        "short": USUAL,
        "late": (*USUAL, "training.temperature_end=0.3", "training.temperature_hold=0.6"),
        "cool": (COSINE, "training.learning_rate=4e-3", "training.temperature_end=0.5"),
        "cold": (COSINE, "training.learning_rate=2e-3", "training.temperature_end=0.2"),
        # With smaller codes goes a variance that is smaller by the square of that.
        "short-codebook-0.3": (*USUAL, SMALL_CODES, "quantizer.initial_variance=0.9"),
    },
    "vq-vae-ema": {
        "cosine": (COSINE,),
        "rate-1e-3": (COSINE, "training.learning_rate=1e-3"),
        "rate-1e-3-codebook-0.3": (COSINE, "training.learning_rate=1e-3", SMALL_CODES),
    },
    "vq-vae-ema-closed": {
        "cosine": (COSINE,),
        "rate-4e-3": (COSINE, "training.learning_rate=4e-3"),
        "codebook-0.3": (COSINE, SMALL_CODES),
    },
}
"""What each candidate changes in the paper's schedule, with which the temperature would end at 0.86."""


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    base = resized(mnist(), 16, 16) if scale.name == "smoke" else mnist()
    base = replace(base, training=replace(base.training, epochs=EPOCHS))
    return [
        (override(METHODS[method].applied(base), settings), {"method": method, "schedule": name})
        for method, candidates in SCHEDULES.items()
        for name, settings in candidates.items()
    ]


def _content(results: Results) -> Content:
    found = {
        (method, name): records
        for method, candidates in SCHEDULES.items()
        for name in candidates
        if (records := results.where(method=method, schedule=name))
    }
    header = ["model", "schedule", "changes", "validation MSE x 1000", "MSE x 1000", "perplexity", "entropy, last"]
    rows = [
        [METHODS[method].label, name, ", ".join(SCHEDULES[method][name]) or "none", *_row(records)]
        for (method, name), records in found.items()
    ]
    counts = "; ".join(f"{METHODS[method].label} {len(candidates)}" for method, candidates in SCHEDULES.items())
    note = "Entropy of a position's code, in nats, in the last record."
    return Content(
        tables=[Table("Test set, after equal steps; the choice is by validation", header, rows, note)],
        drawings={"": (_curves(found), "Validation after each epoch.")},
        claims=_claims(found),
        notes=[
            f"Not in the paper, which trains for 100 epochs. Candidates for each model: {counts}. What the paper's own "
            "schedule gives after 10 epochs is in the curves of figure 5 at its scale.",
            *_choice(found),
        ],
    )


def _row(records: Sequence[Record]) -> list[str]:
    entropies = [record.training["entropy_per_position"][-1:] for record in records]
    return [
        f"{1000 * _validated(records):.3f}",
        mean_and_deviation([1000 * record.measures["mse"] for record in records], 3),
        mean_and_deviation([record.measures["perplexity"] for record in records], 1),
        mean_and_deviation([value for values in entropies for value in values], 2),
    ]


def _validated(records: Sequence[Record]) -> float:
    """The error on the validation set of the epoch that was chosen, over seeds."""
    errors = [dict(zip(r.validation["epoch"], r.validation["mse"], strict=True))[r.best_epoch] for r in records]
    return statistics.fmean(errors)


def _best(found: Found, method: str) -> tuple[str, str] | None:
    keys = [key for key in found if key[0] == method]
    return min(keys, key=lambda key: _validated(found[key])) if keys else None


def _run(found: Found, method: str) -> str:
    """How many candidates a choice was made from: the more there are, the better the best of them looks."""
    return f"of {sum(key[0] == method for key in found)} run out of {len(SCHEDULES[method])} candidates"


def _choice(found: Found) -> list[str]:
    best = _best(found, "sq-vae-1")
    if best is None:
        return []
    return [
        f"Best of SQ-VAE (I) by validation, {_run(found, 'sq-vae-1')}: {best[1]}. Short runs of "
        f"the paper's tables take the rate {SHORT.rate:g} and a temperature that ends at {SHORT.temperature:g}."
    ]


def _curves(found: Found) -> Figure:
    methods = list(dict.fromkeys(method for method, _ in found))
    figure = Figure(figsize=(4.6 * max(1, len(methods)), 6.5), layout="constrained")
    panels = figure.subplots(2, max(1, len(methods)), squeeze=False, sharey="row")
    for column, method in enumerate(methods):
        error, use = panels[0][column], panels[1][column]
        for number, name in enumerate(SCHEDULES[method]):
            if (method, name) in found:
                curves, colour = found[method, name][0].validation, colormaps["tab10"](number)
                errors = [1000 * value for value in curves["mse"]]
                error.plot(curves["epoch"], errors, color=colour, label=name)
                use.plot(curves["epoch"], curves["perplexity"], color=colour)
        error.set(title=METHODS[method].label)
        error.legend(fontsize="x-small")
        use.set(xlabel="epoch")
    panels[0][0].set(ylabel="MSE x 1000 on validation")
    panels[1][0].set(ylabel="perplexity on validation, codes")
    for row, floor in zip(panels, (False, True), strict=True):
        fit_heights(*row, floor=floor)
    return figure


def _claims(found: Found) -> list[Claim]:
    def mean(key: tuple[str, str], measure: str) -> float:
        return statistics.fmean(record.measures[measure] for record in found[key])

    best = _best(found, "sq-vae-1")
    claims = []
    for method in SCHEDULES:
        rival = _best(found, method)
        if method != "sq-vae-1" and best is not None and rival is not None:
            claims.append(
                Claim(
                    f"At its best schedule by validation ({_run(found, 'sq-vae-1')}), SQ-VAE (I) has a lower error and "
                    f"a higher perplexity than {METHODS[method].label} at its own ({_run(found, method)})",
                    mean(best, "mse") < mean(rival, "mse") and mean(best, "perplexity") > mean(rival, "perplexity"),
                    f"{best[1]}: {1000 * mean(best, 'mse'):.3f} and {mean(best, 'perplexity'):.1f}; {rival[1]}: "
                    f"{1000 * mean(rival, 'mse'):.3f} and {mean(rival, 'perplexity'):.1f}",
                )
            )
    return claims


SMALL_BUDGET = Artefact(
    heading="The schedule for a small budget",
    title="which schedule to take for 10 epochs (MNIST); not in the paper",
    data=("mnist",),
    plan=_plan,
    content=_content,
    own_schedule=True,
)

"""Which schedule to take for a tenth of the paper's epochs: a small sweep on MNIST."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from sqvae.experiment import Experiment, Record, override
from sqvae.recipes.artefact import Artefact, Results, resized, setting_of
from sqvae.recipes.methods import METHODS
from sqvae.recipes.scales import Scale
from sqvae.recipes.vision import mnist
from sqvae.reports import Claim, Picture, Report, Table, mean_and_deviation

EPOCHS = 10

COSINE = "training.schedule=cosine"
FASTER = "training.learning_rate=2e-3"

SCHEDULES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sq-vae-1": {
        "paper": (),
        "cosine": (COSINE,),
        "rate-2e-3": (COSINE, FASTER),
        "rate-4e-3": (COSINE, "training.learning_rate=4e-3"),
        "cool": (COSINE, FASTER, "training.temperature_end=0.5"),
        "cold": (COSINE, FASTER, "training.temperature_end=0.2"),
        "icy": (COSINE, FASTER, "training.temperature_end=0.05"),
        "cold-hard": (COSINE, FASTER, "training.temperature_end=0.2", "quantizer.hard=true"),
        "cold-codebook-0.3": (COSINE, FASTER, "training.temperature_end=0.2", "quantizer.codebook_scale=0.3"),
        "cold-variance-2": (COSINE, FASTER, "training.temperature_end=0.2", "quantizer.initial_variance=2"),
    },
    "vq-vae-ema": {
        "paper": (),
        "cosine": (COSINE,),
        "rate-1e-3": (COSINE, "training.learning_rate=1e-3"),
    },
    "vq-vae-ema-closed": {
        "cosine": (COSINE,),
        "rate-2e-3": (COSINE, "training.learning_rate=2e-3"),
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


def _report(results: Results) -> Report:
    found = {
        (method, name): records
        for method, candidates in SCHEDULES.items()
        for name in candidates
        if (records := results.where(method=method, schedule=name))
    }
    header = ["model", "schedule", "changes", "MSE x 1000", "perplexity", "entropy, last"]
    rows = [
        [METHODS[method].label, name, ", ".join(SCHEDULES[method][name]) or "none", *_row(records)]
        for (method, name), records in found.items()
    ]
    name = f"small-budget-{results.scale.name}"
    return Report(
        name=name,
        title=f"The schedule for a small budget ({results.scale.name})",
        setting=setting_of(results),
        command=f"sqvae reproduce small-budget --scale {results.scale.name}",
        tables=[Table("Test set, after equal steps", header, rows, "Entropy of a position's code, in nats.")],
        pictures=[Picture(name, _curves(found), "Validation after each epoch.")],
        claims=_claims(found),
        notes=[
            "Not in the paper, which trains for 100 epochs. VQ-VAE gets the same kind of schedule to choose from. What "
            "is best here for SQ-VAE is the default of short runs, and the recipe mnist-short."
        ],
    )


def _row(records: Sequence[Record]) -> list[str]:
    return [
        mean_and_deviation([1000 * record.measures["mse"] for record in records], 3),
        mean_and_deviation([record.measures["perplexity"] for record in records], 1),
        mean_and_deviation([record.training["entropy_per_position"][-1] for record in records], 2),
    ]


def _curves(found: Mapping[tuple[str, str], Sequence[Record]]) -> Figure:
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    error, use = figure.subplots(1, 2)
    styles = ("-", "--", ":", "-.", (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))
    for (method, name), records in found.items():
        curves, colour = records[0].validation, METHODS[method].colour
        style = styles[list(SCHEDULES[method]).index(name) % len(styles)]
        label = f"{METHODS[method].label}, {name}"
        error.plot(
            curves["epoch"], [1000 * value for value in curves["mse"]], color=colour, linestyle=style, label=label
        )
        use.plot(curves["epoch"], curves["perplexity"], color=colour, linestyle=style)
    error.set(title="MSE x 1000", xlabel="epoch", yscale="log")
    use.set(title="perplexity", xlabel="epoch")
    figure.legend(loc="outside right center", fontsize="small")
    return figure


def _claims(found: Mapping[tuple[str, str], Sequence[Record]]) -> list[Claim]:
    def mean(key: tuple[str, str], measure: str) -> float:
        return statistics.fmean(record.measures[measure] for record in found[key])

    ours = [key for key in found if key[0] == "sq-vae-1"]
    claims = []
    for method in SCHEDULES:
        theirs = [key for key in found if key[0] == method]
        if method == "sq-vae-1" or not ours or not theirs:
            continue
        best, rival = (min(keys, key=lambda key: mean(key, "mse")) for keys in (ours, theirs))
        claims.append(
            Claim(
                "At its best schedule, SQ-VAE (I) has a lower error and a higher perplexity than "
                f"{METHODS[method].label} at its own",
                mean(best, "mse") < mean(rival, "mse") and mean(best, "perplexity") > mean(rival, "perplexity"),
                f"{best[1]}: {1000 * mean(best, 'mse'):.3f} and {mean(best, 'perplexity'):.1f}; against {rival[1]}: "
                f"{1000 * mean(rival, 'mse'):.3f} and {mean(rival, 'perplexity'):.1f}",
            )
        )
    return claims


SMALL_BUDGET = Artefact(
    title="which schedule to take for 10 epochs (MNIST); not in the paper",
    data=("mnist",),
    plan=_plan,
    report=_report,
    own_schedule=True,
)

"""Error and codebook usage by the number of steps: our schedule, the best VQ-VAE, and an ablation of the schedule."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sqvae.config import Experiment, override
from sqvae.metrics.measures import MEASURES
from sqvae.paper.artefact import MSE, Artefact, Content, Results, resized
from sqvae.paper.methods import METHODS
from sqvae.paper.scales import Scale, short
from sqvae.recipes.vision import cifar10, fashion_mnist, mnist
from sqvae.reports import Claim, Table, mean_and_deviation
from sqvae.reports.plotting import fit_heights
from sqvae.sweeps import Record

BASES = {"mnist": mnist, "fashion-mnist": fashion_mnist, "cifar10": cifar10}

BUDGETS = (500, 1_000, 4_000, 16_000)
"""Numbers of steps, with batches of 32 images."""

EPOCHS: Mapping[str, Mapping[int, float]] = {"mnist": {15_620: 1.60, 31_240: 1.50}}
"""Ten and twenty epochs for our model only, with an upper limit of the error x 1000: the paper's own schedule has
1.557 after a hundred epochs."""

CHOICE = 1_000
"""The number of steps at which learning rates are chosen, and the schedule is ablated."""

OURS = "sq-vae-1"
RIVALS = ("vq-vae-ema", "vq-vae-ema-closed", "vq-vae-ema-reset", "vq-vae-ema-reset-closed")
EMA = RIVALS[:2]
RATES = ("1e-3", "3e-3", "8e-3")
WHOLE = "whole"

WITHIN = 1.05
"""The largest ratio of the error with single codes to that with mixtures."""

PARTS: Mapping[str, tuple[str, ...]] = {
    "without variance pressure": ("training.latent_weight_end=1",),
    "without straight-through": ("training.straight_through_end=0",),
    "without faster codes": ("training.codebook_rate=1",),
    "without falling temperature": ("training.temperature_end=1",),
    "without evenness": ("training.evenness=0",),
    "without certain assignments": ("training.certain_from=1",),
    "without price": ("training.price=0", "training.price_end=0"),
    "none of them": (
        "training.latent_weight_end=1",
        "training.straight_through_end=0",
        "training.codebook_rate=1",
        "training.temperature_end=1",
        "training.evenness=0",
        "training.certain_from=1",
    ),
}
"""What each part of the ablation changes in the schedule."""

Key = tuple[str, str]
"""A model and its learning rate."""


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    base = resized(BASES[data](), 16, 16) if scale.name == "smoke" else BASES[data]()
    budgets, choice = ((4, 8), 8) if scale.name == "smoke" else (BUDGETS, CHOICE)
    planned = []
    for steps in budgets:
        for method in (OURS, *RIVALS):
            for rate in RATES:
                settings = [f"training.learning_rate={rate}", f"training.steps={steps}"]
                experiment = override(short(METHODS[method].applied(base)), settings)
                planned.append((experiment, {"method": method, "steps": str(steps), "rate": rate, "part": WHOLE}))
        if steps == choice:
            for part, changes in PARTS.items():
                experiment = override(short(METHODS[OURS].applied(base)), [*changes, f"training.steps={steps}"])
                tags = {"method": OURS, "steps": str(steps), "rate": "8e-3", "part": part.replace(" ", "-")}
                planned.append((experiment, tags))
    for steps in EPOCHS.get(data, {}) if scale.name != "smoke" else ():
        experiment = override(short(METHODS[OURS].applied(base)), [f"training.steps={steps}"])
        planned.append((experiment, {"method": OURS, "steps": str(steps), "rate": "8e-3", "part": WHOLE}))
    return [(_logged(experiment), tags) for experiment, tags in planned]


def _logged(experiment: Experiment) -> Experiment:
    """The experiment with about 40 points in its curves, for any number of steps."""
    steps = experiment.training.steps or 1
    return replace(experiment, training=replace(experiment.training, log_every=max(1, steps // 40)))


def _content(results: Results) -> Content:
    sets = [name for name in BASES if results.where(data=name)]
    if not sets:  # synthetic data, or other data
        sets = list(dict.fromkeys(record.tags["data"] for record in results.records))
    budgets = sorted({int(record.tags["steps"]) for record in results.records})
    tables, claims = [], []
    for data in sets:
        own = [steps for steps in budgets if results.where(data=data, steps=str(steps))]
        tables += [_table(results, data, own), *_ablation(results, data)]
        claims += [claim for steps in own for claim in _claims(results, data, steps)]
        claims += _claims_of_epochs(results, data)
    return Content(
        tables=tables,
        drawings={
            "": (_by_steps(results, sets, budgets), "Error and perplexity on the test set by the number of steps."),
            "-annealing": (
                _annealing(results, sets),
                "SQ-VAE (I) with its schedule, for runs of each length.",
            ),
        },
        claims=claims,
        notes=[
            "Not in the paper, which trains for 100 epochs. Every model is tried with the same learning rates, "
            f"{', '.join(RATES)}, with cosine decay to 0, for {CHOICE:,} steps; the best by validation is shown, and "
            "is used for other numbers of steps. What is not shown was not run. Closed-form: VQ-VAE with SQ-VAE's "
            "likelihood, D/2 log(MSE), in place of the error divided by the variance of the data."
        ],
    )


def _validated(records: Sequence[Record]) -> float:
    return statistics.fmean(record.validation["mse"][-1] for record in records)


def _best(results: Results, data: str, steps: int, method: str) -> tuple[str, Sequence[Record]] | None:
    """The learning rate that is best on validation, over the seeds that all rates have, and its runs."""
    found = {
        rate: records
        for rate in RATES
        if (records := results.where(data=data, method=method, steps=str(steps), rate=rate, part=WHOLE))
    }
    seeds = [{record.tags["seed"] for record in records} for records in found.values()]
    shared = set.intersection(*seeds) if seeds else set()

    def error(item: tuple[str, Sequence[Record]]) -> float:
        return _validated([record for record in item[1] if record.tags["seed"] in shared] or item[1])

    return min(found.items(), key=error) if found else None


def _mean(records: Sequence[Record], measure: str) -> float:
    return statistics.fmean(record.measures[measure] for record in records)


def _cell(records: Sequence[Record]) -> str:
    error = mean_and_deviation([MSE.scale * record.measures["mse"] for record in records], 2)
    return f"{error} / {mean_and_deviation([record.measures['perplexity'] for record in records], 0)}"


def _table(results: Results, data: str, budgets: Sequence[int]) -> Table:
    rows = []
    for method in (OURS, *RIVALS):
        found = [_best(results, data, steps, method) for steps in budgets]
        cells = ["-" if one is None else f"{_cell(one[1])} ({one[0]})" for one in found]
        rows.append([METHODS[method].label, *cells])
    header = ["model", *(f"{steps:,} steps" for steps in budgets)]
    return Table(f"{data}: {MSE.label} / perplexity on the test set (rate)", header, rows)


def _ablation(results: Results, data: str) -> list[Table]:
    rows = []
    for part in (WHOLE, *(name.replace(" ", "-") for name in PARTS)):
        records = results.where(data=data, method=OURS, rate="8e-3", part=part)
        records = [record for record in records if int(record.tags["steps"]) == _choice(results)]
        if records:
            rows.append([part.replace("-", " "), _cell(records), f"{_gap(records):.3f}"])
    if len(rows) < 2:
        return []
    header = ["schedule", f"{MSE.label} / perplexity", "error of single codes / of mixtures"]
    return [Table(f"{data}: each part taken away, {_choice(results):,} steps", header, rows)]


def _choice(results: Results) -> int:
    return 8 if results.scale.name == "smoke" else CHOICE


def _claims(results: Results, data: str, steps: int) -> list[Claim]:
    ours = _best(results, data, steps, OURS)
    rivals = {method: one for method in RIVALS if (one := _best(results, data, steps, method)) is not None}
    if ours is None or not rivals:
        return []
    strongest = min(rivals, key=lambda method: _validated(rivals[method][1]))
    against = rivals[strongest][1]
    own, other = (MSE.scale * _mean(records, "mse") for records in (ours[1], against))
    used, rival_use = (_mean(records, "perplexity") for records in (ours[1], against))
    most = max(_mean(records, "perplexity") for _, records in rivals.values())
    label = METHODS[strongest].label
    claims = [
        Claim(
            f"{data}, {steps:,} steps: SQ-VAE (I) has no higher an error than the best VQ-VAE of {len(rivals)} run, "
            f"{label}",
            own <= other,
            f"{own:.2f} and {other:.2f}",
        ),
        Claim(
            f"{data}, {steps:,} steps: SQ-VAE (I) has a higher perplexity than all of them",
            used > most,
            f"{used:.0f}, and {most:.0f} at most ({label} has {rival_use:.0f})",
        ),
    ]
    gap = _gap(ours[1])
    claims.append(
        Claim(
            f"{data}, {steps:,} steps: its error with single codes is within 5% of that with mixtures",
            gap <= WITHIN,
            f"{gap:.3f} times",
        )
    )
    averages = [_mean(rivals[method][1], "perplexity") for method in EMA if method in rivals]
    if averages:
        claims.append(
            Claim(
                f"{data}, {steps:,} steps: its perplexity is at least 1.5 times that of VQ-VAE (EMA) with either loss",
                used >= 1.5 * max(averages),
                f"{used / max(averages):.1f} times",
            )
        )
    return claims


def _gap(records: Sequence[Record]) -> float:
    """The ratio of the error with single codes to that with mixtures, on validation, at the end."""
    return statistics.fmean(record.validation.get("mixture_gap", [1.0])[-1] for record in records)


def _claims_of_epochs(results: Results, data: str) -> list[Claim]:
    return [
        Claim(
            f"{data}, {steps:,} steps: SQ-VAE (I) has an error of at most {limit:.2f} x 10^-3",
            MSE.scale * _mean(found[1], "mse") <= limit,
            f"{MSE.scale * _mean(found[1], 'mse'):.3f}",
        )
        for steps, limit in EPOCHS.get(data, {}).items()
        if (found := _best(results, data, steps, OURS)) is not None
    ]


def _by_steps(results: Results, sets: Sequence[str], budgets: Sequence[int]) -> Figure:
    figure = Figure(figsize=(4.6 * len(sets), 6.5), layout="constrained")
    panels = figure.subplots(2, len(sets), squeeze=False)
    for column, data in enumerate(sets):
        for method in (OURS, *RIVALS):
            points = [(steps, one[1]) for steps in budgets if (one := _best(results, data, steps, method)) is not None]
            look = {"color": METHODS[method].colour, "marker": METHODS[method].marker}
            for panel, measure in zip(panels[:, column], ("mse", "perplexity"), strict=True):
                values = [MEASURES[measure].shown(_mean(records, measure)) for _, records in points]
                panel.plot([steps for steps, _ in points], values, label=METHODS[method].label, **look)
        for panel in panels[:, column]:
            _step_axis(panel, budgets)
        panels[0][column].set(title=data, ylabel=MSE.label)
        panels[1][column].set(xlabel="steps of 32 images", ylabel="perplexity, codes")
        fit_heights(panels[1][column], floor=True)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize="small")
    return figure


def _step_axis(panel: Axes, budgets: Sequence[int]) -> None:
    panel.set_xscale("log")
    panel.set_xticks(list(budgets), [f"{steps:,}" for steps in budgets])
    panel.minorticks_off()


def _annealing(results: Results, sets: Sequence[str]) -> Figure:
    curves = {
        "variance": "variance",
        "entropy_per_position": "entropy per position, nats",
        "mse": f"{MSE.label}, training",
    }
    figure = Figure(figsize=(4.6 * len(sets), 8.5), layout="constrained")
    panels = figure.subplots(len(curves), len(sets), squeeze=False)
    for column, data in enumerate(sets):
        for record in results.where(data=data, method=OURS, rate="8e-3", part=WHOLE):
            shares = [step / max(1, record.steps) for step in record.training["step"]]
            for panel, name in zip(panels[:, column], curves, strict=True):
                if name in record.training:
                    values = [MEASURES[name].shown(value) for value in record.training[name]]
                    panel.plot(shares, values, label=f"{record.steps:,} steps")
        panels[0][column].set(title=data, yscale="log")
        panels[2][column].set(xlabel="share of the run", yscale="log")
    for row, label in zip(panels, curves.values(), strict=True):
        row[0].set(ylabel=label)
    handles, labels = panels[0][0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize="small")
    return figure


EVERY_BUDGET = Artefact(
    heading="Every budget",
    title="error and codebook usage by the number of steps, against the best VQ, with an ablation; not in the paper",
    data=tuple(BASES),
    plan=_plan,
    content=_content,
    own_schedule=True,
)

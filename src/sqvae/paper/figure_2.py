"""Figure 2: self-annealing of the quantization's variance, compared with fixed variances."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sqvae.config import Experiment, NetworkSettings
from sqvae.metrics.measures import MEASURES
from sqvae.paper.artefact import MSE, Artefact, Content, Results, resized
from sqvae.paper.dynamics import ends_of, epochs_of
from sqvae.paper.methods import METHODS
from sqvae.paper.scales import Scale
from sqvae.recipes.vision import mnist
from sqvae.reports import Claim, Table, mean_and_deviation
from sqvae.reports.plotting import fit_heights
from sqvae.sweeps import Record

VARIANCES = ("0.1", "0.25", "0.5", "1", "2", "4")
"""The fixed variances of the quantization, for comparison. The paper's text names only `PAPER_S`."""
PAPER_S = "1"

WHY = {
    "variance": (
        "the variance has no scale of its own. If encodings and codes grow by a factor c and the variance by c², all "
        "assignments and the loss stay the same (a test of the quantizers checks this), and in this run the codes "
        "move apart by more. It is the variance relative to their distance that anneals."
    )
}
"""The reason why a curve may differ from the paper's, by its name."""

CURVES = ("variance", "relative_variance", "decoder_variance", "entropy_per_position")


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    """The runs with the two-layer ConvNets of appendix D.3, with 128 codes of 64 dimensions."""
    base = replace(mnist(), network=NetworkSettings(widths=(32, 64), blocks=0))
    if scale.name == "smoke":
        base = resized(base, 16, 16)
    runs: list[tuple[Experiment, Mapping[str, str]]] = [(base, {"method": "sq-vae-1", "network": "two-layer"})]
    for variance in VARIANCES:
        fixed = METHODS["fixed"].applied(base)
        fixed = replace(fixed, quantizer=replace(fixed.quantizer, initial_variance=float(variance)))
        runs.append((fixed, {"method": "fixed", "network": "two-layer", "variance": variance}))
    return runs


def _content(results: Results) -> Content:
    trained = _with_curves(results.where(method="sq-vae-1"))
    every = {variance: _with_curves(results.where(method="fixed", variance=variance)) for variance in VARIANCES}
    fixed = {variance: records for variance, records in every.items() if records}
    figure = Figure(figsize=(14, 4), layout="constrained")
    dynamics, entropy, error = figure.subplots(1, 3)
    _draw_dynamics(dynamics, trained[:1])
    _draw_entropy(entropy, trained[:1], {variance: records[0] for variance, records in fixed.items()})
    _draw_errors(error, trained, fixed)
    rows = [["trained", *_row(trained)]] if trained else []
    rows += [[f"fixed at {variance}", *_row(records)] for variance, records in fixed.items()]
    header = ["quantization variance", MSE.label, "perplexity", "entropy, first", "entropy, last"]
    note = "Entropy per position in nats, over the first and the last twentieth of training."
    caption = (
        "Figure 2. (a) The variances of quantization and decoder during training, relative to the initial value of "
        "the former and the first record of the latter; dotted, the former relative to the codes' mean squared "
        "distance. (b) The entropy per position. (c) The error on the test set, for fixed variances and for the "
        "trained one (line). (a) and (b) are of the first seed."
    )
    return Content(
        tables=[Table("Trained and fixed variances", header, rows, note)],
        drawings={"": (figure, caption)},
        claims=_claims(trained, fixed),
        notes=[
            "The paper shows these as curves, without numbers and without the number of epochs. With a fixed "
            "variance the codes can still move apart, which has the same effect as a smaller variance."
        ],
    )


def _with_curves(records: Sequence[Record]) -> list[Record]:
    """The records that have curves."""
    return [record for record in records if all(record.training.get(name) for name in CURVES)]


def _row(records: Sequence[Record]) -> list[str]:
    ends = [ends_of([record], "entropy_per_position") for record in records]
    return [
        mean_and_deviation([MSE.scale * record.measures["mse"] for record in records], 3),
        mean_and_deviation([record.measures["perplexity"] for record in records], 1),
        mean_and_deviation([first for first, _ in ends], 2),
        mean_and_deviation([last for _, last in ends], 2),
    ]


def _draw_dynamics(axes: Axes, records: Sequence[Record]) -> None:
    for record in records:
        curves, initial = record.training, record.experiment["quantizer"]["initial_variance"]
        for name, first, label, colour, style in (
            ("variance", initial, r"$\sigma_\varphi^2 / \sigma_{\varphi,0}^2$", "tab:blue", "-"),
            ("relative_variance", None, r"$\sigma_\varphi^2$ over the codes' distance", "tab:blue", ":"),
            ("decoder_variance", None, r"$\sigma^2 / \sigma_0^2$", "tab:red", "-"),
        ):
            scale = first or curves[name][0]
            axes.plot(epochs_of(record), [value / scale for value in curves[name]], style, color=colour, label=label)
        axes.legend(fontsize="small")
        fit_heights(axes)
    axes.set(title="(a) variances, relative to the start", xlabel="epoch", ylabel="multiple of the first value")


def _draw_entropy(axes: Axes, trained: Sequence[Record], fixed: Mapping[str, Record]) -> None:
    for record in trained:
        axes.plot(epochs_of(record), record.training["entropy_per_position"], color="tab:blue", lw=2.5, label="trained")
    shades = colormaps["YlOrRd"]
    for number, (variance, record) in enumerate(fixed.items()):
        colour = shades(0.35 + 0.65 * number / max(1, len(fixed) - 1))
        label = rf"$\sigma_q^2 = {variance}$"
        axes.plot(epochs_of(record), record.training["entropy_per_position"], "--", color=colour, label=label)
    axes.set(title="(b) entropy per position", xlabel="epoch", ylabel="nats")
    if trained or fixed:
        fit_heights(axes, log=False, floor=True)
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))


def _draw_errors(axes: Axes, trained: Sequence[Record], fixed: Mapping[str, Sequence[Record]]) -> None:
    if fixed:
        places = [float(variance) for variance in fixed]
        means = [_mean(records, "mse") for records in fixed.values()]
        spreads = [MSE.scale * _deviation([record.measures["mse"] for record in records]) for records in fixed.values()]
        axes.errorbar(places, means, spreads, fmt="--^", color="0.3", capsize=2, label=r"fixed $\sigma_q^2$")
    if trained:
        axes.axhline(_mean(trained, "mse"), color="tab:blue", label=r"trained $\sigma_\varphi^2$")
    axes.set(title="(c) error on the test set", xlabel=r"$\sigma_q^2$", ylabel=MSE.label, xscale="log")
    axes.set_xticks([float(variance) for variance in VARIANCES], VARIANCES)
    axes.minorticks_off()
    if trained or fixed:
        axes.legend(fontsize="small")


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _mean(records: Sequence[Record], measure: str) -> float:
    return MEASURES[measure].shown(statistics.fmean(record.measures[measure] for record in records))


def _claims(trained: Sequence[Record], fixed: Mapping[str, Sequence[Record]]) -> list[Claim]:
    if not trained:
        return []
    claims = []
    for name, text in (
        ("variance", "The trained variance falls"),
        ("relative_variance", "The trained variance falls relative to the codes' mean squared distance"),
        ("decoder_variance", "The decoder's variance falls"),
        ("entropy_per_position", "The entropy falls with a trained variance"),
    ):
        first, last = ends_of(trained, name)
        evidence = f"{first:.3g} at the beginning, {last:.3g} at the end"
        claims.append(Claim(text, last < first, evidence, WHY.get(name, "")))
    if fixed:
        own = _fall(trained)
        falls = {variance: _fall(records) for variance, records in fixed.items()}
        claims.append(
            Claim(
                "With every fixed variance the entropy falls by less than with the trained one",
                all(fall < own for fall in falls.values()),
                f"in nats: trained {own:.2f}; fixed "
                + ", ".join(f"at {variance} {fall:.2f}" for variance, fall in falls.items()),
            )
        )
        if PAPER_S in falls:
            claims.append(
                Claim(
                    f"With the variance fixed at {PAPER_S}, as in the paper, the entropy does not fall",
                    falls[PAPER_S] <= 0,
                    f"it falls by {falls[PAPER_S]:.3f} nats",
                )
            )
        errors = {variance: _mean(records, "mse") for variance, records in fixed.items()}
        best = min(errors, key=lambda variance: errors[variance])
        claims.append(
            Claim(
                "The trained variance has the lowest error of all",
                _mean(trained, "mse") < errors[best],
                f"{MSE.label}: {_mean(trained, 'mse'):.3f} against {errors[best]:.3f} at best, fixed at {best}",
                _why_fixed(best, fixed[best]),
            )
        )
    return claims


def _why_fixed(variance: str, records: Sequence[Record]) -> str:
    """Why a fixed variance may be as good: the distance between codes is not fixed."""
    first, last = ends_of(records, "relative_variance")
    return (
        f"its effect is not fixed, for the reason above. At {variance} it goes from {first:.2g} to {last:.2g} of the "
        "codes' mean squared distance, because the codes move apart with the learning rate of this schedule. Which "
        "fixed value works well has to be found by trial; others of those above are far worse than the trained one."
    )


def _fall(records: Sequence[Record]) -> float:
    first, last = ends_of(records, "entropy_per_position")
    return first - last


FIGURE_2 = Artefact(
    heading="Figure 2, self-annealing",
    title="dynamics of the variances and of the entropy; error against fixed variances (MNIST)",
    data=("mnist",),
    plan=_plan,
    content=_content,
)

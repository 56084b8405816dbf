"""Figure 2: how the quantization's variance goes down by itself, and what a variance that can't costs."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sqvae.experiment import Experiment, NetworkSettings, Record
from sqvae.recipes.artefact import Artefact, Results, resized, setting_of
from sqvae.recipes.methods import METHODS
from sqvae.recipes.scales import Scale
from sqvae.recipes.vision import mnist
from sqvae.reports import Claim, Picture, Report, Table, mean_and_deviation

VARIANCES = ("0.1", "0.25", "0.5", "1", "2", "4")
"""At which the quantization's variance is fixed, for comparison. The paper's text names 0.5, 1 and 2."""


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    """The two-layer ConvNets of appendix D.3, with 128 codes of 64 dimensions."""
    base = replace(mnist(), network=NetworkSettings(widths=(32, 64), blocks=0))
    if scale.name == "smoke":
        base = resized(base, 16, 16)
    trained: dict[str, str] = {"method": "sq-vae-1", "network": "two-layer"}
    runs: list[tuple[Experiment, Mapping[str, str]]] = [(base, trained)]
    for variance in VARIANCES:
        fixed = METHODS["fixed"].applied(base)
        fixed = replace(fixed, quantizer=replace(fixed.quantizer, initial_variance=float(variance)))
        runs.append((fixed, {"method": "fixed", "network": "two-layer", "variance": variance}))
    return runs


def _report(results: Results) -> Report:
    trained = results.where(method="sq-vae-1")
    fixed = {variance: results.where(method="fixed", variance=variance) for variance in VARIANCES}
    fixed = {variance: records for variance, records in fixed.items() if records}
    figure = Figure(figsize=(13, 3.8), layout="constrained")
    dynamics, entropy, error = figure.subplots(1, 3)
    _draw_dynamics(dynamics, trained[:1])
    _draw_entropy(entropy, trained[:1], {variance: records[0] for variance, records in fixed.items()})
    _draw_errors(error, trained, fixed)
    rows = [["trained", *_row(trained)]] + [[f"fixed at {variance}", *_row(fixed[variance])] for variance in fixed]
    header = ["quantization variance", "MSE x 1000", "perplexity", "entropy, first", "entropy, last"]
    return Report(
        name=f"figure-2-{results.scale.name}",
        title=f"Figure 2: self-annealing on {results.data} ({results.scale.name})",
        setting=setting_of(results),
        command=f"sqvae reproduce figure-2 --scale {results.scale.name}",
        tables=[Table("Trained and fixed variances", header, rows, "Entropy of a position's code, in nats.")],
        pictures=[
            Picture(
                f"figure-2-{results.scale.name}",
                figure,
                "Figure 2. (a) The variances of quantization and decoder as training goes on, relative to their first "
                "values; the dotted line is the former over the codes' mean squared distance. (b) The entropy of a "
                "position's code. (c) The error on the test set, for fixed variances and for the trained one (line).",
            )
        ],
        claims=_claims(trained, fixed),
        notes=[
            "The paper shows these as curves and gives no numbers. It names no number of epochs here; we take those of "
            "its other experiments. It fixes the variance and leaves the codes free: they can move apart, which has "
            "the effect of a smaller variance."
        ],
    )


def _row(records: Sequence[Record]) -> list[str]:
    entropies = [record.training["entropy_per_position"] for record in records]
    return [
        mean_and_deviation([1000 * record.measures["mse"] for record in records], 3),
        mean_and_deviation([record.measures["perplexity"] for record in records], 1),
        mean_and_deviation([values[0] for values in entropies], 2),
        mean_and_deviation([values[-1] for values in entropies], 2),
    ]


def _draw_dynamics(axes: Axes, records: Sequence[Record]) -> None:
    curves = (
        ("variance", r"$\sigma_\varphi^2 / \sigma_{\varphi,0}^2$", "tab:blue", "-"),
        ("relative_variance", r"$\sigma_\varphi^2$ over the codes' distance", "tab:blue", ":"),
        ("decoder_variance", r"$\sigma^2 / \sigma_0^2$", "tab:red", "-"),
    )
    for record in records:
        for name, label, colour, style in curves:
            values = record.training[name]
            axes.plot(_epochs(record), [value / values[0] for value in values], style, color=colour, label=label)
    axes.set(title="(a) variances, relative to the start", xlabel="epoch", yscale="log")
    if records:
        axes.legend(fontsize="small")


def _draw_entropy(axes: Axes, trained: Sequence[Record], fixed: Mapping[str, Record]) -> None:
    for record in trained:
        axes.plot(_epochs(record), record.training["entropy_per_position"], color="tab:blue", label="trained")
    for shade, (variance, record) in enumerate(fixed.items()):
        colour = str(0.2 + 0.6 * shade / max(1, len(fixed) - 1))
        label = rf"$\sigma_q^2 = {variance}$"
        axes.plot(_epochs(record), record.training["entropy_per_position"], "--", color=colour, label=label)
    axes.set(title="(b) entropy of a position's code, in nats", xlabel="epoch")
    axes.set_ylim(bottom=0)
    if trained or fixed:
        axes.legend(fontsize="small")


def _draw_errors(axes: Axes, trained: Sequence[Record], fixed: Mapping[str, Sequence[Record]]) -> None:
    if fixed:
        means = [_mean_error(records) for records in fixed.values()]
        axes.plot([float(variance) for variance in fixed], means, "--^", color="0.3", label=r"fixed $\sigma_q^2$")
    if trained:
        axes.axhline(_mean_error(trained), color="tab:blue", label=r"trained $\sigma_\varphi^2$")
    axes.set(title="(c) MSE x 1000, test set", xlabel=r"$\sigma_q^2$", xscale="log")
    if trained or fixed:
        axes.legend(fontsize="small")


def _epochs(record: Record) -> list[float]:
    per_epoch = record.steps / max(1, record.experiment["training"]["epochs"])
    return [step / per_epoch for step in record.training["step"]]


def _mean_error(records: Sequence[Record]) -> float:
    return 1000 * statistics.fmean(record.measures["mse"] for record in records)


def _claims(trained: Sequence[Record], fixed: Mapping[str, Sequence[Record]]) -> list[Claim]:
    claims = []
    for record in trained[:1]:
        for name, words in (
            ("relative_variance", "the trained variance falls, relative to the codes' mean squared distance"),
            ("decoder_variance", "the decoder's variance falls with it"),
            ("entropy_per_position", "the entropy falls with a trained variance"),
        ):
            first, last = _ends(record.training[name])
            claims.append(
                Claim(words.capitalize(), last < first, f"{first:.3g} in the beginning, {last:.3g} at the end")
            )
    if trained and fixed:
        ratios = {variance: _ratio(records[0]) for variance, records in fixed.items()}
        own = _ratio(trained[0])
        claims.append(
            Claim(
                "With every fixed variance the entropy falls by less than with the trained one",
                all(ratio > own for ratio in ratios.values()),
                f"last over first: trained {own:.2f}; fixed "
                + ", ".join(f"{variance}: {ratio:.2f}" for variance, ratio in ratios.items()),
            )
        )
        errors = {variance: _mean_error(records) for variance, records in fixed.items()}
        best = min(errors, key=lambda variance: errors[variance])
        claims.append(
            Claim(
                "The trained variance has the lowest error of all",
                _mean_error(trained) < errors[best],
                f"MSE x 1000: {_mean_error(trained):.3f}, against {errors[best]:.3f} at best, fixed at {best}",
            )
        )
    return claims


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Means over the first and the last twentieth of a curve: single batches are noisy."""
    some = max(1, len(values) // 20)
    return statistics.fmean(values[:some]), statistics.fmean(values[-some:])


def _ratio(record: Record) -> float:
    first, last = _ends(record.training["entropy_per_position"])
    return last / max(first, 1e-9)


FIGURE_2 = Artefact(
    title="dynamics of the variances and of the entropy; error against fixed variances (MNIST)",
    data=("mnist",),
    plan=_plan,
    report=_report,
)

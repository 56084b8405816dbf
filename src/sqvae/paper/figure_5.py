"""Figure 5: error and codebook usage, by the size and the dimension of the codebook."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from sqvae.config import Experiment
from sqvae.metrics.measures import MEASURES, Measure
from sqvae.paper.artefact import MSE, Artefact, Content, Results, resized
from sqvae.paper.methods import METHODS
from sqvae.paper.scales import Scale
from sqvae.recipes.vision import cifar10, fashion_mnist, mnist
from sqvae.reports import Claim, Table, mean_and_deviation
from sqvae.reports.plotting import fit_heights

ROWS = ("sq-vae-1", "vq-vae-ema", "vq-vae-ema-reset", "fixed")
"""The models that the paper compares."""

CLOSED = ("vq-vae-ema-closed", "vq-vae-ema-reset-closed")
"""VQ-VAE with SQ-VAE's own likelihood, D/2 log(MSE)."""

EXTRA = ("vq-vae", *CLOSED)
"""Models that are not in the paper's figure."""

BASES = {"mnist": mnist, "fashion-mnist": fashion_mnist, "cifar10": cifar10}

MODERATE = 256
"""Up to this K, a run of any length should use most codes."""


WHY_USED_LESS = (
    "code reset splits the most used codes, including those of the background, for which any of many codes would do. "
    "Even usage by itself does not lower the error: with a larger weight of evenness, the perplexity of SQ-VAE "
    "rises, and its error as well (tested in docs/schedule.md)."
)
"""The reason if a baseline on digits has a higher perplexity and a higher error."""

WHY_FIXED = (
    "the effect of a fixed variance is not fixed (see figure 2): codes that move apart with the learning rate of "
    "this schedule have the same effect as a decreasing variance, if the fixed value is suitable."
)
"""The reason if the baseline with a fixed variance has the lower error."""


@dataclass(frozen=True)
class Grid:
    """The codebook sizes and dimensions of the sweeps."""

    sizes: Mapping[str, tuple[int, ...]]
    """The values of K for each data set, with the dimension `dim`."""
    dims: tuple[int, ...]
    """The values of d_b, with the K of each data set in `size`."""
    size: Mapping[str, int]
    dim: int


FULL = Grid(
    sizes={
        "mnist": (16, 32, 64, 128, 256, 512),
        "fashion-mnist": (16, 32, 64, 128, 256, 512),
        "cifar10": (32, 64, 128, 256, 512, 1024),
    },
    dims=(8, 16, 32, 64, 128),
    size={"mnist": 128, "fashion-mnist": 256, "cifar10": 512},
    dim=64,
)
SMALL = Grid(sizes=dict.fromkeys(BASES, (8, 16)), dims=(8, 16), size=dict.fromkeys(BASES, 16), dim=16)


@dataclass(frozen=True)
class Axis:
    """One of the two sweeps."""

    name: str
    fixed: str
    """A description of what is fixed."""
    points: Mapping[int, Mapping[str, str]]
    """The tags of each point."""


def _grid(scale: Scale) -> Grid:
    return SMALL if scale.name == "smoke" else FULL


def _axes(grid: Grid, data: str) -> tuple[Axis, Axis]:
    size, dim = grid.size[data], grid.dim
    return (
        Axis("K", f"d_b = {dim}", {k: {"k": str(k), "d": str(dim)} for k in grid.sizes[data]}),
        Axis("d_b", f"K = {size}", {d: {"k": str(size), "d": str(d)} for d in grid.dims}),
    )


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    points = {
        (int(tags["k"]), int(tags["d"])): None for axis in _axes(_grid(scale), data) for tags in axis.points.values()
    }
    return [
        (METHODS[method].applied(resized(BASES[data](), k, d)), {"method": method, "k": str(k), "d": str(d)})
        for k, d in points
        for method in (*ROWS, *EXTRA)
    ]


def _content(results: Results) -> Content:
    grid = _grid(results.scale)
    sets = [name for name in BASES if results.where(data=name)]
    tables: list[Table] = []
    claims: list[Claim] = []
    for data in sets:
        for axis in _axes(grid, data):
            points = {point for method in _present(results, data) for point in _found(results, data, axis, method)}
            if points > {grid.dim} or (points and axis.name == "K"):  # both sweeps contain the point where they meet
                tables.append(_table(results, data, axis))
                claims += _claims(results, data, axis)
    sweep = (
        "Figure 5. Error and perplexity on the test set, by the codebook's size K (upper half) and by its dimension "
        "(lower half). The black line with crosses is K, the maximum of perplexity."
    )
    curves = "Validation during training, at the point where both sweeps meet; the dashed line is K."
    return Content(
        tables=tables,
        drawings={"": (_sweeps(results, sets, grid), sweep), "-curves": (_curves(results, sets, grid), curves)},
        claims=claims,
        notes=[
            "The paper shows these as curves, without numbers. According to the paper, SQ-VAE has the lowest error "
            "and the highest perplexity in most settings after 100 epochs, and both improve with the codebook's size "
            "and dimension.",
        ],
    )


def _present(results: Results, data: str) -> list[str]:
    return [method for method in METHODS if results.where(data=data, method=method)]


def _sweeps(results: Results, sets: Sequence[str], grid: Grid) -> Figure:
    figure = Figure(figsize=(4.3 * len(sets) + 1, 11.5), layout="constrained")
    panels = figure.subplots(4, len(sets), squeeze=False, sharex=False)
    for column, data in enumerate(sets):
        for row, axis in enumerate(_axes(grid, data)):
            upper, lower = panels[2 * row][column], panels[2 * row + 1][column]
            _draw(upper, results, data, axis, MSE)
            _draw(lower, results, data, axis, MEASURES["perplexity"])
            lower.plot(list(axis.points), [int(tags["k"]) for tags in axis.points.values()], "k+--", label="K")
            upper.set(title=f"{data} ({axis.fixed})", ylabel=f"{MSE.label}, test set")
            lower.set(xlabel=axis.name, ylabel="perplexity, test set, codes")
            for axes in (upper, lower):
                _plain_logarithms(axes, list(axis.points))
    _legend(figure, [panel for row in panels for panel in row])
    return figure


def _draw(axes: Axes, results: Results, data: str, axis: Axis, measure: Measure) -> None:
    for method in _present(results, data):
        found = _found(results, data, axis, method, measure.name)
        if found:
            style = METHODS[method]
            axes.errorbar(
                list(found),
                [measure.shown(statistics.fmean(values)) for values in found.values()],
                [measure.shown(statistics.stdev(values)) if len(values) > 1 else 0 for values in found.values()],
                color=style.colour,
                marker=style.marker,
                markersize=4,
                capsize=2,
                label=style.label,
            )


def _found(results: Results, data: str, axis: Axis, method: str, measure: str = "mse") -> dict[int, list[float]]:
    """The values of a measure at the points of a sweep, for each seed."""
    every = {point: results.values(measure, data=data, method=method, **tags) for point, tags in axis.points.items()}
    return {point: values for point, values in every.items() if values}


def _plain_logarithms(axes: Axes, points: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(points, [str(point) for point in points])
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.yaxis.set_minor_formatter(NullFormatter())
    low, high = axes.get_ylim()
    ticks = [step * 10.0**power for power in range(-3, 5) for step in (1, 1.5, 2, 3, 5, 7)]
    shown = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(shown, [f"{tick:g}" for tick in shown])
    axes.minorticks_off()


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """Draw one legend for all panels."""
    entries = {
        label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    if entries:
        figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=3, fontsize="small")


def _curves(results: Results, sets: Sequence[str], grid: Grid) -> Figure:
    """Error and perplexity on the validation set after each epoch, where both sweeps meet."""
    figure = Figure(figsize=(4.3 * len(sets) + 1, 6), layout="constrained")
    panels = figure.subplots(2, len(sets), squeeze=False)
    for column, data in enumerate(sets):
        upper, lower = panels[0][column], panels[1][column]
        middle = {"data": data, "k": str(grid.size[data]), "d": str(grid.dim)}
        for method in _present(results, data):
            for record in results.where(method=method, **middle)[:1]:
                curves, style = record.validation, METHODS[method]
                errors = [MSE.scale * value for value in curves["mse"]]
                upper.plot(curves["epoch"], errors, color=style.colour, label=style.label)
                lower.plot(curves["epoch"], curves["perplexity"], color=style.colour)
        upper.set(title=f"{data} (K = {middle['k']}, d_b = {middle['d']})", ylabel=f"{MSE.label}, validation")
        lower.set(xlabel="epoch", ylabel="perplexity, validation, codes")
        lower.axhline(grid.size[data], color="black", linestyle="--")
        fit_heights(upper)
        fit_heights(lower, log=False, floor=True)
    _legend(figure, list(panels[0]))
    return figure


def _table(results: Results, data: str, axis: Axis) -> Table:
    rows = []
    for method in _present(results, data):
        errors, uses = (_found(results, data, axis, method, measure) for measure in ("mse", "perplexity"))
        cells = [
            f"{mean_and_deviation([*map(MSE.shown, errors[point])], 3)} / {mean_and_deviation(uses[point], 1)}"
            if point in errors
            else "-"
            for point in axis.points
        ]
        if errors:
            rows.append([METHODS[method].label, *cells])
    header = [f"{axis.name} =", *map(str, axis.points)]
    return Table(f"{data}, {axis.fixed}: {MSE.label} / perplexity", header, rows)


def _claims(results: Results, data: str, axis: Axis) -> list[Claim]:
    means: dict[str, dict[int, tuple[float, float]]] = {}
    for method in _present(results, data):
        errors, uses = (_found(results, data, axis, method, measure) for measure in ("mse", "perplexity"))
        means[method] = {
            point: (MSE.scale * statistics.fmean(errors[point]), statistics.fmean(uses[point])) for point in errors
        }
    own = means.get("sq-vae-1", {})
    rivals = [method for method in ROWS if method != "sq-vae-1" and means.get(method)]
    claims = []
    if own and rivals:
        claims += _against(data, axis, means, rivals)
    closed = [method for method in CLOSED if means.get(method)]
    if own and closed:
        claims += _against(data, axis, means, closed)
    if axis.name == "K":
        shares = {size: use / size for size, (_, use) in own.items() if size <= MODERATE}
        if shares:
            claims.append(
                Claim(
                    f"{data}: the perplexity of SQ-VAE (I) is at least 0.6 K for K = {_listed(shares)}",
                    all(share >= 0.6 for share in shares.values()),
                    "of K: " + ", ".join(f"{share:.2f}" for share in shares.values()),
                )
            )
    if len(own) > 1:
        errors_in_order = [own[point][0] for point in sorted(own)]
        claims.append(
            Claim(
                f"{data}: the error of SQ-VAE (I) falls as {axis.name} grows",
                all(after < before for before, after in pairwise(errors_in_order)),
                f"{MSE.label} for {axis.name} = {_listed(sorted(own))}: "
                + ", ".join(f"{error:.2f}" for error in errors_in_order),
            )
        )
    return claims


def _against(
    data: str,
    axis: Axis,
    means: Mapping[str, Mapping[int, tuple[float, float]]],
    rivals: Sequence[str],
) -> list[Claim]:
    """Claims about SQ-VAE (I) against others, at the points that both have."""
    own = means["sq-vae-1"]
    theirs = {point: [means[rival][point] for rival in rivals if point in means[rival]] for point in own}
    theirs = {point: models for point, models in theirs.items() if models}
    if not theirs:
        return []
    lowest = {point: min(error for error, _ in models) for point, models in theirs.items()}
    highest = {point: max(use for _, use in models) for point, models in theirs.items()}
    ahead = {
        f"{axis.name} = {point}, {METHODS[rival].label}": means[rival][point][0] / own[point][0]
        for point in theirs
        for rival in rivals
        if point in means[rival] and means[rival][point][1] >= own[point][1]
    }
    lower = {rival for rival in rivals for point in theirs if means[rival].get(point, own[point])[0] < own[point][0]}
    where = f"{axis.name} = {_listed(theirs)}"
    named = "the paper's baselines" if len(rivals) == len(ROWS) - 1 else ", ".join(METHODS[r].label for r in rivals)
    return [
        Claim(
            f"{data}, {axis.fixed}: SQ-VAE (I) has a higher perplexity than {named} at {where}",
            all(own[point][1] > highest[point] for point in theirs),
            "; ".join(f"{own[point][1]:.1f} against {highest[point]:.1f}" for point in theirs) + _at_what_error(ahead),
            WHY_USED_LESS if data == "mnist" and all(ratio > 1 for ratio in ahead.values()) else "",
        ),
        Claim(
            f"{data}, {axis.fixed}: SQ-VAE (I) has a lower error than {named} at {where}",
            all(own[point][0] < lowest[point] for point in theirs),
            f"{MSE.label}: " + "; ".join(f"{own[point][0]:.2f} against {lowest[point]:.2f}" for point in theirs),
            WHY_FIXED if lower == {"fixed"} else "",
        ),
    ]


def _at_what_error(ahead: Mapping[str, float]) -> str:
    """The errors of models that use more codes, relative to ours."""
    if not ahead:
        return ""
    costs = "; ".join(f"{where}: {ratio:.2f} times" for where, ratio in ahead.items())
    return f". The errors of models with a higher perplexity, relative to SQ-VAE (I): {costs}"


def _listed(numbers: Sequence[int] | Mapping[int, object]) -> str:
    return ", ".join(map(str, numbers))


FIGURE_5 = Artefact(
    heading="Figure 5, the codebook's size and dimension",
    title="error and perplexity by the codebook's size and dimension (MNIST, Fashion-MNIST, CIFAR10)",
    data=tuple(BASES),
    plan=_plan,
    content=_content,
    extra=EXTRA,
)

"""Figure 5: error and use of codes, by the size and the dimension of the codebook."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sqvae.experiment import Experiment
from sqvae.recipes.artefact import Artefact, Results, resized, setting_of
from sqvae.recipes.methods import METHODS
from sqvae.recipes.scales import Scale
from sqvae.recipes.vision import cifar10, fashion_mnist, mnist
from sqvae.reports import Claim, Picture, Report, Table, mean_and_deviation

ROWS = ("sq-vae-1", "vq-vae-ema", "vq-vae-ema-reset", "fixed")
"""The models that the paper compares."""

EXTRA = ("vq-vae", "vq-vae-ema-closed")
"""Models that it leaves out, for those who ask."""

BASES = {"mnist": mnist, "fashion-mnist": fashion_mnist, "cifar10": cifar10}


@dataclass(frozen=True)
class Grid:
    """The sizes and dimensions that are swept."""

    sizes: Mapping[str, tuple[int, ...]]
    """K, by set, at `dim`."""
    dims: tuple[int, ...]
    """d_b, at the set's own K."""
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


def _grid(scale: Scale) -> Grid:
    return SMALL if scale.name == "smoke" else FULL


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    grid = _grid(scale)
    points = [(size, grid.dim) for size in grid.sizes[data]]
    points += [(grid.size[data], dim) for dim in grid.dims if (grid.size[data], dim) not in points]
    return [
        (
            METHODS[method].applied(resized(BASES[data](), size, dim)),
            {"method": method, "k": str(size), "d": str(dim)},
        )
        for size, dim in points
        for method in (*ROWS, *EXTRA)
    ]


def _report(results: Results) -> Report:
    grid = _grid(results.scale)
    sets = [name for name in BASES if results.where(data=name)]
    figure = Figure(figsize=(4.3 * max(1, len(sets)), 11), layout="constrained")
    panels = figure.subplots(4, max(1, len(sets)), squeeze=False)
    tables: list[Table] = []
    claims: list[Claim] = []
    for column, data in enumerate(sets):
        title = data
        by_size = {str(size): {"k": str(size), "d": str(grid.dim)} for size in grid.sizes[data]}
        by_dim = {str(dim): {"k": str(grid.size[data]), "d": str(dim)} for dim in grid.dims}
        for row, (axis, points, words) in enumerate(
            (("K", by_size, f"$d_b = {grid.dim}$"), ("$d_b$", by_dim, f"$K = {grid.size[data]}$"))
        ):
            upper, lower = panels[2 * row][column], panels[2 * row + 1][column]
            _draw(upper, results, data, points, "mse", 1000)
            _draw(lower, results, data, points, "perplexity", 1)
            bounds = [int(tags["k"]) for tags in points.values()]
            lower.plot([int(point) for point in points], bounds, "k+--", label="K")
            upper.set(title=f"{title} ({words})", ylabel="MSE x 1000", yscale="log")
            lower.set(xlabel=axis, ylabel="perplexity", yscale="log")
            upper.set_xticklabels([])
            if column == 0 and row == 0:
                upper.legend(fontsize="small")
        tables += [
            _table(results, data, f"{data}, d_b = {grid.dim}, by K", by_size),
            _table(results, data, f"{data}, K = {grid.size[data]}, by d_b", by_dim),
        ]
        claims += _claims(results, data, by_size)
    name = f"figure-5-{results.scale.name}"
    return Report(
        name=name,
        title=f"Figure 5: the codebook's size and dimension ({results.scale.name})",
        setting=setting_of(results),
        command=f"sqvae reproduce figure-5 --scale {results.scale.name}",
        tables=tables,
        pictures=[
            Picture(
                name,
                figure,
                "Figure 5. Error and perplexity on the test set, by the codebook's size K (upper half) and by its "
                "dimension (lower half). The black line with crosses is K, which perplexity can't exceed.",
            ),
            Picture(
                f"{name}-curves",
                _curves(results, sets, grid),
                "Validation as training goes on, at the K of the lower half and the dimension of the upper half.",
            ),
        ],
        claims=claims,
        notes=[
            "The paper shows these as curves and gives no numbers; in its words SQ-VAE has the lowest error and the "
            "highest perplexity in most settings, after 100 epochs."
        ],
    )


def _draw(
    axes: Axes, results: Results, data: str, points: Mapping[str, Mapping[str, str]], measure: str, unit: float
) -> None:
    for method in _present(results, data):
        drawn = {
            int(point): values
            for point, tags in points.items()
            if (values := [unit * value for value in results.values(measure, data=data, method=method, **tags)])
        }
        if drawn:
            style = METHODS[method]
            axes.errorbar(
                list(drawn),
                [statistics.fmean(values) for values in drawn.values()],
                [statistics.stdev(values) if len(values) > 1 else 0 for values in drawn.values()],
                color=style.colour,
                marker=style.marker,
                markersize=4,
                capsize=2,
                label=style.label,
            )
    axes.set_xscale("log", base=2)
    axes.set_xticks([int(point) for point in points], list(points))
    axes.minorticks_off()


def _curves(results: Results, sets: Sequence[str], grid: Grid) -> Figure:
    """Error and perplexity on the validation set after each epoch, where both sweeps meet."""
    figure = Figure(figsize=(4.3 * max(1, len(sets)), 5.5), layout="constrained")
    panels = figure.subplots(2, max(1, len(sets)), squeeze=False)
    for column, data in enumerate(sets):
        middle = {"data": data, "k": str(grid.size[data]), "d": str(grid.dim)}
        for method in _present(results, data):
            for record in results.where(method=method, **middle)[:1]:
                curves, style = record.validation, METHODS[method]
                errors = [1000 * value for value in curves["mse"]]
                panels[0][column].plot(curves["epoch"], errors, color=style.colour, label=style.label)
                panels[1][column].plot(curves["epoch"], curves["perplexity"], color=style.colour)
        panels[0][column].set(title=f"{data} (K = {middle['k']}, d_b = {middle['d']})", yscale="log")
        panels[1][column].set(xlabel="epoch")
        panels[1][column].axhline(grid.size[data], color="black", linestyle="--")
    panels[0][0].set(ylabel="MSE x 1000")
    panels[1][0].set(ylabel="perplexity")
    if panels[0][0].get_legend_handles_labels()[0]:
        panels[0][0].legend(fontsize="small")
    return figure


def _present(results: Results, data: str) -> list[str]:
    return [method for method in METHODS if results.where(data=data, method=method)]


def _table(results: Results, data: str, title: str, points: Mapping[str, Mapping[str, str]]) -> Table:
    rows = []
    for method in _present(results, data):
        cells = []
        for tags in points.values():
            errors = [1000 * value for value in results.values("mse", data=data, method=method, **tags)]
            uses = results.values("perplexity", data=data, method=method, **tags)
            cells.append(f"{mean_and_deviation(errors, 3)} / {mean_and_deviation(uses, 1)}" if errors else "-")
        rows.append([METHODS[method].label, *cells])
    return Table(f"{title}: MSE x 1000 / perplexity", ["model", *points], rows)


def _claims(results: Results, data: str, points: Mapping[str, Mapping[str, str]]) -> list[Claim]:
    found = {
        int(size): {
            method: (
                statistics.fmean(results.values("mse", data=data, method=method, **tags)),
                statistics.fmean(results.values("perplexity", data=data, method=method, **tags)),
            )
            for method in ROWS
            if results.where(data=data, method=method, **tags)
        }
        for size, tags in points.items()
    }
    whole = {size: models for size, models in found.items() if len(models) == len(ROWS)}
    own = {size: models["sq-vae-1"] for size, models in found.items() if "sq-vae-1" in models}
    claims = []
    if whole:
        rivals = {
            size: [measured for name, measured in models.items() if name != "sq-vae-1"]
            for size, models in whole.items()
        }
        others = {size: max(use for _, use in models) for size, models in rivals.items()}
        lowest = {size: min(error for error, _ in models) for size, models in rivals.items()}
        claims.append(
            Claim(
                f"{data}: SQ-VAE (I) has the highest perplexity at every K",
                all(whole[size]["sq-vae-1"][1] > others[size] for size in whole),
                "; ".join(f"K = {size}: {whole[size]['sq-vae-1'][1]:.1f} against {others[size]:.1f}" for size in whole),
            )
        )
        claims.append(
            Claim(
                f"{data}: SQ-VAE (I) has the lowest error at every K",
                all(whole[size]["sq-vae-1"][0] < lowest[size] for size in whole),
                "MSE x 1000: "
                + "; ".join(
                    f"K = {size}: {1000 * whole[size]['sq-vae-1'][0]:.2f} against {1000 * lowest[size]:.2f}"
                    for size in whole
                ),
            )
        )
    moderate = {size: use / size for size, (_, use) in own.items() if size <= 256}
    if moderate:
        claims.append(
            Claim(
                f"{data}: the perplexity of SQ-VAE (I) is at least 0.6 K for K up to 256",
                all(share >= 0.6 for share in moderate.values()),
                ", ".join(f"K = {size}: {share:.2f}" for size, share in moderate.items()),
            )
        )
    if len(own) > 1:
        errors = [own[size][0] for size in sorted(own)]
        claims.append(
            Claim(
                f"{data}: the error of SQ-VAE (I) falls as K grows",
                all(after < before for before, after in pairwise(errors)),
                "MSE x 1000: " + ", ".join(f"{1000 * error:.2f}" for error in errors),
            )
        )
    return claims


FIGURE_5 = Artefact(
    title="error and perplexity by the codebook's size and dimension (MNIST, Fashion-MNIST, CIFAR10)",
    data=tuple(BASES),
    plan=_plan,
    report=_report,
    extra=EXTRA,
)

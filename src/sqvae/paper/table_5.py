"""Table 5: grey levels as 256 ordered categories."""

import statistics
from collections.abc import Mapping
from itertools import pairwise

from sqvae.config import Experiment
from sqvae.metrics.measures import MEASURES
from sqvae.paper.artefact import MSE, Artefact, Content, Results, resized
from sqvae.paper.methods import CATEGORICAL, categorical
from sqvae.paper.scales import Scale
from sqvae.paper.side_by_side import side_by_side
from sqvae.recipes.categories import gray_celeba, mnist_levels
from sqvae.reports import Claim, Table, mean_and_deviation

PAPER: Mapping[str, Mapping[str, str]] = {
    "mnist": {
        "vae": "22.80 ± 0.32",
        "vq-vae-ema": "6.24 ± 0.18",
        "nc-sq-vae": "10.89 ± 0.47",
        "vmf-sq-vae": "1.63 ± 0.21",
    },
    "celeba": {
        "vae": "17.73 ± 0.23",
        "vq-vae-ema": "5.19 ± 0.06",
        "nc-sq-vae": "3.88 ± 0.02",
        "vmf-sq-vae": "2.37 ± 0.01",
    },
}
"""The paper's mean squared error of values in [0, 1], x 1000."""

BASES = {"mnist": mnist_levels, "celeba": gray_celeba}
LABELS = {"mnist": "MNIST", "celeba": "Gray-CelebA"}

SMALL = 2.2
"""An upper limit for the error of vMF SQ-VAE on MNIST after 20 epochs, x 1000."""


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    base = BASES[data]()
    base = resized(base, 16, 16) if scale.name == "smoke" else base
    tags = {"k": str(base.quantizer.codebook_size), "d": str(base.quantizer.dim), "kind": "levels"}
    variance = 10 if data == "mnist" else 20
    return [(experiment, {"method": name, **tags}) for name, experiment in categorical(base, variance).items()]


def _content(results: Results) -> Content:
    tables, drawings, claims, notes = [], {}, [], []
    for data in BASES:
        methods = [method for method in CATEGORICAL if results.where(data=data, method=method)]
        if not methods:
            continue
        rows = [
            [
                CATEGORICAL[method].label,
                mean_and_deviation([MSE.scale * value for value in results.values("mse", data=data, method=method)], 3),
                mean_and_deviation(
                    [
                        MEASURES["pixel_error"].shown(value)
                        for value in results.values("pixel_error", data=data, method=method)
                    ],
                    1,
                ),
                mean_and_deviation(results.values("perplexity", data=data, method=method), 1),
                PAPER[data][method],
            ]
            for method in methods
        ]
        header = ["model", MSE.label, "levels not exact, %", "perplexity", f"paper's {MSE.label}"]
        tables.append(Table(f"{LABELS[data]}, test set", header, rows))
        caption = f"Some images of the test set of {LABELS[data]}, and their reconstructions by each model."
        drawings[f"-{data}"] = (side_by_side(results, methods, data=data), caption)
        claims += _claims(results, data, methods)
        notes += _where_inexact(results, data, methods)
    return Content(tables=tables, drawings=drawings, claims=claims, notes=notes)


def _where_inexact(results: Results, data: str, methods: list[str]) -> list[str]:
    """A note for the case that the model with the lowest error has the fewest exact levels."""
    wrong, errors = (
        {method: statistics.fmean(results.values(measure, data=data, method=method)) for method in methods}
        for measure in ("pixel_error", "mse")
    )
    most, least = max(wrong, key=lambda method: wrong[method]), min(errors, key=lambda method: errors[method])
    if len(methods) < 2 or not most == least == "vmf-sq-vae":
        return []
    return [
        f"{LABELS[data]}: vMF SQ-VAE has the fewest exact levels and yet the lowest error: an error of one level "
        "costs it almost nothing, but costs a softmax as much as an error of a hundred levels."
    ]


def _claims(results: Results, data: str, methods: list[str]) -> list[Claim]:
    means = {m: MSE.scale * statistics.fmean(results.values("mse", data=data, method=m)) for m in methods}
    ours = means.pop("vmf-sq-vae", None)
    claims = []
    if ours is not None and means:
        named = ", ".join(CATEGORICAL[method].label for method in means)
        claims.append(
            Claim(
                f"{LABELS[data]}: vMF SQ-VAE has a lower error than {named}",
                ours < min(means.values()),
                f"{MSE.label}: {ours:.2f} against {min(means.values()):.2f} at best",
            )
        )
    if ours is not None and data == "mnist":
        claims.append(
            Claim(
                f"{LABELS[data]}: the error of vMF SQ-VAE is at most {SMALL} (a limit that is not from the paper)",
                ours <= SMALL,
                f"{ours:.3f}",
            )
        )
    order = sorted(means, key=lambda method: float(PAPER[data][method].split()[0]))
    if len(order) > 1:
        errors = [means[method] for method in order]
        claims.append(
            Claim(
                f"{LABELS[data]}: the others have the paper's order, {', '.join(CATEGORICAL[m].label for m in order)}",
                all(before < after for before, after in pairwise(errors)),
                f"{MSE.label}: " + ", ".join(f"{error:.2f}" for error in errors),
            )
        )
    return claims


TABLE_5 = Artefact(
    heading="Table 5, grey levels as categories",
    title="all models on grey levels as 256 categories: error (MNIST, Gray-CelebA)",
    data=tuple(BASES),
    plan=_plan,
    content=_content,
    short_epochs=20,
)

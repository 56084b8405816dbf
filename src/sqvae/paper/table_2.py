"""Table 2: all models on CelebA. Figures 6 and 7: reconstructions and samples of the same runs, side by side."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqvae.analysis import BASELINES
from sqvae.config import Experiment, PriorSettings, prior_plan
from sqvae.paper.artefact import MSE, Artefact, Content, Results, resized
from sqvae.paper.methods import METHODS
from sqvae.paper.priors import about_priors
from sqvae.paper.scales import Scale
from sqvae.paper.side_by_side import side_by_side
from sqvae.recipes.vision import celeba
from sqvae.reports import Claim, Table, mean_and_deviation
from sqvae.sweeps import Sequel

PAPER = {
    "vae": "4.79 ± 0.01",
    "vq-vae-ema": "1.33 ± 0.41",
    "vq-vae-ema-reset": "1.62 ± 0.36",
    "fixed": "1.09 ± 0.01",
    "sq-vae-1": "0.96 ± 0.01",
    "sq-vae-2": "0.98 ± 0.01",
    "sq-vae-3": "0.96 ± 0.00",
}
"""The paper's MSE x 1000 on the test set of CelebA."""

DISTANCES = {
    "reconstruction": "rFID",
    "samples": "FID, samples",
    "neighbor-3": "FID, neighbor-3",
    "neighbor-5": "FID, neighbor-5",
    "neighbor-10": "FID, neighbor-10",
    "interpolation": "FID, interpolation",
}
"""The sets that are compared with real images, and the names of their distances in the paper."""

PAPER_DISTANCES = {
    "vae": ("40.3 ± 0.3", "-", "-", "-", "-", "-"),
    "vq-vae-ema": ("18.5 ± 5.1", "42.0 ± 11.5", "31.9 ± 14.8", "42.8 ± 20.7", "70.7 ± 35.4", "28.2 ± 6.4"),
    "vq-vae-ema-reset": ("22.0 ± 5.9", "51.8 ± 10.8", "39.7 ± 12.0", "52.7 ± 14.7", "83.2 ± 20.4", "32.6 ± 7.1"),
    "fixed": ("15.9 ± 0.1", "38.2 ± 0.9", "20.0 ± 0.4", "26.4 ± 0.8", "41.5 ± 2.1", "18.6 ± 0.3"),
    "sq-vae-1": ("14.8 ± 0.3", "28.2 ± 0.9", "17.8 ± 0.1", "21.9 ± 0.1", "33.1 ± 0.3", "17.6 ± 0.6"),
    "sq-vae-2": ("14.3 ± 0.2", "27.7 ± 1.1", "17.8 ± 0.2", "22.2 ± 0.4", "34.0 ± 0.9", "17.6 ± 0.1"),
    "sq-vae-3": ("13.9 ± 0.1", "28.1 ± 0.3", "17.3 ± 0.2", "21.6 ± 0.3", "33.5 ± 0.6", "18.5 ± 0.4"),
}
"""The paper's distances on CelebA."""

EXTRA = ("vq-vae", "vq-vae-ema-closed", "sq-vae-4")
"""Models that are not in the paper's table; its authors call type IV unstable on CelebA."""

CELEBA = 202_599
"""The number of images in CelebA."""


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    base = resized(celeba(), 16, 16) if scale.name == "smoke" else celeba()
    size, dim = str(base.quantizer.codebook_size), str(base.quantizer.dim)
    return [(METHODS[method].applied(base), {"method": method, "k": size, "d": dim}) for method in (*PAPER, *EXTRA)]


def _present(results: Results) -> list[str]:
    return [method for method in (*PAPER, *EXTRA) if results.where(method=method)]


def _table(results: Results) -> Content:
    on_celeba = all(sum(record.pictures.values()) == CELEBA for record in results.records)
    rows = []
    for method in _present(results):
        errors = [MSE.scale * value for value in results.values("mse", method=method)]
        uses = results.values("perplexity", method=method)
        cells = [mean_and_deviation(errors), mean_and_deviation(uses, 1)]
        rows.append([METHODS[method].label, *cells, *([PAPER.get(method, "-")] if on_celeba else [])])
    header = ["model", MSE.label, "perplexity", *([f"paper's {MSE.label}"] if on_celeba else [])]
    notes = [] if on_celeba else ["This is not the paper's CelebA: the paper's numbers do not apply."]
    tables = [Table("Test set", header, rows)]
    if results.sequels:
        tables.append(_distances(results.second_stage))
        if on_celeba:
            tables.append(_paper_distances(_present(results)))
        notes += about_priors(results.second_stage)
    return Content(tables=tables, claims=_claims(results), notes=notes)


def _distances(results: Results) -> Table:
    """A table of the distances of each model's images from real ones, and of the bits per code of its prior."""
    named = sorted({name.split(" ")[0] for record in results.records for name in record.measures if " " in name})
    rows = []
    for method in _present(results):
        cells = [
            mean_and_deviation(results.values(f"{kind} {name}", method=method), 1)
            for kind in named
            for name in (*DISTANCES, *BASELINES)
        ]
        rows.append([METHODS[method].label, *cells, mean_and_deviation(results.values("bits_per_code", method=method))])
    columns = [_column(kind, name) for kind in named for name in (*DISTANCES, *BASELINES)]
    pictures = {(record.sequel or {}).get("pictures") or record.pictures["test"] for record in results.records}
    numbers = " or ".join(f"{number:,}" for number in sorted(pictures))
    title = f"Distances ({', '.join(named)}) of {numbers} images from as many real ones"
    return Table(title, ["model", *columns, "prior, bits per code"], rows)


def _column(kind: str, name: str) -> str:
    return DISTANCES[name] if kind == "fid" and name in DISTANCES else name


def _paper_distances(methods: Sequence[str]) -> Table:
    rows = [[METHODS[method].label, *PAPER_DISTANCES[method]] for method in methods if method in PAPER_DISTANCES]
    return Table("The paper's, of all test images", ["model", *DISTANCES.values()], rows)


def _claims(results: Results) -> list[Claim]:
    means = {method: MSE.scale * statistics.fmean(results.values("mse", method=method)) for method in _present(results)}
    ours = {method: error for method, error in means.items() if method in PAPER and method.startswith("sq-vae")}
    theirs = {method: error for method, error in means.items() if method in PAPER and method not in ours}
    stronger = {method: error for method, error in means.items() if method == "vq-vae-ema-closed"}
    if not ours:
        return []
    worst = max(ours, key=lambda name: ours[name])
    claims = []
    for rivals in (theirs, stronger):
        if rivals:
            rival = min(rivals, key=lambda name: rivals[name])
            named = ", ".join(METHODS[method].label for method in rivals)
            claims.append(
                Claim(
                    f"{', '.join(METHODS[method].label for method in ours)}: each has a lower error than {named}",
                    ours[worst] < rivals[rival],
                    f"{MSE.label}: {ours[worst]:.2f} at worst ({METHODS[worst].label}) against {rivals[rival]:.2f} at "
                    f"best ({METHODS[rival].label})",
                )
            )
    return claims


def _pictures(results: Results) -> Content:
    caption = "Figure 6. Some images of the test set, and their reconstructions by each model."
    return Content(drawings={"": (side_by_side(results, _present(results)), caption)})


def _samples(results: Results) -> Content:
    second = results.second_stage
    caption = "Figure 7. Some images of the test set, and samples of each model with its prior."
    return Content(drawings={"": (side_by_side(second, _present(second)), caption)}, notes=about_priors(second))


SHORT_EPOCHS = 10
"""The number of epochs of a prior in a short run."""
SHORT_PICTURES = 320
"""The number of samples in a short run: Inception processes about eight images per second on a core."""


def second_stage(scale: Scale) -> Sequel:
    """The second stage: a PixelCNN over each model's codes, and Fréchet distances from real images."""
    if scale.name == "smoke":
        small = replace(prior_plan(), epochs=1, passes_per_epoch=1)
        return Sequel(PriorSettings(channels=8, layers=1), small, features="random-convolutions", pictures=32)
    if scale.name == "short":
        plan = replace(prior_plan(), epochs=SHORT_EPOCHS)
        return Sequel(PriorSettings(channels=64, layers=8), plan, pictures=SHORT_PICTURES)
    return Sequel(PriorSettings(), replace(prior_plan(), epochs=50))


TABLE_2 = Artefact(
    heading="Table 2, all models",
    title="all models on faces: error, and Frechet distances of reconstructions and samples (CelebA)",
    data=("celeba",),
    plan=_plan,
    content=_table,
    extra=EXTRA,
    sequel=second_stage,
)
FIGURE_6 = Artefact(
    heading="Figure 6, reconstructions of all models",
    title="reconstructions of all models side by side (CelebA)",
    data=("celeba",),
    plan=_plan,
    content=_pictures,
    extra=EXTRA,
)
FIGURE_7 = Artefact(
    heading="Figure 7, samples of all models",
    title="samples of all models with their priors side by side (CelebA)",
    data=("celeba",),
    plan=_plan,
    content=_samples,
    extra=EXTRA,
    sequel=second_stage,
    of_sequels=True,
)

"""Table 2: all models on CelebA. Figure 6: the reconstructions of the same runs, side by side."""

import statistics
from collections.abc import Mapping

from sqvae.experiment import Experiment
from sqvae.recipes.artefact import Artefact, Content, Results, resized
from sqvae.recipes.methods import METHODS
from sqvae.recipes.scales import Scale
from sqvae.recipes.side_by_side import side_by_side
from sqvae.recipes.vision import celeba
from sqvae.reports import Claim, Table, mean_and_deviation

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

EXTRA = ("vq-vae", "vq-vae-ema-closed", "sq-vae-4")
"""Models that the paper's table leaves out; its authors call type IV unstable on CelebA."""

CELEBA = 202_599
"""Pictures that CelebA has."""


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
        errors = [1000 * value for value in results.values("mse", method=method)]
        uses = results.values("perplexity", method=method)
        cells = [mean_and_deviation(errors), mean_and_deviation(uses, 1)]
        rows.append([METHODS[method].label, *cells, *([PAPER.get(method, "-")] if on_celeba else [])])
    header = ["model", "MSE x 1000", "perplexity", *(["paper's MSE x 1000"] if on_celeba else [])]
    notes = [] if on_celeba else ["These are other pictures than the paper's CelebA: its numbers don't apply to them."]
    return Content(
        tables=[Table("Test set", header, rows)],
        claims=_claims(results),
        notes=[*notes, "The columns of Frechet distances are not there yet."],
    )


def _claims(results: Results) -> list[Claim]:
    means = {method: 1000 * statistics.fmean(results.values("mse", method=method)) for method in _present(results)}
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
                    f"MSE x 1000: {ours[worst]:.2f} at worst ({METHODS[worst].label}) against {rivals[rival]:.2f} at "
                    f"best ({METHODS[rival].label})",
                )
            )
    return claims


def _pictures(results: Results) -> Content:
    caption = "Figure 6. Some pictures of the test set, and what each model makes of them."
    return Content(drawings={"": (side_by_side(results, _present(results)), caption)})


TABLE_2 = Artefact(
    heading="Table 2, all models",
    title="all models on faces: error (CelebA)",
    data=("celeba",),
    plan=_plan,
    content=_table,
    extra=EXTRA,
)
FIGURE_6 = Artefact(
    heading="Figure 6, reconstructions of all models",
    title="reconstructions of all models side by side (CelebA)",
    data=("celeba",),
    plan=_plan,
    content=_pictures,
    extra=EXTRA,
)

"""Figure 10: large faces, their reconstructions, and samples of a two-level hierarchy."""

from collections.abc import Mapping
from dataclasses import replace

from sqvae.config import Experiment, PriorSettings, prior_plan
from sqvae.paper.artefact import Artefact, Content, Results, resized
from sqvae.paper.priors import about_priors
from sqvae.paper.scales import Scale
from sqvae.paper.side_by_side import side_by_side
from sqvae.recipes.vision import celeba_hq
from sqvae.reports import Table, mean_and_deviation
from sqvae.sweeps import Sequel

METHOD = "sq-vae-1"

HALVINGS = 2
"""The number of additional downsamplings of the second model: 8x8 codes rather than 32x32."""


SMALLEST = 2
"""The smallest side of the coarser map: with a single code, its prior could learn nothing but a histogram."""


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    base = resized(celeba_hq(), 16, 16) if scale.name == "smoke" else celeba_hq()
    tags = {"method": METHOD, "k": str(base.quantizer.codebook_size), "d": str(base.quantizer.dim)}
    return [(base, tags)]


def _fitted(experiment: Experiment, side: int) -> Experiment:
    """The experiment without the first convolutions, if images are too small for all of them and two more."""
    widths = experiment.network.widths or ()
    while len(widths) > 1 and side >> (len(widths) + HALVINGS) < SMALLEST:
        widths = widths[1:]
    return replace(experiment, network=replace(experiment.network, widths=widths))


def _sequel(scale: Scale) -> Sequel:
    """The second stage: PixelSNAIL over the coarse codes, and another over the fine codes given those."""
    levels = (HALVINGS,)
    if scale.name == "smoke":
        small = replace(prior_plan(), epochs=1, passes_per_epoch=1)
        prior = PriorSettings("pixelsnail", channels=16, blocks=1, layers=1, heads=2)
        return Sequel(prior, small, levels, features="random-convolutions", pictures=16)
    if scale.name == "short":
        prior = PriorSettings("pixelsnail", channels=64, blocks=2, layers=3)
        return Sequel(prior, replace(prior_plan(), epochs=10), levels, pictures=320)
    return Sequel(PriorSettings("pixelsnail"), replace(prior_plan(), epochs=50), levels)


def _content(results: Results) -> Content:
    caption = "Figure 10. Some images of the test set, and below them their reconstructions."
    drawings = {"": (side_by_side(results, [METHOD]), caption)}
    tables, notes = [], []
    if results.sequels:
        second = results.second_stage
        drawings["-samples"] = (
            side_by_side(second, [METHOD]),
            "Samples of two levels, below images of the test set.",
        )
        measures = sorted({name for record in second.records for name in record.measures})
        rows = [[name, mean_and_deviation(second.values(name))] for name in measures]
        notes = about_priors(second)
        tables.append(Table("Samples of two levels: the fine codes given the coarse ones", ["what", "value"], rows))
    return Content(tables=tables, drawings=drawings, notes=notes)


FIGURE_10 = Artefact(
    heading="Figure 10, a hierarchy of two models",
    title="reconstructions of large faces, and samples of two levels (CelebA-HQ)",
    data=("celeba-hq",),
    plan=_plan,
    content=_content,
    sequel=_sequel,
    short_epochs=10,
    fitted=_fitted,
)

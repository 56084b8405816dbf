"""Priors on digits: what they learn beyond the frequencies of codes, and their samples. Not in the paper."""

import statistics
from collections.abc import Mapping
from dataclasses import replace

from sqvae.config import Experiment, PriorSettings, prior_plan
from sqvae.paper.artefact import Artefact, Content, Results, resized
from sqvae.paper.methods import METHODS
from sqvae.paper.priors import about_priors
from sqvae.paper.scales import Scale
from sqvae.paper.side_by_side import side_by_side
from sqvae.recipes.vision import mnist
from sqvae.reports import Claim, Table, mean_and_deviation
from sqvae.sweeps import Sequel

ROWS = ("sq-vae-1", "vq-vae-ema")

FEATURES = "random-convolutions"
"""The Inception network was not trained on digits, and these features are a thousand times as fast."""

SAMPLES = ("reconstruction", "samples", "samples-histogram", "samples-uniform")

FAR_BELOW = 0.5
"""The largest ratio of two distances that counts as far nearer."""


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    size, dim = (16, 8) if scale.name == "smoke" else (128, 64)
    base = resized(mnist(), size, dim)
    return [(METHODS[method].applied(base), {"method": method, "k": str(size), "d": str(dim)}) for method in ROWS]


def _sequel(scale: Scale) -> Sequel:
    if scale.name == "smoke":
        small = replace(prior_plan(), epochs=1, passes_per_epoch=1)
        return Sequel(PriorSettings(channels=8, layers=1), small, features=FEATURES, pictures=32)
    plan = replace(prior_plan(), epochs=10 if scale.name == "short" else 50)
    return Sequel(PriorSettings(channels=64, layers=8), plan, features=FEATURES)


def _content(results: Results) -> Content:
    second = results.second_stage
    present = [method for method in ROWS if second.where(method=method)]
    costs, distances = [], []
    for method in present:
        names = ("bits_per_code", "histogram_bits_per_code", "uniform_bits_per_code")
        costs.append(
            [METHODS[method].label, *(mean_and_deviation(second.values(name, method=method), 3) for name in names)]
        )
        distances.append(
            [METHODS[method].label, *(mean_and_deviation(_distance(second, name, method)) for name in SAMPLES)]
        )
    caption = "Some digits of the test set, and samples of each model with its prior."
    return Content(
        tables=[
            Table("Bits per code of the test set", ["model", "prior", "histogram", "all equally likely"], costs),
            Table(f"Distances (fd-{FEATURES}) from real digits", ["model", *SAMPLES], distances),
        ],
        drawings={"": (side_by_side(second, present), caption)},
        claims=[claim for method in present for claim in _claims(second, method)],
        notes=about_priors(second),
    )


def _distance(results: Results, name: str, method: str) -> list[float]:
    return results.values(f"fd-{FEATURES} {name}", method=method)


def _claims(results: Results, method: str) -> list[Claim]:
    label = METHODS[method].label
    prior, histogram = (
        statistics.fmean(results.values(name, method=method)) for name in ("bits_per_code", "histogram_bits_per_code")
    )
    samples, others = (
        statistics.fmean(_distance(results, "samples", method)),
        min(statistics.fmean(_distance(results, name, method)) for name in SAMPLES[2:]),
    )
    return [
        Claim(
            f"{label}: the prior saves at least 1 bit per code over the histogram",
            prior <= histogram - 1,
            f"{prior:.2f} against {histogram:.2f} bits",
        ),
        Claim(
            f"{label}: its samples are far nearer to real digits than independently drawn codes",
            samples < FAR_BELOW * others,
            f"{samples:.2f} against {others:.2f} at best",
        ),
    ]


GENERATION = Artefact(
    heading="Priors and samples",
    title="priors over the codes of digits, and samples (MNIST); ours, not the paper's",
    data=("mnist",),
    plan=_plan,
    content=_content,
    sequel=_sequel,
    of_sequels=True,
)

"""The encoder's input for grey levels as classes: 256 one-hot channels, or two channels of directions. Not in the
paper."""

import statistics
from collections.abc import Mapping

from sqvae.config import Experiment, override
from sqvae.paper.artefact import MSE, Artefact, Content, Results, resized
from sqvae.paper.scales import Scale
from sqvae.recipes.categories import mnist_levels
from sqvae.reports import Claim, Table, mean_and_deviation

METHOD = "vmf-sq-vae"

DEFAULT = "directions"
CHANNELS = {DEFAULT: 2, "one-hot": 256}
"""The number of channels of each input."""

ALIKE = 1.1
"""The largest ratio of errors that counts as no worse."""


def _plan(scale: Scale, data: str) -> list[tuple[Experiment, Mapping[str, str]]]:
    base = resized(mnist_levels(), 16, 16) if scale.name == "smoke" else mnist_levels()
    return [
        (
            override(base, [] if inputs == DEFAULT else [f"likelihood.inputs={inputs}"]),
            {"method": METHOD, "inputs": inputs, "kind": "levels"},
        )
        for inputs in CHANNELS
    ]


def _content(results: Results) -> Content:
    present = [inputs for inputs in CHANNELS if results.where(inputs=inputs)]
    rows = [
        [
            inputs,
            str(CHANNELS[inputs]),
            mean_and_deviation([MSE.scale * value for value in results.values("mse", inputs=inputs)], 3),
            mean_and_deviation(results.values("perplexity", inputs=inputs), 1),
        ]
        for inputs in present
    ]
    header = ["the encoder sees", "channels", MSE.label, "perplexity"]
    return Content(tables=[Table("vMF SQ-VAE, test set", header, rows)], claims=_claims(results, present))


def _claims(results: Results, present: list[str]) -> list[Claim]:
    if len(present) < len(CHANNELS):
        return []
    ours, other = (MSE.scale * statistics.fmean(results.values("mse", inputs=inputs)) for inputs in CHANNELS)
    words = "the smaller input, directions, costs no accuracy: its error is at most a tenth above that of one-hot"
    return [Claim(words, ours <= ALIKE * other, f"{MSE.label}: {ours:.2f} against {other:.2f}")]


ENCODER_INPUTS = Artefact(
    heading="What the encoder sees of categories",
    title="grey levels seen one-hot or as directions: error (MNIST); ours, not the paper's",
    data=("mnist",),
    plan=_plan,
    content=_content,
    short_epochs=2,
)

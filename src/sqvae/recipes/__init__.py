"""Recipes: experiments by name, and the paper's tables and figures by theirs."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqvae.experiment import Experiment, QuantizerSettings
from sqvae.recipes.artefact import Artefact, Results, chosen, plan, report, words
from sqvae.recipes.categories import camvid, celebamask_hq, gray_celeba, grey_levels, label_maps, mnist_levels
from sqvae.recipes.choice import Choice, as_told, suitable
from sqvae.recipes.collection import MOST_SEEDS, collect, collect_all
from sqvae.recipes.encoder_inputs import ENCODER_INPUTS
from sqvae.recipes.every_budget import EVERY_BUDGET
from sqvae.recipes.figure_2 import FIGURE_2
from sqvae.recipes.figure_5 import FIGURE_5
from sqvae.recipes.figure_10 import FIGURE_10
from sqvae.recipes.generation import GENERATION
from sqvae.recipes.scales import SCALES, Scale
from sqvae.recipes.speech import librispeech, speech, vctk, zerospeech
from sqvae.recipes.table_2 import FIGURE_6, FIGURE_7, TABLE_2
from sqvae.recipes.table_3 import FIGURE_8, TABLE_3, TABLE_9, TABLE_10
from sqvae.recipes.table_4 import FIGURE_4, TABLE_4
from sqvae.recipes.table_5 import TABLE_5
from sqvae.recipes.vision import celeba, celeba_hq, cifar10, demo, fashion_mnist, mnist, pictures
from sqvae.training import any_budget


def mnist_short() -> Experiment:
    """MNIST for a small budget: a tenth of the paper's epochs, and the schedule for any number of steps."""
    return replace(
        mnist(), recipe="mnist-short", quantizer=QuantizerSettings(codebook_size=128), training=any_budget(epochs=10)
    )


RECIPES: Mapping[str, Callable[[], Experiment]] = {
    "demo": demo,
    "pictures": pictures,
    "mnist": mnist,
    "mnist-short": mnist_short,
    "fashion-mnist": fashion_mnist,
    "cifar10": cifar10,
    "celeba": celeba,
    "celeba-hq": celeba_hq,
    "label-maps": label_maps,
    "grey-levels": grey_levels,
    "celebamask-hq": celebamask_hq,
    "camvid": camvid,
    "mnist-levels": mnist_levels,
    "gray-celeba": gray_celeba,
    "speech": speech,
    "vctk": vctk,
    "zerospeech": zerospeech,
    "librispeech": librispeech,
}
"""Every recipe by name; the first line of its docstring says what it is."""

OWN_DATA = ("pictures", "label-maps", "grey-levels", "speech")
"""The recipes for a person's own data."""

ARTEFACTS: Mapping[str, Artefact] = {
    "figure-2": FIGURE_2,
    "figure-5": FIGURE_5,
    "table-2": TABLE_2,
    "figure-6": FIGURE_6,
    "figure-7": FIGURE_7,
    "figure-10": FIGURE_10,
    "table-3": TABLE_3,
    "table-9": TABLE_9,
    "table-10": TABLE_10,
    "figure-8": FIGURE_8,
    "table-4": TABLE_4,
    "figure-4": FIGURE_4,
    "table-5": TABLE_5,
    "encoder-inputs": ENCODER_INPUTS,
    "every-budget": EVERY_BUDGET,
    "generation": GENERATION,
}
"""Every table and figure by the name that `sqvae reproduce` takes."""

__all__ = [
    "ARTEFACTS",
    "MOST_SEEDS",
    "OWN_DATA",
    "RECIPES",
    "SCALES",
    "Artefact",
    "Choice",
    "Results",
    "Scale",
    "as_told",
    "chosen",
    "collect",
    "collect_all",
    "plan",
    "report",
    "suitable",
    "words",
]

"""Recipes: named experiments. They are fast to import, because they hold settings only."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqvae.config import Experiment, QuantizerSettings
from sqvae.modality import MODALITIES, modality_of
from sqvae.recipes.categories import camvid, celebamask_hq, gray_celeba, grey_levels, label_maps, mnist_levels
from sqvae.recipes.choice import Choice, as_told, suitable
from sqvae.recipes.speech import librispeech, speech, vctk, zerospeech
from sqvae.recipes.vision import celeba, celeba_hq, cifar10, demo, fashion_mnist, mnist, pictures
from sqvae.training import any_budget


def mnist_short() -> Experiment:
    """MNIST for a small budget: a tenth of the paper's epochs, and the schedule for any number of steps."""
    return replace(
        mnist(), recipe="mnist-short", quantizer=QuantizerSettings(codebook_size=128), training=any_budget(epochs=10)
    )


_NAMED: Mapping[str, Callable[[], Experiment]] = {
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

OWN_DATA = tuple(modality_of(kind).recipe for kind in MODALITIES)
"""The recipes for a person's own data: one for each kind of data."""

RECIPES: Mapping[str, Callable[[], Experiment]] = {
    **_NAMED,
    **{modality_of(kind).recipe: modality_of(kind).own_data for kind in MODALITIES},
}
"""Every recipe by name; the first line of its docstring says what it is."""


__all__ = ["OWN_DATA", "RECIPES", "Choice", "as_told", "suitable"]

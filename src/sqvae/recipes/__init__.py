"""Recipes: experiments by name. Each is a function that returns one."""

from collections.abc import Callable, Mapping

from sqvae.experiment import Experiment
from sqvae.recipes.vision import celeba, celeba_hq, cifar10, demo, fashion_mnist, mnist, pictures

RECIPES: Mapping[str, Callable[[], Experiment]] = {
    "demo": demo,
    "pictures": pictures,
    "mnist": mnist,
    "fashion-mnist": fashion_mnist,
    "cifar10": cifar10,
    "celeba": celeba,
    "celeba-hq": celeba_hq,
}
"""Every recipe by name; the first line of its docstring says what it is."""

__all__ = ["RECIPES"]

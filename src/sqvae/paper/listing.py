"""What there is, by name: recipes, quantizers, data sets, and the paper's tables and figures."""

from sqvae.data.named import SETS
from sqvae.paper.catalogue import ARTEFACTS
from sqvae.recipes import RECIPES
from sqvae.reports.summary import KINDS

OWN_DATA = (
    ("DIR", "a folder of pictures, of any size and depth, with or without train/, validation/ and test/ inside"),
    ("FILE", "a .zip of pictures, or an array: .npy, .npz"),
    ("DIR", "a folder of recordings, with a folder for each speaker, or a .zip of that"),
    ("hf:OWNER/NAME", "a data set of the Hugging Face hub; needs: pip install 'sqvae[hub]'"),
)
"""Data that has no name here, and how it is given."""


def listed(kind: str) -> list[tuple[str, str]]:
    """Names of a kind, and what each stands for.

    Arguments:
        kind: ``"recipes"``, ``"quantizers"``, ``"data"`` or ``"reproductions"``.
    """
    if kind == "recipes":
        return [(name, (make.__doc__ or "").splitlines()[0]) for name, make in RECIPES.items()]
    if kind == "reproductions":
        return [(name, artefact.title) for name, artefact in ARTEFACTS.items()]
    if kind == "quantizers":
        return list(KINDS.items())
    if kind == "data":
        return [*((name, dataset.description) for name, dataset in SETS.items()), *OWN_DATA]
    raise ValueError(f"there is no list of {kind}: ask for recipes, quantizers, data or reproductions")

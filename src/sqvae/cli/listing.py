"""What `sqvae list` puts together."""

from collections.abc import Mapping

from sqvae.data import DATASETS, Dataset
from sqvae.data.speech import SPEECH_SETS, SpeechSet
from sqvae.paper import ARTEFACTS
from sqvae.recipes import RECIPES
from sqvae.reports.summary import KINDS

SETS: Mapping[str, Dataset | SpeechSet] = {**DATASETS, **SPEECH_SETS}
"""All data that goes by a name."""


def listing(kind: str) -> list[tuple[str, str]]:
    """Names, and what they stand for."""
    if kind == "recipes":
        return [(name, (make.__doc__ or "").splitlines()[0]) for name, make in RECIPES.items()]
    if kind == "reproductions":
        return [(name, artefact.title) for name, artefact in ARTEFACTS.items()]
    if kind == "quantizers":
        return list(KINDS.items())
    own = [
        ("DIR", "a folder of pictures, of any size and depth, with or without train/, validation/ and test/ inside"),
        ("FILE", "a .zip of pictures, or an array: .npy, .npz"),
        ("DIR", "a folder of recordings, with a folder for each speaker, or a .zip of that"),
        ("hf:OWNER/NAME", "a data set of the Hugging Face hub; needs: pip install 'sqvae[hub]'"),
    ]
    return [*((name, dataset.description) for name, dataset in SETS.items()), *own]

"""Models of images, for what only they can do."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqvae.modality import modality_of
from sqvae.tokenizers import load
from sqvae.training import CheckpointError

if TYPE_CHECKING:
    from sqvae.modalities.images.tokenizer import ImageTokenizer


def load_image_model(run: str | Path) -> "ImageTokenizer":
    """A trained model of images, label maps or grey levels with codes of one resolution. Another model is an error."""
    tokenizer = load(run)
    modality = modality_of(tokenizer.experiment.kind)
    if not modality.is_image:
        raise CheckpointError(f"{run} is a model of {modality.plural}, and not of images")
    tokenizer.check_one_level("this needs")
    return cast("ImageTokenizer", tokenizer)

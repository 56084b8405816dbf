"""Pictures in a folder."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from PIL import Image

from sqvae.cli.targets import FolderOfResults
from sqvae.files import written


class PictureFolder:
    """A folder that pictures are saved to, each under its source's name.

    Arguments:
        path: of the folder.
        overwrite: whether a picture may take the place of a file that is there: it might be the original.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        self._results = FolderOfResults(path, [".png"], overwrite=overwrite)

    def save(self, names: Sequence[str], images: Iterable[Image.Image]) -> None:
        """Save a batch as .png."""
        for name, image in zip(names, images, strict=True):
            (place,) = self._results.places(name)
            with written(place, lasting=False) as aside:
                image.save(aside)

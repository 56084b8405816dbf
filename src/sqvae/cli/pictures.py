"""Pictures in a folder."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from PIL import Image

from sqvae.codec import NameTaker
from sqvae.data.decoding import is_picture_name
from sqvae.data.speech import is_audio_name


class PictureFolder:
    """A folder that pictures are saved to, each under its source's name.

    Arguments:
        path: of the folder.
        overwrite: whether a picture may take the place of a file that is there: it might be the original.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        self.path = path
        self.overwrite = overwrite
        self._names = NameTaker()

    def save(self, names: Sequence[str], images: Iterable[Image.Image]) -> None:
        """Save a batch as .png."""
        for name, image in zip(names, images, strict=True):
            target = self.path / self._names.take(name)
            if target.exists() and not self.overwrite:
                raise FileExistsError(
                    f"{target} is there already, and is left as it is. Choose another folder with -o, or pass "
                    f"--overwrite"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            image.save(target)


def check_free(out: Path, overwrite: bool) -> None:
    """Raise if a file would take the place of another."""
    if out.exists() and not overwrite:
        raise FileExistsError(
            f"{out} is there already, and is left as it is. Choose another name with -o, or pass --overwrite"
        )


def check_apart(inputs: Sequence[str], out: Path) -> None:
    """Raise if results would land among the pictures they come from."""
    for source in inputs:
        folder = Path(source).resolve()
        if folder.is_dir() and folder in (out.resolve(), *out.resolve().parents):
            raise ValueError(
                f"-o {out} lies in {source}, among the originals; choose another folder, or pass --overwrite"
            )


def check_target(out: Path) -> None:
    """Raise if a file of codes would have the name of a picture or a recording, which it might replace."""
    if is_picture_name(out.name) or is_audio_name(out.name):
        raise ValueError(
            f"-o {out} is a name for a picture or a recording: name a file of codes, such as codes.safetensors"
        )

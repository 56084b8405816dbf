"""Pictures in a folder."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from torch import Tensor

from sqvae.codec import NameTaker


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

    def save(self, names: Sequence[str], pictures: Tensor) -> None:  # (batch, C, H, W), in [0, 1]
        """Save a batch as .png."""
        values = (pictures.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).squeeze(-1).cpu().numpy()
        for name, picture in zip(names, values, strict=True):
            target = self.path / self._names.take(name)
            if target.exists() and not self.overwrite:
                raise FileExistsError(
                    f"{target} is there already, and is left as it is. Choose another folder with -o, or pass "
                    f"--overwrite"
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(target)


def check_apart(inputs: Sequence[str], out: Path) -> None:
    """Raise if results would land among the pictures they come from."""
    for source in inputs:
        folder = Path(source).resolve()
        if folder.is_dir() and folder in (out.resolve(), *out.resolve().parents):
            raise ValueError(
                f"-o {out} lies in {source}, among the originals; choose another folder, or pass --overwrite"
            )

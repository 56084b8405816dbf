"""What commands write to: nothing that is there is replaced unless a person says so."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from sqvae.cli.root import claim
from sqvae.codec import NameTaker
from sqvae.data.decoding import is_picture_name
from sqvae.data.speech import is_audio_name
from sqvae.data.wording import listed
from sqvae.files import remove_abandoned

BEGINNING = 20_000
"""Bytes in which a page says what it is."""

ADVICE = "Choose another name with -o, or pass --overwrite to replace {}"


def check_free(target: Path, overwrite: bool) -> None:
    """Raise if a file would take the place of another, is just being written, or has the name of a folder."""
    if target.is_dir():
        raise IsADirectoryError(f"can't write {target}: it is a folder; name a file with -o")
    claim(target)
    check_all_free([target], overwrite)


def check_all_free(targets: Iterable[Path], overwrite: bool) -> None:
    """Raise if any of some files would take the place of another."""
    there = [] if overwrite else [target for target in targets if target.exists()]
    if len(there) == 1:
        raise FileExistsError(f"{there[0]} is there already, and is left as it is. {ADVICE.format('it')}")
    if there:
        names = listed(there, 3)
        raise FileExistsError(f"{names} are there already, and are left as they are. {ADVICE.format('them')}")


PLOTS = ("use.png", "distances.png", "codes.png", "units.png", "annealing.png")
"""What `sqvae inspect` draws."""


def check_plots_free(run: Path, out: Path | None, overwrite: bool) -> None:
    """Raise if plots would take the place of files outside the run, which alone renews its own."""
    if out is not None and run.resolve() not in out.resolve().parents:
        check_all_free((out / name for name in PLOTS), overwrite)


def check_ours(target: Path, words: str, overwrite: bool) -> None:
    """Raise if a page that is renewed again and again would take the place of something else.

    Arguments:
        words: with which our own pages begin.
    """
    if target.is_file() and words not in target.read_bytes()[:BEGINNING].decode("utf-8", "replace"):
        check_free(target, overwrite)


def check_apart(inputs: Sequence[str], out: Path) -> None:
    """Raise if results would land among the pictures they come from."""
    for source in inputs:
        folder = Path(source).resolve()
        if folder.is_dir() and folder in (out.resolve(), *out.resolve().parents):
            raise ValueError(
                f"-o {out} lies in {source}, among the originals; choose another folder, or pass --overwrite"
            )


def check_names_folder(path: Path) -> None:
    """Raise if a folder for results would be called like a picture or a recording: one such file was meant."""
    if not path.is_dir() and (is_audio_name(path.name) or is_picture_name(path.name) or path.suffix.lower() == ".npy"):
        raise ValueError(
            f"-o {path} ends in {path.suffix}, like a file, and here -o names the folder that results go to: each "
            f"becomes a file in it. Pass -o {path.with_suffix('')}, for instance"
        )


class FolderOfResults:
    """A folder that results go to, each under its source's name.

    Arguments:
        path: of the folder.
        endings: of the files that are made of each source.
        overwrite: whether a file may take the place of one that is there: it might be the original.
    """

    def __init__(self, path: Path, endings: Sequence[str], *, overwrite: bool) -> None:
        check_names_folder(path)
        claim(path)
        self.path = path
        self.endings = endings
        self.overwrite = overwrite
        self._names = NameTaker("")
        self._folders: set[Path] = set()

    def places(self, name: str) -> list[Path]:
        """Where the files of a source go, in a folder that exists."""
        stem = self._names.take(name)
        places = [self.path / f"{stem}{ending}" for ending in self.endings]
        check_all_free(places, self.overwrite)
        folder = places[0].parent
        if folder not in self._folders:
            folder.mkdir(parents=True, exist_ok=True)
            remove_abandoned(folder)
            self._folders.add(folder)
        return places

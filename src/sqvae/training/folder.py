"""A run's folder: what is where, and who may write to it."""

import contextlib
import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from sqvae.training.checkpoints import LOG, WEIGHTS, CheckpointError, restore_interrupted, verify


def no_such_folder(path: str | Path) -> CheckpointError:
    """What to raise where a run was named that is not there: with the names of those that may be meant."""
    near = _near(Path(path))
    advice = f"; did you mean {' or '.join(near)}?" if near else ": give the folder that `sqvae train` has written"
    return CheckpointError(f"there is no folder {path}{advice}")


def _near(path: Path) -> list[str]:
    """Runs beside a path, or in runs/, whose names are like its own."""
    found: dict[str, list[str]] = {}
    for place in dict.fromkeys((path.parent, Path("runs"))):
        with contextlib.suppress(OSError):
            for run in sorted(place.iterdir()):
                if (run / "config.json").is_file():
                    found.setdefault(run.name, []).append(str(run))
    close = difflib.get_close_matches(path.name, found, n=3, cutoff=0.6)
    return [run for name in close for run in found[name]][:3]


class RunFolder:
    """Where a run keeps everything.

    ::

        RUN/config.json       what is trained, on what, how
        RUN/best, RUN/last    checkpoints: the best by validation, and the newest
        RUN/previous          the newest but one, should the newest be damaged from outside
        RUN/log.jsonl         one line a record
        RUN/tensorboard       the same for TensorBoard
        RUN/pictures          reconstructions, as training goes on
        RUN/curves.png        self-annealing
        RUN/inspection        plots of the codebook, when they are asked for
        RUN/prior             a prior over its codes, in a folder like this one
        RUN/codes.safetensors the codes of its data
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.best = self.path / "best"
        self.last = self.path / "last"
        self.previous = self.path / "previous"
        self.log = self.path / LOG
        self.tensorboard = self.path / "tensorboard"
        self.pictures = self.path / "pictures"
        self.curves = self.path / "curves.png"
        self.inspection = self.path / "inspection"

    def __str__(self) -> str:
        return str(self.path)

    def create(self) -> None:
        """Make the folder, and see that it can be written to."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            probe = self.path / ".probe"
            probe.touch()
            probe.unlink()
        except OSError as failure:
            raise CheckpointError(
                f"can't write to {self.path}: {failure.strerror}. Choose another folder with `out=`"
            ) from failure

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in the same folder; the system lets go of it when this process ends."""
        lock, owner = FileLock(self.path / ".lock"), self.path / ".owner"
        try:
            lock.acquire(timeout=0)
        except Timeout:
            with contextlib.suppress(OSError):
                raise CheckpointError(
                    f"{self.path} is in use: process {owner.read_text().strip()} is training there. "
                    f"Wait for it, stop it, or choose another folder with `out=`"
                ) from None
            raise CheckpointError(f"{self.path} is in use by another process; choose another with `out=`") from None
        except OSError as failure:
            raise CheckpointError(f"can't write to {self.path}: {failure.strerror or failure}") from failure
        try:
            with self.writing():
                owner.write_text(str(os.getpid()))
                restore_interrupted(self.best)
            yield
        finally:
            with contextlib.suppress(OSError):
                owner.unlink()
            lock.release()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """What goes wrong with the disk in this block is said with the checkpoints that are left."""
        try:
            yield
        except OSError as failure:
            what = failure.strerror or str(failure)
            raise CheckpointError(f"can't write to {self.path}: {what}. {self.advice()}") from failure

    def holds_something(self) -> bool:
        """Whether there is a run here, or a model."""
        return any(path.exists() for path in (self.last, self.previous, self.best, self.path / WEIGHTS))

    def check_new(self) -> None:
        """Raise if training here would replace something."""
        if self.holds_something():
            raise CheckpointError(
                f"{self} already holds a run. Go on with it: sqvae resume {self}; or choose another with `out=`"
            )
        written = (self.config, self.log, self.curves, self.pictures, self.tensorboard)
        taken = [path.name for path in written if path.exists()]
        if taken:
            go_on = f" If it is a run without a checkpoint yet: sqvae resume {self}" if self.log.exists() else ""
            raise CheckpointError(
                f"{self} already holds {', '.join(taken)}, which a run would replace: choose another with `out=`."
                f"{go_on}"
            )

    def remove_if_empty(self) -> None:
        """Leave nothing behind where nothing was begun."""
        with contextlib.suppress(OSError):
            for name in (".owner", ".lock"):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    def checkpoint(self, name: str | None = None) -> Path | None:
        """The checkpoint to go on from, by name or the newest; None if there is none yet."""
        choices = {"last": self.last, "previous": self.previous}
        if name is None:
            return self.newest() if self.last.exists() or self.previous.exists() else None
        if name not in choices:
            raise CheckpointError(f"a run goes on from one of {', '.join(choices)}; got {name!r}")
        return self._verified(choices[name])

    def newest(self) -> Path:
        """The newest checkpoint. A damaged one is an error that names the next best."""
        if not self.last.exists() and self.previous.exists():
            return self._verified(self.previous)  # killed between two renames: this one was the newest
        return self._verified(self.last)

    def usable(self) -> Path:
        """The checkpoint to use: the best, or where validation has not come yet, the newest."""
        candidates = (self.best, self.best.with_name("best.old"), self.last, self.previous)
        found = next((candidate for candidate in candidates if candidate.exists()), None)
        if found is None and self.config.exists():
            raise CheckpointError(
                f"nothing is saved in {self.path} yet: its first checkpoint comes after the first epoch or five "
                "minutes, or when it is stopped (Ctrl-C)"
            )
        if found is None:
            raise CheckpointError(f"{self.path} holds no checkpoint: give the folder that `sqvae train` has written")
        return self._verified(found)

    def _verified(self, folder: Path) -> Path:
        try:
            verify(folder)
        except CheckpointError as failure:
            raise CheckpointError(f"{failure}. {self.advice()}") from None
        return folder

    def intact(self) -> list[Path]:
        """The checkpoints that are whole, newest first."""
        whole = []
        for candidate in (self.last, self.previous, self.best):
            with contextlib.suppress(CheckpointError):
                verify(candidate)
                whole.append(candidate)
        return whole

    def advice(self) -> str:
        """Which checkpoints are left, in words."""
        whole = self.intact()
        if not whole:
            return "No other checkpoint of this run is whole"
        return f"Intact: {', '.join(str(folder) for folder in whole)}"

"""The folder of a run: its files, and the lock for writing to it."""

import contextlib
import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from sqvae.training.checkpoints import LOG, WEIGHTS, CheckpointError, restore_interrupted, verify


def no_such_folder(path: str | Path) -> CheckpointError:
    """The error for a run that does not exist, with the names of similar runs."""
    near = _near(Path(path))
    advice = f"; did you mean {' or '.join(near)}?" if near else ": pass a folder that `sqvae train` has written"
    return CheckpointError(f"there is no folder {path}{advice}")


def _near(path: Path) -> list[str]:
    """Runs beside a path, or in runs/, with similar names."""
    found: dict[str, list[str]] = {}
    for place in dict.fromkeys((path.parent, Path("runs"))):
        with contextlib.suppress(OSError):
            for run in sorted(place.iterdir()):
                if (run / "config.json").is_file():
                    found.setdefault(run.name, []).append(str(run))
    close = difflib.get_close_matches(path.name, found, n=3, cutoff=0.6)
    return [run for name in close for run in found[name]][:3]


class RunFolder:
    """The folder of a run.

    ::

        RUN/config.json       the configuration of the run
        RUN/best, RUN/last    checkpoints: the best on the validation set, and the newest
        RUN/previous          the second newest checkpoint, in case the newest is damaged
        RUN/log.jsonl         one record per line
        RUN/tensorboard       the same for TensorBoard
        RUN/pictures          reconstructions during training
        RUN/curves.png        self-annealing
        RUN/inspection        plots of the codebook, if requested
        RUN/prior             a prior over its codes, in a folder like this one
        RUN/codes.safetensors the codes of its dataset
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
        """Create the folder, and check that it can be written to."""
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
        """Lock the folder against training by other processes. The system releases the lock when this process ends."""
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
        """Convert errors of the disk in this block to errors that list the intact checkpoints."""
        try:
            yield
        except OSError as failure:
            what = failure.strerror or str(failure)
            raise CheckpointError(f"can't write to {self.path}: {what}. {self.advice()}") from failure

    def holds_something(self) -> bool:
        """Whether the folder contains a run or a model."""
        return any(path.exists() for path in (self.last, self.previous, self.best, self.path / WEIGHTS))

    def check_new(self) -> None:
        """Raise CheckpointError if training here would overwrite something."""
        if self.holds_something():
            raise CheckpointError(
                f"{self} already contains a run. Resume it: sqvae resume {self}; or choose another with `out=`"
            )
        written = (self.config, self.log, self.curves, self.pictures, self.tensorboard)
        taken = [path.name for path in written if path.exists()]
        if taken:
            go_on = f" If it is a run without a checkpoint yet: sqvae resume {self}" if self.log.exists() else ""
            raise CheckpointError(
                f"{self} already contains {', '.join(taken)}, which a run would overwrite: choose another with `out=`."
                f"{go_on}"
            )

    def remove_if_empty(self) -> None:
        """Remove the folder if training has not started."""
        with contextlib.suppress(OSError):
            for name in (".owner", ".lock"):
                (self.path / name).unlink(missing_ok=True)
            self.path.rmdir()

    def checkpoint(self, name: str | None = None) -> Path | None:
        """The checkpoint to resume from, by name or the newest; None if there is none yet."""
        choices = {"last": self.last, "previous": self.previous}
        if name is None:
            return self.newest() if self.last.exists() or self.previous.exists() else None
        if name not in choices:
            raise CheckpointError(f"a run can be resumed from one of {', '.join(choices)}; got {name!r}")
        return self._verified(choices[name])

    def newest(self) -> Path:
        """The newest checkpoint. If it is damaged, the error names intact ones."""
        if not self.last.exists() and self.previous.exists():
            return self._verified(self.previous)  # killed between two renames, so this is the newest
        return self._verified(self.last)

    def usable(self) -> Path:
        """The checkpoint to use: the best or, before the first validation, the newest."""
        candidates = (self.best, self.best.with_name("best.old"), self.last, self.previous)
        found = next((candidate for candidate in candidates if candidate.exists()), None)
        if found is None and self.config.exists():
            raise CheckpointError(
                f"nothing is saved in {self.path} yet: the first checkpoint is written after the first epoch or five "
                "minutes, or when training is stopped (Ctrl-C)"
            )
        if found is None:
            raise CheckpointError(f"{self.path} contains no checkpoint: pass a folder that `sqvae train` has written")
        return self._verified(found)

    def _verified(self, folder: Path) -> Path:
        try:
            verify(folder)
        except CheckpointError as failure:
            raise CheckpointError(f"{failure}. {self.advice()}") from None
        return folder

    def intact(self) -> list[Path]:
        """The intact checkpoints, newest first."""
        whole = []
        for candidate in (self.last, self.previous, self.best):
            with contextlib.suppress(CheckpointError):
                verify(candidate)
                whole.append(candidate)
        return whole

    def advice(self) -> str:
        """A sentence that lists the intact checkpoints."""
        whole = self.intact()
        if not whole:
            return "No other checkpoint of this run is intact"
        return f"Intact: {', '.join(str(folder) for folder in whole)}"

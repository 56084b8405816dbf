"""A run's folder: what is where, and who may write to it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from sqvae.training.checkpoints import CheckpointError, restore_interrupted, verify


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
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.best = self.path / "best"
        self.last = self.path / "last"
        self.previous = self.path / "previous"
        self.log = self.path / "log.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.pictures = self.path / "pictures"
        self.curves = self.path / "curves.png"

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
                f"can't write to {self.path}: {failure.strerror}. Choose another folder with --out"
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
                    f"Wait for it, stop it, or choose another folder with --out"
                ) from None
            raise CheckpointError(f"{self.path} is in use by another process; choose another with --out") from None
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

    def newest(self) -> Path:
        """The checkpoint to go on from. A damaged one is an error that names the next best."""
        if not self.last.exists() and self.previous.exists():
            return self.previous  # killed between two renames: this one is whole, and was the newest
        try:
            verify(self.last)
        except CheckpointError as failure:
            raise CheckpointError(f"{failure}. {self.advice()}") from None
        return self.last

    def usable(self) -> Path:
        """The checkpoint to use: the best, or where validation has not come yet, the newest."""
        candidates = (self.best, self.best.with_name("best.old"), self.last, self.previous)
        found = next((candidate for candidate in candidates if candidate.exists()), None)
        if found is None:
            raise CheckpointError(f"{self.path} holds no checkpoint; train one with: sqvae train --out {self.path}")
        try:
            verify(found)
        except CheckpointError as failure:
            raise CheckpointError(f"{failure}. {self.advice(found)}") from None
        return found

    def intact(self) -> list[Path]:
        """The checkpoints that are whole, newest first."""
        whole = []
        for candidate in (self.last, self.previous, self.best):
            with contextlib.suppress(CheckpointError):
                verify(candidate)
                whole.append(candidate)
        return whole

    def advice(self, damaged: Path | None = None) -> str:
        """Which checkpoints are left, in words."""
        whole = [folder for folder in self.intact() if folder != damaged]
        if not whole:
            return "No other checkpoint of this run is whole"
        return f"Intact: {', '.join(str(folder) for folder in whole)}"

"""What checks cost: the share of `encode`, `decode` and an epoch of training that goes into them.

    python -m benchmarks.checks                 prints the table
    python -m benchmarks.checks --out FILE.md   writes it as well

Two percent of a command that takes seconds is less than what a machine's other work adds to it, so that two runs with
and without checks say nothing. Here each check has a clock of its own, within one run: checksums of codes, caches and
checkpoints, bounds on what files claim, and the lock on what is written.
"""

import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks.side_by_side import Result, arguments, milliseconds, report
from sqvae.cli import main as sqvae
from sqvae.codec import formats, writing
from sqvae.data import cache
from sqvae.files import checksum_of, locking
from sqvae.tokenizers import claims
from sqvae.training import checkpoints

LIMIT = 0.02
"""The share that checks may have."""

CHECKS: Sequence[Callable[..., Any]] = (
    checksum_of,
    cache.read_entry,
    checkpoints.verify,
    checkpoints.read_json,
    checkpoints._hash,
    formats.is_checked,
    formats.check_range,
    locking._acquire,
)
"""Functions that do nothing but check. Two more are seen to below: a checksum of what is written as it is written, and
the bound on what is built."""


class Clock:
    """Seconds within functions, those that they call included, and none twice."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.aside = 0.0
        self._running = False

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with the clock running while it does."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._running:
                return function(*args, **kwargs)
            self._running, start = True, time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - start
                self._running = False

        return timed

    def beyond_building(self, built: Callable[..., Any]) -> Callable[..., Any]:
        """What building a model within bounds takes, less what building it takes."""

        def timed(make: Callable[[], Any], *args: Any) -> Any:
            start = time.perf_counter()
            make()
            middle = time.perf_counter()
            model = built(make, *args)
            end = time.perf_counter()
            self.seconds += (end - middle) - (middle - start)
            self.aside += middle - start
            return model

        return timed


def watched(clock: Clock) -> ExitStack:
    """Every check runs with the clock, wherever a module of the package has it by name."""
    stack = ExitStack()
    for function in CHECKS:
        _replace(stack, function, clock.around(function))
    _replace(stack, claims.built, clock.beyond_building(claims.built))
    stack.enter_context(mock.patch.object(writing, "zlib", SimpleNamespace(crc32=clock.around(zlib.crc32))))
    return stack


def _replace(stack: ExitStack, function: Callable[..., Any], by: Callable[..., Any]) -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("sqvae.") and vars(module).get(function.__name__) is function:
            stack.enter_context(mock.patch.object(module, function.__name__, by))


def _carried_out(words: Sequence[str]) -> None:
    if sqvae(list(words)) != 0:
        raise RuntimeError(f"`sqvae {' '.join(words)}` failed")


def measured(what: str, words: Sequence[str], rounds: int, folder: Path) -> Result:
    """A row: the median share of checks in a command, ``{}`` in which is a folder that is new each time."""
    seconds, shares = [], []
    for number in track(range(rounds), what, console=Console(stderr=True), transient=True):
        clock = Clock()
        with watched(clock), redirect_stdout(StringIO()):
            start = time.perf_counter()
            _carried_out([word.format(folder / f"{len(what)}-{number}") for word in words])
            whole = time.perf_counter() - start - clock.aside
        if not clock.seconds:
            raise RuntimeError(f"no check was seen in {what}: their names have changed, or they are gone")
        seconds.append((clock.seconds, whole))
        shares.append(clock.seconds / whole)
    share = statistics.median(shares)
    checks, whole = seconds[shares.index(sorted(shares)[len(shares) // 2])]
    target = f"<= {LIMIT:g}"
    return Result(what, milliseconds(checks), milliseconds(whole), f"{share:.4f}", target, share <= LIMIT)


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__, argv)
    rounds, images = (1, 64) if options.quick else (5, 10_000)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rng = np.random.default_rng(0)
        np.save(folder / "images.npy", rng.integers(0, 256, (images, 28, 28), dtype=np.uint8))
        epoch = ["--set", "training.threads=1"]
        epoch += ["--steps", "5"] if options.quick else ["--epochs", "1"]
        run, codes = f"{folder}/run", f"{folder}/codes.safetensors"
        with redirect_stdout(StringIO()):
            _carried_out(["train", "demo", "-o", run, *epoch])
            _carried_out(["encode", run, f"{folder}/images.npy", "-o", codes])
        commands = {
            f"`encode`, {images:,} images of 28x28": ["encode", run, f"{folder}/images.npy", "-o", "{}.safetensors"],
            f"`decode`, {images:,} images of 28x28": ["decode", run, codes, "-o", "{}"],
            "training on 4,000 digits, one epoch (`train demo`)": ["train", "demo", "-o", "{}", *epoch],
        }
        results = [measured(what, words, rounds, folder) for what, words in commands.items()]
    setting = "First: the time within checks. Second: the whole command's, from the caches on, without Python's start."
    report("What checks cost", setting, results, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Reads mutated files of every format, and counts what becomes of them: `make fuzz SECONDS=600`.

Each mutation has a number, and the same number is the same mutation anywhere: what fails is printed with it, and
`tests/hostile/test_fuzz.py` keeps those that have failed once.

A reader runs in a process of its own, which may die, hang or take memory without taking this one with it.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from robustness.formats import FORMATS, Reading
from robustness.mutations import mutated

HANG = 5.0
"""Seconds that reading a few kilobytes may take."""

MEMORY = 2**30
"""Bytes beyond those of the undisturbed reading."""

ROOM = 6 * 2**30
"""Bytes of addresses that a reader may ask for beyond what it has: this machine shall live."""

REFUSED, SAME, TOLD, OTHER = "refused", "the same", "told", "other"
CRASH, TRACEBACK, MUCH, SLOW, WRONG = "crash", "traceback", "memory", "hang", "wrong"
FINE = (REFUSED, SAME, TOLD, OTHER)
FAULTS = (CRASH, TRACEBACK, MUCH, SLOW, WRONG)

COLUMNS = {
    REFUSED: "refused",
    SAME: "same result",
    TOLD: "other result, said so",
    OTHER: "other content, no checks in the format",
    CRASH: "crash",
    TRACEBACK: "traceback",
    MUCH: "> 1 GB",
    SLOW: "> 5 s",
    WRONG: "wrong result, silent",
}


@dataclass(frozen=True)
class Outcome:
    """What became of a mutation."""

    name: str
    number: int
    kind: str
    words: str = ""


class Reader:
    """Reads mutations of one format, in this process."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.format = FORMATS[name]
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.files = list(self.format.make(folder))
        self.whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        self.expected = self.format.read(folder)
        self.format.read(folder)  # what the first reading loads and keeps is not the file's fault
        self.usual = _peak()

    def outcome(self, number: int) -> Outcome:
        """Of one mutation."""
        self._restore()
        path = self.files[number % len(self.files)]
        path.write_bytes(mutated(self.whole[path], f"{self.name} {path.name}", number))
        _forget_peak()
        start = time.perf_counter()
        kind, words = self._read()
        if time.perf_counter() - start > HANG:
            return Outcome(self.name, number, SLOW, words)
        if _peak() - self.usual > MEMORY:
            return Outcome(self.name, number, MUCH, f"{(_peak() - self.usual) / 2**20:,.0f} MB; {words}")
        return Outcome(self.name, number, kind, words)

    def _read(self) -> tuple[str, str]:
        try:
            reading = self.format.read(self.folder)
        except Exception as failure:
            ours = type(failure).__module__.startswith("sqvae.")
            if ours or isinstance(failure, ValueError | OSError):
                return REFUSED, str(failure)
            return TRACEBACK, repr(failure)
        return self._judged(reading)

    def _judged(self, reading: Reading) -> tuple[str, str]:
        if reading.content == self.expected.content:
            return SAME, ""
        if reading.told:
            return TOLD, reading.told[0]
        return (WRONG if self.format.sealed else OTHER), ""

    def _restore(self) -> None:
        """Put all files back as they were, and remove what was made of a mutation."""
        for path in self.folder.rglob("*"):
            if path.is_file() and path not in self.whole:
                path.unlink()
        for path, content in self.whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _peak() -> int:
    """Bytes of memory that this process has had at most since it last forgot."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def _forget_peak() -> None:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as clear:
        clear.write("5")


def _serve(name: str, folder: Path, wire: Connection) -> None:
    """Answer with the outcomes of the numbers that are asked for."""
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  until the process ends
    reader = Reader(name, folder)
    with open("/proc/self/statm", encoding="ascii") as statm:
        size = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wire.send("ready")
    while (number := wire.recv()) is not None:
        wire.send(reader.outcome(number))


class Attacked:
    """A process that reads mutations of a format, and is started anew when it has died."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._started = 0
        self._wire: Connection | None = None
        self._process: Any = None

    def outcome(self, number: int) -> Outcome:
        """Of one mutation."""
        wire = self._wire or self._start()
        try:
            wire.send(number)
            if not wire.poll(HANG + 5):
                self.stop()
                return Outcome(self.name, number, SLOW, "ended after 10 s")
            found: Outcome = wire.recv()
            return found
        except (EOFError, ConnectionError):
            self._process.join(10)
            code = self._process.exitcode
            self.stop()
            return Outcome(self.name, number, CRASH, f"the process ended with {code}")

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._wire = self._process = None

    def _start(self) -> Connection:
        here, there = multiprocessing.Pipe()
        self._started += 1
        folder = self.folder / f"{self.name}-{self._started}"
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_serve, args=(self.name, folder, there), daemon=True)
        self._process.start()
        there.close()
        if not here.poll(120) or here.recv() != "ready":
            raise SystemExit(f"the reader of {self.name} did not start")
        self._wire = here
        return here


@contextmanager
def attacked(name: str) -> Iterator[Attacked]:
    """A reader, which ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="sqvae-fuzz-"))
    reader = Attacked(name, folder)
    try:
        yield reader
    finally:
        reader.stop()
        shutil.rmtree(folder, ignore_errors=True)


def attack(name: str, numbers: range, until: float | None = None) -> tuple[Counter[str], list[Outcome]]:
    """What becomes of some mutations of a format, by kind; and those that must not be.

    Arguments:
        until: stop at this time of the clock.
    """
    counts: Counter[str] = Counter()
    faults = []
    with attacked(name) as reader:
        for number in numbers:
            outcome = reader.outcome(number)
            counts[outcome.kind] += 1
            if outcome.kind in FAULTS:
                faults.append(outcome)
            if until is not None and time.monotonic() > until:
                break
    return counts, faults


def table(counts: dict[str, Counter[str]], setting: str) -> str:
    """The counts, in Markdown."""
    kinds = list(COLUMNS)
    lines = [
        "# Mutated files",
        "",
        "Written by `make fuzz-docs`; do not edit. " + setting,
        "",
        "| format | mutations | " + " | ".join(COLUMNS[kind] for kind in kinds) + " |",
        "|---" * (2 + len(kinds)) + "|",
    ]
    for name, found in counts.items():
        numbers = " | ".join(f"{found[kind]:,}" for kind in kinds)
        lines.append(f"| {name} | {found.total():,} | {numbers} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="for all formats together; by default as many as it takes")
    parser.add_argument("--mutations", type=int, default=10_000, help="of each format, at most")
    parser.add_argument("--first", type=int, default=0, help="number to begin with: others than before")
    parser.add_argument("--only", action="append", choices=sorted(FORMATS), help="a format; may be repeated")
    parser.add_argument("--out", type=Path, help="a page for the counts")
    options = parser.parse_args(argv)
    names = options.only or list(FORMATS)
    numbers = range(options.first, options.first + options.mutations)
    counts, faults = {}, []
    for name in names:
        until = None if options.seconds is None else time.monotonic() + options.seconds / len(names)
        counts[name], found = attack(name, numbers, until)
        faults += found
        print(f"{name}: " + ", ".join(f"{number:,} {kind}" for kind, number in counts[name].most_common()), flush=True)
        for fault in found[:20]:
            print(
                f"  {fault.kind}: --only {name} --first {fault.number} --mutations 1: {fault.words[:300]}", flush=True
            )
    most = max(found.total() for found in counts.values())
    setting = (
        f"Up to {most:,} mutations of each format, numbers {numbers.start} and on; the last five columns must be 0."
    )
    if options.out is not None:
        options.out.write_text(table(counts, setting), encoding="utf-8")
    if faults:
        print(f"{len(faults)} mutations have done what none may do")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Kills every command that writes, and compares what comes of repeating it: `make crash KILLS=200`.

Half of the kills come at random moments; the others at system calls that change the disk, spread evenly over those of
the command, with the write that is cut done by half (`dies_at.c`, which a C compiler makes a library of).

After each kill every file under a final name must be whole: as it was before, or as it is to be, and every checkpoint
as its manifest says. Then the command is given again, as a person would, and what it writes must be the same, bit by
bit, with nothing left lying about.

Where a file system may be mounted (by root), each command also meets a full disk, at several points of its work: it
must say so, nothing may be lost, and once there is room it must do what it does undisturbed.
"""

import argparse
import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robustness.formats import digest

LIBRARY = "DIES_AT_LIBRARY"
SMALL = (
    *("--set", "network.widths=4,8", "--set", "network.blocks=1", "--set", "training.threads=1"),
    *("--set", "quantizer.codebook_size=16", "--set", "quantizer.dim=8", "--set", "training.batch_size=8"),
    *("--set", "training.passes_per_epoch=1", "--set", "training.log_every=5"),
)
IN_PLACE = "is there already"
"""What a command says that would not replace a file."""

DISK = 64 * 2**20
"""Bytes of a disk that is to be full."""

PAGE = 4096
"""Bytes that it is given out in."""

CHECKPOINTS = ("best", "last", "previous")
ONCE = ("log.jsonl", "tensorboard", ".lock", ".owner", "curves.png")
"""Of a run's folder: what tells the time, or grows line by line."""


@dataclass(frozen=True)
class Command:
    """A command that writes."""

    words: Sequence[str]
    """What is typed; ``{}`` is the folder."""
    writes: str
    """Where, in the folder."""
    again: Sequence[str] | None = None
    """What is typed after it was killed, if something else; it is tried first."""
    prepared: Callable[[Path], None] = field(default=lambda folder: None)
    """Makes what it needs besides."""

    def typed(self, folder: Path) -> list[str]:
        return [word.format(folder) for word in self.words]

    def typed_again(self, folder: Path) -> list[list[str]]:
        """What a person would try, one after the other."""
        first = [] if self.again is None else [[word.format(folder) for word in self.again]]
        return [*first, self.typed(folder)]


def _half_trained(folder: Path) -> None:
    shutil.copytree(folder / "run", folder / "half")


COMMANDS: Mapping[str, Command] = {
    "train": Command(
        ("train", "--data", "{}/pictures.npy", "-o", "{}/new", "--epochs", "2", *SMALL), "new", ("resume", "{}/new")
    ),
    "resume": Command(("resume", "{}/half", "--epochs", "3"), "half", prepared=_half_trained),
    "train-prior": Command(
        (
            *("train-prior", "{}/run", "-o", "{}/prior", "--epochs", "1", "--set", "prior.channels=8"),
            *("--set", "prior.layers=1", "--set", "training.threads=1"),
        ),
        "prior",
        ("resume", "{}/prior"),
    ),
    "encode": Command(("encode", "{}/run", "{}/photos", "-o", "{}/new.safetensors"), "new.safetensors"),
    "encode to .npz": Command(("encode", "{}/run", "{}/photos", "-o", "{}/new.npz"), "new.npz"),
    "decode": Command(("decode", "{}/run", "{}/codes.safetensors", "-o", "{}/new", "--overwrite"), "new"),
    "reconstruct": Command(("reconstruct", "{}/run", "{}/photos", "-o", "{}/new", "--overwrite"), "new"),
    "compress": Command(("compress", "{}/run", "{}/photos", "-o", "{}/new.sqz"), "new.sqz"),
    "decompress": Command(("decompress", "{}/run", "{}/photos.sqz", "-o", "{}/new", "--overwrite"), "new"),
    "export": Command(
        ("export", "{}/run", "--pretrained", "-o", "{}/new"),
        "new",
        ("export", "{}/run", "--pretrained", "-o", "{}/new", "--overwrite"),
    ),
    "report": Command(("report", "{}/run", "-o", "{}/new.html", "--overwrite"), "new.html"),
    "evaluate": Command(("evaluate", "{}/run"), "run"),
    "reproduce": Command(
        (
            *("reproduce", "figure-2", "--scale", "smoke", "--only", "sq-vae-1", "--jobs", "1"),
            *("-o", "{}/new", "--runs", "{}/runs", "--page", "{}/new/page.md"),
        ),
        "new",
    ),
}


class BrokenError(Exception):
    """A promise did not hold."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="over all commands")
    parser.add_argument("--fills", type=int, default=4, help="full disks for each command")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--only", action="append", choices=sorted(COMMANDS), help="a command; may be repeated")
    parser.add_argument("--out", type=Path, help="a page for the table")
    options = parser.parse_args(argv)
    if LIBRARY not in os.environ:
        return _with_library(sys.argv[1:] if argv is None else list(argv))
    names = options.only or list(COMMANDS)
    rows, broken = [], []
    with tempfile.TemporaryDirectory(prefix="sqvae-crash-") as place:
        base = Path(place) / "base"
        _make_base(base)
        for index, name in enumerate(names):
            kills = options.kills // len(names) + (index < options.kills % len(names))
            row, failures = Attack(name, base, Path(place), options.seed).carried_out(kills)
            rows.append(row)
            broken += failures
            print(" | ".join(row), flush=True)
            for failure in failures:
                print(f"  {failure}", flush=True)
        filled, failures = _full_disks(names, base, Path(place), options.seed, options.fills)
        broken += failures
    if options.out is not None:
        options.out.write_text(_page(rows, filled, options.kills, options.seed), encoding="utf-8")
    if broken:
        print(f"{len(broken)} promises did not hold")
        return 1
    return 0


def _full_disks(
    names: Sequence[str], base: Path, place: Path, seed: int, times: int
) -> tuple[list[list[str]], list[str]]:
    """Rows of the table of full disks, and what did not hold; none where nothing may be mounted."""
    disk, rows, broken = place / "disk", [], []
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)]
    if not times or subprocess.run(mount, capture_output=True, check=False).returncode:
        print("no full disks: a file system can't be mounted here (it takes root)", flush=True)
        return [], []
    try:
        for name in names:
            row, failures = Attack(name, base, place, seed).fill_disk(times)
            rows.append(row)
            broken += failures
            print("full disk: " + " | ".join(row), flush=True)
            for failure in failures:
                print(f"  {failure}", flush=True)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return rows, broken


def _with_library(arguments: Sequence[str]) -> int:
    """The same once more, with the library that dies loaded before all others."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "dies_at.so"
        source = Path(__file__).with_name("dies_at.c")
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        environment = {**os.environ, "LD_PRELOAD": str(library), LIBRARY: str(library), "OMP_NUM_THREADS": "1"}
        return subprocess.run(
            [sys.executable, "-m", "robustness.crash", *arguments], env=environment, check=False
        ).returncode


def _make_base(base: Path) -> None:
    """A run with all that the commands take, made by the commands themselves."""
    import numpy as np
    from PIL import Image

    base.mkdir(parents=True)
    generator = np.random.default_rng(0)
    pictures = generator.integers(0, 60, (80, 8, 8, 1), dtype=np.uint8)
    for picture in pictures:
        top, left = generator.integers(0, 4, 2)
        picture[top : top + 4, left : left + 4] += 180
    np.save(base / "pictures.npy", pictures)
    (base / "photos").mkdir()
    for number in range(40):
        Image.fromarray(pictures[number, ..., 0]).save(base / "photos" / f"{number}.png")
    os.environ["SQVAE_CACHE"] = str(base.parent / "cache")
    for words in (
        ["train", "--data", str(base / "pictures.npy"), "-o", str(base / "run"), "--epochs", "2", *SMALL],
        ["encode", str(base / "run"), str(base / "photos"), "-o", str(base / "codes.safetensors")],
        ["compress", str(base / "run"), str(base / "photos"), "-o", str(base / "photos.sqz")],
    ):
        if Child(words, base.parent).ended() != 0:
            raise SystemExit(f"`sqvae {' '.join(words)}` failed: {(base.parent / 'said').read_text()}")


class Child:
    """A command in a process of its own, forked from this one: what it imports is there already.

    Arguments:
        words: of the command.
        folder: where to take down what it says.
        die_at: the number of the change of the disk at which it dies.
    """

    def __init__(self, words: Sequence[str], folder: Path, die_at: int | None = None) -> None:
        import sqvae.sweeps  # noqa: F401  once, before any fork
        from sqvae.cli import main as command

        self.changes = folder / "changes"
        self.process = os.fork()
        if self.process == 0:
            os.setpgid(0, 0)
            with (folder / "said").open("wb") as said:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
            library = ctypes.CDLL(os.environ[LIBRARY])
            library.changes_so_far.restype = ctypes.c_long
            if die_at is not None:
                os.environ["DIE_AT"] = str(die_at)  # for those that it starts
            library.die_at(ctypes.c_long(die_at or 0))
            code = 99
            with contextlib.suppress(BaseException):
                code = command(list(words))
            made = library.changes_so_far()
            library.die_at(ctypes.c_long(0))
            self.changes.write_text(str(made))
            os._exit(code)

    def ended(self) -> int:
        """The exit code, or minus the signal that has ended it."""
        _, status = os.waitpid(self.process, 0)
        return os.waitstatus_to_exitcode(status)

    def killed_after(self, seconds: float) -> int:
        """Kill it with all that it has started, unless it has ended before."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ended, status = os.waitpid(self.process, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.002)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        return self.ended()


class Attack:
    """The kills of one command.

    Arguments:
        name: of the command.
        base: the folder that each begins with.
        place: where to work.
        seed: of the moments.
    """

    def __init__(self, name: str, base: Path, place: Path, seed: int) -> None:
        self.name = name
        self.command = COMMANDS[name]
        self.base = base
        self.place = place
        self.folder = place / "work"
        self.random = random.Random(f"{name} {seed}")

    def carried_out(self, kills: int) -> tuple[list[str], list[str]]:
        """A row of the table, and what did not hold."""
        self._undisturbed()
        self.expected, seconds, changes = self._undisturbed()
        died, done, failures = 0, 0, []
        for number in range(kills):
            at_change = number % 2 == 1
            when = (1 + (number // 2) * changes // max(1, kills // 2)) if at_change else self.random.uniform(0, seconds)
            try:
                died += self._kill(when, at_change)
                done += 1
            except BrokenError as broken:
                moment = f"change {when:.0f} of {changes}" if at_change else f"{when:.3f} s of {seconds:.3f}"
                failures.append(f"{self.name}, killed at {moment}: {broken}")
        return [self.name, str(kills), str(died), str(changes), str(len(self.expected)), str(len(failures))], failures

    def _fresh(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.base, self.folder)
        self.command.prepared(self.folder)

    def _undisturbed(self) -> tuple[dict[str, str], float, int]:
        self._fresh()
        start = time.monotonic()
        child = Child(self.command.typed(self.folder), self.place)
        if child.ended() != 0:
            raise SystemExit(f"{self.name} fails undisturbed: {self._said()}")
        return self._written(), time.monotonic() - start, int(child.changes.read_text())

    def _kill(self, when: float, at_change: bool) -> bool:
        """Whether it died of it; raises if a promise does not hold."""
        self._fresh()
        before = self._written()
        child = Child(self.command.typed(self.folder), self.place, die_at=int(when) if at_change else None)
        code = child.ended() if at_change else child.killed_after(when)
        self._check_whole(before)
        self._repeat(code)
        return code != 0

    def _repeat(self, code: int) -> None:
        """Give the command again, and compare what it writes with what it writes undisturbed."""
        if code != 0:
            for words in self.command.typed_again(self.folder):
                if Child(words, self.place).ended() == 0:
                    break
            else:
                # It may have been killed after its last file was in place: then there is nothing left to repeat, it
                # says so, and below everything must be there.
                if IN_PLACE not in self._said():
                    raise BrokenError(f"it can't be repeated: {self._said()[-400:]}")
        self._check_same()

    def fill_disk(self, times: int) -> tuple[list[str], list[str]]:
        """Let the command meet a full disk so many times; a row of the table, and what did not hold."""
        self.folder = self.place / "disk" / "work"
        self._undisturbed()
        self.expected, _, _ = self._undisturbed()
        needed = self._needed()
        said, failures = 0, []
        for number in range(times):
            room = needed * number // times
            try:
                said += self._meet_full_disk(room)
            except BrokenError as broken:
                failures.append(f"{self.name}, with room for {room:,} of {needed:,} bytes: {broken}")
        return [self.name, str(times), str(said), f"{needed:,}", str(len(failures))], failures

    def _needed(self) -> int:
        """Bytes of the disk that the command takes."""
        disk = os.statvfs(self.folder)
        after = disk.f_bavail * disk.f_frsize
        self._fresh()
        disk = os.statvfs(self.folder)
        return max(PAGE, disk.f_bavail * disk.f_frsize - after)

    def _meet_full_disk(self, room: int) -> bool:
        """Whether it did not suffice; raises if a promise does not hold."""
        self._fresh()
        before, ballast, disk = self._written(), self.folder.parent / "ballast", os.statvfs(self.folder)
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(PAGE, disk.f_bavail * disk.f_frsize - room))
        code = Child(self.command.typed(self.folder), self.place).ended()
        said = self._said()
        ballast.unlink()
        if code != 0 and "No space left on device" not in said:
            raise BrokenError(f"it ended with {code}, and did not say why: {said[-400:]}")
        if "Traceback" in said:
            raise BrokenError(f"it gave a traceback: {said[-400:]}")
        self._check_whole(before)
        if code == 0 and "No space left on device" in said:
            code = 1  # it did what it could, and said what it could not
        self._repeat(code)
        return code != 0

    def _said(self) -> str:
        return (self.place / "said").read_text(encoding="utf-8", errors="replace")

    def _check_whole(self, before: Mapping[str, str]) -> None:
        """Whatever has a final name is whole."""
        from sqvae.training import CheckpointError
        from sqvae.training.checkpoints import verify

        for path in (self.folder / self.command.writes).rglob("*"):
            if path.is_dir() and path.name in CHECKPOINTS:
                try:
                    verify(path)
                except CheckpointError as damage:
                    raise BrokenError(f"{path.name} is no whole checkpoint: {damage}") from None
        for name, content in self._written().items():
            in_checkpoint = set(Path(name).parts) & set(CHECKPOINTS)
            if not in_checkpoint and content not in (before.get(name), self.expected.get(name)):
                raise BrokenError(f"{name} is neither as before nor as it is to be")

    def _check_same(self) -> None:
        found = self._written()
        for name in sorted({*found, *self.expected}):
            if found.get(name) != self.expected.get(name):
                state = "is missing" if name not in found else "is left" if name not in self.expected else "differs"
                raise BrokenError(f"after it was repeated, {name} {state}")

    def _written(self) -> dict[str, str]:
        """The content of every file that it writes, by its name."""
        target = self.folder / self.command.writes
        files = [target] if target.is_file() else sorted(path for path in target.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self.folder)): _content(path)
            for path in files
            if not set(path.relative_to(self.folder).parts) & set(ONCE) and not _is_aside(path)
        }


def _is_aside(path: Path) -> bool:
    """Whether a file, or a folder that it is in, has a name that says that it is not ready."""
    return any(".partial" in part or part.endswith((".new", ".old")) for part in path.parts)


MANIFEST, STATE = "manifest.json", "training.json"

TIMES = ("seconds", "duration", "time", "date", "hours", "machine", "processor")
"""Entries of a JSON file, or the ends of their names, that differ from run to run."""


def _content(path: Path) -> str:
    if path.suffix == ".json":
        with contextlib.suppress(ValueError):
            content = _without_times(json.loads(path.read_text(encoding="utf-8")))
            if path.name == MANIFEST:
                content.pop(STATE, None)  # which counts the seconds; it is compared by itself
            return digest(content)
    if path.suffix in (".html", ".md", ".svg"):
        return "a page, which tells the time" if path.stat().st_size else "an empty page"
    return digest(path.read_bytes())


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_times(own) for name, own in value.items() if not name.endswith(TIMES)}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


def _page(rows: Sequence[Sequence[str]], filled: Sequence[Sequence[str]], kills: int, seed: int) -> str:
    header = ["command", "kills", "died of it", "changes of the disk, undisturbed", "files compared", "promises broken"]
    lines = [
        "# Killed commands",
        "",
        f"Written by `make crash-docs`; do not edit. {kills} kills, half of them at random moments (seed {seed}), half "
        "at system calls that change the disk, evenly over all of the command. After each, all files under final names "
        "were whole; the command was then repeated, and what it wrote compared with an undisturbed one, bit by bit.",
        "",
        "| " + " | ".join(header) + " |",
        "|---" * len(header) + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    if filled:
        header = ["command", "full disks", "did not suffice", "bytes needed", "promises broken"]
        lines += [
            "",
            "## Full disks",
            "",
            "A file system in memory was filled before the command began, but for a share of the bytes that it needs. "
            "It had to say that there is no space left, keep what was there, and do its work once there was room.",
            "",
            "| " + " | ".join(header) + " |",
            "|---" * len(header) + "|",
            *("| " + " | ".join(row) + " |" for row in filled),
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())

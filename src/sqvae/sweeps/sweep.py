"""Many runs, a few at a time, in processes of their own."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import torch

from sqvae.config import to_json
from sqvae.reports import error_of
from sqvae.sweeps.records import Planned, Record, load_record
from sqvae.training import RunFolder, StopSignals

GRACE = 60.0
"""Seconds that runs have to save and end when the sweep is interrupted."""

KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
"""Has glibc keep what a step has freed for the next. Otherwise it goes back to the system each time, and with 256
classes a quarter of a step is spent on getting it again."""

TAIL = 65_536
"""Bytes at the end of a log that hold its last record, whatever it is."""

State = Literal["found", "finished", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What became of a planned run."""

    planned: Planned
    state: State
    record: Record | None = None
    reason: str = ""
    """Why it failed, in one line."""

    @property
    def summary(self) -> str:
        """What came of it, in words."""
        record = self.record
        if record is None:
            return f"failed: {self.reason}"
        use = f", perplexity {record.measures['perplexity']:.1f}" if "perplexity" in record.measures else ""
        missing = "".join(f"; but {note}" for note in record.notes)
        return f"{error_of(record.measures)}{use}, {record.seconds / 60:.1f} minutes{missing}"


class SweepStoppedError(Exception):
    """A signal has ended a sweep; what was running has been asked to save."""

    def __init__(self, signal_number: int, running: int) -> None:
        super().__init__(f"{running} runs were under way, and have been asked to save")
        self.signal_number = signal_number


class _Worker:
    """A process that carries out one run after the other, until one fails.

    Arguments:
        answers: takes the worker and why its run has failed (nothing where it hasn't) after each run, and after its
            end None for the latter.
        log: what it says besides.
    """

    def __init__(self, environment: Mapping[str, str], answers: "Answers", log: Path) -> None:
        self.planned: Planned | None = None
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sqvae.sweeps.worker"],
                stdin=subprocess.PIPE,  # closes when this process ends in whatever way, and that ends the worker
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(environment),
                text=True,
                start_new_session=True,  # or the terminal would send Ctrl-C as well
            )
        self._listener = threading.Thread(target=self._listen, args=(answers,), daemon=True)
        self._listener.start()

    def _listen(self, answers: "Answers") -> None:
        assert self.process.stdout is not None
        try:
            with self.process.stdout as lines:
                for line in lines:
                    with contextlib.suppress(ValueError):  # not an answer: something else that prints
                        answers.put((self, str(json.loads(line)["failure"])))
        finally:
            answers.put((self, None))

    def order(self, planned: Planned, run: Path, log: Path, records: Path) -> None:
        self.planned = planned
        content = {
            "experiment": to_json(planned.experiment),
            "tags": dict(planned.tags),
            "sequel": None if planned.sequel is None else to_json(planned.sequel),
        }
        line = json.dumps({**content, "run": str(run), "log": str(log), "records": str(records)})
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and that will be heard
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def end(self, seconds: float = 0.0) -> str:
        """Have the process ended, and say how that went; it has some time to save what it was at."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.process.kill()
        code = self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self._listener.join()
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"


Answers: TypeAlias = "queue.SimpleQueue[tuple[_Worker, str | None]]"


class Sweep:
    """Runs that are carried out side by side, and not again where they are finished.

    Arguments:
        records: the folder of finished runs' records.
        runs: the folder of the runs themselves.
        jobs: how many at a time. None: one a device, or where there is none, one a core.
        threads: of each run on the CPU. None: what ``OMP_NUM_THREADS`` says, or half of the cores, shared out: small
            steps gain little from more, and threads that wait for a busy core lose very much.
    """

    def __init__(self, records: Path, runs: Path, *, jobs: int | None = None, threads: int | None = None) -> None:
        self.records = records
        self.runs = runs
        self.devices = torch.cuda.device_count()
        cores = usable_cores()
        self.jobs = jobs or self.devices or cores
        self.threads = threads or int(os.environ.get("OMP_NUM_THREADS") or max(1, cores // 2 // self.jobs))

    def run(
        self,
        planned: Sequence[Planned],
        *,
        on_start: Callable[[Planned], None] = lambda planned: None,
        on_outcome: Callable[[Outcome], None] = lambda outcome: None,
        on_look: Callable[[], None] = lambda: None,
    ) -> list[Outcome]:
        """Carry out what is not finished yet. A run that fails does not end the others.

        Arguments:
            on_start: called when a run begins, or goes on.
            on_outcome: called when one has ended, and first of all for those that are found finished.
            on_look: called several times a second meanwhile.
        """
        outcomes: list[Outcome] = []

        def told(outcome: Outcome) -> None:
            outcomes.append(outcome)
            on_outcome(outcome)

        waiting: list[Planned] = []
        for one in planned:
            record = load_record(self.records, one)
            if record is None:
                waiting.append(one)
            else:
                told(Outcome(one, "found", record))
        answers: Answers = queue.SimpleQueue()
        places: dict[int, _Worker] = {}  # each takes up a device, or some cores
        with StopSignals() as signals, _ended(places):
            while waiting or any(worker.planned for worker in places.values()):
                for place in range(self.jobs):
                    taken = [worker.planned.model.name for worker in places.values() if worker.planned is not None]
                    free = [one for one in waiting if one.model.name not in taken]  # a model trains once at a time
                    if free and (place not in places or places[place].planned is None):
                        if place not in places:
                            places[place] = self._worker(place, answers)
                        on_start(free[0])
                        waiting.remove(free[0])
                        self._order(places[place], free[0])
                with contextlib.suppress(queue.Empty):
                    worker, failure = answers.get(timeout=0.2)
                    held = [place for place, one in places.items() if one is worker]  # none once it has been ended
                    if held:
                        if failure != "":  # what has failed once may have left something behind
                            del places[held[0]]
                            how = worker.end()
                            failure = failure or f"its process ended {how} (see {self.worker_log})"
                        if worker.planned is not None:
                            told(self._outcome(worker.planned, failure))
                        worker.planned = None
                on_look()
                if signals.received is not None:
                    running = sum(worker.planned is not None for worker in places.values())
                    raise SweepStoppedError(int(signals.received), running)
        return outcomes

    def folder_of(self, planned: Planned) -> RunFolder:
        """Where a run is carried out; a sequel in that of its model."""
        return RunFolder(self.runs / planned.model.name)

    def epochs_done(self, planned: Planned) -> int:
        """How many epochs a run has trained for, by the end of its log."""
        log = self.folder_of(planned).log
        try:
            with log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - TAIL))
                lines = file.read().split(b"\n")[:-1]
            return int(json.loads(lines[-1])["epoch"])
        except (OSError, ValueError, IndexError):  # none yet, or just being written
            return 0

    def log_of(self, planned: Planned) -> Path:
        """What a run has printed, with the traceback where it has failed."""
        return self.runs / f"{planned.name}.log"

    @property
    def worker_log(self) -> Path:
        """What workers have said beside their runs, such as why one could not start."""
        return self.runs / "workers.log"

    def _worker(self, place: int, answers: Answers) -> _Worker:
        self.runs.mkdir(parents=True, exist_ok=True)
        return _Worker(self._environment(place), answers, self.worker_log)

    def _order(self, worker: _Worker, planned: Planned) -> None:
        worker.order(planned, self.folder_of(planned).path, self.log_of(planned), self.records)

    def _environment(self, place: int) -> dict[str, str]:
        environment = {**KEPT_MEMORY, **os.environ, "OMP_NUM_THREADS": str(self.threads)}
        if self.devices:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            names = visible.split(",") if visible else [str(number) for number in range(self.devices)]
            environment["CUDA_VISIBLE_DEVICES"] = names[place % len(names)]
        return environment

    def _outcome(self, planned: Planned, failure: str) -> Outcome:
        record = load_record(self.records, planned)
        if failure or record is None:
            return Outcome(planned, "failed", reason=failure or "it has left no record")
        return Outcome(planned, "finished", record)


@contextlib.contextmanager
def _ended(workers: Mapping[int, _Worker]) -> Iterator[None]:
    """However the block ends, no worker outlives it, and each has time to save what it was at."""
    try:
        yield
    finally:
        for worker in workers.values():
            worker.process.terminate()  # all at once, and then wait for each
        deadline = time.monotonic() + GRACE
        for worker in workers.values():
            worker.end(max(0.1, deadline - time.monotonic()))


def usable_cores() -> int:
    """How many cores this process may use: fewer than there are, in a container or under taskset."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

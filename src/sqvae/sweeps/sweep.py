"""Sweeps: many runs, several at a time, each in its own process."""

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
"""The number of seconds that runs have to save and end when the sweep is interrupted."""

KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
"""Makes glibc keep freed memory for the next step. Otherwise it is returned to the system after each step, and with
256 classes a quarter of a step is spent on allocating it again."""

TAIL = 65_536
"""Bytes at the end of a log that hold its last record, whatever it is."""

State = Literal["found", "finished", "failed"]


@dataclass(frozen=True)
class Outcome:
    """The outcome of a planned run."""

    planned: Planned
    state: State
    record: Record | None = None
    reason: str = ""
    """The reason of a failure, in one line."""

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
    """A signal has stopped a sweep. Its running runs were told to save a checkpoint."""

    def __init__(self, signal_number: int, running: int) -> None:
        super().__init__(f"{running} runs were in progress and were told to save a checkpoint")
        self.signal_number = signal_number


class _Worker:
    """A process that carries out one run after the other, until one fails.

    Arguments:
        environment: the environment variables of the process.
        answers: receives the worker and the reason of a failure ("" for success) after each run, and the worker and
            None after the process has ended.
        log: the file for its other output.
    """

    def __init__(self, environment: Mapping[str, str], answers: "Answers", log: Path) -> None:
        self.planned: Planned | None = None
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sqvae.sweeps.worker"],
                stdin=subprocess.PIPE,  # closes when this process ends for any reason, which ends the worker
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(environment),
                text=True,
                start_new_session=True,  # otherwise the terminal would send it Ctrl-C as well
            )
        self._listener = threading.Thread(target=self._listen, args=(answers,), daemon=True)
        self._listener.start()

    def _listen(self, answers: "Answers") -> None:
        assert self.process.stdout is not None
        try:
            with self.process.stdout as lines:
                for line in lines:
                    with contextlib.suppress(ValueError):  # not an answer but other output
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
        with contextlib.suppress(BrokenPipeError):  # it has ended, which the listener reports
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def end(self, seconds: float = 0.0) -> str:
        """End the process and return how it ended. It has some seconds to save."""
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
    """Carries out runs in parallel, and skips those that are finished.

    Arguments:
        records: the folder of the records of finished runs.
        runs: the folder of the runs themselves.
        jobs: the number of parallel runs. None takes the number of GPUs or, without GPUs, the number of cores.
        threads: the number of CPU threads of each run. None takes ``OMP_NUM_THREADS`` or divides half of the cores
            among the runs: small steps gain little from more threads, and lose much if threads wait for a busy core.
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
        """Carry out the runs that are not finished yet. A failed run does not stop the others.

        Arguments:
            planned: the runs.
            on_start: called when a run starts or resumes.
            on_outcome: called when a run has ended, and at the beginning for each run that is already finished.
            on_look: called several times a second.
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
        places: dict[int, _Worker] = {}  # each uses one device, or some cores
        with StopSignals() as signals, _ended(places):
            while waiting or any(worker.planned for worker in places.values()):
                for place in range(self.jobs):
                    taken = [worker.planned.model.name for worker in places.values() if worker.planned is not None]
                    free = [
                        one for one in waiting if one.model.name not in taken
                    ]  # two runs never train the same model at once
                    if free and (place not in places or places[place].planned is None):
                        if place not in places:
                            places[place] = self._worker(place, answers)
                        on_start(free[0])
                        waiting.remove(free[0])
                        self._order(places[place], free[0])
                with contextlib.suppress(queue.Empty):
                    worker, failure = answers.get(timeout=0.2)
                    held = [
                        place for place, one in places.items() if one is worker
                    ]  # empty if the worker has been ended already
                    if held:
                        if failure != "":  # a failed run may leave the process in a bad state
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
        """The folder of a run; the second stage uses the folder of its model."""
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
        """The file with a run's output, and the traceback if it failed."""
        return self.runs / f"{planned.name}.log"

    @property
    def worker_log(self) -> Path:
        """The file with the workers' other output, such as the reason why one could not start."""
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
            return Outcome(planned, "failed", reason=failure or "it left no record")
        return Outcome(planned, "finished", record)


@contextlib.contextmanager
def _ended(workers: Mapping[int, _Worker]) -> Iterator[None]:
    """End all workers when the block ends for any reason, with some time to save."""
    try:
        yield
    finally:
        for worker in workers.values():
            worker.process.terminate()  # all of them first, before waiting for each
        deadline = time.monotonic() + GRACE
        for worker in workers.values():
            worker.end(max(0.1, deadline - time.monotonic()))


def usable_cores() -> int:
    """The number of cores that this process may use, which a container or taskset may limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

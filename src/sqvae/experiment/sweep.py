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

from sqvae.experiment.configuration import to_json
from sqvae.experiment.records import Planned, Record, load_record
from sqvae.training import RunFolder, StopSignals

GRACE = 60.0
"""Seconds that runs have to save and end when the sweep is interrupted."""

Answers: TypeAlias = "queue.SimpleQueue[tuple[int, str]]"
"""The place of a worker, and why its run has failed: nothing where it hasn't."""

State = Literal["found", "finished", "failed"]


@dataclass(frozen=True)
class Outcome:
    """What became of a planned run."""

    planned: Planned
    state: State
    record: Record | None = None
    reason: str = ""
    """Why it failed, in one line."""


class SweepStoppedError(Exception):
    """A signal has ended a sweep; what was running has been saved."""

    def __init__(self, signal_number: int, running: int) -> None:
        super().__init__(f"{running} runs were under way, and are saved")
        self.signal_number = signal_number


class _Worker:
    """A process that carries out one run after the other."""

    def __init__(self, place: int, environment: Mapping[str, str], answers: Answers) -> None:
        self.planned: Planned | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sqvae.experiment.member"],
            stdin=subprocess.PIPE,  # closes when this process ends in whatever way, and that ends the worker
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # each run has a log
            env=dict(environment),
            text=True,
            start_new_session=True,  # or the terminal would send Ctrl-C as well
        )
        self._listener = threading.Thread(target=self._listen, args=(place, answers), daemon=True)
        self._listener.start()

    def _listen(self, place: int, answers: Answers) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                answers.put((place, json.loads(line)["failure"]))
        code = self.process.wait()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        answers.put((place, f"its process ended {how}"))

    def order(self, planned: Planned, run: Path, log: Path, records: Path) -> None:
        self.planned = planned
        content = {"experiment": to_json(planned.experiment), "tags": dict(planned.tags)}
        line = json.dumps({**content, "run": str(run), "log": str(log), "records": str(records)})
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and that will be heard
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def close(self) -> None:
        """Let go of a process that has ended."""
        self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self._listener.join()


class Sweep:
    """Runs that are carried out side by side, and not again where they are finished.

    Arguments:
        records: the folder of finished runs' records.
        runs: the folder of the runs themselves.
        jobs: how many at a time. None: one a device, or where there is none, one a core.
        threads: of each run on the CPU. None: the cores, shared out.
    """

    def __init__(self, records: Path, runs: Path, *, jobs: int | None = None, threads: int | None = None) -> None:
        self.records = records
        self.runs = runs
        self.devices = torch.cuda.device_count()
        cores = os.cpu_count() or 1
        self.jobs = jobs or self.devices or cores
        self.threads = threads or max(1, cores // self.jobs)

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
            record = load_record(self.records, one.name)
            if record is None:
                waiting.append(one)
            else:
                told(Outcome(one, "found", record))
        answers: Answers = queue.SimpleQueue()
        workers: dict[int, _Worker] = {}  # by the place that each takes up: a device, or some cores
        with StopSignals() as signals, _ended(workers):
            while waiting or any(worker.planned for worker in workers.values()):
                for place in range(self.jobs):
                    if waiting and (place not in workers or workers[place].planned is None):
                        if place not in workers:
                            workers[place] = _Worker(place, self._environment(place), answers)
                        on_start(waiting[0])
                        self._order(workers[place], waiting.pop(0))
                with contextlib.suppress(queue.Empty):
                    place, failure = answers.get(timeout=0.2)
                    worker = workers[place]
                    if worker.planned is not None:
                        told(self._outcome(worker.planned, failure))
                    worker.planned = None
                    if worker.process.poll() is not None:
                        workers.pop(place).close()
                on_look()
                if signals.received is not None:
                    raise SweepStoppedError(
                        int(signals.received), sum(worker.planned is not None for worker in workers.values())
                    )
        return outcomes

    def folder_of(self, planned: Planned) -> RunFolder:
        """Where a run is carried out."""
        return RunFolder(self.runs / planned.name)

    def log_of(self, planned: Planned) -> Path:
        """What a run has printed, with the traceback where it has failed."""
        return self.runs / f"{planned.name}.log"

    def _order(self, worker: _Worker, planned: Planned) -> None:
        self.runs.mkdir(parents=True, exist_ok=True)
        worker.order(planned, self.folder_of(planned).path, self.log_of(planned), self.records)

    def _environment(self, place: int) -> dict[str, str]:
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        if self.devices:
            environment["CUDA_VISIBLE_DEVICES"] = str(place % self.devices)
        return environment

    def _outcome(self, planned: Planned, failure: str) -> Outcome:
        record = load_record(self.records, planned.name)
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
            worker.process.terminate()
        deadline = time.monotonic() + GRACE
        for worker in workers.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.1, deadline - time.monotonic()))
            worker.process.kill()
            worker.close()

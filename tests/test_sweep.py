"""Many runs side by side: finished ones are kept, interrupted ones go on, failed ones are told of."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from runs import tiny, weights_of, write_pictures
from sqvae.experiment import Planned, Sweep, load_pictures, load_record
from sqvae.experiment import train as train_run
from sqvae.experiment.records import key_of


@pytest.fixture
def source(tmp_path):
    return write_pictures(tmp_path / "squares.npy")


def plan(source, *seeds, **training):
    experiment = tiny(source, **training)
    return [Planned(replace(experiment, seed=seed), {"data": "squares", "seed": str(seed)}) for seed in seeds]


def sweep_in(folder, **options):
    return Sweep(folder / "records", folder / "runs", **options)


def test_runs_are_recorded_as_they_would_be_alone(tmp_path, source):
    planned = plan(source, 0, 1, 2)
    outcomes = sweep_in(tmp_path, jobs=2).run(planned)
    assert sorted((o.planned.title, o.state) for o in outcomes) == [
        (f"squares seed={seed}", "finished") for seed in range(3)
    ]
    for one in planned:
        alone = train_run(one.experiment, tmp_path / "alone" / one.name, announce=lambda text: None)
        assert weights_of(alone.last) == weights_of(tmp_path / "runs" / one.name / "last")
    record = load_record(tmp_path / "records", planned[1].name)
    assert record.tags == {"data": "squares", "seed": "1"}
    assert record.validation["epoch"] == [1, 2, 3]
    assert len(record.training["mse"]) == len(record.training["step"]) > 3
    assert sum(record.counts) == 4 * record.pictures["test"]
    assert record.codebook_size == 16
    assert 0 < record.measures["mse"] < 1
    originals, reconstructions = load_pictures(tmp_path / "records", record)
    assert originals.shape == reconstructions.shape == (10, 8, 8, 1)
    error = (originals.double() - reconstructions.double()).div(255).square().mean()
    assert float(error) == pytest.approx(record.measures["mse"], rel=0.05)  # 8 bits, and all of the few test pictures


def test_finished_runs_are_not_run_again(tmp_path, source):
    planned = plan(source, 0, 1)
    sweep_in(tmp_path).run(planned[:1])
    (tmp_path / "runs" / planned[0].name / "config.json").unlink()  # a run would fail now
    states = {o.planned.name: o.state for o in sweep_in(tmp_path).run(planned)}
    assert states == {planned[0].name: "found", planned[1].name: "finished"}


def test_a_record_that_is_not_whole_is_made_again(tmp_path, source):
    planned = plan(source, 0)
    sweep = sweep_in(tmp_path)
    (before,) = sweep.run(planned)
    path = tmp_path / "records" / f"{planned[0].name}.json"
    path.write_text(path.read_text()[:100])
    (after,) = sweep.run(planned)
    assert after.state == "finished"
    assert after.record.measures == before.record.measures


def test_a_failed_run_is_told_of_and_does_not_end_the_others(tmp_path, source):
    planned = plan(source, 0, 1, 2)
    broken = replace(planned[1].experiment, data=replace(planned[1].experiment.data, source=str(tmp_path / "gone")))
    planned[1] = replace(planned[1], experiment=broken)
    outcomes = {o.planned.tags["seed"]: o for o in sweep_in(tmp_path, jobs=1).run(planned)}
    assert [outcomes[seed].state for seed in "012"] == ["finished", "failed", "finished"]
    assert "gone is neither a path that exists" in outcomes["1"].reason
    assert "Traceback" in (tmp_path / "runs" / f"{planned[1].name}.log").read_text()


def test_a_worker_that_is_killed_costs_one_run(tmp_path, source):
    planned = plan(source, 0, 1, 2)
    killed = []

    def kill(one):
        if one.tags["seed"] == "1":
            (worker,) = children(os.getpid())
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)

    outcomes = sweep_in(tmp_path, jobs=1).run(planned, on_start=kill)
    assert len(killed) == 1
    failed = [o for o in outcomes if o.state == "failed"]
    assert len(failed) == 1
    assert failed[0].reason == "its process ended by signal 9"
    assert sum(o.state == "finished" for o in outcomes) == 2


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_sweep import plan, sweep_in
from sqvae.experiment import SweepStoppedError
try:
    sweep_in(Path({folder!r}), jobs=2).run(plan({source!r}, 0, 1, epochs=400, checkpoint_minutes=60.0))
except SweepStoppedError as stop:
    sys.exit(100 + stop.signal_number)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_sweep_saves_leaves_nobody_behind_and_goes_on(tmp_path, source, number):
    script = SCRIPT.format(tests=str(Path(__file__).parent), folder=str(tmp_path), source=str(source))
    process = subprocess.Popen([sys.executable, "-c", script])
    planned = plan(source, 0, 1, epochs=400, checkpoint_minutes=60.0)
    logs = [tmp_path / "runs" / one.name / "log.jsonl" for one in planned]
    wait_until(lambda: all(log.exists() and len(log.read_text().splitlines()) > 20 for log in logs))
    workers = children(process.pid)
    assert len(workers) == 2
    process.send_signal(number)
    assert process.wait(60) == (100 + number if number != signal.SIGKILL else -number)
    wait_until(lambda: not any(alive(worker) for worker in workers))
    for one in planned:
        state = json.loads((tmp_path / "runs" / one.name / "last" / "training.json").read_text())
        assert 0 < state["step"] < 400 * 9
        assert load_record(tmp_path / "records", one.name) is None


def test_the_word_for_an_experiment_changes_with_what_matters_only(source):
    experiment = tiny(source)
    same = replace(experiment, recipe="other", training=replace(experiment.training, threads=7, log_every=9))
    assert key_of(same) == key_of(experiment)
    assert key_of(replace(experiment, seed=1)) != key_of(experiment)
    assert key_of(tiny(source, epochs=4)) != key_of(experiment)


def test_threads_are_shared_out(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert [sweep_in(tmp_path, jobs=jobs).threads for jobs in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    assert (sweep_in(tmp_path).jobs, sweep_in(tmp_path).threads) == (8, 1)


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)

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
from sqvae.config import override
from sqvae.paper import ARTEFACTS, SCALES
from sqvae.paper import plan as plan_artefact
from sqvae.runs import train as train_run
from sqvae.sweeps import Planned, Sweep, load_pictures, load_record
from sqvae.sweeps.records import key_of
from sqvae.training import read_records


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
    record = load_record(tmp_path / "records", planned[1])
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
    assert "there is no such file or folder: " in outcomes["1"].reason
    assert "Traceback" in (tmp_path / "runs" / f"{planned[1].name}.log").read_text()


def test_a_worker_that_is_killed_costs_one_run(tmp_path, source):
    planned = plan(source, 0, 1, 2, epochs=40)
    killed = []

    def kill():
        log = tmp_path / "runs" / planned[1].name / "log.jsonl"
        if not killed and log.exists() and log.stat().st_size > 2000:  # in the middle of it
            (worker,) = children(os.getpid())
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)

    sweep = sweep_in(tmp_path, jobs=1)
    outcomes = sweep.run(planned, on_look=kill)
    assert [outcome.state for outcome in outcomes] == ["finished", "failed", "finished"]
    assert outcomes[1].reason.startswith("its process ended by signal 9")
    (again,) = sweep.run(planned[1:2])
    assert again.state == "finished"


NOISY = """
import os, runpy, threading, time
def speak():
    while True:
        os.write(1, b"not JSON\\n")
        time.sleep(0.05)
threading.Thread(target=speak, daemon=True).start()
runpy.run_module("sqvae.sweeps.worker", run_name="__main__")
"""


def test_what_libraries_print_does_not_disturb(tmp_path, source, monkeypatch):
    """To the process's own standard output, before and during runs."""
    popen = subprocess.Popen
    monkeypatch.setattr(
        "sqvae.sweeps.sweep.subprocess.Popen",
        lambda command, **options: popen([command[0], "-c", NOISY], **options),
    )
    outcomes = sweep_in(tmp_path, jobs=1).run(plan(source, 0, 1))
    assert [outcome.state for outcome in outcomes] == ["finished", "finished"]
    assert "not JSON" in (tmp_path / "runs" / "workers.log").read_text()


LONG = {"epochs": 120, "checkpoint_minutes": 60.0}

SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_sweep import LONG, plan, sweep_in
from sqvae.sweeps import SweepStoppedError
try:
    sweep_in(Path({folder!r}), jobs=2).run(plan({source!r}, 0, 1, **LONG))
except SweepStoppedError as stop:
    sys.exit(100 + stop.signal_number)
"""


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
def test_an_interrupted_sweep_saves_leaves_nobody_behind_and_goes_on(tmp_path, source, number):
    script = SCRIPT.format(tests=str(Path(__file__).parent), folder=str(tmp_path), source=str(source))
    process = subprocess.Popen([sys.executable, "-c", script])
    planned = plan(source, 0, 1, **LONG)
    logs = [tmp_path / "runs" / one.name / "log.jsonl" for one in planned]
    wait_until(lambda: all(log.exists() and len(log.read_text().splitlines()) > 5 for log in logs))
    workers = children(process.pid)
    assert len(workers) == 2
    process.send_signal(number)
    assert process.wait(60) == (100 + number if number != signal.SIGKILL else -number)
    wait_until(lambda: not any(alive(worker) for worker in workers))
    for one in planned:
        state = json.loads((tmp_path / "runs" / one.name / "last" / "training.json").read_text())
        assert 0 < state["step"] < 120 * 9
        assert load_record(tmp_path / "records", one) is None
    if number == signal.SIGKILL:
        (outcome,) = sweep_in(tmp_path).run(planned[:1])
        assert (outcome.state, outcome.record.steps) == ("finished", 120 * 9)
        assert "trained in" not in (tmp_path / "runs" / f"{planned[0].name}.log").read_text()
        times = [r["seconds"] for r in read_records(logs[0]) if r["kind"] == "step"]
        assert times == sorted(times)  # the clock went on, so the run did
        alone = train_run(planned[0].experiment, tmp_path / "alone", announce=lambda text: None)
        assert weights_of(alone.last) == weights_of(tmp_path / "runs" / planned[0].name / "last")


def test_a_folder_with_another_experiment_is_left_alone(tmp_path, source):
    (planned,) = plan(source, 0)
    train_run(tiny(source, epochs=1), tmp_path / "runs" / planned.name, announce=lambda text: None)
    before = weights_of(tmp_path / "runs" / planned.name / "last")
    (outcome,) = sweep_in(tmp_path).run([planned])
    assert outcome.state == "failed"
    assert outcome.reason.startswith("CheckpointError")
    assert planned.name in outcome.reason
    assert weights_of(tmp_path / "runs" / planned.name / "last") == before


def test_a_record_of_another_experiment_does_not_count(tmp_path, source):
    """A default that has changed since leaves the name as it was."""
    (planned,) = plan(source, 0)
    sweep = sweep_in(tmp_path)
    sweep.run([planned])
    path = tmp_path / "records" / f"{planned.name}.json"
    content = json.loads(path.read_text())
    content["experiment"]["training"]["batch_size"] += 1
    path.write_text(json.dumps(content))
    assert load_record(tmp_path / "records", planned) is None
    assert sweep.run([planned])[0].state == "finished"


def test_runs_get_their_share_of_the_threads(tmp_path, source, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    planned = plan(source, 0, threads=None)
    (outcome,) = sweep_in(tmp_path, jobs=1, threads=2).run(planned)
    assert outcome.record.machine["threads"] == "2"


def test_each_worker_gets_one_of_the_devices_that_are_given(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    sweep = sweep_in(tmp_path)
    assert sweep.jobs == 2
    assert [sweep._environment(place)["CUDA_VISIBLE_DEVICES"] for place in range(3)] == ["5", "7", "5"]


@pytest.mark.parametrize(
    "setting",
    [
        "network.blocks=2",
        "quantizer.codebook_size=17",
        "quantizer.initial_variance=3",
        "likelihood.variance=learned",
        "data.crop=8",
        "training.learning_rate=0.1",
    ],
)
def test_the_word_for_an_experiment_changes_with_every_setting(source, setting):
    assert key_of(override(tiny(source), [setting])) != key_of(tiny(source))


def test_the_words_for_the_paper_s_runs_stay():
    """Records that are kept would be lost with them."""
    words = {
        (one.tags["method"], key_of(one.experiment))
        for one in plan_artefact(ARTEFACTS["figure-5"], SCALES["paper"], [0])
        if (one.tags["data"], one.tags["k"], one.tags["d"]) == ("mnist", "128", "64")
    }
    assert {("sq-vae-1", "0606f92a"), ("vq-vae-ema", "b3fe9013")} <= words


def test_the_word_for_an_experiment_changes_with_what_matters_only(source):
    experiment = tiny(source)
    same = replace(experiment, recipe="other", training=replace(experiment.training, threads=7, log_every=9))
    assert key_of(same) == key_of(experiment)
    assert key_of(replace(experiment, seed=1)) != key_of(experiment)
    assert key_of(tiny(source, epochs=4)) != key_of(experiment)


def test_threads_are_shared_out(tmp_path, monkeypatch):
    monkeypatch.setattr("sqvae.sweeps.sweep.usable_cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [sweep_in(tmp_path, jobs=jobs).threads for jobs in (1, 2, 3, 8, 20)] == [4, 2, 1, 1, 1]
    assert (sweep_in(tmp_path).jobs, sweep_in(tmp_path).threads) == (8, 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert sweep_in(tmp_path).threads == 3


def children(process: int) -> list[int]:
    """The workers that a process has started."""
    every = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in every if b"sqvae.sweeps.worker" in Path(f"/proc/{child}/cmdline").read_bytes()]


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

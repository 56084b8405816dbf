"""A run that is killed, at whatever moment, ends with the weights of one that never was."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

from runs import tiny, weights_of, with_quantizer, write_pictures
from sqvae.quantizers import LATENTS
from sqvae.runs import resume, train
from sqvae.training import Position, RunFolder, TrainingStoppedError, Watcher, read_records

OFTEN = 1e-9
"""Minutes between checkpoints that make every step end with one."""


def quiet(text: str) -> None:
    pass


def work(out: Path, source: Path, minutes: float, die_at: int | None) -> None:
    """In a process of its own: train, or go on, and perhaps be killed at the n-th touch of the disk."""
    torch.set_num_threads(1)
    if die_at is not None:
        kill_at_touch(die_at)
    if (out / "config.json").exists():
        resume(out, announce=quiet)
    else:
        train(tiny(source, checkpoint_minutes=minutes), out, announce=quiet)


def kill_at_touch(number: int) -> None:
    """Die by SIGKILL when files have been synced, renamed or removed so many times."""
    touches = 0

    def deadly(function):
        def touch(*arguments, **keywords):
            nonlocal touches
            touches += 1
            if touches == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **keywords)

        return touch

    os.fsync, os.unlink = deadly(os.fsync), deadly(os.unlink)
    Path.rename, Path.replace, Path.mkdir = deadly(Path.rename), deadly(Path.replace), deadly(Path.mkdir)


class SignalAt(Watcher):
    """Asks the run to stop after a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def stepped(self, position: Position, rate: float, loss: Tensor) -> None:
        if position.step == self.step:
            signal.raise_signal(signal.SIGTERM)


@pytest.fixture(scope="module")
def processes():
    """Fresh processes that have the library imported already."""
    context = multiprocessing.get_context("forkserver")
    # Optimizers and TensorBoard load these when first used, which takes longer than the runs below.
    context.set_forkserver_preload(["torch._dynamo", "torch.utils.tensorboard", "test_exact_resume"])
    return context


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures.npy")


@pytest.fixture(scope="module")
def uninterrupted(source, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    work(out, source, OFTEN, None)
    return out


def check_same(out: Path, whole: Path) -> None:
    folder = RunFolder(out)
    assert folder.intact() == [folder.last, folder.previous, folder.best]
    for name in ("last", "best"):
        assert weights_of(out / name) == weights_of(whole / name), name
    assert records(out) == records(whole)


def records(run: Path) -> list[dict]:
    """A run's records, but for the time they took."""
    return [{**record, "seconds": None} for record in read_records(run / "log.jsonl")]


def test_killed_at_random_moments(processes, source, uninterrupted, tmp_path):
    """Every step ends with a checkpoint, so a moment is often one in which it is being written; the next test makes
    sure of that."""
    out, chance, kills = tmp_path / "run", random.Random(0), 0
    for _ in range(60):
        before = newest_checkpoint(out)
        process = processes.Process(target=work, args=(out, source, OFTEN, None))
        process.start()
        while process.is_alive() and newest_checkpoint(out) == before:
            time.sleep(0.001)
        process.join(chance.uniform(0, 0.1))
        process.kill()
        process.join()
        if process.exitcode == 0:
            break
        kills += 1
    assert process.exitcode == 0
    assert kills >= 3
    check_same(out, uninterrupted)


def newest_checkpoint(out: Path) -> int | None:
    """Tells one checkpoint from the next."""
    try:
        return (out / "last").stat().st_ino
    except FileNotFoundError:
        return None


def test_killed_at_every_touch_of_the_disk(processes, source, uninterrupted, tmp_path):
    """Through a whole write of both checkpoints at the end of an epoch, and the start of the next, one touch a time."""
    out = tmp_path / "run"
    for number in range(1, 200, 3):
        process = processes.Process(target=work, args=(out, source, OFTEN, number))
        process.start()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        if process.exitcode == 0:
            break
        folder = RunFolder(out)
        if folder.previous.exists() or folder.last.exists():
            assert folder.intact(), f"no whole checkpoint after a kill at touch {number}"
    else:
        work(out, source, OFTEN, None)
    check_same(out, uninterrupted)


@pytest.mark.parametrize("name", LATENTS)
def test_every_quantizer_resumes_exactly(name, source, tmp_path):
    """Stopped by a signal in the middle of an epoch, and gone on with."""
    experiment = with_quantizer(tiny(source, epochs=2), name)
    train(experiment, tmp_path / "whole", announce=quiet)
    with pytest.raises(TrainingStoppedError, match="epoch 2 of 2, step 13"):
        train(experiment, tmp_path / "cut", watchers=[SignalAt(13)], announce=quiet)
    resume(tmp_path / "cut", announce=quiet)
    for checkpoint in ("last", "best"):
        assert weights_of(tmp_path / "cut" / checkpoint) == weights_of(tmp_path / "whole" / checkpoint)


def test_schedule_and_best_survive_an_interruption(source, tmp_path):
    """A rate that has been halved, an epoch that was the best, and sums for the next record, half way to it."""
    experiment = tiny(source, epochs=8, patience=1, learning_rate=1e-2, log_every=4)
    train(experiment, tmp_path / "whole", announce=quiet)
    rates = {record["rate"] for record in records(tmp_path / "whole") if record["kind"] == "step"}
    best = [record["best"] for record in records(tmp_path / "whole") if record["kind"] == "validation"]
    assert len(rates) >= 3
    assert best[3:7] == [True, False, False, True]
    for step in (22, 46, 59):  # within the third, the sixth and the seventh epoch: before, between and after halvings
        out = tmp_path / str(step)
        with pytest.raises(TrainingStoppedError):
            train(experiment, out, watchers=[SignalAt(step)], announce=quiet)
        resume(out, announce=quiet)
        check_same(out, tmp_path / "whole")


def test_a_kill_between_two_renames_of_the_best_is_made_good(source, tmp_path, uninterrupted):
    import shutil

    from sqvae.tokenizers import load

    out = shutil.copytree(uninterrupted, tmp_path / "run")
    (out / "best").rename(out / "best.old")
    assert load(out).fingerprint == load(uninterrupted).fingerprint
    resume(out, announce=quiet)
    assert weights_of(out / "best") == weights_of(uninterrupted / "best")
    assert not (out / "best.old").exists()


def test_more_epochs_are_remembered(source, tmp_path):
    """Asked for once, interrupted, and gone on with by the plain command that the message names."""
    experiment = tiny(source, epochs=1, schedule="constant")
    train(experiment, tmp_path / "run", announce=quiet)
    with pytest.raises(TrainingStoppedError):
        resume(tmp_path / "run", epochs=3, watchers=[SignalAt(12)], announce=quiet)
    resume(tmp_path / "run", announce=quiet)
    train(tiny(source, epochs=3, schedule="constant"), tmp_path / "whole", announce=quiet)
    assert weights_of(tmp_path / "run" / "last") == weights_of(tmp_path / "whole" / "last")


def run_command(*arguments: str, cwd: Path) -> subprocess.Popen:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "sqvae", *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_steps(log: Path, more_than: int) -> None:
    deadline = time.monotonic() + 120
    while not any(record["step"] > more_than for record in read_records(log)):
        assert time.monotonic() < deadline, "training did not get going"
        time.sleep(0.02)


@pytest.mark.slow
def test_ctrl_c_and_sigterm_save_and_say_how_to_go_on(source, tmp_path):
    settings = ["--set", "network.widths=4,8", "--set", "quantizer.dim=8", "--set", "quantizer.codebook_size=16"]
    settings += ["--set", "network.mix=false", "--set", "training.log_every=5", "--set", "training.batch_size=8"]
    settings += ["--set", "training.passes_per_epoch=15", "--epochs", "3", "--data", str(source)]
    whole = run_command("train", *settings, "--out", "whole", cwd=tmp_path)
    assert "Done: whole" in whole.communicate()[0]
    log = tmp_path / "cut" / "log.jsonl"
    steps = 0
    for command, number, code in (
        (("train", *settings, "--out", "cut"), signal.SIGINT, 130),
        (("resume", "cut"), signal.SIGTERM, 143),
    ):
        process = run_command(*command, cwd=tmp_path)
        wait_for_steps(log, steps)
        process.send_signal(number)
        printed = process.communicate()[0]
        assert process.returncode == code
        assert "Resume with: sqvae resume cut" in printed
        assert "Traceback" not in printed
        steps = read_records(log)[-1]["step"]
    last = run_command("resume", "cut", cwd=tmp_path)
    assert "Done: cut" in last.communicate()[0]
    assert weights_of(tmp_path / "cut" / "last") == weights_of(tmp_path / "whole" / "last")

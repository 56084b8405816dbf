"""How long a run trains: by epochs, steps or minutes; what is said of it beforehand and meanwhile; what may change."""

import json
from dataclasses import replace

import pytest
import torch

import sqvae.runs.run as runs
from runs import said, tiny, weights_of, write_pictures
from sqvae.cli import console, main
from sqvae.config import ConfigurationError
from sqvae.runs import forecast, resume, train
from sqvae.sweeps import Planned
from sqvae.sweeps.records import fits
from sqvae.training import CheckpointError, Pace, Plan, Position, TrainingStoppedError, in_words, read_records
from test_exact_resume import SignalAt, check_same, quiet


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("length") / "pictures.npy")  # 76 to train on: 9 batches of 8


def validations(out):
    return [record["step"] for record in read_records(out / "log.jsonl") if record["kind"] == "validation"]


class TestSteps:
    def test_a_run_has_exactly_the_steps_that_it_is_asked_for(self, source, tmp_path):
        said_of_it = []
        train(tiny(source, steps=13, schedule="cosine", log_every=1), tmp_path / "run", announce=said_of_it.append)
        records = read_records(tmp_path / "run" / "log.jsonl")
        batches = validations(tmp_path / "run")[0]
        assert validations(tmp_path / "run") == [batches, 13]
        assert 6 < batches < 13, "the last epoch is cut short"
        rates = [record["rate"] for record in records if record["kind"] == "step"]
        assert len(rates) == 13
        assert rates[-1] < 0.05 * rates[0], "the rate falls over the steps of the run, not over whole epochs"
        config = json.loads((tmp_path / "run" / "config.json").read_text())["experiment"]["training"]
        assert (config["steps"], config["epochs"]) == (13, 2)
        assert any(line.startswith("13 steps of 8 pictures, each of the ") for line in said_of_it)

    @pytest.mark.parametrize("stop", [5, 11, 13])
    def test_it_resumes_exactly_also_where_it_was_stopped_before_its_last_validation(self, stop, source, tmp_path):
        experiment = tiny(source, steps=13, schedule="cosine", temperature_end=0.5)
        train(experiment, tmp_path / "whole", announce=quiet)
        with pytest.raises(TrainingStoppedError):
            train(experiment, tmp_path / "cut", watchers=[SignalAt(stop)], announce=quiet)
        resume(tmp_path / "cut", announce=quiet)
        check_same(tmp_path / "cut", tmp_path / "whole")
        assert validations(tmp_path / "cut") == validations(tmp_path / "whole")

    def test_more_steps_go_on_from_a_cut_epoch(self, source, tmp_path):
        train(tiny(source, steps=13, schedule="constant"), tmp_path / "run", announce=quiet)
        resume(tmp_path / "run", settings=["training.steps=30"], announce=quiet)
        assert validations(tmp_path / "run")[-1] == 30
        epochs = len(validations(tmp_path / "run"))
        assert json.loads((tmp_path / "run/config.json").read_text())["experiment"]["training"]["epochs"] == epochs
        for less in ({"settings": ["training.steps=20"]}, {"epochs": epochs - 1}):
            with pytest.raises(CheckpointError, match=r"has trained for \d epochs, 30 steps, and is asked for"):
                resume(tmp_path / "run", **less, announce=quiet)
        before = weights_of(tmp_path / "run" / "last")
        heard = []
        resume(tmp_path / "run", announce=heard.append)
        assert any(line.startswith("all is done") for line in heard)
        assert weights_of(tmp_path / "run" / "last") == before
        epochs = json.loads((tmp_path / "run/last/training.json").read_text())["epoch"]
        resume(tmp_path / "run", epochs=epochs + 1, announce=quiet)
        assert validations(tmp_path / "run")[-1] > 30, "epochs count again, once they are what is asked for"

    def test_a_planned_number_of_steps_is_found_again_in_a_record(self, source, tmp_path):
        planned = Planned(tiny(source, steps=13), "short", {})
        carried_out = replace(planned.experiment, training=replace(planned.experiment.training, epochs=2))
        assert fits(planned, carried_out)
        assert not fits(planned, replace(carried_out, training=replace(carried_out.training, steps=14)))

    def test_nonsense_is_refused(self):
        with pytest.raises(ValueError, match=r"training.steps must be > 0, or none; got 0"):
            Plan(steps=0)


class TestMinutes:
    def test_they_become_steps_by_the_measured_speed(self, source, tmp_path, monkeypatch):
        monkeypatch.setattr(runs, "seconds_a_step", lambda training: 0.5)
        train(tiny(source), tmp_path / "run", minutes=0.11, announce=quiet)
        assert validations(tmp_path / "run")[-1] == 12  # 6.6 seconds, a tenth of which is for all but steps

    def test_measuring_changes_nothing_of_the_run(self, source, tmp_path, monkeypatch):
        monkeypatch.setattr(runs, "steps_within", lambda minutes, seconds: 10)
        train(tiny(source), tmp_path / "measured", minutes=1.0, announce=quiet)
        train(tiny(source, steps=10), tmp_path / "asked", announce=quiet)
        check_same(tmp_path / "measured", tmp_path / "asked")

    def test_a_forecast_writes_nothing_and_tells_the_time(self, source, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(runs, "seconds_a_step", lambda training: 0.5)
        ahead = forecast(tiny(source, epochs=4, passes_per_epoch=None), announce=quiet)
        assert ahead.experiment.data.size == 8
        assert ahead.experiment.training.passes_per_epoch > 20
        steps = ahead.experiment.training.epochs * (ahead.experiment.training.passes_per_epoch * 76 // 8)
        assert ahead.seconds == pytest.approx(1.1 * 0.5 * steps, rel=0.05)
        assert forecast(tiny(source), minutes=2.0, announce=quiet).seconds == pytest.approx(120, rel=0.02)
        assert list(tmp_path.iterdir()) == []

    def test_the_speed_is_that_of_real_steps(self, source):
        measured = forecast(tiny(source), announce=quiet).seconds_a_step
        assert 1e-4 < measured < 5


class TestResume:
    def test_what_made_the_weights_can_t_change(self, source, tmp_path):
        train(tiny(source, epochs=1), tmp_path / "run", announce=quiet)
        for setting in ("training.batch_size=4", "quantizer.codebook_size=32", "seed=3"):
            with pytest.raises(ConfigurationError, match=rf"{setting.split('=')[0]} can't change in a run that has"):
                resume(tmp_path / "run", settings=[setting], announce=quiet)
        heard = []
        resume(tmp_path / "run", settings=["training.epochs=2", "training.log_every=1"], announce=heard.append)
        assert any("those of a run of" in line for line in heard)
        steps = [record["step"] for record in read_records(tmp_path / "run/log.jsonl") if record["kind"] == "step"]
        assert steps[-1] - steps[-2] == 1
        assert json.loads((tmp_path / "run/config.json").read_text())["experiment"]["training"]["log_every"] == 1

    def test_from_the_command_line(self, source, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        train(tiny(source, epochs=1), tmp_path / "run", announce=quiet)
        assert main(["resume", "run", "--steps", "15"]) == 0
        assert validations(tmp_path / "run")[-1] == 15
        capsys.readouterr()
        assert main(["resume", "run", "--steps", "15", "--epochs", "2"]) == 1
        assert "--epochs 2 and --steps 15 both say how long to train" in said(capsys)
        assert main(["resume", "run", "--set", "training.schedule=cosine"]) == 1
        assert (
            "training.schedule can't change in a run that has begun; what can is training.checkpoint_minutes"
            in said(capsys)
        )


SMALL = ["--set", "network.widths=4,8", "--set", "quantizer.codebook_size=16", "--set", "training.batch_size=8"]


class TestSaidBeforehand:
    def test_a_dry_run_shows_what_was_decided_and_how_long_it_takes(self, source, tmp_path, capsys, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert main(["train", "--data", str(source), *SMALL, "--steps", "300", "--dry-run"]) == 0
        captured = capsys.readouterr()
        shown = json.loads(captured.out)
        assert (shown["data"]["size"], shown["data"]["channels"]) == (8, 1)
        assert shown["training"]["steps"] == 300
        words = " ".join(captured.err.split())
        assert "300 steps of 8 pictures" in words
        assert "so training takes about" in words
        assert not (tmp_path / "runs").exists()

    def test_without_the_data_a_dry_run_says_so(self, capsys, monkeypatch, tmp_path):
        monkeypatch.setenv("SQVAE_DATA", str(tmp_path))
        assert main(["train", "celeba", "--dry-run"]) == 0
        captured = capsys.readouterr()
        assert json.loads(captured.out)["data"]["channels"] is None
        assert "not known yet" in captured.err
        assert main(["train", "--data", str(tmp_path / "nowhere"), "--dry-run"]) == 1

    def test_a_pipe_gets_a_line_after_ten_seconds_and_then_every_half_minute(self, monkeypatch, capsys):
        clock = iter([0.0, 2.0, 11.0, 20.0, 42.0, 60.0, 73.0])
        bar = console.TrainingBar(lambda: next(clock))
        bar.started(Position(0, 0, 0, 100, 50))
        for step in range(1, 8):
            bar.stepped(Position(0, step, step, 100, 50), 1e-3, torch.tensor(12.0 - step))
        lines = capsys.readouterr().err.strip().splitlines()
        assert len(lines) == 3
        assert lines[0] == "- step 3 of 100, loss per example 9, 0.182 steps a second, about 9 minutes left"
        assert "step 5 of 100" in lines[1]
        assert "step 7 of 100" in lines[2]

    def test_times_in_words(self):
        assert [in_words(t) for t in (0.2, 1.2, 80, 300, 3 * 3600, 3 * 86400)] == [
            "1 second",
            "1 second",
            "80 seconds",
            "5 minutes",
            "3.0 hours",
            "3.0 days",
        ]
        pace = Pace(10, 100.0)
        assert pace.steps_per_second(30, 110.0) == 2
        assert pace.seconds_left(30, 50, 110.0) == 10
        assert pace.seconds_left(10, 50, 100.0) == float("inf")


def test_the_default_run_on_a_few_pictures_is_some_thousand_steps_at_most():
    from sqvae.recipes import OWN_DATA, RECIPES
    from sqvae.runs import with_passes

    for name in OWN_DATA:
        experiment = RECIPES[name]()
        plan = with_passes(experiment.training, 240)
        examples = experiment.speech.segments_per_epoch if name == "speech" else 240 * plan.passes_per_epoch
        most = 8_000 if name == "vectors" else 2_000  # a step with vectors takes milliseconds
        assert 1_000 <= plan.epochs * (examples // plan.batch_size) <= most, name

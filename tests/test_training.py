"""The loop and its parts: order, schedules, records, warnings, precision, accumulation."""

import json
import math
import signal
from dataclasses import replace

import pytest
import torch

from runs import tiny, weights_of, write_pictures
from sqvae.runs import is_unfinished, resume, train
from sqvae.training import (
    Order,
    Plan,
    Position,
    RunFolder,
    TrainingDivergedError,
    Validation,
    Watcher,
    read_records,
    temperature,
)
from sqvae.training.schedules import SCHEDULES, Constant, Cosine, Plateau
from sqvae.training.signals import StopSignals
from sqvae.training.watchers import JsonLines


@pytest.fixture
def source(tmp_path):
    return write_pictures(tmp_path / "pictures.npy")


def quiet(text: str) -> None:
    pass


def run(experiment, out, *watchers):
    return train(experiment, out, watchers=watchers, announce=quiet)


class TestOrder:
    def test_an_epoch_holds_every_example_once(self):
        order = Order(20, 4, seed=3)
        for epoch in (0, 1):
            seen = torch.cat([order.batch(epoch, index) for index in range(len(order))])
            assert sorted(seen.tolist()) == list(range(20))

    def test_it_follows_from_seed_and_epoch_alone(self):
        one, other = Order(50, 8, seed=3), Order(50, 8, seed=3)
        later = one.batch(4, 2)
        one.batch(0, 0)
        assert one.batch(4, 2).equal(later)
        assert other.batch(4, 2).equal(later)
        assert not Order(50, 8, seed=4).batch(4, 2).equal(later)
        assert not Order(50, 8, seed=3 + 256).batch(4, 2).equal(later)
        twice = Order(50, 50, seed=3, passes=2)
        assert not twice.batch(0, 0).equal(twice.batch(0, 1))
        assert sorted(twice.batch(0, 1).tolist()) == list(range(50))
        assert not one.batch(5, 2).equal(later)

    def test_leftovers_wait_and_small_sets_are_one_batch(self):
        assert len(Order(21, 4, seed=0)) == 5
        assert len(Order(3, 4, seed=0)) == 1
        assert len(Order(3, 4, seed=0).batch(0, 0)) == 3
        assert len(Order(10, 4, seed=0, passes=2)) == 5
        assert Order(7, 4, seed=0, shares=2).batch_size == 4
        assert Order(7, 16, seed=0, shares=4).batch_size == 4
        with pytest.raises(ValueError, match="a batch of 2 examples can't be divided into 3 shares"):
            Order(2, 4, seed=0, shares=3)


class TestSchedules:
    def test_temperature(self):
        assert temperature(Plan(), 0, 10) == 1
        assert temperature(Plan(), 100_000, 10) == pytest.approx(math.exp(-1))
        assert temperature(Plan(), 10**9, 10) == 1e-6
        late = Plan(temperature_end=0.25, temperature_hold=0.6)
        found = [temperature(late, step, 1000) for step in (0, 600, 800, 1000)]
        assert found == pytest.approx([1, 1, 0.5, 0.25])

    def test_plateau_halves_after_three_epochs_without_improvement(self):
        schedule = Plateau(1.0, patience=3)
        rates = []
        for loss in (0.5, -0.5, -0.5, -0.4, -0.50005, -0.6, -0.6, -0.60009, -0.6, -0.6):
            schedule.validated(loss)
            rates.append(schedule.rate(0))
        # Halved after three epochs that are no better than -0.5, then by three no better than -0.6, or not by enough;
        # negative losses count by their difference.
        assert rates == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
        again = Plateau(1.0, patience=3)
        again.restore(json.loads(json.dumps(schedule.state())))
        for each in (schedule, again):
            each.validated(-0.6)
            each.validated(-0.6)
        assert again.rate(0) == schedule.rate(0) == 0.125

    def test_cosine_ends_at_nothing(self):
        schedule = Cosine(2.0, steps=100)
        assert schedule.rate(0) == 2
        assert schedule.rate(50) == pytest.approx(1)
        assert schedule.rate(100) == pytest.approx(0)
        assert schedule.rate(200) == pytest.approx(0)
        assert Constant(3.0).rate(10**6) == 3

    @pytest.mark.parametrize("name", SCHEDULES)
    def test_every_schedule_trains(self, name, source, tmp_path):
        run(tiny(source, epochs=1, schedule=name), tmp_path / "run")
        assert read_records(tmp_path / "run" / "log.jsonl")


class TestRun:
    def test_it_learns_and_leaves_everything_behind(self, source, tmp_path):
        from sqvae.reports import Drawings

        folder = RunFolder(tmp_path / "run")
        run(tiny(source, epochs=12), folder.path, Drawings(folder))
        records = read_records(folder.log)
        validations = [record for record in records if record["kind"] == "validation"]
        assert len(validations) == 12
        assert validations[-1]["mse"] < 0.7 * validations[0]["mse"]
        assert sum(validations[-1]["counts"]) == 10 * 4
        steps = [record for record in records if record["kind"] == "step"]
        assert [record["step"] for record in steps] == list(range(3, 12 * 9 + 1, 3))
        for name in (
            "loss",
            "mse",
            "perplexity",
            "variance",
            "relative_variance",
            "entropy_per_position",
            "temperature",
        ):
            assert all(name in record for record in steps), name
        assert len(list(folder.pictures.glob("*.png"))) == 12
        assert folder.curves.stat().st_size > 10_000
        assert list(folder.tensorboard.glob("events*"))
        config = json.loads(folder.config.read_text())["experiment"]
        assert config["data"]["size"] == 8
        assert config["data"]["channels"] == 1
        assert {path.name for path in folder.path.iterdir()} >= {"best", "last", "previous"}

    def test_the_same_seed_gives_the_same_weights_and_another_others(self, source, tmp_path):
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            run(replace(tiny(source, epochs=1), seed=seed), tmp_path / name)
        a, b, c = (weights_of(tmp_path / name / "last") for name in "abc")
        assert a == b
        assert a != c

    def test_records_are_means_and_the_temperature_falls(self, source, tmp_path):
        for every in (1, 3):
            experiment = tiny(source, epochs=2, log_every=every, temperature_decay=0.1)
            run(experiment, tmp_path / str(every))
        one, three = (
            [r for r in read_records(tmp_path / str(every) / "log.jsonl") if r["kind"] == "step"] for every in (1, 3)
        )
        assert [r["temperature"] for r in one] == pytest.approx([math.exp(-0.1 * step) for step in range(18)])
        means = [sum(r["loss"] for r in one[i : i + 3]) / 3 for i in range(0, 18, 3)]
        assert [r["loss"] for r in three] == pytest.approx(means, rel=1e-5)
        assert weights_of(tmp_path / "1" / "last") == weights_of(tmp_path / "3" / "last")
        run(tiny(source, epochs=2, log_every=3), tmp_path / "warm")
        assert weights_of(tmp_path / "warm" / "last") != weights_of(tmp_path / "3" / "last")

    def test_the_temperature_can_be_told_where_to_end(self, source, tmp_path):
        for epochs in (1, 2):
            run(tiny(source, epochs=epochs, log_every=1, temperature_end=0.25), tmp_path / str(epochs))
            records = [r for r in read_records(tmp_path / str(epochs) / "log.jsonl") if r["kind"] == "step"]
            steps = 9 * epochs
            expected = [0.25 ** (step / steps) for step in range(steps)]
            assert [r["temperature"] for r in records] == pytest.approx(expected)

    def test_one_code_is_allowed(self, source, tmp_path):
        experiment = tiny(source, epochs=1)
        run(replace(experiment, quantizer=replace(experiment.quantizer, codebook_size=1)), tmp_path / "run")
        steps = [r for r in read_records(tmp_path / "run" / "log.jsonl") if r["kind"] == "step"]
        assert all(math.isfinite(value) for record in steps for value in record.values() if value != "step")

    def test_a_single_value_a_channel_is_a_clear_error(self, tmp_path):
        source = write_pictures(tmp_path / "one.npy", count=1, side=4)
        with pytest.raises(ValueError, match=r"can't train on a single value per channel"):
            run(tiny(source), tmp_path / "run")

    def test_a_failed_drawing_is_a_warning(self, source, tmp_path, monkeypatch):
        from sqvae.reports import Drawings, drawing

        def fail(*arguments, **words):
            raise ValueError("no pens")

        monkeypatch.setattr(drawing, "save_curves", fail)
        folder = RunFolder(tmp_path / "run")
        with pytest.warns(UserWarning, match=r"draw into .*: no pens"):
            run(tiny(source, epochs=1), folder.path, Drawings(folder))
        assert folder.last.exists()

    def test_tensorboard_holds_the_same_numbers(self, source, tmp_path):
        reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
        run(tiny(source, epochs=2), tmp_path / "run")
        events = reader.EventAccumulator(str(tmp_path / "run" / "tensorboard"))
        events.Reload()
        logged = [record for record in read_records(tmp_path / "run" / "log.jsonl") if record["kind"] == "step"]
        scalars = events.Scalars("train/mse")
        assert [event.step for event in scalars] == [record["step"] for record in logged]
        assert [event.value for event in scalars] == pytest.approx([record["mse"] for record in logged])

    @pytest.mark.parametrize("precision", ["bf16", "fp16"])
    def test_mixed_precision_trains_and_keeps_float32_weights(self, precision, source, tmp_path):
        if precision == "fp16" and not torch.accelerator.is_available():
            pytest.skip("fp16 needs an accelerator")
        from safetensors.torch import load_file

        run(tiny(source, epochs=2, precision=precision), tmp_path / "half")
        run(tiny(source, epochs=2), tmp_path / "full")
        assert all(t.dtype != torch.bfloat16 for t in load_file(tmp_path / "half/last/model.safetensors").values())
        half, full = (
            [r for r in read_records(tmp_path / n / "log.jsonl") if r["kind"] == "validation"] for n in ("half", "full")
        )
        assert half[-1]["mse"] == pytest.approx(full[-1]["mse"], rel=0.5)
        assert weights_of(tmp_path / "half" / "last") != weights_of(tmp_path / "full" / "last")

    def test_clipping_bounds_the_gradient(self, source, tmp_path):
        """With a bound far below any gradient, Adam still moves, but other weights come out."""
        run(tiny(source, epochs=1, clip=1e-3), tmp_path / "clipped")
        run(tiny(source, epochs=1), tmp_path / "free")
        assert weights_of(tmp_path / "clipped" / "last") != weights_of(tmp_path / "free" / "last")

    def test_accumulation_adds_up_to_the_whole_gradient(self, source, tmp_path, monkeypatch):
        """Without batch statistics (a learned variance, no batch norm, plain VQ) shares give the batch's gradient."""
        import sqvae.networks.convolutional as convolutional

        monkeypatch.setattr(convolutional, "BatchNorm2d", lambda channels: torch.nn.Identity())
        weights, losses = [], []
        for shares in (1, 4):
            experiment = tiny(source, epochs=1, accumulate=shares, log_every=9)
            experiment = replace(
                experiment,
                quantizer=replace(experiment.quantizer, name="vq"),
                likelihood=replace(experiment.likelihood, variance="learned"),
            )
            run(experiment, tmp_path / str(shares))
            from safetensors.torch import load_file

            weights.append(load_file(tmp_path / str(shares) / "last" / "model.safetensors"))
            (record,) = (r for r in read_records(tmp_path / str(shares) / "log.jsonl") if r["kind"] == "step")
            losses.append(record["loss"])
        assert losses[1] == pytest.approx(losses[0], rel=1e-4)
        for name, tensor in weights[0].items():
            torch.testing.assert_close(weights[1][name], tensor, rtol=1e-3, atol=1e-5)

    def test_more_epochs_can_be_asked_for_later(self, source, tmp_path):
        run(tiny(source, epochs=2, schedule="constant"), tmp_path / "run")
        resume(tmp_path / "run", epochs=4, announce=quiet)
        run(tiny(source, epochs=4, schedule="constant"), tmp_path / "whole")
        assert weights_of(tmp_path / "run" / "last") == weights_of(tmp_path / "whole" / "last")

    def test_it_stops_where_the_loss_is_low_enough_and_for_good(self, source, tmp_path):
        def losses(folder):
            return [
                r["loss_per_dimension"]
                for r in read_records(tmp_path / folder / "log.jsonl")
                if r["kind"] == "validation"
            ]

        run(tiny(source, epochs=4, schedule="constant"), tmp_path / "whole")
        whole = losses("whole")
        assert whole[1] < whole[0]
        run(tiny(source, epochs=4, schedule="constant", until=whole[1]), tmp_path / "until")
        assert losses("until") == whole[:2]
        assert not is_unfinished(tmp_path / "until")
        resume(tmp_path / "until", announce=quiet)
        assert losses("until") == whole[:2]

    @pytest.mark.slow
    def test_a_compiled_run_gives_nearly_the_same_curve(self, source, tmp_path):
        run(tiny(source, epochs=1), tmp_path / "eager")
        run(tiny(source, epochs=1, compile=True), tmp_path / "compiled")
        losses = [
            [r["loss"] for r in read_records(tmp_path / name / "log.jsonl") if r["kind"] == "step"]
            for name in ("eager", "compiled")
        ]
        assert losses[1] == pytest.approx(losses[0], rel=1e-3)


class Heard(Watcher):
    def __init__(self):
        self.warnings = []

    def warned(self, position, message):
        self.warnings.append(message)


class TestTrouble:
    def test_a_loss_that_is_no_number_stops_the_run_and_spares_the_checkpoint(self, source, tmp_path):
        heard = Heard()
        with pytest.raises(TrainingDivergedError, match=r"diverged at epoch .*learning_rate.*Intact: .*last"):
            run(
                tiny(source, epochs=8, learning_rate=1e30, schedule="constant", checkpoint_minutes=1e-9),
                tmp_path / "run",
                heard,
            )
        assert heard.warnings
        folder = RunFolder(tmp_path / "run")
        from safetensors.torch import load_file

        assert all(tensor.isfinite().all() for tensor in load_file(folder.newest() / "model.safetensors").values())
        assert next(r for r in read_records(folder.log) if r["kind"] == "warning")["message"] == heard.warnings[0]

    def test_a_collapsed_codebook_is_said_in_plain_words(self, source, tmp_path):
        from dataclasses import replace

        heard = Heard()
        experiment = tiny(source, epochs=1, learning_rate=1e-9)
        # Without training, and with encodings near 0 among codes far apart, one or two codes take everything.
        run(replace(experiment, quantizer=replace(experiment.quantizer, codebook_size=512)), tmp_path / "run", heard)
        assert any("the codebook has collapsed" in message for message in heard.warnings)

    def test_dying_codes_are_noticed(self):
        from sqvae.runs import Evaluation
        from sqvae.runs.observation import CodeWatch

        watch = CodeWatch("data", "gaussian-1")

        def said(used: int) -> list[str]:
            counts = tuple([100] * used + [0] * (64 - used))
            return list(watch.warnings(Evaluation({"codes_used": used}, counts, None, None)))

        assert said(60) == []
        assert said(50) == []
        assert "codes are dying: 29 of 64" in said(29)[0]
        assert "collapsed: 3 of 64" in said(3)[0]
        assert said(3) == []  # once
        assert "codes are dying" in said(20)[0]
        assert "collapsed" in said(2)[0]

    def test_what_is_advised_can_be_set(self):
        from sqvae.config import QuantizerSettings
        from sqvae.runs import Evaluation
        from sqvae.runs.observation import CodeWatch

        for name, has in (("gaussian-1", True), ("gaussian-fixed", True), ("vmf", False), ("vq-ema", False)):
            watch = CodeWatch("data", name)
            (advice,) = watch.warnings(Evaluation({"codes_used": 2}, (100, 100, *[0] * 62), None, None))
            assert ("quantizer.initial_variance" in advice) is has
            if has:
                QuantizerSettings(name, 64, 8, initial_variance=1.0)

    def test_signals_are_remembered_and_handlers_put_back(self):
        before = signal.getsignal(signal.SIGINT)
        with StopSignals() as signals:
            signal.raise_signal(signal.SIGINT)
            assert signals.received == signal.SIGINT
            signal.raise_signal(signal.SIGTERM)
            assert signals.received == signal.SIGTERM
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before

    def test_a_batch_that_can_t_be_divided_is_refused(self):
        from sqvae.training import Plan

        with pytest.raises(ValueError, match=r"training.accumulate .*32 examples .* 3 equal"):
            Plan(accumulate=3)


class TestMeasures:
    def test_batches_of_any_size_give_the_set_s_measures(self):
        """Unequal batches against all at once, and against the definitions."""
        from sqvae.metrics import ReconstructionTotals, SquaredErrors

        x, y = torch.rand(10, 1, 4, 4), torch.rand(10, 1, 4, 4)
        losses, bounds = torch.randn(10), torch.randn(10)
        codes = torch.randint(0, 5, (10, 6))
        probabilities = (3 * torch.rand(10, 6, 5)).softmax(-1)

        def measure(*batches: slice) -> dict[str, float]:
            totals = ReconstructionTotals((5,), SquaredErrors())
            for part in batches:
                totals.add(
                    x[part],
                    y[part],
                    reconstruction_loss=losses[part].mean(),
                    latent_loss=2 * losses[part].mean(),
                    bound=bounds[part].mean(),
                    counts=torch.bincount(codes[part].flatten(), minlength=5).float(),
                    mean_probabilities=probabilities[part].flatten(0, 1).mean(0),
                )
            return totals.measures()

        whole = measure(slice(0, 10))
        parts = measure(slice(0, 7), slice(7, 8), slice(8, 10))
        assert whole.pop("batch_perplexity") > parts.pop("batch_perplexity")
        assert parts == pytest.approx(whole, rel=1e-5)
        assert whole["mse"] == pytest.approx(((x - y) ** 2).mean().item(), rel=1e-6)
        assert whole["bits_per_dimension"] == pytest.approx(-bounds.mean().item() / 16 / math.log(2), rel=1e-5)
        assert whole["latent_loss"] == pytest.approx(2 * losses.mean().item(), rel=1e-5)
        mean = probabilities.mean((0, 1))
        assert whole["soft_perplexity"] == pytest.approx((-(mean * mean.log()).sum()).exp().item(), rel=1e-5)

    def test_the_evaluation_of_a_model_does_not_depend_on_the_batch(self, source, tmp_path):
        import sqvae
        from sqvae.data import load
        from sqvae.modalities.evaluation import evaluate

        run(tiny(source, epochs=1), tmp_path / "run")
        tokenizer, pictures = sqvae.load(tmp_path / "run"), load(source).train
        torch.manual_seed(5)
        before = torch.get_rng_state()
        one, other = (
            evaluate(tokenizer.model, pictures, medium=tokenizer.medium, batch_size=size, sampled_bound=True).measures
            for size in (3, 32)
        )
        assert torch.get_rng_state().equal(before)
        for measures in (one, other):
            measures.pop("batch_perplexity")
        assert one == pytest.approx(other, rel=1e-4)

    def test_mirrored_pictures_are_every_second_one_and_the_same_again_for_the_same_seed(self, source):
        from sqvae.config import override
        from sqvae.data import load
        from sqvae.runs import prepare

        plain = load(source).train
        experiment = override(tiny(source), ["data.flip=true"])
        examples = prepare(experiment, announce=quiet).examples
        assert len(examples) == len(plain)
        indices = torch.arange(len(plain)).repeat(20)
        torch.manual_seed(3)
        once = examples.take(indices)
        torch.manual_seed(3)
        assert torch.equal(once, examples.take(indices))
        as_they_are = plain.take(indices)
        kept = (once == as_they_are).flatten(1).all(1)
        mirrored = (once == as_they_are.flip(-1)).flatten(1).all(1)
        assert (kept | mirrored).all()
        assert 0.4 < kept.float().mean() < 0.6

    def test_moved_pictures_repeat_their_edges_and_nothing_else_is_new(self, source):
        from sqvae.data import Varied, load

        plain = load(source).train
        indices = torch.arange(len(plain)).repeat(20)
        torch.manual_seed(3)
        moved = Varied(plain, shift=2).take(indices)
        torch.manual_seed(3)
        assert torch.equal(moved, Varied(plain, shift=2).take(indices))
        padded = torch.nn.functional.pad(plain.take(indices).float(), (2, 2, 2, 2), mode="replicate")
        height, width = plain.shape[1:]
        windows = [padded[:, :, y : y + height, x : x + width] == moved for y in range(5) for x in range(5)]
        found = torch.stack([window.flatten(1).all(1) for window in windows])  # (25, B)
        assert found.any(0).all()
        assert found.any(1).all()  # every offset is met
        with pytest.raises(ValueError, match="shift must be a number of pixels, 0 or more, got -1"):
            Varied(plain, shift=-1)

    def test_statistics_are_per_position(self, source):
        from sqvae.data import load
        from sqvae.modalities.evaluation import ExampleTask
        from sqvae.modalities.images.data import new_model
        from sqvae.modalities.images.media import medium_of
        from sqvae.runs import prepare

        experiment = prepare(tiny(source), announce=quiet).experiment
        model, pictures = new_model(experiment), load(source).train
        x = medium_of(experiment).model_input(pictures.take(range(8)), torch.device("cpu"))
        objective = model(x)
        found = ExampleTask(model, pictures, 8, medium_of(experiment), "gaussian-1").statistics(x, objective)
        assert found["entropy_per_position"] == pytest.approx(objective.quantized.entropy.item() / 4)
        assert 0 < found["entropy_per_position"] <= math.log(16) + 1e-6
        distances = torch.cdist(model.quantizer.codebook, model.quantizer.codebook).square()
        expected = objective.quantized.variance.item() / (distances.sum().item() / (16 * 15))
        assert found["relative_variance"] == pytest.approx(expected, rel=1e-4)


class TestRecords:
    def test_lost_steps_are_cut_off_and_half_lines_left_out(self, tmp_path):
        log = JsonLines(tmp_path / "log.jsonl")
        for step in (1, 2, 3):
            log.recorded(Position(0, step, step, 10, 5), {"loss": float(step)})
        log.validated(Position(1, 0, 5, 10, 5), Validation(1.0, {"mse": 2.0}), best=True)
        with log.path.open("a") as file:
            file.write('{"kind": "st')
        assert [record["step"] for record in read_records(log.path)] == [1, 2, 3, 5]
        log.started(Position(0, 2, 2, 10, 5))
        assert [record["step"] for record in read_records(log.path)] == [1, 2]
        assert log.path.read_text().endswith("}\n")

"""Priors as runs: trained on a model's codes by the same loop, kept beside it, sampled from."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from runs import tiny, weights_of, write_pictures
from sqvae.analysis import SETS, Makers, frechet_distances, interpolated, made_by, neighbours, sets_of
from sqvae.config import ConfigurationError, PriorExperiment, PriorSettings, from_json, override, to_json
from sqvae.runs import experiment_for, load_generator, prepare, prepare_prior, resume, train
from sqvae.tokenizers import load
from sqvae.training import CheckpointError, Plan, RunFolder, TrainingStoppedError, Watcher, read_records


def quiet(text: str) -> None:
    pass


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small model of pictures, with 2x2 codes each."""
    folder = tmp_path_factory.mktemp("model")
    train(tiny(write_pictures(folder / "pictures.npy"), epochs=4), folder / "run", announce=quiet)
    return folder / "run"


def small(run, **settings) -> PriorExperiment:
    plan = Plan(epochs=2, batch_size=16, passes_per_epoch=1, learning_rate=1e-2, schedule="cosine", threads=1)
    experiment = PriorExperiment(
        tokenizer=str(run), prior=PriorSettings(channels=8, layers=2), training=replace(plan, log_every=2)
    )
    return replace(experiment, **settings)


class TestTraining:
    def test_it_learns_more_than_the_histogram_knows(self, run, tmp_path):
        experiment = small(run, training=replace(small(run).training, epochs=15))
        train(experiment, tmp_path / "prior", announce=quiet)
        prepared = prepare_prior(experiment, announce=quiet)
        model = prepared.new_model()
        before = prepared.evaluate(model, "train")
        generator = load_generator(run, tmp_path / "prior")
        model.prior.load_state_dict(generator.prior.state_dict())
        after = prepared.evaluate(model, "train")
        assert after["bits_per_code"] < before["bits_per_code"]
        assert after["bits_per_code"] < after["histogram_bits_per_code"]
        assert after["uniform_bits_per_code"] == 4

    def test_records_say_what_codes_cost_without_it(self, run, tmp_path):
        train(small(run), tmp_path / "prior", announce=quiet)
        prepared = prepare_prior(small(run), announce=quiet)
        expected = prepared.evaluate(prepared.new_model(), "validation")
        validations = [one for one in read_records(tmp_path / "prior/log.jsonl") if one["kind"] == "validation"]
        for name in ("histogram_bits_per_code", "uniform_bits_per_code"):
            assert [one[name] for one in validations] == [expected[name]] * 2

    def test_codes_are_made_once(self, run, monkeypatch):
        prepare_prior(small(run), announce=quiet)
        written = (run / "codes.safetensors").stat().st_mtime_ns
        from sqvae.runs import code_sets

        monkeypatch.setattr(code_sets, "_encoded", None)
        prepared = prepare_prior(small(run), announce=quiet)
        assert (run / "codes.safetensors").stat().st_mtime_ns == written
        tokenizer = load(run)
        from sqvae.data import load as load_data

        pictures = load_data(tokenizer.experiment.data.source).train
        expected = tokenizer.encode(pictures.take(range(len(pictures))))
        assert torch.equal(prepared.train.take(torch.arange(len(pictures))).codes.long(), expected)

    def test_codes_of_another_model_or_a_damaged_file_are_made_again(self, run):
        prepare_prior(small(run), announce=quiet)
        path = run / "codes.safetensors"
        whole = {name: tensor.clone() for name, tensor in load_file(path).items()}  # the file itself is about to change
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        prepare_prior(small(run), announce=quiet)
        again = load_file(path)
        assert again.keys() == whole.keys()
        assert all(torch.equal(again[name], tensor) for name, tensor in whole.items())

    def test_interrupted_and_resumed_it_is_the_same(self, run, tmp_path):
        train(small(run), tmp_path / "whole", announce=quiet)

        class Stop(Watcher):
            def stepped(self, position, rate, loss):
                if position.step == 3:
                    import os
                    import signal

                    os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(TrainingStoppedError):
            train(small(run), tmp_path / "stopped", watchers=[Stop()], announce=quiet)
        resume(tmp_path / "stopped", announce=quiet)
        for name in ("last", "best"):
            assert weights_of(tmp_path / "stopped" / name) == weights_of(tmp_path / "whole" / name)

    def test_so_many_steps(self, run, tmp_path):
        plan = replace(small(run).training, steps=7)
        train(small(run, training=plan), tmp_path / "prior", announce=quiet)
        assert json.loads((tmp_path / "prior/last/training.json").read_text())["step"] == 7

    def test_it_stops_at_a_likelihood(self, run, tmp_path):
        train(small(run), tmp_path / "whole", announce=quiet)
        first, _ = _validations(tmp_path / "whole")
        training = replace(small(run).training, until=first)
        train(small(run, training=training), tmp_path / "until", announce=quiet)
        assert _validations(tmp_path / "until") == [first]

    def test_a_model_that_was_trained_further_is_another(self, run, tmp_path):
        train(small(run), tmp_path / "prior", announce=quiet)
        config = json.loads((tmp_path / "prior" / "config.json").read_text())
        config["prior"]["fingerprint"] = "0" * 32
        (tmp_path / "prior" / "config.json").write_text(json.dumps(config))
        with pytest.raises(ConfigurationError, match="is not the model that this prior was trained for"):
            resume(tmp_path / "prior", announce=quiet)

    def test_a_prior_is_no_model_and_a_model_no_prior(self, run, tmp_path):
        train(small(run), tmp_path / "prior", announce=quiet)
        with pytest.raises(CheckpointError, match="holds a prior over a model's codes, and not a model"):
            load(tmp_path / "prior")
        with pytest.raises(CheckpointError, match="holds a model, and not a prior"):
            load_generator(run, run)
        with pytest.raises(CheckpointError, match="train one with `sqvae train-prior"):
            load_generator(run)

    def test_settings_that_a_network_does_not_have(self):
        with pytest.raises(ConfigurationError, match=r"pixelcnn has no prior\.heads"):
            PriorSettings(heads=2)
        with pytest.raises(ConfigurationError, match="did you mean pixelsnail"):
            PriorSettings(name="pixelsnial")


def _validations(folder) -> list[float]:
    return [r["loss_per_dimension"] for r in read_records(RunFolder(folder).log) if r["kind"] == "validation"]


@pytest.fixture(scope="module")
def prior(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prior") / "prior"
    train(small(run), folder, announce=quiet)
    return folder


class TestSampling:
    def test_batches_make_no_difference_and_seeds_do(self, run, prior):
        generator = load_generator(run, prior)
        whole = generator.sample(7, seed=1)
        assert whole.shape == (7, 2, 2)
        assert torch.equal(whole, generator.sample(7, seed=1, batch=3))
        assert not torch.equal(whole, generator.sample(7, seed=2))
        assert generator.tokenizer.decode(whole).shape == (7, 1, 8, 8)

    def test_any_shape(self, run, prior):
        generator = load_generator(run, prior)
        codes = generator.sample(2, shape=(3, 5))
        assert generator.tokenizer.decode(codes).shape == (2, 1, 12, 20)

    def test_classes_that_it_does_not_know(self, run, prior):
        with pytest.raises(
            ConfigurationError,
            match="knows no classes, and was asked for cat: train one with `sqvae",
        ):
            load_generator(run, prior).sample(1, classes=["cat"])


class TestLevels:
    def test_fine_codes_given_coarse_ones(self, tmp_path):
        source = write_pictures(tmp_path / "pictures.npy", side=16)
        fine = tiny(source, epochs=1)
        coarse = override(fine, ["network.widths=4,4,8"])
        train(fine, tmp_path / "fine", announce=quiet)
        train(coarse, tmp_path / "coarse", announce=quiet)
        train(small(tmp_path / "coarse"), tmp_path / "coarse" / "prior", announce=quiet)
        upper = small(tmp_path / "fine", above=str(tmp_path / "coarse"))
        train(upper, tmp_path / "fine" / "prior", announce=quiet)
        generator = load_generator(tmp_path / "fine")
        codes = generator.sample(3, seed=4)
        assert codes.shape == (3, 4, 4)
        assert torch.equal(codes, generator.sample(3, seed=4, batch=2))
        with pytest.raises(ConfigurationError, match="has 4x4 codes a picture, which don't divide the 2x2"):
            prepare_prior(small(tmp_path / "coarse", above=str(tmp_path / "fine")), announce=quiet)
        other = write_pictures(tmp_path / "others.npy", side=16, count=50)
        train(override(coarse, [f"data.source={other}"]), tmp_path / "other", announce=quiet)
        with pytest.raises(ConfigurationError, match="must be models of the same pictures"):
            prepare_prior(small(tmp_path / "fine", above=str(tmp_path / "other")), announce=quiet)


@pytest.fixture(scope="module")
def layered(tmp_path_factory):
    """A small model of pictures, with 2x2 positions of 3 codes each, and its prior."""
    folder = tmp_path_factory.mktemp("layered")
    source = write_pictures(folder / "pictures.npy")
    experiment = override(tiny(source, epochs=2), ["quantizer.name=residual-1", "quantizer.layers=3"])
    train(experiment, folder / "run", announce=quiet)
    train(small(folder / "run"), folder / "run/prior", announce=quiet)
    return folder / "run"


class TestLayers:
    def test_records_compare_it_with_a_histogram_of_each_layer(self, layered):
        prepared = prepare_prior(small(layered), announce=quiet)
        assert prepared.experiment.code_layers == 3
        assert prepared.experiment.shape == (2, 2)
        assert prepared.counts.shape == (3, 16)
        measures = prepared.evaluate(prepared.new_model(), "test")
        codes = prepared.test.codes.long()
        shares = (prepared.counts.double() + 1) / (prepared.counts.sum(-1, keepdim=True) + 16)
        bits = [-shares[layer][codes[..., layer]].log2() for layer in range(3)]
        assert measures["histogram_bits_per_code"] == pytest.approx(float(torch.stack(bits).mean()), rel=1e-5)
        assert measures["uniform_bits_per_code"] == 4

    def test_codes_that_were_kept_still_have_their_layers(self, layered, monkeypatch):
        prepare_prior(small(layered), announce=quiet)
        from sqvae.runs import code_sets

        monkeypatch.setattr(code_sets, "_encoded", None)
        assert prepare_prior(small(layered), announce=quiet).counts.shape == (3, 16)

    def test_samples_decode(self, layered):
        generator = load_generator(layered)
        assert generator.shape == (2, 2)
        whole = generator.sample(5, seed=1)
        assert whole.shape == (5, 2, 2, 3)
        assert torch.equal(whole, generator.sample(5, seed=1, batch=2))
        assert generator.tokenizer.decode(whole).shape == (5, 1, 8, 8)
        codes = generator.sample(2, shape=(3, 5))
        assert generator.tokenizer.decode(codes).shape == (2, 1, 12, 20)

    def test_the_commands(self, layered, tmp_path, capsys):
        from sqvae.cli import main

        assert main(["sample", str(layered), "-n", "3", "-o", str(tmp_path / "samples.png")]) == 0
        assert (tmp_path / "samples.png").exists()
        arguments = ["fid", str(layered), "--features", "random-convolutions", "--json", "--pictures", "8"]
        assert main([*arguments, "--of", "samples", "--of", "samples-histogram", "--of", "samples-uniform"]) == 0
        capsys.readouterr()
        assert main([*arguments, "--of", "neighbor-3"]) == 1
        assert "several at each position, for neighbor-3" in capsys.readouterr().err

    def test_sequences_have_layers_too(self, tmp_path):
        rows = np.random.default_rng(0).normal(size=(80, 6)).astype(np.float32)
        np.save(tmp_path / "rows.npy", rows)
        settings = ["quantizer.name=residual-1", "quantizer.layers=2", "quantizer.codebook_size=8", "quantizer.dim=4"]
        experiment, _ = experiment_for(None, str(tmp_path / "rows.npy"), [*settings, "training.threads=1"], steps=5)
        train(experiment, tmp_path / "run", announce=quiet)
        train(small(tmp_path / "run"), tmp_path / "run/prior", announce=quiet)
        generator = load_generator(tmp_path / "run")
        length = generator.tokenizer.code_shape[0]
        assert generator.sample(3).shape == (3, length, 2)
        assert generator.tokenizer.decode(generator.sample(3)).shape == (3, 6)

    def test_a_coarser_level_must_have_one_code_a_position(self, layered, run):
        with pytest.raises(ValueError, match="coarser level of a hierarchy has one code for each position"):
            prepare_prior(small(run, above=str(layered)), announce=quiet)

    def test_a_prior_of_codes_without_layers_says_nothing_of_them(self, run):
        prepared = prepare_prior(small(run), announce=quiet)
        assert prepared.experiment.code_layers is None
        assert prepared.counts.shape == (16,)

    def test_the_settings_of_an_earlier_version_build_the_same_prior(self, run):
        experiment = prepare_prior(small(run), announce=quiet).experiment
        before = to_json(experiment)
        del before["code_layers"]
        assert from_json(PriorExperiment, before) == experiment
        assert not any("layer_head" in name for name in experiment.build().state_dict())

    def test_neighbours_and_interpolations_take_one_code_a_position(self, layered):
        tokenizer = load(layered)
        with pytest.raises(ValueError, match="neighbours take one code for each position, and this model has 3 layers"):
            neighbours(tokenizer, torch.zeros(1, 2, 2, 3), 1)
        pictures = torch.zeros(1, 1, 8, 8, dtype=torch.uint8)
        with pytest.raises(ValueError, match="an interpolation takes one code for each position"):
            interpolated(tokenizer, pictures, pictures, torch.zeros(1))


@pytest.fixture(scope="module")
def network():
    from sqvae.metrics import RandomConvolutions

    return RandomConvolutions()


class TestDistances:
    def test_every_set_and_the_real_ones_are_looked_at_once(self, run, prior, network, tmp_path):
        prepared = prepare(load(run).experiment, announce=quiet)
        generator = load_generator(run, prior)
        counts = prepare_prior(small(run), announce=quiet).counts
        made = Makers(generator.tokenizer, prepared.part("train"), generator, counts)
        key = f"{prepared.key}-train"
        sets = [name for name in SETS if name != "neighbor-10"]
        found, notes = frechet_distances(made, network, sets, key=key, cache=tmp_path)
        assert list(found) == [f"fd-random-convolutions {name}" for name in sets]
        assert all(value >= 0 for value in found.values())
        assert "too few" in notes[0]
        seen = []

        class Watched:
            name, dim = network.name, network.dim

            def __call__(self, pictures):
                seen.append(len(pictures))
                return network(pictures)

        again, _ = frechet_distances(made, Watched(), ["reconstruction"], key=key, cache=tmp_path)
        assert sum(seen) == len(made)  # those that were made; the real ones are remembered
        assert again == {name: found[name] for name in again}
        for damaged in (tmp_path / "statistics").iterdir():
            damaged.write_bytes(b"nothing")
        once_more, _ = frechet_distances(made, network, ["reconstruction"], key=key, cache=tmp_path)
        assert once_more == again

    def test_what_is_made_is_what_the_commands_make(self, run, prior):
        generator = load_generator(run, prior)
        tokenizer = generator.tokenizer
        pictures = prepare(tokenizer.experiment, announce=quiet).part("train")
        made = Makers(tokenizer, pictures, generator, seed=3)
        whole = {name: torch.cat(list(made_by(made, name))) for name in ("reconstruction", "samples", "neighbor-3")}
        real = pictures.take(range(len(pictures)))
        expected = {
            "reconstruction": tokenizer.reconstruct(real),
            "samples": tokenizer.decode(generator.sample(len(pictures), seed=3)),
            "neighbor-3": tokenizer.decode(neighbours(tokenizer, tokenizer.encode(real), 3)),
        }
        for name, one in expected.items():
            torch.testing.assert_close(whole[name], one)

    def test_a_continuous_latent_has_some_of_them(self, network, tmp_path):
        source = write_pictures(tmp_path / "pictures.npy")
        train(override(tiny(source, epochs=1), ["quantizer.name=gaussian-latent"]), tmp_path / "vae", announce=quiet)
        tokenizer = load(tmp_path / "vae")
        prepared = prepare(tokenizer.experiment, announce=quiet)
        made = Makers(tokenizer, prepared.part("train"))
        found, _ = frechet_distances(made, network, sets_of(tokenizer), key=prepared.key)
        assert len(found) == 3
        with pytest.raises(ValueError, match=r"neighbor-3.*reconstruction, samples, interpolation"):
            frechet_distances(made, network, ["neighbor-3"], key=prepared.key)

    def test_the_command(self, run, prior, tmp_path, capsys):
        from sqvae.cli import main

        arguments = ["fid", str(run), "--features", "random-convolutions", "--prior", str(prior), "--json"]
        sets = ["--of", "reconstruction", "--of", "samples", "--of", "samples-histogram"]
        assert main([*arguments, *sets, "--pictures", "8"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record["pictures"] == 8
        assert record == json.loads((run / "distances-test.json").read_text())
        assert set(record["distances"]) == {
            f"fd-random-convolutions {name}" for name in ("reconstruction", "samples", "samples-histogram")
        }
        assert main(["fid", str(run), "--of", "sample"]) == 1
        assert "the set 'sample' is unknown (did you mean samples?)" in capsys.readouterr().err
        assert main(["fid", str(run), "--features", "inception"]) == 1
        assert "the features 'inception' is unknown" in capsys.readouterr().err


class TestPlaces:
    def test_a_run_that_was_moved_takes_its_prior_along(self, run, tmp_path):
        shutil.copytree(run, tmp_path / "before")
        train(small(tmp_path / "before"), tmp_path / "before" / "prior", announce=quiet)
        (tmp_path / "before").rename(tmp_path / "after")
        resume(tmp_path / "after" / "prior", epochs=3, announce=quiet)
        assert len(_validations(tmp_path / "after" / "prior")) == 3
        assert load_generator(tmp_path / "after").sample(1).shape == (1, 2, 2)

    def test_a_checkpoint_is_no_place_for_a_prior(self, run, capsys):
        from sqvae.cli import main

        assert main(["train-prior", str(run / "best")]) == 1
        assert "has no place for a prior: name one with --out" in capsys.readouterr().err
        prepare_prior(small(run / "best"), announce=quiet)
        assert not (run / "best" / "codes.safetensors").exists()

    def test_levels_of_pictures_that_were_divided_otherwise(self, tmp_path):
        source = write_pictures(tmp_path / "pictures.npy", side=16)
        coarse = override(tiny(source, epochs=1), ["network.widths=4,4,8", "data.split_seed=1"])
        train(tiny(source, epochs=1), tmp_path / "fine", announce=quiet)
        train(coarse, tmp_path / "coarse", announce=quiet)
        with pytest.raises(ConfigurationError, match="or on another part of them"):
            prepare_prior(small(tmp_path / "fine", above=str(tmp_path / "coarse")), announce=quiet)

    def test_some_pictures_are_from_all_of_the_set(self, run):
        pictures = prepare(load(run).experiment, announce=quiet).part("train")
        few = pictures.spread(5)
        names = list(pictures.names)
        assert [names.index(name) for name in few.names] == [len(names) * place // 5 for place in range(5)]
        assert list(pictures.spread(10**6).names) == names

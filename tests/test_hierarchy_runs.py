"""Hierarchies as runs: trained, resumed, evaluated and used on the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import sqvae
from runs import said, tiny, weights_of, write_pictures
from sqvae import GaussianQuantizer, HierarchicalModel
from sqvae.cli import main
from sqvae.config import (
    ConfigurationError,
    Experiment,
    NetworkSettings,
    QuantizerSettings,
    from_json,
    override,
    to_json,
)
from sqvae.metrics import SquaredErrors
from sqvae.modalities.images.assembly import build_model
from sqvae.recipes import RECIPES
from sqvae.runs import diagnose, resume, train
from sqvae.runs.observation import annealing_of, mixture_gap
from sqvae.training import TrainingStoppedError, any_budget, read_records
from test_exact_resume import SignalAt, quiet
from test_hierarchy import make


def with_levels(source, quantizer: str = "gaussian-1", **training) -> Experiment:
    """Three levels below each other would need larger images: 8x8 has room for maps of 1x1 and 2x2."""
    experiment = tiny(source)
    plan = any_budget(**{"epochs": 2, "batch_size": 8, "passes_per_epoch": 1, "log_every": 3, "threads": 1, **training})
    settings = QuantizerSettings(quantizer, 16, 8, layers=2 if "residual" in quantizer else None)
    return replace(experiment, network=replace(experiment.network, levels=2), quantizer=settings, training=plan)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures.npy")


@pytest.fixture(scope="module")
def run(source, tmp_path_factory):
    out = tmp_path_factory.mktemp("levels") / "run"
    train(with_levels(source), out, announce=quiet)
    return out


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for index, picture in enumerate(np.random.default_rng(1).integers(0, 255, (3, 8, 8), dtype=np.uint8)):
        Image.fromarray(picture).save(folder / f"{index}.png")
    return folder


@pytest.mark.parametrize("quantizer", ["gaussian-1", "gaussian-3", "residual-1", "vmf", "vq-ema"])
def test_it_resumes_exactly(quantizer, source, tmp_path):
    """Stopped when assignments are certain already, so that codes have a smoothed usage to save."""
    experiment = with_levels(source, quantizer)
    train(experiment, tmp_path / "whole", announce=quiet)
    with pytest.raises(TrainingStoppedError, match="epoch 2 of 2, step 13"):
        train(experiment, tmp_path / "cut", watchers=[SignalAt(13)], announce=quiet)
    resume(tmp_path / "cut", announce=quiet)
    for checkpoint in ("last", "best"):
        weights = weights_of(tmp_path / "cut" / checkpoint)
        assert weights == weights_of(tmp_path / "whole" / checkpoint)
        settled = any(name.endswith("usage") for name in weights)
        assert settled == quantizer.startswith(("gaussian", "residual"))


def test_records_have_each_level_by_name(run):
    records = read_records(run / "log.jsonl")
    step = next(record for record in records if record["kind"] == "step")
    validation = [record for record in records if record["kind"] == "validation"][-1]
    for name in ("entropy share of level 1", "relative variance of level 2"):
        assert name in step
        assert name in validation
    assert 0 <= validation["entropy share of level 2"] <= 1.001
    assert {"perplexity of level 1", "perplexity of level 2"} <= validation.keys()
    assert len(validation["counts"]) == 32


def test_evaluation_has_the_perplexity_of_each_level(run, capsys):
    assert main(["evaluate", str(run)]) == 0
    words = said(capsys)
    assert "perplexity of each level" in words
    assert "2 levels" in words
    assert "compressed files hold codes of one resolution only" in words
    measures = json.loads((run / "results-test.json").read_text())["measures"]
    assert 1 <= measures["perplexity of level 1"] <= 16
    assert measures["codes_used"] <= 32


def test_a_saved_model_is_the_same(run, files, tmp_path):
    tokenizer = sqvae.load(run)
    assert tokenizer.levels == 2
    assert tokenizer.map_shapes == [(1, 1), (2, 2)]
    assert isinstance(tokenizer.inference_model, HierarchicalModel)
    tokenizer.save_pretrained(tmp_path / "model")
    again = sqvae.load(tmp_path / "model")
    assert again.fingerprint == tokenizer.fingerprint
    paths = sorted(map(str, files.iterdir()))
    codes = tokenizer.encode(paths)
    assert [tuple(own.shape) for own in codes] == [(3, 1, 1), (3, 2, 2)]
    assert all(torch.equal(own, other) for own, other in zip(codes, again.encode(paths), strict=True))
    assert "1x1 and 2x2 codes: 20 bits" in (tmp_path / "model" / "README.md").read_text()


def test_fewer_levels_by_the_tokenizer(run, files):
    tokenizer, paths = sqvae.load(run), sorted(map(str, files.iterdir()))
    coarse, fine = tokenizer.encode(paths)
    assert torch.equal(tokenizer.decode([coarse, fine]), tokenizer.reconstruct(paths))
    assert torch.equal(tokenizer.decode([coarse.tolist(), fine.tolist()]), tokenizer.reconstruct(paths))
    assert torch.equal(tokenizer.decode([coarse]), tokenizer.reconstruct(paths, levels=1))
    assert not torch.equal(tokenizer.reconstruct(paths, levels=1), tokenizer.reconstruct(paths, levels=2))
    model = tokenizer.inference_model
    x = tokenizer.preprocess(paths).float() / 255
    torch.testing.assert_close(tokenizer.reconstruct(paths, levels=1), model.reconstruct(x, levels=1))
    with pytest.raises(ValueError, match=r"one tensor for each of 2 levels, or for the first of them.*got one tensor"):
        tokenizer.decode(coarse)
    with pytest.raises(ValueError, match=r"got shapes \(3, 1, 1\), \(2, 2, 2\)"):
        tokenizer.decode([coarse, fine[:2]])
    with pytest.raises(ValueError, match=r"twice the height and width.*got shapes \(3, 2, 2\), \(3, 2, 2\)"):
        tokenizer.decode([fine, fine])
    with pytest.raises(ValueError, match="this model has 2 levels of codes, so levels must be between 1 and 2"):
        tokenizer.reconstruct(paths, levels=3)


def test_reconstruct_shows_what_each_level_adds(run, files, tmp_path, capsys):
    for levels in ("1", "2"):
        assert main(["reconstruct", str(run), str(files), "-o", str(tmp_path / levels), "--levels", levels]) == 0
    assert main(["reconstruct", str(run), str(files), "-o", str(tmp_path / "all")]) == 0
    made = {name: np.asarray(Image.open(tmp_path / name / "0.png")) for name in ("1", "2", "all")}
    assert (made["2"] == made["all"]).all()
    assert (made["1"] != made["2"]).any()
    capsys.readouterr()
    assert main(["reconstruct", str(run), str(files), "-o", str(tmp_path / "3"), "--levels", "3"]) == 1
    assert "levels=3: this model has 2 levels of codes" in said(capsys)
    assert not (tmp_path / "3").exists()


REFUSED = {
    "encode": ("{files}", "-o", "{out}.npz"),
    "compress": ("{files}", "-o", "{out}.sqz"),
    "train-prior": ("--steps", "1", "-o", "{out}"),
    "sample": ("-o", "{out}.png"),
    "interpolate": ("{files}/0.png", "{files}/1.png", "-o", "{out}.png"),
    "neighbors": ("{files}/0.png", "-o", "{out}.png"),
    "export": ("--onnx", "-o", "{out}"),
    "explore": ("--no-open",),
}
"""What is for codes of one resolution only, and how it is called."""


@pytest.mark.parametrize("command", REFUSED)
def test_what_a_hierarchy_can_t_do_is_said_in_a_sentence(command, run, files, tmp_path, capsys):
    arguments = [text.format(files=files, out=tmp_path / "out") for text in REFUSED[command]]
    assert main([command, str(run), *arguments]) == 1
    words = said(capsys)
    assert "codes of one resolution, and this model has 2 levels of them" in words
    assert "network.levels=1" in words
    assert not any(path.name.startswith("out") for path in tmp_path.iterdir())


def test_the_page_and_the_inspection_are_of_all_levels(run, tmp_path, capsys):
    assert main(["report", str(run), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "What each level adds" in page
    assert "the mean of their codes" in page
    assert "several levels of codes" in said(capsys)
    assert main(["inspect", str(run)]) == 0
    words = said(capsys)
    assert "becomes 1x1 and 2x2 codes: 20 bits" in words
    assert "16 codes of 8 dimensions, at each of 2 levels" in words
    assert "16 in each of 2 levels; perplexity of each level" in words
    assert "no plots" not in words


def test_reconstructions_have_a_distance_and_samples_have_none(run, capsys):
    options = ["--features", "random-convolutions", "--pictures", "8"]
    assert main(["fid", str(run), *options]) == 0
    assert "reconstruction" in said(capsys)
    assert main(["fid", str(run), "--of", "interpolation", *options]) == 1
    assert "several at each position, for interpolation" in said(capsys)


@pytest.mark.parametrize("recipe", ["grey-levels", "label-maps"])
def test_classes_have_levels_too(recipe, source):
    """Label maps and grey levels have the same networks, with other likelihoods."""
    sizes = ["data.size=8", "data.classes=5"] if recipe == "label-maps" else ["data.size=8"]
    small = ["network.widths=4,8", "quantizer.dim=8", "quantizer.codebook_size=4", "network.mix=false"]
    experiment = override(RECIPES[recipe](), [*sizes, *small, "network.levels=2"])
    model = build_model(experiment, (1, 8, 8))
    x = torch.randint(0, 5, (3, 8, 8))
    model(x, 0.5).loss.backward()
    assert [own.shape for own in model.encode(x)] == [(3, 1, 1), (3, 2, 2)]
    assert model.reconstruct(x, levels=1).shape == x.shape


def test_one_level_has_no_levels_to_choose(source, files, tmp_path, capsys):
    train(replace(tiny(source), training=any_budget(steps=2, batch_size=8)), tmp_path / "run", announce=quiet)
    tokenizer = sqvae.load(tmp_path / "run")
    paths = sorted(map(str, files.iterdir()))
    assert tokenizer.levels == 1
    assert torch.equal(tokenizer.reconstruct(paths, levels=1), tokenizer.reconstruct(paths))
    assert main(["reconstruct", str(tmp_path / "run"), str(files), "-o", str(tmp_path / "out"), "--levels", "2"]) == 1
    assert "levels=2: this model has one level of codes" in said(capsys)


class TestSettings:
    def test_levels_are_of_images_with_codes(self):
        for changes in (["data.kind=speech"], ["quantizer.name=gaussian-latent"]):
            with pytest.raises(ConfigurationError, match=r"network.levels=2 makes levels.*set network.levels=1"):
                override(Experiment(), [*changes, "network.levels=2"])
        with pytest.raises(ConfigurationError, match=r"network.levels must be at least 1, got 0"):
            NetworkSettings(levels=0)
        with pytest.raises(ConfigurationError, match=r"network.levels must be at most 10.*got 1000000000"):
            NetworkSettings(levels=10**9)

    def test_they_are_stored_and_counted(self):
        settings = ["network.levels=3", "quantizer.name=residual-1", "quantizer.layers=2", "quantizer.codebook_size=8"]
        experiment = override(Experiment(), settings)
        assert from_json(Experiment, to_json(experiment)) == experiment
        assert experiment.number_of_codes == 48
        assert Experiment().number_of_codes == 512

    def test_sides_must_have_room_for_all_levels(self, tmp_path, capsys):
        source = write_pictures(tmp_path / "pictures.npy", side=12)
        settings = ["--set", "network.levels=3", "--steps", "1", "-o", str(tmp_path / "run")]
        assert main(["train", "--data", str(source), *settings]) == 1
        assert "can't be halved 4 times: the sides must be multiples of 16" in said(capsys)


class TestSilence:
    """A level that says nothing is reported by name."""

    def test_in_words(self):
        measures = {"entropy share of level 1": 0.99, "relative variance of level 1": 7.3, "mixture_gap": 3.0}
        counts = [5] * 32
        (words,) = diagnose(measures, counts, what="test pictures", quantizer="gaussian-1", levels=2)
        assert words.startswith(
            "level 1 of 2 says nothing: on the test pictures the entropy of its choices is 99% of the most there can "
            "be, and its variance is 7.3 times the mean squared distance between its codes"
        )
        assert "network.levels" in words
        well = {"entropy share of level 1": 0.5, "entropy share of level 2": 0.1}
        assert diagnose(well, counts, what="test pictures", quantizer="gaussian-1", levels=2) == ()

    def test_a_level_with_a_single_code_is_named_by_its_counts(self):
        counts = [100] + [0] * 15 + [10] * 16
        (words,) = diagnose({}, counts, what="test pictures", quantizer="vq-ema", levels=2)
        assert words.startswith("the codebook has collapsed: 1 of 16 codes are used on the test pictures, in level 1.")
        counts = [10] * 48 + [100] + [0] * 15
        (words,) = diagnose({}, counts, what="x", quantizer="residual-1", levels=2, layers=2)
        assert "in level 2, layer 2." in words

    def test_it_is_measured_for_each_level(self):
        model = make("gaussian-1", "gaussian-1")
        loud, silent = model.quantizer.levels
        assert isinstance(loud, GaussianQuantizer)
        with torch.no_grad():
            loud.log_variance.fill_(-20.0)
            silent.log_variance.fill_(20.0)
        x = torch.rand(4, 1, 16, 16)
        found = annealing_of(model.quantizer, model(x))
        assert found["entropy share of level 1"] < 0.1
        assert found["entropy share of level 2"] == pytest.approx(1, abs=1e-3)
        assert found["relative variance of level 2"] > 1e6

        def add(comparison, x, objective):
            comparison.add(x, objective.output)

        gap = mixture_gap(model.eval(), [x, x], 1.0, SquaredErrors, add)
        assert gap["entropy share of level 1"] < 0.1
        assert gap["entropy share of level 2"] == pytest.approx(1, abs=1e-3)
        (words,) = diagnose(gap, [5] * 32, what="test pictures", quantizer="gaussian-1", levels=2)
        assert words.startswith("level 2 of 2 says nothing")

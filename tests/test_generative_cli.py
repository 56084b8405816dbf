"""Priors on the command line, as a person uses them: train, sample, change codes, compress."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from runs import said, weights_of
from sqvae.analysis import SETS, Makers
from sqvae.cli import main
from sqvae.runs import load_generator, prepare
from sqvae.tokenizers import load

SMALL = [
    *("--set", "network.widths=4,8", "--set", "network.mix=false", "--set", "network.blocks=1"),
    *("--set", "quantizer.dim=8", "--set", "quantizer.codebook_size=16", "--set", "training.passes_per_epoch=4"),
    *(
        "--set",
        "training.batch_size=8",
        "--set",
        "training.threads=1",
        "--set",
        "quantizer.name=vq-ema",
        "--set",
        "training.learning_rate=1e-2",
    ),
]
SMALL_PRIOR = [
    *("--set", "prior.channels=8", "--set", "prior.layers=2", "--set", "training.passes_per_epoch=1"),
    *("--set", "training.batch_size=8", "--set", "training.threads=1"),
]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> Path:
    """Dark ones and bright ones, in a folder each."""
    root = tmp_path_factory.mktemp("mine") / "photos"
    random = np.random.default_rng(0)
    for number in range(60):
        kind = ("bright", "dark")[number % 2]
        level = {"bright": 160, "dark": 20}[kind]
        path = root / kind / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(level, level + 60, (16, 16), dtype=np.uint8)).save(path)
    return root


@pytest.fixture(scope="module")
def run(pictures, tmp_path_factory) -> Path:
    """A model with its prior."""
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", "--data", str(pictures), "--out", str(out), "--epochs", "8", *SMALL]) == 0
    assert main(["train-prior", str(out), "--epochs", "2", *SMALL_PRIOR]) == 0
    return out


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class TestTraining:
    def test_it_says_what_was_learned_and_what_to_do_next(self, run, tmp_path, capsys):
        assert main(["train-prior", str(run), "--out", "other", "--epochs", "1", *SMALL_PRIOR]) == 0
        told = said(capsys)
        assert "bits per code" in told
        assert f"sqvae sample {run} --prior other -o samples.png" in told
        record = json.loads(Path("other/results-test.json").read_text())
        assert record["measures"]["uniform_bits_per_code"] == 4
        assert record["examples"] == 6

    def test_a_prior_that_is_worse_than_the_histogram_is_said_to_be(self, run, pictures, capsys):
        arguments = ["--out", "poor", "--epochs", "1", "--set", "training.learning_rate=1e-7", *SMALL_PRIOR]
        assert main(["train-prior", str(run), *arguments]) == 0
        told = said(capsys)
        assert "the prior is worse than the histogram of codes" in told
        assert "sqvae resume poor --epochs 2" in told
        sizes = []
        for name, options in (("poor.sqz", ["--prior", "poor"]), ("plain.sqz", ["--no-prior"])):
            assert main(["compress", str(run), str(pictures), "-o", name, *options]) == 0
            assert ("compress with --no-prior" in said(capsys)) == (name == "poor.sqz")
            sizes.append(Path(name).stat().st_size)
        assert sizes[0] > sizes[1]
        arguments = ["--out", "better", "--epochs", "30", "--set", "training.learning_rate=2e-2", *SMALL_PRIOR]
        assert main(["train-prior", str(run), *arguments]) == 0
        assert "worse than the histogram" not in said(capsys)

    def test_a_prior_that_is_there_is_left_alone(self, run, capsys):
        assert main(["train-prior", str(run), *SMALL_PRIOR]) == 1
        words = said(capsys)
        assert f"{run / 'prior'} already contains a run" in words
        assert f"sqvae resume {run / 'prior'}" in words

    def test_interrupted_it_goes_on_to_the_same_bits(self, run, tmp_path):
        arguments = ["train-prior", str(run), "--epochs", "3", "--set", "training.log_every=1", *SMALL_PRIOR]
        assert main([*arguments, "--out", "whole"]) == 0
        process = subprocess.Popen(
            [sys.executable, "-m", "sqvae", *arguments, "--out", "stopped"], stderr=subprocess.PIPE
        )
        log = Path("stopped/log.jsonl")
        while not log.exists() or log.read_text().count("\n") < 4:
            assert process.poll() is None, process.stderr.read().decode()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert process.returncode in (0, 130)
        if process.returncode == 130:
            assert b"Resume with: sqvae resume stopped" in told
        assert main(["resume", "stopped"]) == 0
        for name in ("best", "last"):
            assert weights_of(Path("stopped") / name) == weights_of(Path("whole") / name)

    def test_bad_settings(self, run, capsys):
        for arguments, message in (
            (["--network", "pixelcn"], "prior.name 'pixelcn' is unknown (did you mean pixelcnn?)"),
            (["--set", "prior.heads=2"], "pixelcnn has no prior.heads"),
            (["--given", "nowhere"], "there is no folder nowhere"),
            (["--set", "nothing=1"], "there is no setting 'nothing'"),
        ):
            assert main(["train-prior", str(run), "--out", "other", *arguments]) == 1
            assert message in said(capsys)
            assert not Path("other").exists()

    def test_a_continuous_latent_has_no_codes(self, pictures, capsys):
        arguments = ["train", "--data", str(pictures), "--out", "vae", "--epochs", "1", *SMALL]
        vae = [part.replace("quantizer.name=vq-ema", "quantizer.name=gaussian-latent") for part in arguments]
        assert main(vae) == 0
        assert main(["train-prior", "vae", *SMALL_PRIOR]) == 1
        assert "has a continuous latent, and no codes" in said(capsys)


class TestSampling:
    def test_all_in_one_picture_or_each_in_its_own(self, run):
        assert main(["sample", str(run), "-n", "5", "-o", "samples.png"]) == 0
        assert main(["sample", str(run), "-n", "5", "-o", "samples", "--batch", "2"]) == 0
        paths = sorted(Path("samples").iterdir())
        assert len(paths) == 5
        sheet = np.asarray(Image.open("samples.png"))
        first = np.asarray(Image.open(paths[0]))
        scale = sheet.shape[1] // (3 * first.shape[1])
        assert np.array_equal(sheet[: scale * 16 : scale, : scale * 16 : scale], first)

    def test_the_same_seed_the_same_samples(self, run):
        for name, seed, more in (("a", 1, []), ("b", 1, ["--batch", "3"]), ("c", 2, []), ("d", 1, ["--top-k", "1"])):
            assert main(["sample", str(run), "-n", "9", "--seed", str(seed), "-o", f"{name}.png", *more]) == 0
        a, b, c, d = (Path(f"{name}.png").read_bytes() for name in "abcd")
        assert a == b
        assert a not in (c, d)

    def test_nothing_is_replaced(self, run, capsys):
        Path("samples.png").write_text("mine")
        assert main(["sample", str(run), "-o", "samples.png"]) == 1
        assert "samples.png is there already, and is left as it is" in said(capsys)
        assert Path("samples.png").read_text() == "mine"
        assert main(["sample", str(run), "-o", "samples.png", "--overwrite"]) == 0

    def test_bad_choices(self, run, capsys):
        for arguments, message in (
            (["--top-p", "1.5"], "top_p must be more than 0 and at most 1, got 1.5"),
            (["--class", "cat"], "this prior knows no classes, and was asked for cat"),
            (["--seconds", "2"], "--seconds is for models of speech"),
            (["--prior", "nowhere"], "there is no prior in nowhere"),
        ):
            assert main(["sample", str(run), "-o", "samples.png", *arguments]) == 1
            assert message in said(capsys)

    def test_classes(self, run, capsys):
        arguments = ["train-prior", str(run), "--by-class", "--epochs", "12", *SMALL_PRIOR]
        assert main([*arguments, "--set", "training.learning_rate=2e-2", "--out", "by-class"]) == 0
        brightness = {}
        for name in ("bright", "dark"):
            arguments = ["sample", str(run), "--prior", "by-class", "-n", "24", "--class", name]
            assert main([*arguments, "-o", f"{name}.png"]) == 0
            brightness[name] = np.asarray(Image.open(f"{name}.png")).mean()
        assert brightness["bright"] > brightness["dark"] + 30
        capsys.readouterr()
        assert main(["sample", str(run), "--prior", "by-class", "--class", "brigth", "-o", "x.png"]) == 1
        assert "there is no class 'brigth' (did you mean bright?); there is bright, dark" in said(capsys)

        generator = load_generator(run, "by-class")
        assert len(generator.class_counts) == 2
        assert min(generator.class_counts) > 0
        held_out = prepare(generator.tokenizer.experiment, announce=str).part("test")
        for counts, expected in (((5, 0), "bright"), ((0, 5), "dark")):  # distances are of classes as they occur
            only = replace(generator, experiment=replace(generator.experiment, class_counts=counts))
            drawn = next(SETS["samples"](Makers(generator.tokenizer, held_out, only)))
            assert drawn.equal(generator.sample(len(drawn), classes=[expected]))


class TestChangedCodes:
    def test_neighbors(self, run, pictures, capsys):
        assert main(["neighbors", str(run), str(pictures / "dark"), "-o", "neighbors.png", "-k", "1", "-k", "4"]) == 0
        with Image.open("neighbors.png") as sheet:
            assert sheet.width > 8 * 96  # 30 pictures in bands of 8, and beside them what their rows are
            assert "original, reconstruction, 1st nearest code, 4th nearest code" in sheet.text["Description"]
        assert "codes replaced by neighbour 1, 4" in said(capsys)
        assert main(["neighbors", str(run), str(pictures / "dark"), "-o", "more.png", "-k", "16"]) == 1
        assert "k must be 1 ... 15, got 16" in said(capsys)

    def test_neighbours_are_those_of_a_direct_search(self, run):
        from sqvae.analysis import neighbour_table

        tokenizer = load(run)
        vectors = tokenizer.code_vectors.double()
        distances = (vectors[:, None] - vectors).square().sum(-1)
        order = distances.argsort(1)
        assert torch.equal(order[:, 0], torch.arange(16))
        for k in (1, 3, 15):
            assert torch.equal(neighbour_table(tokenizer, k).cpu(), order[:, k])

    def test_interpolate_begins_and_ends_at_the_pictures_nearest_codes(self, run, pictures, capsys):
        from sqvae.analysis import interpolated
        from sqvae.data import stream

        first, second = (str(pictures / name) for name in ("bright/0.png", "dark/1.png"))
        assert main(["interpolate", str(run), first, second, "-o", "between.png", "--steps", "5"]) == 0
        with Image.open("between.png") as row:
            assert row.width >= 7 * 96
            assert "from 0.png to 1.png" in row.text["Description"]
            assert "original, 0%, 25%, 50%, 75%, 100%, original" in row.text["Description"]
        tokenizer = load(run)
        a, b = (
            next(iter(stream([path], tokenizer.preprocessing, batch=1, on_skip=print)))[1] for path in (first, second)
        )
        ends = interpolated(tokenizer, torch.cat([a, a]), torch.cat([b, b]), torch.tensor([0.0, 1.0]))
        vectors = tokenizer.code_vectors
        for picture, codes in ((a, ends[0]), (b, ends[1])):
            z = tokenizer.encodings(picture)[0].flatten(0, 1)
            assert torch.equal(torch.cdist(z.double(), vectors.double()).argmin(1), codes.flatten())
        assert main(["interpolate", str(run), str(pictures), second, "-o", "x.png"]) == 1
        assert "holds several pictures: name one to begin with" in said(capsys)


def test_nothing_is_replaced_unless_a_person_says_so(run, pictures, capsys):
    """Every command that writes where it is told to."""
    first, second = (str(pictures / name) for name in ("bright/0.png", "dark/1.png"))
    for target, command in (
        ("codes.safetensors", ["encode", first]),
        ("codes.npz", ["encode", first]),
        ("photos.sqz", ["compress", first]),
        ("neighbors.png", ["neighbors", first]),
        ("between.png", ["interpolate", first, second]),
        ("sheet.png", ["sample", "-n", "2"]),
        ("samples/sample-00001.png", ["sample", "-n", "2"]),
        ("rebuilt/0.png", ["reconstruct", first]),
        ("decoded/0.png", ["decode", "codes.npz"]),
        ("restored/0.png", ["decompress", "photos.sqz"]),
        ("plots/use.png", ["inspect"]),
        ("page.html", ["report"]),
        ("programs/encoder.pt2", ["export", "--torch"]),
    ):
        name, *rest = command
        out = target if "/" not in target else target.partition("/")[0]
        typed = [name, str(run), *rest, "-o", out]
        Path(target).parent.mkdir(exist_ok=True)
        Path(target).write_text("mine")
        capsys.readouterr()
        assert main(typed) == 1, target
        assert "--overwrite" in said(capsys), target
        assert Path(target).read_text() == "mine", target
        assert main([*typed, "--overwrite"]) == 0, target
        assert Path(target).read_bytes() != b"mine", target
        assert not list(Path().rglob("*.partial*"))


class TestRates:
    def test_evaluate_says_what_files_cost_beside_the_usual_ones(self, run, capsys):
        assert main(["evaluate", str(run), "--split", "train"]) == 0
        assert "bits per pixel, compressed" in said(capsys)
        rates = json.loads((run / "results-train.json").read_text())["rates"]
        assert (run / "rates-train.png").stat().st_size > 5000
        assert rates["by"] == "a learned prior"
        assert rates["pictures"] == 48
        assert rates["bits_per_pixel"] == pytest.approx(8 * rates["bytes_per_picture"] / 256)
        payload = 48 * 16 * rates["bits_per_code"] / 8
        assert payload <= 48 * rates["bytes_per_picture"] < payload + 40  # what is around it is small

    def test_the_usual_formats_against_files_by_hand(self, tmp_path):
        from sqvae.metrics.formats import psnr, rate_of_format

        pictures = torch.randint(0, 256, (3, 3, 8, 12), dtype=torch.uint8)
        rate = rate_of_format(pictures, "JPEG", 50)
        size = error = 0
        for picture in pictures:
            path = tmp_path / "one.jpg"
            Image.fromarray(picture.permute(1, 2, 0).numpy()).save(path, quality=50)
            size += path.stat().st_size
            with Image.open(path) as opened:
                error += ((np.asarray(opened) / 255 - picture.permute(1, 2, 0).numpy() / 255) ** 2).mean() / 3
        assert rate.bits_per_pixel == pytest.approx(8 * size / (3 * 96))
        assert rate.psnr == pytest.approx(psnr(error))
        assert rate_of_format(pictures[:, :1], "WebP", 95).psnr > rate_of_format(pictures[:, :1], "WebP", 1).psnr


class TestCompression:
    def test_there_and_back_on_any_threads_and_batches(self, run, pictures, tmp_path, capsys):
        assert main(["compress", str(run), str(pictures), "-o", "photos.sqz", "--batch", "7"]) == 0
        told = said(capsys)
        assert "60 pictures in photos.sqz" in told
        assert f"{Path('photos.sqz').stat().st_size:,} bytes" in told
        assert "by a learned prior" in told
        assert main(["encode", str(run), str(pictures), "-o", "codes.safetensors"]) == 0
        assert main(["decode", str(run), "codes.safetensors", "-o", "decoded"]) == 0
        command = [
            sys.executable,
            "-m",
            "sqvae",
            "decompress",
            str(run),
            "photos.sqz",
            "--batch",
            "1",
            "-o",
            "restored",
        ]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "2"})
        decoded = sorted(path.relative_to("decoded") for path in Path("decoded").rglob("*.png"))
        assert len(decoded) == 60
        for path in decoded:
            one, other = (
                np.asarray(Image.open(folder / path)).astype(int) for folder in (Path("decoded"), Path("restored"))
            )
            assert np.abs(one - other).max() <= 1  # the codes are the same; the network rounds by its batches

    def test_without_a_prior_the_codes_before_tell(self, run, pictures, capsys):
        best = str(run / "best")
        assert main(["compress", best, str(pictures), "-o", "photos.sqz", "--no-names"]) == 0
        assert main(["decompress", best, "photos.sqz", "-o", "restored"]) == 0
        assert len(list(Path("restored").iterdir())) == 60
        assert main(["compress", str(run), str(pictures), "-o", "again.sqz", "--no-names", "--no-prior"]) == 0
        assert Path("again.sqz").read_bytes() == Path("photos.sqz").read_bytes()
        assert main(["decompress", str(run), "photos.sqz", "-o", "other"]) == 0  # though there is a prior by now

    def test_of_another_model(self, run, pictures, capsys):
        assert main(["train", "--data", str(pictures), "--out", "other", "--epochs", "1", *SMALL]) == 0
        assert main(["compress", str(run / "best"), str(pictures), "-o", "photos.sqz"]) == 0
        capsys.readouterr()
        assert main(["decompress", "other", "photos.sqz", "-o", "restored"]) == 1
        assert "codes of another model" in said(capsys)
        assert main(["compress", str(run), str(pictures), "-o", "learned.sqz"]) == 0
        capsys.readouterr()
        assert main(["decompress", "other", "learned.sqz", "-o", "restored"]) == 1  # which has no prior
        told = said(capsys)
        assert (
            "learned.sqz was compressed with a learned prior, and other has none: the file holds codes of ano" in told
        )
        assert "Decompress with the run that compressed it, or name its prior with --prior" in told

    def test_no_picture_at_all_leaves_nothing(self, run, capsys):
        Path("empty").mkdir()
        Path("empty/broken.png").write_bytes(b"no picture")
        assert main(["compress", str(run), "empty", "-o", "photos.sqz"]) == 1
        assert "none of the pictures in empty can be read" in said(capsys)
        assert not Path("photos.sqz").exists()


def test_speech_is_sampled_too(tmp_path, capsys):
    small = [
        *("speech.channels=24", "speech.hidden=16", "speech.speaker_dim=8", "speech.segments_per_epoch=160"),
        *("quantizer.codebook_size=16", "quantizer.dim=8", "training.batch_size=16"),
    ]
    settings = [part for setting in small for part in ("--set", setting)]
    assert main(["train", "speech", "--data", "voices", *settings, "--epochs", "1", "--out", "speech"]) == 0
    assert main(["train-prior", "speech", "--epochs", "1", "--set", "prior.crop=16", *SMALL_PRIOR]) == 0
    assert main(["sample", "speech", "-n", "2", "--seconds", "0.5", "-o", "said", "--audio"]) == 0
    frames = [np.load(path) for path in sorted(Path("said").glob("*.npy"))]
    assert [len(one) for one in frames] == [50, 50]
    assert len(list(Path("said").glob("*.wav"))) == 2
    capsys.readouterr()
    assert main(["sample", "speech", "-o", "other", "--speaker", "nobody"]) == 1
    assert "does not know the speaker 'nobody'" in said(capsys)

"""Models with several codes at each position, through the whole product: files, compression, measures and commands."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from kinds import speech_tokenizer
from runs import said, tiny, write_pictures
from sqvae import load
from sqvae.cli import main
from sqvae.codec import Adaptive, AdaptiveLayers, CodeFile, CodeFileError, CompressedFile, CompressedWriter, UnitFile
from sqvae.codec.units import UnitWriter, units_as_text
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.runs import train

LAYERS = 3
MODEL = "0123456789abcdef"
runner = CliRunner()


def layered(experiment, name="residual-1"):
    return replace(experiment, quantizer=replace(experiment.quantizer, name=name, layers=LAYERS))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layers")
    source = write_pictures(folder / "pictures.npy", channels=3)
    experiment = layered(tiny(source, epochs=2))
    return train(experiment, folder / "run", announce=lambda text: None).path


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    for number, picture in enumerate(np.load(write_pictures(folder / "all.npy", count=6, channels=3))):
        Image.fromarray(picture).save(folder / f"{number}.png")
    (folder / "all.npy").unlink()
    return folder


def read(folder):
    return {path.name: np.asarray(Image.open(path)) for path in sorted(folder.glob("*.png"))}


class TestCompression:
    @given(
        sizes=st.lists(st.integers(1, 30), min_size=1, max_size=4),
        images=st.integers(1, 5),
        side=st.integers(1, 4),
        seed=st.integers(0, 99),
        fewer=st.integers(0, 3),
    )
    @settings(max_examples=60, deadline=None)
    def test_any_number_of_layers_comes_back(self, tmp_path_factory, sizes, images, side, seed, fewer):
        random = np.random.default_rng(seed)
        layers = max(1, len(sizes) - fewer)
        codes = torch.tensor(np.stack([random.integers(0, size, (images, side, side)) for size in sizes[:layers]], -1))
        path = tmp_path_factory.mktemp("codes") / "codes.sqz"
        expectation = AdaptiveLayers(sizes, side)
        with CompressedWriter(path, expectation, fingerprint=MODEL) as writer:
            writer.write([str(number) for number in range(images)], expectation.as_maps(codes))
        ((names, maps),) = CompressedFile.open(path, AdaptiveLayers(sizes, side), fingerprint=MODEL).batches()
        assert names == [str(number) for number in range(images)]
        assert torch.equal(expectation.as_codes(maps), codes)

    def test_each_layer_has_counts_of_its_own(self, tmp_path):
        """Two layers, each of which takes one code of sixteen: hardly a bit for each, and no more than apart."""
        codes = torch.stack([torch.full((200, 4, 4), 3), torch.full((200, 4, 4), 9)], -1)
        expectation, sizes = AdaptiveLayers([16, 16], 4), {}
        with CompressedWriter(tmp_path / "both.sqz", expectation, fingerprint=MODEL, names=False) as writer:
            writer.write([""] * 200, expectation.as_maps(codes))
        sizes["both"] = writer.size.payload
        for layer, own in enumerate(codes.unbind(-1)):
            with CompressedWriter(tmp_path / f"{layer}.sqz", Adaptive(16), fingerprint=MODEL, names=False) as writer:
                writer.write([""] * 200, own)
            sizes[layer] = writer.size.payload
        assert sizes["both"] <= sizes[0] + sizes[1] + 16

    def test_a_file_of_other_layers_is_refused(self, tmp_path):
        expectation = AdaptiveLayers([4, 4], 2)
        with CompressedWriter(tmp_path / "codes.sqz", expectation, fingerprint=MODEL) as writer:
            writer.write(["one"], expectation.as_maps(torch.zeros(1, 2, 2, 2, dtype=torch.int64)))
        with pytest.raises(CodeFileError, match="another model"):
            CompressedFile.open(tmp_path / "codes.sqz", AdaptiveLayers([4, 4, 4], 2), fingerprint=MODEL)
        with pytest.raises(CodeFileError, match="4 x 2 codes, but this model's have 2 x 2 or 6 x 2"):
            CompressedFile.open(tmp_path / "codes.sqz", expectation, fingerprint=MODEL, shapes=[(2, 2), (6, 2)])
        with pytest.raises(ValueError, match="2 rows for each of 1 to 2 layers; got 3 rows"):
            expectation.intervals(torch.zeros(1, 3, 2, dtype=torch.int64), np.zeros(8, dtype=np.int64))


class TestCommands:
    def test_a_run_has_measures_of_each_layer(self, run, capsys):
        assert main(["evaluate", str(run), "--split", "validation"]) == 0
        text = said(capsys)
        assert "perplexity of each layer" in text
        record = json.loads((run / "results-validation.json").read_text())
        assert len(record["counts"]) == LAYERS * 16
        each = [record["measures"][f"perplexity of layer {number}"] for number in (1, 2, 3)]
        assert record["measures"]["perplexity"] == pytest.approx(np.exp(np.mean(np.log(each))), rel=1e-5)
        assert main(["inspect", str(run)]) == 0
        assert "in each of 3 layers" in said(capsys)

    def test_codes_and_pictures_of_the_first_layers(self, run, pictures, tmp_path, capsys):
        tokenizer = load(run)
        assert isinstance(tokenizer, ImageTokenizer)
        assert tokenizer.layers == LAYERS
        for number in (1, 2, 3):
            given = [] if number == LAYERS else ["--layers", str(number)]
            codes, decoded, again = (tmp_path / f"{number}{what}" for what in (".safetensors", "decoded", "again"))
            assert main(["encode", str(run), str(pictures), "-o", str(codes), *given]) == 0
            assert main(["decode", str(run), str(codes), "-o", str(decoded)]) == 0
            assert main(["reconstruct", str(run), str(pictures), "-o", str(again), *given]) == 0
            file = CodeFile.open(codes)
            assert (file.layers, file.shape) == (number, (6, 2, 2, number))
            one, other = read(decoded), read(again)
            assert list(one) == [f"{index}.png" for index in range(6)]
            assert all(np.array_equal(one[name], other[name]) for name in one)
        whole = torch.cat([own for _, own in CodeFile.open(tmp_path / "3.safetensors").batches(2)])
        first = torch.cat([own for _, own in CodeFile.open(tmp_path / "1.safetensors").batches(2)])
        assert torch.equal(whole[..., :1], first)

    def test_compressed_files_of_some_layers(self, run, pictures, tmp_path, capsys):
        sizes = []
        for number in (1, 2, 3):
            file, out = tmp_path / f"{number}.sqz", tmp_path / f"{number}"
            assert main(["compress", str(run), str(pictures), "-o", str(file), "--layers", str(number)]) == 0
            assert main(["decompress", str(run), str(file), "-o", str(out)]) == 0
            sizes.append(file.stat().st_size)
        assert sizes == sorted(sizes)
        assert (
            main(["decompress", str(run), str(tmp_path / "3.sqz"), "-o", str(tmp_path / "cut"), "--layers", "1"]) == 0
        )
        for name, picture in read(tmp_path / "cut").items():
            assert np.array_equal(picture, read(tmp_path / "1")[name])
        capsys.readouterr()
        code = main(["decompress", str(run), str(tmp_path / "1.sqz"), "-o", str(tmp_path / "no"), "--layers", "2"])
        assert code == 1
        assert "layers must be between 1 and 1, the number of layers; got 2" in said(capsys)

    def test_the_curve_of_rate_and_distortion(self, run, capsys):
        assert main(["evaluate", str(run)]) == 0
        rates = json.loads((run / "results-test.json").read_text())["rates"]
        assert [row[0] for row in rates["layers"]] == [1, 2, 3]
        sizes = [row[1] for row in rates["layers"]]
        assert sizes == sorted(sizes)
        assert rates["layers"][-1][1:] == [rates["bytes_per_picture"], rates["bits_per_pixel"], rates["psnr"]]
        assert (run / "rates-test.png").exists()
        text = said(capsys)
        assert "with 1 layer" in text
        assert "with 3 layers" in text

    def test_more_layers_than_there_are(self, run, pictures, tmp_path, capsys):
        assert main(["encode", str(run), str(pictures), "-o", str(tmp_path / "codes.npz"), "--layers", "4"]) == 1
        assert "layers must be between 1 and 3, the number of layers; got 4" in said(capsys)
        assert not (tmp_path / "codes.npz").exists()

    def test_layers_of_a_model_without(self, pictures, tmp_path, capsys):
        source = write_pictures(tmp_path / "pictures.npy", channels=3)
        plain = train(tiny(source, epochs=1), tmp_path / "run", announce=lambda text: None).path
        assert main(["reconstruct", str(plain), str(pictures), "-o", str(tmp_path / "out"), "--layers", "1"]) == 1
        assert "have no layers; residual quantizers have" in said(capsys)

    def test_it_is_exported_with_all_layers(self, run, tmp_path, capsys):
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        assert main(["export", str(run), "-o", str(tmp_path / "exported"), "--onnx"]) == 0
        text = said(capsys)
        assert f"(batch, rows, columns, {LAYERS})" in text
        assert "codes are the same" in text


class TestSpeech:
    def test_units_of_several_layers(self, tmp_path):
        with UnitWriter(
            tmp_path / "units.safetensors",
            codebook_size=9,
            fingerprint=MODEL,
            codes_per_second=50,
            rate=16000,
            layers=2,
        ) as writer:
            for number in (3, 2):
                writer.add(torch.arange(2 * number).view(number, 2))
                writer.end(f"{number}.wav", "", frames=2 * number, samples=320 * number)
        file = UnitFile.open(tmp_path / "units.safetensors")
        assert file.layers == 2
        assert [unit.codes.tolist() for unit in file.units()] == [[[0, 1], [2, 3], [4, 5]], [[0, 1], [2, 3]]]
        assert list(units_as_text(file.units())) == ["3.wav\t0,1 2,3 4,5\n", "2.wav\t0,1 2,3\n"]

    def test_the_codes_of_a_stream_cut_anywhere_are_those_of_the_whole(self):
        tokenizer = speech_tokenizer(layered)
        assert tokenizer.layers == LAYERS
        frames = 10 * torch.randn(700, 80, generator=torch.Generator().manual_seed(0)) - 40
        whole = tokenizer.encode_frames([frames])[0]
        assert whole.shape == (350, LAYERS)
        for cuts in ([700], [1, 2, 697], [333, 367], [100] * 7):
            pieces = list(frames.split(cuts))
            assert torch.equal(torch.cat(list(tokenizer.encode_pieces(pieces))), whole)
            first = torch.cat(list(tokenizer.encode_pieces(list(frames.split(cuts)), layers=1)))
            assert torch.equal(first, whole[:, :1])
        assert tokenizer.decode([whole[:, :2]], "anna")[0].shape == (700, 80)

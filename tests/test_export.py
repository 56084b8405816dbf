"""Exported programs: the library's codes and pictures, in any size, without the library."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kinds import CODES, example, picture_experiment, picture_tokenizer, speech_tokenizer
from real_data import photographs
from runs import said, with_quantizer
from sqvae.cli import main
from sqvae.config import LikelihoodSettings
from sqvae.export import ExportError, export
from sqvae.export.agreement import DisagreementError, agreement
from sqvae.export.exportable import encoder_and_decoder
from sqvae.export.exporting import FORMATS, traced
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.tokenizers import load
from test_detection import face, image, voc_palette

EXAMPLE = Path(__file__).parents[1] / "examples" / "onnx_tokens.py"

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime, which runs what is exported, is not installed")
onnx = pytest.importorskip("onnx", reason="onnx, which is exported to, is not installed")
pytest.importorskip("onnxscript", reason="onnxscript, which exports, is not installed")


def built(kind: str, quantizer: str, likelihood: str | None = None) -> ImageTokenizer:
    """An untrained model whose codes are encodings of its examples, so that several are used."""
    experiment = with_quantizer(picture_experiment(kind), quantizer)
    experiment = replace(experiment, likelihood=LikelihoodSettings(name=likelihood))
    tokenizer = ImageTokenizer(new_model(experiment).eval(), experiment, "mark")
    with torch.no_grad():
        z = tokenizer.encodings(torch.stack([example(kind, seed) for seed in range(8)])).flatten(0, 2)
        tokenizer.model.quantizer.get_parameter("codebook").copy_(z[torch.randperm(len(z))[:CODES]])
    return tokenizer


def run(session, **inputs) -> torch.Tensor:
    return torch.from_numpy(session.run(None, {name: value.numpy() for name, value in inputs.items()})[0])


def sessions(folder: Path):
    return (onnxruntime.InferenceSession(folder / f"{half}.onnx") for half in ("encoder", "decoder"))


def by_example(*arguments: Path) -> str:
    """What the example says, in a process that can't import the package, nor torch."""
    code = (
        "import sys, runpy\n"
        "class Never:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('sqvae', 'torch'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Never())\n"
        "try:\n    import sqvae\nexcept ImportError:\n    pass\nelse:\n    sys.exit('it could be imported')\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLE), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A saved model of pictures in colour."""
    folder = tmp_path_factory.mktemp("models") / "model"
    picture_tokenizer("pictures").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory) -> tuple[Path, str]:
    """Its ONNX files, and what the command said."""
    folder = tmp_path_factory.mktemp("exported") / "onnx"
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        assert main(["export", str(model), "--onnx", "-o", str(folder)]) == 0
    return folder, " ".join(told.getvalue().split())


class TestPictures:
    @pytest.mark.parametrize(("batch", "height", "width"), [(1, 8, 16), (5, 8, 16), (3, 20, 12), (2, 4, 4)])
    def test_any_batch_and_any_size(self, model, exported, batch, height, width):
        tokenizer, (encoder, decoder) = load(model), sessions(exported[0])
        pictures = torch.rand(batch, 3, height, width)
        codes = run(encoder, pictures=pictures)
        assert torch.equal(codes, tokenizer.encode(pictures))
        assert len(codes.unique()) > 1 or codes[0].numel() == 1
        torch.testing.assert_close(run(decoder, codes=codes), tokenizer.decode(codes), rtol=0, atol=1e-4)

    def test_the_command_says_what_it_wrote_and_compared(self, exported):
        folder, text = exported
        assert f"{folder / 'encoder.onnx'}: pictures (batch, 3, height, width) to codes (batch, rows, columns)" in text
        assert "encoder.onnx in onnxruntime against the library" in text
        assert "on pictures of 2x3x8x16, 1x3x12x24, 12x3x8x16: all 130 codes are the same" in text
        assert "decoder.onnx in onnxruntime against the library" in text
        assert re.search(r"on codes of 2x2x4, 1x3x6, 12x2x4: all 6,240 values within \d", text)
        assert sorted(path.name for path in folder.iterdir()) == ["decoder.onnx", "encoder.onnx", "export.json"]

    def test_files_describe_themselves_and_name_no_folder(self, model, exported):
        folder, _ = exported
        described = json.loads((folder / "export.json").read_text())
        assert described["fingerprint"] == load(model).fingerprint
        assert described["codebook_size"] == CODES
        assert described["stride"] == 4
        assert described["preprocessing"]["size"] == [8, 16]
        assert described["preprocessing"]["channels"] == 3
        assert described["encoder"]["inputs"][0]["shape"] == ["batch", 3, "height", "width"]
        assert described["files"] == {"encoder": ["encoder.onnx"], "decoder": ["decoder.onnx"]}
        here = str(Path(__file__).parents[1]).encode()
        for half in ("encoder", "decoder"):
            path = folder / f"{half}.onnx"
            assert here not in path.read_bytes()
            graph = onnx.load(path)
            onnx.checker.check_model(graph, full_check=True)
            metadata = {entry.key: entry.value for entry in graph.metadata_props}
            assert metadata["sqvae.fingerprint"] == described["fingerprint"]
            assert metadata["sqvae.codebook_size"] == str(CODES)
            assert json.loads(metadata[f"sqvae.{half}"]) == described[half]
            slots = [*graph.graph.input, *graph.graph.output]
            assert [slot.name for slot in slots] == (
                ["pictures", "codes"] if half == "encoder" else ["codes", "pictures"]
            )
            words = [[dim.dim_param or dim.dim_value for dim in slot.type.tensor_type.shape.dim] for slot in slots]
            assert ["batch", 3, "height", "width"] in words
            assert ["batch", "rows", "columns"] in words
            assert not any(tensor.data_type == onnx.TensorProto.DOUBLE for tensor in graph.graph.initializer)
            assert not any("DOUBLE" in str(node.attribute) or node.op_type == "Loop" for node in graph.graph.node)

    def test_what_is_there_is_left_alone_unless_asked(self, model, exported, capsys):
        folder, _ = exported
        before = (folder / "encoder.onnx").read_bytes()
        assert main(["export", str(model), "--onnx", "-o", str(folder)]) == 1
        assert "encoder.onnx, decoder.onnx, export.json in" in (text := said(capsys))
        assert "are there already, and left as they are. Choose another folder, or pass --overwrite" in text
        assert (folder / "encoder.onnx").read_bytes() == before

    def test_the_example_needs_nothing_of_ours_and_gives_our_codes(self, model, exported, tmp_path):
        """A large JPEG, whose centre begins at half a pixel."""
        Image.fromarray(photographs()["chelsea"][:299, :450]).save(tmp_path / "picture.jpg", quality=90)
        done = by_example(exported[0], tmp_path / "picture.jpg", tmp_path / "rebuilt.png")
        tokenizer = load(model)
        codes = tokenizer.encode(tmp_path / "picture.jpg")
        assert done == str(codes[0].numpy())
        rebuilt = np.asarray(Image.open(tmp_path / "rebuilt.png")).astype(int)
        expected = (255 * tokenizer.decode(codes)[0].permute(1, 2, 0)).round().int().numpy()
        assert np.abs(rebuilt - expected).max() <= 1

    def test_the_example_without_arguments_says_how_it_is_used(self):
        done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True)
        assert done.returncode == 1
        assert "usage: python onnx_tokens.py FOLDER PICTURE REBUILT.png" in done.stderr
        assert "Traceback" not in done.stderr


def test_label_maps(tmp_path):
    tokenizer = built("labels", "vmf", "vmf")
    files = export(tokenizer, tmp_path, ["onnx"]).files
    assert [written.agreement.ties for written in files] == [0, 0]
    encoder, decoder = sessions(tmp_path)
    for shape in ((1, 8, 12), (4, 12, 8)):
        maps = torch.randint(0, 5, shape)
        maps[:, :2] = 255  # nothing is known there
        codes = run(encoder, labels=maps)
        assert torch.equal(codes, tokenizer.encode(maps))
        assert (run(decoder, codes=codes) != tokenizer.decode(codes)).float().mean() < 1e-3
    described = json.loads((tmp_path / "export.json").read_text())
    assert described["classes"]["number"] == 5
    assert described["classes"]["ignore"] == 255
    assert "0 ... 4, and 255 where nothing is known" in described["encoder"]["inputs"][0]["meaning"]
    original = image(face(0) % 5, voc_palette())
    original.save(tmp_path / "map.png")
    codes = tokenizer.encode(tmp_path / "map.png")
    assert by_example(tmp_path, tmp_path / "map.png", tmp_path / "rebuilt.png") == str(codes[0].numpy())
    with Image.open(tmp_path / "rebuilt.png") as rebuilt:
        assert rebuilt.mode == "P"
        assert (np.asarray(rebuilt) != tokenizer.decode(codes)[0].numpy()).mean() < 0.02


def test_speech_of_any_length(tmp_path, capsys):
    speech_tokenizer().save_pretrained(tmp_path / "speech")
    arguments = ["export", str(tmp_path / "speech"), "--onnx", "--torch", "-o", str(tmp_path / "out")]
    assert main(arguments) == 0
    text = said(capsys)
    assert "codes (batch, positions), speakers (batch) to frames (batch, frames, 80)" in text
    assert "decoder.pt2 is left out: torch.export would fix the length" in text
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["decoder.onnx", "encoder.onnx", "encoder.pt2", "export.json"]
    tokenizer = load(tmp_path / "speech")
    encoder, decoder = sessions(tmp_path / "out")
    program = torch.export.load(tmp_path / "out" / "encoder.pt2").module()
    for batch, length in ((1, 2), (3, 40), (2, 130)):
        frames = 10 * torch.randn(batch, length, 80) - 40
        codes = torch.stack(tokenizer.encode_frames(list(frames)))
        assert torch.equal(run(encoder, frames=frames), codes)
        assert length == 2 or torch.equal(program(frames), codes)  # torch's guards want two codes at least
        speakers = torch.arange(batch) % 2
        expected = torch.stack(tokenizer.decode(list(codes), [tokenizer.speakers[one] for one in speakers]))
        torch.testing.assert_close(run(decoder, codes=codes, speakers=speakers), expected, rtol=1e-4, atol=1e-4)
    described = json.loads((tmp_path / "out" / "export.json").read_text())
    assert described["speakers"] == ["anna", "ben"]
    assert described["preprocessing"]["rate"] == 16_000


def test_grey_levels_as_programs_of_torch(tmp_path):
    tokenizer = built("levels", "vmf", "vmf")
    files = export(tokenizer, tmp_path, ["torch"]).files
    assert [written.name for written in files] == ["encoder.pt2", "decoder.pt2"]
    encoder, decoder = (torch.export.load(tmp_path / written.name).module() for written in files)
    codes = torch.randint(0, CODES, (3, 4, 5))
    decoded = tokenizer.decode(codes)
    assert decoded.shape == (3, 1, 16, 20)
    assert (decoder(codes) - decoded).abs().max() < 1e-4
    assert torch.equal(encoder(decoded.clone()), tokenizer.encode(decoded))
    assert b"/src/sqvae/" not in (tmp_path / "encoder.pt2").read_bytes()


@pytest.mark.parametrize("quantizer", ["gaussian-2", "gaussian-4", "vq-ema"])
def test_quantizers_of_every_sort(quantizer, tmp_path):
    encoder, _ = encoder_and_decoder(built("pictures", quantizer))
    FORMATS["torch"].save(encoder, traced(encoder), tmp_path / "encoder.pt2", {})
    found = agreement(encoder, FORMATS["torch"].open(tmp_path / "encoder.pt2"))
    assert (found.outputs, found.ties) == (130, 0)


def untraced(monkeypatch, **changes):
    """A format that is quick to write, with something changed."""
    form = replace(FORMATS["torch"], save=lambda half, program, path, about: path.write_bytes(b"program"), **changes)
    monkeypatch.setattr("sqvae.export.exporting.traced", lambda half: None)
    monkeypatch.setattr("sqvae.export.exporting.FORMATS", {"torch": form})


class TestComparison:
    def test_a_code_that_is_another_is_found(self):
        encoder, _ = encoder_and_decoder(picture_tokenizer("pictures"))

        def wrong(pictures):
            codes = encoder.library(pictures).clone()
            codes[0, 0, 0] = (codes[0, 0, 0] + 1) % CODES
            return codes

        with pytest.raises(DisagreementError, match=r"the exported encoder disagrees with the library: 1 of 16 codes"):
            agreement(encoder, wrong)

    def test_a_code_on_the_border_of_two_is_a_tie(self):
        tokenizer = picture_tokenizer("pictures")
        with torch.no_grad():  # two codes so near to each other that nothing tells them apart
            codebook = tokenizer.model.quantizer.get_parameter("codebook")
            codebook[1] = codebook[0] + 1e-7 * codebook[0].norm()
        encoder, _ = encoder_and_decoder(tokenizer)
        # Encodings next to these two codes, whatever the pictures.
        x = encoder.examples[0][0]
        encoder.module.encodings = lambda x: (codebook[0].detach().expand(len(x), 2, 4, -1), None)
        zeros = torch.zeros(len(x), 2, 4, dtype=torch.int64)
        assert encoder.module.on_border(x, zeros, zeros + 1).all()
        assert not encoder.module.on_border(x, zeros, zeros + 2).any()

    def test_a_value_that_is_another_or_none_is_found(self):
        _, decoder = encoder_and_decoder(picture_tokenizer("pictures"))
        assert agreement(decoder, lambda codes: decoder.library(codes) + 5e-5).error == pytest.approx(5e-5, rel=1e-2)
        for change in (2e-4, torch.nan):
            with pytest.raises(DisagreementError, match="the exported decoder disagrees"):
                agreement(decoder, lambda codes, change=change: decoder.library(codes) + change)
        with pytest.raises(DisagreementError, match="and the library"):
            agreement(decoder, lambda codes: decoder.library(codes)[:1])

    def test_nothing_is_left_of_a_program_that_differs(self, tmp_path, monkeypatch):
        tokenizer = picture_tokenizer("pictures")
        untraced(monkeypatch, open=lambda path: lambda pictures: (tokenizer.encode(pictures) + 1) % CODES)
        with pytest.raises(DisagreementError):
            export(tokenizer, tmp_path / "out", ["torch"])
        assert list((tmp_path / "out").iterdir()) == []


class TestRefusals:
    def test_a_continuous_latent(self, tmp_path, capsys):
        experiment = with_quantizer(picture_experiment("pictures"), "gaussian-latent")
        ImageTokenizer(new_model(experiment).eval(), experiment, "").save_pretrained(tmp_path / "vae")
        assert main(["export", str(tmp_path / "vae"), "--onnx", "-o", str(tmp_path / "out")]) == 1
        assert "has a continuous latent (gaussian-latent), and no codes" in said(capsys)
        assert not (tmp_path / "out").exists()

    def test_packages_that_are_missing(self, tmp_path, monkeypatch):
        without = replace(FORMATS["onnx"], needs=("onnx", "no_such_package"))
        monkeypatch.setattr("sqvae.export.exporting.FORMATS", {"onnx": without})
        with pytest.raises(
            ExportError, match=r"no_such_package, which is not installed: pip install -e '\.\[export\]'"
        ):
            export(picture_tokenizer("pictures"), tmp_path / "out", ["onnx"])
        assert not (tmp_path / "out").exists()

    def test_without_what_runs_it_nothing_is_compared_and_it_says_so(self, model, tmp_path, monkeypatch, capsys):
        untraced(monkeypatch, runner="no_such_runner")
        assert main(["export", str(model), "--torch", "-o", str(tmp_path)]) == 0
        assert "encoder.pt2 was not compared with the library: this needs no_such_runner" in said(capsys)

    def test_nothing_asked_for(self, model, tmp_path, capsys):
        assert main(["export", str(model), "-o", str(tmp_path / "out")]) == 1
        assert "say what to export: --onnx, --torch, --pretrained, or several of them" in said(capsys)

    def test_a_folder_of_something_else_is_never_replaced(self, model, tmp_path, capsys):
        (tmp_path / "thesis.txt").write_text("mine")
        for more in ([], ["--overwrite"]):
            assert main(["export", str(model), "--pretrained", "-o", str(tmp_path), *more]) == 1
        text = said(capsys)
        assert "is there already, and is left as it is" in text
        assert "holds something else than a model, and is not replaced" in text
        assert (tmp_path / "thesis.txt").read_text() == "mine"
        assert main(["export", str(model), "--pretrained", "-o", str(model), "--overwrite"]) == 1
        assert "whose checkpoints it might replace" in said(capsys)


def test_the_benchmark_of_export_runs_and_writes_its_table(tmp_path):
    from benchmarks import exporting

    assert exporting.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    assert "mnist, 28x28, batches of 2: eager / ONNX encoder" in (tmp_path / "table.md").read_text()

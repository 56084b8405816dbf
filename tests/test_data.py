"""Loading pictures to train on, and streaming pictures to encode."""

import os
import pickle
import random
import re
import subprocess
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sqvae.data import Preprocessing, count, load, stream
from sqvae.data.readers.folder import natural
from sqvae.data.splits import split


def save(path, value, size=(8, 8), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value).save(path)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SQVAE_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def sets(tmp_path):
    for value in range(40):
        save(tmp_path / f"pictures/{value}.png", (value, 0, 0))
    return load(tmp_path / "pictures")


# --- Pictures


def test_pictures_are_taken_by_index(sets):
    pictures = sets.train
    assert len(pictures) == 32
    assert pictures.shape == (3, 8, 8)
    values = [int(name.removesuffix(".png")) for name in pictures.names]
    assert values == sorted(values)
    everything = pictures.take(slice(None))
    assert everything.dtype == torch.uint8
    assert everything[:, 0, 0, 0].tolist() == values
    for indices in (torch.tensor([5, 0, -1]), [5, 0, -1], np.array([5, 0, -1])):
        assert pictures.take(indices)[:, 0, 0, 0].tolist() == [values[5], values[0], values[-1]]
    assert pictures.take(slice(3, 9, 2))[:, 0, 0, 0].tolist() == values[3:9:2]
    assert pictures.take([]).shape == (0, 3, 8, 8)
    assert pictures.names[-1] == f"{values[-1]}.png"
    assert pictures.names[2:4] == [f"{value}.png" for value in values[2:4]]


def test_what_is_taken_is_a_copy(sets):
    for indices in (slice(0, 2), [0, 1]):
        sets.train.take(indices).fill_(255)
        assert not (sets.train.take(indices)[:, 1:] == 255).any()


def test_wrong_indices(sets):
    with pytest.raises(IndexError, match=r"index 32\b.*there are 32\b"):
        sets.train.take([0, 32])
    with pytest.raises(IndexError, match="index -33 is out of range"):
        sets.train.take(torch.tensor([-33]))
    for wrong in (torch.ones(32, dtype=torch.bool), torch.tensor([0.5]), torch.zeros(1, 1, dtype=torch.long), 3):
        with pytest.raises(TypeError, match=r"indices must be .*\(B,\), or a slice"):
            sets.train.take(wrong)


def test_pictures_travel_to_other_processes_as_a_path(sets):
    packed = pickle.dumps(sets.train)
    assert len(packed) < 32 * 3 * 8 * 8
    assert torch.equal(pickle.loads(packed).take([3]), sets.train.take([3]))


# --- Decisions


def test_grey_pictures_stay_grey_and_one_in_colour_makes_all_colour(tmp_path):
    for index, mode in enumerate(("L", "1", "LA", "I;16")):
        save(tmp_path / f"{index}.png", 1 if mode != "LA" else (1, 255), mode=mode)
    assert load(tmp_path).preprocessing.channels == 1
    save(tmp_path / "colour.png", "red")
    assert load(tmp_path).preprocessing.channels == 3
    assert load(tmp_path, Preprocessing(channels=1)).train.shape == (1, 8, 8)


def test_channels_are_those_of_the_pictures_to_train_on(tmp_path):
    for index in range(2):
        save(tmp_path / f"train/{index}.png", 5, mode="L")
        save(tmp_path / f"val/{index}.png", 5, mode="L")
        save(tmp_path / f"test/{index}.png", "red")
    assert load(tmp_path).preprocessing.channels == 1


def test_pictures_of_different_sizes(tmp_path):
    for index, size in enumerate([(120, 90), (300, 200), (200, 300), (100, 100)]):
        save(tmp_path / f"{index}.png", "red", size)
    sets = load(tmp_path)
    assert sets.preprocessing == Preprocessing(64, None, 3)
    note = next(note for note in sets.notes if "4 sizes, from 100x100 to 300x200" in note)
    assert "centre square and resized to 64x64" in note
    assert "`data.size=128`" in note
    sets = load(tmp_path, Preprocessing(size=128))
    assert sets.train.shape == (3, 128, 128)
    assert any(note.startswith("2 ") and "smaller than 128x128" in note for note in sets.notes)
    note = next(note for note in sets.notes if "4 sizes, from 100x100 to 300x200" in note)
    assert note.endswith("centre square and resized to 128x128")
    # Said again when nothing is decoded.
    assert load(tmp_path, Preprocessing(size=128)).notes == sets.notes


@pytest.mark.parametrize(
    ("size", "asked", "note"),
    [
        ((300, 200), 64, r"300x200: .*crop.*centre square.*resized to 64x64"),
        (
            (300, 200),
            (64, 32),
            r"300x200: .*crop.*largest centred part.*resized to 32x64",
        ),
        ((300, 200), (40, 60), r"300x200: (?!.*crop).*resized to 60x40"),
        ((64, 64), 32, r"64x64: (?!.*crop).*resized to 32x32"),
        ((32, 32), 32, None),
        # A pixel less is rounding, not cropping.
        ((178, 218), (216, 176), r"178x218: (?!.*crop).*resized to 176x216"),
    ],
)
@pytest.mark.parametrize("channels", [None, 3])
def test_a_size_that_was_asked_for_says_what_it_crops_and_resizes(tmp_path, size, asked, note, channels):
    for index in range(3):
        save(tmp_path / f"{index}.png", "red", size)
    notes = [note for note in load(tmp_path, Preprocessing(asked, channels=channels)).notes if "are" in note]
    assert len(notes) == (note is not None)
    assert all(re.search(note, said) for said in notes)
    # A crop that was asked for is known.
    assert not [note for note in load(tmp_path, Preprocessing(asked, crop=20)).notes if "crop" in note]


def test_label_maps_say_how_they_are_resized(tmp_path):
    for index in range(3):
        Image.fromarray((np.indices((256, 256)).sum(0) // 60).astype(np.uint8)).save(tmp_path / f"{index}.png")
    said = "label maps are 256x256: .*resized to {0}x{0} .*nearest"
    assert any(re.search(said.format(32), note) for note in load(tmp_path, Preprocessing(size=32, labels=True)).notes)
    decided = load(tmp_path, Preprocessing(labels=True)).notes
    assert any(re.search(said.format(64) + ".*`data.size=128`", note) for note in decided)


def test_a_broken_picture_has_no_say_in_the_decisions(tmp_path):
    for index in range(3):
        save(tmp_path / f"{index}.png", 5, (12, 12), mode="L")
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff and nothing")
    assert load(tmp_path).preprocessing == Preprocessing(12, None, 1)


def test_a_size_that_the_network_can_not_halve(tmp_path):
    save(tmp_path / "1.png", "red")
    with pytest.raises(ValueError, match=r"size is 30,.*pass a multiple of 8; the next one up is 32"):
        load(tmp_path, Preprocessing(size=30), multiple=8)
    with pytest.raises(ValueError, match=r"size is 32 x 50,.*the next one up is 32 x 56"):
        load(tmp_path, Preprocessing(size=(32, 50)), multiple=8)


def test_nothing_can_be_read(tmp_path):
    for index in range(5):
        (tmp_path / f"{index}.png").write_text("no")
    with pytest.raises(
        ValueError, match=r"none of the \w+ in .* can be read: 0\.png, 1\.png, 2\.png and 2 more \(.*Pillow"
    ):
        load(tmp_path)
    # And again, from the cache.
    with pytest.raises(ValueError, match=r"none of the \w+ in .* can be read"):
        load(tmp_path)


def test_nothing_to_train_on_can_be_read(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train/0.png").touch()
    for part in ("val", "test"):
        save(tmp_path / part / "0.png", "red")
    with pytest.raises(ValueError, match=r"none of the training \w+ in .* can be read: train/0\.png"):
        load(tmp_path)


def test_names_that_are_not_text(tmp_path):
    if sys.platform != "linux":
        pytest.skip("file names are text here")
    for value in range(3):
        save(tmp_path / "pictures" / f"{value}.png", (value, 0, 0))
    odd = os.fsdecode(b"caf\xe9.png")
    save(tmp_path / "pictures" / odd, (9, 0, 0))
    (tmp_path / "pictures" / os.fsdecode(b"br\xf6ken.png")).touch()
    sets = load(tmp_path / "pictures")
    assert odd in [*sets.train.names, *sets.validation.names, *sets.test.names]
    "\n".join(sets.notes).encode()
    assert "br\N{REPLACEMENT CHARACTER}ken.png" in "\n".join(sets.notes)


# --- Splits


def divided(number, seed=0, parts=None, last=False):
    names = [f"{index}.png" for index in range(number)]
    return split(parts or {"all": np.arange(number)}, names, seed=seed, validation_is_last=last)


@given(st.integers(3, 300), st.integers(0, 10))
def test_a_split_divides(number, seed):
    result = divided(number, seed)
    assert sorted([*result.train, *result.validation, *result.test]) == list(range(number))
    assert len(result.validation) == len(result.test) == max(round(number / 10), 1)
    assert len(result.train) >= 1
    for rows in (result.train, result.validation, result.test):
        assert list(rows) == sorted(rows)


def test_a_split_is_drawn_evenly():
    # Each picture is in the test set of a tenth of the seeds.
    hits = np.zeros(100)
    for seed in range(300):
        hits[divided(100, seed).test] += 1
    assert hits.sum() == 3000
    assert hits.min() > 10
    assert hits.max() < 55


def test_more_pictures_leave_most_of_the_test_set_where_it_was():
    before, after = set(divided(1000).test), set(divided(1100).test)
    assert len(before & after) > 80


def test_one_or_two_pictures():
    for number in (1, 2):
        result = divided(number)
        assert list(result.train) == list(result.validation) == list(result.test) == list(range(number))
        assert result.notes[0].startswith(f"only {number} ")


@pytest.mark.parametrize(("number", "validation"), [(20_001, 10_000), (20_000, 2_000), (50, 5), (5, 1)])
def test_the_last_pictures_are_for_validation(number, validation):
    result = divided(number + 7, parts={"train": np.arange(number), "test": np.arange(number, number + 7)}, last=True)
    assert list(result.validation) == list(range(number - validation, number))
    assert list(result.train) == list(range(number - validation))
    assert len(result.test) == 7


def test_a_single_picture_to_train_on_is_not_taken_away():
    result = divided(6, parts={"train": np.arange(1), "test": np.arange(1, 6)})
    assert (list(result.train), list(result.validation)) == ([0], [0])
    assert "no validation" in result.notes[0]
    assert "only 1 training" in result.notes[0]


def test_the_split_is_the_same_everywhere():
    # Golden: drawn by a hash of names, and not by a library that may change its mind.
    assert list(divided(30).test) == [6, 15, 29]
    assert list(divided(30).validation) == [1, 2, 21]


def test_order_does_not_depend_on_the_file_system(tmp_path, monkeypatch):
    for value in range(25):
        save(tmp_path / f"pictures/{value % 3}/{value}.png", (value, 0, 0))
    scandir = os.scandir
    results = []
    for seed in range(3):

        @contextmanager
        def shuffled(path, seed=seed):
            with scandir(path) as entries:
                found = list(entries)
            yield random.Random(seed).sample(found, len(found))

        monkeypatch.setattr(os, "scandir", shuffled)
        monkeypatch.setenv("SQVAE_CACHE", str(tmp_path / f"cache{seed}"))
        sets = load(tmp_path / "pictures")
        results.append((list(sets.train.names), list(sets.test.names), sets.train.take(slice(None)).tolist()))
    monkeypatch.undo()
    assert results[0] == results[1] == results[2]


@given(
    st.permutations(["1.png", "01.png", "2.png", "10.png", "A.png", "a.png", "a/1.png", "a/b/1.png", "a10", "a9", ""])
)
def test_natural_order(names):
    ordered = sorted(names, key=natural)
    assert ordered == ["", "01.png", "1.png", "2.png", "10.png", "a/1.png", "a/b/1.png", "a9", "a10", "A.png", "a.png"]


# --- Streams


def test_names_in_a_stream(tmp_path):
    for name in ("a/1.png", "a/deep/2.png", "b/1.png"):
        save(tmp_path / name, "red")
    np.save(tmp_path / "c.npy", np.zeros((2, 8, 8), np.uint8))

    def names(*inputs):
        batches = list(stream(inputs, Preprocessing(8, channels=3), batch=100, on_skip=print))
        assert count(inputs) == len(batches[0][0])
        return batches[0][0]

    assert names(tmp_path / "a") == ["1.png", "deep/2.png"]
    assert names(tmp_path / "a/1.png") == ["1.png"]
    assert names(tmp_path / "a/1.png", tmp_path / "a/deep/2.png") == ["1.png", "deep/2.png"]
    assert names(tmp_path / "b/1.png", tmp_path / "a/1.png") == ["b/1.png", "a/1.png"]
    assert names(tmp_path / "b", tmp_path / "a") == ["b/1.png", "a/1.png", "a/deep/2.png"]
    assert names(tmp_path / "c.npy", tmp_path / "a") == ["c.npy/c/00000", "c.npy/c/00001", "a/1.png", "a/deep/2.png"]


def test_batches_of_a_stream(tmp_path):
    for value in range(50):
        save(tmp_path / f"{value}.png", (value, 0, 0))
    (tmp_path / "20a.png").touch()
    skipped = []
    batches = list(stream([tmp_path], Preprocessing(8, channels=3), batch=16, on_skip=skipped.append))
    assert [len(names) for names, _ in batches] == [16, 16, 16, 2]
    assert torch.cat([pixels for _, pixels in batches])[:, 0, 0, 0].tolist() == list(range(50))
    assert [name for names, _ in batches for name in names] == [f"{value}.png" for value in range(50)]
    assert [one.name for one in skipped] == ["20a.png"]
    with pytest.raises(ValueError, match="batch must be at least 1, got 0"):
        stream([tmp_path], Preprocessing(8, channels=3), batch=0, on_skip=print)


def test_a_stream_reads_only_a_little_ahead_and_stops_when_told(tmp_path, monkeypatch):
    import sqvae.data.collection as collection_module

    np.save(tmp_path / "x.npy", np.zeros((20_000, 8, 8), np.uint8))
    calls = []
    original = collection_module.decode
    monkeypatch.setattr(collection_module, "decode", lambda *args: calls.append(1) or original(*args))
    running = threading.active_count()
    batches = stream([tmp_path / "x.npy"], Preprocessing(8, channels=1), batch=10, on_skip=print)
    next(batches)
    batches.close()
    assert len(calls) < 1_000
    assert threading.active_count() == running


# --- The rest


def test_what_is_optional_is_imported_when_it_is_used():
    script = "import sys, sqvae.data; print(sorted({'datasets', 'mlxtend', 'matplotlib', 'pandas'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"

"""Decoded pictures are kept, found again, never mistaken and never left half made."""

import errno
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sqvae.data.cache as cache_module
import sqvae.data.collection as collection_module
import sqvae.data.content as content_module
from sqvae.data import Preprocessing, UnreadablePictureError, load
from sqvae.data.cache import cache_folder


def save(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8), (value, 0, 0)).save(path)


def age(folder):
    """As if nobody had touched the files for a while."""
    for path in folder.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "pictures"
    for value in range(10):
        save(folder / f"{value}.png", value)
    age(folder)
    return folder


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def decodings(monkeypatch):
    """How often a picture is decoded."""
    calls = []
    original = collection_module.decode
    monkeypatch.setattr(collection_module, "decode", lambda *args: calls.append(1) or original(*args))
    return calls


@pytest.fixture
def hashings(monkeypatch):
    """Which files' bytes are hashed."""
    calls = []
    original = content_module._hash_file
    monkeypatch.setattr(content_module, "_hash_file", lambda path: calls.append(path.name) or original(path))
    return calls


def reds(sets):
    return {
        name: int(pixels[0, 0, 0])
        for part in (sets.train, sets.validation, sets.test)
        for name, pixels in zip(part.names, part.take(slice(None)), strict=True)
    }


def entries(cache):
    return sorted(path.name for path in (cache / "pictures").iterdir())


EXPECTED = {f"{value}.png": value for value in range(10)}


def test_a_second_load_decodes_and_reads_nothing(folder, cache, decodings, hashings):
    first = load(folder, cache=cache)
    assert (len(decodings), len(hashings)) == (10, 10)
    second = load(folder, cache=cache)
    assert (len(decodings), len(hashings)) == (10, 10)
    assert reds(first) == reds(second) == EXPECTED
    assert first.notes == second.notes
    assert first.preprocessing == second.preprocessing


def test_headers_too_are_read_once(folder, cache, monkeypatch):
    load(folder, cache=cache)
    monkeypatch.setattr(collection_module, "read_header", lambda image: pytest.fail("read again"))
    load(folder, cache=cache)


def test_a_file_changed_a_moment_ago_is_read_again(folder, cache, hashings):
    save(folder / "3.png", 3)
    load(folder, cache=cache)
    # Same size and, for a coarse clock, same time; but another picture.
    before = (folder / "3.png").stat()
    save(folder / "3.png", 4)
    os.utime(folder / "3.png", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (folder / "3.png").stat().st_size == before.st_size
    assert reds(load(folder, cache=cache)) == EXPECTED | {"3.png": 4}


def test_changes_are_seen(folder, cache, decodings):
    load(folder, cache=cache)

    save(folder / "3.png", 200)
    assert reds(load(folder, cache=cache)) == EXPECTED | {"3.png": 200}
    save(folder / "3.png", 3)
    assert reds(load(folder, cache=cache)) == EXPECTED
    assert len(decodings) == 20  # the old entry serves again

    save(folder / "10.png", 10)
    assert reds(load(folder, cache=cache)) == EXPECTED | {"10.png": 10}
    (folder / "10.png").unlink()
    assert reds(load(folder, cache=cache)) == EXPECTED
    assert len(decodings) == 31

    (folder / "9.png").rename(folder / "nine.png")
    assert sorted(reds(load(folder, cache=cache))) == sorted({*EXPECTED, "nine.png"} - {"9.png"})
    assert len(entries(cache)) == 4


def test_a_picture_that_moves_between_sets_moves(tmp_path, cache):
    for part in ("train", "val", "test"):
        for value in range(2):
            save(tmp_path / f"sets/{part}/{part}{value}.png", value)
    load(tmp_path / "sets", cache=cache)
    (tmp_path / "sets/train/train1.png").rename(tmp_path / "sets/test/train1.png")
    sets = load(tmp_path / "sets", cache=cache)
    assert list(sets.train.names) == ["train/train0.png"]
    assert list(sets.test.names) == ["test/test0.png", "test/test1.png", "test/train1.png"]


def test_preprocessing_makes_another_entry_and_the_split_does_not(folder, cache, decodings):
    for preprocessing in (
        Preprocessing(),
        Preprocessing(size=4),
        Preprocessing(size=(8, 4)),
        Preprocessing(channels=1),
        Preprocessing(crop=4),
    ):
        sets = load(folder, preprocessing, cache=cache)
        assert sets.train.shape == sets.preprocessing.shape
    # The last is decided to be 4x4 as well, from another part of the picture.
    assert len(entries(cache)) == 5
    assert len(decodings) == 50
    seeds = [load(folder, cache=cache, split_seed=seed) for seed in range(5)]
    assert len(decodings) == 50
    assert len({tuple(sets.test.names) for sets in seeds}) > 1
    assert all(reds(sets) == EXPECTED for sets in seeds)


def test_the_same_pictures_elsewhere_share_an_entry(folder, cache, tmp_path, decodings):
    load(folder, cache=cache)
    folder.rename(tmp_path / "moved")
    assert reds(load(tmp_path / "moved", cache=cache)) == EXPECTED
    assert len(decodings) == 10


def test_what_was_skipped_is_said_again_and_strict_is_not_confused(folder, cache, decodings):
    (folder / "4.png").write_text("no picture")
    with pytest.raises(UnreadablePictureError, match=r"4\.png can't be read: .*Pillow"):
        load(folder, cache=cache, strict=True)
    assert not any((cache / "building").iterdir())
    assert entries(cache) == []
    first = load(folder, cache=cache)
    number = len(decodings)
    second = load(folder, cache=cache)
    assert len(decodings) == number
    (note,) = (note for note in first.notes if "4.png" in note)
    assert re.match(r"1 \w+ could not be read .*: 4\.png \(.*Pillow.*\)$", note)
    assert note in second.notes
    assert [one.name for one in second.train.skipped] == ["4.png"]
    assert reds(second) == {name: value for name, value in EXPECTED.items() if value != 4}
    with pytest.raises(UnreadablePictureError, match=r"4\.png can't be read"):
        load(folder, cache=cache, strict=True)
    save(folder / "4.png", 4)
    assert reds(load(folder, cache=cache, strict=True)) == EXPECTED


def test_skipped_pictures_belong_to_their_set(tmp_path, cache):
    for part in ("train", "val", "test"):
        for value in range(2):
            save(tmp_path / f"sets/{part}/{value}.png", value)
        (tmp_path / f"sets/{part}/broken.png").touch()
    sets = load(tmp_path / "sets", cache=cache)
    for part, pictures in (("train", sets.train), ("val", sets.validation), ("test", sets.test)):
        assert [one.name for one in pictures.skipped] == [f"{part}/broken.png"]
        assert len(pictures) == 2


@pytest.mark.parametrize("damage", ["pictures.npy", "names.json", "entry.json"])
@pytest.mark.parametrize("how", ["truncated", "missing"])
def test_a_damaged_entry_is_made_again(folder, cache, damage, how):
    load(folder, cache=cache)
    (name,) = entries(cache)
    file = cache / "pictures" / name / damage
    if how == "missing":
        file.unlink()
    else:
        os.truncate(file, file.stat().st_size - 5)
    again = load(folder, cache=cache)
    assert reds(again) == EXPECTED
    assert any("cache" in note and "damaged" in note for note in again.notes)
    assert "damaged" not in " ".join(load(folder, cache=cache).notes)


def test_a_damaged_index_is_only_slow(folder, cache, hashings):
    load(folder, cache=cache)
    for file in (cache / "index").iterdir():
        file.write_text('{"content": ')
    assert reds(load(folder, cache=cache)) == EXPECTED
    assert len(hashings) == 20


def test_the_file_is_an_ordinary_npy_that_is_mapped(folder, cache):
    sets = load(folder, cache=cache)
    (name,) = entries(cache)
    array = np.load(cache / "pictures" / name / "pictures.npy")
    assert array.shape == (10, 3, 8, 8)
    assert json.loads((cache / "pictures" / name / "names.json").read_text()) == list(EXPECTED)
    assert isinstance(sets.train._pictures, np.memmap)


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("SQVAE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder(None) == Path.home() / ".cache" / "sqvae"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder(None) == Path("/xdg/sqvae")
    monkeypatch.setenv("SQVAE_CACHE", "/own")
    assert cache_folder(None) == Path("/own")
    assert cache_folder(tmp_path) == tmp_path


# --- Trouble while an entry is made


def test_a_full_disk(folder, cache, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cache_module.os, "fsync", full)
    with pytest.raises(
        OSError, match=r"can't be written to the cache .*cache \(No space left on device\).*SQVAE_CACHE=DIR"
    ):
        load(folder, cache=cache)
    monkeypatch.undo()
    assert list((cache / "building").iterdir()) == []
    assert entries(cache) == []
    assert reds(load(folder, cache=cache)) == EXPECTED


def test_what_a_full_disk_really_raises():
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with pytest.raises(OSError, match=r"No space.*SQVAE_CACHE=DIR"), cache_module._explained(Path("/cache")):
        Path("/dev/full").write_bytes(b"x")


def test_a_cache_that_can_not_be_written_to(folder, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match=r"can't be written to the cache .*file/inside .*SQVAE_CACHE=DIR"):
        load(folder, cache=tmp_path / "file" / "inside")
    with pytest.raises(OSError, match=r"can't be written to the cache .*SQVAE_CACHE=DIR"):
        load(folder, cache=tmp_path / "file")


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("file", r"\(it is a file, not a folder\)"),
        ("file/inside/deep", r"\(.*/file is a file, not a folder\)"),
        ("x" * 300, r"\(File name too long\)"),
        ("/proc/none/of/it", r"\(No such file or directory\)"),
    ],
)
def test_a_variable_that_names_a_bad_cache_is_named_in_one_sentence(folder, tmp_path, monkeypatch, place, reason):
    if place.startswith("/proc") and sys.platform != "linux":
        pytest.skip("there is no /proc here")
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SQVAE_CACHE", f"{tmp_path / place}/")
    with pytest.raises(OSError, match=reason) as caught:
        load(folder)
    message = str(caught.value)
    assert f"can't be written to {tmp_path / place} (" in message
    assert message.count("SQVAE_CACHE") == 2  # which names the place, and what to set
    assert "set SQVAE_CACHE=DIR" in message


def test_a_folder_above_the_cache_that_can_not_be_made(folder, tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    make = Path.mkdir

    def refuse(path, *args, **kwargs):
        if path == closed / "above":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        make(path, *args, **kwargs)

    closed.mkdir()
    monkeypatch.setattr(cache_module.Path, "mkdir", refuse)
    with pytest.raises(OSError, match=r"^decoded .* can't be written to the cache .*\(Permission denied\);"):
        load(folder, cache=closed / "above" / "cache")


def test_a_read_only_file_system(folder, cache, monkeypatch):
    load(folder, cache=cache)

    def refuse(path, *args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(cache_module.Path, "mkdir", refuse)
    monkeypatch.setattr(cache_module.Path, "write_text", refuse)
    # What is there can be used, even if what is known of its files can't be written down.
    os.utime(folder / "1.png", (1_100_000_000, 1_100_000_000))
    assert reds(load(folder, cache=cache)) == EXPECTED
    with pytest.raises(OSError, match=r"can't be written to the cache .*Read-only file system.*SQVAE_CACHE=DIR"):
        load(folder, Preprocessing(size=4), cache=cache)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_cache(folder, cache):
    load(folder, Preprocessing(size=4), cache=cache)
    paths = [cache, *cache.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    try:
        for path in paths:
            path.chmod(modes[path] & ~0o222)
        assert load(folder, Preprocessing(size=4), cache=cache).train.shape == (3, 4, 4)
        with pytest.raises(OSError, match=r"can't be written to the cache .*SQVAE_CACHE=DIR"):
            load(folder, cache=cache)
    finally:
        for path in paths:
            path.chmod(modes[path])


def test_a_failure_of_the_source_is_not_blamed_on_the_cache(tmp_path):
    elsewhere = PermissionError(errno.EACCES, "Permission denied", "/data/x.npy")
    with pytest.raises(PermissionError, match=r"Permission denied: '/data/x.npy'"), cache_module._explained(tmp_path):
        raise elsewhere


def test_an_interrupt_leaves_nothing(folder, cache):
    def interrupt(what, done, total):
        if what == "decoding" and done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(folder, cache=cache, progress=interrupt)
    assert list((cache / "building").iterdir()) == []
    assert entries(cache) == []


def test_a_killed_build_is_never_used_and_is_cleared_away(folder, cache, tmp_path):
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from sqvae.data import load

        def progress(what, done, total):
            if what == "decoding" and done == 5:
                print("half", flush=True)
                time.sleep(60)

        load(sys.argv[1], cache=Path(sys.argv[2]), progress=progress)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script, folder, cache], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "half\n"
            (half,) = (cache / "building").iterdir()
            # It is alive, so nobody else clears it away.
            cache_module._remove_abandoned(cache)
            assert half.exists()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
    assert half.exists()
    assert entries(cache) == []
    # Another set of pictures comes by, and tidies up.
    save(tmp_path / "other/1.png", 1)
    load(tmp_path / "other", cache=cache)
    assert not half.exists()
    assert reds(load(folder, cache=cache)) == EXPECTED


def _load_and_report(folder, cache, start, results):
    start.wait()
    sets = load(folder, cache=cache)
    results.put(reds(sets))


def test_processes_that_make_the_same_entry_at_once(folder, cache):
    context = multiprocessing.get_context("spawn")
    start, results = context.Event(), context.Queue()
    processes = [context.Process(target=_load_and_report, args=(folder, cache, start, results)) for _ in range(2)]
    for process in processes:
        process.start()
    time.sleep(0.1)
    start.set()
    outcomes = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
        process.close()
    assert outcomes == [EXPECTED] * 2
    assert len(entries(cache)) == 1
    assert list((cache / "building").iterdir()) == []


def test_progress_is_told(folder, cache):
    told = []
    load(folder, cache=cache, progress=lambda *args: told.append(args))
    assert told == [(what, done, 10) for what in ("reading", "decoding") for done in range(1, 11)]
    told.clear()
    load(folder, cache=cache, progress=lambda *args: told.append(args))
    assert told == []

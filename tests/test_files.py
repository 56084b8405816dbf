"""What is written appears whole, or not at all."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sqvae.files import beside, remove_abandoned, write_text, written


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_within_the_block_there_is_what_was_there_before(tmp_path):
    place = tmp_path / "file.txt"
    place.write_text("old")
    with written(place) as temporary:
        temporary.write_text("new")
        assert place.read_text() == "old"
        assert temporary.suffix == ".txt"  # so that writers know the format by it
    assert place.read_text() == "new"
    assert names(tmp_path) == ["file.txt"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_after_an_error_nothing_is_left_of_it(tmp_path, error):
    place = tmp_path / "file.txt"
    place.write_text("old")

    def fail():
        with written(place) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert (names(tmp_path), place.read_text()) == (["file.txt"], "old")


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "target.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("target.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "target.txt").read_text() == "new"


def test_a_device_or_a_folder_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, said in (("pipe", "a device or a pipe"), ("folder", "a folder")):
        with pytest.raises(OSError, match=said):
            write_text(tmp_path / name, "new")
    assert names(tmp_path) == ["folder", "pipe"]


def test_a_long_name_is_no_trouble(tmp_path):
    place = tmp_path / ("n" * 251 + ".txt")
    write_text(place, "new")
    assert names(tmp_path) == [place.name]


def _write_again_and_again(place, letter):
    for _ in range(30):
        with written(place, lasting=False) as temporary, temporary.open("w") as file:
            for _ in range(50):
                file.write(letter * 1000)


def test_of_two_writers_at_once_one_s_file_is_there_whole(tmp_path):
    place = tmp_path / "file.txt"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_again_and_again, args=(place, letter)) for letter in "ab"]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        found = place.read_text() if place.exists() else "a" * 50_000
        assert found in ("a" * 50_000, "b" * 50_000)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert names(tmp_path) == ["file.txt"]


KILLED = """
import sys, time
from pathlib import Path
from sqvae.files import written
with written(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_was_writing_is_removed_and_what_another_writes_is_not(tmp_path):
    place = tmp_path / "file.txt"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(place)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        remove_abandoned(tmp_path)
        assert len(names(tmp_path)) == 1  # it is alive
        process.send_signal(signal.SIGKILL)
    assert len(names(tmp_path)) == 1
    assert not place.exists()
    (tmp_path / ".mine.partial").write_text("not ours")
    (tmp_path / f".file.0badf00d-{process.pid}-00000000.partial").write_text("another machine's")
    own = beside(place)
    own.write_text("being written")
    remove_abandoned(tmp_path)
    assert names(tmp_path) == sorted([".mine.partial", f".file.0badf00d-{process.pid}-00000000.partial", own.name])
    remove_abandoned(Path("nowhere"))

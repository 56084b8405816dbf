"""Folders with what may lie in them beside pictures and recordings."""

import os

import pytest
from PIL import Image

from sqvae.data import count
from sqvae.data.readers.folder import files_below


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        Image.new("L", (8, 8), number).save(tmp_path / f"{number}.png")
    (tmp_path / "inner").mkdir()
    Image.new("L", (8, 8)).save(tmp_path / "inner" / "3.png")
    return tmp_path


def test_links_that_lead_nowhere_round_or_back_do_not_end_a_folder(folder):
    (folder / "itself.png").symlink_to("itself.png")
    (folder / "round").symlink_to("about")
    (folder / "about").symlink_to("round")
    (folder / "nowhere.png").symlink_to("missing.png")
    (folder / "inner" / "back").symlink_to("..")
    os.mkfifo(folder / "pipe.png")
    names, closed = files_below(folder)
    assert sorted(name for name in names if name[0] in "0123i") == [
        "0.png",
        "1.png",
        "2.png",
        "inner/3.png",
        "itself.png",
    ]
    assert not closed
    assert count([folder]) >= 4

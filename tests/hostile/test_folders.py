"""Folders with what may lie in them beside pictures and recordings."""

import io
import os
import re
import warnings
import zipfile

import pytest
from PIL import Image

from kinds import picture_tokenizer
from runs import said
from sqvae.cli import main
from sqvae.codec import CodeFile
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


def test_what_is_passed_over_in_an_archive_is_said(tmp_path, capsys):
    picture_tokenizer("pictures").save_pretrained(tmp_path / "model")
    picture = io.BytesIO()
    Image.new("RGB", (16, 8)).save(picture, "PNG")
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name in ("a.png", "a.png", "../b.png", "/c.png", "notes.txt", f"{'9' * 5_000}.png"):
            archive.writestr(name, picture.getvalue())
    command = ["encode", str(tmp_path / "model"), str(tmp_path / "photos.zip"), "-o", str(tmp_path / "x.safetensors")]
    assert main(command) == 0
    words = said(capsys)
    assert re.search(r"1 name .*more than once .*: a\.png", words)
    assert re.search(r"2 files .*out of the archive .*: \.\./b\.png", words)
    assert re.search(r"1 file .*extension .*: notes\.txt", words)
    assert len(CodeFile.open(tmp_path / "x.safetensors")) == 2

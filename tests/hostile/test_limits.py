"""Files that claim to be more than they are: refused before they are unpacked, and never at the cost of the others."""

import io
import re
import struct
import zipfile
import zlib

import pytest
from PIL import Image

from sqvae.data import Preprocessing, stream
from sqvae.data.limits import BYTES, PIXELS

SMALL = Preprocessing(size=8, channels=1)


def picture(size=(8, 8)):
    file = io.BytesIO()
    Image.new("L", size).save(file, "png")
    return file.getvalue()


def claiming(width, height):
    """A picture of one pixel whose header says something else."""
    content = picture((1, 1))
    content = content[:16] + struct.pack(">II", width, height) + content[24:]
    return content[:29] + struct.pack(">I", zlib.crc32(content[12:29])) + content[33:]


def streamed(source):
    skipped = []
    names = [name for some, _ in stream([source], SMALL, batch=4, on_skip=skipped.append) for name in some]
    return names, {one.name: one.reason for one in skipped}


FILES = {
    "a.png": picture(),
    "b.png": claiming(13_000, 13_000),
    "c.png": claiming(200_000, 100_000),
    "d.png": picture(),
}
"""Two pictures, and two that claim to have more pixels than there is memory for."""


@pytest.fixture(params=["folder", "zip"])
def source(request, tmp_path):
    if request.param == "folder":
        for name, content in FILES.items():
            (tmp_path / name).write_bytes(content)
        return tmp_path
    with zipfile.ZipFile(tmp_path / "pictures.zip", "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    return tmp_path / "pictures.zip"


def test_pictures_with_too_many_pixels_are_left_out_with_the_limit_named(source):
    names, skipped = streamed(source)
    assert names == ["a.png", "d.png"]
    assert re.search(r"13,000 x 13,000 pixels.* limit is 64 megapixels", skipped["b.png"])
    assert "SQVAE_MOST_MEGAPIXELS" in skipped["b.png"]
    assert "limit" in skipped["c.png"]


def test_a_member_that_unpacks_to_far_more_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv(BYTES.variable, "1")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", picture())
        archive.writestr("bomb.png", bytes(3 * 2**20))
    assert (tmp_path / "bomb.zip").stat().st_size < 10_000
    names, skipped = streamed(tmp_path / "bomb.zip")
    assert names == ["a.png"]
    assert re.search("3,145,728 bytes .* limit is 1 megabytes", skipped["bomb.png"])


def test_limits_can_be_set_and_nonsense_is_told(monkeypatch):
    assert PIXELS.most == 64_000_000
    monkeypatch.setenv(PIXELS.variable, "0.5")
    assert PIXELS.most == 500_000
    for given in ("many", "-1", "0", "inf", "1e400"):
        monkeypatch.setenv(PIXELS.variable, given)
        with pytest.raises(ValueError, match="SQVAE_MOST_MEGAPIXELS must be a number of megapixels above 0, got"):
            PIXELS.check(1, "it has one")

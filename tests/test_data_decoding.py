"""One picture: whatever its format, the expected 8-bit array."""

import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from sqvae.data import Preprocessing, UnreadablePictureError, stream
from sqvae.data.decoding import decode, open_picture, read_header
from sqvae.data.preprocessing import Header, Survey, resolve

GREY = Preprocessing(size=8, channels=1)
COLOUR = Preprocessing(size=8, channels=3)


def decoded(path, preprocessing=COLOUR):
    with open_picture(path) as image:
        return decode(image, preprocessing)[0]


def quadrants():
    """8x8: red, green / blue, black."""
    array = np.zeros((8, 8, 3), np.uint8)
    array[:4, :4, 0] = array[:4, 4:, 1] = array[4:, :4, 2] = 255
    return array


@pytest.mark.parametrize("extension", ["png", "webp", "bmp", "tiff", "ppm"])
def test_a_lossless_picture_of_the_right_size_keeps_its_pixels(tmp_path, extension):
    file = tmp_path / f"picture.{extension}"
    Image.fromarray(quadrants()).save(file, lossless=True)
    assert np.array_equal(decoded(file), quadrants().transpose(2, 0, 1))


@pytest.mark.parametrize("extension", ["jpg", "png", "tiff", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied(tmp_path, extension, orientation):
    # What a camera held in each of eight ways stores for the same scene, from the definition of the tag: which edges of
    # the scene the first row and the first column of the stored picture are.
    scene = quadrants()
    stored = {
        1: scene,
        2: scene[:, ::-1],
        3: scene[::-1, ::-1],
        4: scene[::-1],
        5: scene.transpose(1, 0, 2),
        6: scene.transpose(1, 0, 2)[::-1],
        7: scene.transpose(1, 0, 2)[::-1, ::-1],
        8: scene.transpose(1, 0, 2)[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = tmp_path / f"picture.{extension}"
    options = (
        {"lossless": True} if extension == "webp" else {"quality": 95, "subsampling": 0} if extension == "jpg" else {}
    )
    Image.fromarray(np.ascontiguousarray(stored)).save(file, exif=exif, **options)
    assert np.abs(decoded(file).astype(int) - scene.transpose(2, 0, 1)).max() <= 8


@pytest.mark.parametrize("extension", ["jpg", "tiff"])
def test_a_header_gives_the_upright_size(tmp_path, extension):
    exif = Image.Exif()
    exif[0x0112] = 6
    file = tmp_path / f"picture.{extension}"
    Image.new("RGB", (20, 12)).save(file, exif=exif)
    with open_picture(file) as image:
        assert read_header(image) == Header(12, 20, grey=False)
        image.load()
        assert decode(image, Preprocessing((20, 12), channels=3))[0].shape == (3, 20, 12)


def test_damaged_exif_is_no_reason_to_lose_a_picture(tmp_path):
    file = tmp_path / "picture.jpg"
    Image.fromarray(quadrants()).save(file, exif=b"Exif\0\0not TIFF at all", quality=95)
    assert decoded(file).shape == (3, 8, 8)


def test_transparent_pictures_lie_over_white(tmp_path):
    rgba = np.zeros((8, 8, 4), np.uint8)
    rgba[:, :4] = (10, 20, 30, 255)
    rgba[:, 4:] = (200, 0, 0, 0)
    Image.fromarray(rgba).save(tmp_path / "rgba.png")
    array = decoded(tmp_path / "rgba.png")
    assert (array[:, :, :4] == np.array([10, 20, 30])[:, None, None]).all()
    assert (array[:, :, 4:] == 255).all()

    la = np.zeros((8, 8, 2), np.uint8)
    la[..., 0] = 100
    la[:4, :, 1] = 128
    la[4:, :, 1] = 255
    Image.fromarray(la).save(tmp_path / "la.png")
    array = decoded(tmp_path / "la.png", GREY)
    assert np.abs(array[0, :4].astype(int) - (100 * 128 + 255 * 127) / 255).max() <= 1
    assert (array[0, 4:] == 100).all()


def test_palettes_with_and_without_transparency(tmp_path):
    indices = np.zeros((8, 8), np.uint8)
    indices[:, 4:] = 1
    image = Image.fromarray(indices).convert("P")
    image.putpalette([250, 10, 20, 30, 240, 50])
    image.save(tmp_path / "opaque.png")
    image.save(tmp_path / "holes.png", transparency=1)
    opaque, holes = decoded(tmp_path / "opaque.png"), decoded(tmp_path / "holes.png")
    assert opaque[:, 0, 0].tolist() == [250, 10, 20]
    assert opaque[:, 0, 7].tolist() == [30, 240, 50]
    assert holes[:, 0, 0].tolist() == [250, 10, 20]
    assert holes[:, 0, 7].tolist() == [255, 255, 255]


def test_one_bit(tmp_path):
    Image.fromarray(np.eye(8, dtype=bool)).save(tmp_path / "bits.png")
    assert np.array_equal(decoded(tmp_path / "bits.png", GREY)[0], 255 * np.eye(8))


@pytest.mark.parametrize("extension", ["png", "tiff", "pgm"])
def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path, extension):
    values = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1040
    file = tmp_path / f"deep.{extension}"
    Image.fromarray(values).save(file)
    assert np.array_equal(decoded(file, GREY)[0], np.round(values / 257))
    assert np.array_equal(decoded(file, COLOUR)[2], np.round(values / 257))
    with open_picture(file) as image:
        assert read_header(image).grey


def test_thirty_two_bits_and_reals(tmp_path):
    Image.fromarray(np.full((8, 8), 65535, np.int32)).save(tmp_path / "white.tiff")
    assert (decoded(tmp_path / "white.tiff", GREY) == 255).all()
    Image.fromarray(np.full((8, 8), 70000, np.int32)).save(tmp_path / "beyond.tiff")
    with pytest.raises(ValueError, match=r"\[70000, 70000\]; 16-bit .* 0 to 65535"):
        decoded(tmp_path / "beyond.tiff")
    Image.fromarray(np.full((8, 8), 0.5, np.float32)).save(tmp_path / "half.tiff")
    assert (decoded(tmp_path / "half.tiff", GREY) == 128).all()
    Image.fromarray(np.full((8, 8), np.nan, np.float32)).save(tmp_path / "nan.tiff")
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        decoded(tmp_path / "nan.tiff")


def test_cmyk(tmp_path):
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "red.jpg", quality=95)
    assert np.abs(decoded(tmp_path / "red.jpg")[:, 4, 4].astype(int) - [255, 0, 0]).max() <= 5


def test_grey_in_colour_and_colour_in_grey(tmp_path):
    Image.new("L", (8, 8), 77).save(tmp_path / "grey.png")
    assert (decoded(tmp_path / "grey.png", COLOUR) == 77).all()
    Image.new("RGB", (8, 8), (0, 255, 0)).save(tmp_path / "green.png")
    assert (decoded(tmp_path / "green.png", GREY) == 150).all()  # 0.587 * 255


def test_an_animation_gives_its_first_frame(tmp_path):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    for name in ("moving.gif", "moving.webp"):
        frames[0].save(tmp_path / name, save_all=True, append_images=frames[1:], lossless=True)
        assert decoded(tmp_path / name)[:, 0, 0].tolist() == [255, 0, 0]


def test_the_crop_is_centred_and_comes_before_resizing(tmp_path):
    # CelebA's size: rows 39 to 178 and columns 19 to 158 are kept.
    array = np.zeros((218, 178), np.uint8)
    array[39:179, 19:159] = 200
    Image.fromarray(array).save(tmp_path / "face.png")
    kept = decoded(tmp_path / "face.png", Preprocessing(size=140, crop=140, channels=1))
    assert kept.shape == (1, 140, 140)
    assert (kept == 200).all()
    assert (decoded(tmp_path / "face.png", Preprocessing(size=64, crop=140, channels=1)) == 200).all()
    assert (decoded(tmp_path / "face.png", Preprocessing(size=64, crop=144, channels=1))[0, 0] < 200).all()
    # Without a crop: the largest square, all columns and rows 20 to 197.
    assert decoded(tmp_path / "face.png", Preprocessing(size=178, channels=1))[0].tolist() == array[20:198].tolist()


def test_shrinking_averages(tmp_path):
    # A fine checkerboard is grey from afar; without antialiasing it would be black or white.
    board = (np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8)
    Image.fromarray(board).save(tmp_path / "board.png")
    assert np.abs(decoded(tmp_path / "board.png", GREY).astype(int) - 127).max() <= 3


def test_a_large_jpeg_gives_the_same_loaded_or_not(tmp_path):
    from skimage import data

    file = tmp_path / "astronaut.jpg"
    Image.fromarray(data.astronaut()).save(file, quality=95)
    wanted = Preprocessing(size=32, channels=3)
    with open_picture(file) as image:
        image.load()
        loaded = decode(image, wanted)[0]
        pixels = np.asarray(image)
    assert (decoded(file, wanted) == loaded).all()
    assert (decode(Image.fromarray(pixels), wanted)[0] == loaded).all()


def png(width, height):
    """A picture that says it is of this size."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def broken_files(folder):
    """Files that have a picture's extension only, and what is said of each."""
    whole = folder / "whole.jpg"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), np.uint8)).save(whole)
    content = whole.read_bytes()
    Image.fromarray(quadrants()).save(folder / "whole.png")
    (folder / "empty.png").touch()
    (folder / "text.png").write_text("this is no picture")
    (folder / "truncated.jpg").write_bytes(content[: len(content) // 2])
    (folder / "truncated.png").write_bytes((folder / "whole.png").read_bytes()[:60])
    (folder / "bomb.png").write_bytes(png(30_000, 30_000))
    (folder / "program.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n")
    (folder / "nowhere.png").symlink_to(folder / "absent.png")
    whole.unlink()
    (folder / "whole.png").unlink()
    return {
        "bomb.png": "far more pixels than the limit",
        "empty.png": "the file is empty",
        "nowhere.png": "No such file",
        "program.png": "Pillow can read",
        "text.png": "Pillow can read",
        "truncated.jpg": "truncated",
        "truncated.png": "truncated",
    }


def test_broken_pictures_are_skipped_with_a_reason(tmp_path):
    reasons = broken_files(tmp_path)
    skipped = []
    assert list(stream([tmp_path], COLOUR, batch=4, on_skip=skipped.append)) == []
    assert [one.name for one in skipped] == sorted(reasons)
    for one in skipped:
        assert reasons[one.name] in one.reason
    with pytest.raises(UnreadablePictureError, match=r"bomb\.png can't be read"):
        list(stream([tmp_path], COLOUR, batch=4, strict=True, on_skip=skipped.append))


def test_preprocessing_is_checked():
    assert Preprocessing(size=[64, 64]).size == 64
    assert Preprocessing(size=[32, 48]).size == (32, 48)
    assert Preprocessing(size=(32, 48), channels=1).shape == (1, 32, 48)
    for wrong in (0, -4, 2.5, "64", True, (1, 2, 3), ()):
        with pytest.raises(ValueError, match=r"size must be .* > 0"):
            Preprocessing(size=wrong)
    with pytest.raises(ValueError, match=r"crop must be .* > 0, or None, got 0"):
        Preprocessing(crop=0)
    with pytest.raises(ValueError, match=r"channels must be 1 or 3.*got 4"):
        Preprocessing(channels=4)
    with pytest.raises(ValueError, match=r"size and channels must be known"):
        _ = Preprocessing(size=8).shape
    with pytest.raises(ValueError, match=r"size and channels must be known"):
        stream(["x"], Preprocessing(size=8), batch=1, on_skip=print)


@pytest.mark.parametrize(
    ("sizes", "multiple", "size", "note"),
    [
        ({(28, 28)}, 4, 28, None),
        ({(28, 28)}, 8, 24, r"28x28\b.* multiples of 8: resized to 24x24"),
        ({(48, 32)}, 4, (32, 48), None),
        ({(90, 109)}, 4, (108, 88), r"90x109\b.* multiples of 4: resized to 88x108"),
        ({(3, 3)}, 4, 4, r"3x3\b.* multiples of 4: resized to 4x4"),
        ({(128, 128)}, 4, 128, None),
        ({(256, 256)}, 4, 64, r"256x256: (?!.*crop).*resized to 64x64"),
        ({(512, 512)}, 4, 64, r"512x512: (?!.*crop).*resized to 64x64"),
        ({(120, 90), (1024, 768), (30, 400)}, 4, 64, "3 sizes, from 120x90 to 1024x768: .*crop"),
    ],
)
def test_sizes_that_are_decided(sizes, multiple, size, note):
    survey = Survey.of((Header(*each, grey=True) for each in sizes), ())
    resolved, notes = resolve(Preprocessing(), survey, multiple)
    assert resolved == Preprocessing(size, None, 1)
    assert len(notes) == (note is not None)
    assert note is None or re.search(note, notes[0])

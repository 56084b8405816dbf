"""What data is taken as when nobody says: label maps in every form that people keep them in, and photographs."""

import io
import zipfile
from itertools import islice

import numpy as np
import pytest
from PIL import Image

from real_data import folder_of, photographs, tiles
from sqvae.cli import main
from sqvae.data import Preprocessing, TakenAs, load, recognise
from sqvae.data.sources import opened
from sqvae.recipes import suitable
from sqvae.tokenizers import load as load_tokenizer
from test_labels import SMALL

LABELS = Preprocessing(labels=True)
CLASSES = 19
VOID = 255


def face(number: int, side: int = 96) -> np.ndarray:  # -> (side, side)
    """A label map like those of parsed faces: ellipses over each other, 19 classes, some missing in most."""
    random = np.random.default_rng(number)
    down, right = np.mgrid[0:side, 0:side] / side
    # A border that wavers, as one drawn by hand.
    down, right = down + 0.01 * np.sin(40 * right + number), right + 0.01 * np.sin(37 * down)
    labels = np.zeros((side, side), np.int64)

    def put(label: int, top: float, left: float, height: float, width: float, share: float = 1.0) -> None:
        if random.random() < share:
            top, left = top + random.normal(0, 0.02), left + random.normal(0, 0.02)
            labels[((down - top) / height) ** 2 + ((right - left) / width) ** 2 < 1] = label

    put(16, 1.05, 0.5, 0.3, 0.5, 0.9)  # cloth
    put(17, 0.45, 0.5, 0.45, 0.36, 0.8)  # hair
    put(14, 0.85, 0.5, 0.2, 0.12)  # neck
    for label, left in ((7, 0.25), (8, 0.75)):
        put(label, 0.5, left, 0.08, 0.05, 0.6)
        put(9, 0.6, left, 0.03, 0.03, 0.2)  # an earring
    put(1, 0.5, 0.5, 0.34, 0.25)  # skin
    for label, left in ((2, 0.4), (3, 0.6)):
        put(label, 0.38, left, 0.025, 0.07)
        put(label + 2, 0.44, left, 0.03, 0.06)
    put(6, 0.44, 0.5, 0.06, 0.2, 0.2)  # glasses
    put(10, 0.54, 0.5, 0.08, 0.04)
    put(12, 0.655, 0.5, 0.025, 0.09)
    put(11, 0.67, 0.5, 0.015, 0.07, 0.4)
    put(13, 0.69, 0.5, 0.02, 0.08)
    put(15, 0.95, 0.5, 0.02, 0.1, 0.2)  # a necklace
    put(18, 0.15, 0.5, 0.16, 0.36, 0.3)  # a hat
    return labels


def contoured(labels: np.ndarray) -> np.ndarray:
    """With a border of unknown pixels between areas, as Pascal VOC has it."""
    found = labels.copy()
    found[:, 1:][labels[:, 1:] != labels[:, :-1]] = VOID
    found[1:][labels[1:] != labels[:-1]] = VOID
    return found


def voc_palette() -> list[int]:
    """Pascal VOC's: the bits of a label, dealt out to the channels."""
    colours = np.zeros((256, 3), np.int64)
    for label in range(256):
        for bit in range(8):
            colours[label, bit % 3] |= (label >> bit & 1) << (7 - bit // 3)
    return colours.ravel().tolist()


RANDOM = np.random.default_rng(5).integers(0, 256, 768).tolist()


def image(labels: np.ndarray, palette: list[int]) -> Image.Image:
    found = Image.fromarray(labels.astype(np.uint8), mode="P")
    found.putpalette(palette)
    return found


def trimmed(labels: np.ndarray) -> Image.Image:
    """With no more of the palette than the map needs, as writers do that count colours."""
    return image(labels, voc_palette()[: 3 * (int(labels.max()) + 1)])


def padded(labels: np.ndarray) -> Image.Image:
    """The same, filled up with black."""
    end = 3 * (int(labels.max()) + 1)
    return image(labels, voc_palette()[:end] + [0] * (768 - end))


FORMS = {
    "voc": lambda labels: image(labels, voc_palette()),
    "trimmed": trimmed,
    "padded": padded,
    "random": lambda labels: image(labels, RANDOM),
    "grey-ramp": lambda labels: image(labels, np.repeat(np.arange(256), 3).tolist()),
    "stretched-grey-ramp": lambda labels: image(labels, np.repeat(np.arange(256) * 13 % 256, 3).tolist()),
    "grey": lambda labels: Image.fromarray(labels.astype(np.uint8)),
    "16-bit": lambda labels: Image.fromarray(labels.astype(np.uint16)),
}


def written(folder, images):
    folder.mkdir(parents=True, exist_ok=True)
    for number, one in enumerate(images):
        one.save(folder / f"{number:03d}.png")
    return folder


class TestLabelMaps:
    @pytest.mark.parametrize("among", [False, True], ids=["alone", "with-a-photograph"])
    @pytest.mark.parametrize("contour", [False, True], ids=["plain", "contour"])
    @pytest.mark.parametrize("form", FORMS)
    def test_in_every_form(self, form, contour, among, tmp_path):
        maps = [contoured(face(number)) if contour else face(number) for number in range(30)]
        folder = written(tmp_path / "maps", map(FORMS[form], maps))
        if among:
            Image.fromarray(photographs()["chelsea"]).save(folder / "photograph.png")
        taken_as = recognise(folder)
        assert taken_as.kind == "labels"
        assert taken_as.doubt is None
        number = len(np.setdiff1d(np.stack(maps), VOID))
        assert f"{number} labels{' and 255,' if contour else ''} in areas" in str(taken_as)
        assert ("a label has the same colour" in str(taken_as)) == (form not in ("grey", "16-bit"))
        data = load(folder, LABELS)
        assert (data.preprocessing.classes, data.preprocessing.ignore) == (CLASSES, VOID if contour else None)
        if not among:  # of one size, so that pixels are as they were
            for name, labels in zip(data.train.names, data.train.take(slice(None)), strict=True):
                assert np.array_equal(labels[0].long().numpy(), maps[int(name[:3])])

    @pytest.mark.parametrize("form", ["voc", "trimmed", "padded"])
    def test_classes_have_the_colours_that_the_palettes_say_together(self, form, tmp_path):
        maps = [face(number) for number in range(30)]
        folder = written(tmp_path / "maps", map(FORMS[form], maps))
        assert len({len(Image.open(path).getpalette()) for path in folder.iterdir()} if form == "trimmed" else "12") > 1
        expected = ["#{:02x}{:02x}{:02x}".format(*colour) for colour in np.reshape(voc_palette(), (-1, 3))[:CLASSES]]
        assert list(load(folder, LABELS).class_colours) == expected

    def test_a_few_of_classes_far_apart(self, tmp_path):
        """Two maps of VOC may have nothing but a background and a person."""
        maps = [np.where(face(number) > 0, 15, 0) for number in range(2)]
        assert recognise(written(tmp_path / "maps", map(FORMS["voc"], maps))).kind == "labels"

    def test_of_real_streets(self, tmp_path):
        archive = zipfile.ZipFile(folder_of("camvid_labels") / "camvid_labels_360x480.zip")
        names = [name for name in archive.namelist() if name.endswith(".png")][::60]
        maps = [Image.open(io.BytesIO(archive.read(name))) for name in names]
        small = [one.resize((64, 64), Image.Resampling.NEAREST) for one in maps]
        for form, store in FORMS.items():
            for name, images in {"whole": maps, "small": small}.items():
                folder = written(tmp_path / f"{form}-{name}", (store(np.asarray(one)) for one in images))
                taken_as = recognise(folder)
                assert (taken_as.kind, taken_as.doubt) == ("labels", None), f"{form}, {name}"


def web(dither):
    return lambda one: one.convert("P", palette=Image.Palette.WEB, dither=dither)


def adaptive(colours, dither):
    def quantized(one):
        # Pillow dithers where it is given a palette.
        return one.quantize(palette=one.quantize(colours), dither=dither)

    return quantized


def common(colours, dither):
    palette = Image.fromarray(photographs()["coffee"]).quantize(colours)
    return lambda one: one.quantize(palette=palette, dither=dither)


NONE, DITHER = Image.Dither.NONE, Image.Dither.FLOYDSTEINBERG
STORED = {
    "adaptive-256-dithered": lambda: adaptive(256, DITHER),
    "adaptive-16-dithered": lambda: adaptive(16, DITHER),
    "adaptive-16": lambda: adaptive(16, NONE),
    "adaptive-8": lambda: adaptive(8, NONE),
    "web-dithered": lambda: web(DITHER),
    "web": lambda: web(NONE),
    "common-16-dithered": lambda: common(16, DITHER),
    "common-16": lambda: common(16, NONE),
    "common-8": lambda: common(8, NONE),
    "grey": lambda: lambda one: one.convert("L"),
    "colour": lambda: lambda one: one,
}


class TestPhotographs:
    @pytest.mark.parametrize("stored", STORED)
    def test_as_palette_images_are_pictures(self, stored, tmp_path):
        make = STORED[stored]()
        whole = [Image.fromarray(pixels) for pixels in photographs().values()]
        cuttings = [Image.fromarray(pixels) for pixels in tiles(128, 24)]
        for name, images in {"whole": whole, "cuttings": cuttings}.items():
            assert recognise(written(tmp_path / name, map(make, images))).kind == "pictures", name

    def test_small_ones_too(self, tmp_path):
        folder_of("cifar10")
        with opened("cifar10") as found:
            images = [opener() for _, opener in islice(dict(found.in_order())["test"].items(), 24)]
        for stored, maker in STORED.items():
            assert recognise(written(tmp_path / stored, map(maker(), images))).kind == "pictures", stored

    def test_dithered_ones_leave_no_doubt(self, tmp_path):
        for name in ("adaptive-256-dithered", "web-dithered", "grey", "colour"):
            make = STORED[name]()
            folder = written(tmp_path / name, (make(Image.fromarray(pixels)) for pixels in tiles(128, 24)))
            assert recognise(folder).doubt is None, name

    def test_the_reason(self, tmp_path):
        cuttings = [Image.fromarray(pixels) for pixels in tiles(64, 30)]
        colour = written(tmp_path / "colour", cuttings)
        assert str(recognise(colour)) == "images, because all 24 images looked at are in colour"
        grey = written(tmp_path / "grey", (one.convert("L") for one in cuttings))
        assert "grey images of many levels" in str(recognise(grey))
        levels = len(np.unique(np.asarray(Image.open(grey / "000.png"))))
        one = written(tmp_path / "one", [cuttings[0].convert("L")])
        words = f"the image looked at is a grey image of many levels, {levels} at the median"
        assert str(recognise(one)) == f"images, because {words}"
        lossy = tmp_path / "lossy"
        lossy.mkdir()
        for number, one in enumerate(cuttings):
            one.convert("L").save(lossy / f"{number}.jpg")
        assert "lossy" in str(recognise(lossy))


class TestDoubt:
    @pytest.mark.parametrize(
        ("name", "why"),
        [
            ("palettes", "a label does not have the same colour in all of them (label 0 is #"),
            ("masks", "2 labels in areas, but these are far apart"),
            ("tones", "3 labels in areas, but these are far apart"),
            ("one-bit", "one bit per pixel"),
            ("both", "12 of the 24 images looked at have 19 labels in areas, and may be label maps"),
            ("shades", "their colours shade into each other, as in photographs"),
        ],
    )
    @pytest.mark.usefixtures("unmeasured")
    def test_is_told_with_what_settles_it(self, name, why, tmp_path, capsys):
        maps = [face(number) for number in range(12)]
        random = np.random.default_rng(0)
        images = {
            "palettes": lambda: (image(one, random.integers(0, 256, 768).tolist()) for one in maps),
            "masks": lambda: (Image.fromarray(((one > 0) * 255).astype(np.uint8)) for one in maps),
            "tones": lambda: (Image.fromarray(np.array([0, 128, 255], np.uint8)[one % 3]) for one in maps),
            "one-bit": lambda: (Image.fromarray(one > 0) for one in maps),
            "both": lambda: (
                *map(FORMS["trimmed"], map(face, range(100, 112))),
                *map(Image.fromarray, tiles(96, 12)),
            ),
            "shades": lambda: map(common(8, NONE), map(Image.fromarray, photographs().values())),
        }[name]()
        folder = written(tmp_path / name, images)
        taken_as = recognise(folder)
        assert taken_as.kind == "pictures"
        assert why in taken_as.in_full
        assert taken_as.doubt is not None
        assert main(["train", "--data", str(folder), "--dry-run"]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert said.startswith("- data: images, because ")
        assert f"warning: {taken_as.doubt}" in said
        assert f"sqvae train label-maps --data {folder}" in said
        assert f"sqvae train pictures --data {folder}" in said
        for recipe in ("label-maps", "pictures"):  # which settle it
            assert main(["train", recipe, "--data", str(folder), "--dry-run"]) == 0
            said = capsys.readouterr().err
            assert f"as the recipe {recipe} says" in said
            assert "warning" not in said


class TestColours:
    """Label maps that are kept as colours, which can't be read as label maps."""

    @pytest.mark.usefixtures("unmeasured")
    def test_are_told_of_with_what_makes_label_maps_of_them(self, tmp_path, capsys):
        shown = [image(face(number), voc_palette()).convert("RGB") for number in range(12)]
        folder = written(tmp_path / "colours", shown)
        taken_as = recognise(folder)
        assert str(taken_as) == "images, because all 12 images looked at are in colour"
        number = len({colour for one in shown for _, colour in one.getcolors()})
        assert taken_as.doubt is not None
        assert f"only {number} colours, in areas: they may be label maps kept as colours" in taken_as.doubt
        assert main(["train", "--data", str(folder), "--dry-run"]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert "To train on classes, save them as palette PNGs with one palette for all" in said
        assert f"sqvae train label-maps --data DIR; as pictures: sqvae train pictures --data {folder}" in said
        # What it says to do.
        palette = Image.new("P", (1, 1))
        palette.putpalette(voc_palette())
        maps = written(tmp_path / "maps", (one.quantize(palette=palette, dither=Image.Dither.NONE) for one in shown))
        assert recognise(maps).kind == "labels"
        for number in range(12):
            assert (np.asarray(Image.open(maps / f"{number:03d}.png")) == face(number)).all()

    def test_masks_too_but_neither_blank_images_nor_lossy_ones(self, tmp_path):
        masks = [Image.fromarray(np.uint8(face(number) > 0) * 255).convert("RGB") for number in range(4)]
        assert recognise(written(tmp_path / "masks", masks)).doubt is not None
        assert (
            recognise(written(tmp_path / "blank", (Image.new("RGB", (9, 9), c) for c in ("red", "blue")))).doubt is None
        )
        masks[0].save(tmp_path / "one.jpg")
        assert recognise(tmp_path / "one.jpg").doubt is None

    def test_photographs_leave_no_doubt(self, tmp_path):
        for name, images in {"whole": photographs().values(), "cuttings": tiles(48, 24)}.items():
            assert recognise(written(tmp_path / name, map(Image.fromarray, images))).doubt is None


class TestWhy:
    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            (["data.kind=labels"], "label maps, as data.kind=labels says"),
            (["data.kind=levels"], "grey levels, as data.kind=levels says"),
            (["data.classes=19"], "label maps, because data.classes is set, which is for label maps only"),
            (["likelihood.name=vmf"], "label maps, because likelihood.name=vmf is set, which is for classes only"),
            (["data.channels=1"], "images, because data.channels is set, which is for images only"),
            (["speech.features=vctk"], "speech, because speech.features is set, which is for speech only"),
            ([], "images, because the images looked at are blank"),
        ],
    )
    def test_by_settings(self, settings, words, tmp_path):
        Image.new("L", (8, 8)).save(tmp_path / "one.png")
        assert str(suitable(str(tmp_path), settings).taken_as) == words

    def test_by_names(self, tmp_path):
        assert str(suitable("camvid").taken_as) == "label maps, because camvid is a dataset of label maps"
        assert str(suitable("demo").taken_as) == "images, because demo is a dataset of images"
        assert str(suitable("vctk").taken_as) == "speech, because vctk is a data set of recordings"
        assert "hub" in str(suitable("hf:owner/name").taken_as)
        (tmp_path / "anna").mkdir()
        (tmp_path / "anna" / "1.wav").touch()
        assert str(suitable(str(tmp_path)).taken_as) == "speech, because the folder holds recordings"

    def test_is_kept_with_the_run_and_its_models(self, tmp_path, capsys):
        """The first line of training, of an inspection and of a model card, and of a model card of a model's copy."""
        folder = written(tmp_path / "masks", (trimmed(face(number, 32)) for number in range(30)))
        run = str(tmp_path / "run")
        assert main(["train", "--data", str(folder), "--out", run, "--epochs", "1", *SMALL]) == 0
        words = (
            "label maps, because all 24 images looked at are palette images with 19 labels in areas, and a label has "
            "the same colour in all of them"
        )
        assert " ".join(capsys.readouterr().err.split()).startswith(f"- data: {words}")
        assert main(["resume", run, "--epochs", "2"]) == 0
        capsys.readouterr()
        assert main(["inspect", run, "--no-plots"]) == 0
        assert capsys.readouterr().out.splitlines()[:2] == ["What it is", f"  data: {words}"]
        load_tokenizer(run).save_pretrained(tmp_path / "first")
        load_tokenizer(tmp_path / "first").save_pretrained(tmp_path / "second")
        for copy in ("first", "second"):
            card = (tmp_path / copy / "README.md").read_text()
            assert card.split(f"# {copy}\n\n")[1].startswith(f"Data: {words}.\n")
            assert str(tmp_path) not in card

    def test_is_not_known_of_older_runs(self):
        from sqvae.recipes import RECIPES
        from sqvae.tokenizers import taken_as_of

        for config in ({}, {"data_taken_as": None}, {"data_taken_as": {"kind": "music"}}):
            assert taken_as_of(RECIPES["label-maps"](), config) == TakenAs("labels", "as data.kind=labels says")

"""Label maps and grey levels: read as they are, learned as classes, measured, shown, and given back."""

import json
import math
import re
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.metrics import jaccard_score

from real_data import folder_of
from sqvae.cli import main
from sqvae.config import DataSettings, override
from sqvae.data import Preprocessing, UnreadablePictureError, load, recognise, stream
from sqvae.likelihoods import CategoricalLikelihood, VonMisesFisherLikelihood, one_hot_directions
from sqvae.metrics import MEASURES, Confusion, Levels
from sqvae.modalities.images.class_colours import class_colours, to_lab
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.media import UNKNOWN, LabelMedium, medium_of
from sqvae.recipes import RECIPES, suitable
from sqvae.runs import prepare
from sqvae.tokenizers import load as load_tokenizer

LABELS = Preprocessing(labels=True)

SMALL = [
    *("--set", "network.widths=4,8", "--set", "network.blocks=0", "--set", "quantizer.dim=8"),
    *("--set", "quantizer.codebook_size=16", "--set", "training.passes_per_epoch=2", "--set", "training.threads=1"),
    *("--set", "training.log_every=1"),
]


def holds_labels(source):
    return recognise(source).kind == "labels"


def areas(height, width, labels, seed=0):
    """A map of upright stripes and a box, so that labels lie in areas."""
    random = np.random.default_rng(seed)
    found = np.repeat(random.choice(labels, -(-width // 4)), 4)[:width][None].repeat(height, 0)
    top, left = random.integers(0, height // 2), random.integers(0, width // 2)
    found[top : top + height // 3, left : left + width // 3] = random.choice(labels)
    return found


def write_maps(folder, labels=(0, 1, 2), count=24, size=(24, 24), mode="L"):
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        values = areas(*size, np.array(labels), number)
        if number < len(labels):
            values[:2, :2] = labels[number]  # every label occurs
        image = Image.fromarray(values.astype(np.uint16 if mode == "I;16" else np.uint8))
        if mode == "P":
            image = Image.fromarray(values.astype(np.uint8), mode="P")
            image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
        image.save(folder / f"{number:03d}.png")
    return folder


class TestReading:
    @pytest.mark.parametrize("mode", ["L", "P", "I;16"])
    def test_the_numbers_in_the_file_are_the_labels(self, tmp_path, mode):
        folder = write_maps(tmp_path / "maps", mode=mode)
        data = load(folder, LABELS)
        assert data.preprocessing == Preprocessing(24, None, 1, True, 3)
        assert any("label maps of 3 classes, 0 to 2" in note for note in data.notes)
        for name, labels in zip(data.train.names, data.train.take(slice(None)), strict=True):
            assert np.array_equal(labels[0].numpy(), np.asarray(Image.open(folder / name)))

    def test_resizing_never_makes_a_new_label(self, tmp_path):
        """Of a map in 0 and 9 nothing but those comes out, where averages would lie between; and it is the centre."""
        values = np.zeros((31, 53), np.uint8)
        values[:, 26:] = 9
        (tmp_path / "maps").mkdir()
        Image.fromarray(values).save(tmp_path / "maps" / "one.png")
        ((_, maps),) = stream([tmp_path / "maps"], Preprocessing(16, labels=True, classes=10), batch=4, on_skip=print)
        assert maps.unique().tolist() == [0, 9]
        assert (maps[0, 0, 0] == 9).sum() == 8
        ((_, larger),) = stream([tmp_path / "maps"], Preprocessing(64, labels=True, classes=10), batch=4, on_skip=print)
        assert larger.unique().tolist() == [0, 9]

    def test_nearest_is_the_label_in_the_middle_of_a_pixel(self, tmp_path):
        values = np.arange(36, dtype=np.uint8).reshape(6, 6)
        Image.fromarray(values).save(tmp_path / "one.png")
        wanted = Preprocessing(4, labels=True, classes=36)
        ((_, maps),) = stream([tmp_path / "one.png"], wanted, batch=1, on_skip=print)
        rows = [0, 2, 3, 5]  # the middles 0.75, 2.25, 3.75 and 5.25
        assert maps[0, 0].tolist() == values[np.ix_(rows, rows)].tolist()

    def test_maps_of_several_sizes_are_brought_to_one(self, tmp_path):
        write_maps(tmp_path / "maps" / "a", size=(24, 40))
        write_maps(tmp_path / "maps" / "b", size=(80, 64))
        data = load(tmp_path / "maps", LABELS)
        assert data.train.shape == (1, 64, 64)
        assert any("2 sizes" in note for note in data.notes)

    def test_more_than_256_classes_are_kept_exactly(self, tmp_path):
        folder = write_maps(tmp_path / "maps", labels=[0, 255, 256, 999], mode="I;16")
        data = load(folder, LABELS)
        assert data.preprocessing.classes == 1000
        assert data.train.take([0]).dtype == torch.uint16
        found = {int(label) for labels in data.train.take(slice(None)) for label in labels.long().unique()}
        assert found <= {0, 255, 256, 999}
        assert 999 in found
        assert load(folder, LABELS).train.take([0]).equal(data.train.take([0]))  # from the cache

    def test_255_apart_from_the_others_means_that_nothing_is_known(self, tmp_path):
        folder = write_maps(tmp_path / "maps", labels=[0, 1, 2, 255])
        data = load(folder, LABELS)
        assert (data.preprocessing.classes, data.preprocessing.ignore) == (3, 255)
        assert any("label 255 are ignored" in note for note in data.notes)
        kept = load(folder, Preprocessing(labels=True, classes=256))
        assert (kept.preprocessing.classes, kept.preprocessing.ignore) == (256, None)

    def test_tones_of_grey_are_no_reason_to_ignore_white(self, tmp_path):
        data = load(write_maps(tmp_path / "maps", labels=[0, 128, 255]), LABELS)
        assert (data.preprocessing.classes, data.preprocessing.ignore) == (256, None)

    def test_minus_1_means_that_nothing_is_known(self, tmp_path):
        values = np.stack([areas(16, 16, np.arange(-1, 4), seed) for seed in range(12)]).astype(np.int64)
        values[:, 0, 0], values[:, 1, 1] = -1, 3
        np.save(tmp_path / "maps.npy", values)
        data = load(tmp_path / "maps.npy", LABELS)
        assert (data.preprocessing.classes, data.preprocessing.ignore) == (4, -1)
        assert data.train.take([0])[0, 0, 0, 0] == -1
        np.save(tmp_path / "lower.npy", values - 1)
        with pytest.raises(ValueError, match=r"the label -2\b.* from 0 .*`data.ignore=-2`"):
            load(tmp_path / "lower.npy", LABELS)

    def test_labels_that_no_class_can_have(self, tmp_path):
        folder = write_maps(tmp_path / "maps", labels=[0, 33_000], mode="I;16")
        with pytest.raises(ValueError, match=r"the label 33,000\b.* from 0 to .*4,095"):
            load(folder, LABELS)
        np.save(tmp_path / "huge.npy", np.full((3, 8, 8), 2**40))
        with pytest.raises(ValueError, match="labels beyond 2,147,483,647"):
            load(tmp_path / "huge.npy", LABELS)

    @pytest.mark.parametrize("bits", [1, 2, 4])
    def test_grey_of_few_bits(self, tmp_path, bits):
        """Pillow spreads such values over 0 to 255; the labels are what is stored."""
        labels = np.arange(16).reshape(4, 4) % 2**bits
        packed = b"".join(
            b"\0"
            + int("".join(f"{value:0{bits}b}" for value in row).ljust(8 * -(-4 * bits // 8), "0"), 2).to_bytes(
                -(-4 * bits // 8), "big"
            )
            for row in labels
        )

        def chunk(name, content):
            body = name + content
            return len(content).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

        header = (4).to_bytes(4, "big") * 2 + bytes([bits, 0, 0, 0, 0])
        pieces = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(packed)), chunk(b"IEND", b"")]
        (tmp_path / "one.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(pieces))
        wanted = Preprocessing(4, labels=True, classes=16)
        ((_, maps),) = stream([tmp_path / "one.png"], wanted, batch=1, on_skip=print)
        assert maps[0, 0].tolist() == labels.tolist()

    def test_a_label_without_a_class_is_named_and_its_map_left_out(self, tmp_path):
        folder = write_maps(tmp_path / "maps")
        Image.fromarray(np.full((24, 24), 7, np.uint8)).save(folder / "odd.png")
        data = load(folder, Preprocessing(labels=True, classes=3))
        (note,) = (note for note in data.notes if "odd.png" in note)
        assert re.search(r"it has the labels 7\b.* 0 to 2\b", note)
        assert "pass `data.classes=8`" in note
        with pytest.raises(UnreadablePictureError, match=r"odd.png can't be read: it has the labels 7"):
            load(folder, Preprocessing(labels=True, classes=3), strict=True)

    def test_colour_and_jpeg_are_refused_as_labels(self, tmp_path):
        folder = tmp_path / "maps"
        folder.mkdir()
        Image.new("RGB", (8, 8)).save(folder / "colour.png")
        with pytest.raises(ValueError, match=r"colour.png \(.*\(mode RGB\).* one number per pixel"):
            load(folder, LABELS)
        (folder / "colour.png").unlink()
        Image.new("L", (8, 8)).save(folder / "lossy.jpg")
        with pytest.raises(ValueError, match=r"stored as JPEG.*use PNG"):
            load(folder, LABELS)

    def test_maps_that_are_ignored_altogether(self, tmp_path):
        folder = write_maps(tmp_path / "maps", labels=[4])
        for given in (None, 5):
            with pytest.raises(ValueError, match=r"every pixel of the label maps .* 4\b.*nothing to learn"):
                load(folder, Preprocessing(labels=True, classes=given, ignore=4))

    def test_arrays_of_labels(self, tmp_path):
        values = np.stack([areas(16, 16, np.arange(300), seed) for seed in range(12)]).astype(np.int64)
        values[0, 0, 0] = 299
        np.save(tmp_path / "maps.npy", values)
        data = load(tmp_path / "maps.npy", LABELS)
        assert data.preprocessing.classes == 300
        rows = [int(name.rpartition("/")[2]) for name in data.train.names]
        assert np.array_equal(data.train.take(slice(None))[:, 0].long().numpy(), values[rows])
        np.save(tmp_path / "real.npy", values / 300)
        with pytest.raises(ValueError, match=r"label maps are .*height, width\)"):
            load(tmp_path / "real.npy", LABELS)

    def test_names_of_classes(self, tmp_path):
        folder = write_maps(tmp_path / "maps")
        (folder / "classes.txt").write_text("sky\nroad\ncar\n")
        assert load(folder, LABELS).class_names == ("sky", "road", "car")
        assert load(folder, LABELS, class_names=["a", "b", "c"]).class_names == ("a", "b", "c")
        (folder / "classes.txt").write_text("sky\nroad\ncar\ntree\n")
        more = load(folder, LABELS)
        assert (more.preprocessing.classes, more.class_names[-1]) == (4, "tree")
        assert any("4 classes, 0 to 3, of which 1 never occur" in note for note in more.notes)
        assert not any("classes.txt" in note for note in more.notes)
        (folder / "classes.txt").write_text("sky\nroad\n")
        with pytest.raises(ValueError, match=r"2 classes have names \(sky, ...\).* the label 2\b"):
            load(folder, LABELS)
        fixed = load(folder, Preprocessing(labels=True, classes=3))
        assert fixed.class_names == ()
        assert any(re.search(r"2 .*names for 3 classes", note) for note in fixed.notes)
        (folder / "classes.txt").write_bytes("Stra\xdfe\nHimmel\nAuto".encode("latin-1"))
        with pytest.raises(ValueError, match=r"classes.txt must .* UTF-8"):
            load(folder, LABELS)

    def test_names_of_classes_in_a_zip(self, tmp_path):
        folder = write_maps(tmp_path / "maps")
        with zipfile.ZipFile(tmp_path / "maps.zip", "w") as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, path.name)
            archive.writestr("classes.txt", "sky\nroad\ncar\n")
        assert load(tmp_path / "maps.zip", LABELS).class_names == ("sky", "road", "car")

    def test_a_palette_gives_the_colours(self, tmp_path):
        assert load(write_maps(tmp_path / "maps", mode="P"), LABELS).class_colours == ("#ff0000", "#00ff00", "#0000ff")
        assert load(write_maps(tmp_path / "grey"), LABELS).class_colours == ()

    def test_sets_by_name_are_of_one_kind(self):
        with pytest.raises(ValueError, match=r"demo is a dataset of \w+, not of label maps; .*camvid"):
            load("demo", LABELS)

    def test_labels_and_their_options_belong_together(self):
        with pytest.raises(ValueError, match=r"classes and ignore .*label maps"):
            Preprocessing(classes=3)
        with pytest.raises(ValueError, match="a label map has 1 channel"):
            Preprocessing(channels=3, labels=True)
        with pytest.raises(ValueError, match="classes must be between 2 and 4,096"):
            Preprocessing(labels=True, classes=1)

    def test_other_entries_of_the_cache_keep_their_names(self):
        """What was decoded, and trained on, before there were label maps is found again."""
        from sqvae.data.cache import entry_key

        assert entry_key("content", Preprocessing(28, None, 1)) == "f0e18c8e439eae0481b51f6f54d8587e"

    def test_jpegs_that_were_decoded_at_a_fraction_of_their_size_are_not_found_again(self):
        from sqvae.data.cache import entry_key

        for wanted, renamed in (
            (Preprocessing(28, None, 1), True),
            (Preprocessing(28, 140, 1), False),
            (Preprocessing(28, labels=True, classes=3), False),
        ):
            assert (entry_key("content", wanted, jpegs=True) != entry_key("content", wanted)) == renamed


class TestDetection:
    def test_label_maps_are_recognised(self, tmp_path):
        assert holds_labels(write_maps(tmp_path / "grey"))
        assert holds_labels(write_maps(tmp_path / "palette", mode="P"))
        assert holds_labels(write_maps(tmp_path / "void", labels=[0, 1, 255]))
        assert holds_labels("camvid")
        assert not holds_labels("demo")

    def test_pictures_are_not(self, tmp_path):
        from skimage import data

        photographs = tmp_path / "photographs"
        photographs.mkdir()
        for name in ("camera", "coins", "moon", "page"):
            Image.fromarray(getattr(data, name)()).save(photographs / f"{name}.png")
        assert not holds_labels(photographs)
        masks = write_maps(tmp_path / "masks", labels=[0, 255])
        assert not holds_labels(masks)
        assert not holds_labels(write_maps(tmp_path / "tones", labels=[0, 128, 255]))
        icons = write_maps(tmp_path / "icons", mode="P")
        with Image.open(icons / "000.png") as image:
            image.putpalette([9, 9, 9, 8, 8, 8, 7, 7, 7])
            image.save(icons / "000.png")
        assert not holds_labels(icons)  # the same number is another colour in each
        colour = tmp_path / "colour"
        colour.mkdir()
        Image.new("RGB", (8, 8)).save(colour / "one.png")
        assert not holds_labels(colour)

    def test_some_of_another_kind_among_them(self, tmp_path):
        """One in colour does not turn label maps into pictures, whatever its name; it is left out, with the reason."""
        for name in ("!first.png", "zlast.png"):
            folder = write_maps(tmp_path / name)
            Image.new("RGB", (24, 24), "red").save(folder / name)
            assert holds_labels(folder)
            data = load(folder, LABELS)
            assert any(name in note and "one number per pixel" in note for note in data.notes)
            assert name not in (*data.train.names, *data.validation.names, *data.test.names)
        half = write_maps(tmp_path / "half", count=12)
        for number in range(12):
            Image.new("RGB", (24, 24), "red").save(half / f"photograph {number}.png")
        assert not holds_labels(half)

    @pytest.mark.parametrize("every", [2, 3])
    def test_grey_maps_go_with_a_palette(self, tmp_path, every):
        folder, grey = write_maps(tmp_path / "maps", mode="P"), write_maps(tmp_path / "grey")
        for number in range(0, 24, every):
            (grey / f"{number:03d}.png").replace(folder / f"{number:03d}.png")
        assert holds_labels(folder)

    def test_pictures_that_were_first_taken_for_label_maps(self, tmp_path):
        """What is remembered of a folder from a look for labels is no answer to another question."""
        folder = tmp_path / "colour"
        folder.mkdir()
        for number in range(12):
            Image.new("RGB", (48, 32), (20 * number, 0, 0)).save(folder / f"{number}.png")
        with pytest.raises(ValueError, match=r"none of the \w+ in"):
            load(folder, LABELS)
        assert load(folder).train.shape == (3, 32, 48)
        assert any("to grey" in note for note in load(folder, Preprocessing(channels=1)).notes)

    def test_nothing_but_the_usual_mark_of_unknown_pixels(self, tmp_path):
        folder = write_maps(tmp_path / "unknown", labels=[255])
        with pytest.raises(ValueError, match=r"every pixel of the label maps .* 255, .* nothing to learn"):
            load(folder, LABELS)
        assert load(folder, Preprocessing(labels=True, classes=256)).preprocessing.classes == 256

    def test_digits_are_not(self, tmp_path):
        from sqvae.data import digits

        (pictures, _), folder = digits(), tmp_path / "digits"
        folder.mkdir()
        for number in range(40):
            Image.fromarray((255 * pictures[100 * number, 0]).round().byte().numpy()).save(folder / f"{number}.png")
        assert not holds_labels(folder)


class TestFaces:
    @pytest.fixture
    def root(self, tmp_path):
        """Three faces as they are downloaded: a PNG for each part."""
        root = tmp_path / "CelebAMask-HQ"
        parts = root / "CelebAMask-HQ-mask-anno" / "0"
        parts.mkdir(parents=True)
        (root / "CelebA-HQ-to-CelebA-mapping.txt").write_text(
            "idx orig_idx orig_file\n0 119613 119614.jpg\n1 190000 190001.jpg\n2 170000 170001.jpg\n"
        )
        (root / "CelebA-HQ-img").mkdir()
        for number in ("00000", "00001", "00002"):
            Image.new("RGB", (8, 8)).save(root / "CelebA-HQ-img" / f"{int(number)}.jpg")
            skin, hair, hat = (np.zeros((16, 16), np.uint8) for _ in range(3))
            skin[4:12], hair[:8], hat[:2] = 255, 255, 255
            for name, mask in (("hair", hair), ("skin", skin), ("hat", hat)):
                Image.fromarray(mask).convert("RGB").save(parts / f"{number}_{name}.png")
        return root

    def test_parts_are_merged_in_the_published_order(self, root):
        data = load(root / "CelebAMask-HQ-mask-anno", Preprocessing(16, labels=True, classes=19))
        assert (data.train.names[0], data.test.names[0]) == ("0.png", "1.png")
        rows = data.train.take([0])[0, 0, :, 0].tolist()
        assert rows == [14] * 2 + [13] * 6 + [1] * 4 + [0] * 4  # hat, hair, skin, background

    def test_beside_the_faces(self, root):
        """The folder as it is downloaded holds both."""
        data = load(root, LABELS)
        assert data.preprocessing == Preprocessing(64, None, 1, True, 19)
        assert data.class_names[13] == "hair"
        assert load(root).train.shape == (3, 256, 256)
        assert not holds_labels(root)

    def test_to_know_the_size_nothing_is_merged(self, root, monkeypatch):
        from sqvae.data.readers.celebamask_hq import _Pieces

        merged = []
        monkeypatch.setattr(_Pieces, "_merge", lambda self, number: merged.append(number))
        pieces = _Pieces(root / "CelebAMask-HQ-mask-anno", {"0": [(1, "0/00000_skin.png"), (13, "0/00000_hair.png")]})
        assert [(header.width, header.height) for header in pieces.headers()] == [(16, 16)]
        assert pieces.labels() == {0, 1, 13}
        assert not merged

    def test_by_name(self, root, monkeypatch):
        monkeypatch.setenv("SQVAE_DATA", str(root.parent))
        data = load("celebamask-hq", LABELS)
        assert data.preprocessing == Preprocessing(64, None, 1, True, 19)
        assert data.class_names[13:15] == ("hair", "hat")

    def test_merged_maps(self, root):
        merged = root / "CelebAMaskHQ-mask"
        merged.mkdir()
        for number in range(3):
            Image.fromarray(np.full((8, 8), number, np.uint8)).save(merged / f"{number}.png")
        data = load(merged, Preprocessing(8, labels=True, classes=19))
        assert data.train.take([0]).unique().tolist() == [0]
        assert data.test.take([0]).unique().tolist() == [1]

    def test_what_is_missing_is_named(self, root):
        (root / "CelebA-HQ-to-CelebA-mapping.txt").unlink()
        with pytest.raises(FileNotFoundError, match=r"needs CelebA-HQ-to-CelebA-mapping.txt beside it"):
            load(root / "CelebAMask-HQ-mask-anno", LABELS)


class TestStreets:
    @pytest.fixture
    def root(self, tmp_path):
        for part in ("train", "val", "test"):
            write_maps(tmp_path / "CamVid" / f"{part}annot", labels=range(12), count=12)
            (tmp_path / "CamVid" / part).mkdir()
            for number in range(3):
                Image.new("RGB", (24, 24)).save(tmp_path / "CamVid" / part / f"{number}.png")
        return tmp_path / "CamVid"

    def test_maps_and_photographs_are_told_apart(self, root):
        data = load(root, LABELS)
        assert data.preprocessing == Preprocessing(64, None, 1, True, 11, 11)
        assert [len(part) for part in (data.train, data.validation, data.test)] == [12, 12, 12]
        assert all(name.startswith("trainannot/") for name in data.train.names)
        assert not any("could not be read" in note for note in data.notes)
        photographs = load(root)
        assert all(name.startswith("train/") for name in photographs.train.names)


class TestMeasures:
    def test_the_definitions(self):
        random = np.random.default_rng(0)
        x, y = random.integers(0, 5, (6, 9, 9)), random.integers(0, 5, (6, 9, 9))
        x[x == 3] = 2  # 3 is predicted, and never there
        confusion = Confusion(5)
        for part in (slice(0, 1), slice(1, 6)):
            confusion.add(torch.from_numpy(x[part]), torch.from_numpy(y[part]))
        found = confusion.measures(detailed=True)
        present = [0, 1, 2, 4]
        expected = jaccard_score(x.ravel(), y.ravel(), labels=present, average=None)
        assert found["pixel_error"] == pytest.approx((x != y).mean())
        assert found["classes_present"] == 4
        assert found["miou"] == pytest.approx(expected.mean())
        assert [found[f"iou of {label}"] for label in present] == pytest.approx(expected.tolist())
        assert "iou of 3" not in found

    def test_ignored_places_count_nowhere(self):
        x = torch.tensor([[[0, 1, 9, 9]]])
        confusion = Confusion(2, ignore=9, names=("a", "b"))
        assert confusion.add(x, torch.tensor([[[0, 0, 1, 0]]])) == 2
        found = confusion.measures(detailed=True)
        assert found["pixel_error"] == 0.5
        assert (found["iou of a"], found["iou of b"]) == (0.5, 0)

    def test_nothing_known_is_no_error(self):
        confusion = Confusion(3, ignore=0)
        assert confusion.add(torch.zeros(1, 2, 2).long(), torch.ones(1, 2, 2).long()) == 0
        assert confusion.measures() == {"pixel_error": 0.0, "miou": 0.0, "classes_present": 0.0}

    def test_levels_are_measured_as_values_in_0_to_1(self):
        x, y = torch.randint(0, 256, (4, 5, 5)), torch.randint(0, 256, (4, 5, 5))
        levels = Levels(256)
        levels.add(x, y)
        found = levels.measures()
        assert found["mse"] == pytest.approx(((x - y) / 255).double().square().mean().item(), rel=1e-6)
        assert found["pixel_error"] == pytest.approx((x != y).double().mean().item())


class TestIgnoring:
    @pytest.mark.parametrize("kind", ["categorical", "vmf"])
    def test_what_is_ignored_changes_nothing(self, kind):
        def build(ignore):
            if kind == "categorical":
                return CategoricalLikelihood(5, ignore=ignore)
            return VonMisesFisherLikelihood(one_hot_directions(5), ignore=ignore)

        x = torch.randint(0, 5, (2, 4, 4))
        x[:, 0] = 255
        output = torch.randn(2, 5, 4, 4, requires_grad=True)
        fit = build(255)(output, x)
        rest = build(None)(output[:, :, 1:], x[:, 1:])
        torch.testing.assert_close(fit.loss, rest.loss)
        torch.testing.assert_close(fit.log_likelihood, rest.log_likelihood)
        (gradient,) = torch.autograd.grad(fit.loss, output)
        assert (gradient[:, :, 0] == 0).all()
        assert (gradient[:, :, 1:] != 0).all()
        seen = build(255).embed(x)
        assert (seen[:, :, 0] == 0).all()
        assert torch.equal(seen[:, :, 1:], build(None).embed(x[:, 1:]))

    @pytest.mark.parametrize("kind", ["categorical", "vmf"])
    def test_a_batch_of_which_nothing_is_known_has_no_loss(self, kind):
        likelihood = (
            CategoricalLikelihood(3, ignore=9)
            if kind == "categorical"
            else VonMisesFisherLikelihood(one_hot_directions(3), ignore=9)
        )
        output = torch.randn(2, 3, 4, 4, requires_grad=True)
        fit = likelihood(output, torch.full((2, 4, 4), 9))
        fit.loss.backward()
        assert fit.loss == 0
        assert (output.grad == 0).all()

    @pytest.mark.parametrize("kind", ["categorical", "vmf"])
    def test_the_reported_bound_counts_what_is_known(self, kind):
        from sqvae import SQVAE
        from sqvae.networks import conv_decoder, conv_encoder
        from sqvae.quantizers import GaussianQuantizer

        likelihood = (
            CategoricalLikelihood(3, ignore=9)
            if kind == "categorical"
            else VonMisesFisherLikelihood(one_hot_directions(3), ignore=9)
        )
        model = SQVAE(
            conv_encoder(3, 4, widths=(4, 4)),
            GaussianQuantizer(8, 4, channel_first=True),
            conv_decoder(3, 4, widths=(4, 4), bounded=False),
            likelihood,
        )
        x = torch.randint(0, 3, (2, 8, 8))
        x[:, :4] = 9
        bound = model.bound(x)
        assert float(bound.bits_per_dimension) == pytest.approx(-float(bound.nats) / (32 * math.log(2)))

    def test_any_other_label_is_refused(self):
        with pytest.raises(ValueError, match="labels must lie between 0 and 2, got values from 0 to 7"):
            CategoricalLikelihood(3, ignore=9).embed(torch.tensor([[0, 7, 9]]))


@pytest.mark.parametrize("classes", [2, 19, 256, 1000])
@pytest.mark.parametrize("likelihood", ["vmf", "categorical"])
def test_any_number_of_classes_trains(classes, likelihood):
    """A few steps with finite loss and gradients, and a loss that falls."""
    quantizer = "vmf" if likelihood == "vmf" else "gaussian-1"
    experiment = override(
        RECIPES["celebamask-hq"](),
        [
            *(f"data.classes={classes}", "data.size=16", f"likelihood.name={likelihood}"),
            *(f"quantizer.name={quantizer}", "quantizer.dim=8", "network.widths=4,8", "network.blocks=1"),
        ],
    )
    model = new_model(experiment).train()
    assert model.encoder[0].in_channels == classes  # and not one more
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    x = medium_of(experiment).model_input(torch.randint(0, classes, (4, 16, 16)), torch.device("cpu"))
    losses = []
    for _ in range(4):
        loss = model(x, 1.0).loss
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0]


def test_levels_are_seen_as_directions_or_one_by_one():
    base = override(RECIPES["mnist-levels"](), ["data.size=28"])
    expected = {
        (): (2, 2),
        ("likelihood.inputs=one-hot",): (256, 2),
        ("likelihood.name=categorical", "quantizer.name=gaussian-1"): (2, 256),
        ("likelihood.name=categorical", "quantizer.name=vq-ema", "likelihood.inputs=one-hot"): (256, 256),
    }
    for settings, (sees, gives) in expected.items():
        model = new_model(override(base, settings))
        assert (model.encoder[0].in_channels, model.decoder[-2].out_channels) == (sees, gives)


class TestMedium:
    medium = LabelMedium(3, 255, ("a", "b", "c"))

    def test_colours_differ(self):
        """As far as eyes can tell, by an implementation of CIELAB that others wrote; and none looks black."""
        from skimage.color import rgb2lab

        for number, least in ((2, 60), (12, 45), (19, 35), (150, 10), (4096, 0)):
            colours = rgb2lab(np.array(class_colours(number)) / 255)
            distances = np.linalg.norm(colours[:, None] - colours[None], axis=-1) if number < 1000 else np.ones((2, 2))
            assert (distances + 1000 * np.eye(len(distances))).min() > least
            assert colours[:, 0].min() > 20
        assert len(set(class_colours(4096))) == 4096

    def test_distances_of_colours(self):
        from skimage.color import rgb2lab

        colours = np.random.default_rng(0).integers(0, 256, (1000, 3))
        assert np.allclose(to_lab(colours), rgb2lab(colours / 255), atol=0.05)

    def test_colours_of_one_s_own(self):
        medium = LabelMedium(2, colours=("#ff0000", "#0000ff"))
        assert medium.shown(torch.tensor([[[0, 1]]]))[0, :, 0].tolist() == [[1, 0], [0, 0], [0, 1]]

    def test_errors_stand_out(self):
        x, y = torch.tensor([[[0, 1, 255]]]), torch.tensor([[[0, 2, 2]]])
        for colours in ((), ("#000000", "#ffffff", "#e6007e"), ("#808080", "#ffffff", "#f0f0f0")):
            medium = LabelMedium(3, 255, (), colours)
            right, wrong, unknown = medium.errors(x, y)[0, :, 0].T
            assert (255 * wrong).round().tolist() == [230, 0, 126]  # whatever the classes' colours
            assert right.min() == right.max() >= 0.75
            assert torch.equal(unknown, medium.shown(x)[0, :, 0, 2])

    @pytest.mark.parametrize(
        ("colours", "expected"),
        [
            (("#ff0000", "#0000ff"), "#808080"),
            (("#7a8080", "#0000ff"), "#ffffff"),
            (("#808080", "#f8f8f8"), "#000000"),
            (("#808080", "#ffffff", "#000000"), "#c0c0c0"),
        ],
    )
    def test_what_is_not_known_is_unlike_every_class(self, colours, expected):
        assert LabelMedium(len(colours), 255, (), colours).unknown == (UNKNOWN, expected)
        shown = LabelMedium(len(colours), 255, (), colours).shown(torch.tensor([[[255]]]))
        assert bytes((255 * shown).round().byte().flatten().tolist()).hex() == expected[1:]

    def test_files_hold_the_labels(self):
        labels = torch.randint(0, 3, (1, 4, 5))
        (image,) = self.medium.images(labels)
        assert image.mode == "P"
        assert np.array_equal(np.asarray(image), labels[0].numpy())
        (deep,) = LabelMedium(1000).images(labels + 900)
        assert np.array_equal(np.asarray(deep), labels[0].numpy() + 900)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (torch.rand(1, 4, 4), "label maps must be whole numbers"),
            (torch.full((1, 4, 4), 3), r"labels must lie between 0 and 2, got values from 3 to 3; this model knows 3 "),
        ],
    )
    def test_what_is_no_label_map_is_refused(self, given, message):
        with pytest.raises(ValueError, match=message):
            self.medium.model_input(given, torch.device("cpu"))


class TestConfiguration:
    def test_kinds_and_likelihoods_that_don_t_go_together(self):
        with pytest.raises(ValueError, match=r"likelihood\.name=vmf .*data\.kind=pictures.*gaussian"):
            override(RECIPES["mnist"](), ["likelihood.name=vmf"])
        with pytest.raises(ValueError, match=r"likelihood\.name=gaussian .*data\.kind=labels.*vmf or categorical"):
            override(RECIPES["camvid"](), ["likelihood.name=gaussian"])
        with pytest.raises(ValueError, match=r"data\.kind=levels .*data\.channels must be 1, got 3"):
            DataSettings("x", kind="levels", channels=3)
        with pytest.raises(ValueError, match=r"data\.class_names .*data\.classes.*2 and 3"):
            DataSettings("x", kind="labels", classes=3, class_names=("a", "b"))

    @pytest.mark.parametrize(
        ("setting", "message"),
        [
            ("data.class_names=a,a", "data.class_names must be different"),
            ("data.class_colours=red,blue", "must look like #1f77b4, got 'red'"),
            ("likelihood.concentration_offset=-1", "concentration_offset must be >= 0"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, setting, message):
        with pytest.raises(ValueError, match=message):
            override(RECIPES["label-maps"](), [setting])
        with pytest.raises(ValueError, match=r"data.class_names .*label maps.*data.kind is pictures"):
            override(RECIPES["mnist"](), ["data.class_names=a,b"])

    def test_none_is_none(self):
        assert override(RECIPES["label-maps"](), ["data.class_names=none"]).data.class_names is None

    @pytest.mark.parametrize(
        ("settings", "recipe"),
        [
            ([], "pictures"),
            (["data.kind=labels"], "label-maps"),
            (["data.kind=levels"], "grey-levels"),
            (["data.classes=150"], "label-maps"),
            (["likelihood.name=categorical"], "label-maps"),
            (["data.channels=1"], "pictures"),
        ],
    )
    def test_settings_say_what_the_data_is(self, settings, recipe, tmp_path):
        Image.new("L", (8, 8)).save(tmp_path / "one.png")
        assert suitable(str(tmp_path), settings).recipe == recipe

    def test_a_set_of_the_hub_is_not_loaded_to_be_looked_at(self):
        assert not holds_labels("hf:owner/name")

    def test_names_of_classes_can_be_set(self):
        changed = override(RECIPES["label-maps"](), ["data.class_names=sky, wet road,car"])
        assert changed.data.class_names == ("sky", "wet road", "car")

    def test_experiments_from_before_label_maps_are_read(self, tmp_path):
        from sqvae.config import Experiment, from_json, to_json

        content = to_json(RECIPES["mnist"]())
        for name in ("kind", "classes", "ignore", "class_names"):
            del content["data"][name]
        assert from_json(Experiment, content) == RECIPES["mnist"]()


@pytest.fixture(scope="module")
def maps(tmp_path_factory):
    """Four classes with names, and places of which nothing is known."""
    folder = write_maps(tmp_path_factory.mktemp("data") / "maps", labels=[0, 1, 2, 3, 255], count=40)
    (folder / "classes.txt").write_text("sky\nroad\ncar\ntree\n")
    return folder


@pytest.fixture(scope="module")
def run(maps, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", "--data", str(maps), "--out", str(out), "--epochs", "2", *SMALL]) == 0
    return out


class TestCommandLine:
    @pytest.fixture(autouse=True)
    def _elsewhere(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    def test_a_folder_of_label_maps_just_trains(self, maps, tmp_path, capsys):
        assert main(["train", "--data", str(maps), "--epochs", "1", *SMALL]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert said.startswith(
            "- data: label maps, because all 24 images looked at are grey images with 4 labels and 255, in areas"
        )
        assert "label maps of 4 classes, 0 to 3" in said
        assert "pixels with the label 255 are ignored" in said
        assert "wrong" in said
        assert "mIoU" in said
        with Image.open(tmp_path / "runs" / "maps" / "pictures" / "epoch-0001.png") as picture:
            words = picture.text["Description"]
        assert words.startswith("maps: validation label maps of maps, after epoch 1 of 1")
        assert "original, reconstruction, wrong labels" in words

    def test_evaluation_names_the_classes(self, run, capsys):
        assert main(["evaluate", str(run), "--json"]) == 0
        measures = json.loads(capsys.readouterr().out)["measures"]
        assert {"pixel_error", "miou", "perplexity"} <= set(measures)
        assert {name for name in measures if name.startswith("iou of")} <= {
            f"iou of {name}" for name in ("sky", "road", "car", "tree")
        }
        with Image.open(run / "results-test.png") as picture:
            *_, legend = picture.text["Description"].splitlines()
        assert set(legend.split(", ")) <= {"sky", "road", "car", "tree", "nothing known (ignored)"}
        for name in measures:  # what occurs in the set is mostly in the examples, too
            assert not name.startswith("iou of") or name.removeprefix("iou of ") in legend
        page = (run / "results-test.md").read_text()
        assert "mIoU, of the" in page
        assert "classes that occur" in page
        assert "bound on the log-density of directions" in page  # from which no bits for a label follow
        assert "bits per dimension" not in page

    def test_there_and_back(self, run, maps, tmp_path, capsys):
        """Decoded maps are label maps again, the same as the tokenizer gives, and readable as data."""
        assert main(["encode", str(run), str(maps), "-o", "codes.safetensors"]) == 0
        assert main(["decode", str(run), "codes.safetensors", "-o", "decoded"]) == 0
        assert main(["reconstruct", str(run), str(maps), "-o", "rebuilt"]) == 0
        names = sorted(path.name for path in Path("decoded").iterdir())
        assert len(names) == 40
        tokenizer = load_tokenizer(run)
        original = torch.from_numpy(np.array(Image.open(maps / "000.png")))[None]
        expected = tokenizer.decode(tokenizer.encode(original))
        for folder in ("decoded", "rebuilt"):
            with Image.open(Path(folder) / "000.png") as image:
                assert image.mode == "P"
                assert np.array_equal(np.asarray(image), expected[0].numpy())

    def test_inspection(self, run, capsys):
        assert main(["inspect", str(run)]) == 0
        said = capsys.readouterr().out
        assert "a label map of 4 classes" in said
        assert MEASURES["decoder_concentration"].label in said
        assert (run / "inspection" / "codes.png").exists()

    def test_colour_given_to_a_model_of_labels(self, run, tmp_path, capsys):
        Image.new("RGB", (24, 24)).save(tmp_path / "photo.png")
        assert main(["encode", str(run), "photo.png", "-o", "codes.safetensors"]) == 1
        said = " ".join(capsys.readouterr().err.split())
        assert "a label map has one number per pixel" in said
        assert main(["reconstruct", str(run), "photo.png", "-o", "rebuilt"]) == 1
        assert "none of the label maps can be read: nothing has been written to rebuilt" in capsys.readouterr().err
        assert not (tmp_path / "rebuilt").exists()

    def test_levels(self, tmp_path, capsys):
        """Grey pictures as 256 classes, there and back."""
        random = np.random.default_rng(0)
        np.save(tmp_path / "grey.npy", random.integers(0, 256, (40, 16, 16), dtype=np.uint8))
        arguments = ["--data", "grey.npy", "--out", "run", "--epochs", "1", *SMALL]
        assert main(["train", "grey-levels", *arguments]) == 0
        assert main(["reconstruct", "run", "grey.npy", "-o", "rebuilt"]) == 0
        assert len(list((tmp_path / "rebuilt").rglob("*.png"))) == 40
        tokenizer = load_tokenizer("run")
        pictures = torch.rand(2, 1, 16, 16)
        rebuilt = tokenizer.reconstruct(pictures)
        assert rebuilt.shape == pictures.shape
        assert set((rebuilt * 255).round().unique().tolist()) <= set(range(256))

    def test_wrong_shapes_for_the_tokenizer(self, run):
        tokenizer = load_tokenizer(run)
        with pytest.raises(ValueError, match=r"label maps must be \(batch, height, width\) for this model"):
            tokenizer.encode(torch.zeros(24, 24).long())
        with pytest.raises(ValueError, match="multiples of 4"):
            tokenizer.encode(torch.zeros(1, 22, 24).long())


def test_camvid():
    folder_of("camvid_labels")
    prepared = prepare(RECIPES["camvid"](), announce=lambda text: None)
    sets = prepared.data
    assert [len(part) for part in (sets.train, sets.validation, sets.test)] == [367, 101, 233]
    assert (prepared.experiment.data.classes, prepared.experiment.data.ignore) == (11, 11)
    assert prepared.experiment.data.class_names[3] == "road"
    assert sets.train.take(slice(None)).unique().tolist() == list(range(12))

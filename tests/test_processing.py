"""From what people have in Python, images, arrays, files and sound, to codes: the same as on the command line."""

import ast
import pickle
import re
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

import sqvae
from kinds import SHAPE, picture_tokenizer, speech_tokenizer
from real_data import folder_of, photographs
from sqvae.cli import main
from sqvae.data import ImageProcessor, Preprocessing, UnreadablePictureError
from sqvae.data.speech import FEATURES, SpeechProcessor, UnreadableRecordingError, read_audio, write_audio
from sqvae.modalities.speech.views import view_utterance
from sqvae.reports.wording import as_typed
from test_detection import face, image, voc_palette

TURNED = 6  # by EXIF, a quarter


@pytest.fixture(scope="module", params=["pictures", "levels"])
def tokenizer(request):
    return picture_tokenizer(request.param)


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> list[Path]:
    """Photographs as they lie about: large and small, in colour and grey, lossy and not, turned and transparent."""
    folder = tmp_path_factory.mktemp("photos")
    exif = Image.Exif()
    exif[0x0112] = TURNED
    colour = {name: Image.fromarray(pixels) for name, pixels in photographs().items()}
    colour["astronaut"].save(folder / "lossy.jpg", quality=90)
    colour["rocket"].save(folder / "turned.jpg", exif=exif)
    colour["chelsea"].save(folder / "colour.png")
    colour["coffee"].convert("L").save(folder / "grey.png")
    colour["coffee"].quantize(32).save(folder / "palette.gif")
    Image.merge("RGBA", (*colour["chelsea"].split(), colour["chelsea"].convert("L"))).save(folder / "clear.png")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def maps(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("maps")
    labels = [face(number) % 5 for number in range(3)]
    image(labels[0], voc_palette()).save(folder / "palette.png")
    Image.fromarray(labels[1].astype(np.uint8)).save(folder / "grey.png")
    Image.fromarray(labels[2].astype(np.uint16)).save(folder / "sixteen.png")
    return sorted(folder.iterdir())


def typed(model, files, folder) -> torch.Tensor:
    """The codes of files by `sqvae encode`, in the order of the files."""
    model.save_pretrained(folder / "model")
    out = folder / "codes.safetensors"
    assert main(["encode", str(folder / "model"), *map(str, files), "-o", str(out)]) == 0
    codes = sqvae.CodeFile.open(out)
    ((names, batch),) = codes.batches(64)
    assert names == [path.name for path in files]
    return batch.long()


class TestPictures:
    def test_the_codes_are_those_of_the_command_line(self, tokenizer, photos, tmp_path):
        expected = typed(tokenizer, photos, tmp_path)
        assert len(expected.unique()) > 3  # so that it could tell
        assert tokenizer.encode(photos).equal(expected)
        assert tokenizer.encode([str(path) for path in photos]).equal(expected)
        with ExitStack() as stack:
            images = [stack.enter_context(Image.open(path)) for path in photos]
            sizes = [one.size for one in images]
            assert tokenizer.encode(images).equal(expected)
            assert [one.size for one in images] == sizes  # somebody's images stay as they are
            for one, size in zip(images, sizes, strict=True):
                one.load()
                assert one.size == size
            assert tokenizer.encode(images).equal(expected)  # loaded, they give the same
        lossy = next(index for index, path in enumerate(photos) if path.name == "lossy.jpg")
        pixels = np.array(Image.open(photos[lossy]))
        assert tokenizer.encode(pixels).equal(expected[lossy][None])
        for path, codes in zip(photos, expected, strict=True):
            assert tokenizer.encode(path).equal(codes[None])
            assert tokenizer.encode(tokenizer.preprocess(path)).equal(codes[None])

    def test_arrays_and_tensors(self, tokenizer):
        pixels = photographs()["chelsea"].copy()
        expected = tokenizer.preprocess(Image.fromarray(pixels))
        assert expected.dtype == torch.uint8
        assert expected.shape == (1, *tokenizer.shape)
        for same in (
            pixels,
            pixels / 255,
            (pixels / 255).astype(np.float32),
            pixels.astype(np.uint16) * 257,
            pixels[None],
            torch.from_numpy(pixels).permute(2, 0, 1),
            torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255,
            [pixels],
            (Image.fromarray(pixels),),
        ):
            assert tokenizer.preprocess(same).equal(expected)
            if not isinstance(same, torch.Tensor):
                assert tokenizer.encode(same).equal(tokenizer.encode(expected))
        grey = np.array(Image.fromarray(pixels).convert("L"))
        expected = tokenizer.preprocess(Image.fromarray(grey))
        for same in (
            grey,
            grey[..., None],
            grey[None, ..., None],
            torch.from_numpy(grey),
            torch.from_numpy(grey)[None],
        ):
            assert tokenizer.preprocess(same).equal(expected)
        mixed = tokenizer.preprocess([grey, pixels, Image.fromarray(pixels)])
        assert mixed[0].equal(expected[0])
        assert mixed[1].equal(mixed[2])

    def test_a_tensor_is_taken_as_it_is(self, tokenizer):
        channels, height, width = tokenizer.shape
        batch = torch.rand(3, channels, 2 * height, width)
        codes = tokenizer.encode(batch)
        assert codes.shape == (3, height // 2, width // 4)
        assert tokenizer.encode(batch[0]).equal(codes[:1])  # one picture is a batch of one

    def test_many_are_sent_through_the_model_a_few_at_a_time(self, tokenizer):
        pixels = np.random.default_rng(0).integers(0, 256, (150, 9, 17, 3), dtype=np.uint8)
        expected = tokenizer.encode(tokenizer.preprocess(pixels))
        assert tokenizer.encode(list(pixels)).equal(expected)
        assert tokenizer.encodings(pixels).allclose(tokenizer.encodings(tokenizer.preprocess(pixels)), atol=1e-5)

    def test_there_and_back_as_images(self, tokenizer, photos):
        rebuilt = tokenizer.reconstruct(photos)
        assert rebuilt.allclose(tokenizer.decode(tokenizer.encode(photos)), atol=1e-5)
        images = tokenizer.images(rebuilt)
        assert [one.size for one in images] == [tokenizer.shape[:0:-1]] * len(photos)
        assert {one.mode for one in images} == {"RGB" if tokenizer.shape[0] == 3 else "L"}
        assert np.allclose(
            np.asarray(images[0], float).squeeze() / 255, rebuilt[0].permute(1, 2, 0).squeeze(), atol=0.01
        )

    def test_the_processor_alone_goes_to_workers(self, photos):
        """No model is needed: it may be pickled, and be a data loader's collate function."""
        processor = sqvae.ImageProcessor(Preprocessing(size=16, channels=3))
        assert pickle.loads(pickle.dumps(processor)) == processor
        loader = DataLoader([str(path) for path in photos], batch_size=4, collate_fn=processor)
        assert [len(batch) for batch in loader] == [4, 2]
        with pytest.raises(ValueError, match="size and channels must be known"):
            ImageProcessor(Preprocessing(channels=3))

    @pytest.mark.parametrize(
        ("given", "error", "words"),
        [
            ([], ValueError, r"there are no \w+: .* at least one"),
            (5, TypeError, "expected PIL images, paths, arrays or tensors, or a list of them; got int"),
            ([5], TypeError, "image 0 must be a PIL image, a path, an array or a tensor; got int"),
            ("nowhere.png", FileNotFoundError, "there is no file nowhere.png"),
            (".", ValueError, "it is a folder; pass its files, or all of it to sqvae.encode_to_file"),
            (np.zeros((8, 8, 7), np.uint8), ValueError, r"image 0 .* it has the shape \(8, 8, 7\), .*must be"),
            ([np.zeros((8, 8)), np.full((8, 8), 200.0)], ValueError, r"image 1 .* must lie in \[0, 1\]"),
            (
                np.zeros((8, 8), np.int64),
                ValueError,
                r"int64 of shape \(8, 8\); .* uint8, uint16, bool, or .* in \[0, 1\]",
            ),
            (np.zeros((8, 8), np.int64), ValueError, "0 to 255, pass it as uint8"),
            (np.full((8, 8), np.nan), ValueError, "image 0 .* all NaN"),
            (Path(__file__), UnreadablePictureError, "test_processing.py can't be read: .*Pillow"),
        ],
    )
    def test_what_can_t_be_taken(self, tokenizer, given, error, words):
        with pytest.raises(error, match=words):
            tokenizer.encode(given)

    def test_nan_in_a_tensor_is_named(self, tokenizer):
        pictures = torch.rand(3, *tokenizer.shape)
        pictures[1, :, 0, 0] = torch.nan
        with pytest.raises(ValueError, match=f"picture 1 holds NaN .{tokenizer.shape[0]} of all ") as failure:
            tokenizer.encode(pictures)
        assert "diverged" not in str(failure.value)

    def test_codes_as_arrays_and_lists(self, tokenizer):
        codes = tokenizer.encode(torch.rand(3, *tokenizer.shape))
        expected = tokenizer.decode(codes)
        for same in (codes.numpy(), codes.numpy().astype(np.uint16), codes.tolist(), list(codes)):
            assert tokenizer.decode(same).equal(expected)
        assert tokenizer.decode(codes[0]).allclose(expected[:1], atol=1e-6)  # of one picture
        for wrong in (codes[0, 0], codes[None], codes[0, 0].numpy()):
            with pytest.raises(ValueError, match=r"codes must be \(batch, h, w\), or \(h, w\) of one .* got shape"):
                tokenizer.decode(wrong)
        with pytest.raises(ValueError, match="of all pictures of one shape"):
            tokenizer.decode([[[1, 2]], [[1]]])
        with pytest.raises(TypeError, match="codes must be whole numbers"):
            tokenizer.decode("codes.npz")

    def test_one_picture_is_no_batch_to_save(self, tokenizer):
        picture = torch.rand(tokenizer.shape)
        wanted = rf"must be \(batch, {tokenizer.shape[0]}, height, width\).* one alone is x\[None\]"
        with pytest.raises(ValueError, match=wanted):
            tokenizer.images(picture)
        assert len(tokenizer.images(picture[None])) == 1


class TestLabelMaps:
    def test_the_codes_are_those_of_the_command_line(self, maps, tmp_path):
        tokenizer = picture_tokenizer("labels")
        expected = typed(tokenizer, maps, tmp_path)
        assert len(expected.unique()) > 3
        assert tokenizer.encode(maps).equal(expected)
        assert tokenizer.encode([Image.open(path) for path in maps]).equal(expected)
        arrays = [np.asarray(Image.open(path)) for path in maps]
        assert tokenizer.encode(arrays).equal(expected)
        assert tokenizer.encode(np.stack([array.astype(np.int64) for array in arrays])).equal(expected)
        assert tokenizer.encode(str(maps[0])).equal(expected[:1])

    def test_arrays(self):
        tokenizer = picture_tokenizer("labels")
        labels = face(0) % 5
        expected = tokenizer.preprocess(labels)
        assert expected.shape == (1, *SHAPE["labels"])
        for same in (labels.astype(np.uint8), labels[..., None], labels[None], torch.from_numpy(labels), [labels]):
            assert tokenizer.preprocess(same).equal(expected)
        images = tokenizer.images(tokenizer.reconstruct(labels))
        assert (images[0].mode, images[0].size) == ("P", (12, 8))

    def test_what_can_t_be_taken(self):
        tokenizer = picture_tokenizer("labels")
        with pytest.raises(ValueError, match=r"label map 1 .* has the labels 7\b.* 0 to 4\b") as failure:
            tokenizer.encode([np.zeros((8, 8), int), np.full((8, 8), 7)])
        assert "--" not in str(failure.value)
        with pytest.raises(ValueError, match=r"it has the shape \(8, 8, 3\), .*must be \(height, width\)"):
            tokenizer.encode([np.zeros((8, 8, 3), np.uint8)])
        with pytest.raises(ValueError, match=r"label maps are .*\(height, width\)"):
            tokenizer.encode(np.zeros((8, 8)))


@pytest.fixture(scope="module")
def speech():
    return speech_tokenizer()


def spoken(folder: Path, model, files) -> list[torch.Tensor]:
    """The codes of recordings by `sqvae encode`."""
    model.save_pretrained(folder / "model")
    out = folder / "units.safetensors"
    assert main(["encode", str(folder / "model"), *map(str, files), "-o", str(out)]) == 0
    return [unit.codes.long() for unit in sqvae.UnitFile.open(out).units()]


def same(found, expected) -> bool:
    return len(found) == len(expected) and all(a.long().equal(b.long()) for a, b in zip(found, expected, strict=True))


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    """At two rates, in two formats; the last is so long that the command line reads it in pieces."""
    folder, random = tmp_path_factory.mktemp("recordings"), np.random.default_rng(0)
    found = []
    for name, rate, seconds in (("a.wav", 16_000, 1), ("b.flac", 44_100, 2), ("c.wav", 16_000, 45)):
        time = np.arange(rate * seconds) / rate
        tone = np.sin(2 * np.pi * 200 * time * (1 + 0.2 * np.sin(3 * time))) * (0.4 + 0.3 * np.sin(5 * time))
        write_audio(folder / name, 0.5 * tone + 0.01 * random.standard_normal(len(time)), rate)
        found.append(folder / name)
    return found


class TestRecordings:
    def test_the_codes_are_those_of_the_command_line(self, speech, files, tmp_path):
        expected = spoken(tmp_path, speech, files)
        assert len(torch.cat(expected).unique()) > 3
        assert same(speech.encode(files), expected)
        assert same(speech.encode(str(files[0])), expected[:1])
        assert same(speech.encode([read_audio(path, speech.features.rate) for path in files]), expected)

    def test_of_real_speakers(self, speech, tmp_path):
        files = sorted(folder_of("librispeech_dev_clean_subset").rglob("*.flac"))[:5]
        assert same(speech.encode(files), spoken(tmp_path, speech, files))

    def test_samples_at_their_own_rate(self, speech, files):
        import soundfile

        samples, rate = soundfile.read(files[1], dtype="float32")
        whole, _ = soundfile.read(files[1], dtype="int16")
        expected = speech.encode(files[1])
        for given in ((samples, rate), [(samples, rate)], (torch.from_numpy(samples), rate), (whole, rate)):
            assert same(speech.encode(given), expected)
        assert same(speech.encode(samples, rate=rate), expected)
        assert same(speech.encode(torch.from_numpy(whole), rate=rate), expected)
        assert same(speech.encode([files[0], samples], rate=rate), [*speech.encode(files[0]), *expected])
        assert same(speech.encode([samples, samples], rate=rate), 2 * expected)

    def test_channels_are_mixed_as_those_of_files(self, speech, tmp_path):
        import soundfile

        stereo = (0.1 * np.random.default_rng(0).standard_normal((20_000, 2))).astype(np.float32)
        soundfile.write(tmp_path / "stereo.wav", stereo, 22_050, subtype="FLOAT")
        samples, rate = soundfile.read(tmp_path / "stereo.wav", dtype="float32")
        assert samples.shape == (20_000, 2)
        expected = speech.preprocess(tmp_path / "stereo.wav")
        for given in (samples, torch.from_numpy(samples), [samples], (samples, rate)):
            (frames,) = speech.preprocess(given, rate=rate)
            torch.testing.assert_close(frames, expected[0])
        assert len(speech.encode(samples, rate=rate)) == 1
        assert speech.preprocess(samples[:, :1])[0].equal(speech.preprocess(samples[:, 0])[0])

    def test_codes_of_one_utterance_or_of_several(self, speech, files):
        (codes,) = speech.encode(files[0])
        (expected,) = speech.decode([codes], "anna")
        for given in (codes, codes.numpy(), codes.tolist(), codes.int(), [codes.tolist()], codes.unsqueeze(0)):
            (frames,) = speech.decode(given, "anna")
            assert frames.equal(expected)
        assert len(speech.decode(codes[:50].view(2, 25), ["anna", "ben"])) == 2
        assert len(speech.sound(expected.numpy())) == len(speech.sound(expected))

    @pytest.mark.parametrize(
        ("codes", "speakers", "error", "words"),
        [
            (torch.rand(5), "anna", ValueError, r"utterance 0 must be whole numbers, \(n,\); got torch.float32"),
            (torch.zeros(1, 2, 3).long(), "anna", ValueError, r"got torch.int64 of the shape \(2, 3\)"),
            ([1, 99], "anna", ValueError, "below 16; those of utterance 0 lie between 1 and 99"),
            ([1, 2], 0, TypeError, "a speaker is named by a text, such as 'anna'; got 0"),
            ([1, 2], [0], TypeError, "a speaker is named by a text, such as 'anna'; got 0"),
            ([1, 2], None, TypeError, "a speaker is named by a text, such as 'anna'; got None"),
        ],
    )
    def test_codes_that_can_t_be_decoded(self, speech, codes, speakers, error, words):
        with pytest.raises(error, match=words):
            speech.decode(codes, speakers)

    def test_units_to_a_file(self, speech, files, tmp_path):
        out = tmp_path / "units.npz"
        encoded = sqvae.encode_speech_to_file(speech, files[:2], out)
        assert (encoded.recordings, round(encoded.seconds)) == (2, 3)
        assert same([unit.codes for unit in sqvae.UnitFile.open(out).units()], speech.encode(files[:2]))
        assert sqvae.encode_speech_to_file(speech, str(files[0]), out).recordings == 1
        with pytest.raises(TypeError, match=r"got a SpeechTokenizer\..*sqvae.encode_speech_to_file"):
            sqvae.encode_to_file(speech, files, out)
        with pytest.raises(TypeError, match=r"got a ImageTokenizer.*sqvae.encode_to_file"):
            sqvae.encode_speech_to_file(picture_tokenizer("pictures"), files, out)

    def test_silence_is_black(self, speech):
        (silent,) = speech.preprocess(np.zeros(16_000))
        assert view_utterance(speech, silent).original.max() < 10
        (loud,) = speech.preprocess(np.random.default_rng(0).standard_normal(16_000))
        assert view_utterance(speech, loud).original.max() > 200

    def test_sound_is_of_one_utterance(self, speech):
        frames = speech.decode([[1, 2, 3], [4, 5, 6]], "anna")
        with pytest.raises(
            ValueError, match=r"one utterance's frames at a time, \(frames, 80\); got a list: call sound"
        ):
            speech.sound(frames)
        with pytest.raises(ValueError, match=r"got the shape \(2, 6, 80\)"):
            speech.sound(torch.stack(frames))

    def test_frames_alone(self, speech, files):
        processor = SpeechProcessor(FEATURES["zerospeech"])
        assert pickle.loads(pickle.dumps(processor)) == processor == speech.preprocess
        frames = processor(files[:2])
        assert [one.shape[1] for one in frames] == [80, 80]
        assert same(speech.encode_frames(frames), speech.encode(files[:2]))
        rebuilt = speech.reconstruct(files[:2], "anna")
        assert all(a.equal(b) for a, b in zip(rebuilt, speech.reconstruct(frames, "anna"), strict=True))
        encodings = speech.encodings(files[:2])
        assert all(a.equal(b) for a, b in zip(encodings, speech.encodings(frames), strict=True))

    @pytest.mark.parametrize(
        ("given", "error", "words"),
        [
            ([], ValueError, "there are no recordings: .* at least one"),
            (5, TypeError, "expected paths, samples, or pairs of samples and their rate, or a list of them; got int"),
            ([5], TypeError, "recording 0 must be a path, samples, or a pair"),
            ("nowhere.wav", FileNotFoundError, "there is no file nowhere.wav"),
            (".", ValueError, "is a folder; pass its files"),
            (
                np.zeros((2, 9000)),
                ValueError,
                r"has the shape \(2, 9000\); expected one of \(samples,\), or of \(samples",
            ),
            (
                [np.zeros((342, 80))],
                ValueError,
                r"the shape \(342, 80\).* several recordings as a list. If they are log-mel",
            ),
            (
                np.zeros(10),
                ValueError,
                "recording 0 can't be used: it is too short: 10 samples at 16,000 Hz, .* 1 frame",
            ),
            (np.zeros(0), ValueError, "it is too short: 0 samples"),
            ((np.zeros(9000, np.float32), 2), ValueError, "rate must be between 1,000 and 1,000,000 Hz, got 2"),
            (Path(__file__), UnreadableRecordingError, "test_processing.py can't be read: not a recording"),
        ],
    )
    def test_what_can_t_be_taken(self, speech, given, error, words):
        with pytest.raises(error, match=words):
            speech.encode(given)


class TestWords:
    """The library speaks of settings and arguments, the command line of options."""

    def test_no_error_of_the_library_names_an_option(self):
        rooms = Path(sqvae.__file__).parent
        files = [file for file in rooms.rglob("*.py") if file.relative_to(rooms).parts[0] not in ("cli", "explore")]
        assert len(files) > 100
        for file in files:
            raised = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Raise)]
            for text in (ast.unparse(node) for node in raised):
                without_commands = re.sub(r"`(sqvae|pip) [^`]*`", "", text)
                assert not re.search(r"(^|[\s'\"(])--[a-z]", without_commands), f"{file.name}: {text}"

    @pytest.mark.parametrize(
        ("said", "typed"),
        [
            ("pass `data.size=128` for larger ones", "pass --set data.size=128 for larger ones"),
            ("choose another with `out=`", "choose another with --out"),
            ("pass `overwrite=True`", "pass --overwrite"),
            ("pass `source=/data/a b`", "pass --data /data/a b"),
            ("`allow_missing=True`, or `sqvae train`", "--allow-missing, or `sqvae train`"),
        ],
    )
    def test_the_command_line_shows_how(self, said, typed):
        assert as_typed(said) == typed

    def test_in_notes_and_errors(self, tmp_path, capsys):
        for number in range(12):
            Image.fromarray(photographs()["chelsea"]).resize((300, 300 - number)).save(tmp_path / f"{number}.png")
        small = ["--set", "network.widths=4,4", "--set", "quantizer.dim=4", "--set", "training.passes_per_epoch=1"]
        command = ["train", "--data", str(tmp_path), "--out", str(tmp_path / "run"), "--epochs", "1", *small]
        assert main(command) == 0
        assert "pass --set data.size=128 for larger ones" in " ".join(capsys.readouterr().err.split())
        assert main(command) == 1
        assert "or choose another with --out" in " ".join(capsys.readouterr().err.split())

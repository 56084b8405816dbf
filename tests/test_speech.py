"""Speech as a person uses it: from a folder of recordings to units, and back to frames and sound."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from safetensors.torch import load_file

from real_data import folder_of
from sqvae.cli import main
from sqvae.codec import CodeFileError, UnitFile, UnitWriter
from sqvae.config import ConfigurationError, Experiment, override
from sqvae.data.speech import FEATURES, load_speech, read_audio
from sqvae.modalities.images.tokenizer import ImageTokenizer, load_tokenizer
from sqvae.modalities.speech import tokenizer as speech_tokenizer
from sqvae.modalities.speech.data import prepare_speech
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.paper import ARTEFACTS, SCALES, Results
from sqvae.recipes import RECIPES
from sqvae.tokenizers import load
from sqvae.training import CheckpointError, read_records

SMALL = [
    *("speech.channels=24", "speech.hidden=16", "speech.speaker_dim=8", "speech.segments_per_epoch=160"),
    *("quantizer.codebook_size=16", "quantizer.dim=8", "training.batch_size=16", "training.log_every=5"),
]
TRAIN = ["train", "speech", "--data", "voices", *(part for setting in SMALL for part in ("--set", setting))]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("speech") / "run"
    assert main([*TRAIN, "--epochs", "3", "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def recordings(tmp_path) -> Path:
    """Of a voice that the model knows and of one that it does not: stereo, another rate, and an odd length."""
    random = np.random.default_rng(0)
    folder = tmp_path / "recordings"
    for name, rate, shape in (
        ("alto/a.wav", 16_000, 16_000),
        ("alto/b.flac", 44_100, (30_000, 2)),
        ("stranger/c.wav", 8_000, 7_777),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / name, 0.1 * random.standard_normal(shape), rate)
    return folder


class TestTraining:
    def test_it_says_what_it_found_and_what_came_of_it(self, run, capsys):
        assert main(["evaluate", str(run)]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "MSE in dB²" in said
        assert "codes per second" in said
        record = json.loads((run / "results-test.json").read_text())
        assert record["measures"]["codes_per_second"] == 50
        expected = 50 * np.log2(record["measures"]["perplexity"])
        assert record["measures"]["bits_per_second"] == pytest.approx(expected)
        assert (run / "results-test.png").stat().st_size > 0
        assert (run / "curves.png").exists()

    def test_it_learns(self, run):
        validations = [record for record in read_records(run / "log.jsonl") if record["kind"] == "validation"]
        assert validations[-1]["mse_db"] < 0.8 * validations[0]["mse_db"]

    def test_errors_in_decibels_undo_the_normalisation(self, run):
        """The range of these features is 80 dB, so that dB² are 80² times the network's."""
        measures = json.loads((run / "results-test.json").read_text())["measures"]
        assert measures["mse_db"] == pytest.approx(80**2 * measures["mse"])

    @pytest.mark.slow
    def test_a_killed_run_resumes_to_the_same_bits(self, run, tmp_path):
        command = [sys.executable, "-m", "sqvae", *TRAIN, "--epochs", "3", "--out", str(tmp_path / "run")]
        command += ["--set", "training.threads=1"]
        straight = [*command[:-3], str(tmp_path / "straight"), *command[-2:]]
        subprocess.run(straight, check=True, capture_output=True)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        log = tmp_path / "run" / "log.jsonl"
        while process.poll() is None and not (log.exists() and '"validation"' in log.read_text()):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert main(["resume", str(tmp_path / "run")]) == 0
        one, other = (load_file(tmp_path / name / "last" / "model.safetensors") for name in ("run", "straight"))
        assert one.keys() == other.keys()
        for name, weights in one.items():
            assert torch.equal(weights, other[name]), name

    def test_statistics_of_the_training_set_are_kept_with_the_model(self):
        experiment = override(RECIPES["speech"](), ["data.source=voices", "speech.features=vctk", *SMALL])
        prepared = prepare_speech(experiment, announce=lambda text: None)
        mean, deviation = prepared.data.train.statistics()
        weights = prepared.new_model().state_dict()
        torch.testing.assert_close(weights["offset"], mean)
        torch.testing.assert_close(weights["scale"], deviation)
        assert prepared.experiment.speech.speakers == ("alto", "bass", "soprano", "tenor")

    def test_type_two_is_refused_with_the_papers_reason(self):
        with pytest.raises(ConfigurationError, match=r"gaussian-2 .*32 frames.*gaussian-1, gaussian-3 or gaussian-4"):
            override(RECIPES["zerospeech"](), ["quantizer.name=gaussian-2"])

    @pytest.mark.usefixtures("unmeasured")
    def test_a_folder_of_recordings_is_known_for_one(self, recordings, capsys):
        assert main(["train", "--data", str(recordings), "--dry-run"]) == 0
        assert json.loads(capsys.readouterr().out)["recipe"] == "speech"

    @pytest.mark.parametrize("name", ["speech", "vctk", "zerospeech", "librispeech"])
    def test_recipes_are_the_papers(self, name):
        experiment: Experiment = RECIPES[name]()
        assert (experiment.training.batch_size, experiment.speech.segment, experiment.training.clip) == (52, 32, 1.0)
        if name != "speech":
            plan, speech = experiment.training, experiment.speech
            assert plan.epochs * speech.segments_per_epoch // plan.batch_size == 500_000
            assert (plan.learning_rate, plan.schedule) == (4e-4, "halved")
            assert (speech.channels, speech.hidden, speech.speaker_dim, speech.jitter) == (768, 128, 64, 0.5)

    def test_every_utterance_is_met_however_few_crops_an_epoch_has(self):
        from sqvae.data.speech import Segments
        from sqvae.training import Order

        data = load_speech("voices")
        segments = Segments(data.train, data.speakers, length=32, context=1, number=8)
        order, met = Order(8, 4, seed=0), set()
        heard = [data.train.frames(index)[:8] for index in range(len(data.train))]
        for epoch in range(120):
            torch.manual_seed(epoch)
            crops = segments.take(order.batch(epoch, epoch % 2))
            assert crops.frames.shape == (4, 34, 80)
            for crop, speaker in zip(crops.frames, crops.speakers, strict=True):
                own = [i for i in range(len(heard)) if data.speakers.index(data.train.speakers[i]) == speaker]
                met |= {i for i in own if (data.train.frames(i).unsqueeze(0) == crop[1]).all(-1).any()}
        assert met == set(range(len(data.train)))

    def test_crops_are_pieces_of_one_utterance_with_the_frames_around_them(self):
        from sqvae.data.speech import Segments

        data = load_speech("voices")
        segments = Segments(data.train, data.speakers, length=32, context=1, number=1000)
        whole = torch.nn.functional.pad(data.train.frames(0).T, (1, 1), mode="replicate").T
        for seed in range(40):
            torch.manual_seed(seed)
            first = int(torch.rand((), dtype=torch.float64) * len(data.train))
            torch.manual_seed(seed)
            crop = segments.take(torch.tensor([len(data.train) - first])).frames[0]
            starts = [start for start in range(len(whole) - 33) if torch.equal(whole[start : start + 34], crop)]
            assert len(starts) == 1

    def test_sets_of_strangers_are_replaced_and_it_says_so(self, recordings, tmp_path):
        for part, speaker in (("train", "alto"), ("train", "tenor"), ("validation", "x"), ("test", "y")):
            for number in range(4):
                target = tmp_path / "sets" / part / speaker / f"{number}.wav"
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes((recordings / "alto" / "a.wav").read_bytes())
        data = load_speech(tmp_path / "sets")
        for part in (data.validation, data.test):
            assert len(part)
            assert set(part.speakers) <= set(data.speakers) == {"alto", "tenor"}
        assert sum("none of its speakers is in the training set" in note for note in data.notes) == 2

    def test_one_recording_of_each_speaker_is_enough_to_begin(self, recordings, tmp_path):
        for speaker in "abcd":
            (tmp_path / "few" / speaker).mkdir(parents=True)
            (tmp_path / "few" / speaker / "1.wav").write_bytes((recordings / "alto" / "a.wav").read_bytes())
        data = load_speech(tmp_path / "few")
        assert set(data.validation.speakers) <= set(data.speakers)
        assert set(data.test.speakers) <= set(data.speakers)
        assert any("too few recordings per speaker" in note for note in data.notes)

    def test_items_that_are_not_there_are_missed_before_training(self, tmp_path):
        experiment = override(RECIPES["speech"](), ["data.source=voices", f"speech.abx={tmp_path}", *SMALL])
        with pytest.raises(FileNotFoundError, match="holds no list of ABX items"):
            prepare_speech(experiment, announce=lambda text: None)


def test_abx_that_fails_in_the_end_costs_no_other_measure(tmp_path, capsys, monkeypatch):
    from sqvae.data.speech import MADE_UP
    from sqvae.modalities.speech import data as speech
    from sqvae.sweeps import Planned, load_record
    from sqvae.sweeps.worker import run_member
    from sqvae.training import RunFolder

    def fail(*arguments):
        raise OSError("the disk with the items is gone")

    monkeypatch.setattr(speech, "abx_measures", fail)
    folder = tmp_path / "run"
    assert main([*TRAIN, "--set", f"speech.abx={MADE_UP}", "--epochs", "1", "--out", str(folder)]) == 0
    words = f"ABX on {MADE_UP} could not be measured: the disk with the items is gone"
    assert words in " ".join(capsys.readouterr().err.split())
    results = json.loads((folder / "results-test.json").read_text())
    assert results["notes"] == [words]
    assert results["measures"]["mse_db"] > 0
    assert words in (folder / "results-test.md").read_text()
    # The same in a sweep, whose records keep both.
    experiment = override(
        RECIPES["speech"](), ["data.source=voices", f"speech.abx={MADE_UP}", "training.epochs=1", *SMALL]
    )
    planned = Planned(experiment, {"data": "librispeech", "method": "sq-vae-1"})
    run_member(planned, RunFolder(tmp_path / "member"), tmp_path / "records")
    record = load_record(tmp_path / "records", planned)
    assert record.notes == [words]
    assert record.measures["mse_db"] > 0
    assert not any(name.startswith("abx") for name in record.measures)
    content = ARTEFACTS["table-10"].content(Results(SCALES["short"], None, [record], 0, tmp_path / "records"))
    assert not content.tables
    assert any(words in note for note in content.notes)


class TestUse:
    def test_a_folder_of_one_speaker_is_that_speaker_s(self, run, recordings, tmp_path):
        for given, out in ((recordings / "alto", "one"), (recordings / "alto" / "a.wav", "two")):
            assert main(["reconstruct", str(run), str(given), "-o", str(tmp_path / out)]) == 0
            assert (tmp_path / out / "a.npy").exists()
        arguments = ["reconstruct", str(run), str(recordings / "stranger"), "-o", str(tmp_path / "none")]
        assert main(arguments) != 0

    def test_a_continuous_latent_reconstructs_and_says_that_it_has_no_codes(self, recordings, tmp_path, capsys):
        out = str(tmp_path / "vae")
        assert main([*TRAIN, "--set", "quantizer.name=gaussian-latent", "--epochs", "1", "--out", out]) == 0
        assert "sqvae reconstruct" in " ".join(capsys.readouterr().out.split())
        assert main(["reconstruct", out, str(recordings / "alto"), "-o", str(tmp_path / "out")]) == 0
        assert (tmp_path / "out" / "a.npy").exists()
        assert main(["encode", out, str(recordings / "alto"), "-o", str(tmp_path / "codes.safetensors")]) != 0
        assert "has a continuous latent, and no codes" in " ".join(capsys.readouterr().err.split())

    def test_a_recording_is_not_replaced_by_codes(self, run, recordings, capsys):
        target = recordings / "alto" / "a.wav"
        before = target.read_bytes()
        assert main(["encode", str(run), str(target), "-o", str(target)]) != 0
        assert "must end in .safetensors, .npz or .txt" in " ".join(capsys.readouterr().err.split())
        assert target.read_bytes() == before

    def test_damaged_units_are_refused_as_a_whole(self, tmp_path):
        path = tmp_path / "units.safetensors"
        with UnitWriter(path, codebook_size=16, fingerprint="f", codes_per_second=50, rate=16_000) as writer:
            writer.add(torch.tensor([1, 2]))
            writer.end("x", "alto", frames=9, samples=600)
        with pytest.raises(CodeFileError, match="is damaged: its parts"):
            UnitFile.open(path)
        (tmp_path / "units.txt").write_text("a\t1 2 3\n")
        with pytest.raises(CodeFileError, match="units as text are for other tools"):
            UnitFile.open(tmp_path / "units.txt")

    def test_there_and_back(self, run, recordings, tmp_path, capsys):
        units = tmp_path / "units.safetensors"
        assert main(["encode", str(run), str(recordings), "-o", str(units)]) == 0
        file = UnitFile.open(units)
        assert file.names == ["alto/a.wav", "alto/b.flac", "stranger/c.wav"]
        assert file.speakers == ["alto", "alto", "stranger"]
        assert file.codes_per_second == 50
        assert main(["decode", str(run), str(units), "-o", str(tmp_path / "out"), "--audio", "--speaker", "bass"]) == 0
        assert "neural vocoder" in " ".join(capsys.readouterr().out.split())
        for unit in file.units():
            frames = np.load((tmp_path / "out" / unit.name).with_suffix(".npy"))
            assert frames.shape == (unit.frames, 80)
            assert len(unit.codes) == -(-unit.frames // 2)
            sound, rate = soundfile.read((tmp_path / "out" / unit.name).with_suffix(".wav"))
            assert (len(sound), rate) == (unit.samples, 16_000)
            assert unit.samples == len(read_audio(recordings / unit.name, 16_000))

    def test_what_is_said_of_one_recording(self, run, recordings, tmp_path, capsys):
        def said(command: str, *arguments: object) -> str:
            assert main([command, str(run), *map(str, arguments)]) == 0
            return " ".join(capsys.readouterr().out.split())

        units = tmp_path / "units.safetensors"
        assert said("encode", recordings / "alto" / "a.wav", "-o", units).startswith("1 recording, ")
        told = said("decode", units, "-o", tmp_path / "out")
        assert told.startswith("1 recording in ")
        assert told.endswith("log-mel frames in dB, (frames, 80), as .npy; --audio writes sound as well")

    @pytest.mark.parametrize("name", ["x.wav", "x.png", "x.npy"])
    def test_a_folder_is_not_called_like_a_file(self, run, recordings, tmp_path, capsys, name):
        assert main(["reconstruct", str(run), str(recordings / "alto"), "-o", str(tmp_path / name)]) != 0
        assert f"ends in {name[1:]}, like a file, and here -o names the folder" in " ".join(
            capsys.readouterr().err.split()
        )
        assert not (tmp_path / name).exists()

    def test_a_recording_is_no_file_of_units(self, run, recordings, tmp_path, capsys):
        assert main(["decode", str(run), str(recordings / "alto" / "a.wav"), "-o", str(tmp_path / "out")]) != 0
        assert "file of units: encode it first" in " ".join(capsys.readouterr().err.split())

    def test_items_that_are_not_there(self, run, tmp_path, capsys):
        assert main(["abx", str(run), str(tmp_path / "nope.item"), "--data", "voices"]) != 0
        assert f"there is no file {tmp_path / 'nope.item'}" in "".join(capsys.readouterr().err.splitlines())

    def test_units_for_numpy(self, run, recordings, tmp_path):
        plain, units = tmp_path / "units.safetensors", tmp_path / "units.npz"
        for path in (plain, units):
            assert main(["encode", str(run), str(recordings), "-o", str(path)]) == 0
        found, expected = np.load(units), UnitFile.open(plain)
        assert found["names"].tolist() == expected.names
        assert found["speakers"].tolist() == ["alto", "alto", "stranger"]
        assert (found["codes_per_second"], found["rate"], found["codebook_size"]) == (50, 16_000, 16)
        assert found["codes"].tolist() == [code for unit in expected.units() for code in unit.codes.tolist()]
        again = UnitFile.open(units)
        for unit, other in zip(again.units(), expected.units(), strict=True):
            assert torch.equal(unit.codes, other.codes)
            assert (unit.name, unit.frames, unit.samples) == (other.name, other.frames, other.samples)
        assert main(["decode", str(run), str(units), "-o", str(tmp_path / "out"), "--speaker", "bass"]) == 0
        assert len(list((tmp_path / "out").rglob("*.npy"))) == 3

    def test_nothing_is_replaced(self, run, recordings, tmp_path, capsys):
        units, out = tmp_path / "units.txt", tmp_path / "out"
        for command in (
            ["encode", str(run), str(recordings), "-o", str(units)],
            ["decode", str(run), str(tmp_path / "units.npz"), "-o", str(out), "--speaker", "bass"],
            ["reconstruct", str(run), str(recordings / "alto"), "-o", str(tmp_path / "rebuilt")],
        ):
            if command[0] == "decode":
                assert main(["encode", str(run), str(recordings / "alto"), "-o", command[2]]) == 0
            assert main(command) == 0
            capsys.readouterr()
            assert main(command) == 1
            assert "there already, and is left as it is. Choose another name with -o, or pass --overwrite" in " ".join(
                capsys.readouterr().err.split()
            )
            assert main([*command, "--overwrite"]) == 0

    def test_the_library_does_the_same(self, run, recordings):
        tokenizer = load(run)
        assert isinstance(tokenizer, SpeechTokenizer)
        sounds = [read_audio(path, tokenizer.features.rate) for path in sorted(recordings.rglob("*.*"))]
        codes = tokenizer.encode(sounds)
        for sound, own in zip(sounds, codes, strict=True):
            assert torch.equal(tokenizer.encode([sound])[0], own)
        frames = tokenizer.decode(
            codes, ["alto", "bass", "tenor"], [tokenizer.features.frames_of(len(s)) for s in sounds]
        )
        assert [len(own) for own in frames] == [tokenizer.features.frames_of(len(s)) for s in sounds]
        assert len(tokenizer.sound(frames[0], samples=len(sounds[0]))) == len(sounds[0])

    def test_units_as_text(self, run, recordings, tmp_path):
        assert main(["encode", str(run), str(recordings / "alto"), "-o", str(tmp_path / "units.txt")]) == 0
        lines = (tmp_path / "units.txt").read_text().splitlines()
        assert [line.split("\t")[0] for line in lines] == ["a.wav", "b.flac"]
        assert all(0 <= int(code) < 16 for line in lines for code in line.split("\t")[1].split())
        assert sorted(path.name for path in tmp_path.iterdir()) == ["recordings", "units.txt"]

    def test_a_long_recording_in_pieces_equals_it_at_once(self, run, monkeypatch):
        tokenizer = load(run)
        frames = torch.cat([load_speech("voices").train.frames(index) for index in range(30)])[:2501]
        whole = tokenizer.encode_frames([frames])[0]
        monkeypatch.setattr(speech_tokenizer, "CHUNK", 64)
        for sizes in ([700] * 4, [1] * 2501, [13, 400, 2500], [160] * 20):
            pieces = list(
                tokenizer.encode_pieces(frames.split(sizes) if sum(sizes) == len(frames) else _cut(frames, sizes))
            )
            assert torch.equal(torch.cat(pieces), whole)

    def test_strangers_need_a_voice(self, run, recordings, tmp_path, capsys):
        assert main(["reconstruct", str(run), str(recordings), "-o", str(tmp_path / "out")]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert (
            "left out: stranger/c.wav (by 'stranger', whom this model does not know: choose a voice with --speaker"
            in said
        )
        assert sorted(path.name for path in (tmp_path / "out").rglob("*.npy")) == ["a.npy", "b.npy"]
        arguments = ["reconstruct", str(run), str(recordings), "-o", str(tmp_path / "two"), "--speaker", "tenr"]
        assert main(arguments) != 0
        assert "does not know the speaker 'tenr' (did you mean tenor?)" in " ".join(capsys.readouterr().err.split())

    def test_bad_recordings_are_named_and_the_others_encoded(self, run, recordings, tmp_path, capsys):
        (recordings / "alto" / "text.wav").write_text("no sound at all")
        (recordings / "alto" / "empty.wav").write_bytes(b"")
        soundfile.write(recordings / "alto" / "short.wav", np.zeros(1), 16_000)
        soundfile.write(recordings / "alto" / "nan.wav", np.full(16_000, np.nan), 16_000, subtype="FLOAT")
        soundfile.write(recordings / "alto" / "silence.wav", np.zeros(16_000), 16_000)
        soundfile.write(
            recordings / "alto" / "clipped.wav", np.clip(np.random.default_rng(0).normal(0, 5, 16_000), -1, 1), 16_000
        )
        out = tmp_path / "units.safetensors"
        assert main(["encode", str(run), str(recordings), "-o", str(out)]) == 0
        said = capsys.readouterr().err
        for name in ("text.wav", "empty.wav", "short.wav", "nan.wav"):
            assert f"left out: alto/{name}" in said
        names = UnitFile.open(out).names
        assert {"alto/silence.wav", "alto/clipped.wav"} <= set(names)
        assert len(names) == 5

    def test_units_of_another_model_are_refused(self, run, tmp_path, capsys):
        path = tmp_path / "units.safetensors"
        with UnitWriter(path, codebook_size=16, fingerprint="other", codes_per_second=50, rate=16_000) as writer:
            writer.add(torch.tensor([1, 2]))
            writer.end("x", "alto", frames=4, samples=600)
        assert main(["decode", str(run), str(path), "-o", str(tmp_path / "out")]) != 0
        assert "units of another model" in capsys.readouterr().err
        with pytest.raises(CodeFileError, match="file of units"):
            UnitFile.open(run / "best" / "model.safetensors")

    def test_decoding_says_how_many_frames_codes_stand_for(self, run):
        with pytest.raises(ValueError, match="3 codes stand for 6 frames, or one less; not 4"):
            load(run).decode([torch.tensor([1, 2, 3])], ["alto"], [4])

    def test_pictures_and_speech_are_not_mistaken_for_each_other(self, run, tmp_path, capsys):
        with pytest.raises(CheckpointError, match="is a model of speech"):
            load_tokenizer(run)
        load(run).save_pretrained(tmp_path / "kept")
        again = SpeechTokenizer.from_pretrained(tmp_path / "kept")
        assert again.fingerprint == load(run).fingerprint
        assert again.speakers == ("alto", "bass", "soprano", "tenor")
        assert not isinstance(again, ImageTokenizer)

    def test_a_run_in_words_and_plots(self, run, tmp_path, capsys):
        assert main(["inspect", str(run), "-o", str(tmp_path / "plots")]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "a second of speech, 16,000 samples, is 100 frames of 80 mels, and becomes 50 codes" in said
        assert "4 speakers: alto, bass, soprano, tenor" in said
        plots = {path.name for path in (tmp_path / "plots").iterdir()}
        assert plots == {"units.png", "use.png", "distances.png", "annealing.png"}


def _cut(frames: torch.Tensor, sizes: list[int]) -> list[torch.Tensor]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(frames[start : start + size])
        start += size
    return [piece for piece in (*pieces, frames[start:]) if len(piece)]


def test_abx_of_a_model_on_real_items(run, capsys):
    timit = folder_of("timit_nltk_sample")
    assert main(["abx", str(run), str(timit / "timit_triphone.item"), "--data", str(timit), "--on", "frames"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "5,865 items" in said
    errors = [float(word.rstrip("%")) for word in said.split() if word.endswith("%") and "." in word]
    assert len(errors) == 2
    assert max(errors) < 40  # what spectra tell apart, any speech model begins from


def test_abx_says_which_recordings_are_missing_or_have_one_name(run, tmp_path, capsys):
    sound = 0.1 * np.random.default_rng(0).standard_normal(16_000)
    for folder in ("p", "q"):
        (tmp_path / "data" / folder).mkdir(parents=True)
        soundfile.write(tmp_path / "data" / folder / "u.wav", sound, 16_000)
    items = tmp_path / "x.item"
    rows = [f"u {0.1 * i:.1f} {0.1 * i + 0.1:.1f} {'ab'[i % 2]} c d p" for i in range(8)]
    items.write_text("\n".join(["#file onset offset #phone prev-phone next-phone speaker", *rows]) + "\n")
    command = ["abx", str(run), str(items), "--mode", "within", "--data"]
    assert main([*command, str(tmp_path / "data")]) != 0
    assert "are both called u" in " ".join(capsys.readouterr().err.split())
    assert main([*command, str(tmp_path / "data" / "p")]) == 0
    for mark in "/_":
        qualified = "\n".join(
            [items.read_text(), *(f"p{mark}{row}" for row in rows), *(f"q{mark}{row}" for row in rows)]
        )
        (tmp_path / "y.item").write_text("\n".join(line for line in qualified.splitlines() if line[:2] != "u "))
        assert main([*command[:2], str(tmp_path / "y.item"), *command[3:], str(tmp_path / "data")]) == 0
    items.write_text(items.read_text() + "v 0.1 0.2 a c d p\n")
    assert main([*command, str(tmp_path / "data" / "p")]) != 0
    assert "1 of the 2 recordings that the items are from are not there" in " ".join(capsys.readouterr().err.split())
    assert main([*command, str(tmp_path / "data" / "p"), "--allow-missing"]) == 0


def test_features_have_names():
    assert set(FEATURES) == {"vctk", "zerospeech"}

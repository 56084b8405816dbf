"""Recordings in every layout: found, split within speakers, turned into frames once, kept, and streamed."""

import errno
import gzip
import json
import os
import pickle
import re
import zipfile
import zlib
from collections import Counter

import numpy as np
import pytest
import soundfile
import torch

import sqvae.data.content as content_module
import sqvae.data.speech.reading as reading_module
import sqvae.data.speech.stored as stored_module
import sqvae.data.speech.streaming as streaming_module
from real_data import folder_of
from sqvae.data import DATASETS
from sqvae.data.speech import (
    FEATURES,
    MADE_UP,
    SPEECH_READERS,
    SPEECH_SETS,
    LogMel,
    UnreadableRecordingError,
    Utterances,
    count_speech,
    holds_speech,
    load_speech,
    read_audio,
    stream_speech,
)
from sqvae.data.speech.places import find_place
from sqvae.data.speech.splits import divide
from sqvae.data.speech.utterances import Utterance

ZEROSPEECH = FEATURES["zerospeech"]


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SQVAE_CACHE", str(tmp_path_factory.mktemp("cache")))


def say(path, seconds=0.25, rate=16_000, channels=1, seed=None, **kwargs):
    """A recording, another one for every name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(zlib.crc32(os.fsencode(path.name)) if seed is None else seed)
    sound = random.uniform(-0.5, 0.5, (round(seconds * rate), channels))
    with path.open("wb") as file:
        soundfile.write(file, sound, rate, format=path.suffix[1:].upper(), **kwargs)
    return path


def say_all(folder, *names, **kwargs):
    for name in names:
        say(folder / name, **kwargs)
    return folder


def zipped(folder, archive=None):
    """The same files in an archive, in the wrong order."""
    archive = archive or folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(folder.rglob("*"), reverse=True):
            file.write(path, path.relative_to(folder))
    return archive


def speakers_of(*parts):
    return {name: who for part in parts for name, who in zip(part.names, part.speakers, strict=True)}


def everything(sets):
    return speakers_of(sets.train, sets.validation, sets.test)


def streamed(*inputs, features=ZEROSPEECH):
    return list(stream_speech(inputs, features, on_skip=lambda skipped: pytest.fail(str(skipped))))


def age(folder):
    """As if nobody had touched the files for a while."""
    for path in folder.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))


# --- Layouts


def vctk_80(folder):
    for speaker in ("p225", "p226", "p374"):
        for number in range(1, 13):
            say(folder / f"VCTK-Corpus/wav48/{speaker}/{speaker}_{number:03d}.wav", rate=48_000)
            text = folder / f"VCTK-Corpus/txt/{speaker}/{speaker}_{number:03d}.txt"
            text.parent.mkdir(parents=True, exist_ok=True)
            text.write_text("Please call Stella.")
    return folder


def vctk_92(folder):
    for speaker in ("p225", "s5"):
        for number in range(1, 7):
            for microphone in (1, 2):
                name = f"wav48_silence_trimmed/{speaker}/{speaker}_{number:03d}_mic{microphone}.flac"
                say(folder / name, rate=48_000)
    return folder


def zerospeech(folder):
    for part, speakers in (("voice", ("V001", "V002")), ("unit", ("S015", "S020")), ("parallel/voice", ("V001",))):
        for speaker in speakers:
            for number in range(6):
                say(folder / f"english/train/{part}/{speaker}_{number + 361841101:010d}.wav")
    say_all(folder / "english", "train/parallel/source/S044_0000000001.wav", "test/S002_0379088085.wav")
    return folder


def librispeech(folder):
    for subset, speakers in (("train-clean-100", (19, 26)), ("dev-clean", (84,)), ("test-other", (367,))):
        for speaker in speakers:
            for number in range(8):
                say(folder / f"LibriSpeech/{subset}/{speaker}/12{speaker}/{speaker}-12{speaker}-{number:04d}.flac")
    (folder / "LibriSpeech/SPEAKERS.TXT").write_text("84 | F")
    return folder


def timit(folder):
    for speaker in ("dr1-fvmh0", "dr2-marc0"):
        say_all(folder / speaker, *(f"{sentence}.wav" for sentence in ("sa1", "sa2", "si836", "sx206", "sx26")))
    (folder / "timitdic.txt").write_text("a /ey/")
    return folder


def family(folder):
    return say_all(folder, *(f"{who}/{day}/{n}.wav" for who in ("anna", "bob") for day in "ab" for n in range(5)))


LAYOUTS = {"vctk": vctk_80, "zerospeech": zerospeech, "librispeech": librispeech, "timit": timit, "folder": family}


class TestEveryLayout:
    @pytest.fixture(params=[reader.name for reader in SPEECH_READERS])
    def layout(self, request, tmp_path):
        return request.param, LAYOUTS[request.param](tmp_path / "corpus")

    def test_its_reader_comes_first(self, layout):
        name, folder = layout
        place = find_place(folder)
        reader = next(reader for reader in SPEECH_READERS if reader.recognises(place.names))
        assert reader.name == name
        assert reader.description
        found = reader.read(place)
        recordings = [one for _, members in found.in_order() for one in members]
        assert len({one.name for one in recordings}) == len(recordings)
        assert all((folder / one.name).is_file() and one.open() == folder / one.name for one in recordings)
        assert found.features in FEATURES

    def test_it_gives_utterances_of_known_speakers(self, layout):
        _, folder = layout
        sets = load_speech(folder)
        assert len(sets.speakers) > 1
        assert sets.speakers == tuple(sorted(set(sets.train.speakers)))
        names = [set(part.names) for part in (sets.train, sets.validation, sets.test)]
        assert all(names)
        assert sum(map(len, names)) == len(set.union(*names))
        for part in (sets.train, sets.validation, sets.test):
            assert set(part.speakers) <= set(sets.speakers)
            for index, name in enumerate(part.names):
                wave = read_audio(folder / name, sets.features.rate)
                assert part.frames(index).equal(sets.features(wave))
                assert part.samples[index] == len(wave)
                assert part.lengths[index] == sets.features.frames_of(len(wave))

    def test_a_zip_file_of_it_is_the_same(self, layout):
        _, folder = layout
        unpacked, packed = load_speech(folder), load_speech(zipped(folder))
        for part in ("train", "validation", "test"):
            one, other = getattr(unpacked, part), getattr(packed, part)
            assert one.names == other.names
            assert one.speakers == other.speakers
            assert one.file_ids == other.file_ids
            assert all(one.frames(index).equal(other.frames(index)) for index in range(len(one)))
        assert unpacked.notes == packed.notes

    def test_streaming_meets_all_of_its_sets(self, layout):
        _, folder = layout
        heard = {one.name: one for one in streamed(folder)}
        assert len(heard) == count_speech([folder])
        for name, speaker in everything(load_speech(folder)).items():
            assert heard[name].speaker == speaker


class TestVctk:
    @pytest.mark.parametrize("inside", ["", "VCTK-Corpus", "VCTK-Corpus/wav48"])
    def test_a_tenth_of_every_speaker_is_for_testing(self, tmp_path, inside):
        sets = load_speech(vctk_80(tmp_path) / inside)
        assert sets.features == FEATURES["vctk"]
        assert sets.speakers == ("p225", "p226", "p374")
        assert len(everything(sets)) == 36
        assert set(sets.test.speakers) == set(sets.speakers)
        assert max(Counter(sets.test.speakers).values()) <= 2
        assert len(sets.validation) == 3
        assert sets.train.file_ids[0].startswith("p225_0")
        assert not any("left" in note for note in sets.notes)

    def test_one_microphone_of_two(self, tmp_path):
        sets = load_speech(vctk_92(tmp_path))
        assert any("the first of two microphones is used: 12 recordings" in note for note in sets.notes)
        assert all(name.endswith("_mic1.flac") for name in everything(sets))
        assert set(sets.speakers) == {"p225", "s5"}
        assert len(streamed(tmp_path)) == 12

    def test_the_same_sentences_are_not_used_twice(self, tmp_path):
        vctk_80(tmp_path)
        vctk_92(tmp_path / "VCTK-Corpus")
        sets = load_speech(tmp_path)
        assert all(name.startswith("VCTK-Corpus/wav48/") for name in everything(sets))
        assert any(note.startswith("24 recordings outside the folders of the sets") for note in sets.notes)


class TestZeroSpeech:
    @pytest.mark.parametrize("inside", ["", "english"])
    def test_sets_are_folders_and_names_begin_with_speakers(self, tmp_path, inside):
        sets = load_speech(zerospeech(tmp_path) / inside)
        assert sets.features == ZEROSPEECH
        assert sets.speakers == ("S015", "S020", "V001", "V002")
        assert all("train/parallel/voice/V001" in name for name in sets.test.names)
        assert len(sets.test) == 6
        assert len(sets.train) + len(sets.validation) == 24
        assert len(sets.validation) == 2
        assert any(re.match(r"there are no validation recordings: 2 .*split seed 0", note) for note in sets.notes)
        assert any("2 recordings outside the folders of the sets" in note for note in sets.notes)

    def test_what_abx_is_measured_on_can_be_streamed(self, tmp_path):
        (heard,) = streamed(zerospeech(tmp_path) / "english/test")
        assert (heard.name, heard.file_id, heard.speaker) == ("S002_0379088085.wav", "S002_0379088085", "test")
        assert "english/test/S002_0379088085.wav" in [one.name for one in streamed(tmp_path)]

    def test_of_several_languages_english_is_used(self, tmp_path):
        zerospeech(tmp_path)
        say_all(tmp_path / "a_surprise/train", "voice/V001_1.wav", "unit/S001_1.wav")
        sets = load_speech(tmp_path)
        assert "of 2 languages, english is used" in sets.notes
        assert all(name.startswith("english/") for name in everything(sets))

    def test_a_test_speaker_that_is_not_trained_on_is_named(self, tmp_path):
        say(zerospeech(tmp_path) / "english/train/parallel/voice/V009_0000000001.wav")
        (note,) = (note for note in load_speech(tmp_path).notes if "V009" in note)
        assert note.startswith("1 speaker of the test set can't be learned")


class TestLibriSpeech:
    def test_subsets_are_pooled(self, tmp_path):
        sets = load_speech(librispeech(tmp_path))
        assert sets.speakers == ("19", "26", "367", "84")
        assert set(sets.test.speakers) == set(sets.speakers)
        (note,) = (note for note in sets.notes if "different speakers" in note)
        assert note.startswith("dev-clean, test-other, train-clean-100 have")

    def test_one_subset_needs_no_word(self, tmp_path):
        sets = load_speech(librispeech(tmp_path) / "LibriSpeech/train-clean-100")
        assert sets.speakers == ("19", "26")
        assert len(sets.notes) == 1
        assert "16 recordings of 2 speakers" in sets.notes[0]


class TestTimit:
    def test_ids_hold_the_speaker(self, tmp_path):
        sets = load_speech(timit(tmp_path))
        assert sets.speakers == ("dr1-fvmh0", "dr2-marc0")
        ids = {*sets.train.file_ids, *sets.validation.file_ids, *sets.test.file_ids}
        assert {"dr1-fvmh0_sa1", "dr2-marc0_sa1", "dr2-marc0_sx206"} < ids

    def test_a_folder_that_holds_the_zip_file_will_do(self, tmp_path):
        archive = zipped(timit(tmp_path / "timit"), tmp_path / "download.zip")
        (tmp_path / "there").mkdir()
        archive.rename(tmp_path / "there/timit.zip")
        (tmp_path / "there/README").write_text("x")
        assert everything(load_speech(tmp_path / "there")) == everything(load_speech(tmp_path / "timit"))


class TestAnyFolder:
    def test_the_first_folder_is_the_speaker(self, tmp_path):
        sets = load_speech(family(tmp_path))
        assert everything(sets)["anna/b/3.wav"] == "anna"
        assert sets.speakers == ("anna", "bob")
        assert sets.features == ZEROSPEECH

    def test_a_folder_that_holds_everything_is_nobody(self, tmp_path):
        assert load_speech(family(tmp_path / "all/corpus").parent).speakers == ("anna", "bob")
        say_all(tmp_path / "one", *(f"anna/{n}.wav" for n in range(4)))
        assert load_speech(tmp_path / "one").speakers == ("anna",)

    def test_a_flat_folder_is_one_speaker(self, tmp_path):
        folder = say_all(tmp_path / "carla", *(f"{n}.wav" for n in range(11)))
        sets = load_speech(folder)
        assert sets.speakers == ("carla",)
        assert sets.train.names == tuple(sorted(sets.train.names, key=lambda name: int(name[:-4])))
        assert any(re.search("no folders of speakers: .* called carla$", note) for note in sets.notes)
        assert {one.speaker for one in streamed(folder)} == {folder.name}

    def test_some_outside_of_folders(self, tmp_path):
        say(family(tmp_path / "home") / "extra.wav")
        sets = load_speech(tmp_path / "home")
        assert everything(sets)["extra.wav"] == "home"
        assert any(re.match("1 recording outside .* called home$", note) for note in sets.notes)

    def test_a_folder_by_its_dot(self, tmp_path, monkeypatch):
        monkeypatch.chdir(say_all(tmp_path / "carla", *(f"{n}.wav" for n in range(5))))
        assert load_speech(".").speakers == ("carla",)

    def test_one_recording(self, tmp_path):
        sets = load_speech(say(tmp_path / "me.wav"))
        assert sets.train.names == sets.validation.names == sets.test.names == ("me.wav",)
        assert sets.speakers == ("me",)
        assert any(note.startswith("only 1 recording, so ") for note in sets.notes)

    def test_folders_of_sets(self, tmp_path):
        for part, number in (("Train", 12), ("val", 2), ("test", 3)):
            say_all(tmp_path / part, *(f"{who}/{n}.wav" for who in ("anna", "bob") for n in range(number)))
        say(tmp_path / "stray.wav")
        sets = load_speech(tmp_path)
        assert (len(sets.train), len(sets.validation), len(sets.test)) == (24, 4, 6)
        assert sets.speakers == ("anna", "bob")
        (note,) = sets.notes
        assert re.match(r"1 recording outside the folders of the sets .*: stray\.wav$", note)
        assert len(streamed(tmp_path)) == 35

    def test_other_files_are_mentioned(self, tmp_path):
        (family(tmp_path) / "anna/song.m4a").write_bytes(b"x")
        assert any(re.match(r"1 file .*: anna/song\.m4a$", note) for note in load_speech(tmp_path).notes)

    def test_hidden_files_and_those_of_operating_systems_are_not(self, tmp_path):
        say_all(family(tmp_path), "anna/.hidden.wav", "__MACOSX/anna/._1.wav")
        assert len(everything(load_speech(tmp_path))) == 20


# --- Sets


def utterances(**numbers):
    return [
        Utterance(f"{speaker}/{index}.wav", str(index), speaker, 0, 10, 1600)
        for speaker, number in numbers.items()
        for index in range(number)
    ]


def names(members):
    return {utterance.name for utterance in members}


class TestSplits:
    def test_every_speaker_is_trained_on_and_tested(self):
        everyone = utterances(**{f"s{number}": number for number in range(1, 60)})
        for seed in range(5):
            sets = divide({"all": everyone}, seed=seed, published=False)
            parts = [names(sets.train), names(sets.validation), names(sets.test)]
            assert set.union(*parts) == names(everyone)
            assert sum(map(len, parts)) == len(everyone)
            assert {one.speaker for one in sets.train} == {one.speaker for one in everyone}
            tested = Counter(one.speaker for one in sets.test)
            validated = Counter(one.speaker for one in sets.validation)
            for number in range(1, 60):
                assert tested[f"s{number}"] >= (number >= 3)
                assert tested[f"s{number}"] <= number / 10 + 1
                assert validated[f"s{number}"] <= number / 20 + 1
            assert len(sets.test) == pytest.approx(len(everyone) / 10, rel=0.15)
            assert len(sets.validation) == pytest.approx(len(everyone) / 20, rel=0.3)

    def test_few_of_each_of_many_are_enough_to_validate_on(self):
        """A twentieth of six is not one; of 100 speakers it is some thirty."""
        sets = divide({"all": utterances(**{f"s{n}": 6 for n in range(100)})}, seed=0, published=False)
        assert 15 <= len(sets.validation) <= 45
        assert len(sets.test) >= 100

    @pytest.mark.parametrize(("number", "least"), [(3, 1), (10, 1), (30, 2), (60, 5), (90, 5)])
    def test_a_handful_to_validate_on(self, number, least):
        for seed in range(10):
            assert len(divide({"all": utterances(a=number)}, seed=seed, published=False).validation) >= least

    def test_the_seed_and_the_names_decide(self):
        """The same on every machine and in every version: results depend on it."""
        everyone = utterances(anna=12, bob=12)
        sets = divide({"all": everyone}, seed=0, published=False)
        assert names(sets.test) == {"anna/3.wav", "bob/11.wav"}
        assert names(sets.validation) == {"anna/2.wav", "bob/8.wav"}
        backwards = divide({"all": everyone[::-1]}, seed=0, published=False)
        assert names(backwards.test) == names(sets.test)
        assert names(backwards.validation) == names(sets.validation)
        others = [divide({"all": everyone}, seed=seed, published=False) for seed in range(1, 6)]
        assert any(names(other.test) != names(sets.test) for other in others)

    def test_another_recording_hardly_moves_any(self):
        def place(sets):
            parts = (("train", sets.train), ("validation", sets.validation), ("test", sets.test))
            return {one.name: part for part, members in parts for one in members}

        moved = []
        for number in range(20, 60):
            before = place(divide({"all": utterances(anna=number, bob=40)}, seed=3, published=False))
            after = place(divide({"all": utterances(anna=number + 1, bob=40)}, seed=3, published=False))
            changed = [name for name in before if before[name] != after[name]]
            assert all(name.startswith("anna") for name in changed)
            assert len(changed) <= 2
            moved.append(len(changed))
        assert sum(moved) < len(moved) / 2

    @pytest.mark.parametrize(("number", "expected"), [(20, 2), (40, 4), (100, 5), (1000, 20), (40_000, 500)])
    def test_a_published_test_set_leaves_nearly_all_others_for_training(self, number, expected):
        test = [one._replace(name=f"test/{one.name}") for one in utterances(a=5)]
        parts = {"train": utterances(a=number // 2, b=number // 2), "test": test}
        sets = divide(parts, seed=0, published=True)
        assert len(sets.validation) == expected
        assert len(sets.train) == number - expected
        assert sets.test == parts["test"]

    def test_nobody_is_lost_from_training(self):
        alone = {f"s{number}": 1 for number in range(90)}
        sets = divide({"all": utterances(**alone, a=10)}, seed=0, published=False)
        assert {one.speaker for one in (*sets.test, *sets.validation)} == {"a"}
        sets = divide({"train": utterances(**alone, a=10), "test": utterances(a=1)}, seed=0, published=True)
        assert {one.speaker for one in sets.validation} == {"a"}

    def test_where_everybody_speaks_once_nobody_can_be_held_out(self):
        sets = divide({"all": utterances(**{f"s{number}": 1 for number in range(30)})}, seed=0, published=False)
        assert (len(sets.train), len(sets.validation), len(sets.test)) == (30, 30, 30)
        assert sum("too few recordings per speaker" in note for note in sets.notes) == 2

    def test_two_recordings_of_one_speaker_leave_one_to_train_on(self):
        sets = divide({"all": utterances(a=2, b=1, c=1)}, seed=0, published=False)
        known = {one.speaker for one in sets.train}
        for part in (sets.validation, sets.test):
            assert part
            assert {one.speaker for one in part} & known

    @pytest.mark.parametrize("number", [1, 2])
    def test_too_few_to_divide(self, number):
        sets = divide({"all": utterances(a=number)}, seed=0, published=False)
        assert sets.train == sets.validation == sets.test == utterances(a=number)
        assert "say nothing about new recordings" in sets.notes[0]

    def test_splits_need_no_new_frames(self, tmp_path, monkeypatch):
        family(tmp_path)
        load_speech(tmp_path)
        monkeypatch.setattr(stored_module, "hear", lambda *args, **kwargs: pytest.fail("read again"))
        seeds = [load_speech(tmp_path, split_seed=seed) for seed in range(5)]
        assert len({sets.test.names for sets in seeds}) > 1
        assert len({sets.key for sets in seeds}) == 1


# --- Files that aren't what they seem


def hostile(folder):
    """Two good recordings each of two speakers, and much that can't be used: name -> reason."""
    say_all(folder, *(f"{who}/{n}.wav" for who in ("anna", "bob") for n in range(3)))
    bad = folder / "bad"
    bad.mkdir()
    (bad / "text.wav").write_text("this is no recording")
    (bad / "empty.wav").touch()
    say(bad / "sample.wav", seconds=1 / 16_000)
    say(bad / "short.flac", seconds=0.029)
    soundfile.write(bad / "nan.wav", np.array([0.1, np.nan] * 4000, np.float32), 16_000, subtype="FLOAT")
    os.truncate(say(bad / "cut.flac", seconds=3), 20_000)
    (bad / "nowhere.wav").symlink_to("missing.wav")
    (bad / "itself.wav").symlink_to("itself.wav")
    return {
        "bad/text.wav": "not a recording that can be read",
        "bad/empty.wav": "the file is empty",
        "bad/sample.wav": "it is too short: 1 sample at 16,000 Hz",
        "bad/short.flac": "it is too short: 464 samples at 16,000 Hz, which give 3 frames; at least 4",
        "bad/nan.wav": "4,000 of its 8,000 samples are NaN or infinite",
        "bad/cut.flac": "cut short",
        "bad/nowhere.wav": "No such file",
        "bad/itself.wav": "Too many levels of symbolic links",
    }


class TestHostileFiles:
    def test_they_are_left_out_with_their_reasons(self, tmp_path):
        reasons = hostile(tmp_path)
        sets = load_speech(tmp_path)
        assert set(everything(sets)) == {f"{who}/{n}.wav" for who in ("anna", "bob") for n in range(3)}
        skipped = {one.name: one.reason for one in sets.train.skipped}
        assert set(skipped) == set(reasons)
        for name, reason in reasons.items():
            assert reason in skipped[name], name
        (note,) = (note for note in sets.notes if "could not be read" in note)
        assert re.match(r"8 recordings could not be read .*: bad/cut\.flac \(", note)

    def test_strict_raises_for_the_first(self, tmp_path):
        hostile(tmp_path)
        for _ in range(2):
            with pytest.raises(UnreadableRecordingError, match=r"bad/cut\.flac can't be read: it is .*cut short"):
                load_speech(tmp_path, strict=True)
            load_speech(tmp_path)  # which is remembered, and no way around

    def test_they_do_not_end_a_stream(self, tmp_path):
        reasons = hostile(tmp_path)
        skipped = []
        heard = list(stream_speech([tmp_path], ZEROSPEECH, on_skip=skipped.append))
        assert len(heard) == 6
        assert {one.name for one in skipped} == set(reasons)
        with pytest.raises(UnreadableRecordingError, match=r"bad/cut\.flac can't be read"):
            list(stream_speech([tmp_path], ZEROSPEECH, strict=True, on_skip=print))

    def test_nothing_readable(self, tmp_path):
        (tmp_path / "a").mkdir()
        for number in range(5):
            (tmp_path / f"a/{number}.wav").write_text("x")
        with pytest.raises(
            ValueError, match=r"none of the recordings in .* can be read: a/0\.wav, .* and 2 more \(not a "
        ):
            load_speech(tmp_path)

    def test_nothing_readable_to_train_on(self, tmp_path):
        say_all(tmp_path, "train/a/1.wav", "test/a/1.wav")
        (tmp_path / "train/a/1.wav").write_bytes(b"")
        with pytest.raises(ValueError, match=r"none of the training recordings in .*train/a/1\.wav \(the file is e"):
            load_speech(tmp_path)

    def test_stereo_and_other_rates_are_brought_to_one(self, tmp_path):
        say_all(tmp_path, *(f"a/{n}.wav" for n in range(4)), rate=8000, channels=2, seconds=1.0)
        sets = load_speech(tmp_path)
        assert sets.train.samples.tolist() == [16_000] * len(sets.train)

    def test_names_that_are_not_text(self, tmp_path):
        try:
            for name in ("1", "2", "3", "caf\udce9"):
                say(tmp_path / "s\udce9" / f"{name}.wav")
            (tmp_path / "s\udce9/\udcff.wav").write_text("x")
        except (OSError, UnicodeEncodeError):
            pytest.skip("names must be text on this file system")
        for _ in range(2):  # made, and found
            sets = load_speech(tmp_path)
            assert "s\udce9/caf\udce9.wav" in everything(sets)
            assert sets.speakers == (r"s\xe9",)
            "\n".join(sets.notes).encode()

    def test_links_that_lead_back(self, tmp_path):
        family(tmp_path)
        (tmp_path / "anna/up").symlink_to(tmp_path)
        (tmp_path / "loop").symlink_to("loop")
        assert len(everything(load_speech(tmp_path))) == 20
        assert holds_speech(tmp_path)

    def test_zip_files(self, tmp_path):
        (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
        with pytest.raises(ValueError, match=r"broken\.zip is not a .*zip file"):
            load_speech(tmp_path / "broken.zip")
        archive = zipped(family(tmp_path / "family"))
        content = bytearray(archive.read_bytes())
        content[200:260] = bytes(60)  # within the sound of one
        archive.write_bytes(content)
        sets = load_speech(archive)
        assert len(sets.train.skipped) == 1
        assert "CRC" in sets.train.skipped[0].reason

    def test_what_holds_no_recordings(self, tmp_path):
        (tmp_path / "notes.txt").write_text("x")
        with pytest.raises(ValueError, match=r"no recordings in .*found 1 file \(1 \.txt\)\. Names .* end in \.aif"):
            load_speech(tmp_path)
        with pytest.raises(ValueError, match=r"notes\.txt is neither a folder, nor a zip file, nor a recording"):
            load_speech(tmp_path / "notes.txt")
        (tmp_path / "VCTK-Corpus.tar.gz").write_bytes(b"x")
        with pytest.raises(ValueError, match=r"; unpack it, and pass the folder$"):
            load_speech(tmp_path / "VCTK-Corpus.tar.gz")
        with zipfile.ZipFile(tmp_path / "no.zip", "w") as file:
            file.writestr("readme.txt", "x")
        with pytest.raises(ValueError, match=r"no recordings in .*no\.zip: found 1 file"):
            load_speech(tmp_path / "no.zip")


# --- Names


class TestNames:
    def test_a_name_finds_its_folder(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SQVAE_DATA", str(tmp_path))
        with pytest.raises(FileNotFoundError, match=r"vctk was not found\. .*Get wav48/SPEAKER.* from datashare.*DIR"):
            load_speech("vctk")
        family(tmp_path / "VCTK-Corpus-0.92")
        with pytest.raises(FileNotFoundError, match=r"does not contain vctk .*To use the recordings.*`source="):
            load_speech("vctk")
        vctk_92(tmp_path / "VCTK")
        assert load_speech("vctk").features == FEATURES["vctk"]

    def test_every_name_says_how_to_get_it(self, tmp_path, monkeypatch):
        monkeypatch.delenv("SQVAE_DATA", raising=False)
        assert not set(SPEECH_SETS) & set(DATASETS)
        for name, known in SPEECH_SETS.items():
            assert "\n" not in known.description
            assert known.features in FEATURES
            assert known.reader in {reader.name for reader in SPEECH_READERS}
            assert holds_speech(name)
            if name == MADE_UP:  # which needs no folder
                assert len(load_speech(name).train) == 39
                continue
            with pytest.raises(FileNotFoundError) as missing:
                load_speech(name)
            for expected in (name, known.origin, known.layout, "because SQVAE_DATA is not set"):
                assert expected in str(missing.value)
        monkeypatch.setenv("SQVAE_DATA", str(tmp_path))
        for folder, name, layout in (
            ("VCTK-Corpus", "vctk", vctk_80),
            ("zerospeech2019", "zerospeech2019", zerospeech),
            ("librispeech_dev_clean_subset", "librispeech", librispeech),
            ("timit_nltk_sample", "timit", timit),
        ):
            layout(tmp_path / folder)
            assert len(load_speech(name).train)

    def test_what_does_not_exist(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"there is no such file or folder: vtck; did you mean vctk\?"):
            load_speech("vtck")
        with pytest.raises(
            FileNotFoundError, match=r"these are demo, .*, voices, vctk, zerospeech2019, librispeech, timit, and"
        ):
            load_speech("absent")
        with pytest.raises(ValueError, match=r"mnist is a dataset of \w+, not of recordings; .*: voices, vctk"):
            load_speech("mnist")

    def test_features_by_name(self, tmp_path):
        say(tmp_path / "a.wav")
        assert load_speech(tmp_path, "vctk").features == FEATURES["vctk"]
        own = LogMel(rate=8000, mels=20, fft=512, window=200, shift=80, low=0, high=4000)
        assert load_speech(tmp_path, own).train.frames(0).shape == (26, 20)
        with pytest.raises(ValueError, match=r"features must be one of 'vctk', 'zerospeech', or a LogMel; got 'mfcc'"):
            load_speech(tmp_path, "mfcc")


# --- The cache


@pytest.fixture
def folder(tmp_path):
    age(family(tmp_path / "family"))
    return tmp_path / "family"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


@pytest.fixture
def readings(monkeypatch):
    """Which recordings are turned into frames."""
    calls = []
    original = stored_module.hear
    monkeypatch.setattr(
        stored_module, "hear", lambda recording, features: calls.append(recording.name) or original(recording, features)
    )
    return calls


def entries(cache):
    return sorted((cache / "speech").iterdir())


class TestCache:
    def test_a_second_load_reads_nothing(self, folder, cache, readings, monkeypatch):
        first = load_speech(folder, cache=cache)
        assert len(readings) == 20
        monkeypatch.setattr(content_module, "_hash_file", lambda path: pytest.fail("read again"))
        second = load_speech(folder, cache=cache)
        assert len(readings) == 20
        assert first.notes == second.notes
        assert first.key == second.key
        assert all(first.train.frames(index).equal(second.train.frames(index)) for index in range(len(first.train)))

    def test_changes_are_seen(self, folder, cache, readings):
        key = load_speech(folder, cache=cache).key
        say(folder / "anna/a/0.wav", seed=1)
        assert load_speech(folder, cache=cache).key != key
        say(folder / "carla/0.wav")
        assert "carla" in load_speech(folder, cache=cache).speakers
        (folder / "bob").rename(folder / "bobby")
        assert load_speech(folder, cache=cache).speakers == ("anna", "bobby", "carla")
        load_speech(folder, "vctk", cache=cache)
        assert len(entries(cache)) == 5
        assert len(readings) == 20 + 20 + 3 * 21

    def test_the_same_recordings_elsewhere_share_an_entry(self, folder, cache, tmp_path, readings):
        load_speech(folder, cache=cache)
        folder.rename(tmp_path / "moved")
        load_speech(tmp_path / "moved", cache=cache)
        assert len(readings) == 20

    @pytest.mark.parametrize("damage", ["frames.npy", "recordings.json", "entry.json"])
    @pytest.mark.parametrize("how", ["truncated", "missing", "nonsense"])
    def test_a_damaged_entry_is_made_again(self, folder, cache, damage, how):
        whole = load_speech(folder, cache=cache)
        expected = [whole.train.frames(index) for index in range(len(whole.train))]
        (entry,) = entries(cache)
        if how == "missing":
            (entry / damage).unlink()
        elif how == "truncated":
            os.truncate(entry / damage, (entry / damage).stat().st_size - 5)
        else:
            (entry / damage).write_text("[]")
        again = load_speech(folder, cache=cache)
        assert any("cache" in note and "damaged" in note for note in again.notes)
        assert all(again.train.frames(index).equal(frames) for index, frames in enumerate(expected))
        assert "damaged" not in " ".join(load_speech(folder, cache=cache).notes)

    def test_the_file_is_an_ordinary_npy_that_is_mapped(self, folder, cache):
        sets = load_speech(folder, cache=cache)
        (entry,) = entries(cache)
        frames = np.load(entry / "frames.npy")
        table = json.loads((entry / "recordings.json").read_text())
        assert frames.dtype == np.float32
        assert frames.shape == (sum(table["frames"]), 80)
        assert table["samples"] == [4000] * 20
        assert isinstance(sets.train._frames, np.memmap)

    def test_a_full_disk(self, folder, cache, monkeypatch):
        def full(descriptor):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(
            OSError, match=r"^frames of recordings can't be written to the cache .*No space.*SQVAE_CACHE"
        ):
            load_speech(folder, cache=cache)
        monkeypatch.undo()
        assert list((cache / "building").iterdir()) == []
        assert entries(cache) == []
        assert len(load_speech(folder, cache=cache).train)

    def test_a_cache_that_can_not_be_written_to(self, folder, tmp_path):
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(OSError, match=r"recordings can't be written to the cache .*\(it is a file, not a folder\)"):
            load_speech(folder, cache=tmp_path / "file")

    def test_an_interrupt_leaves_nothing(self, folder, cache):
        def interrupt(what, done, total):
            if what == "decoding" and done == 5:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            load_speech(folder, cache=cache, progress=interrupt)
        assert list((cache / "building").iterdir()) == []
        assert entries(cache) == []

    def test_progress_is_told(self, folder, cache):
        told = []
        load_speech(folder, cache=cache, progress=lambda *args: told.append(args))
        assert told == [(what, done, 20) for what in ("reading", "decoding") for done in range(1, 21)]
        told.clear()
        load_speech(folder, cache=cache, progress=lambda *args: told.append(args))
        assert told == []

    def test_long_recordings_are_written_in_pieces(self, tmp_path, cache, monkeypatch):
        monkeypatch.setattr(reading_module, "_LONG", 0.5)
        say(tmp_path / "long/a.wav", seconds=50)
        say(tmp_path / "long/b.wav", seconds=0.4)
        sets = load_speech(tmp_path / "long", cache=cache)
        for index, name in enumerate(sets.train.names):
            whole = ZEROSPEECH(read_audio(tmp_path / "long" / name, 16_000))
            torch.testing.assert_close(sets.train.frames(index), whole, rtol=0, atol=1e-3)


# --- Utterances


@pytest.fixture
def some(tmp_path):
    frames = np.random.default_rng(0).normal(-60, 20, (100, 3)).astype(np.float32)
    frames[:, 2] = -80.1
    np.save(tmp_path / "frames.npy", frames)
    rows = [
        Utterance("b", "b", "bob", 70, 30, 4800),
        Utterance("a", "a", "anna", 0, 10, 1600),
        Utterance("c", "c", "anna", 10, 25, 4000),
    ]
    return Utterances(tmp_path / "frames.npy", rows), frames


class TestUtterances:
    def test_their_table(self, some):
        utterances, _ = some
        assert len(utterances) == 3
        assert utterances.names == ("b", "a", "c")
        assert utterances.speakers == ("bob", "anna", "anna")
        assert utterances.lengths.tolist() == [30, 10, 25]
        assert utterances.samples.tolist() == [4800, 1600, 4000]
        assert repr(utterances) == "Utterances(3 with 65 frames of 3)"

    def test_frames_are_a_copy(self, some):
        utterances, frames = some
        assert np.array_equal(utterances.frames(2), frames[10:35])
        assert np.array_equal(utterances.frames(-1), frames[10:35])
        utterances.frames(0).zero_()
        assert np.array_equal(utterances.frames(0), frames[70:])
        with pytest.raises(IndexError, match="index 3 is out of range: there are 3 utterances"):
            utterances.frames(3)

    def test_some_frames_of_some(self, some):
        utterances, frames = some
        found = utterances.at(torch.tensor([2, 0]), torch.tensor([[0, 24], [5, 5]]))
        assert np.array_equal(found, frames[[[10, 34], [75, 75]]])
        with pytest.raises(IndexError, match="places must be frames of their utterances"):
            utterances.at(torch.tensor([1]), torch.tensor([[10]]))
        with pytest.raises(IndexError, match=r"indices must be 0 \.\.\. 2, got \[-1\]"):
            utterances.at(torch.tensor([-1]), torch.tensor([[0]]))

    @pytest.mark.parametrize("at_once", [7, 16_384])
    def test_statistics_are_of_these_frames_alone(self, some, monkeypatch, at_once):
        monkeypatch.setattr("sqvae.data.speech.utterances._AT_ONCE", at_once)
        utterances, frames = some
        mean, deviation = utterances.statistics()
        own = np.concatenate([frames[:35], frames[70:]]).astype(np.float64)
        np.testing.assert_allclose(mean, own.mean(0), rtol=1e-6)
        np.testing.assert_allclose(deviation[:2], own.std(0)[:2], rtol=1e-6)
        assert deviation[2] == 1  # it does not vary

    def test_they_travel_without_their_frames(self, some):
        utterances, _ = some
        packed = pickle.dumps(utterances)
        assert len(packed) < 3000
        again = pickle.loads(packed)
        assert again.frames(0).equal(utterances.frames(0))
        assert again.names == utterances.names


# --- Streaming


class TestStreaming:
    def test_frames_are_those_of_the_file(self, folder):
        for heard in streamed(folder):
            wave = read_audio(folder / heard.name, 16_000)
            assert heard.frames().equal(ZEROSPEECH(wave))
            assert heard.samples == len(wave)
            assert len(heard) == len(heard.frames())

    def test_names_of_several_inputs(self, tmp_path, monkeypatch):
        family(tmp_path / "x/one")
        zipped(tmp_path / "x/one", tmp_path / "x/two.zip")
        say(tmp_path / "three/me.wav")
        timit(tmp_path / "sets/timit")
        monkeypatch.setenv("SQVAE_DATA", str(tmp_path / "sets"))
        inputs = [tmp_path / "x/one", tmp_path / "x/two.zip", tmp_path / "three/me.wav", "timit"]
        names = [heard.name for heard in streamed(*inputs)]
        assert len(set(names)) == len(names) == count_speech(inputs) == 51
        assert {"x/one/anna/a/0.wav", "x/two.zip/anna/a/0.wav", "three/me.wav", "timit/dr1-fvmh0/sa1.wav"} < set(names)

    @pytest.mark.parametrize("packed", [False, True])
    def test_long_recordings_come_in_pieces(self, tmp_path, packed):
        path = say(tmp_path / "long/talk.flac", seconds=130)
        source = zipped(path.parent) if packed else path
        (heard,) = (
            (one.samples, len(one), list(one.pieces()))
            for one in stream_speech([source], ZEROSPEECH, on_skip=lambda skipped: pytest.fail(str(skipped)))
        )
        samples, number, pieces = heard
        assert samples == 130 * 16_000
        assert len(pieces) >= 6
        assert max(map(len, pieces)) < 3000
        whole = torch.cat(pieces)
        assert len(whole) == number == 13_001
        torch.testing.assert_close(whole, ZEROSPEECH(read_audio(path, 16_000)), rtol=0, atol=1e-3)

    def test_a_long_recording_is_read_to_its_end_first(self, tmp_path):
        path = say(tmp_path / "talk.flac", seconds=60)
        os.truncate(path, path.stat().st_size - 1000)
        skipped = []
        assert list(stream_speech([path], ZEROSPEECH, on_skip=skipped.append)) == []
        assert "cut short" in skipped[0].reason

    def test_it_reads_one_ahead_and_stops_when_told(self, folder, monkeypatch):
        calls = []
        original = streaming_module.hear
        monkeypatch.setattr(
            streaming_module, "hear", lambda recording, *args: calls.append(recording) or original(recording, *args)
        )
        stream = stream_speech([zipped(folder)], ZEROSPEECH, on_skip=print)
        for _ in range(3):
            next(stream)
        stream.close()
        assert len(calls) in (3, 4)

    def test_an_input_that_is_not_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
            streamed(tmp_path / "absent")


# --- Recordings or pictures?


class TestDetection:
    @pytest.mark.parametrize("layout", [vctk_80, vctk_92, zerospeech, librispeech, timit, family])
    def test_recordings(self, tmp_path, layout):
        folder = layout(tmp_path / "corpus")
        assert holds_speech(folder)
        assert holds_speech(str(folder))
        assert holds_speech(zipped(folder))
        (tmp_path / "holds").mkdir()
        zipped(folder, tmp_path / "holds/it.zip")
        assert holds_speech(tmp_path / "holds")

    def test_pictures_and_others(self, tmp_path):
        (tmp_path / "pictures/a").mkdir(parents=True)
        for number in range(20):
            (tmp_path / f"pictures/a/{number}.png").touch()
        assert not holds_speech(tmp_path / "pictures")
        assert not holds_speech(zipped(tmp_path / "pictures"))
        assert not holds_speech(tmp_path / "absent.wav")
        (tmp_path / "text").mkdir()
        (tmp_path / "text/a.txt").touch()
        assert not holds_speech(tmp_path / "text")
        (tmp_path / "bad.zip").touch()
        assert not holds_speech(tmp_path / "bad.zip")
        for name in (*DATASETS, "hf:owner/name"):
            assert not holds_speech(name)

    def test_single_files(self, tmp_path):
        (tmp_path / "a.wav").touch()
        (tmp_path / "a.png").touch()
        assert holds_speech(tmp_path / "a.wav")
        assert not holds_speech(tmp_path / "a.png")

    def test_the_greater_part_decides(self, tmp_path):
        for who in "abc":
            (tmp_path / who).mkdir()
            (tmp_path / who / "cover.jpg").touch()
            for number in range(20):
                (tmp_path / who / f"{number}.wav").touch()
        assert holds_speech(tmp_path)

    def test_no_more_names_are_looked_at_than_it_takes(self, tmp_path, monkeypatch):
        for speaker in range(40):
            (tmp_path / f"{speaker}").mkdir()
            for number in range(20):
                (tmp_path / f"{speaker}/{number}.wav").touch()
        looked = []
        scan = os.scandir
        monkeypatch.setattr(os, "scandir", lambda path: looked.append(path) or scan(path))
        assert holds_speech(tmp_path)
        assert len(looked) < 12


# --- Real recordings


def files_of_items(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        next(file)
        return {line.split()[0] for line in file}


@pytest.fixture(scope="module")
def libri(tmp_path_factory):
    return load_speech(folder_of("librispeech_dev_clean_subset"), cache=tmp_path_factory.mktemp("cache"))


class TestRealLibriSpeech:
    def test_all_utterances_are_there(self, libri):
        assert len(everything(libri)) == 448
        assert len(libri.speakers) == 40
        seconds = sum(int(part.samples.sum()) for part in (libri.train, libri.validation, libri.test)) / 16_000
        assert seconds / 60 == pytest.approx(22.3, abs=0.05)
        assert not libri.train.skipped

    def test_every_speaker_is_trained_on_and_tested(self, libri):
        assert set(libri.test.speakers) == set(libri.train.speakers)
        assert 0.08 <= len(libri.test) / 448 <= 0.13
        assert 0.03 <= len(libri.validation) / 448 <= 0.08

    def test_abx_items_find_their_recordings(self, libri):
        folder = folder_of("librispeech_dev_clean_subset")
        ids = {*libri.train.file_ids, *libri.validation.file_ids, *libri.test.file_ids}
        items = files_of_items(folder / "pocketsphinx_triphone.item.gz")
        assert items
        assert items <= ids

    def test_frames_are_speech(self, libri):
        mean, deviation = libri.train.statistics()
        assert mean.shape == deviation.shape == (80,)
        assert (deviation > 5).all()
        assert libri.features.range == 80
        # The loudest value of each is 80 dB above its quietest at most, and speech reaches far down.
        for index in range(0, len(libri.test), 7):
            frames = libri.test.frames(index)
            assert 40 < float(frames.max() - frames.min()) <= 80.001


class TestRealTimit:
    def test_it_is_read_from_its_zip_file(self):
        folder = folder_of("timit_nltk_sample")
        sets = load_speech(folder)
        assert len(everything(sets)) == 160
        assert len(sets.speakers) == 16
        assert set(sets.test.speakers) == set(sets.speakers)
        heard = {one.file_id: one for one in streamed(folder)}
        for items in ("timit_phone.item", "timit_triphone.item"):
            assert files_of_items(folder / items) <= set(heard)
        index = sets.train.file_ids.index("dr1-fvmh0_sa2")
        assert sets.train.frames(index).equal(heard["dr1-fvmh0_sa2"].frames())

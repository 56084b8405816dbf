"""Recordings read and written, their log-mel frames against librosa's, and sound from frames."""

import io
import os
import re
import struct
import sys
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.signal
import soundfile
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from real_data import folder_of
from sqvae.data.speech import log_mel
from sqvae.data.speech.audio import AudioError, audio_blocks, duration, is_audio_name, read_audio, write_audio
from sqvae.data.speech.griffin_lim import _deemphasised, griffin_lim, linear_amplitudes
from sqvae.data.speech.log_mel import FEATURES, LogMel, mel_filters

ODD = LogMel(rate=22_050, mels=40, fft=1024, window=551, shift=220, low=0, high=11_025, preemphasis=0.9, floor=-120)
"""Nothing like the recipes: an odd window, the whole range of frequencies."""
SPARSE = LogMel(rate=16_000, mels=40, window=400, shift=500, low=50, high=8000, range=60)
"""Frames with gaps between them."""
EVERY = {**FEATURES, "odd": ODD, "sparse": SPARSE}

over_features = pytest.mark.parametrize("features", EVERY.values(), ids=EVERY)
over_recipes = pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)


def tone(rate, seconds=1.0, frequency=440.0, amplitude=0.5):
    return amplitude * np.sin(2 * np.pi * frequency * np.arange(round(rate * seconds)) / rate)


def noise(samples, seed=0, amplitude=0.1):
    return (amplitude * np.random.default_rng(seed).standard_normal(samples)).astype(np.float32)


def voice(rate, seconds=1.5, seed=0):
    """Harmonics of a gliding pitch that come and go, over a little noise."""
    time = np.arange(round(rate * seconds)) / rate
    pitch = 120 + 30 * np.sin(2 * np.pi * 0.7 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    harmonics = sum(np.sin(k * phase) / k for k in range(1, 25))
    swell = 0.5 - 0.5 * np.cos(2 * np.pi * 3 * time)
    return (0.2 * swell * harmonics).astype(np.float32) + noise(len(time), seed, 1e-3)


def encoded(samples, rate, form="WAV", subtype=None):
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=form, subtype=subtype)
    return buffer.getvalue()


@pytest.fixture(scope="session")
def utterances():
    # One of every third speaker or so.
    return sorted(folder_of("librispeech_dev_clean_subset").rglob("*.flac"))[::60]


@pytest.fixture(scope="session")
def librosa():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("librosa")


@pytest.fixture(scope="session", params=["numpy", pytest.param("librosa", marks=pytest.mark.slow)])
def oracle(request, librosa):
    """Frames by librosa; but its transform, which takes half a minute to compile, only among the long tests."""
    spectra = {"numpy": by_numpy, "librosa": partial(by_librosa, librosa)}[request.param]
    return lambda samples, features: expected_frames(librosa, spectra, samples, features)


def expected_frames(librosa, spectra, samples, features):
    """In float64: in float32 librosa's transform is off by up to 0.003 dB in quiet frames."""
    wave = np.asarray(samples, np.float64)
    if features.peak is not None:
        wave = wave / np.abs(wave).max() * features.peak
    if features.preemphasis is not None:
        wave = scipy.signal.lfilter([1, -features.preemphasis], [1], wave)
    mel = filters_of_librosa(librosa, features) @ np.abs(spectra(wave, features))
    level = 20 * np.log10(np.maximum(mel, 10 ** (features.floor / 20)))
    return (level if features.range is None else np.maximum(level, level.max() - features.range)).T


def by_numpy(wave, features):
    """Windows of the mirrored wave, one by one, and their Fourier transforms."""
    mirrored = np.pad(wave, features.fft // 2, mode="reflect")
    left = (features.fft - features.window) // 2
    hann = np.pad(scipy.signal.get_window("hann", features.window), (left, features.fft - features.window - left))
    return np.fft.rfft(np.lib.stride_tricks.sliding_window_view(mirrored, features.fft)[:: features.shift] * hann).T


def by_librosa(librosa, wave, features):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="n_fft=.* is too large")
        return librosa.stft(
            wave,
            n_fft=features.fft,
            hop_length=features.shift,
            win_length=features.window,
            pad_mode="reflect",
        )


def filters_of_librosa(librosa, features):
    return librosa.filters.mel(
        sr=features.rate,
        n_fft=features.fft,
        n_mels=features.mels,
        fmin=features.low,
        fmax=features.high,
        htk=False,
        norm="slaney",
        dtype=np.float64,
    )


def assert_near(frames, expected, tolerance):
    """The tolerance is in dB. A float32 of 100 dB is already rounded by up to 4e-6, one of 200 dB by 8e-6."""
    assert frames.shape == expected.shape
    assert frames.dtype == torch.float32
    np.testing.assert_allclose(frames.numpy(), np.asarray(expected), rtol=0, atol=tolerance)


class TestReading:
    @pytest.mark.parametrize(
        ("form", "subtype", "step"),
        [
            ("WAV", "PCM_16", 2**-15),
            ("WAV", "PCM_24", 2**-23),
            ("WAV", "PCM_U8", 2**-7),
            ("WAV", "FLOAT", 1e-7),
            ("WAV", "DOUBLE", 1e-7),
            ("FLAC", "PCM_16", 2**-15),
            ("FLAC", "PCM_24", 2**-23),
            ("AIFF", "PCM_16", 2**-15),
            ("AU", "PCM_16", 2**-15),
            ("CAF", "PCM_16", 2**-15),
        ],
    )
    def test_lossless_formats_give_the_samples(self, tmp_path, form, subtype, step):
        samples = noise(5000)
        data = encoded(samples, 16_000, form, subtype)
        (tmp_path / "sound").write_bytes(data)
        read = read_audio(tmp_path / "sound", 16_000)
        assert read.dtype == np.float32
        np.testing.assert_allclose(read, samples, rtol=0, atol=1.01 * step)
        np.testing.assert_array_equal(read_audio(data, 16_000), read)

    @pytest.mark.parametrize(
        ("form", "subtype"), [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III"), ("WAV", "ULAW")]
    )
    def test_lossy_formats_give_nearly_the_samples(self, form, subtype):
        samples = tone(48_000)
        data = encoded(samples, 48_000, form, subtype)
        read = read_audio(data, 48_000)
        assert len(read) == len(samples)
        assert np.abs(read - samples)[1000:-1000].max() < 0.03
        assert np.abs(read_audio(data, 16_000) - tone(16_000))[500:-500].max() < 0.03

    def test_channels_are_averaged(self):
        channels = np.stack([noise(3000, 0), noise(3000, 1), noise(3000, 2)], 1)
        read = read_audio(encoded(channels, 16_000, subtype="FLOAT"), 16_000)
        np.testing.assert_allclose(read, channels.mean(1), atol=1e-7)

    @pytest.mark.parametrize("rate", [16_000, 24_000])
    @pytest.mark.parametrize("stored", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000, 192_000])
    def test_a_tone_is_the_same_tone_at_another_rate(self, stored, rate):
        read = read_audio(encoded(tone(stored), stored, subtype="FLOAT"), rate)
        assert len(read) == rate
        # The ends are cut off a tone that goes on, and ring.
        np.testing.assert_allclose(read[500:-500], tone(rate)[500:-500], rtol=0, atol=1e-4)

    def test_what_the_new_rate_cannot_hold_is_removed(self):
        read = read_audio(encoded(tone(48_000, frequency=9_000), 48_000, subtype="FLOAT"), 16_000)
        assert np.abs(read[500:-500]).max() < 1e-4

    @settings(max_examples=25, deadline=None)
    @given(
        samples=st.integers(1_000, 30_000),
        stored=st.sampled_from([8_000, 16_000, 44_100, 48_000]),
        seconds=st.floats(0.01, 3.0),
        form=st.sampled_from([("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III")]),
    )
    def test_blocks_of_any_length_are_the_recording(self, samples, stored, seconds, form):
        data = encoded(noise(samples), stored, *form)
        blocks = list(audio_blocks(data, 16_000, seconds))
        assert all(len(block) for block in blocks)
        np.testing.assert_array_equal(np.concatenate(blocks), read_audio(data, 16_000))

    @pytest.mark.parametrize(("form", "subtype"), [("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"), ("OGG", "OPUS")])
    def test_blocks_of_lossy_formats_begin_without_a_burst(self, form, subtype):
        data = encoded(noise(100_000), 16_000, form, subtype)
        blocks = list(audio_blocks(data, 16_000, 0.01))
        np.testing.assert_array_equal(np.concatenate(blocks), read_audio(data, 16_000))

    def test_a_long_recording_comes_in_blocks(self):
        data = encoded(noise(44_100 * 30), 44_100, "FLAC")
        lengths = [len(block) for block in audio_blocks(data, 16_000, 2.0)]
        assert len(lengths) >= 15
        assert max(lengths) <= 2.2 * 16_000
        assert sum(lengths) == 30 * 16_000

    def test_clipped_and_louder_samples_are_taken_as_they_are(self):
        samples = np.array([0.5, 1.0, 1.0, 1.0, -1.0, -1.0, 1.75, -2.5], np.float32)
        np.testing.assert_array_equal(read_audio(encoded(samples, 16_000, subtype="FLOAT"), 16_000), samples)

    def test_real_recordings(self, utterances):
        for path in utterances[:3]:
            samples, rate = soundfile.read(path, dtype="float32")
            np.testing.assert_array_equal(read_audio(path, rate), samples)
            assert duration(path) == len(samples) / rate

    @pytest.mark.skipif(sys.platform != "linux", reason="other systems don't have names that are not text")
    def test_a_name_that_is_not_text(self, tmp_path):
        path = tmp_path / os.fsdecode(b"caf\xe9.wav")
        path.write_bytes(encoded(noise(100), 16_000))
        assert len(read_audio(path, 16_000)) == 100

    @pytest.mark.parametrize("name", ["a.wav", "b/c.FLAC", "d.Ogg", "e.mp3", "f.aiff", "g.opus", "h.AIF"])
    def test_names_of_recordings(self, name):
        assert is_audio_name(name)

    @pytest.mark.parametrize("name", ["a.txt", "wav", "b.wav.part", "c.png", "d.npy", "e.raw", ""])
    def test_names_of_other_things(self, name):
        assert not is_audio_name(name)

    @pytest.mark.parametrize("form", ["WAV", "FLAC", "OGG", "MP3"])
    def test_duration(self, form):
        assert duration(encoded(noise(22_050), 44_100, form)) == pytest.approx(0.5, abs=0.05)


class TestUnusableRecordings:
    def rejected(self, data, rate=16_000):
        with pytest.raises(AudioError) as caught:
            read_audio(data, rate)
        return str(caught.value)

    @pytest.mark.parametrize(
        "data", [b"this is a letter, not a recording\n" * 20, np.random.default_rng(0).bytes(5000), b"R"]
    )
    def test_no_recording(self, data):
        assert "not a recording" in self.rejected(data)

    def test_an_empty_file(self, tmp_path):
        (tmp_path / "empty.wav").touch()
        assert "empty" in self.rejected(tmp_path / "empty.wav")
        assert "empty" in self.rejected(b"")

    @pytest.mark.parametrize("form", ["WAV", "AIFF"])
    def test_no_samples(self, form):
        assert "no samples" in self.rejected(encoded(np.zeros(0), 16_000, form))

    def test_nothing_left_after_resampling(self):
        assert "no sample is left at 8,000 Hz" in self.rejected(encoded(noise(1), 192_000), 8_000)

    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
    def test_samples_that_are_no_numbers(self, wrong):
        # The first is in the second block of 20 s and the last in the third.
        samples = np.zeros((8_000 * 45, 2), np.float32)
        samples[8_000 * 25, 1] = samples[8_000 * 25 + 3, 0] = samples[8_000 * 44] = wrong
        reason = self.rejected(encoded(samples, 8_000, subtype="FLOAT"))
        assert reason.startswith("4 of its 720,000 samples are NaN or infinite")
        assert "sample 200,000, at 25.000 s" in reason

    @pytest.mark.parametrize("part", [0.9, 0.5, 0.02])
    def test_a_flac_that_is_cut_short(self, part):
        data = encoded(noise(50_000), 16_000, "FLAC")
        assert "cut short" in self.rejected(data[: int(len(data) * part)])

    def test_a_flac_that_is_cut_between_its_frames(self):
        data = encoded(noise(50_000), 16_000, "FLAC")
        frame = data.index(data[86:90], len(data) // 2)  # each begins as the first does
        assert re.search(r"cut short: .*\d\d,\d+ of the 50,000 samples", self.rejected(data[:frame]))

    @pytest.mark.parametrize("form", ["WAV", "AIFF", "OGG", "MP3"])
    def test_of_others_that_are_cut_short_what_is_there(self, form):
        data = encoded(noise(100_000), 16_000, form)
        whole, part = read_audio(data, 16_000), read_audio(data[: len(data) // 2], 16_000)
        assert 0.35 * len(whole) < len(part) < 0.6 * len(whole)
        np.testing.assert_allclose(part[:30_000], whole[:30_000], atol=1e-6)

    def test_a_streamed_wav_that_does_not_know_its_length(self):
        data = bytearray(encoded(noise(1000), 16_000))
        place = data.index(b"data") + 4
        data[place : place + 4] = data[4:8] = b"\xff\xff\xff\xff"
        np.testing.assert_allclose(read_audio(bytes(data), 16_000), noise(1000), atol=2**-15)

    def test_damage_in_the_middle(self):
        data = bytearray(encoded(noise(50_000), 16_000, "FLAC"))
        data[40_000:42_000] = np.random.default_rng(1).bytes(2000)
        assert "damaged" in self.rejected(bytes(data))

    def test_an_absurd_sample_rate(self):
        data = bytearray(encoded(noise(1000), 16_000))
        data[24:28] = struct.pack("<I", 3)
        assert "sample rate of 3 Hz" in self.rejected(bytes(data))

    def test_samples_without_a_header(self, tmp_path):
        (tmp_path / "a.raw").write_bytes(noise(100).tobytes())
        assert ".raw" in self.rejected(tmp_path / "a.raw")

    def test_a_missing_file_is_another_matter(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read_audio(tmp_path / "nowhere.wav", 16_000)

    def test_wrong_arguments_at_once(self):
        with pytest.raises(ValueError, match="rate must be at least 1"):
            audio_blocks(b"", 0)
        with pytest.raises(ValueError, match="seconds must be more than 0"):
            audio_blocks(b"", 16_000, 0.0)


class TestWriting:
    @pytest.mark.parametrize("name", ["a.wav", "b.flac", "C.WAV"])
    def test_sixteen_bits_come_back_exactly(self, tmp_path, name):
        samples = np.arange(-32768, 32768, 7) / 32768
        write_audio(tmp_path / name, samples, 22_050)
        assert soundfile.info(tmp_path / name).subtype == "PCM_16"
        np.testing.assert_array_equal(read_audio(tmp_path / name, 22_050), samples)

    def test_loud_samples_are_clipped_rather_than_wrapped(self, tmp_path):
        write_audio(tmp_path / "a.wav", torch.tensor([1.0, 1.5, 40.0, -1.0, -1.5, -40.0, 0.25]), 16_000)
        top = 1 - 2**-15
        np.testing.assert_array_equal(read_audio(tmp_path / "a.wav", 16_000), [top, top, top, -1, -1, -1, 0.25])

    def test_what_cannot_be_written(self, tmp_path):
        with pytest.raises(ValueError, match=r"a\.mp3 must end in \.wav or \.flac"):
            write_audio(tmp_path / "a.mp3", noise(10), 16_000)
        with pytest.raises(ValueError, match=r"the shape \(10, 2\)"):
            write_audio(tmp_path / "a.wav", np.zeros((10, 2)), 16_000)
        with pytest.raises(ValueError, match=r"the shape \(0,\)"):
            write_audio(tmp_path / "a.wav", [], 16_000)
        with pytest.raises(ValueError, match="got 2 that are not"):
            write_audio(tmp_path / "a.wav", [0.0, np.nan, np.inf], 16_000)
        assert not list(tmp_path.iterdir())


class TestAgainstLibrosa:
    @over_features
    def test_filters(self, librosa, features):
        expected = filters_of_librosa(librosa, features)
        np.testing.assert_allclose(mel_filters(features).T, expected, rtol=0, atol=1e-12 * expected.max())

    @over_features
    def test_real_recordings(self, oracle, utterances, features):
        for path in utterances:
            samples = read_audio(path, features.rate)
            assert_near(features(samples), oracle(samples, features), 1e-4)

    @over_features
    @pytest.mark.parametrize(
        "samples",
        [
            noise(20_000),
            noise(20_000, amplitude=1e-7),
            tone(16_000, amplitude=0.9),
            voice(16_000),
            np.eye(1, 9000, 4321)[0],
            np.full(7000, 0.25),
            np.concatenate([np.zeros(8000), noise(8000), np.zeros(8000)]),
            np.concatenate([1e-9 * noise(8000), noise(8000)]),
        ],
        ids=["noise", "faint", "tone", "voice", "click", "constant", "silence-and-noise", "faint-and-loud"],
    )
    def test_made_up_signals(self, oracle, features, samples):
        assert_near(features(samples), oracle(samples, features), 1e-4)

    @over_features
    @settings(max_examples=30, deadline=None)
    @given(samples=st.integers(1, 4000), seed=st.integers(0, 1000))
    def test_short_recordings_of_any_length(self, oracle, features, samples, seed):
        wave = noise(samples, seed)
        frames = features(wave)
        assert len(frames) == features.frames_of(samples) == 1 + samples // features.shift
        assert_near(frames, oracle(wave, features), 1e-4)


class TestLogMel:
    def test_the_recipes(self):
        vctk, zerospeech = FEATURES["vctk"], FEATURES["zerospeech"]
        assert vctk.seconds_per_frame == 0.0125
        assert vctk.window / vctk.rate == 0.05
        assert zerospeech.seconds_per_frame == 0.01
        assert zerospeech.window / zerospeech.rate == 0.025

    @over_features
    @pytest.mark.parametrize("samples", [1, 159, 20_000])
    def test_silence_is_at_the_floor(self, features, samples):
        frames = features(torch.zeros(samples))
        assert_near(frames, np.full((features.frames_of(samples), features.mels), features.floor), 1e-4)

    @over_recipes
    def test_where_a_tone_is(self, features):
        frames = features(tone(features.rate, frequency=1000))
        middles = torch.arange(features.fft // 2 + 1) * features.rate / features.fft
        filters = mel_filters(features)
        band = int(frames[len(frames) // 2].argmax())
        assert filters[:, band][(middles - 1000).abs().argmin()] > 0

    @settings(max_examples=20, deadline=None)
    @given(gain=st.floats(1e-4, 1e4))
    def test_a_gain_changes_nothing_where_the_peak_is_given(self, gain):
        features, wave = FEATURES["zerospeech"], noise(5000).astype(np.float64)
        torch.testing.assert_close(features(gain * wave), features(wave), rtol=0, atol=2e-5)

    def test_a_gain_is_added_where_it_is_not(self):
        features, wave = FEATURES["vctk"], noise(5000)
        torch.testing.assert_close(features(wave / 10), features(wave) - 20, rtol=0, atol=1e-4)

    def test_the_range_is_that_of_the_recording(self):
        features, wave = FEATURES["zerospeech"], np.concatenate([noise(8000), 1e-6 * noise(8000)])
        frames = features(wave)
        assert float(frames.min()) == pytest.approx(float(frames.max()) - 80, abs=1e-5)
        assert replace(features, range=None)(wave).min() < frames.min()

    @over_features
    @settings(max_examples=20, deadline=None)
    @given(lengths=st.lists(st.integers(1, 6000), min_size=1, max_size=6))
    def test_a_batch_is_one_by_one(self, features, lengths):
        # Of very different loudness, so that one that leaked into its neighbour would be seen.
        waves = [noise(length, seed, 10.0 ** -(3 * (seed % 3))) for seed, length in enumerate(lengths)]
        for frames, wave in zip(features.batch(waves), waves, strict=True):
            assert_near(frames, features(wave), 1e-5)

    def test_an_empty_batch(self):
        assert FEATURES["vctk"].batch([]) == []

    def test_arrays_and_tensors_of_any_precision_are_left_as_they_are(self):
        features, wave = FEATURES["zerospeech"], voice(16_000)
        expected = features(wave)
        read_only = wave.copy()
        read_only.flags.writeable = False
        assert_near(features(read_only), expected, 0)
        assert_near(features(wave[::-1].copy()[::-1]), expected, 0)
        for dtype in (torch.float32, torch.float64):
            tensor = torch.tensor(wave, dtype=dtype)
            assert_near(features(tensor), expected, 0)
            assert torch.equal(tensor, torch.tensor(wave, dtype=dtype))
        assert_near(features(torch.tensor(wave).half()), features(wave.astype(np.float16)), 0)

    @pytest.mark.parametrize(
        ("wave", "error", "message"),
        [
            (np.zeros(0), ValueError, "at least one"),
            (np.zeros((2, 100)), ValueError, r"got the shape \(2, 100\)"),
            (np.zeros(100, np.int16), TypeError, "int16"),
            (np.array([0.0, np.nan]), ValueError, "NaN or infinite"),
            (np.array([0.0, np.inf, -np.inf]), ValueError, "NaN or infinite"),
        ],
    )
    def test_what_is_no_recording(self, wave, error, message):
        with pytest.raises(error, match=message):
            FEATURES["vctk"](wave)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"fft": 1000}, "fft must be even and at least the window of 1200"),
            ({"fft": 2049}, "fft must be even"),
            ({"high": 13_000}, "high <= 12000 Hz, got 80 and 13000"),
            ({"low": 7600}, "low < high"),
            ({"shift": 0}, "shift must be at least 1"),
        ],
    )
    def test_settings_that_cannot_be(self, change, message):
        with pytest.raises(ValueError, match=message):
            replace(FEATURES["vctk"], **change)

    def test_bands_that_no_frequency_falls_into(self):
        with pytest.raises(ValueError, match="bands lie between two frequencies"):
            replace(FEATURES["vctk"], mels=600)(noise(1000))
        with pytest.raises(ValueError, match="samples must be at least 1"):
            FEATURES["vctk"].frames_of(0)


def in_blocks(wave, lengths):
    """The recording in blocks, of these lengths in turn."""
    start, turn = 0, 0
    while start < len(wave):
        yield wave[start : start + lengths[turn % len(lengths)]]
        start, turn = start + lengths[turn % len(lengths)], turn + 1


class TestStream:
    @over_features
    @pytest.mark.parametrize("length", [1, 7, 159, 160, 161, 400, 1200, 1201, 4096, 100_000])
    def test_pieces_are_the_whole(self, features, length):
        wave = voice(features.rate, 0.3 if length == 1 else 1.5)
        pieces = list(features.stream(lambda: in_blocks(wave, [length])))
        assert all(len(piece) for piece in pieces)
        assert_near(torch.cat(pieces), features(wave), 1e-5)

    @over_features
    @settings(max_examples=25, deadline=None)
    @given(
        samples=st.integers(1, 12_000),
        lengths=st.lists(st.integers(0, 3000), min_size=1, max_size=8).filter(any),
        kept=st.booleans(),
    )
    def test_blocks_of_any_lengths(self, features, samples, lengths, kept):
        wave = noise(samples, seed=samples)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log_mel, "_KEPT", 10_000 if kept else 0)
            frames = torch.cat(list(features.stream(lambda: in_blocks(wave, lengths))))
        assert_near(frames, features(wave), 1e-5)

    @over_recipes
    def test_a_long_recording_is_not_held(self, features, monkeypatch):
        monkeypatch.setattr(log_mel, "_KEPT", 100)
        passes = []

        def blocks():
            passes.append(0)
            for seed in range(20):
                passes[-1] += 1
                yield noise(features.rate, seed, 0.01 * (1 + seed))

        pieces = features.stream(blocks)
        first = next(pieces)
        # Scaling to the peak takes a pass of its own; without it the first block suffices for the first frames.
        assert passes == ([20, 1] if features.peak else [1])
        rest = list(pieces)
        assert max(map(len, rest)) <= 1 / features.seconds_per_frame + 5
        assert_near(torch.cat([first, *rest]), features(np.concatenate(list(blocks()))), 1e-5)

    @over_recipes
    def test_a_short_recording_is_read_once(self, features):
        passes = []

        def blocks():
            passes.append(1)
            return in_blocks(noise(50_000), [20_000])

        list(features.stream(blocks))
        assert len(passes) == 1

    def test_from_a_file(self, utterances):
        features = FEATURES["vctk"]
        pieces = list(features.stream(lambda: audio_blocks(utterances[0], features.rate, 1.0)))
        assert len(pieces) > 1
        assert_near(torch.cat(pieces), features(read_audio(utterances[0], features.rate)), 1e-5)

    @pytest.mark.parametrize("blocks", [[], [np.zeros(0, np.float32)]])
    def test_no_samples(self, blocks):
        with pytest.raises(ValueError, match="at least one sample"):
            list(FEATURES["vctk"].stream(lambda: blocks))


def distance(frames, wave, features):
    """The mean distance in dB, apart from the gain: to scale to a peak is to choose another one."""
    return float((replace(features, peak=None)(wave) - frames).abs().mean())


def resynthesised(wave, features):
    """Frames and sound from them. 6 dB down where the peak is given, lest the sound be scaled down to full scale."""
    frames = features(wave) if features.peak is None else features(wave) - 6
    return frames, griffin_lim(frames, features, samples=len(wave))


class TestGriffinLim:
    # Measured: 0.73 dB (vctk) and 0.37 dB (zerospeech) for the voice, up to 0.75 and 0.45 dB for recordings.
    # Without iterations, which is with random phases, it is 4 to 8 dB.

    @over_recipes
    def test_a_voice_has_nearly_the_same_frames_again(self, features):
        wave = voice(features.rate)
        frames, sound = resynthesised(wave, features)
        assert distance(frames, sound, features) < 1.1
        assert distance(frames, griffin_lim(frames, features, samples=len(wave), iterations=0), features) > 3

    @over_recipes
    def test_real_recordings_have_nearly_the_same_frames_again(self, utterances, features):
        for path in utterances[:2]:
            frames, sound = resynthesised(read_audio(path, features.rate)[: 3 * features.rate], features)
            assert distance(frames, sound, features) < 1.1

    @over_recipes
    def test_momentum_gets_nearer_in_as_many_steps(self, features, monkeypatch):
        wave = voice(features.rate)
        frames, sound = resynthesised(wave, features)
        monkeypatch.setitem(griffin_lim.__globals__, "_MOMENTUM", 0.0)
        _, plain = resynthesised(wave, features)
        assert distance(frames, sound, features) < 0.95 * distance(frames, plain, features)

    @over_recipes
    def test_amplitudes_at_frequencies_agree_with_those_in_bands(self, features):
        frames = features(voice(features.rate))
        amplitudes = linear_amplitudes(frames, features)
        assert amplitudes.shape == (len(frames), features.fft // 2 + 1)
        assert amplitudes.min() >= 0
        again = 20 * (amplitudes @ mel_filters(features).float()).log10()
        assert (again - frames).abs().mean() < 0.05  # dB

    @over_features
    @pytest.mark.parametrize("samples", [1, 2, 200, 219, 300, 4000, 4159, 5000])
    def test_the_length_is_exact(self, features, samples):
        frames = features(noise(samples))
        sound = griffin_lim(frames, features, samples=samples, iterations=3)
        assert sound.shape == (samples,)
        assert sound.dtype == torch.float32
        assert sound.isfinite().all()
        assert sound.abs().max() <= 1
        least = griffin_lim(frames, features, iterations=1)
        assert len(least) == max(1, (len(frames) - 1) * features.shift)
        assert features(least).shape == frames.shape

    def test_a_length_that_has_other_frames(self):
        features = FEATURES["zerospeech"]
        frames = features(noise(1600))
        with pytest.raises(ValueError, match=r"11 frames .* 1,600 to 1,759 samples, got samples=1,760"):
            griffin_lim(frames, features, samples=1760)

    def test_the_seed_decides(self):
        features = FEATURES["zerospeech"]
        frames = features(voice(16_000, 0.5))
        before = torch.random.get_rng_state()
        first, second, other = (griffin_lim(frames, features, iterations=5, seed=seed) for seed in (1, 1, 2))
        assert torch.equal(first, second)
        assert not torch.allclose(first, other)
        assert torch.equal(torch.random.get_rng_state(), before)

    @over_features
    def test_silence_stays_silence(self, features):
        sound = griffin_lim(features(torch.zeros(5000)), features)
        # The floor is not nothing, and undoing pre-emphasis makes more of it.
        assert sound.abs().max() < 20 * 10 ** (features.floor / 20)

    def test_what_would_be_too_loud_is_scaled_down(self):
        features = FEATURES["vctk"]
        frames = features(voice(24_000, 0.5)) + 40
        assert griffin_lim(frames, features, iterations=2).abs().max() == pytest.approx(0.999)

    @settings(max_examples=20, deadline=None)
    @given(samples=st.integers(1, 5000), a=st.sampled_from([0.0, 0.5, 0.9, 0.97]))
    def test_preemphasis_is_undone(self, samples, a):
        wave = noise(samples).astype(np.float64)
        emphasised = torch.from_numpy(scipy.signal.lfilter([1, -a], [1], wave))
        np.testing.assert_allclose(_deemphasised(emphasised, a).numpy(), wave, rtol=0, atol=1e-9)

    @pytest.mark.parametrize(
        ("frames", "message"),
        [
            (torch.zeros(5, 79), r"\(frames, 80\), at least one .*got \(5, 79\)"),
            (torch.zeros(0, 80), "at least one"),
            (torch.zeros(80), "got"),
            (torch.full((2, 80), torch.nan), "frames must be finite"),
        ],
    )
    def test_what_are_no_frames(self, frames, message):
        with pytest.raises(ValueError, match=message):
            griffin_lim(frames, FEATURES["vctk"])

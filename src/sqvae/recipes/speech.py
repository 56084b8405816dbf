"""Gaussian SQ-VAE (I) on speech."""

from dataclasses import replace

from sqvae.config import DataSettings, Experiment, QuantizerSettings, SpeechSettings
from sqvae.modality import modality_of
from sqvae.training import Plan, any_budget

BATCH = 52
"""The number of crops in the paper's batches."""

STEPS = 1_000
"""The number of steps in an epoch."""


def speech() -> Experiment:
    """Your own recordings, with a folder for each speaker: pass --data."""
    rate = modality_of("speech").learning_rate
    return Experiment(
        recipe="speech",
        data=DataSettings(source="", kind="speech"),
        # A third of the paper's channels need a ninth of the computation, which suits smaller sets of recordings.
        speech=SpeechSettings(channels=256, segments_per_epoch=250 * BATCH),
        quantizer=QuantizerSettings(codebook_size=512),
        training=any_budget(epochs=7, learning_rate=rate, batch_size=BATCH, clip=1.0, log_every=10),
    )


def zerospeech() -> Experiment:
    """The paper's ZeroSpeech 2019, English: 16 kHz, 512 codes, 50 codes per second, 500,000 steps."""
    return Experiment(
        recipe="zerospeech",
        data=DataSettings(source="zerospeech2019", kind="speech"),
        speech=SpeechSettings(features="zerospeech", segments_per_epoch=STEPS * BATCH),
        quantizer=QuantizerSettings(codebook_size=512, initial_variance=10.0),
        training=Plan(epochs=500, batch_size=BATCH, learning_rate=4e-4, schedule="halved", clip=1.0),
    )


def vctk() -> Experiment:
    """The paper's VCTK: 24 kHz, 109 speakers, 512 codes, 40 codes per second, 500,000 steps."""
    base = zerospeech()
    return replace(
        base,
        recipe="vctk",
        data=DataSettings(source="vctk", kind="speech"),
        speech=replace(base.speech, features="vctk"),
    )


def librispeech() -> Experiment:
    """LibriSpeech with the features and the model of ZeroSpeech: 512 codes, 50 codes per second."""
    return replace(zerospeech(), recipe="librispeech", data=DataSettings(source="librispeech", kind="speech"))

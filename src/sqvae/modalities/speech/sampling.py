"""Utterances drawn from a model and its prior, in files."""

from pathlib import Path

from sqvae.data import Progress
from sqvae.files import check_all_free, claim
from sqvae.inference import Choices
from sqvae.inference.folders import Saved
from sqvae.modalities.speech.coding import SoundFolder
from sqvae.runs import load_generator

SECONDS = 3.0
"""How long an utterance is, unless it is said."""


def sample_files(
    run: str | Path,
    prior: str | Path | None,
    path: Path,
    choices: Choices,
    *,
    seconds: float | None,
    speaker: str | None,
    audio: bool,
    overwrite: bool,
    progress: Progress | None,
) -> Saved:
    """Draw utterances and save them: see :func:`sqvae.inference.sample_to_files`."""
    claim(path)
    endings = (".npy", ".wav") if audio else (".npy",)
    check_all_free((path / f"{name}{ending}" for name in choices.names for ending in endings), overwrite)
    generator = load_generator(run, prior)
    tokenizer = generator.tokenizer
    voice = speaker or tokenizer.speakers[0]
    tokenizer.speaker(voice)  # which says that it is unknown before anything is drawn
    length = max(1, round((seconds or SECONDS) * tokenizer.codes_per_second))
    results = SoundFolder(path, tokenizer, audio=audio, overwrite=overwrite)
    for name, codes in zip(choices.names, choices.drawn(generator, (length,), progress=progress), strict=True):
        frames = tokenizer.decode([codes], voice)[0]
        results.save(name, frames, (len(frames) - 1) * tokenizer.features.shift)
    saved: Saved = results.saved
    return saved

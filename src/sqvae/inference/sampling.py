"""New pictures and utterances, drawn from a model and its prior."""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sqvae.data import Progress
from sqvae.data.decoding import is_picture_name
from sqvae.files import check_all_free, check_free, claim
from sqvae.inference.coding import is_of_speech
from sqvae.inference.folders import PictureFolder, Saved, SoundFolder
from sqvae.modalities.images.tokenizer import ImageTokenizer, load_tokenizer
from sqvae.reports import Caption, save_rows
from sqvae.runs import Generator, load_generator

SECONDS = 3.0
"""How long an utterance is, unless it is said."""


@dataclass(frozen=True)
class Choices:
    """How samples are to be drawn."""

    number: int = 16
    temperature: float = 1.0
    """Below 1, samples are likelier and less various."""
    top_k: int | None = None
    """Each code is chosen among so many of the likeliest."""
    top_p: float | None = None
    """Each code is chosen among the likeliest that make up this share."""
    classes: list[str] | None = None
    """Names of the classes to draw, in turn, if the prior knows classes; None: all of them."""
    seed: int = 0
    """The same seed gives the same samples."""
    batch: int = 64
    """Samples that are drawn at a time."""

    @property
    def names(self) -> list[str]:
        """Of the samples, where each has a file of its own."""
        return [f"sample-{index:05d}" for index in range(self.number)]

    def normal(self, tokenizer: ImageTokenizer) -> Tensor:  # -> (number, dim, ...)
        """Latents of a model without codes, whose prior is the normal distribution."""
        shape = tokenizer.latents(torch.zeros(1, *tokenizer.shape)).shape[1:]
        random = torch.Generator().manual_seed(self.seed)
        return self.temperature * torch.randn(self.number, *shape, generator=random)

    def drawn(
        self, generator: Generator, shape: tuple[int, ...] | None = None, *, progress: Progress | None = None
    ) -> Tensor:  # -> (number, *shape)
        """Codes from a prior; of a shape, or of the one that it was trained on."""
        return generator.sample(
            self.number,
            shape=shape,
            classes=self.classes,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            seed=self.seed,
            batch=self.batch,
            progress=progress,
        )


def sample_to_files(
    run: str | Path,
    path: str | Path,
    choices: Choices | None = None,
    *,
    prior: str | Path | None = None,
    seconds: float | None = None,
    speaker: str | None = None,
    audio: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Saved:
    """Draw pictures or utterances from a model and its prior, and save them.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        path: of one picture of all samples, if it ends in .png; otherwise of a folder, with a file for each.
        choices: how they are drawn.
        prior: the folder of the prior; None: the run's own.
        seconds: of speech: how long each utterance is; None: 3.
        speaker: of speech: the voice; None: the first that the model knows.
        audio: of speech: whether sound is written beside frames.
        overwrite: whether files may be replaced.
        progress: called with what is being done, how many are done and how many there are.
    """
    choices, path = choices or Choices(), Path(path)
    if is_of_speech(run, speaker=speaker, audio=audio):
        return _sample_speech(run, prior, path, choices, seconds or SECONDS, speaker, audio, overwrite, progress)
    if seconds is not None:
        raise ValueError(f"`seconds=` is of models of speech, and {run} is one of pictures")
    return _sample_pictures(run, prior, path, choices, overwrite, progress)


def _sample_pictures(
    run: str | Path,
    prior: str | Path | None,
    path: Path,
    choices: Choices,
    overwrite: bool,
    progress: Progress | None,
) -> Saved:
    together = path.suffix.lower() == ".png"
    if together:
        check_free(path, overwrite)
    elif is_picture_name(path.name):
        raise ValueError(f"`path={path}`: all samples together are a .png, and each by itself goes to a folder")
    else:
        check_all_free((path / f"{name}.png" for name in choices.names), overwrite)
    tokenizer = load_tokenizer(run)
    if tokenizer.is_discrete:
        codes = choices.drawn(load_generator(run, prior), progress=progress)
    else:
        codes = choices.normal(tokenizer)
    folder = None if together else PictureFolder(path, overwrite=overwrite)
    shown: list[Tensor] = []
    classes: list[tuple[str, str]] = []
    for first, some in zip(range(0, len(codes), choices.batch), codes.split(choices.batch), strict=True):
        pictures = tokenizer.decode(some)
        if folder is None:
            shown.append(tokenizer.medium.shown_output(pictures).cpu())
            classes += tokenizer.medium.classes_in(pictures)
        else:
            folder.save(choices.names[first : first + len(some)], tokenizer.medium.images(pictures))
    if together:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A sheet of pictures is one to use as it is; colours of classes mean nothing without their names.
        caption = Caption(classes=tuple(dict.fromkeys(classes))) if classes else None
        save_rows(path, [torch.cat(shown)], math.ceil(math.sqrt(len(codes))), caption)
    return Saved(path, len(codes), "sample")


def _sample_speech(
    run: str | Path,
    prior: str | Path | None,
    path: Path,
    choices: Choices,
    seconds: float,
    speaker: str | None,
    audio: bool,
    overwrite: bool,
    progress: Progress | None,
) -> Saved:
    claim(path)
    endings = (".npy", ".wav") if audio else (".npy",)
    check_all_free((path / f"{name}{ending}" for name in choices.names for ending in endings), overwrite)
    generator = load_generator(run, prior)
    tokenizer = generator.tokenizer
    voice = speaker or tokenizer.speakers[0]
    tokenizer.speaker(voice)  # which says that it is unknown before anything is drawn
    length = max(1, round(seconds * tokenizer.codes_per_second))
    results = SoundFolder(path, tokenizer, audio=audio, overwrite=overwrite)
    for name, codes in zip(choices.names, choices.drawn(generator, (length,), progress=progress), strict=True):
        frames = tokenizer.decode([codes], voice)[0]
        results.save(name, frames, (len(frames) - 1) * tokenizer.features.shift)
    return results.saved

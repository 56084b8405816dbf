"""New pictures and utterances, drawn from a model and its prior."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sqvae.data import Progress
from sqvae.inference.folders import Saved
from sqvae.modality import modality_of
from sqvae.runs import Generator
from sqvae.tokenizers import kind_of

if TYPE_CHECKING:
    from sqvae.modalities.images.tokenizer import ImageTokenizer


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

    def normal(self, tokenizer: "ImageTokenizer") -> Tensor:  # -> (number, dim, ...)
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
    modality = modality_of(kind_of(run))
    modality.check_voice(str(run), speaker, audio, seconds)
    return modality.sample_files(
        run,
        prior,
        path,
        choices,
        seconds=seconds,
        speaker=speaker,
        audio=audio,
        overwrite=overwrite,
        progress=progress,
    )

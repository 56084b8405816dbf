"""What is shown of a model of pictures, and of one of speech, on the page about its run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sqvae.cli.priors import Choices
from sqvae.data import Pictures, Progress
from sqvae.data.speech import Utterances
from sqvae.experiment import (
    Generator,
    Seen,
    SpeechTokenizer,
    Tokenizer,
    code_atlas,
    drawn_alone,
    interpolated,
    see,
    see_speech,
    see_units,
    spoken_alone,
    unit_spectra,
)
from sqvae.experiment.views import to_bytes
from sqvae.reports.codes import Pixels
from sqvae.reports.page import absent
from sqvae.reports.run_codebook import Heard
from sqvae.reports.run_examples import LabelClass, class_legend, pictures_row
from sqvae.reports.spectra import by_brightness, spectra_picture

SAMPLES = Choices(number=16, temperature=1.0, top_k=None, top_p=None, classes=None, seed=0, batch=16)
UTTERANCES = Choices(number=3, temperature=1.0, top_k=None, top_p=None, classes=None, seed=0, batch=3)
"""What is drawn from a prior."""

STEPS = 9
"""Of an interpolation, both ends included."""

SECONDS = 4.0
"""Of an utterance that are shown."""

LOOKED_AT = 1000
"""Pictures from which it is told what is seen where codes are taken."""

LISTENED, UNITS = 60, 128
"""Utterances that mean spectra are from, and units that they are shown of."""


@dataclass(frozen=True)
class View:
    """What differs between pictures and speech, where a run is shown."""

    see: Callable[[Any, Any, int, Generator | None], tuple[str, Seen]]
    """An example of a set by its index, under its name."""
    alone: Callable[[Any, Tensor], Tensor]
    """What codes draw: (n,) -> uint8 (n, 3, P, Q)."""
    made: Callable[[Any, Generator | None, Any], list[str]]
    """What the model makes, with its prior and with held-out examples, if there are any, as HTML."""
    heard: Callable[[Any, Any, str, Progress], Heard | None]
    """What is heard where units are taken."""
    seen: Callable[[Any, Any, int, Progress], tuple[Tensor, Tensor] | None]
    """So many of the codes that are used most, (n,), and what is seen where each is taken, uint8 (n, 3, P, P)."""
    drawn: str
    """How to read what a code draws alone."""


def pixels_of(picture: Tensor) -> Pixels:  # uint8 (3, H, W) -> (H, W, 3)
    """A picture as pages take it."""
    pixels: Pixels = picture.permute(1, 2, 0).contiguous().cpu().numpy()
    return pixels


def difference_legend(kind: str) -> str:
    """How to read pictures of differences."""
    if kind == "labels":
        return "In the difference, full colours are wrong labels, and faded ones right."
    much, little = ("louder", "softer") if kind == "speech" else ("brighter", "darker")
    return f"In the difference, white is exact, red came out {much} than it was, and blue {little}."


def legend_of(tokenizer: Tokenizer, measures: dict[str, float]) -> str:
    """The classes of label maps, with how well each comes through."""
    data = tokenizer.experiment.data
    number = data.classes or 0
    names = data.class_names or tuple(map(str, range(number)))
    colours = (tokenizer.medium.shown(torch.arange(number).view(1, 1, -1))[0, :, 0].T * 255).round().int().tolist()
    return class_legend(
        [
            LabelClass(name, "#{:02x}{:02x}{:02x}".format(*colour), measures.get(f"iou of {name}"))
            for name, colour in zip(names, colours, strict=True)
        ]
    )


def _see_picture(tokenizer: Tokenizer, pictures: Pictures, index: int, prior: Generator | None) -> tuple[str, Seen]:
    return pictures.names[index], see(tokenizer, pictures.take([index])[0], prior)


def _see_utterance(
    tokenizer: SpeechTokenizer, utterances: Utterances, index: int, prior: Generator | None
) -> tuple[str, Seen]:
    """The first seconds of it, in the voice of who spoke, if that is known."""
    speaker = utterances.speakers[index]
    frames = utterances.frames(index)
    shown = frames[: round(SECONDS * tokenizer.features.rate / tokenizer.features.shift)]
    known = speaker if speaker in tokenizer.speakers else None
    cut = f", the first {SECONDS:g} seconds" if len(shown) < len(frames) else ""
    return f"{utterances.names[index]}, by {speaker}{cut}", see_speech(tokenizer, shown, known, prior)


def _made_pictures(tokenizer: Tokenizer, generator: Generator | None, held_out: Pictures | None) -> list[str]:
    parts, latents = [], None
    if generator is not None or not tokenizer.is_discrete:
        latents = SAMPLES.normal(tokenizer) if generator is None else SAMPLES.drawn(generator)
        by = "its prior" if generator is not None else "the normal distribution, which is a VAE's prior"
        parts.append(pictures_row("Samples", f"Decoded from latents drawn by {by}.", _decoded(tokenizer, latents)))
    ends, what = None, "held-out example"
    if held_out is not None and len(held_out) > 1:
        ends = held_out.spread(2).take([0, 1])
    elif latents is not None:
        ends, what = tokenizer.decode(latents[:2]), "sample"
    if ends is None:
        return [*parts, absent("An interpolation is not shown", "it takes two held-out examples, or a prior")]
    between = _decoded(tokenizer, _between(tokenizer, ends[:1], ends[1:]))
    caption = f"From one {what} to another, straight through the space that latents lie in."
    return [*parts, pictures_row("Interpolation", caption, between)]


def _decoded(tokenizer: Tokenizer, latents: Tensor) -> list[Pixels]:
    return [pixels_of(one) for one in to_bytes(tokenizer.medium.shown_output(tokenizer.decode(latents)))]


def _between(tokenizer: Tokenizer, first: Tensor, second: Tensor) -> Tensor:  # (1, C, H, W) twice -> (STEPS, ...)
    ratios = torch.linspace(0, 1, STEPS)
    if tokenizer.is_discrete:
        a, b = (end.expand(STEPS, *end.shape[1:]) for end in (first, second))
        return interpolated(tokenizer, a, b, ratios)
    a, b = tokenizer.latents(torch.cat([first, second])).unsqueeze(1)
    return torch.lerp(a, b, ratios.to(a).view(-1, *[1] * (a.ndim - 1)))


def _made_speech(tokenizer: SpeechTokenizer, generator: Generator | None, held_out: Utterances | None) -> list[str]:
    if generator is None:
        return []
    voice = tokenizer.speakers[0]
    length = max(1, round(SECONDS * tokenizer.codes_per_second))
    drawn = [pixels_of(see_units(tokenizer, codes, voice)) for codes in UTTERANCES.drawn(generator, (length,))]
    caption = f"{SECONDS:g} seconds each, by its prior, in the voice {voice}."
    return [pictures_row("Samples", caption, drawn, "row strips")]


def _heard(tokenizer: SpeechTokenizer, utterances: Utterances, where: str, progress: Progress) -> Heard | None:
    spectra = unit_spectra(tokenizer, utterances, at_most=LISTENED, progress=progress)
    units = by_brightness(spectra.counts, spectra.mean, UNITS)
    return Heard(units.tolist(), spectra_picture(spectra.mean, units), f"{spectra.utterances:,} {where}")


def _seen(tokenizer: Tokenizer, pictures: Pictures, number: int, progress: Progress) -> tuple[Tensor, Tensor]:
    atlas = code_atlas(tokenizer, pictures, codes=number, at_most=LOOKED_AT, progress=progress)
    taken = atlas.counts[atlas.codes] > 0
    return atlas.codes[taken], to_bytes(atlas.seen[taken])


PICTURES = View(
    see=_see_picture,
    alone=drawn_alone,
    made=_made_pictures,
    heard=lambda tokenizer, held_out, where, progress: None,
    seen=_seen,
    drawn="Of two tiles, the left one is the mean of what is seen where the code is taken, and the right one, or the "
    "only one, what the code draws alone: the middle of what a map that holds nothing else decodes to. The middle "
    "third of a tile is the code's own place. The four small ones are what the codes nearest to it draw.",
)
SPEECH = View(
    see=_see_utterance,
    alone=spoken_alone,
    made=_made_speech,
    heard=_heard,
    seen=lambda tokenizer, held_out, number, progress: None,
    drawn="Each tile is the spectrogram of one unit held for a while, in the first voice that the model knows: time to "
    "the right, pitch upwards. Below it are the four units that lie nearest.",
)


def view_of(kind: str) -> View:
    """What is shown of a kind of data."""
    return SPEECH if kind == "speech" else PICTURES

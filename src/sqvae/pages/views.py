"""What is shown of a model of pictures, and of one of speech, on the page about its run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sqvae.analysis import interpolated
from sqvae.data import Pictures, Progress
from sqvae.data.speech import Utterances
from sqvae.inference import Choices
from sqvae.metrics.meanings import WRONG_LABELS
from sqvae.modalities.images.codebook import code_atlas
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.images.views import BRIGHTNESS, drawn_alone, see
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.modalities.speech.units import unit_spectra
from sqvae.modalities.speech.views import LOUDNESS, see_speech, see_units, spoken_alone
from sqvae.modalities.views import DifferenceKey, Seen, to_bytes
from sqvae.networks.speech import STRIDE
from sqvae.reports.codes import Pixels, Span
from sqvae.reports.page import absent
from sqvae.reports.run_codebook import Heard
from sqvae.reports.run_examples import LabelClass, class_legend, pictures_row
from sqvae.reports.sound import as_flac
from sqvae.reports.spectra import by_brightness, spectra_picture
from sqvae.runs import Generator

SAMPLES = Choices(number=16, batch=16)
UTTERANCES = Choices(number=3, batch=3)
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
    span: Callable[[Any, Seen], Span | None]
    """What an example's codes cover, where they are a sequence."""
    sounds: Callable[[Any, Any, int, Seen], tuple[tuple[str, bytes], ...]]
    """An example and its reconstruction by their names, as FLAC, where they can be listened to."""


def pixels_of(picture: Tensor) -> Pixels:  # uint8 (3, H, W) -> (H, W, 3)
    """A picture as pages take it."""
    pixels: Pixels = picture.permute(1, 2, 0).contiguous().cpu().numpy()
    return pixels


def signs_of(kind: str) -> DifferenceKey | None:
    """What the colours of differences mean; None where they are those of classes."""
    return {"labels": None, "speech": LOUDNESS}.get(kind, BRIGHTNESS)


def difference_legend(kind: str) -> str:
    """How to read pictures of differences."""
    signs = signs_of(kind)
    return f"In the difference, {WRONG_LABELS}." if signs is None else signs.sentence


def legend_of(tokenizer: ImageTokenizer, measures: dict[str, float]) -> str:
    """The classes of label maps, with how well each comes through."""
    data = tokenizer.experiment.data
    measured = data.class_names or tuple(map(str, range(data.classes or 0)))
    shown = [
        LabelClass(name, colour, measures.get(f"iou of {short}"))
        for (name, colour), short in zip(tokenizer.medium.legend(), measured, strict=True)
    ]
    unknown = tokenizer.medium.unknown
    if unknown is not None and data.ignore is not None:
        shown.append(LabelClass(*unknown, None))
    return class_legend(shown)


def _see_picture(
    tokenizer: ImageTokenizer, pictures: Pictures, index: int, prior: Generator | None
) -> tuple[str, Seen]:
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


def _span(tokenizer: SpeechTokenizer, seen: Seen) -> Span:
    frames = seen.original.shape[-1]
    return Span(frames / STRIDE, frames * tokenizer.features.seconds_per_frame)


def _sounds(
    tokenizer: SpeechTokenizer, utterances: Utterances, index: int, seen: Seen
) -> tuple[tuple[str, bytes], ...]:
    """As long as what is shown: the recording itself, and sound made of the codes."""
    features, frames = tokenizer.features, seen.original.shape[-1]
    whole = frames == int(utterances.lengths[index])
    samples = int(utterances.samples[index]) if whole else (frames - 1) * features.shift
    speaker = utterances.speakers[index]
    voice = speaker if speaker in tokenizer.speakers else tokenizer.speakers[0]
    made = tokenizer.sound(tokenizer.decode([seen.codes], voice, [frames])[0], samples=samples)
    return (
        ("original, as recorded", as_flac(utterances.sound(index, features.rate, samples), features.rate)),
        (f"reconstruction from the codes, in the voice {voice}", as_flac(made.cpu().numpy(), features.rate)),
    )


def _made_pictures(tokenizer: ImageTokenizer, generator: Generator | None, held_out: Pictures | None) -> list[str]:
    parts, latents = [], None
    if generator is not None or not tokenizer.is_discrete:
        latents = SAMPLES.normal(tokenizer) if generator is None else SAMPLES.drawn(generator)
        by = "its prior" if generator is not None else "the normal distribution, which is a VAE's prior"
        parts.append(pictures_row("Samples", f"Decoded from latents drawn by {by}.", _decoded(tokenizer, latents)))
    ends, what, end = None, "held-out example", "original"
    if held_out is not None and len(held_out) > 1:
        ends = held_out.spread(2).take([0, 1])
    elif latents is not None:
        ends, what, end = tokenizer.decode(latents[:2]), "sample", "sample"
    if ends is None:
        return [*parts, absent("An interpolation is not shown", "it takes two held-out examples, or a prior")]
    between = _decoded(tokenizer, _between(tokenizer, ends[:1], ends[1:]))
    originals = tokenizer.medium.shown(tokenizer.medium.model_input(ends, tokenizer.device))
    first, last = (pixels_of(one) for one in to_bytes(originals))
    caption = (
        f"From one {what} to another, straight through the space that latents lie in: both as they are at the ends, "
        f"and between them what is decoded, with how far it is on the way."
    )
    ways = [f"{100 * place / (STEPS - 1):.3g}%" for place in range(STEPS)]
    shown = [first, *between, last]
    return [*parts, pictures_row("Interpolation", caption, shown, names=[end, *ways, end])]


def _decoded(tokenizer: ImageTokenizer, latents: Tensor) -> list[Pixels]:
    return [pixels_of(one) for one in to_bytes(tokenizer.medium.shown_output(tokenizer.decode(latents)))]


def _between(tokenizer: ImageTokenizer, first: Tensor, second: Tensor) -> Tensor:  # (1, C, H, W) twice -> (STEPS, ...)
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


def _seen(tokenizer: ImageTokenizer, pictures: Pictures, number: int, progress: Progress) -> tuple[Tensor, Tensor]:
    atlas = code_atlas(tokenizer, pictures, codes=number, at_most=LOOKED_AT, progress=progress)
    taken = atlas.counts[atlas.codes] > 0
    return atlas.codes[taken], to_bytes(atlas.seen[taken])


PICTURES = View(
    see=_see_picture,
    alone=drawn_alone,
    made=_made_pictures,
    heard=lambda tokenizer, held_out, where, progress: None,
    seen=_seen,
    span=lambda tokenizer, seen: None,
    sounds=lambda tokenizer, held_out, index, seen: (),
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
    span=_span,
    sounds=_sounds,
    drawn="Each tile is the spectrogram of one unit held for a while, in the first voice that the model knows: time to "
    "the right, pitch upwards. Below it are the four units that lie nearest.",
)


def view_of(kind: str) -> View:
    """What is shown of a kind of data."""
    return SPEECH if kind == "speech" else PICTURES

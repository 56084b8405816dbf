"""Speech on the page about a run."""

from sqvae.data import Progress
from sqvae.data.speech import Utterances
from sqvae.inference import Choices
from sqvae.modalities.page import PageView, pixels_of
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.modalities.speech.units import unit_spectra
from sqvae.modalities.speech.views import see_speech, see_units, spoken_alone
from sqvae.modalities.views import Seen
from sqvae.networks.speech import STRIDE
from sqvae.reports.codes import Span
from sqvae.reports.run_codebook import Heard
from sqvae.reports.run_examples import pictures_row
from sqvae.reports.sound import as_flac
from sqvae.reports.spectra import by_brightness, spectra_picture
from sqvae.runs import Generator

UTTERANCES = Choices(number=3, batch=3)
"""What is drawn from a prior."""

SECONDS = 4.0
"""The length of an utterance that is shown."""

LISTENED, UNITS = 60, 128
"""The number of utterances that mean spectra are from, and of units that they are shown for."""


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


PAGE = PageView(
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

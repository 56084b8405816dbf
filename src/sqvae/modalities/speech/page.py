"""Speech on the page of a run."""

from sqvae.data import Progress
from sqvae.data.speech import Utterances
from sqvae.inference import Choices
from sqvae.modalities.page import PageView, pixels_of
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.modalities.speech.units import unit_spectra
from sqvae.modalities.speech.views import code_spectrograms, decoded_spectrogram, view_utterance
from sqvae.modalities.views import CodedExample
from sqvae.networks.speech import STRIDE
from sqvae.reports.codes import Span
from sqvae.reports.run_codebook import Heard
from sqvae.reports.run_examples import pictures_row
from sqvae.reports.sound import as_flac
from sqvae.reports.spectra import by_brightness, spectra_picture
from sqvae.runs import Generator

UTTERANCES = Choices(number=3, batch=3)
"""The samples from a prior."""

SECONDS = 4.0
"""The largest duration of an utterance on the page."""

MAX_UTTERANCES, MAX_UNITS = 60, 128
"""The largest number of utterances for mean spectra, and the largest number of units with a mean spectrum."""


def _view(
    tokenizer: SpeechTokenizer, utterances: Utterances, index: int, prior: Generator | None
) -> tuple[str, CodedExample]:
    """The first seconds of an utterance, reconstructed in the voice of its speaker if the model knows the speaker."""
    speaker = utterances.speakers[index]
    frames = utterances.frames(index)
    shown = frames[: round(SECONDS * tokenizer.features.rate / tokenizer.features.shift)]
    known = speaker if speaker in tokenizer.speakers else None
    cut = f", the first {SECONDS:g} seconds" if len(shown) < len(frames) else ""
    return f"{utterances.names[index]}, by {speaker}{cut}", view_utterance(tokenizer, shown, known, prior)


def _span(tokenizer: SpeechTokenizer, coded: CodedExample) -> Span:
    frames = coded.original.shape[-1]
    return Span(frames / STRIDE, frames * tokenizer.features.seconds_per_frame)


def _sounds(
    tokenizer: SpeechTokenizer, utterances: Utterances, index: int, coded: CodedExample
) -> tuple[tuple[str, bytes], ...]:
    """The recording and its reconstruction, of the same duration as the spectrogram on the page."""
    features, frames = tokenizer.features, coded.original.shape[-1]
    whole = frames == int(utterances.lengths[index])
    samples = int(utterances.samples[index]) if whole else (frames - 1) * features.shift
    speaker = utterances.speakers[index]
    voice = speaker if speaker in tokenizer.speakers else tokenizer.speakers[0]
    made = tokenizer.sound(tokenizer.decode([coded.codes], voice, [frames])[0], samples=samples)
    return (
        ("original, as recorded", as_flac(utterances.sound(index, features.rate, samples), features.rate)),
        (f"reconstruction from the codes, in the voice {voice}", as_flac(made.cpu().numpy(), features.rate)),
    )


def _samples(tokenizer: SpeechTokenizer, generator: Generator | None, held_out: Utterances | None) -> list[str]:
    if generator is None:
        return []
    voice = tokenizer.speakers[0]
    length = max(1, round(SECONDS * tokenizer.codes_per_second))
    samples = UTTERANCES.drawn(generator, (length,))
    spectrograms = [pixels_of(decoded_spectrogram(tokenizer, codes, voice)) for codes in samples]
    caption = f"{SECONDS:g} seconds each, sampled from the prior, in the voice {voice}."
    return [pictures_row("Samples", caption, spectrograms, "row strips")]


def _unit_spectra(tokenizer: SpeechTokenizer, utterances: Utterances, where: str, progress: Progress) -> Heard | None:
    spectra = unit_spectra(tokenizer, utterances, at_most=MAX_UTTERANCES, progress=progress)
    units = by_brightness(spectra.counts, spectra.mean, MAX_UNITS)
    return Heard(units.tolist(), spectra_picture(spectra.mean, units), f"{spectra.utterances:,} {where}")


PAGE = PageView(
    view=_view,
    code_images=code_spectrograms,
    samples=_samples,
    unit_spectra=_unit_spectra,
    mean_patches=lambda tokenizer, held_out, number, progress: None,
    span=_span,
    sounds=_sounds,
    tile_caption="Each tile is the spectrogram of one repeated unit, in the first voice that the model knows: time to "
    "the right, frequency upwards. The four small tiles belong to the nearest units.",
)

"""Speech, where a run is inspected."""

from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.data.speech import Utterances
from sqvae.modalities.inspecting import Inspection, Plots
from sqvae.modalities.speech.codebook import quantized_utterances
from sqvae.modalities.speech.tokenizer import SpeechTokenizer, untrained_speech_tokenizer
from sqvae.modalities.speech.units import unit_spectra
from sqvae.reports import about_speech, save_spectra


def _draw_spectra(
    tokenizer: SpeechTokenizer, utterances: Utterances, name: str, plots: Plots, out: Path
) -> tuple[Tensor, str, str]:
    spectra = unit_spectra(tokenizer, utterances, at_most=plots.pictures, progress=plots.progress)
    where = f"{spectra.utterances:,} validation utterances of {name}"
    save_spectra(out / "units.png", spectra.counts, spectra.mean, codes=plots.codes, where=where)
    return spectra.counts, where, f"{out / 'units.png'}: the mean spectrum where each unit is heard"


def _about_speech(described: dict[str, Any], tokenizer: SpeechTokenizer) -> tuple[str, ...]:
    features = tokenizer.features
    return about_speech(
        described,
        rate=features.rate,
        mels=features.mels,
        frames_per_second=features.rate / features.shift,
        codes_per_second=tokenizer.codes_per_second,
    )


INSPECTION = Inspection(
    untrained=untrained_speech_tokenizer,
    about=_about_speech,
    quantized=quantized_utterances,
    draw=_draw_spectra,
    atlas="units.png",
)

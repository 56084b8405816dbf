"""Speech in `sqvae inspect`."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.data.speech import Utterances
from sqvae.modalities.inspecting import Inspection, Plots, in_layers
from sqvae.modalities.speech.codebook import quantized_utterances
from sqvae.modalities.speech.tokenizer import SpeechTokenizer, untrained_speech_tokenizer
from sqvae.modalities.speech.units import unit_spectra
from sqvae.quantizers import has_codes
from sqvae.reports import save_spectra


def _draw_spectra(
    tokenizer: SpeechTokenizer, utterances: Utterances, name: str, plots: Plots, out: Path
) -> tuple[Tensor, str, str]:
    spectra = unit_spectra(tokenizer, utterances, at_most=plots.pictures, progress=plots.progress)
    where = f"{spectra.utterances:,} validation utterances of {name}"
    save_spectra(out / "units.png", spectra.counts, spectra.mean, codes=plots.codes, where=where)
    return spectra.counts, where, f"{out / 'units.png'}: the mean spectrum of each unit"


def _about(experiment: Mapping[str, Any], tokenizer: SpeechTokenizer) -> tuple[str, ...]:
    """The size of a second of speech, and of its codes."""
    features, codes_per_second = tokenizer.features, tokenizer.codes_per_second
    quantizer, speakers = experiment["quantizer"], experiment["speech"]["speakers"] or ()
    size = quantizer["codebook_size"]
    frames_per_second = features.rate / features.shift
    frames = f"a second of speech, {features.rate:,} samples, is {frames_per_second:g} frames of {features.mels} mels"
    known = ", ".join(speakers[:8]) + (f" and {len(speakers) - 8} more" if len(speakers) > 8 else "")
    if not has_codes(quantizer["name"]):
        becomes = f", and becomes {codes_per_second:g} times {quantizer['dim']} numbers"
    else:
        layers = tokenizer.layers or 1
        bits = layers * codes_per_second * math.log2(size) if size > 1 else 0
        becomes = f", and becomes {layers * codes_per_second:g} codes: {bits:,.0f} bits at most"
    codes = f"{size:,} codes of {quantizer['dim']} dimensions{in_layers(tokenizer.layer_axis)}"
    return (
        *([codes] if has_codes(quantizer["name"]) else []),
        frames + becomes,
        f"{len(speakers)} speakers: {known}",
    )


INSPECTION = Inspection(
    untrained=untrained_speech_tokenizer,
    about=_about,
    quantized=quantized_utterances,
    draw=_draw_spectra,
    atlas="units.png",
)

"""One package for each kind of data: how it is found, modelled, judged and shown."""

from sqvae.modalities.diagnosis import diagnose, findings_of
from sqvae.modalities.images.codebook import code_atlas, decoded_alone, map_size, patch_at, quantized_pictures
from sqvae.modalities.images.data import new_model, with_passes
from sqvae.modalities.images.media import UNKNOWN, Medium, medium_of
from sqvae.modalities.images.tokenizer import Tokenizer, load_tokenizer
from sqvae.modalities.images.views import BRIGHTNESS, drawn_alone, drawn_at, see, see_codes
from sqvae.modalities.loading import kind_of, load
from sqvae.modalities.observation import Evaluation
from sqvae.modalities.preparation import PREPARERS, prepare
from sqvae.modalities.prepared import Announce, Prepared, Trainable, settled_source
from sqvae.modalities.speech.abx import MODES, REPRESENTATIONS, abx_of
from sqvae.modalities.speech.codebook import quantized_utterances
from sqvae.modalities.speech.tokenizer import SpeechTokenizer, load_speech_tokenizer, untrained_speech_tokenizer
from sqvae.modalities.speech.units import unit_spectra
from sqvae.modalities.speech.views import LOUDNESS, see_speech, see_units, spoken_alone
from sqvae.modalities.views import BY_PRIOR, DifferenceKey, Seen, recorded_use, to_bytes

__all__ = [
    "BRIGHTNESS",
    "BY_PRIOR",
    "LOUDNESS",
    "MODES",
    "PREPARERS",
    "REPRESENTATIONS",
    "UNKNOWN",
    "Announce",
    "DifferenceKey",
    "Evaluation",
    "Medium",
    "Prepared",
    "Seen",
    "SpeechTokenizer",
    "Tokenizer",
    "Trainable",
    "abx_of",
    "code_atlas",
    "decoded_alone",
    "diagnose",
    "drawn_alone",
    "drawn_at",
    "findings_of",
    "kind_of",
    "load",
    "load_speech_tokenizer",
    "load_tokenizer",
    "map_size",
    "medium_of",
    "new_model",
    "patch_at",
    "prepare",
    "quantized_pictures",
    "quantized_utterances",
    "recorded_use",
    "see",
    "see_codes",
    "see_speech",
    "see_units",
    "settled_source",
    "spoken_alone",
    "to_bytes",
    "unit_spectra",
    "untrained_speech_tokenizer",
    "with_passes",
]

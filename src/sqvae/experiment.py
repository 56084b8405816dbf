"""The former home of what is now in `config`, `modalities`, `tokenizers`, `runs`, `analysis`, `export` and `sweeps`.

Names are still found here for one release, with a warning that says where they are now.
"""

import warnings
from importlib import import_module

_ROOMS = ("config", "tokenizers", "runs", "analysis", "export", "sweeps")

_MODULES = {
    "sqvae.modalities.images.views": ("BRIGHTNESS", "drawn_alone", "drawn_at", "see", "see_codes"),
    "sqvae.modalities.views": ("BY_PRIOR", "DifferenceKey", "Seen", "recorded_use", "to_bytes"),
    "sqvae.modalities.images.tokenizer": ("ImageTokenizer", "load_tokenizer"),
    "sqvae.modalities.speech.views": ("LOUDNESS", "see_speech", "see_units", "spoken_alone"),
    "sqvae.modalities.speech.abx": ("MODES", "REPRESENTATIONS", "abx_of"),
    "sqvae.modalities.images.media": ("Medium", "UNKNOWN", "medium_of"),
    "sqvae.modalities.speech.tokenizer": ("SpeechTokenizer", "load_speech_tokenizer", "untrained_speech_tokenizer"),
    "sqvae.modalities.images.assembly": ("build_model", "stride_of"),
    "sqvae.modalities.speech.assembly": ("build_speech_model", "features_of"),
    "sqvae.modalities.images.codebook": ("code_atlas", "decoded_alone", "map_size", "patch_at", "quantized_pictures"),
    "sqvae.modalities.images.data": ("new_model",),
    "sqvae.modalities.speech.codebook": ("quantized_utterances",),
    "sqvae.modalities.speech.units": ("unit_spectra",),
}
"""Names that are now in a module of a modality."""


def __getattr__(name: str) -> object:
    for home in (*(f"sqvae.{room}" for room in _ROOMS), *_MODULES):
        names = _MODULES.get(home) or import_module(home).__all__
        if name in names:
            warnings.warn(
                f"sqvae.experiment.{name} is now {home}.{name}; the former name goes with the next release",
                DeprecationWarning,
                stacklevel=2,
            )
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'sqvae.experiment' has no attribute {name!r}; look in {', '.join(_ROOMS)}")

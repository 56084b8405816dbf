"""The former home of what is now in `config`, `modalities`, `tokenizers`, `runs`, `analysis`, `export` and `sweeps`.

Names are still found here for one release, with a warning that says where they are now.
"""

import warnings
from importlib import import_module

_ROOMS = ("config", "tokenizers", "runs", "analysis", "export", "sweeps")

_MODULES = {
    "sqvae.modalities.images.views": ("BRIGHTNESS",),
    "sqvae.modalities.views": ("BY_PRIOR", "DifferenceKey", "recorded_use", "to_bytes"),
    "sqvae.modalities.images.tokenizer": ("ImageTokenizer", "load_tokenizer"),
    "sqvae.modalities.speech.views": ("LOUDNESS",),
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

_RENAMED = {
    "Seen": ("sqvae.modalities.views", "CodedExample"),
    "see": ("sqvae.modalities.images.views", "view_image"),
    "see_codes": ("sqvae.modalities.images.views", "decoded_image"),
    "drawn_alone": ("sqvae.modalities.images.views", "code_images"),
    "drawn_at": ("sqvae.modalities.images.views", "replacement_images"),
    "see_speech": ("sqvae.modalities.speech.views", "view_utterance"),
    "see_units": ("sqvae.modalities.speech.views", "decoded_spectrogram"),
    "spoken_alone": ("sqvae.modalities.speech.views", "code_spectrograms"),
}
"""The modules and present names of what has another name there."""


def __getattr__(name: str) -> object:
    home, present = _RENAMED.get(name) or (_home_of(name), name)
    warnings.warn(
        f"sqvae.experiment.{name} is now {home}.{present}; the former name goes with the next release",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(import_module(home), present)


def _home_of(name: str) -> str:
    for home in (*(f"sqvae.{room}" for room in _ROOMS), *_MODULES):
        if name in (_MODULES.get(home) or import_module(home).__all__):
            return home
    raise AttributeError(f"module 'sqvae.experiment' has no attribute {name!r}; look in {', '.join(_ROOMS)}")

"""All data that goes by a name: sets of pictures, and sets of recordings."""

from collections.abc import Mapping

from sqvae.data.catalogue import DATASETS, Dataset
from sqvae.data.speech import SPEECH_SETS, SpeechSet

SETS: Mapping[str, Dataset | SpeechSet] = {**DATASETS, **SPEECH_SETS}
"""Every set by its name."""


def is_named(source: str) -> bool:
    """Whether data is asked for by a name, here or on the hub (``hf:OWNER/NAME``), rather than by a path."""
    return source in SETS or source.startswith("hf:")

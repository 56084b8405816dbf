"""Ways in which recordings are stored, and one tuple that lists them all."""

from sqvae.data.speech.readers.folder import FOLDER
from sqvae.data.speech.readers.librispeech import LIBRISPEECH
from sqvae.data.speech.readers.timit import TIMIT
from sqvae.data.speech.readers.vctk import VCTK
from sqvae.data.speech.readers.zerospeech import ZEROSPEECH
from sqvae.data.speech.recordings import SpeechReader

SPEECH_READERS: tuple[SpeechReader, ...] = (VCTK, ZEROSPEECH, LIBRISPEECH, TIMIT, FOLDER)
"""Every reader; the first that recognises the names of recordings reads them, so the particular ones come first."""

__all__ = ["SPEECH_READERS"]

"""Readers of storage formats of recordings, and a tuple of all of them."""

from sqvae.data.speech.readers.folder import FOLDER
from sqvae.data.speech.readers.librispeech import LIBRISPEECH
from sqvae.data.speech.readers.timit import TIMIT
from sqvae.data.speech.readers.vctk import VCTK
from sqvae.data.speech.readers.zerospeech import ZEROSPEECH
from sqvae.data.speech.recordings import SpeechReader

SPEECH_READERS: tuple[SpeechReader, ...] = (VCTK, ZEROSPEECH, LIBRISPEECH, TIMIT, FOLDER)
"""All readers. The first that recognises the names of recordings reads them, so specific formats come first."""

__all__ = ["SPEECH_READERS"]

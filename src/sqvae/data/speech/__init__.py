"""Speech datasets: recordings as log-mel spectrograms, and sound from such spectrograms."""

from sqvae.data.speech.audio import AudioError, audio_blocks, duration, is_audio_name, read_audio, write_audio
from sqvae.data.speech.catalogue import MADE_UP, SPEECH_SETS, SpeechSet
from sqvae.data.speech.detection import holds_speech
from sqvae.data.speech.griffin_lim import griffin_lim
from sqvae.data.speech.loading import load_speech
from sqvae.data.speech.log_mel import FEATURES, LogMel
from sqvae.data.speech.processing import SpeechProcessor
from sqvae.data.speech.readers import SPEECH_READERS
from sqvae.data.speech.reading import Heard
from sqvae.data.speech.recordings import UnreadableRecordingError, item_names
from sqvae.data.speech.segments import Crops, Segments
from sqvae.data.speech.sources import folder_of_speech
from sqvae.data.speech.streaming import count_speech, stream_speech
from sqvae.data.speech.utterances import SpeechSets, Utterances
from sqvae.data.speech.voices import made_up_items

__all__ = [
    "FEATURES",
    "MADE_UP",
    "SPEECH_READERS",
    "SPEECH_SETS",
    "AudioError",
    "Crops",
    "Heard",
    "LogMel",
    "Segments",
    "SpeechProcessor",
    "SpeechSet",
    "SpeechSets",
    "UnreadableRecordingError",
    "Utterances",
    "audio_blocks",
    "count_speech",
    "duration",
    "folder_of_speech",
    "griffin_lim",
    "holds_speech",
    "is_audio_name",
    "item_names",
    "load_speech",
    "made_up_items",
    "read_audio",
    "stream_speech",
    "write_audio",
]

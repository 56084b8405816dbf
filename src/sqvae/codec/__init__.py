"""Files of codes: self-describing token files, and compressed files."""

from sqvae.codec.compressed import CompressedFile, CompressedSize, CompressedWriter
from sqvae.codec.expectations import Adaptive, AdaptiveCost, Expectation, Histogram, Learned
from sqvae.codec.formats import SAFETENSORS, UNCHECKED, check_ending, written_as
from sqvae.codec.language import JSON_LINES, PATTERNS, LanguageFile, Vocabulary, write_language_file
from sqvae.codec.layers import AdaptiveLayers
from sqvae.codec.tokens import CONVERSIONS, CodeFile, Coder, CodeWriter, NameTaker, decode_file, encode_to_file
from sqvae.codec.units import (
    UNIT_CONVERSIONS,
    EncodedSpeech,
    SpeechCoder,
    Unit,
    UnitFile,
    UnitWriter,
    encode_speech_to_file,
    units_as_text,
)
from sqvae.codec.writing import CodeFileError

__all__ = [
    "CONVERSIONS",
    "JSON_LINES",
    "PATTERNS",
    "SAFETENSORS",
    "UNCHECKED",
    "UNIT_CONVERSIONS",
    "Adaptive",
    "AdaptiveCost",
    "AdaptiveLayers",
    "CodeFile",
    "CodeFileError",
    "CodeWriter",
    "Coder",
    "CompressedFile",
    "CompressedSize",
    "CompressedWriter",
    "EncodedSpeech",
    "Expectation",
    "Histogram",
    "LanguageFile",
    "Learned",
    "NameTaker",
    "SpeechCoder",
    "Unit",
    "UnitFile",
    "UnitWriter",
    "Vocabulary",
    "check_ending",
    "decode_file",
    "encode_speech_to_file",
    "encode_to_file",
    "units_as_text",
    "write_language_file",
    "written_as",
]

"""Codes in files: tokens that describe themselves, and compressed ones."""

from sqvae.codec.aside import CodeFileError
from sqvae.codec.compressed import CompressedFile, CompressedSize, CompressedWriter
from sqvae.codec.expectations import Adaptive, Expectation, Histogram, Learned
from sqvae.codec.tokens import CodeFile, Coder, CodeWriter, NameTaker, decode_file, encode_to_file
from sqvae.codec.units import Unit, UnitFile, UnitWriter, units_as_text

__all__ = [
    "Adaptive",
    "CodeFile",
    "CodeFileError",
    "CodeWriter",
    "Coder",
    "CompressedFile",
    "CompressedSize",
    "CompressedWriter",
    "Expectation",
    "Histogram",
    "Learned",
    "NameTaker",
    "Unit",
    "UnitFile",
    "UnitWriter",
    "decode_file",
    "encode_to_file",
    "units_as_text",
]

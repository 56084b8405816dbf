"""Codes in files: tokens that describe themselves."""

from sqvae.codec.aside import CodeFileError
from sqvae.codec.tokens import CodeFile, Coder, CodeWriter, NameTaker, decode_file, encode_to_file
from sqvae.codec.units import Unit, UnitFile, UnitWriter, units_as_text

__all__ = [
    "CodeFile",
    "CodeFileError",
    "CodeWriter",
    "Coder",
    "NameTaker",
    "Unit",
    "UnitFile",
    "UnitWriter",
    "decode_file",
    "encode_to_file",
    "units_as_text",
]

"""Codes in files: tokens that describe themselves."""

from sqvae.codec.tokens import CodeFile, CodeFileError, Coder, CodeWriter, NameTaker, decode_file, encode_to_file

__all__ = ["CodeFile", "CodeFileError", "CodeWriter", "Coder", "NameTaker", "decode_file", "encode_to_file"]

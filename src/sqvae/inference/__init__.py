"""Trained models at work on files: encode, decode, reconstruct, compress, sample."""

from sqvae.inference.coding import Encoded, decode, encode, noun_of, reconstruct, write_tokens
from sqvae.inference.compression import Compressed, Compressor, compress, compressor_of, decompress
from sqvae.inference.folders import PictureFolder, Saved
from sqvae.inference.sampling import Choices, sample_to_files

__all__ = [
    "Choices",
    "Compressed",
    "Compressor",
    "Encoded",
    "PictureFolder",
    "Saved",
    "compress",
    "compressor_of",
    "decode",
    "decompress",
    "encode",
    "noun_of",
    "reconstruct",
    "sample_to_files",
    "write_tokens",
]

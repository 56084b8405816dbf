"""Trained models at work on files: encode, decode, reconstruct, compress, sample."""

from sqvae.inference.coding import Encoded, decode, encode, is_of_speech, noun_of, reconstruct
from sqvae.inference.compression import Compressed, Compressor, compress, compressor_of, decompress
from sqvae.inference.folders import PictureFolder, Saved, SoundFolder
from sqvae.inference.sampling import Choices, sample_to_files

__all__ = [
    "Choices",
    "Compressed",
    "Compressor",
    "Encoded",
    "PictureFolder",
    "Saved",
    "SoundFolder",
    "compress",
    "compressor_of",
    "decode",
    "decompress",
    "encode",
    "is_of_speech",
    "noun_of",
    "reconstruct",
    "sample_to_files",
]

"""The codes of whole sets of vectors."""

import torch

from sqvae.data import Progress
from sqvae.modalities.vectors.files import VectorRows
from sqvae.modalities.vectors.tokenizer import AT_ONCE, VectorTokenizer
from sqvae.runs import CodeSet


def code_set(tokenizer: VectorTokenizer, rows: VectorRows, what: str, progress: Progress | None) -> CodeSet:
    """The likeliest codes of all vectors of a set, one after the other, with their lengths."""
    parts, done = [], 0
    for some in rows.rows.split(AT_ONCE):
        parts.append(tokenizer.encode(some).cpu().int())
        done += len(some)
        if progress is not None:
            progress(what, done, len(rows))
    codes = torch.cat(parts)
    return CodeSet(codes.flatten(0, 1), torch.full((len(codes),), codes.shape[1]), tokenizer.layers is not None)

"""Trained models of any kind, from a folder or from the Hugging Face hub."""

from pathlib import Path
from typing import Any

import torch

from sqvae.modality import modality_of
from sqvae.tokenizers.pretrained import Tokenizer, read, read_settings


def load(name: str | Path, *, device: str | torch.device | None = None, **download: Any) -> Tokenizer:
    """A tokenizer from a run (its best checkpoint), from a checkpoint's folder, or from the Hugging Face hub.

    What it is depends on the data that it was trained on: a :class:`~sqvae.ImageTokenizer` for images,
    label maps and grey levels, a :class:`~sqvae.SpeechTokenizer` for speech, a
    :class:`~sqvae.VectorTokenizer` for vectors. All are a :class:`~sqvae.tokenizers.Tokenizer`.

    >>> tokenizer = load("runs/faces")                                       # doctest: +SKIP
    >>> codes = tokenizer.encode(images)                                     # doctest: +SKIP

    Arguments:
        name: a path, or OWNER/NAME on the hub, which ``hf:OWNER/NAME`` says for sure: see :func:`on_hub`.
        device: where to put it; an accelerator where there is one, by default.
        download: passed on to ``huggingface_hub.snapshot_download``: revision, token, cache_dir...
    """
    stored = read(name, download)
    return modality_of(stored.experiment.kind).tokenizer(stored, name, device)


def kind_of(name: str | Path, **download: Any) -> str:
    """The kind of data that a trained model is for, as `data.kind` names it."""
    return read_settings(name, download).data.kind

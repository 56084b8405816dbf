"""Trained models, of whatever kind, from where they lie."""

from pathlib import Path
from typing import Any

import torch

from sqvae.modalities.images.tokenizer import load_tokenizer
from sqvae.modalities.speech.tokenizer import load_speech_tokenizer
from sqvae.tokenizers import read_settings


def load(
    name: str | Path, *, device: str | torch.device | None = None, **download: Any
) -> Any:  # Tokenizer | SpeechTokenizer: whoever asks knows which
    """A tokenizer from a run (its best checkpoint), a checkpoint's folder, or a model of the Hugging Face hub.

    It is a :class:`Tokenizer` for pictures, label maps and grey levels, and a :class:`SpeechTokenizer` for speech.

    >>> tokenizer = load("runs/faces")                                       # doctest: +SKIP
    >>> codes = tokenizer.encode(pictures)                                   # doctest: +SKIP

    Arguments:
        name: a path, or OWNER/NAME on the hub, which ``hf:OWNER/NAME`` says for sure: see :func:`on_hub`.
        device: where to put it; an accelerator where there is one, by default.
        download: passed on to ``huggingface_hub.snapshot_download``: revision, token, cache_dir...
    """
    return LOADERS.get(kind_of(name, **download), load_tokenizer)(name, device=device, **download)


LOADERS = {"speech": load_speech_tokenizer}


def kind_of(name: str | Path, **download: Any) -> str:
    """What a trained model is about: pictures, labels, levels or speech."""
    return read_settings(name, download).data.kind

"""Small models of every kind, untrained, with examples for them."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from runs import tiny
from sqvae.config import DataSettings, Experiment, LikelihoodSettings, SpeechSettings
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.speech.tokenizer import SpeechTokenizer, untrained_speech_tokenizer

CODES = 16
SHAPE = {"pictures": (3, 8, 16), "levels": (1, 8, 8), "labels": (1, 8, 12)}
"""Of examples. A code covers 4x4 pixels."""


def picture_experiment(kind: str) -> Experiment:
    base = tiny("nowhere")
    channels, height, width = SHAPE[kind]
    data = DataSettings(source="nowhere", kind=kind, size=(height, width))
    if kind == "pictures":
        return replace(base, data=replace(data, channels=channels))
    if kind == "labels":
        data = replace(data, classes=5, ignore=255)
    return replace(base, data=data, likelihood=LikelihoodSettings(name="categorical"))


def picture_tokenizer(kind: str) -> ImageTokenizer:
    """With codes that are encodings of random examples, so that several are used."""
    torch.manual_seed(0)
    experiment = picture_experiment(kind)
    tokenizer = ImageTokenizer(new_model(experiment).eval(), experiment, "none")
    with torch.no_grad():
        examples = torch.stack([example(kind, seed) for seed in range(8)])
        z = tokenizer.encodings(examples).flatten(0, 2)
        tokenizer.model.quantizer.get_parameter("codebook").copy_(z[torch.randperm(len(z))[:CODES]])
    return tokenizer


def speech_tokenizer(change: Callable[[Experiment], Experiment] = lambda same: same) -> SpeechTokenizer:
    """With codes of its first layer that are encodings of an example, so that several are used."""
    torch.manual_seed(0)
    base = tiny("nowhere")
    speech = SpeechSettings(channels=16, hidden=8, speaker_dim=4, speakers=("anna", "ben"))
    experiment = replace(base, data=DataSettings(source="nowhere", kind="speech"), speech=speech)
    tokenizer = untrained_speech_tokenizer(change(experiment))
    tokenizer.model.eval()
    with torch.no_grad():
        z = tokenizer.encodings([example("speech", 0)])[0]
        tokenizer.model.quantizer.books[0].codebook.copy_(z[torch.randperm(len(z))[:CODES]])
    return tokenizer


def example(kind: str, seed: int = 0) -> Tensor:
    """As it is stored for training: (C, H, W), or frames (T, mels)."""
    random = torch.Generator().manual_seed(seed)
    if kind == "speech":
        return 10 * torch.randn(51, 80, generator=random) - 40
    most = 5 if kind == "labels" else 256
    return torch.randint(0, most, SHAPE[kind], generator=random).byte()

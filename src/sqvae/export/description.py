"""What someone needs to know to use an exported tokenizer without this package."""

from typing import Any

from sqvae import __version__
from sqvae.export.exportable import Exportable, Slot
from sqvae.modality import modality_of
from sqvae.tokenizers import Tokenizer

FORMAT = 1


def described(tokenizer: Tokenizer, networks: tuple[Exportable, Exportable]) -> dict[str, Any]:
    """A tokenizer's codes, what its networks take and give, and how data is brought there."""
    experiment = tokenizer.experiment
    return {
        "format": FORMAT,
        "sqvae": __version__,
        "fingerprint": tokenizer.fingerprint,
        "kind": experiment.kind,
        "quantizer": experiment.quantizer.name,
        "codebook_size": tokenizer.codebook_size,
        "dim": experiment.quantizer.dim,
        **{network.name: _interface(network) for network in networks},
        **modality_of(experiment.kind).described(tokenizer),
    }


def _interface(network: Exportable) -> dict[str, Any]:
    return {"inputs": [_slot(slot) for slot in network.inputs], "output": _slot(network.output)}


def _slot(slot: Slot) -> dict[str, Any]:
    kind = str(slot.dtype).removeprefix("torch.")
    return {"name": slot.name, "type": kind, "shape": list(slot.shape), "meaning": slot.meaning}

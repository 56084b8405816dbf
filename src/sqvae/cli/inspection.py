"""What `sqvae inspect` puts together."""

from pathlib import Path

import torch

from sqvae.experiment import load
from sqvae.reports import Section, summarize
from sqvae.training import CheckpointError, RunFolder, read_json


def _steps(folder: RunFolder) -> int:
    """How far the newest checkpoint is."""
    state = folder.last / "training.json"
    return int(read_json(state)["step"]) if state.exists() else 0


def inspect_run(run: Path) -> list[Section]:
    """A run in plain words."""
    folder = RunFolder(run)
    if not folder.config.exists() or (run / "model.safetensors").exists():
        raise CheckpointError(f"{run} is no run: give the folder that `sqvae train` has written")
    tokenizer = load(run)
    channels, height, width = tokenizer.shape
    with torch.inference_mode():
        z = tokenizer.model.encoder(torch.zeros(1, channels, height, width, device=tokenizer.device))
    latent = z if isinstance(z, torch.Tensor) else z[0]
    return summarize(
        folder,
        read_json(folder.config)["experiment"],
        shape=tokenizer.shape,
        code_shape=tuple(latent.shape[2:]),
        parameters=sum(p.numel() for p in tokenizer.model.parameters() if p.requires_grad),
        fingerprint=tokenizer.fingerprint,
        steps=_steps(folder),
    )

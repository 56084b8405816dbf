"""Checkpoints: a folder with the configuration, the weights and the training state, without pickle.

A checkpoint is written to a temporary folder, flushed to the disk, and renamed. It contains a manifest with the hash of
each file. So a folder with a checkpoint's name is always complete, whenever the process was killed, and a file that was
truncated or changed afterwards is detected before anything is read from it.
"""

import contextlib
import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from sqvae.files import UncheckedWarning, sync, write_text

LOG = "log.jsonl"
"""The log file of a run, beside its checkpoints."""

CONFIG, WEIGHTS, STATE, STATE_TENSORS, MANIFEST = (
    "config.json",
    "model.safetensors",
    "training.json",
    "training.safetensors",
    "manifest.json",
)


LARGEST_JSON = 1 << 26
"""Maximum number of bytes of a JSON file. Only class names and speakers can make these files large."""


class CheckpointError(Exception):
    """A checkpoint can't be written or read; the message says which one, why, and what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """The content of a checkpoint."""

    config: Mapping[str, Any]
    weights: Mapping[str, Tensor] = field(repr=False)
    state: Mapping[str, Any] | None = None
    """The training state, except for tensors; None in a checkpoint without training state."""
    state_tensors: Mapping[str, Tensor] = field(default_factory=dict, repr=False)


def write_checkpoint(target: Path, checkpoint: Checkpoint, *, previous: Path | None = None) -> None:
    """Write a checkpoint, and replace an existing one.

    Arguments:
        target: the folder.
        checkpoint: what to write.
        previous: where to keep the checkpoint that is replaced; by default it is deleted once the new one is in place.
    """
    new, old = target.with_name(target.name + ".new"), previous or target.with_name(target.name + ".old")
    try:
        _remove(new)
        new.mkdir(parents=True)
        _write_files(new, checkpoint)
        if target.exists():
            _remove(old)
            target.rename(old)
        new.rename(target)
        sync(target.parent)
        if previous is None:
            _remove(old)
    except OSError as failure:
        with contextlib.suppress(OSError):
            _remove(new)
        raise CheckpointError(f"can't write the checkpoint {target}: {failure.strerror or failure}") from failure


def restore_interrupted(target: Path) -> None:
    """Restore a checkpoint that a kill between two renames left under its old name."""
    old = target.with_name(target.name + ".old")
    if not target.exists() and old.exists():
        old.rename(target)


def read_checkpoint(folder: Path, *, training: bool = False) -> Checkpoint:
    """Read a checkpoint. Every file is verified against the manifest first.

    Arguments:
        folder: the checkpoint.
        training: read the training state as well.
    """
    verify(folder)
    try:
        config = read_json(folder / CONFIG)
        weights = load_file(folder / WEIGHTS)
        if not training:
            return Checkpoint(config, weights)
        if not (folder / STATE).exists():
            raise CheckpointError(f"{folder} contains weights only, without the training state that resuming needs")
        return Checkpoint(config, weights, read_json(folder / STATE), load_file(folder / STATE_TENSORS))
    except (OSError, ValueError, SafetensorError) as failure:
        raise CheckpointError(f"can't read the checkpoint {folder}: {failure}") from failure


def verify(folder: Path) -> None:
    """Raise CheckpointError if a checkpoint does not exist or is damaged."""
    if not folder.is_dir():
        raise CheckpointError(f"there is no checkpoint {folder}")
    if not (folder / MANIFEST).exists():
        _verify_without_manifest(folder)
        return
    problem = _damage(folder)
    if problem is not None:
        raise CheckpointError(f"the checkpoint {folder} is damaged: {problem}")


def _damage(folder: Path) -> str | None:
    """What differs from the manifest, in words; None if nothing does."""
    try:
        manifest = {
            name: (int(entry["bytes"]), str(entry["sha256"])) for name, entry in read_json(folder / MANIFEST).items()
        }
    except (CheckpointError, TypeError, KeyError, ValueError, OverflowError):
        return f"{MANIFEST} can't be read"
    there = {name for name in (CONFIG, WEIGHTS, STATE, STATE_TENSORS) if (folder / name).exists()}
    for name in {CONFIG, WEIGHTS, *manifest} - there:
        return f"{name} is missing"
    if unlisted := there - set(manifest):
        return f"{MANIFEST} has been changed: it does not list {min(unlisted)}"
    for name, (expected, digest) in manifest.items():
        size = (folder / name).stat().st_size
        if size != expected:
            return f"{name} has {size:,} bytes, but {expected:,} were written"
        if _hash(folder / name) != digest:
            return f"{name} was changed after it was written"
    return None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; raises an error with the path if it is not valid."""
    try:
        size = path.stat().st_size
        if size > LARGEST_JSON:
            raise CheckpointError(
                f"{path} has {size:,} bytes, but the maximum for such a file is {LARGEST_JSON:,}: it is not part of a "
                f"checkpoint"
            )
        content = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise CheckpointError(f"can't read {path}: it is nested too deeply") from None
    except (ValueError, OSError) as failure:
        raise CheckpointError(f"can't read {path}: {failure}") from failure
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} must contain a JSON object, got a {type(content).__name__}")
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically."""
    write_text(path, json.dumps(content, indent=2))


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """A hash of the weights of a model, which identifies the model that codes belong to."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:32]


def _write_files(folder: Path, checkpoint: Checkpoint) -> None:
    save_tensors(folder / WEIGHTS, checkpoint.weights)
    write_json(folder / CONFIG, checkpoint.config)
    if checkpoint.state is not None:
        save_tensors(folder / STATE_TENSORS, checkpoint.state_tensors)
        write_json(folder / STATE, checkpoint.state)
    manifest = {path.name: {"bytes": path.stat().st_size, "sha256": _hash(path)} for path in sorted(folder.iterdir())}
    write_json(folder / MANIFEST, manifest)
    sync(folder)


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file, and flush it to the disk."""
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as failure:  # raised if the disk is full
        raise OSError(None, f"{path.name}: {failure}") from failure
    path.chmod(0o644)  # safetensors makes files readable by the owner only
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _verify_without_manifest(folder: Path) -> None:
    """Check that the files exist. Models from elsewhere need not have a manifest."""
    missing = [name for name in (CONFIG, WEIGHTS) if not (folder / name).exists()]
    if missing:
        raise CheckpointError(f"{folder} is not a checkpoint: it has no {' and no '.join(missing)}")
    of_a_run = (folder / STATE).exists() or (folder.parent / LOG).exists()
    if of_a_run:  # checkpoints of a run always have a manifest
        raise CheckpointError(f"the checkpoint {folder} is damaged: {MANIFEST} is missing")
    warnings.warn(
        f"{folder} has no {MANIFEST}, which every saved model has: damage to its weights can't be detected",
        UncheckedWarning,
        stacklevel=2,
    )


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)

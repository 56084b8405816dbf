"""Checkpoints: a folder with the configuration, the weights and the training state. Nothing in it is pickled.

A checkpoint is written to the side, down to the disk, and renamed into place; a manifest with the hash of each file is
part of it. So whatever has a checkpoint's name is a whole one, whenever the process was killed, and a file that was cut
or changed afterwards is found out before anything is read from it.
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
"""Of a run, beside its checkpoints."""

CONFIG, WEIGHTS, STATE, STATE_TENSORS, MANIFEST = (
    "config.json",
    "model.safetensors",
    "training.json",
    "training.safetensors",
    "manifest.json",
)


LARGEST_JSON = 1 << 26
"""Bytes of any of the files of text. Class names and speakers are all that can make them large."""


class CheckpointError(Exception):
    """A checkpoint can't be written or read; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds."""

    config: Mapping[str, Any]
    weights: Mapping[str, Tensor] = field(repr=False)
    state: Mapping[str, Any] | None = None
    """Of the training, as far as it is not tensors; None in a checkpoint that is only to be used."""
    state_tensors: Mapping[str, Tensor] = field(default_factory=dict, repr=False)


def write_checkpoint(target: Path, checkpoint: Checkpoint, *, previous: Path | None = None) -> None:
    """Write a checkpoint, and put it in the place of the one that is there.

    Arguments:
        target: the folder.
        previous: where to keep the one that was there; it is deleted otherwise, once the new one stands.
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
    """Put back what a kill between two renames has left under its old name."""
    old = target.with_name(target.name + ".old")
    if not target.exists() and old.exists():
        old.rename(target)


def read_checkpoint(folder: Path, *, training: bool = False) -> Checkpoint:
    """Read a checkpoint, every file checked against the manifest first.

    Arguments:
        training: read the training state as well.
    """
    verify(folder)
    try:
        config = read_json(folder / CONFIG)
        weights = load_file(folder / WEIGHTS)
        if not training:
            return Checkpoint(config, weights)
        if not (folder / STATE).exists():
            raise CheckpointError(f"{folder} holds weights only, and no training state to go on from")
        return Checkpoint(config, weights, read_json(folder / STATE), load_file(folder / STATE_TENSORS))
    except (OSError, ValueError, SafetensorError) as failure:
        raise CheckpointError(f"can't read the checkpoint {folder}: {failure}") from failure


def verify(folder: Path) -> None:
    """Raise if a checkpoint is not there, or not as it was written."""
    if not folder.is_dir():
        raise CheckpointError(f"there is no checkpoint {folder}")
    if not (folder / MANIFEST).exists():
        _verify_without_manifest(folder)
        return
    problem = _damage(folder)
    if problem is not None:
        raise CheckpointError(f"the checkpoint {folder} is damaged: {problem}")


def _damage(folder: Path) -> str | None:
    """What is not as the manifest says."""
    try:
        manifest = {
            name: (int(entry["bytes"]), str(entry["sha256"])) for name, entry in read_json(folder / MANIFEST).items()
        }
    except (CheckpointError, TypeError, KeyError, ValueError, OverflowError):
        return f"{MANIFEST} is no longer what it was"
    there = {name for name in (CONFIG, WEIGHTS, STATE, STATE_TENSORS) if (folder / name).exists()}
    for name in {CONFIG, WEIGHTS, *manifest} - there:
        return f"{name} is missing"
    if unlisted := there - set(manifest):
        return f"{MANIFEST} is no longer what it was: it has no {min(unlisted)}"
    for name, (expected, digest) in manifest.items():
        size = (folder / name).stat().st_size
        if size != expected:
            return f"{name} has {size:,} bytes, but {expected:,} were written"
        if _hash(folder / name) != digest:
            return f"{name} was altered after it was written"
    return None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file's object; what is no JSON is an error that names the file."""
    try:
        size = path.stat().st_size
        if size > LARGEST_JSON:
            raise CheckpointError(
                f"{path} has {size:,} bytes, and such a file never has more than {LARGEST_JSON:,}: it is not what it "
                f"should be"
            )
        content = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise CheckpointError(f"can't read {path}: it is nested too deeply to be what it should be") from None
    except (ValueError, OSError) as failure:
        raise CheckpointError(f"can't read {path}: {failure}") from failure
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} must hold a JSON object, got a {type(content).__name__}")
    return content


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file, whole or not at all."""
    write_text(path, json.dumps(content, indent=2))


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """A name for a set of weights, equal only where all of them are: what codes belong to."""
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
    """Write a safetensors file, down to the disk."""
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as failure:  # how it says that a disk is full
        raise OSError(None, f"{path.name}: {failure}") from failure
    path.chmod(0o644)  # it is written for its owner alone, unlike its neighbours
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _verify_without_manifest(folder: Path) -> None:
    """A model that somebody else has put together need not have a manifest; its files must be there."""
    missing = [name for name in (CONFIG, WEIGHTS) if not (folder / name).exists()]
    if missing:
        raise CheckpointError(f"{folder} is no checkpoint: it has no {' and no '.join(missing)}")
    of_a_run = (folder / STATE).exists() or (folder.parent / LOG).exists()
    if of_a_run:  # which had one
        raise CheckpointError(f"the checkpoint {folder} is damaged: {MANIFEST} is missing")
    warnings.warn(
        f"{folder} has no {MANIFEST}, which every model is saved with: whether its weights are as they were written "
        f"can't be told",
        UncheckedWarning,
        stacklevel=2,
    )


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)

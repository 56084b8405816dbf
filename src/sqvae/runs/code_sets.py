"""The codes of a run's data: made once, and kept beside the run."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from sqvae.data import Progress
from sqvae.files import written
from sqvae.modality import modality_of
from sqvae.runs.prepared import Prepared
from sqvae.tokenizers import Tokenizer

FORMAT = "sqvae-code-sets-1"
SPLITS = ("train", "validation", "test")


@dataclass(frozen=True)
class CodeSet:
    """The codes of all examples of a set: maps of one shape, or sequences of any lengths one after the other."""

    codes: Tensor
    """(N, h, w), or (total,); with layers they are the last axis."""
    lengths: Tensor | None = None
    """(N,) of sequences; None for maps."""
    layered: bool = False
    """Whether codes have an axis of layers."""

    def __len__(self) -> int:
        return len(self.codes if self.lengths is None else self.lengths)

    def sequences(self) -> tuple[Tensor, ...]:  # -> (n,) or (n, layers), each
        """The codes of each example by themselves."""
        if self.lengths is not None:
            return tuple(self.codes.split(self.lengths.tolist()))
        return tuple(self.codes.flatten(1, -2 if self.layered else -1).unbind())

    def counts(self, codebook_size: int) -> Tensor:  # -> (K,), or (layers, K)
        """How often each code occurs, in each layer if there are layers."""
        return code_counts(self.codes, codebook_size, layered=self.layered)

    @property
    def coarsest(self) -> "CodeSet":
        """Those of the first layer, or all of them where there are no layers."""
        return replace(self, codes=self.codes[..., 0], layered=False) if self.layered else self


def code_counts(codes: Tensor, codebook_size: int, *, layered: bool) -> Tensor:  # (...) -> (K,), or (layers, K)
    """How often each code occurs; with layers, the last axis, in each of them."""
    if not layered:
        return torch.bincount(codes.flatten().long(), minlength=codebook_size)
    layers = codes.flatten(0, -2).unbind(-1)
    return torch.stack([torch.bincount(own.long(), minlength=codebook_size) for own in layers])


def codes_of_sets(
    tokenizer: Tokenizer, prepared: Prepared, folder: Path | None, progress: Progress | None = None
) -> dict[str, CodeSet]:
    """The likeliest codes of a model's training, validation and test sets.

    Arguments:
        tokenizer: the model.
        prepared: its data.
        folder: where they are kept, and found again as long as model and data are the same; None: nowhere.
        progress: called with what is being done, how many are done and how many there are.
    """
    if folder is None:
        return _encoded(tokenizer, prepared, progress)
    path = folder / "codes.safetensors"
    marks = {"format": FORMAT, "fingerprint": tokenizer.fingerprint, "data_key": prepared.key_of_sets}
    found = _read(path, marks, layered=tokenizer.layers is not None)
    if found is None:
        found = _encoded(tokenizer, prepared, progress)
        with suppress(OSError, SafetensorError):  # a run that may only be read costs time, and nothing else
            _write(path, found, marks)
    return found


def _encoded(tokenizer: Tokenizer, prepared: Prepared, progress: Progress | None) -> dict[str, CodeSet]:
    encode = modality_of(tokenizer.experiment.kind).code_set
    return {split: encode(tokenizer, prepared.part(split), f"encoding the {split} set", progress) for split in SPLITS}


def _read(path: Path, marks: Mapping[str, str], *, layered: bool) -> dict[str, CodeSet] | None:
    """What a file holds, if it is of this model and this data. The model tells whether there are layers."""
    try:
        with safe_open(path, framework="pt") as file:
            if dict(file.metadata() or {}) != dict(marks):
                return None
            names = set(file.keys())
            return {
                split: CodeSet(
                    file.get_tensor(split),
                    file.get_tensor(f"{split}.lengths") if f"{split}.lengths" in names else None,
                    layered,
                )
                for split in SPLITS
            }
    except (FileNotFoundError, SafetensorError):  # a damaged one is made again
        return None


def _write(path: Path, sets: Mapping[str, CodeSet], marks: Mapping[str, str]) -> None:
    tensors = {split: codes.codes for split, codes in sets.items()}
    tensors |= {f"{split}.lengths": codes.lengths for split, codes in sets.items() if codes.lengths is not None}
    with written(path) as aside:
        save_file(tensors, aside, metadata=dict(marks))
        aside.chmod(0o644)  # it is written for its owner alone

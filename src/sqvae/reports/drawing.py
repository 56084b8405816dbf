"""Images and curves that are written during training."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqvae.modality import MODALITIES, modality_of
from sqvae.reports.curves import save_curves
from sqvae.reports.grid import save_pairs
from sqvae.training import CheckpointError, Position, RunFolder, Validation, Watcher, read_json, read_records

PRIOR = "prior"
"""The name of the folder of a model's prior."""


class Drawings(Watcher):
    """Writes originals and reconstructions, and the curves so far, after each validation."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def validated(self, position: Position, validation: Validation, best: bool) -> None:
        try:
            self._draw(position, validation)
        except (OSError, ValueError, RuntimeError, CheckpointError) as failure:  # a failed plot must not stop training
            warnings.warn(f"cannot draw into {self.folder}: {failure}", stacklevel=2)

    def _draw(self, position: Position, validation: Validation) -> None:
        if validation.originals is not None and validation.reconstructions is not None:
            self.folder.pictures.mkdir(exist_ok=True)
            path = self.folder.pictures / f"epoch-{position.epoch:04d}.png"
            save_pairs(
                path,
                validation.originals,
                validation.reconstructions,
                validation.errors,
                title=f"{self._what('validation')}, after epoch {position.epoch} of {position.epochs}",
                lines=reading_of(self._data.get("kind", "")),
                classes=validation.classes,
            )
        save_curves(
            self.folder.curves,
            read_records(self.folder.log),
            len(validation.counts),
            title=f"Training of {self._name}{self._source(' on ')}",
        )

    @property
    def _name(self) -> str:
        """The name of the run. A prior's folder is usually called "prior", so it gets the name of its model, too."""
        path = self.folder.path.resolve()
        return f"{path.parent.name}/{path.name}" if path.name == PRIOR else path.name

    @property
    def _data(self) -> Mapping[str, Any]:
        """The settings of the data, if the run's folder has them."""
        config = read_json(self.folder.config) if self.folder.config.exists() else {}
        found: Mapping[str, Any] = config.get("experiment", {}).get("data", {})
        return found

    def _source(self, before: str) -> str:
        source = self._data.get("source", "")
        return f"{before}{Path(source).name}" if source else ""

    def _what(self, split: str) -> str:
        noun = modality_of(self._data.get("kind", "pictures")).noun
        return f"{self._name}: {split} {noun}s{self._source(' of ')}"


def reading_of(kind: str) -> tuple[str, ...]:
    """How to read pictures of a kind of data, where that needs to be said."""
    return modality_of(kind).reading if kind in MODALITIES else ()

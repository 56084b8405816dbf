"""Pictures that are written as training goes on."""

import warnings

from sqvae.reports.curves import save_curves
from sqvae.reports.grid import save_pairs
from sqvae.training import Position, RunFolder, Validation, Watcher, read_records


class Drawings(Watcher):
    """After each validation, originals above reconstructions, and the curves so far."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def validated(self, position: Position, validation: Validation, best: bool) -> None:
        try:
            self._draw(position, validation)
        except (OSError, ValueError, RuntimeError) as failure:  # no reason to lose an epoch
            warnings.warn(f"can't draw into {self.folder}: {failure}", stacklevel=2)

    def _draw(self, position: Position, validation: Validation) -> None:
        if validation.originals is not None and validation.reconstructions is not None:
            self.folder.pictures.mkdir(exist_ok=True)
            path = self.folder.pictures / f"epoch-{position.epoch:04d}.png"
            save_pairs(path, validation.originals, validation.reconstructions, validation.errors)
        save_curves(self.folder.curves, read_records(self.folder.log), len(validation.counts))

"""Pictures in rows."""

from collections.abc import Sequence
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

GAP = 2


def save_pairs(
    path: Path, originals: Tensor, reconstructions: Tensor, errors: Tensor | None = None, columns: int = 8
) -> None:
    """Rows of originals, each above the row of its reconstructions; grey lines part the pairs of rows.

    Arguments:
        originals, reconstructions: (n, C, H, W), in [0, 1], C = 1 or 3.
        errors: the same, for a third row.
    """
    save_rows(path, [originals, reconstructions, *([] if errors is None else [errors])], columns)


def save_rows(path: Path, rows: Sequence[Tensor], columns: int = 8) -> None:
    """Rows of pictures, what belongs together above each other; grey lines part the bands of rows.

    Arguments:
        rows: (n, C, H, W) each, in [0, 1], C = 1 or 3.
        columns: pictures in a row, at most.
    """
    count, channels, height, width = rows[0].shape
    columns = min(columns, count)
    bands = []
    for start in range(0, count, columns):
        pairs = [pictures[start : start + columns] for pictures in rows]
        band = torch.full((channels, len(rows) * height, columns * width), 0.5)
        for row, pictures in enumerate(pairs):
            for column, picture in enumerate(pictures):
                top, left = row * height, column * width
                band[:, top : top + height, left : left + width] = picture
        bands += [band, torch.full((channels, GAP, columns * width), 0.5)]
    grid = (torch.cat(bands[:-1], 1).clamp(0, 1) * 255).round().byte().permute(1, 2, 0).squeeze(-1)
    image = Image.fromarray(grid.contiguous().numpy())
    scale = max(1, 96 // height)  # small pictures are hard to see
    image.resize((scale * image.width, scale * image.height), Image.Resampling.NEAREST).save(path)

"""Reconstructions of the same images by several models, in rows."""

from collections.abc import Iterable, Sequence

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from torch import Tensor
from torch.nn.functional import pad

from sqvae.config import Experiment, from_json
from sqvae.modalities.images.media import UNKNOWN, medium_of
from sqvae.paper.artefact import Results
from sqvae.paper.methods import METHODS
from sqvae.reports.grid import MOST_CLASSES, Class
from sqvae.sweeps import Record, load_pictures

SHOWN = 10
"""The number of images."""


def side_by_side(results: Results, methods: Sequence[str], **tags: str) -> Figure:
    """A figure with a row of originals, and a row for each model.

    Arguments:
        results: the finished runs.
        methods: the models, in order; each has a finished run.
        tags: the tags of the runs; the first run of each model is shown.
    """
    rows = {
        METHODS[method].label: load_pictures(results.folder, results.where(method=method, **tags)[0])
        for method in methods
    }
    found = {label: pictures for label, pictures in rows.items() if pictures is not None}
    figure = Figure(figsize=(13, len(found) + 1.3), layout="constrained")
    if not found:
        return figure
    originals = next(iter(found.values()))[0]
    strips = {"original": originals, **{label: pictures[1] for label, pictures in found.items()}}
    panels = figure.subplots(len(strips), 2, squeeze=False, width_ratios=(1, 6))
    for (beside, axes), (label, pictures) in zip(panels, strips.items(), strict=True):
        apart = pad(pictures[:SHOWN], (0, 0, 0, max(1, pictures.shape[2] // 16)), value=255)
        strip = apart.permute(1, 0, 2, 3).flatten(1, 2)  # (H, n (W + gap), C)
        axes.imshow(strip.squeeze(-1).numpy(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.axis("off")
        beside.axis("off")
        beside.text(1, 0.5, label, ha="right", va="center", fontsize=9)
    first = results.where(method=methods[0], **tags)[0]
    classes = _classes_in(first, strips.values())
    if classes:
        swatches = [Patch(facecolor=colour, edgecolor="0.4", label=name) for name, colour in classes[:MOST_CLASSES]]
        figure.legend(handles=swatches, loc="outside upper center", ncols=min(8, len(swatches)), fontsize="small")
    return figure


def _classes_in(record: Record, pictures: Iterable[Tensor]) -> list[Class]:
    """For label maps, the classes whose colours occur in images, uint8 (n, H, W, 3).

    It is empty if there are other colours, too: classes may have had other colours when the record was made.
    """
    data = record.experiment["data"]
    if data["kind"] != "labels":
        return []
    medium = medium_of(from_json(Experiment, record.experiment))
    legend = list(medium.legend())
    # Older records show unknown pixels in black.
    for unknown in (medium.unknown, (UNKNOWN, "#000000")):
        if unknown is not None and unknown[1] not in {colour for _, colour in legend}:
            legend.append(unknown)
    found = torch.cat([strip.reshape(-1, 3) for strip in pictures]).unique(dim=0).tolist()
    shown = {"#{:02x}{:02x}{:02x}".format(*colour) for colour in found}
    known = {colour for _, colour in legend}
    return [(name, colour) for name, colour in legend if colour in shown] if shown <= known else []

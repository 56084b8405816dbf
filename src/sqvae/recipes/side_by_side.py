"""What each model makes of the same pictures, in rows."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch.nn.functional import pad

from sqvae.experiment import load_pictures
from sqvae.recipes.artefact import Results
from sqvae.recipes.methods import METHODS

SHOWN = 10
"""So many pictures."""


def side_by_side(results: Results, methods: Sequence[str], **tags: str) -> Figure:
    """A row of originals, and one for each model.

    Arguments:
        methods: the models, in order; each has a finished run.
        tags: which runs of theirs; the first is shown.
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
    return figure

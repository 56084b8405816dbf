"""What units of speech sound like, drawn."""

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from sqvae.reports.plotting import caption_below, save_figure


def save_spectra(path: Path, counts: Tensor, mean: Tensor, *, codes: int, where: str) -> None:
    """Draw the mean spectrum where each unit is heard, the units side by side from the darkest sound to the brightest.

    Arguments:
        counts: (K,), how often each was taken.
        mean: (K, mels), in dB; nan where it never was.
        codes: how many units to show, of those used most.
        where: on what they were heard.
    """
    shown = by_brightness(counts, mean, codes)
    figure = Figure(figsize=(min(16.0, max(9.0, 4 + 0.12 * len(shown))), 4.8), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(mean[shown].T.numpy(), origin="lower", aspect="auto", cmap="magma", interpolation="nearest")
    axes.set(
        title=f"What is heard where each of the {len(shown)} units used most is taken",
        xlabel="number of the unit, from the darkest sound to the brightest",
        ylabel="mel band, from low pitch to high",
    )
    caption_below(figure, f"Each column is the mean spectrum at a unit's places, on {where}.")
    step = max(1, len(shown) // 32)
    axes.set_xticks(range(0, len(shown), step), [str(int(code)) for code in shown[::step]], rotation=90, fontsize=7)
    figure.colorbar(image, ax=axes, label="mean level in dB")
    save_figure(figure, path, dpi=110)


def by_brightness(counts: Tensor, mean: Tensor, codes: int) -> Tensor:  # (K,), (K, mels) -> (n,)
    """So many of the units that are used most, from the darkest sound to the brightest."""
    used = counts.sort(descending=True, stable=True).indices[: min(codes, int((counts > 0).sum()))]
    # By the balance of the spectrum: the mel band that its loudness, above its quietest, is centred at.
    above = mean[used] - mean[used].amin(1, keepdim=True)
    bands = above.new_tensor(range(mean.shape[1]))
    return used[((above * bands).sum(1) / above.sum(1).clamp_min(1e-6)).argsort()]


def spectra_picture(mean: Tensor, units: Tensor) -> NDArray[np.uint8]:  # (K, mels), (n,) -> (mels, n, 3)
    """The mean spectra of some units side by side, pitch upwards, the loudest brightest."""
    rows = mean[units].T.flip(0).numpy()
    low, high = rows.min(), rows.max()
    colours: NDArray[np.uint8] = colormaps["magma"]((rows - low) / max(high - low, 1e-6), bytes=True)[..., :3]
    return colours

"""Plots of the mean spectra of codes of speech."""

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from sqvae.reports.plotting import caption_below, save_figure


def save_spectra(path: Path, counts: Tensor, mean: Tensor, *, codes: int, where: str) -> None:
    """Plot the mean spectrum of each code, from the darkest sound to the brightest.

    Arguments:
        path: the file to write.
        counts: (K,), the usage of each code.
        mean: (K, mels), the mean spectra in dB; nan for unused codes.
        codes: the number of codes to show, the most used ones.
        where: a description of the data.
    """
    shown = by_brightness(counts, mean, codes)
    figure = Figure(figsize=(min(16.0, max(9.0, 4 + 0.12 * len(shown))), 4.8), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(mean[shown].T.numpy(), origin="lower", aspect="auto", cmap="magma", interpolation="nearest")
    axes.set(
        title=f"The mean spectrum of each of the {len(shown)} most used codes",
        xlabel="code, from the darkest sound to the brightest",
        ylabel="mel band, from low to high frequency",
    )
    caption_below(figure, f"Each column is the mean spectrum at the positions of a code, on {where}.")
    step = max(1, len(shown) // 32)
    axes.set_xticks(range(0, len(shown), step), [str(int(code)) for code in shown[::step]], rotation=90, fontsize=7)
    figure.colorbar(image, ax=axes, label="mean level in dB")
    save_figure(figure, path, dpi=110)


def by_brightness(counts: Tensor, mean: Tensor, codes: int) -> Tensor:  # (K,), (K, mels) -> (n,)
    """The most used codes, from the darkest sound to the brightest."""
    used = counts.sort(descending=True, stable=True).indices[: min(codes, int((counts > 0).sum()))]
    # Brightness is the centre of mass of the spectrum above its minimum, in mel bands.
    above = mean[used] - mean[used].amin(1, keepdim=True)
    bands = above.new_tensor(range(mean.shape[1]))
    return used[((above * bands).sum(1) / above.sum(1).clamp_min(1e-6)).argsort()]


def spectra_picture(mean: Tensor, units: Tensor) -> NDArray[np.uint8]:  # (K, mels), (n,) -> (mels, n, 3)
    """The mean spectra of some codes side by side, high frequencies at the top, loud parts bright."""
    rows = mean[units].T.flip(0).numpy()
    low, high = rows.min(), rows.max()
    colours: NDArray[np.uint8] = colormaps["magma"]((rows - low) / max(high - low, 1e-6), bytes=True)[..., :3]
    return colours

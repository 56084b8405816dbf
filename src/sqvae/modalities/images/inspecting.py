"""Images, where a run is inspected."""

from pathlib import Path

from torch import Tensor

from sqvae.data import Pictures
from sqvae.modalities.images.codebook import code_atlas, map_size, quantized_pictures
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.inspecting import Inspection, Plots
from sqvae.reports import about_pictures, save_atlas


def _draw_patches(
    tokenizer: ImageTokenizer, pictures: Pictures, name: str, plots: Plots, out: Path
) -> tuple[Tensor, str, str]:
    atlas = code_atlas(tokenizer, pictures, codes=plots.codes, at_most=plots.pictures, progress=plots.progress)
    number = f"{atlas.pictures:,}" + (f" of {atlas.available:,}" if atlas.pictures < atlas.available else "")
    where = f"{number} validation {tokenizer.medium.noun}s of {name}"
    save_atlas(
        out / "codes.png",
        atlas.codes,
        atlas.counts,
        atlas.seen,
        atlas.drawn,
        atlas.places,
        stride=atlas.stride,
        where=where,
        classes=tokenizer.medium.legend(),
    )
    return atlas.counts, where, f"{out / 'codes.png'}: what each code stands for"


INSPECTION = Inspection(
    untrained=lambda experiment: ImageTokenizer(new_model(experiment), experiment, ""),
    about=lambda described, tokenizer: about_pictures(described, tokenizer.shape, map_size(tokenizer)),
    quantized=quantized_pictures,
    draw=_draw_patches,
    atlas="codes.png",
)

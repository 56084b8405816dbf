"""Images in `sqvae inspect`."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.data import Pictures
from sqvae.modalities.images.codebook import code_atlas, map_size, quantized_pictures
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.inspecting import Inspection, Plots, in_layers
from sqvae.quantizers import has_codes
from sqvae.reports import save_atlas


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
    return atlas.counts, where, f"{out / 'codes.png'}: the meaning of each code"


def _about(
    experiment: Mapping[str, Any],
    shape: tuple[int, int, int],
    map_shapes: Sequence[tuple[int, ...]],
    layer_axis: tuple[int, ...] = (),
) -> tuple[str, ...]:
    """The size of an image, and of its codes.

    Arguments:
        experiment: the settings, as in `config.json`.
        shape: (C, H, W) of the images.
        map_shapes: the shape of an image's codes for each level, without the axis of the layers.
        layer_axis: (layers,), if there are any.
    """
    quantizer = experiment["quantizer"]
    channels, height, width = shape
    colour, pixels = ("grey image" if channels == 1 else "colour image"), 8 * channels * height * width
    if experiment["data"].get("kind") == "labels":
        classes = experiment["data"]["classes"]
        colour, pixels = f"label map of {classes:,} classes,", round(math.log2(classes) * height * width)
    if not has_codes(quantizer["name"]):
        positions = f" at each of {'x'.join(map(str, map_shapes[0]))} positions" if map_shapes[0] else ""
        return (f"a {colour} of {height}x{width} becomes {quantizer['dim']} numbers{positions}",)
    size = quantizer["codebook_size"]
    codes = " and ".join("x".join(map(str, (*shape, *layer_axis))) for shape in map_shapes)
    number = sum(math.prod((*shape, *layer_axis)) for shape in map_shapes)
    bits = number * math.log2(size) if size > 1 else 0
    levels = f", at each of {len(map_shapes)} levels" if len(map_shapes) > 1 else ""
    saved = f", {pixels / bits:.0f} times fewer" if bits else ""
    return (
        f"{size:,} codes of {quantizer['dim']} dimensions{in_layers(layer_axis)}{levels}",
        f"a {colour} of {height}x{width} becomes {codes} codes: {bits:,.0f} bits instead of {pixels:,}{saved}",
    )


INSPECTION = Inspection(
    untrained=lambda experiment: ImageTokenizer(new_model(experiment), experiment, ""),
    about=lambda described, tokenizer: _about(
        described,
        tokenizer.shape,
        [map_size(tokenizer)] if tokenizer.levels == 1 else tokenizer.map_shapes,
        tokenizer.layer_axis,
    ),
    quantized=quantized_pictures,
    draw=_draw_patches,
    atlas="codes.png",
)

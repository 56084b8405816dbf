"""Images on the page of a run."""

import torch
from torch import Tensor

from sqvae.data import Pictures, Progress
from sqvae.inference import Choices
from sqvae.modalities.images.codebook import code_atlas
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.images.views import code_images, view_image
from sqvae.modalities.page import PageView, pixels_of
from sqvae.modalities.views import CodedExample, to_bytes
from sqvae.reports.codes import Pixels
from sqvae.reports.page import absent
from sqvae.reports.run_examples import LabelClass, class_legend, pictures_row
from sqvae.runs import Generator
from sqvae.tokenizers.manipulation import interpolated

SAMPLES = Choices(number=16, batch=16)
"""The samples from a prior."""

OF_LEVELS = 4
"""The number of images that are decoded level by level."""

STEPS = 9
"""The number of images of an interpolation, both ends included."""

MAX_IMAGES = 1000
"""The largest number of images from which the mean patch of each code is computed."""


def legend_of(tokenizer: ImageTokenizer, measures: dict[str, float]) -> str:
    """The legend of label maps as HTML: the classes, and the IoU of each."""
    data = tokenizer.experiment.data
    names_in_measures = data.class_names or tuple(map(str, range(data.classes or 0)))
    shown = [
        LabelClass(name, colour, measures.get(f"iou of {measured}"))
        for (name, colour), measured in zip(tokenizer.medium.legend(), names_in_measures, strict=True)
    ]
    unknown = tokenizer.medium.unknown
    if unknown is not None and data.ignore is not None:
        shown.append(LabelClass(*unknown, None))
    return class_legend(shown)


def _view(
    tokenizer: ImageTokenizer, pictures: Pictures, index: int, prior: Generator | None
) -> tuple[str, CodedExample]:
    return pictures.names[index], view_image(tokenizer, pictures.take([index])[0], prior)


def _samples(tokenizer: ImageTokenizer, generator: Generator | None, held_out: Pictures | None) -> list[str]:
    if tokenizer.levels > 1:
        return [_by_level(tokenizer, held_out)]
    parts, latents = [], None
    if generator is not None or not tokenizer.is_discrete:
        latents = SAMPLES.normal(tokenizer) if generator is None else SAMPLES.drawn(generator)
        by = "its prior" if generator is not None else "the normal distribution, which is a VAE's prior"
        parts.append(pictures_row("Samples", f"Decoded from latents sampled from {by}.", _decoded(tokenizer, latents)))
    ends, noun, end_name = None, "held-out example", "original"
    if held_out is not None and len(held_out) > 1:
        ends = held_out.spread(2).take([0, 1])
    elif latents is not None:
        ends, noun, end_name = tokenizer.decode(latents[:2]), "sample", "sample"
    if ends is None:
        return [*parts, absent("An interpolation is not shown", "it needs two held-out examples, or a prior")]
    between = _decoded(tokenizer, _between(tokenizer, ends[:1], ends[1:]))
    originals = tokenizer.medium.shown(tokenizer.medium.model_input(ends, tokenizer.device))
    first, last = (pixels_of(one) for one in to_bytes(originals))
    caption = (
        f"From one {noun} to another, along a straight line in the latent space. The ends are the {noun}s themselves, "
        f"and the images between them are decoded. The percentage is the position on the line."
    )
    ratios = [f"{100 * step / (STEPS - 1):.3g}%" for step in range(STEPS)]
    shown = [first, *between, last]
    return [*parts, pictures_row("Interpolation", caption, shown, names=[end_name, *ratios, end_name])]


def _by_level(tokenizer: ImageTokenizer, held_out: Pictures | None) -> str:
    """Held-out examples decoded from the codes of more and more levels, as HTML."""
    if held_out is None or not len(held_out):
        return absent("What each level adds is not shown", "it needs held-out examples")
    stored = held_out.spread(min(OF_LEVELS, len(held_out))).take(slice(None))
    shown: list[Pixels] = []
    made = [tokenizer.reconstruct(stored, levels=levels) for levels in range(1, tokenizer.levels + 1)]
    originals = to_bytes(tokenizer.medium.shown(tokenizer.medium.model_input(stored, tokenizer.device)))
    rows = [to_bytes(tokenizer.medium.shown_output(one)) for one in made]
    for index, original in enumerate(originals):
        shown += [pixels_of(original), *(pixels_of(row[index]) for row in rows)]
    names = ["original", *(f"{n} of {tokenizer.levels}" for n in range(1, tokenizer.levels + 1))] * len(stored)
    noun = tokenizer.medium.noun
    caption = (
        f"Each held-out {noun}, and what its codes decode to with more and more levels, from the coarsest on. Levels "
        "that are left out are replaced by the mean of their codes."
    )
    return pictures_row("What each level adds", caption, shown, names=names)


def _decoded(tokenizer: ImageTokenizer, latents: Tensor) -> list[Pixels]:
    return [pixels_of(one) for one in to_bytes(tokenizer.medium.shown_output(tokenizer.decode(latents)))]


def _between(tokenizer: ImageTokenizer, first: Tensor, second: Tensor) -> Tensor:  # (1, C, H, W) twice -> (STEPS, ...)
    ratios = torch.linspace(0, 1, STEPS)
    if tokenizer.is_discrete:
        a, b = (end.expand(STEPS, *end.shape[1:]) for end in (first, second))
        return interpolated(tokenizer, a, b, ratios)
    a, b = tokenizer.latents(torch.cat([first, second])).unsqueeze(1)
    return torch.lerp(a, b, ratios.to(a).view(-1, *[1] * (a.ndim - 1)))


def _mean_patches(
    tokenizer: ImageTokenizer, pictures: Pictures, number: int, progress: Progress
) -> tuple[Tensor, Tensor]:
    atlas = code_atlas(tokenizer, pictures, codes=number, at_most=MAX_IMAGES, progress=progress)
    used = atlas.counts[atlas.codes] > 0
    return atlas.codes[used], to_bytes(atlas.seen[used])


PAGE = PageView(
    view=_view,
    code_images=code_images,
    samples=_samples,
    unit_spectra=lambda tokenizer, held_out, where, progress: None,
    mean_patches=_mean_patches,
    span=lambda tokenizer, coded: None,
    sounds=lambda tokenizer, held_out, index, coded: (),
    tile_caption="If a code has two tiles, the left one is the mean image patch at the positions with this code. The "
    "other tile is the centre of the image that a map with only this code decodes to. The middle third of a tile "
    "is the position of the code itself. The four small tiles belong to the nearest codes.",
)

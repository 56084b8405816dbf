"""Images on the page about a run."""

import torch
from torch import Tensor

from sqvae.data import Pictures, Progress
from sqvae.inference import Choices
from sqvae.modalities.images.codebook import code_atlas
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.images.views import drawn_alone, see
from sqvae.modalities.page import PageView, pixels_of
from sqvae.modalities.views import Seen, to_bytes
from sqvae.reports.codes import Pixels
from sqvae.reports.page import absent
from sqvae.reports.run_examples import LabelClass, class_legend, pictures_row
from sqvae.runs import Generator
from sqvae.tokenizers.manipulation import interpolated

SAMPLES = Choices(number=16, batch=16)
"""What is drawn from a prior."""

STEPS = 9
"""The number of images of an interpolation, both ends included."""

LOOKED_AT = 1000
"""The number of images from which the mean patch of each code is taken."""


def legend_of(tokenizer: ImageTokenizer, measures: dict[str, float]) -> str:
    """The classes of label maps, with how well each comes through."""
    data = tokenizer.experiment.data
    measured = data.class_names or tuple(map(str, range(data.classes or 0)))
    shown = [
        LabelClass(name, colour, measures.get(f"iou of {short}"))
        for (name, colour), short in zip(tokenizer.medium.legend(), measured, strict=True)
    ]
    unknown = tokenizer.medium.unknown
    if unknown is not None and data.ignore is not None:
        shown.append(LabelClass(*unknown, None))
    return class_legend(shown)


def _see_picture(
    tokenizer: ImageTokenizer, pictures: Pictures, index: int, prior: Generator | None
) -> tuple[str, Seen]:
    return pictures.names[index], see(tokenizer, pictures.take([index])[0], prior)


def _made_pictures(tokenizer: ImageTokenizer, generator: Generator | None, held_out: Pictures | None) -> list[str]:
    parts, latents = [], None
    if generator is not None or not tokenizer.is_discrete:
        latents = SAMPLES.normal(tokenizer) if generator is None else SAMPLES.drawn(generator)
        by = "its prior" if generator is not None else "the normal distribution, which is a VAE's prior"
        parts.append(pictures_row("Samples", f"Decoded from latents drawn by {by}.", _decoded(tokenizer, latents)))
    ends, what, end = None, "held-out example", "original"
    if held_out is not None and len(held_out) > 1:
        ends = held_out.spread(2).take([0, 1])
    elif latents is not None:
        ends, what, end = tokenizer.decode(latents[:2]), "sample", "sample"
    if ends is None:
        return [*parts, absent("An interpolation is not shown", "it takes two held-out examples, or a prior")]
    between = _decoded(tokenizer, _between(tokenizer, ends[:1], ends[1:]))
    originals = tokenizer.medium.shown(tokenizer.medium.model_input(ends, tokenizer.device))
    first, last = (pixels_of(one) for one in to_bytes(originals))
    caption = (
        f"From one {what} to another, straight through the space that latents lie in: both as they are at the ends, "
        f"and between them what is decoded, with how far it is on the way."
    )
    ways = [f"{100 * place / (STEPS - 1):.3g}%" for place in range(STEPS)]
    shown = [first, *between, last]
    return [*parts, pictures_row("Interpolation", caption, shown, names=[end, *ways, end])]


def _decoded(tokenizer: ImageTokenizer, latents: Tensor) -> list[Pixels]:
    return [pixels_of(one) for one in to_bytes(tokenizer.medium.shown_output(tokenizer.decode(latents)))]


def _between(tokenizer: ImageTokenizer, first: Tensor, second: Tensor) -> Tensor:  # (1, C, H, W) twice -> (STEPS, ...)
    ratios = torch.linspace(0, 1, STEPS)
    if tokenizer.is_discrete:
        a, b = (end.expand(STEPS, *end.shape[1:]) for end in (first, second))
        return interpolated(tokenizer, a, b, ratios)
    a, b = tokenizer.latents(torch.cat([first, second])).unsqueeze(1)
    return torch.lerp(a, b, ratios.to(a).view(-1, *[1] * (a.ndim - 1)))


def _seen(tokenizer: ImageTokenizer, pictures: Pictures, number: int, progress: Progress) -> tuple[Tensor, Tensor]:
    atlas = code_atlas(tokenizer, pictures, codes=number, at_most=LOOKED_AT, progress=progress)
    taken = atlas.counts[atlas.codes] > 0
    return atlas.codes[taken], to_bytes(atlas.seen[taken])


PAGE = PageView(
    see=_see_picture,
    alone=drawn_alone,
    made=_made_pictures,
    heard=lambda tokenizer, held_out, where, progress: None,
    seen=_seen,
    span=lambda tokenizer, seen: None,
    sounds=lambda tokenizer, held_out, index, seen: (),
    drawn="Of two tiles, the left one is the mean of what is seen where the code is taken, and the right one, or the "
    "only one, what the code draws alone: the middle of what a map that holds nothing else decodes to. The middle "
    "third of a tile is the code's own place. The four small ones are what the codes nearest to it draw.",
)

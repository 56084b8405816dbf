"""What the codes of a trained model stand for, seen on pictures."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad

from sqvae.data import Pictures, Progress
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.quantizers import Quantized

LOOKED_AT = 64
"""Examples from which the noise of the quantization is told."""


AT_ONCE = 2**22
"""Numbers in a temporary tensor, so that memory does not grow with codes or pictures."""


@dataclass(frozen=True)
class CodeAtlas:
    """Where a set of pictures takes each code, and what is seen there; with layers each code of the first.

    A patch is the square of pixels that one position of the latent map covers, with as much again on each side.
    """

    counts: Tensor = field(repr=False)
    """(K,): how often each code was taken."""
    codes: Tensor
    """(n,): the codes that the rest is about, the most used first."""
    seen: Tensor = field(repr=False)
    """(n, C, P, P), in [0, 1]: the mean of the patches where a code was taken. What lies outside of the pictures does
    not count, and is nan where nothing does."""
    drawn: Tensor = field(repr=False)
    """(n, C, P, P), in [0, 1]: the patch in the centre of what a map filled with a code decodes to; nan outside."""
    places: Tensor = field(repr=False)
    """(n, h, w): how often a code was taken at each position."""
    stride: int
    """The side of the square that a position covers."""
    pictures: int
    """How many were looked at,"""
    available: int
    """of how many."""

    @property
    def margin(self) -> int:
        """How far a patch reaches beyond the position's own square."""
        return (self.seen.shape[-1] - self.stride) // 2


def code_atlas(
    tokenizer: ImageTokenizer,
    pictures: Pictures,
    *,
    codes: int = 64,
    at_most: int = 2000,
    batch_size: int = 64,
    progress: Progress | None = None,
) -> CodeAtlas:
    """Look at pictures code by code.

    They are encoded twice: first to see which codes are used most, then to add up what is seen where those are taken.
    So nothing is kept but the sums.

    Arguments:
        codes: how many codes to look at, of those used most.
        at_most: how many pictures to look at; they are taken evenly from the whole set, which may be sorted.
        progress: called with what is being done, how many pictures are done and how many there are.
    """
    number = min(at_most, len(pictures))
    counts = torch.zeros(tokenizer.codebook_size, dtype=torch.int64)
    for _, taken in _encoded(tokenizer, pictures, number, batch_size, "counting codes", progress):
        counts += torch.bincount(taken.flatten(), minlength=len(counts))
    chosen = counts.sort(descending=True, stable=True).indices[:codes]

    _, height, width = pictures.shape
    rows, columns = map_size(tokenizer)
    stride = height // rows
    drawn = decoded_alone(tokenizer, chosen, batch_size=batch_size)
    sums = torch.zeros_like(drawn, dtype=torch.int64)  # exact, in whatever order
    places = torch.zeros(len(chosen), rows, columns, dtype=torch.int64)
    rank = torch.full((len(counts),), -1)
    rank[chosen] = torch.arange(len(chosen))
    for batch, taken in _encoded(tokenizer, pictures, number, batch_size, "looking at codes", progress):
        ranks = rank[taken]
        shown = tokenizer.medium.shown(tokenizer.medium.model_input(batch, torch.device("cpu")))
        _add_patches(sums, _patches((shown * 255).round().byte(), stride), ranks)
        places += _place_counts(ranks, len(chosen))
    inside = _patches(torch.ones(1, 1, height, width, dtype=torch.uint8), stride)[0, :, :, 0]  # (h, w, P, P)
    visible = torch.einsum("nhw,hwpq->npq", places.double(), inside.double()).unsqueeze(1)
    return CodeAtlas(
        counts=counts,
        codes=chosen,
        seen=(sums / (255 * visible)).float(),  # 0 / 0 is nan, as it should be
        drawn=drawn,
        places=places,
        stride=stride,
        pictures=number,
        available=len(pictures),
    )


def map_size(tokenizer: ImageTokenizer) -> tuple[int, ...]:
    """(h, w) of a picture's latent map; () where the latent is one vector."""
    with torch.inference_mode():
        nothing = torch.zeros(1, *tokenizer.shape, dtype=torch.uint8)
        x = tokenizer.medium.model_input(nothing, tokenizer.device)
        z = tokenizer.model.encoder(tokenizer.model.likelihood.embed(x))
    return tuple((z if isinstance(z, Tensor) else z[0]).shape[2:])


@torch.no_grad()
def quantized_pictures(tokenizer: ImageTokenizer, pictures: Pictures) -> Quantized:
    """What the quantizer makes of some pictures."""
    stored = pictures.take(range(min(LOOKED_AT, len(pictures))))
    quantized: Quantized = tokenizer.model(tokenizer.medium.model_input(stored, tokenizer.device)).quantized
    return quantized


def _encoded(
    tokenizer: ImageTokenizer, pictures: Pictures, number: int, batch_size: int, what: str, progress: Progress | None
) -> Iterator[tuple[Tensor, Tensor]]:  # uint8 (batch, C, H, W), (batch, h, w)
    chosen = torch.arange(number) * len(pictures) // number
    for start in range(0, number, batch_size):
        batch = pictures.take(chosen[start : start + batch_size])
        yield batch, tokenizer.coarsest(tokenizer.encode(batch)).cpu()
        if progress is not None:
            progress(what, min(start + batch_size, number), number)


def _patches(pictures: Tensor, stride: int) -> Tensor:  # (batch, C, H, W) -> (batch, h, w, C, P, P)
    """The patch around each position, without a copy, with 0 outside of the picture."""
    side = 3 * stride
    padded = pad(pictures, (stride, stride, stride, stride))
    return padded.unfold(2, side, stride).unfold(3, side, stride).permute(0, 2, 3, 1, 4, 5)


def _add_patches(sums: Tensor, patches: Tensor, ranks: Tensor) -> None:
    """Add each patch to the sum of its rank: (n, C, P, P), (batch, h, w, C, P, P), (batch, h, w)."""
    for some in (ranks >= 0).nonzero().split(max(1, AT_ONCE // sums[0].numel())):
        where = tuple(some.T)
        sums.index_add_(0, ranks[where], patches[where].to(sums.dtype))


def _place_counts(ranks: Tensor, number: int) -> Tensor:  # (batch, h, w) -> (n, h, w)
    """How often each rank occurs at each position."""
    rows, columns = ranks.shape[1:]
    places = torch.arange(rows * columns).view(rows, columns)
    numbered = (ranks * (rows * columns) + places)[ranks >= 0]
    return torch.bincount(numbered, minlength=number * rows * columns).view(number, rows, columns)


def decoded_alone(tokenizer: ImageTokenizer, codes: Tensor, *, batch_size: int = 64) -> Tensor:  # (n,) -> (n, C, P, P)
    """What the decoder draws in the centre of a map that holds one code only: see :attr:`CodeAtlas.drawn`."""
    rows, columns = map_size(tokenizer)
    drawn = []
    for some in codes.split(batch_size):
        codes_alone = tokenizer.from_coarsest(some.view(-1, 1, 1).expand(-1, rows, columns))
        alone = tokenizer.model.decode(codes_alone.to(tokenizer.device))
        pictures = tokenizer.medium.shown(alone).cpu()
        drawn.append(patch_at(pictures, pictures.shape[-2] // rows, (rows // 2, columns // 2)))
    return torch.cat(drawn)


def patch_at(pictures: Tensor, stride: int, place: tuple[int, int]) -> Tensor:  # (n, C, H, W) -> (n, C, P, P)
    """The patch around a position, a row and a column of the latent map; nan outside of the pictures."""
    padded = pad(pictures, (stride, stride, stride, stride), value=torch.nan)
    top, left = place[0] * stride, place[1] * stride
    return padded[:, :, top : top + 3 * stride, left : left + 3 * stride]

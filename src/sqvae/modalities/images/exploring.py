"""Images, label maps and grey levels on the page of `sqvae explore`."""

from typing import Any

import torch
from torch import Tensor

from sqvae.modalities.exploring import Box, Example, ExampleView
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.images.uploads import picture_from
from sqvae.modalities.images.views import drawn_alone, drawn_at, see, see_codes
from sqvae.modalities.views import Seen
from sqvae.runs import Generator
from sqvae.tokenizers.manipulation import interpolated


class ImageView(ExampleView):
    """Pictures, label maps and grey levels."""

    accept = "image/*"
    wide = False
    nearest_shown = "what each would draw there"

    def __init__(self, tokenizer: ImageTokenizer, prior: Generator | None) -> None:
        self.tokenizer = tokenizer
        self.prior = prior
        self.noun = tokenizer.medium.noun

    def read(self, content: bytes, name: str) -> Example:
        picture, changes = picture_from(content, self.tokenizer.preprocessing)
        return Example(picture, name, note=changes)

    def held_out(self, examples: Any, index: int) -> Example:
        return Example(examples.take([index])[0], f"held-out {self.noun} {index + 1:,} of {len(examples):,}")

    def see(self, example: Example, codes: Tensor | None = None) -> Seen:
        return see(self.tokenizer, example.data, self.prior, codes=codes)

    def decoded(self, codes: Tensor) -> Tensor:
        return see_codes(self.tokenizer, codes)

    def alone(self, codes: Tensor) -> Tensor:
        return drawn_alone(self.tokenizer, codes)

    def tried(self, codes: Tensor, place: int, others: Tensor) -> Tensor | None:
        return drawn_at(self.tokenizer, codes, place, others)

    def columns(self, codes: Tensor) -> int:
        return codes.shape[1]

    def box(self, codes: Tensor, place: int) -> Box:
        rows, columns = codes.shape
        _, height, width = self.tokenizer.shape
        tall, broad = height / rows, width / columns
        return Box(place % columns * broad, place // columns * tall, broad, tall)

    def place_name(self, codes: Tensor, place: int) -> str:
        return f"row {place // codes.shape[1] + 1}, column {place % codes.shape[1] + 1}"

    def rate(self, bits: float, codes: Tensor) -> str:
        _, height, width = self.tokenizer.shape
        return f"{bits / (height * width):.2f} bits per pixel"

    def shape_drawn(self) -> tuple[int, ...] | None:
        return None

    def between(self, first: Example, second: Example, steps: int) -> list[Tensor]:  # -> uint8 (3, H, W), each
        """Pictures from one to another, by the codes nearest to points between their encodings."""
        a, b = (one.data.expand(steps, *one.data.shape) for one in (first, second))
        codes = interpolated(self.tokenizer, a, b, torch.linspace(0, 1, steps))
        return [self.decoded(one) for one in codes]

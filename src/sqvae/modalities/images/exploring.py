"""Images, label maps and grey levels for the page of `sqvae explore`."""

from typing import Any

import torch
from torch import Tensor

from sqvae.modalities.exploring import Box, Example, ExampleViewer
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.modalities.images.uploads import picture_from
from sqvae.modalities.images.views import code_images, decoded_image, replacement_images, view_image
from sqvae.modalities.views import CodedExample
from sqvae.runs import Generator
from sqvae.tokenizers.manipulation import interpolated


class ImageViewer(ExampleViewer):
    """Images, label maps and grey levels."""

    accept = "image/*"
    wide = False
    replacement_caption = "the image part that each would decode to there"

    def __init__(self, tokenizer: ImageTokenizer, prior: Generator | None) -> None:
        self.tokenizer = tokenizer
        self.prior = prior
        self.noun = tokenizer.medium.noun

    def read(self, content: bytes, name: str) -> Example:
        image, changes = picture_from(content, self.tokenizer.preprocessing)
        return Example(image, name, note=changes)

    def held_out(self, examples: Any, index: int) -> Example:
        return Example(examples.take([index])[0], f"held-out {self.noun} {index + 1:,} of {len(examples):,}")

    def view(self, example: Example, codes: Tensor | None = None) -> CodedExample:
        return view_image(self.tokenizer, example.data, self.prior, codes=codes)

    def decoded(self, codes: Tensor) -> Tensor:
        return decoded_image(self.tokenizer, codes)

    def code_images(self, codes: Tensor) -> Tensor:
        return code_images(self.tokenizer, codes)

    def replacements(self, codes: Tensor, position: int, others: Tensor) -> Tensor | None:
        return replacement_images(self.tokenizer, codes, position, others)

    def columns(self, codes: Tensor) -> int:
        return codes.shape[1]

    def box(self, codes: Tensor, position: int) -> Box:
        rows, columns = codes.shape
        _, height, width = self.tokenizer.shape
        cell_height, cell_width = height / rows, width / columns
        return Box(position % columns * cell_width, position // columns * cell_height, cell_width, cell_height)

    def position_name(self, codes: Tensor, position: int) -> str:
        return f"row {position // codes.shape[1] + 1}, column {position % codes.shape[1] + 1}"

    def rate(self, bits: float, codes: Tensor) -> str:
        _, height, width = self.tokenizer.shape
        return f"{bits / (height * width):.2f} bits per pixel"

    def sample_shape(self) -> tuple[int, ...] | None:
        return None

    def interpolation(self, first: Example, second: Example, steps: int) -> list[Tensor]:  # -> uint8 (3, H, W), each
        """Images from the first to the second, decoded from the codes nearest to interpolated encodings."""
        a, b = (one.data.expand(steps, *one.data.shape) for one in (first, second))
        codes = interpolated(self.tokenizer, a, b, torch.linspace(0, 1, steps))
        return [self.decoded(one) for one in codes]

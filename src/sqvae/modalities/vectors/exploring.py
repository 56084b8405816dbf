"""Vectors for the page of `sqvae explore`."""

import tempfile
from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.modalities.exploring import Box, Example, ExampleViewer, RefusedError
from sqvae.modalities.vectors.files import READERS, read_vectors
from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.modalities.vectors.views import code_images, decoded_image, view_vector
from sqvae.modalities.views import CodedExample
from sqvae.runs import Generator


class VectorViewer(ExampleViewer):
    """Vectors, displayed as grids of grey cells."""

    noun = "vector"
    accept = ",".join(READERS)
    wide = False
    replacement_caption = "the vector that each decodes to by itself"

    def __init__(self, tokenizer: VectorTokenizer, prior: Generator | None) -> None:
        self.tokenizer = tokenizer
        self.prior = prior

    def read(self, content: bytes, name: str) -> Example:
        ending = Path(name).suffix.lower()
        if ending not in READERS:
            raise RefusedError(f"the name of a file of vectors must end in one of {', '.join(READERS)}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"vectors{ending}"
            path.write_bytes(content)
            try:
                rows = read_vectors(path)
            except (ImportError, OSError, ValueError) as failure:
                raise RefusedError(str(failure).replace(str(path), "the file")) from failure
        (values,) = self.tokenizer.shape
        if rows.rows.shape[1] != values:
            raise RefusedError(f"its vectors have {rows.rows.shape[1]:,} values, but this model expects {values:,}")
        note = f"the first of {len(rows):,} rows" if len(rows) > 1 else ""
        return Example(rows.rows[0], f"{name}: {rows.names[0]}", note=note)

    def held_out(self, examples: Any, index: int) -> Example:
        return Example(examples.rows[index], f"held-out vector {index + 1:,} of {len(examples):,}")

    def view(self, example: Example, codes: Tensor | None = None) -> CodedExample:
        return view_vector(self.tokenizer, example.data, self.prior, codes=codes)

    def decoded(self, codes: Tensor) -> Tensor:
        return decoded_image(self.tokenizer, codes)

    def code_images(self, codes: Tensor) -> Tensor:
        return code_images(self.tokenizer, codes)

    def columns(self, codes: Tensor) -> int:
        return len(codes)

    def box(self, codes: Tensor, position: int) -> Box:
        _, height, width = decoded_image(self.tokenizer, codes).shape  # each code affects all values
        return Box(0, 0, width, height)

    def position_name(self, codes: Tensor, position: int) -> str:
        return f"position {position + 1} of {len(codes)}"

    def rate(self, bits: float, codes: Tensor) -> str:
        return f"{bits / self.tokenizer.shape[0]:.3f} bits per value"

    def sample_shape(self) -> tuple[int, ...] | None:
        return self.tokenizer.map_shape

"""Vectors on the page of `sqvae explore`."""

import tempfile
from pathlib import Path
from typing import Any

from torch import Tensor

from sqvae.modalities.exploring import Box, Example, ExampleView, RefusedError
from sqvae.modalities.vectors.files import READERS, read_vectors
from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.modalities.vectors.views import drawn_alone, see, see_codes
from sqvae.modalities.views import Seen
from sqvae.runs import Generator


class VectorView(ExampleView):
    """Vectors, looked at as grids of grey fields."""

    noun = "vector"
    accept = ",".join(READERS)
    wide = False
    nearest_shown = "what each decodes to"

    def __init__(self, tokenizer: VectorTokenizer, prior: Generator | None) -> None:
        self.tokenizer = tokenizer
        self.prior = prior

    def read(self, content: bytes, name: str) -> Example:
        ending = Path(name).suffix.lower()
        if ending not in READERS:
            raise RefusedError(f"files of vectors end in {', '.join(READERS)}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"vectors{ending}"
            path.write_bytes(content)
            try:
                rows = read_vectors(path)
            except (ImportError, OSError, ValueError) as failure:
                raise RefusedError(str(failure).replace(str(path), "the file")) from failure
        (values,) = self.tokenizer.shape
        if rows.rows.shape[1] != values:
            raise RefusedError(f"its vectors have {rows.rows.shape[1]:,} values, and this model takes {values:,}")
        note = f"the first of its {len(rows):,} rows" if len(rows) > 1 else ""
        return Example(rows.rows[0], f"{name}: {rows.names[0]}", note=note)

    def held_out(self, examples: Any, index: int) -> Example:
        return Example(examples.rows[index], f"held-out vector {index + 1:,} of {len(examples):,}")

    def see(self, example: Example, codes: Tensor | None = None) -> Seen:
        return see(self.tokenizer, example.data, self.prior, codes=codes)

    def decoded(self, codes: Tensor) -> Tensor:
        return see_codes(self.tokenizer, codes)

    def alone(self, codes: Tensor) -> Tensor:
        return drawn_alone(self.tokenizer, codes)

    def columns(self, codes: Tensor) -> int:
        return len(codes)

    def box(self, codes: Tensor, place: int) -> Box:
        _, height, width = see_codes(self.tokenizer, codes).shape  # each code has a part in all values
        return Box(0, 0, width, height)

    def place_name(self, codes: Tensor, place: int) -> str:
        return f"place {place + 1} of {len(codes)}"

    def rate(self, bits: float, codes: Tensor) -> str:
        return f"{bits / self.tokenizer.shape[0]:.3f} bits per value"

    def shape_drawn(self) -> tuple[int, ...] | None:
        return self.tokenizer.map_shape

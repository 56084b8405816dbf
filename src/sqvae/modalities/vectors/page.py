"""Vectors on the page about a run."""

from sqvae.inference import Choices
from sqvae.modalities.page import PageView, pixels_of
from sqvae.modalities.vectors.files import VectorRows
from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.modalities.vectors.views import drawn_alone, see, see_codes
from sqvae.modalities.views import Seen
from sqvae.reports.run_examples import pictures_row
from sqvae.runs import Generator

SAMPLES = Choices(number=16, batch=16)
"""What is drawn from a prior."""


def _see(tokenizer: VectorTokenizer, rows: VectorRows, index: int, prior: Generator | None) -> tuple[str, Seen]:
    return rows.names[index], see(tokenizer, rows.rows[index], prior)


def _made(tokenizer: VectorTokenizer, generator: Generator | None, held_out: VectorRows | None) -> list[str]:
    if generator is None:
        return []
    drawn = [pixels_of(see_codes(tokenizer, codes)) for codes in SAMPLES.drawn(generator, tokenizer.map_shape)]
    return [pictures_row("Samples", "Vectors decoded from codes drawn by its prior.", drawn)]


PAGE = PageView(
    see=_see,
    alone=drawn_alone,
    made=_made,
    heard=lambda tokenizer, held_out, where, progress: None,
    seen=lambda tokenizer, held_out, number, progress: None,
    span=lambda tokenizer, seen: None,
    sounds=lambda tokenizer, held_out, index, seen: (),
    drawn="Each tile is the vector that one code decodes to if it stands at every place of an id: a field for each "
    "value, row by row, bright where it is above its mean. Below it are the four codes that lie nearest.",
)

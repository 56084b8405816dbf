"""Vectors on the page of a run."""

from sqvae.inference import Choices
from sqvae.modalities.page import PageView, pixels_of
from sqvae.modalities.vectors.files import VectorRows
from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.modalities.vectors.views import code_images, decoded_image, view_vector
from sqvae.modalities.views import CodedExample
from sqvae.reports.run_examples import pictures_row
from sqvae.runs import Generator

SAMPLES = Choices(number=16, batch=16)
"""The samples from a prior."""


def _view(
    tokenizer: VectorTokenizer, rows: VectorRows, index: int, prior: Generator | None
) -> tuple[str, CodedExample]:
    return rows.names[index], view_vector(tokenizer, rows.rows[index], prior)


def _samples(tokenizer: VectorTokenizer, generator: Generator | None, held_out: VectorRows | None) -> list[str]:
    if generator is None:
        return []
    vectors = [pixels_of(decoded_image(tokenizer, codes)) for codes in SAMPLES.drawn(generator, tokenizer.map_shape)]
    return [pictures_row("Samples", "Vectors decoded from codes sampled from its prior.", vectors)]


PAGE = PageView(
    view=_view,
    code_images=code_images,
    samples=_samples,
    unit_spectra=lambda tokenizer, held_out, where, progress: None,
    mean_patches=lambda tokenizer, held_out, number, progress: None,
    span=lambda tokenizer, coded: None,
    sounds=lambda tokenizer, held_out, index, coded: (),
    tile_caption="Each tile is the vector that one code decodes to if it is at every position of an id. It has a "
    "cell for each value, row by row, and values above their mean are bright. The four small tiles belong to the "
    "nearest codes.",
)

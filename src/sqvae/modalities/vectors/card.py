"""What a model card says of a tokenizer of vectors."""

from collections.abc import Iterator

from sqvae.modalities.vectors.tokenizer import VectorTokenizer
from sqvae.tokenizers.card import WHERE


def usage(tokenizer: VectorTokenizer, name: str) -> Iterator[str]:
    """How to use the model in Python and on the command line."""
    (values,), (codes,) = tokenizer.shape, tokenizer.map_shape
    yield from ("```python", "import sqvae", "", f'tokenizer = sqvae.load("{name}")  # {WHERE}')
    yield f"ids = tokenizer.encode(vectors)  # a tensor, an array or a file, (batch, {values}) -> (batch, {codes})"
    yield "rebuilt = tokenizer.decode(ids)"
    yield from ("```", "", "```sh", f"sqvae encode {name} vectors.npy -o ids.csv", "```")


def code_rate(tokenizer: VectorTokenizer, bits: float) -> Iterator[str]:
    """How many codes a vector becomes."""
    (values,), (codes,) = tokenizer.shape, tokenizer.map_shape
    yield f"- A vector of {values:,} values becomes {codes} codes: {codes * bits:,.0f} bits at most."


def data_facts(tokenizer: VectorTokenizer) -> Iterator[str]:
    """What vectors it takes."""
    yield (
        f"- Vectors of {tokenizer.shape[0]:,} float values. The model itself subtracts the mean of its training set "
        "and divides by one standard deviation for all values."
    )

"""What a model card says of a tokenizer of images, label maps or grey levels."""

from collections.abc import Iterator

from sqvae.modalities.images.assembly import sides_of
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.tokenizers.card import WHERE, listed


def usage(tokenizer: ImageTokenizer, name: str) -> Iterator[str]:
    """How to use the model in Python and on the command line."""
    channels, height, width = tokenizer.shape
    each = [f"(batch, {rows}, {columns})" for rows, columns in tokenizer.map_shapes]
    shape, codes = f"(batch, {channels}, {height}, {width})", ", ".join(each)
    given, noun = f"{shape}, uint8 or between 0 and 1", "pictures"
    if tokenizer.preprocessing.labels:
        given, noun = f"(batch, {height}, {width}), integers", "maps"
    given = f"paths, PIL images, arrays; or a tensor, {given}"
    yield from ("```python", "import sqvae", "", f'tokenizer = sqvae.load("{name}")  # {WHERE}')
    if tokenizer.is_discrete:
        yield f'codes = tokenizer.encode(["one.png", "two.png"])  # {given} -> {codes}'
        yield "rebuilt = tokenizer.decode(codes)"
    else:
        yield f'rebuilt = tokenizer.reconstruct(["one.png", "two.png"])  # {given}'
    yield 'tokenizer.images(rebuilt)[0].save("again.png")'
    yield from ("```", "", "```sh")
    if tokenizer.is_discrete and tokenizer.levels == 1:
        yield f"sqvae encode {name} {noun} -o codes.safetensors"
        yield f"sqvae decode {name} codes.safetensors -o decoded"
    yield f"sqvae reconstruct {name} {noun} -o rebuilt"
    yield "```"


def code_rate(tokenizer: ImageTokenizer, bits: float) -> Iterator[str]:
    """How many codes an example becomes."""
    maps = " and ".join(f"{rows}x{columns}" for rows, columns in tokenizer.map_shapes)
    _, height, width = tokenizer.shape
    what, most = tokenizer.medium.noun, bits * sum(rows * columns for rows, columns in tokenizer.map_shapes)
    yield f"- A {what} of {height}x{width} becomes {maps} codes: {most:,.0f} bits at most."


def data_facts(tokenizer: ImageTokenizer) -> Iterator[str]:
    """How data is brought to the model's shape, and its classes."""
    data = tokenizer.experiment.data
    channels, height, width = tokenizer.shape
    crop = "the largest centred part of that shape" if data.crop is None else f"a centred square of {data.crop} pixels"
    colour = "" if data.kind == "labels" else " in colour" if channels == 3 else " in grey"
    yield f"- Brought to {height}x{width}{colour}, from {crop}."
    if data.kind == "labels":
        named = f": {listed(data.class_names)}" if data.class_names else ""
        ignored = "" if data.ignore is None else f" Pixels with the label {data.ignore} are ignored."
        yield f"- {data.classes:,} classes{named}.{ignored}"


def limits(tokenizer: ImageTokenizer) -> Iterator[str]:
    """What is known of other sizes."""
    if tokenizer.experiment.network.map_dim is None:
        stride = sides_of(tokenizer.experiment, tokenizer.shape)
        yield f"- Other sizes whose sides are multiples of {stride} run too, but it was not trained on them."

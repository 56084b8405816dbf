"""What `sqvae compress` and `sqvae decompress` put together."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqvae.cli import console
from sqvae.cli.left_out import LeftOut
from sqvae.cli.pictures import PictureFolder
from sqvae.cli.targets import check_free
from sqvae.codec import (
    Adaptive,
    AdaptiveCost,
    CodeFileError,
    CompressedFile,
    CompressedWriter,
    Expectation,
    Learned,
    check_ending,
)
from sqvae.data import count, stream
from sqvae.modalities.images.tokenizer import ImageTokenizer, load_tokenizer
from sqvae.runs import PLACE, load_generator
from sqvae.tokenizers import kind_of

COMPRESSED = ".sqz"
"""How the names of compressed files end."""


@dataclass(frozen=True)
class Compressor:
    """A model, and what is expected of its codes."""

    tokenizer: ImageTokenizer
    expectation: Expectation
    shape: tuple[int, int] | None
    """Of a picture's codes, where the prior has seen no other."""


def has_prior(run: Path, prior: Path | None) -> bool:
    """Whether there is a prior for a run, by name or in its folder."""
    return prior is not None or (run / PLACE).exists()


def compressor_of(run: Path, prior: Path | None, *, batch: int, learned: bool) -> Compressor:
    """A run's model with its prior, or with what codes that came before tell.

    Arguments:
        learned: which of both.
    """
    if kind_of(run) == "speech":
        raise ValueError(f"{run} is a model of speech, and pictures are what is compressed; see `sqvae encode`")
    if not learned:
        tokenizer = load_tokenizer(run)
        return Compressor(tokenizer, Adaptive(tokenizer.codebook_size), None)
    generator = load_generator(run, prior)
    if generator.experiment.above is not None or generator.class_names:
        raise ValueError(
            f"the prior of {run} is given classes, or the codes of another model, which a file of this model's codes "
            f"does not hold: train one without, with `sqvae train-prior {run} --out DIR`, and pass --prior DIR; or "
            f"pass --no-prior"
        )
    height, width = generator.shape
    return Compressor(generator.tokenizer, Learned(generator.prior, batch_size=batch), (height, width))


def compress_pictures(
    run: Path,
    prior: Path | None,
    inputs: Sequence[str],
    out: Path,
    *,
    learned: bool,
    names: bool,
    batch: int,
    strict: bool,
    overwrite: bool,
) -> None:
    """Encode pictures, and their codes by what is expected of them.

    Arguments:
        learned: by the prior, if there is one.
    """
    check_ending(out, [COMPRESSED], "file of compressed codes")
    check_free(out, overwrite)
    compressor = compressor_of(run, prior, batch=batch, learned=learned and has_prior(run, prior))
    tokenizer, expectation = compressor.tokenizer, compressor.expectation
    pixels, without = 0, AdaptiveCost(expectation.codebook_size)
    with (
        console.progress_bar() as progress,
        LeftOut(tokenizer.medium.noun) as left_out,
        CompressedWriter(out, expectation, fingerprint=tokenizer.fingerprint, names=names) as writer,
    ):
        total = count(inputs, labels=tokenizer.preprocessing.labels)
        seen = 0
        for some, pictures in stream(
            inputs, tokenizer.preprocessing, batch=batch, strict=strict, on_skip=left_out, on_note=left_out.note
        ):
            codes = tokenizer.encode(pictures)
            writer.write(some, codes)
            without.add(codes)
            pixels += len(some) * pictures.shape[-2] * pictures.shape[-1]
            seen += len(some)
            progress("compressing", seen, total)
        if not seen:
            raise ValueError(f"none of the pictures in {', '.join(inputs)} can be read")
    size = writer.size
    bits = 8 * size.payload / size.codes
    console.out.print(
        f"{console.counted(size.pictures, tokenizer.medium.noun)} in {out}: {size.total:,} bytes, "
        f"{8 * size.total / pixels:.4f} bits per pixel; codes take {bits:.3f} bits each by {expectation.description}",
        soft_wrap=True,
    )
    if isinstance(expectation, Learned) and without.bits < 8 * size.payload:
        console.warning(
            f"without the prior the codes of this file would take only {without.bits / size.codes:.3f} bits each: "
            f"compress with --no-prior, or train the prior longer"
        )


def decompress_pictures(run: Path, prior: Path | None, file: Path, out: Path, *, batch: int, overwrite: bool) -> None:
    """Decode a compressed file to pictures."""
    learned = CompressedFile.kind_of(file) == Learned.kind
    if learned and not has_prior(run, prior):
        # What the file is marked with is made of the model and of its prior, so that both are needed to tell.
        raise CodeFileError(
            f"{file} was compressed with a learned prior, and {run} has none: the file holds codes of another model, "
            f"or the prior lies elsewhere. Decompress with the run that compressed it, or name its prior with --prior"
        )
    compressor = compressor_of(run, prior, batch=batch, learned=learned)
    tokenizer = compressor.tokenizer
    compressed = CompressedFile.open(
        file, compressor.expectation, fingerprint=tokenizer.fingerprint, shape=compressor.shape
    )
    folder, seen = PictureFolder(out, overwrite=overwrite), 0
    with console.progress_bar() as progress:
        for names, codes in compressed.batches():
            for first in range(0, len(names), batch):
                some = slice(first, first + batch)
                folder.save(names[some], tokenizer.medium.images(tokenizer.decode(codes[some])))
            seen += len(names)
            progress("decompressing", seen, len(compressed))
    console.out.print(f"{console.counted(seen, tokenizer.medium.noun)} in {out}")

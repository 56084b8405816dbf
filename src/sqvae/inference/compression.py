"""Pictures compressed to files of their codes, and restored from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor

from sqvae.codec import (
    Adaptive,
    AdaptiveCost,
    AdaptiveLayers,
    CodeFileError,
    CompressedFile,
    CompressedWriter,
    Expectation,
    Learned,
    check_ending,
)
from sqvae.data import Progress, Skipped, count, stream
from sqvae.files import check_free
from sqvae.inference.folders import PictureFolder, Saved
from sqvae.inference.images import load_image_model
from sqvae.modality import modality_of
from sqvae.runs import has_prior, load_generator
from sqvae.tokenizers import codebook_sizes_of, kind_of

if TYPE_CHECKING:
    from sqvae.modalities.images.tokenizer import ImageTokenizer

COMPRESSED = ".sqz"
"""How the names of compressed files end."""


@dataclass(frozen=True)
class Compressor:
    """A model, and what is expected of its codes."""

    tokenizer: "ImageTokenizer"
    expectation: Expectation
    shapes: tuple[tuple[int, int], ...] = ()
    """(h, w) that the maps of a file may have; any if there are none."""

    def as_maps(self, codes: Tensor) -> Tensor:  # (batch, h, w), or (batch, h, w, n) -> (batch, rows, w)
        """Codes as the maps that are coded: with layers the layers below each other."""
        return self.expectation.as_maps(codes) if isinstance(self.expectation, AdaptiveLayers) else codes

    def as_codes(self, maps: Tensor) -> Tensor:  # (batch, rows, w) -> (batch, h, w), or (batch, h, w, n)
        """The codes of such maps."""
        return self.expectation.as_codes(maps) if isinstance(self.expectation, AdaptiveLayers) else maps


@dataclass(frozen=True)
class Compressed:
    """A compressed file, and what it costs."""

    path: Path
    number: int
    """How many pictures it holds,"""
    noun: str
    """and what each is: a picture, or a label map."""
    bytes: int
    bits_per_pixel: float
    bits_per_code: float
    """Without what the file takes beside the codes."""
    by: str
    """What the codes were expected by, in words."""
    bits_per_code_without_prior: float | None
    """What a code would take by the codes that came before it; None where no prior was used."""

    @property
    def prior_pays(self) -> bool:
        """Whether the file is no larger with the prior than it would be without."""
        without = self.bits_per_code_without_prior
        return without is None or without >= self.bits_per_code


def compressor_of(
    run: str | Path, prior: str | Path | None = None, *, learned: bool = True, batch: int = 64
) -> Compressor:
    """A run's model with its prior, or with what the codes that came before tell.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        prior: the folder of the prior; None: the run's own.
        learned: whether codes are expected by the prior, rather than by the codes that came before.
        batch: pictures whose codes the prior predicts at a time.
    """
    modality = modality_of(kind_of(run))
    if not modality.is_image:
        raise ValueError(f"{run} is a model of {modality.plural}, and only images are compressed; see `sqvae encode`")
    if not learned:
        return _adaptive(load_image_model(run))
    generator = load_generator(run, prior)
    if generator.experiment.above is not None or generator.class_names:
        raise ValueError(
            f"the prior of {run} is given classes, or the codes of another model, which a file of this model's codes "
            f"does not hold: train one without, with `sqvae train-prior {run} --out DIR`, and pass `prior=DIR`; or "
            f"pass `learned=False`"
        )
    if generator.tokenizer.layers is not None:
        raise ValueError(
            f"the codes of {run} have {generator.tokenizer.layers} layers, and a prior compresses only codes without "
            f"layers: pass `learned=False`"
        )
    height, width = generator.shape
    return Compressor(generator.tokenizer, Learned(generator.prior, batch_size=batch), ((height, width),))


def _adaptive(tokenizer: "ImageTokenizer") -> Compressor:
    if tokenizer.layers is None:
        return Compressor(tokenizer, Adaptive(tokenizer.codebook_size))
    rows, columns = tokenizer.map_shape
    shapes = tuple((number * rows, columns) for number in range(1, tokenizer.layers + 1))
    return Compressor(tokenizer, AdaptiveLayers(codebook_sizes_of(tokenizer.model), rows), shapes)


def compress(
    run: str | Path,
    inputs: Sequence[str],
    path: str | Path,
    *,
    prior: str | Path | None = None,
    learned: bool = True,
    layers: int | None = None,
    names: bool = True,
    batch: int = 64,
    strict: bool = False,
    overwrite: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    on_note: Callable[[str], None] = lambda note: None,
    progress: Progress | None = None,
) -> Compressed:
    """Encode pictures, and compress their codes by what is expected of them, to one file.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        inputs: pictures, folders, archives or arrays.
        path: of the file, which ends in .sqz.
        prior: the folder of the prior; None: the run's own.
        learned: whether codes are compressed by the prior, if there is one.
        layers: of a model with layers, only the first of them; None: all.
        names: whether the file holds the names of the pictures; otherwise they are numbered.
        batch: pictures that are computed at a time.
        strict: whether the first picture that can't be read is an error, rather than left out.
        overwrite: whether a file of that name may be replaced.
        on_skip: called with each picture that is left out.
        on_note: called with a sentence about files that are passed over.
        progress: called with what is being done, how many are done and how many there are.
    """
    path = Path(path)
    check_ending(path, [COMPRESSED], "file of compressed codes")
    check_free(path, overwrite)
    compressor = compressor_of(run, prior, batch=batch, learned=learned and has_prior(run, prior))
    tokenizer, expectation = compressor.tokenizer, compressor.expectation
    pixels, seen = 0, 0
    without = AdaptiveCost(expectation.codebook_size) if isinstance(expectation, Learned) else None
    with CompressedWriter(path, expectation, fingerprint=tokenizer.fingerprint, names=names) as writer:
        total = count(inputs, labels=tokenizer.preprocessing.labels) if progress is not None else 0
        for some, pictures in stream(
            inputs, tokenizer.preprocessing, batch=batch, strict=strict, on_skip=on_skip, on_note=on_note
        ):
            maps = compressor.as_maps(tokenizer.encode(pictures, layers=layers))
            writer.write(some, maps)
            if without is not None:
                without.add(maps)
            pixels += len(some) * pictures.shape[-2] * pictures.shape[-1]
            seen += len(some)
            if progress is not None:
                progress("compressing", seen, total)
        if not seen:
            raise ValueError(f"none of the pictures in {', '.join(inputs)} can be read")
    size = writer.size
    return Compressed(
        path,
        size.pictures,
        tokenizer.medium.noun,
        size.total,
        bits_per_pixel=8 * size.total / pixels,
        bits_per_code=8 * size.payload / size.codes,
        by=expectation.description,
        bits_per_code_without_prior=None if without is None else without.bits / size.codes,
    )


def decompress(
    run: str | Path,
    file: str | Path,
    path: str | Path,
    *,
    prior: str | Path | None = None,
    layers: int | None = None,
    batch: int = 64,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Saved:
    """Restore pictures from a compressed file: their codes exactly, and pictures as the model decodes them.

    Arguments:
        run: the model that compressed them.
        file: what :func:`compress` has written.
        path: of the folder that pictures go to, as NAME.png.
        prior: the folder of the prior; None: the run's own.
        layers: of a model with layers, decode only the first of those in the file; None: all of them.
        batch: pictures that are computed at a time.
        overwrite: whether files may be replaced.
        progress: called with what is being done, how many are done and how many there are.
    """
    file, path = Path(file), Path(path)
    learned = CompressedFile.kind_of(file) == Learned.kind
    if learned and not has_prior(run, prior):
        # What the file is marked with is made of the model and of its prior, so that both are needed to tell.
        raise CodeFileError(
            f"{file} was compressed with a learned prior, and {run} has none: the file holds codes of another model, "
            f"or the prior lies elsewhere. Decompress with the run that compressed it, or name its prior with `prior=`"
        )
    compressor = compressor_of(run, prior, batch=batch, learned=learned)
    tokenizer = compressor.tokenizer
    compressed = CompressedFile.open(
        file, compressor.expectation, fingerprint=tokenizer.fingerprint, shapes=compressor.shapes
    )
    folder = PictureFolder(path, overwrite=overwrite)
    for names, maps in compressed.batches():
        codes = tokenizer.first_layers(compressor.as_codes(maps), layers)
        for first in range(0, len(names), batch):
            some = slice(first, first + batch)
            folder.save(names[some], tokenizer.medium.images(tokenizer.decode(codes[some])))
        if progress is not None:
            progress("decompressing", folder.saved, len(compressed))
    return Saved(path, folder.saved, tokenizer.medium.noun)

"""Data to codes, and codes to data, in files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqvae.codec import JSON_LINES, SAFETENSORS, LanguageFile, check_ending, write_language_file
from sqvae.data import Progress, Skipped
from sqvae.files import check_free
from sqvae.inference.folders import Saved, check_apart
from sqvae.modality import Modality, modality_of
from sqvae.runs import Announce, is_unfinished
from sqvae.tokenizers import kind_of, load
from sqvae.training import RunFolder


@dataclass(frozen=True)
class Encoded:
    """A file of codes that was written."""

    path: Path
    number: int
    """How many examples it holds,"""
    noun: str
    """and what each is."""
    codebook_size: int
    shape: tuple[int, ...] = ()
    """Of a picture's codes: (h, w)."""
    seconds: float = 0.0
    """Of all recordings together,"""
    codes_per_second: float = 0.0
    """and how many codes a second of them takes."""


def noun_of(run: str | Path) -> str:
    """What one file of a run's data is called: an image, a label map, or a recording."""
    modality = modality_of(kind_of(run))
    return modality.file_noun or modality.noun


def _modality(run: str | Path, speaker: str | None = None, audio: bool = False) -> Modality:
    """The modality of a run. It raises if the run is asked for a voice and has none."""
    modality = modality_of(kind_of(run))
    modality.check_voice(str(run), speaker, audio)
    return modality


def encode(
    run: str | Path,
    inputs: Sequence[str],
    path: str | Path,
    *,
    batch: int = 64,
    layers: int | None = None,
    strict: bool = False,
    overwrite: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    on_note: Callable[[str], None] = lambda note: None,
    warn: Announce = print,
    progress: Progress | None = None,
) -> Encoded:
    """Encode pictures or recordings with a run's model, to one file of codes.

    :func:`sqvae.codec.encode_to_file` and :func:`sqvae.codec.encode_speech_to_file` do the same with a model that is
    loaded already.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        inputs: files, folders, archives, or names of data sets.
        path: of the file of codes; its ending is its format: .safetensors or .npz, and for speech also .txt.
        batch: pictures that are encoded at a time.
        layers: of a model with layers, only the first of them; None: all.
        strict: whether the first input that can't be read is an error, rather than left out.
        overwrite: whether a file of that name may be replaced.
        on_skip: called with each input that is left out.
        on_note: called with a sentence about files that are passed over.
        warn: called with a sentence if the run is still to be trained further, and its codes will be of no use then.
        progress: called with what is being done, how many are done and how many there are.
    """
    modality, path = _modality(run), Path(path)
    check_ending(path, [SAFETENSORS, *modality.code_endings])
    check_free(path, overwrite)
    if is_unfinished(run):
        warn(
            f"{run} is not trained to its end. When it goes on it becomes another model, which can't decode these "
            f"codes; to keep this one, copy {RunFolder(run).usable()}"
        )
    return modality.encode_files(
        load(run),
        inputs,
        path,
        batch=batch,
        layers=layers,
        strict=strict,
        on_skip=on_skip,
        on_note=on_note,
        progress=progress,
    )


def decode(
    run: str | Path,
    codes: str | Path,
    path: str | Path,
    *,
    batch: int = 64,
    overwrite: bool = False,
    speaker: str | None = None,
    audio: bool = False,
    announce: Announce = print,
    progress: Progress | None = None,
) -> Saved:
    """Decode a file of codes with a run's model, to pictures or to log-mel frames and sound in a folder.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        codes: a file that :func:`encode` has written, with the same model.
        path: of the folder; each example becomes NAME.png, or NAME.npy and NAME.wav.
        batch: pictures that are decoded at a time.
        overwrite: whether files may be replaced.
        speaker: of speech: the voice to speak with; None: the recording's own.
        audio: of speech: whether sound is written beside frames.
        announce: takes a sentence if the file is one that can't be checked.
        progress: called with what is being done, how many are done and how many there are.
    """
    modality = _modality(run, speaker, audio)
    return modality.decode_file(
        load(run),
        Path(codes),
        Path(path),
        batch=batch,
        overwrite=overwrite,
        speaker=speaker,
        audio=audio,
        announce=announce,
        progress=progress,
    )


def write_tokens(
    codes: str | Path,
    path: str | Path,
    *,
    pattern: str = "flat",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> LanguageFile:
    """Write a file of codes as token ids for language models, a row for each example.

    :func:`sqvae.codec.write_language_file` does the same, and replaces what is there.

    Arguments:
        codes: a file that :func:`encode` has written.
        path: of the table; it ends in .jsonl.
        pattern: the order of the ids: ``"flat"`` or ``"delayed"``.
        overwrite: whether a file of that name may be replaced.
        progress: called with what is being done, how many are done and how many there are.
    """
    path = Path(path)
    check_ending(path, [JSON_LINES], "file of token ids")
    check_free(path, overwrite)
    return write_language_file(codes, path, pattern=pattern, progress=progress)


def reconstruct(
    run: str | Path,
    inputs: Sequence[str],
    path: str | Path,
    *,
    batch: int = 64,
    layers: int | None = None,
    strict: bool = False,
    overwrite: bool = False,
    speaker: str | None = None,
    audio: bool = False,
    levels: int | None = None,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    on_note: Callable[[str], None] = lambda note: None,
    progress: Progress | None = None,
) -> Saved:
    """Send pictures or recordings through a run's model and back, and save what comes out in a folder.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        inputs: files, folders, archives, or names of data sets.
        path: of the folder; each example becomes NAME.png, or NAME.npy and NAME.wav.
        batch: pictures that are computed at a time.
        layers: of a model with layers, only the first of them; None: all.
        strict: whether the first input that can't be read is an error, rather than left out.
        overwrite: whether files may be replaced, and the folder may lie among the originals.
        speaker: of speech: the voice to speak with; None: the recording's own.
        audio: of speech: whether sound is written beside frames.
        levels: of a model with several levels of codes: decode only the coarsest so many; None: all.
        on_skip: called with each input that is left out.
        on_note: called with a sentence about files that are passed over.
        progress: called with what is being done, how many are done and how many there are.
    """
    path = Path(path)
    if not overwrite:
        check_apart(inputs, path)
    modality = _modality(run, speaker, audio)
    tokenizer = load(run)
    # Only models of images have several levels, and the others have no such option.
    of_levels = {} if tokenizer.checked_levels(levels) is None or tokenizer.levels == 1 else {"levels": levels}
    return modality.reconstruct_files(
        tokenizer,
        inputs,
        path,
        batch=batch,
        layers=layers,
        strict=strict,
        overwrite=overwrite,
        speaker=speaker,
        audio=audio,
        **of_levels,
        on_skip=on_skip,
        on_note=on_note,
        progress=progress,
    )

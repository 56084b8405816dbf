"""Pictures of what becomes of pictures when their codes are changed on purpose."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from sqvae.data import Skipped, stream
from sqvae.files import check_free
from sqvae.modalities.images.tokenizer import ImageTokenizer, load_tokenizer
from sqvae.reports import Caption, save_rows
from sqvae.tokenizers.manipulation import interpolated, neighbours

MOST = 64
"""Pictures that are shown."""


def save_neighbours(
    run: str | Path,
    inputs: Sequence[str],
    path: str | Path,
    ks: Sequence[int] = (3, 5, 10),
    *,
    strict: bool = False,
    overwrite: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    on_note: Callable[[str], None] = lambda note: None,
) -> None:
    """Draw pictures, their reconstructions, and below them what is decoded when every code is its k-th nearest.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        inputs: pictures, folders, archives or arrays; the first 64 pictures are shown.
        path: of the drawing (.png).
        ks: which neighbours, a row each.
        strict: whether the first picture that can't be read is an error, rather than left out.
        overwrite: whether a file of that name may be replaced.
        on_skip: called with each picture that is left out.
        on_note: called with sentences about pictures that are not shown.
    """
    run, path = Path(run), Path(path)
    check_free(path, overwrite)
    tokenizer = load_tokenizer(run)
    pictures = _pictures(tokenizer, inputs, strict, on_skip, on_note)
    codes = tokenizer.encode(pictures)
    decoded = [tokenizer.decode(changed) for changed in (codes, *(neighbours(tokenizer, codes, k) for k in ks))]
    near = [f"{_ordinal(k)} nearest code" for k in ks]
    caption = Caption(
        f"{run.resolve().name}: pictures whose codes are replaced by near ones",
        ("Below the reconstruction, every code is replaced by another, as near to it as is said at the left.",),
        ("original", "reconstruction", *near),
        classes=tokenizer.medium.classes_in(_input(tokenizer, pictures), *decoded),
    )
    rows = [tokenizer.medium.shown(_input(tokenizer, pictures)), *map(tokenizer.medium.shown_output, decoded)]
    _save(path, rows, caption)


def save_interpolation(
    run: str | Path,
    first: str,
    second: str,
    path: str | Path,
    steps: int = 9,
    *,
    overwrite: bool = False,
    on_note: Callable[[str], None] = lambda note: None,
) -> None:
    """Draw the pictures on the way from one to another, in equal steps through the space that codes lie in.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        first: the picture to begin with.
        second: the picture to end with.
        path: of the drawing (.png).
        steps: how many pictures are decoded, both ends included.
        overwrite: whether a file of that name may be replaced.
        on_note: called with sentences about files that are passed over.
    """
    run, path = Path(run), Path(path)
    check_free(path, overwrite)
    tokenizer = load_tokenizer(run)
    ends = [_pictures(tokenizer, [source], True, lambda skipped: None, on_note) for source in (first, second)]
    for source, found in zip((first, second), ends, strict=True):
        if len(found) > 1:
            raise ValueError(f"{source} holds several pictures: name one to begin with, and one to end with")
    ratios = torch.linspace(0, 1, steps)
    a, b = (end.expand(steps, *end.shape[1:]) for end in ends)
    between = tokenizer.decode(interpolated(tokenizer, a, b, ratios))
    medium = tokenizer.medium
    first_end, second_end = (_input(tokenizer, end) for end in ends)
    row = torch.cat([medium.shown(first_end), medium.shown_output(between), medium.shown(second_end)])
    caption = Caption(
        f"{run.resolve().name}: from {Path(first).name} to {Path(second).name}",
        (
            "At both ends the originals; between them, decoded, the codes nearest to points on the way from one "
            "encoding to the other. Above each, how far it is on that way.",
        ),
        columns=("original", *(f"{100 * ratio:.3g}%" for ratio in ratios.tolist()), "original"),
        classes=medium.classes_in(first_end, between, second_end),
    )
    _save(path, [row], caption)


def _pictures(
    tokenizer: ImageTokenizer,
    inputs: Sequence[str],
    strict: bool,
    on_skip: Callable[[Skipped], None],
    on_note: Callable[[str], None],
) -> Tensor:  # -> (n, C, H, W)
    found: list[Tensor] = []
    for _, pictures in stream(
        inputs, tokenizer.preprocessing, batch=MOST, strict=strict, on_skip=on_skip, on_note=on_note
    ):
        found.append(pictures)
        if sum(map(len, found)) >= MOST:
            break
    if not found:
        raise ValueError(f"none of the pictures in {', '.join(inputs)} can be read")
    pictures = torch.cat(found)
    if len(pictures) > MOST:
        on_note(f"of {len(pictures)} pictures the first {MOST} are shown")
    return pictures[:MOST]


def _input(tokenizer: ImageTokenizer, pictures: Tensor) -> Tensor:
    return tokenizer.medium.model_input(pictures, tokenizer.device)


def _ordinal(number: int) -> str:
    """ "1st", "2nd", "11th"."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _save(out: Path, rows: Sequence[Tensor], caption: Caption) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    save_rows(out, [row.cpu() for row in rows], max(8, len(rows[0])) if len(rows) == 1 else 8, caption)

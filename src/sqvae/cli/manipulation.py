"""What `sqvae neighbors` and `sqvae interpolate` put together."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from sqvae.analysis import interpolated, neighbours
from sqvae.cli import console
from sqvae.cli.left_out import LeftOut
from sqvae.cli.targets import check_free
from sqvae.data import stream
from sqvae.modalities.images.tokenizer import ImageTokenizer, load_tokenizer
from sqvae.reports import Caption, save_rows

MOST = 64
"""Pictures that are shown."""


def show_neighbors(
    run: Path, inputs: Sequence[str], out: Path, ks: Sequence[int], *, strict: bool, overwrite: bool
) -> None:
    """Pictures, their reconstructions, and below them those whose codes are each replaced by the k-th nearest."""
    check_free(out, overwrite)
    tokenizer = load_tokenizer(run)
    pictures = _pictures(tokenizer, inputs, strict)
    codes = tokenizer.encode(pictures)
    decoded = [tokenizer.decode(changed) for changed in (codes, *(neighbours(tokenizer, codes, k) for k in ks))]
    ranks = ", ".join(map(str, ks))
    near = [f"{_ordinal(k)} nearest code" for k in ks]
    caption = Caption(
        f"{run.resolve().name}: pictures whose codes are replaced by near ones",
        ("Below the reconstruction, every code is replaced by another, as near to it as is said at the left.",),
        ("original", "reconstruction", *near),
        classes=tokenizer.medium.classes_in(_input(tokenizer, pictures), *decoded),
    )
    rows = [tokenizer.medium.shown(_input(tokenizer, pictures)), *map(tokenizer.medium.shown_output, decoded)]
    _save(out, rows, caption)
    console.out.print(f"originals, reconstructions, and every code's neighbour {ranks}, from top to bottom: {out}")


def show_interpolation(run: Path, first: str, second: str, out: Path, steps: int, *, overwrite: bool) -> None:
    """Pictures between two, in a row."""
    check_free(out, overwrite)
    tokenizer = load_tokenizer(run)
    ends = [_pictures(tokenizer, [source], strict=True) for source in (first, second)]
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
    _save(out, [row], caption)
    console.out.print(f"{first}, {steps} pictures from it to {second}, and that one: {out}", soft_wrap=True)


def _pictures(tokenizer: ImageTokenizer, inputs: Sequence[str], strict: bool) -> Tensor:  # -> (n, C, H, W)
    found: list[Tensor] = []
    with LeftOut(tokenizer.medium.noun) as left_out:
        for _, pictures in stream(
            inputs, tokenizer.preprocessing, batch=MOST, strict=strict, on_skip=left_out, on_note=left_out.note
        ):
            found.append(pictures)
            if sum(map(len, found)) >= MOST:
                break
    if not found:
        raise ValueError(f"none of the pictures in {', '.join(inputs)} can be read")
    pictures = torch.cat(found)
    if len(pictures) > MOST:
        console.note(f"of {len(pictures)} pictures the first {MOST} are shown")
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

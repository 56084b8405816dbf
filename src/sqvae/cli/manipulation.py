"""What `sqvae neighbors` and `sqvae interpolate` put together."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from sqvae.cli import console
from sqvae.cli.pictures import check_free
from sqvae.data import stream
from sqvae.experiment import Tokenizer, interpolated, load_tokenizer, neighbours
from sqvae.reports import save_rows

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
    _save(tokenizer, out, [_shown_input(tokenizer, pictures), *map(tokenizer.medium.shown_output, decoded)])
    ranks = ", ".join(map(str, ks))
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
    row = torch.cat(
        [_shown_input(tokenizer, ends[0]), tokenizer.medium.shown_output(between), _shown_input(tokenizer, ends[1])]
    )
    _save(tokenizer, out, [row])
    console.out.print(f"{first}, {steps} pictures from it to {second}, and that one: {out}", soft_wrap=True)


def _pictures(tokenizer: Tokenizer, inputs: Sequence[str], strict: bool) -> Tensor:  # -> (n, C, H, W)
    found: list[Tensor] = []
    for _, pictures in stream(
        inputs,
        tokenizer.preprocessing,
        batch=MOST,
        strict=strict,
        on_skip=lambda one: console.warning(f"left out: {one}"),
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


def _shown_input(tokenizer: Tokenizer, pictures: Tensor) -> Tensor:
    return tokenizer.medium.shown(tokenizer.medium.model_input(pictures, tokenizer.device))


def _save(tokenizer: Tokenizer, out: Path, rows: Sequence[Tensor]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    save_rows(out, [row.cpu() for row in rows], columns=max(8, len(rows[0])) if len(rows) == 1 else 8)

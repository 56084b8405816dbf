"""What all tabs of the page share: the model, its prior, held-out examples, and what is known of its codes."""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from sqvae.analysis import Curve, code_colours, code_positions, nearest_codes, training_views
from sqvae.explore.drawings import address
from sqvae.modalities.exploring import Example, ExampleView
from sqvae.modalities.views import recorded_use
from sqvae.modality import modality_of
from sqvae.reports.codebook import percent
from sqvae.reports.codes import hexadecimal
from sqvae.runs import Generator, findings_of
from sqvae.tokenizers import Tokenizer
from sqvae.training import RunFolder, read_records

COUNTED = 200
"""Held-out examples on which codes are counted, where the run has not recorded it."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Explorer:
    """A run, ready to be explored. :func:`explorer_of` makes one."""

    run: Path
    tokenizer: Tokenizer
    prior: Generator | None
    kind: ExampleView
    held_out: Any
    """Examples with a length; None where the data is not at hand,"""
    missing: str
    """and why."""
    counts: Tensor | None
    """(K,): how often each code is used,"""
    counted_on: str
    """and on what."""
    curves: list[Curve]
    colours: list[str]
    """Of each code, as pages write it."""
    positions: Tensor
    """(K, 2), in [0, 1]."""
    warnings: tuple[str, ...] = ()
    """What is wrong with the model now; they are shown at the top of the page."""
    _tiles: dict[int, str] = field(default_factory=dict)
    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "model"))
    """One thread that runs the model, so that tabs wait for each other rather than share memory and processors."""

    @property
    def size(self) -> int:
        """The number of codes."""
        return self.tokenizer.codebook_size

    async def work(self, task: Callable[..., Result], *arguments: Any) -> Result:
        """Run the model without holding up the page."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, task, *arguments)

    def close(self) -> None:
        """Let go of the thread."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def example(self, index: int) -> Example:
        """A held-out example; they come round and round."""
        return self.kind.held_out(self.held_out, index % len(self.held_out))

    def tiles(self, codes: Iterable[int]) -> dict[int, str]:
        """Addresses of pictures of what each of some codes draws alone; each is made once."""
        wanted = [int(code) for code in codes]
        new = [code for code in dict.fromkeys(wanted) if code not in self._tiles]
        if new:
            drawn = self.kind.alone(torch.tensor(new))
            self._tiles.update(zip(new, map(address, drawn), strict=True))
        return {code: self._tiles[code] for code in wanted}

    def nearest(self, code: int, number: int) -> list[tuple[int, float]]:
        """The codes nearest to one, and how far they are."""
        codes, distances = nearest_codes(self.tokenizer, code, number)
        return list(zip(codes.tolist(), distances.tolist(), strict=True))

    def use_in_words(self, code: int) -> str:
        """How often a code is used."""
        if self.counts is None:
            return "How often it is used on held-out data is not known."
        taken, total = int(self.counts[code]), max(1, int(self.counts.sum()))
        if not taken:
            return f"Never used on held-out data ({self.counted_on})."
        rank, share = int((self.counts > taken).sum()) + 1, percent(taken / total)
        return f"{taken:,} times on held-out data, {share} of all places: number {rank:,} by use ({self.counted_on})."

    def described(self) -> str:
        """What the run is, in a line."""
        experiment = self.tokenizer.experiment
        what = f"a model of {modality_of(experiment.kind).plural}"
        prior = "with a prior" if self.prior is not None else "without a prior"
        return f"{what} with {self.size:,} codes, quantizer {experiment.quantizer.name}, {prior}"


def explorer_of(
    run: str | Path, tokenizer: Any, prior: Generator | None = None, held_out: Any = None, missing: str = ""
) -> Explorer:
    """A run with what there is to see of it.

    Arguments:
        tokenizer: of the run.
        prior: of the model, if there is one.
        held_out: examples that it was not trained on: Pictures or Utterances; None where they are not at hand,
        missing: and why.
    """
    if not tokenizer.is_discrete:
        raise ValueError(
            f"{run} has a continuous latent, and no codes to explore: see `sqvae inspect {run}` for its curves, and "
            f"`sqvae reconstruct` for what it makes of pictures"
        )
    kind = modality_of(tokenizer.experiment.kind).explorer(tokenizer, prior)
    folder = RunFolder(run)
    counts, counted_on = recorded_use(folder)
    if counts is None and held_out is not None:
        counts, counted_on = _counted(kind, held_out, tokenizer.codebook_size)
    return Explorer(
        run=Path(run),
        tokenizer=tokenizer,
        prior=prior,
        kind=kind,
        held_out=held_out,
        missing=missing,
        counts=counts,
        counted_on=counted_on,
        curves=training_views(read_records(folder.log), tokenizer.codebook_size),
        colours=[hexadecimal(colour) for colour in code_colours(tokenizer).numpy()],
        positions=code_positions(tokenizer),
        warnings=findings_of(folder, tokenizer.experiment) or (),
    )


def _counted(kind: ExampleView, held_out: Any, size: int) -> tuple[Tensor, str]:
    number = min(COUNTED, len(held_out))
    counts = torch.zeros(size, dtype=torch.int64)
    for index in range(number):
        codes = kind.see(kind.held_out(held_out, index * len(held_out) // number)).codes
        counts += torch.bincount(codes.flatten(), minlength=size)
    return counts, f"{number:,} held-out {kind.noun}s"

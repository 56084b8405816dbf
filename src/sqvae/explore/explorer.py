"""The state that all browser tabs share: the model, its prior, held-out examples, and the codebook usage."""

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
from sqvae.modalities.exploring import Example, ExampleViewer
from sqvae.modalities.views import recorded_use
from sqvae.modality import modality_of
from sqvae.reports.codebook import percent
from sqvae.reports.codes import hexadecimal
from sqvae.runs import Generator, findings_of
from sqvae.tokenizers import Tokenizer
from sqvae.training import RunFolder, read_records

COUNTED_EXAMPLES = 200
"""The number of held-out examples for the codebook usage, if the run has not recorded it."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Explorer:
    """A run as the page shows it. Use :func:`explorer_of` to create one."""

    run: Path
    """The folder of the run."""
    tokenizer: Tokenizer
    prior: Generator | None
    viewer: ExampleViewer
    """How the page reads and displays examples of this kind of data."""
    held_out: Any
    """The held-out examples; None if the data is not available."""
    missing: str
    """The reason why the data is not available."""
    counts: Tensor | None
    """(K,): the codebook usage, if it is known."""
    counted_on: str
    """The data on which the usage was counted."""
    curves: list[Curve]
    """The training curves."""
    colours: list[str]
    """The colour of each code, as #rrggbb."""
    map_positions: Tensor
    """(K, 2): the positions of the codes on a map, in [0, 1]."""
    warnings: tuple[str, ...] = ()
    """Problems of the model, for the top of the page."""
    _tiles: dict[int, str] = field(default_factory=dict)
    _worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "model"))
    """The only thread that runs the model, so that tabs don't compete for memory and processors."""

    @property
    def size(self) -> int:
        """The number of codes."""
        return self.tokenizer.codebook_size

    async def in_worker(self, task: Callable[..., Result], *arguments: Any) -> Result:
        """Run a task in the thread of the model, so that the page stays responsive."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, task, *arguments)

    def close(self) -> None:
        """Stop the thread of the model."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def example(self, index: int) -> Example:
        """A held-out example. After the last one, the first follows."""
        return self.viewer.held_out(self.held_out, index % len(self.held_out))

    def tiles(self, codes: Iterable[int]) -> dict[int, str]:
        """The data URLs of the images of codes. They are cached."""
        requested = [int(code) for code in codes]
        new = [code for code in dict.fromkeys(requested) if code not in self._tiles]
        if new:
            images = self.viewer.code_images(torch.tensor(new))
            self._tiles.update(zip(new, map(address, images), strict=True))
        return {code: self._tiles[code] for code in requested}

    def nearest(self, code: int, number: int) -> list[tuple[int, float]]:
        """The codes nearest to a code, with their distances."""
        codes, distances = nearest_codes(self.tokenizer, code, number)
        return list(zip(codes.tolist(), distances.tolist(), strict=True))

    def usage_text(self, code: int) -> str:
        """The usage of a code on held-out data, as text."""
        if self.counts is None:
            return "Its usage on held-out data is not known."
        count, total = int(self.counts[code]), max(1, int(self.counts.sum()))
        if not count:
            return f"Never used on held-out data ({self.counted_on})."
        rank, share = int((self.counts > count).sum()) + 1, percent(count / total)
        return f"Used {count:,} times on held-out data, at {share} of all positions; rank {rank:,} ({self.counted_on})."

    def description(self) -> str:
        """A description of the model in one line."""
        experiment = self.tokenizer.experiment
        what = f"a model of {modality_of(experiment.kind).plural}"
        prior = "with a prior" if self.prior is not None else "without a prior"
        return f"{what} with {self.size:,} codes, quantizer {experiment.quantizer.name}, {prior}"


def explorer_of(
    run: str | Path, tokenizer: Any, prior: Generator | None = None, held_out: Any = None, missing: str = ""
) -> Explorer:
    """Collect what the page shows of a run.

    Arguments:
        run: the folder of the run.
        tokenizer: the model of the run.
        prior: the prior over its codes, if there is one.
        held_out: examples that the model was not trained on; None if they are not available.
        missing: the reason why they are not available.
    """
    if not tokenizer.is_discrete:
        raise ValueError(
            f"{run} has a continuous latent, and no codes to explore: see `sqvae inspect {run}` for its curves, and "
            f"`sqvae reconstruct` for its reconstructions"
        )
    tokenizer.check_one_level("the page of `sqvae explore` shows")
    viewer = modality_of(tokenizer.experiment.kind).explorer(tokenizer, prior)
    folder = RunFolder(run)
    counts, counted_on = recorded_use(folder)
    if counts is None and held_out is not None:
        counts, counted_on = _count_usage(viewer, held_out, tokenizer.codebook_size)
    return Explorer(
        run=Path(run),
        tokenizer=tokenizer,
        prior=prior,
        viewer=viewer,
        held_out=held_out,
        missing=missing,
        counts=counts,
        counted_on=counted_on,
        curves=training_views(read_records(folder.log), tokenizer.codebook_size),
        colours=[hexadecimal(colour) for colour in code_colours(tokenizer).numpy()],
        map_positions=code_positions(tokenizer),
        warnings=findings_of(folder, tokenizer.experiment) or (),
    )


def _count_usage(viewer: ExampleViewer, held_out: Any, size: int) -> tuple[Tensor, str]:
    number = min(COUNTED_EXAMPLES, len(held_out))
    counts = torch.zeros(size, dtype=torch.int64)
    for index in range(number):
        codes = viewer.view(viewer.held_out(held_out, index * len(held_out) // number)).codes
        counts += torch.bincount(codes.flatten(), minlength=size)
    return counts, f"{number:,} held-out {viewer.noun}s"

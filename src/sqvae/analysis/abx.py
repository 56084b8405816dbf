"""How well the units of a model of speech tell phones apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqvae.config import check_name
from sqvae.data import Progress, Skipped
from sqvae.metrics import AbxResult, read_items
from sqvae.modalities.speech.abx import MODES, REPRESENTATIONS, abx_of
from sqvae.modalities.speech.tokenizer import load_speech_tokenizer


@dataclass(frozen=True)
class AbxOfRun:
    """ABX errors of what a run makes of recordings."""

    items: int
    """How many are in the list."""
    results: Mapping[tuple[str, str], AbxResult]
    """By mode, and by the name of what is compared."""

    @property
    def missing(self) -> int:
        """Items that are left out, since their recordings are not there."""
        return max(result.items_without_features for result in self.results.values())

    @property
    def too_short(self) -> int:
        """Items that are left out, at most, since they are shorter than a code."""
        return max(result.items_without_frames for result in self.results.values())


def abx_of_run(
    run: str | Path,
    items: str | Path,
    data: Sequence[str],
    *,
    modes: Sequence[str] = (),
    representations: Sequence[str] = (),
    allow_missing: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    progress: Progress | None = None,
) -> AbxOfRun:
    """Test how well what a run's model makes of recordings tells phones apart.

    Arguments:
        run: a run's folder, a checkpoint's, or ``hf:OWNER/NAME``.
        items: a list of items in the format of ZeroSpeech.
        data: where the recordings of the items are.
        modes: ``"within"`` or ``"across"`` speakers; none: both.
        representations: names in ``REPRESENTATIONS``; none: all that the model has.
        allow_missing: whether items of recordings that are not there are left out, rather than an error.
        on_skip: called with each recording that can't be read.
        progress: called with what is being done, how many are done and how many there are.
    """
    for name in representations:
        check_name(name, REPRESENTATIONS, "`representations=`")
    for mode in modes:
        check_name(mode, MODES, "`modes=`")
    tokenizer, listed = load_speech_tokenizer(run), read_items(Path(items))
    results = abx_of(
        tokenizer,
        listed,
        data,
        representations=representations,
        modes=modes or MODES,
        allow_missing=allow_missing,
        on_skip=on_skip,
        progress=progress,
    )
    return AbxOfRun(len(listed), results)

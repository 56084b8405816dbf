r"""The machine ABX test: are two tokens of one phone nearer to each other than to a token of another phone?

For tokens A and X of one phone and B of another, all between the same two phones, a triple counts

.. math:: e(A, B, X) = 1[d(A, X) > d(B, X)] + \tfrac12\, 1[d(A, X) = d(B, X)]

with the distance of :mod:`sqvae.metrics.dtw` (Schatz et al., 2013). Units that say all about phones and nothing else
bring the mean of e to 0; units that say nothing about them, to 1/2.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sqvae.metrics.dtw import Integers, TokenDistances, frame_distance
from sqvae.metrics.items import Item, cut_tokens

Mode: TypeAlias = Literal["within", "across"]
Average: TypeAlias = Literal["zerospeech2019", "zerospeech2021"]

# The key of a score is (phone of A and X, phone of B, speaker of A and B, speaker of X, phone before, phone after).
# Each step takes the mean over all keys that begin with the same so many parts.
_AVERAGES: Mapping[str, tuple[int, ...]] = {"zerospeech2019": (4, 2), "zerospeech2021": (3, 2)}
_PAIRS_AT_ONCE = 2**20

Speakers: TypeAlias = Mapping[str, Mapping[str, Integers]]
"""The tokens of one context: by speaker, then by phone."""


@dataclass(frozen=True)
class AbxResult:
    """What came of an ABX test."""

    error: float
    """The mean over ordered pairs of phones, in [0, 1]."""
    pairs: Mapping[tuple[str, str], float]
    """The error of each ordered pair: the phone of A and X, the phone of B."""
    triples: int
    cells: int
    """How many means of triples went into the averages."""
    items: int
    """Those that have frames, whether or not a triple could be made of them."""
    items_shortened: int
    """Those of them that reach beyond the frames of their file: many suggest a wrong shift or start."""
    items_without_frames: int
    items_without_features: int


class _Cell(NamedTuple):
    """The triples of two phones and their speakers in one context."""

    key: tuple[str, ...]
    a: Integers
    b: Integers
    x: Integers


def abx(
    items: Iterable[Item],
    features: Mapping[str, ArrayLike],  # (T, d) each, or (T,) for units
    *,
    shift: float,
    start: float | None = None,
    mode: Mode = "within",
    distance: str = "cosine",
    average: Average = "zerospeech2019",
    most_tokens: int | None = None,
    seed: int = 0,
    allow_missing: bool = False,
) -> AbxResult:
    """The error of the ABX test on phones in context.

    All triples of a cell - two ordered phones, their speakers, a context - are averaged first. Then, as the challenges
    of 2019 and 2020 did, cells over contexts, these over speakers (of mode "across": over ordered pairs of speakers),
    and these over the ordered pairs of phones. Both orders of two phones count where both can be tested. The challenge
    of 2021, Libri-Light and fastabx differ in mode "across" only: there a mean over contexts and speakers of X together
    is followed by one over speakers of A and B.

    Arguments:
        items: the tokens; see :func:`~sqvae.metrics.items.read_items`.
        features: the frames of each file by its name: vectors, or integers for the distance "identical".
        shift: the seconds from one frame's centre to the next.
        start: the time of the first frame's centre; half the shift if not given. The frames of an item are those whose
            centre lies within it, both ends included.
        mode: "within": A, B and X are of one speaker. "across": A and B are of one, X of another.
        distance: of frames, by its name in :data:`~sqvae.metrics.dtw.FRAME_DISTANCES`.
        average: the order of means, by the challenge that it is from.
        most_tokens: of a phone by a speaker in a context, at most so many are used, drawn once; all if not given.
        seed: of that draw.
        allow_missing: whether items of files without features are left out and counted, rather than an error.
    """
    _check("mode", mode, _CELLS)
    _check("average", average, _AVERAGES)
    if most_tokens is not None and most_tokens < 1:
        raise ValueError(f"most_tokens is {most_tokens}, expected at least 1, or None for all")
    measure = frame_distance(distance)
    tokens = cut_tokens(items, features, shift=shift, start=start, units=measure.units, allow_missing=allow_missing)
    contexts = _contexts(tokens.items, most_tokens, np.random.default_rng(seed))
    distances = TokenDistances(tokens.frames, tokens.starts, tokens.lengths, measure)
    scores: dict[tuple[str, ...], float] = {}
    triples = 0
    for cells in _batches(contexts, _CELLS[mode]):
        for cell, (errors, count) in zip(cells, _errors(cells, distances), strict=True):
            scores[cell.key] = errors / count
            triples += count
    if not scores:
        raise ValueError(
            f"no triple can be made of the {len(tokens.items)} items that have frames: mode {mode!r} needs two phones "
            f"by one speaker in one context, and there a second token of one of them by "
            f"{'that' if mode == 'within' else 'another'} speaker. Give more items, or try the other mode"
        )
    cell_count = len(scores)
    for kept in _AVERAGES[average]:
        scores = _means(scores, kept)
    return AbxResult(
        error=_mean(list(scores.values())),
        pairs={(phone, other): error for (phone, other), error in scores.items()},
        triples=triples,
        cells=cell_count,
        items=len(tokens.items),
        items_shortened=tokens.shortened,
        items_without_frames=tokens.without_frames,
        items_without_features=tokens.without_features,
    )


def _check(name: str, value: str, known: Mapping[str, object]) -> None:
    if value not in known:
        raise ValueError(f"the {name} {value!r} is not known, expected one of {', '.join(known)}")


def _contexts(
    items: list[Item], most_tokens: int | None, random: np.random.Generator
) -> dict[tuple[str, str], dict[str, dict[str, Integers]]]:
    """The tokens, as their places in the list, by context, speaker and phone."""
    places: defaultdict[tuple[tuple[str, str], str, str], list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        places[item.context, item.speaker, item.phone].append(place)
    found: defaultdict[tuple[str, str], defaultdict[str, dict[str, Integers]]] = defaultdict(lambda: defaultdict(dict))
    for (context, speaker, phone), tokens in sorted(places.items()):
        if most_tokens is not None and len(tokens) > most_tokens:
            tokens = sorted(random.choice(tokens, most_tokens, replace=False).tolist())
        found[context][speaker][phone] = np.array(tokens)
    return {context: dict(speakers) for context, speakers in found.items()}


def _within(context: tuple[str, str], speakers: Speakers) -> Iterator[_Cell]:
    for speaker, phones in speakers.items():
        for phone, x in phones.items():
            if len(x) > 1:
                for other, b in phones.items():
                    if other != phone:
                        yield _Cell((phone, other, speaker, speaker, *context), x, b, x)


def _across(context: tuple[str, str], speakers: Speakers) -> Iterator[_Cell]:
    for speaker, phones in speakers.items():
        for x_speaker, x_phones in speakers.items():
            if x_speaker != speaker:
                for phone in phones.keys() & x_phones.keys():
                    for other in phones.keys() - {phone}:
                        key = (phone, other, speaker, x_speaker, *context)
                        yield _Cell(key, phones[phone], phones[other], x_phones[phone])


_CELLS: Mapping[str, Callable[[tuple[str, str], Speakers], Iterator[_Cell]]] = {"within": _within, "across": _across}


def _batches(
    contexts: Mapping[tuple[str, str], Speakers], cells_of: Callable[[tuple[str, str], Speakers], Iterator[_Cell]]
) -> Iterator[list[_Cell]]:
    """The cells of as many contexts at a time as memory allows; those of one context share pairs and stay together."""
    batch: list[_Cell] = []
    pairs = 0
    for context, speakers in contexts.items():
        cells = list(cells_of(context, speakers))
        batch += cells
        pairs += sum(len(cell.x) * (len(cell.a) + len(cell.b)) for cell in cells)
        if pairs >= _PAIRS_AT_ONCE:
            yield batch
            batch, pairs = [], 0
    if batch:
        yield batch


def _errors(cells: list[_Cell], distances: TokenDistances) -> Iterator[tuple[float, int]]:
    """The errors of each cell and the number of its triples; each pair of tokens is compared once."""
    tokens = len(distances.lengths)

    def pairs(x: Integers, y: Integers) -> Integers:  # (n,), (m,) -> (n, m)
        """A number for each pair, the same in both orders."""
        numbers: Integers = np.minimum.outer(x, y) * tokens + np.maximum.outer(x, y)
        return numbers

    wanted = np.unique(np.concatenate([pairs(cell.x, y).ravel() for cell in cells for y in (cell.a, cell.b)]))
    found = distances.between(*np.divmod(wanted, tokens))
    for a, b, x in (cell[1:] for cell in cells):
        to_a, to_b = (found[np.searchsorted(wanted, pairs(x, y))] for y in (a, b))
        errors, count = 0.0, 0
        for token, near, far in zip(x, to_a, to_b, strict=True):
            gaps = near[a != token][:, None] - far
            ties = np.abs(gaps) <= distances.tolerance
            errors += float((gaps > distances.tolerance).sum() + ties.sum() / 2)
            count += gaps.size
        yield errors, count


def _means(scores: Mapping[tuple[str, ...], float], kept: int) -> dict[tuple[str, ...], float]:
    """The mean of the scores whose keys begin with the same so many parts."""
    parts: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
    for key, score in scores.items():
        parts[key[:kept]].append(score)
    return {key: _mean(parts[key]) for key in sorted(parts)}


def _mean(values: list[float]) -> float:
    # Whatever the order of the values.
    return math.fsum(values) / len(values)

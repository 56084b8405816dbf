r"""The machine ABX test: are two tokens of one phone closer to each other than to a token of another phone?

For tokens A and X of one phone and B of another, all in the same context, a triple counts

.. math:: e(A, B, X) = 1[d(A, X) > d(B, X)] + \tfrac12\, 1[d(A, X) = d(B, X)]

with the distance of :mod:`sqvae.metrics.dtw` (Schatz et al., 2013). Units that encode phones and nothing else have a
mean of 0; units that are independent of phones have a mean of 1/2.
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
# Each step averages over all keys that begin with the same number of parts.
_AVERAGES: Mapping[str, tuple[int, ...]] = {"zerospeech2019": (4, 2), "zerospeech2021": (3, 2)}
_PAIRS_AT_ONCE = 2**20

Speakers: TypeAlias = Mapping[str, Mapping[str, Integers]]
"""The tokens of one context: by speaker, then by phone."""


@dataclass(frozen=True)
class AbxResult:
    """The result of an ABX test."""

    error: float
    """The mean over ordered pairs of phones, in [0, 1]."""
    pairs: Mapping[tuple[str, str], float]
    """The error of each ordered pair: the phone of A and X, the phone of B."""
    triples: int
    cells: int
    """Number of cell means in the averages."""
    items: int
    """Number of items with frames, whether or not they are part of a triple."""
    items_shortened: int
    """Number of them that extend beyond the frames of their file: many suggest a wrong shift or start."""
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

    All triples of a cell (two ordered phones, their speakers, a context) are averaged first. Then, as in the challenges
    of 2019 and 2020, cells are averaged over contexts, these over speakers (in mode "across": over ordered pairs of
    speakers), and these over the ordered pairs of phones. Both orders of two phones count if both can be tested. The
    challenge of 2021, Libri-Light and fastabx differ in mode "across" only: a mean over contexts and speakers of X
    together is followed by one over speakers of A and B.

    Arguments:
        items: the tokens; see :func:`~sqvae.metrics.items.read_items`.
        features: the frames of each file by its name: vectors, or integers for the distance "identical".
        shift: the time between the centres of adjacent frames in seconds.
        start: the time of the first frame's centre; half the shift by default. The frames of an item are those whose
            centre lies within it, both ends included.
        mode: "within": A, B and X are by one speaker. "across": A and B are by one speaker, X by another.
        distance: the distance of frames, a name in :data:`~sqvae.metrics.dtw.FRAME_DISTANCES`.
        average: the order of averages, named after a challenge.
        most_tokens: maximum number of tokens of a phone by a speaker in a context, drawn once; all by default.
        seed: the seed of that draw.
        allow_missing: skip and count items of files without features, instead of raising an error.
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
            f"{'that' if mode == 'within' else 'another'} speaker. Pass more items, or try the other mode"
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
    """The tokens, as indices into the list, by context, speaker and phone."""
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
    """Yield the cells of as many contexts at a time as memory allows. Cells of one context share pairs of tokens."""
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
    """Yield the error sum of each cell and the number of its triples. Each pair of tokens is compared once."""
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
    """The mean of the scores whose keys begin with the same `kept` parts."""
    parts: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
    for key, score in scores.items():
        parts[key[:kept]].append(score)
    return {key: _mean(parts[key]) for key in sorted(parts)}


def _mean(values: list[float]) -> float:
    # Exact, so that the order of the values does not matter.
    return math.fsum(values) / len(values)

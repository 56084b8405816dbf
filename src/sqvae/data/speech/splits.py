"""Which utterances to train on, to validate on and to test on: a model knows the voices that it is trained on, so those
that are held out are drawn from every speaker."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqvae.data.collection import Part
from sqvae.data.speech.utterances import Utterance
from sqvae.data.splits import lot
from sqvae.data.wording import counted, listed

TEST = 0.1
"""Of every speaker's utterances, so many to test on, where the source has no such set,"""
VALIDATION = 0.05
"""and so many of what is left to validate on."""

FEW = 0.02
MOST = 500
"""Of the utterances to train on, so many to validate on where there is a test set to compare results on."""

HANDFUL = 5
"""At least so many to validate on, where that is not more than a tenth."""


@dataclass(frozen=True)
class Division:
    """Utterances by what they are for."""

    train: Sequence[Utterance]
    validation: Sequence[Utterance]
    test: Sequence[Utterance]
    notes: tuple[str, ...] = ()


def divide(parts: Mapping[Part, Sequence[Utterance]], *, seed: int, published: bool) -> Division:
    """Utterances in three sets.

    They are drawn by a hash of the seed and of their names. So the same recordings give the same sets on any machine,
    and a recording that is added later leaves those of other speakers where they were, and nearly all of its own.

    Arguments:
        parts: what the source says; "all" or "train", and others where it has them.
        seed: draws sets where the source has none.
        published: whether the test set is one to compare results on, so that few are to be kept from training.
    """
    everything = [utterance for utterances in parts.values() for utterance in utterances]
    if len(everything) < 3:
        note = (
            f"only {counted(len(everything), 'recording')}, so the same are for training, validation and test: "
            "numbers on them say nothing about new recordings"
        )
        return Division(everything, everything, everything, (note,))
    train = [*parts.get("all", ()), *parts.get("train", ())]
    test, validation = list(parts.get("test", ())), list(parts.get("validation", ()))
    notes = [
        _aside(part) for part, given in (("test", test), ("validation", validation)) if _of_strangers(given, train)
    ]
    test, validation = ([] if _of_strangers(given, train) else given for given in (test, validation))
    drawn = {"test": not test, "validation": not validation}
    if drawn["test"]:
        train, test = _draw_test(train, seed)
    if drawn["validation"]:
        draw = _draw_few if published or not drawn["test"] else _draw_validation
        train, validation = draw(train, seed)
    notes += [_shared(part) for part, chosen in (("test", test), ("validation", validation)) if not chosen]
    division = Division(train, validation or train, test or train)
    notes += [*_drawn(Division(train, validation, test), drawn, seed), *_strangers(division)]
    return replace(division, notes=tuple(notes))


def _of_strangers(utterances: Sequence[Utterance], train: Sequence[Utterance]) -> bool:
    """Whether there are utterances, and none of a speaker whom the model will know."""
    known = {utterance.speaker for utterance in train}
    return bool(utterances) and not any(utterance.speaker in known for utterance in utterances)


def _shared(part: str) -> str:
    return (
        f"nobody has a recording to spare, and a model speaks with the voices that it has learned: those to train on "
        f"are the {part} set too, and numbers on them say nothing about new recordings"
    )


def _aside(part: str) -> str:
    return (
        f"the {part} set is left aside: none of its speakers is among those to train on, and a model speaks with the "
        f"voices that it has learned"
    )


def _draw_test(train: list[Utterance], seed: int) -> tuple[list[Utterance], list[Utterance]]:
    return _without(train, _within_speakers(train, TEST, "test", seed, least=1) or _leaving_each(train, 1, seed))


def _draw_validation(train: list[Utterance], seed: int) -> tuple[list[Utterance], list[Utterance]]:
    drawn = _within_speakers(train, VALIDATION, "validation", seed, least=0)
    more = _leaving_each(_without(train, drawn)[0], _handful(train) - len(drawn), seed)
    return _without(train, drawn + more)


def _draw_few(train: list[Utterance], seed: int) -> tuple[list[Utterance], list[Utterance]]:
    number = min(max(round(FEW * len(train)), _handful(train)), MOST)
    return _without(train, _leaving_each(train, number, seed))


def _handful(train: Sequence[Utterance]) -> int:
    return min(HANDFUL, max(len(train) // 10, 1))


def _within_speakers(train: Sequence[Utterance], share: float, part: Part, seed: int, least: int) -> list[Utterance]:
    """A share of every speaker's utterances, of three or more at least so many, and never all of them."""
    members: defaultdict[str, list[Utterance]] = defaultdict(list)
    for utterance in train:
        members[utterance.speaker].append(utterance)
    drawn: list[Utterance] = []
    for speaker, own in members.items():
        # Whether a fraction of an utterance counts is drawn too: the share is then right for many with few each.
        fraction = int.from_bytes(lot(seed, f"{part}/{speaker}")[:8], "big") / 2**64
        number = max(int(share * len(own) + fraction), least if len(own) >= 3 else 0)
        drawn += _by_lot(own, seed)[: min(number, len(own) - 1)]
    return drawn


def _leaving_each(train: Sequence[Utterance], number: int, seed: int) -> list[Utterance]:
    """So many utterances of all, but the last of nobody."""
    left = Counter(utterance.speaker for utterance in train)
    drawn: list[Utterance] = []
    for utterance in _by_lot(train, seed):
        if len(drawn) < min(number, len(train) - 1) and left[utterance.speaker] > 1:
            left[utterance.speaker] -= 1
            drawn.append(utterance)
    return drawn


def _by_lot(utterances: Sequence[Utterance], seed: int) -> list[Utterance]:
    """In the order in which they are drawn."""
    return sorted(utterances, key=lambda utterance: lot(seed, utterance.name))


def _without(train: Sequence[Utterance], drawn: Sequence[Utterance]) -> tuple[list[Utterance], list[Utterance]]:
    """The rest and the drawn, both in order."""
    names = {utterance.name for utterance in drawn}
    return [one for one in train if one.name not in names], [one for one in train if one.name in names]


def _drawn(division: Division, drawn: Mapping[str, bool], seed: int) -> list[str]:
    train, validation, test = len(division.train), len(division.validation), len(division.test)
    if drawn["test"] and drawn["validation"]:
        speakers = {one.speaker for one in (*division.train, *division.validation, *division.test)}
        return [
            f"{counted(train + validation + test, 'recording')} of {counted(len(speakers), 'speaker')}, drawn by split "
            f"seed {seed}: {train:,} to train on, {validation:,} to validate on, and {test:,}, about a tenth of every "
            "speaker's, to test on"
        ]
    numbers = {"test": test, "validation": validation}
    return [
        f"there are no {part} recordings: {numbers[part]:,}, drawn by split seed {seed}, of those to train on are set "
        "aside"
        for part in ("test", "validation")
        if drawn[part]
    ]


def _strangers(division: Division) -> list[str]:
    known = {utterance.speaker for utterance in division.train}
    notes = []
    for what, utterances in (("validation", division.validation), ("test", division.test)):
        strangers = sorted({utterance.speaker for utterance in utterances} - known)
        if strangers:
            notes.append(
                f"{counted(len(strangers), 'speaker')} of the {what} set can't be learned, for want of recordings to "
                f"train on: {listed(strangers, 3)}. Only in another's voice can their recordings be reconstructed"
            )
    return notes

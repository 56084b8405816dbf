"""Division of utterances into training, validation and test sets. A model knows only the voices that it is trained on,
so held-out utterances are drawn from every speaker."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqvae.data.collection import Part
from sqvae.data.speech.utterances import Utterance
from sqvae.data.splits import lot
from sqvae.data.wording import counted, listed

TEST = 0.1
"""The share of every speaker's utterances for testing, if the source has no test set."""
VALIDATION = 0.05
"""The share of the remaining utterances for validation."""

FEW = 0.02
MOST = 500
"""The share, and the maximum number, of training utterances for validation if there is a published test set."""

HANDFUL = 5
"""Minimum number of utterances for validation, unless it is more than a tenth."""


@dataclass(frozen=True)
class Division:
    """Utterances by set."""

    train: Sequence[Utterance]
    validation: Sequence[Utterance]
    test: Sequence[Utterance]
    notes: tuple[str, ...] = ()


def divide(parts: Mapping[Part, Sequence[Utterance]], *, seed: int, published: bool) -> Division:
    """Divide utterances into three sets.

    They are drawn by a hash of the seed and of their names. So the same recordings give the same sets on any machine.
    If a recording is added later, those of other speakers stay in their sets, and nearly all of the same speaker.

    Arguments:
        parts: the sets that the source defines: "all" or "train", and possibly others.
        seed: the seed for drawing sets that the source does not define.
        published: whether published results are compared on the test set, so that only few are held out from training.
    """
    everything = [utterance for utterances in parts.values() for utterance in utterances]
    if len(everything) < 3:
        note = (
            f"only {counted(len(everything), 'recording')}, so training, validation and test sets are the same: "
            "metrics on them say nothing about new recordings"
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
    """Whether there are utterances, and none of them is by a training speaker."""
    known = {utterance.speaker for utterance in train}
    return bool(utterances) and not any(utterance.speaker in known for utterance in utterances)


def _shared(part: str) -> str:
    return (
        f"there are too few recordings per speaker for a {part} set, and a model knows only its training speakers: "
        f"the training set is the {part} set too, and metrics on it say nothing about new recordings"
    )


def _aside(part: str) -> str:
    return (
        f"the {part} set is not used: none of its speakers is in the training set, and a model knows only its training "
        f"speakers"
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
    """A share of every speaker's utterances: at least `least` of three or more, and never all of them."""
    members: defaultdict[str, list[Utterance]] = defaultdict(list)
    for utterance in train:
        members[utterance.speaker].append(utterance)
    drawn: list[Utterance] = []
    for speaker, own in members.items():
        # A fraction of an utterance is rounded at random, so that the share is right for many speakers with few each.
        fraction = int.from_bytes(lot(seed, f"{part}/{speaker}")[:8], "big") / 2**64
        number = max(int(share * len(own) + fraction), least if len(own) >= 3 else 0)
        drawn += _by_lot(own, seed)[: min(number, len(own) - 1)]
    return drawn


def _leaving_each(train: Sequence[Utterance], number: int, seed: int) -> list[Utterance]:
    """Draw this number of utterances from all, but never a speaker's last one."""
    left = Counter(utterance.speaker for utterance in train)
    drawn: list[Utterance] = []
    for utterance in _by_lot(train, seed):
        if len(drawn) < min(number, len(train) - 1) and left[utterance.speaker] > 1:
            left[utterance.speaker] -= 1
            drawn.append(utterance)
    return drawn


def _by_lot(utterances: Sequence[Utterance], seed: int) -> list[Utterance]:
    """The utterances in the order in which they are drawn."""
    return sorted(utterances, key=lambda utterance: lot(seed, utterance.name))


def _without(train: Sequence[Utterance], drawn: Sequence[Utterance]) -> tuple[list[Utterance], list[Utterance]]:
    """The remaining and the drawn utterances, both in order."""
    names = {utterance.name for utterance in drawn}
    return [one for one in train if one.name not in names], [one for one in train if one.name in names]


def _drawn(division: Division, drawn: Mapping[str, bool], seed: int) -> list[str]:
    train, validation, test = len(division.train), len(division.validation), len(division.test)
    if drawn["test"] and drawn["validation"]:
        speakers = {one.speaker for one in (*division.train, *division.validation, *division.test)}
        return [
            f"{counted(train + validation + test, 'recording')} of {counted(len(speakers), 'speaker')}, divided by "
            f"split seed {seed}: {train:,} for training, {validation:,} for validation, and {test:,}, about a tenth of "
            "every speaker's, for testing"
        ]
    numbers = {"test": test, "validation": validation}
    return [
        f"there are no {part} recordings: {numbers[part]:,} of the training recordings, drawn by split seed {seed}, "
        "are set aside"
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
                f"{counted(len(strangers), 'speaker')} of the {what} set can't be learned, because there are no "
                f"training recordings: {listed(strangers, 3)}. Their recordings can only be reconstructed in another "
                "voice"
            )
    return notes

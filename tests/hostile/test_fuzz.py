"""Mutated files of every format are refused, read as they were, or said to be something else: `make fuzz` does more."""

import os
import signal

import pytest
from robustness import fuzz
from robustness.formats import FORMATS
from robustness.fuzz import FAULTS, FINE, Reader, attacked
from robustness.mutations import mutated

MUTATIONS = 25

KEPT = {
    "idx-gz": (1, 2, 15),  # cut or altered pictures were read: the checksum at the end was never reached
    "cifar-tar": (52, 68, 124),  # likewise
    "npy": (47, 66, 91),  # numpy reads a header as Python, whose own errors came through
    "npz": (68, 505, 869, 1472),  # a member without its ending; encrypted; not listed
    "zip": (452, 1257, 1858, 3268, 4011, 6328),  # a member without a name; one with the name of a folder
    "model": (6065,),  # a manifest with a number that is infinite
}
"""Mutations that have failed once."""


@pytest.mark.parametrize("name", FORMATS)
def test_mutations(name, tmp_path):
    reader = Reader(name, tmp_path)
    for number in (*range(MUTATIONS), *KEPT.get(name, ())):
        outcome = reader.outcome(number)
        assert outcome.kind in FINE, outcome


def test_a_reader_that_dies_or_hangs_is_noticed(monkeypatch):
    """In a process of its own, which this one outlives."""
    with attacked("codes") as reader:
        assert reader.outcome(0).kind in FINE
        os.kill(reader._process.pid, signal.SIGKILL)
        assert reader.outcome(1).kind == "crash"
        assert reader.outcome(1).kind in FINE  # by another process
        monkeypatch.setattr(fuzz, "HANG", -4)  # seconds; it is given five more
        os.kill(reader._process.pid, signal.SIGSTOP)
        assert reader.outcome(2).kind == "hang"


def test_the_same_number_is_the_same_mutation():
    whole = bytes(range(256)) * 4
    assert mutated(whole, "x", 1) == mutated(whole, "x", 1)
    assert len({mutated(whole, "x", number) for number in range(200)}) > 190
    assert mutated(b"", "x", 1) == b""


def test_what_must_not_be_is_told_from_what_may():
    assert not set(FAULTS) & set(FINE)

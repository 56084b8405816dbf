"""The ABX test: dynamic time warping, the frames of items, triples, averages; against plain code and by hand."""

import gzip
import itertools
import math
import sys
from collections import defaultdict
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from real_data import folder_of
from sqvae.metrics.abx import abx
from sqvae.metrics.dtw import FRAME_DISTANCES, TokenDistances, frame_distance, warp
from sqvae.metrics.items import COLUMNS, Item, cut_tokens, read_items

HEADER = " ".join(COLUMNS)
SHIFT = 0.01
VECTORS = ("cosine", "euclidean", "kl")


# What is tested, once more in the plainest way: one pair, one path, one triple at a time.


def plain_frame_distance(x, y, name):
    if name == "identical":
        return float(x != y)
    x, y = np.float64(x), np.float64(y)
    if name == "euclidean":
        return float(np.sqrt(((x - y) ** 2).sum()))
    if name == "kl":
        p, q = ((z / z.sum() + 1e-6) / (z / z.sum() + 1e-6).sum() for z in (x, y))
        return float(((p - q) * np.log(p / q)).sum() / 2)
    if not x.any() or not y.any():
        return float(x.any() != y.any())
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    return 2 * math.atan2(np.linalg.norm(x - y), np.linalg.norm(x + y)) / math.pi


def plain_warp(costs):
    """The cost and the length of the cheapest path, the shortest of those, over all that lead to each place."""
    best = {(-1, -1): (0.0, 0)}
    for i, j in itertools.product(range(len(costs)), range(len(costs[0]))):
        before = [best[place] for place in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if place in best]
        cost, length = min(before)
        best[i, j] = (cost + costs[i][j], length + 1)
    return best[len(costs) - 1, len(costs[0]) - 1]


def plain_distance(x, y, name):
    cost, length = plain_warp([[plain_frame_distance(a, b, name) for b in y] for a in x])
    return cost / length


def plain_triples(items, mode):
    """Every triple of places, by asking of each whether it is one."""
    for a, b, x in itertools.permutations(range(len(items)), 3):
        one, other, asked = items[a], items[b], items[x]
        phones = one.context == other.context == asked.context and one.phone == asked.phone != other.phone
        speakers = one.speaker == other.speaker and (asked.speaker == one.speaker) == (mode == "within")
        if phones and speakers:
            yield a, b, x


def plain_mean(scores, kept):
    groups = defaultdict(list)
    for key, score in scores.items():
        groups[tuple(key[place] for place in kept)].append(score)
    return {key: np.mean(found) for key, found in groups.items()}


def plain_abx(items, sequences, mode, name, average="zerospeech2019"):
    cells = defaultdict(list)
    for a, b, x in plain_triples(items, mode):
        gap = plain_distance(sequences[a], sequences[x], name) - plain_distance(sequences[b], sequences[x], name)
        error = 0.5 if abs(gap) < 1e-9 else float(gap > 0)
        cells[items[a].phone, items[b].phone, items[a].speaker, items[x].speaker, items[x].context].append(error)
    scores = {key: np.mean(errors) for key, errors in cells.items()}
    scores = plain_mean(scores, (0, 1, 2, 3) if average == "zerospeech2019" else (0, 1, 2))
    pairs = plain_mean(scores, (0, 1))
    return np.mean(list(pairs.values())), pairs, sum(map(len, cells.values())), len(cells)


def speech(sequences, labels):
    """Items and features of one file, in which the sequences follow each other; labels: phone, context, speaker."""
    items, at = [], 0
    for sequence, (phone, context, speaker) in zip(sequences, labels, strict=True):
        items.append(Item("file", at * SHIFT, (at + len(sequence)) * SHIFT, phone, *context, speaker))
        at += len(sequence)
    return items, {"file": np.concatenate(sequences)}


def made_up(random, tokens=14, name="cosine", longest=5):
    labels = [
        (random.choice(["a", "e", "i"]), tuple(random.choice(["k", "t"], 2)), random.choice(["one", "two", "three"]))
        for _ in range(tokens)
    ]
    labels = [(str(phone), (str(before), str(after)), str(speaker)) for phone, (before, after), speaker in labels]
    lengths = random.integers(1, longest + 1, tokens)
    if name == "identical":
        return [random.integers(0, 3, n) for n in lengths], labels
    return [random.random((n, 4)) for n in lengths], labels


def distances_of(sequences, name):
    lengths = np.array([len(sequence) for sequence in sequences])
    return TokenDistances(np.concatenate(sequences), np.cumsum(lengths) - lengths, lengths, frame_distance(name))


def all_pairs(sequences, name):
    count = len(sequences)
    first, second = np.divmod(np.arange(count**2), count)
    return distances_of(sequences, name).between(first, second).reshape(count, count)


class TestWarp:
    @pytest.mark.parametrize(
        ("costs", "cost", "length"),
        [
            ([[0.5]], 0.5, 1),
            ([[0.5, 0.25, 0.25]], 1.0, 3),
            ([[0.5], [0.25]], 0.75, 2),
            ([[0, 1], [1, 0]], 0.0, 2),
            ([[0.25, 0], [0, 0.25]], 0.5, 2),  # round the corner it costs the same, but takes longer
            ([[0, 1, 1], [0, 1, 1], [1, 0, 0]], 0.0, 4),
            ([[1, 0, 1], [1, 1, 0]], 1.0, 3),
        ],
    )
    def test_by_hand(self, costs, cost, length):
        costs = np.array(costs, dtype=np.float64)
        for matrix in (costs, costs.T):
            found = warp(matrix[None], np.array([matrix.shape[0]]), np.array([matrix.shape[1]]))
            assert [part.item() for part in found] == [cost, length]

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
    def test_many_of_different_sizes_as_one_by_one(self, sizes, seed):
        random = np.random.default_rng(seed)
        rows, columns = (np.array(side) for side in zip(*sizes, strict=True))
        # Few values, so that many paths cost the same.
        costs = random.choice([0, 0.25, 0.5, 1], (len(sizes), rows.max(), columns.max()))
        cost, length = warp(costs, rows, columns)
        for pair, (n, m) in enumerate(sizes):
            assert (cost[pair], length[pair]) == plain_warp(costs[pair, :n, :m].tolist())

    def test_the_order_of_sums_does_not_matter(self):
        # As floats, 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1.
        there = np.array([[[0.1, 0.2, 0.3]], [[0.3, 0.2, 0.1]]])
        cost, _ = warp(there, np.array([1, 1]), np.array([3, 3]))
        assert cost[0] == cost[1] == pytest.approx(0.6, abs=1e-9)


class TestTokenDistances:
    @pytest.mark.parametrize("name", FRAME_DISTANCES)
    def test_as_plain(self, name):
        sequences, _ = made_up(np.random.default_rng(1), 9, name, longest=11)
        expected = [[plain_distance(x, y, name) for y in sequences] for x in sequences]
        assert all_pairs(sequences, name) == pytest.approx(np.array(expected), abs=1e-8)

    @pytest.mark.parametrize("name", FRAME_DISTANCES)
    def test_symmetric_and_zero_for_the_same(self, name):
        sequences, _ = made_up(np.random.default_rng(2), 12, name, longest=9)
        found = all_pairs(sequences, name)
        assert (found == found.T).all()
        assert (found.diagonal() == 0).all()

    def test_by_hand(self):
        x, y = np.array([[1.0, 0], [0, 1]]), np.array([[2.0, 0], [3, 3], [0, 1]])
        # Of the middle frame, an eighth of a turn from both others; three steps.
        assert all_pairs([x, y], "cosine")[0, 1] == pytest.approx(0.25 / 3, abs=1e-9)
        assert all_pairs([x, y], "euclidean")[0, 1] == pytest.approx((1 + math.sqrt(13)) / 3, abs=1e-9)
        assert all_pairs([np.array([7, 7, 8]), np.array([7, 9])], "identical")[0, 1] == pytest.approx(1 / 3, abs=1e-9)
        p, q = math.log((1 + 1e-6) / 1e-6), np.array([[1.0, 0], [0, 5]])
        assert all_pairs([q[:1], q[1:]], "kl")[0, 1] == pytest.approx(p / (1 + 2e-6), rel=1e-9)

    def test_units_are_one_hot_vectors(self):
        sequences, _ = made_up(np.random.default_rng(3), 10, "identical", longest=9)
        units, one_hot = all_pairs(sequences, "identical"), [np.eye(3)[sequence] for sequence in sequences]
        assert (all_pairs(one_hot, "cosine") == units / 2).all()
        assert all_pairs(one_hot, "euclidean") == pytest.approx(units * math.sqrt(2), abs=1e-8)

    def test_zero_vectors(self):
        zero, other = np.zeros((2, 3)), np.ones((3, 3))
        assert all_pairs([zero, other, -other], "cosine").tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]

    @pytest.mark.parametrize("name", ["cosine", "euclidean"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_equal_frames_are_equal_wherever_they_stand(self, name, dtype):
        """Code vectors: sequences of the same codes have exactly one distance, in whatever company it is computed."""
        random = np.random.default_rng(4)
        book = random.normal(100, 1, (6, 67)).astype(dtype)
        codes = random.integers(0, 6, (8, 7))
        one = all_pairs([book[row] for row in codes], name)
        more = [book[row] for row in codes] + [book[random.integers(0, 6, n)] for n in range(1, 30)]
        assert np.abs(all_pairs(more, name)[:8, :8] - one).max() <= distances_of(more, name).tolerance
        stretched = [np.repeat(book[row], 2, 0) for row in codes]
        assert all_pairs([stretched[0], book[codes[0]]], name)[0, 1] == 0

    @pytest.mark.parametrize("factor", [1e-160, 1e160])
    def test_tiny_and_huge_frames(self, factor):
        sequences, _ = made_up(np.random.default_rng(5), 6)
        large = [factor * sequence for sequence in sequences]
        assert all_pairs(large, "cosine") == pytest.approx(all_pairs(sequences, "cosine"), abs=1e-9)
        assert all_pairs(large, "euclidean") / factor == pytest.approx(all_pairs(sequences, "euclidean"), abs=1e-8)

    def test_equal_frames_only(self):
        assert (all_pairs([np.ones((2, 3)), np.ones((4, 3))], "euclidean") == 0).all()

    def test_few_at_a_time(self, monkeypatch):
        sequences, _ = made_up(np.random.default_rng(6), 20, longest=13)
        together = all_pairs(sequences, "cosine")
        monkeypatch.setattr(sys.modules[warp.__module__], "_NUMBERS_AT_ONCE", 1)
        assert all_pairs(sequences, "cosine") == pytest.approx(together, abs=1e-9)

    def test_what_cannot_be_compared(self):
        with pytest.raises(ValueError, match=r"'manhattan' is not known, expected one of cosine, euclidean"):
            distances_of([np.ones((2, 3))], "manhattan")
        with pytest.raises(ValueError, match=r"8193 frames, more than the 8192"):
            distances_of([np.zeros(8193, dtype=int)], "identical")
        for frames in (np.array([[0.5, -0.1]]), np.zeros((2, 2))):
            with pytest.raises(ValueError, match=r"'kl' is .*probabilities"):
                distances_of([frames], "kl")


class TestReading:
    def write(self, folder, text, name="phones.item"):
        (folder / name).write_text(text)
        return folder / name

    @pytest.mark.parametrize("compressed", [False, True])
    def test_reads_what_stands_there(self, tmp_path, compressed):
        text = f"{HEADER}\nb 0.5 0.61 sh h# iy ann\n\na\t0 1e-1  IH  L  NG\t6295\r\n"
        path = tmp_path / "phones.item"
        path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
        assert read_items(path) == read_items(str(path))
        assert read_items(path) == [
            Item("b", 0.5, 0.61, "sh", "h#", "iy", "ann"),
            Item("a", 0.0, 0.1, "IH", "L", "NG", "6295"),
        ]
        assert read_items(path)[0].context == ("h#", "iy")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", r"phones\.item, line 1 is missing, the file is empty, expected the header '#file onset"),
            ("a 0 1 b c d e\n", r"phones\.item, line 1 is 'a 0 1 b c d e', expected the header"),
            (HEADER + "\n \n", r"phones\.item has a header but no item"),
            (HEADER + "\na 0 1 b c d e\na 0 1 b c d\n", r"phones\.item, line 3 has 6 fields, expected 7: #file onset"),
            (HEADER + "\n\na 0 1 b c d e f\n", r"phones\.item, line 3 has 8 fields"),
            (HEADER + "\na 1 1 b c d e\n", r"phones\.item, line 2 ends at 1 s, not after its onset, 1 s"),
            (HEADER + "\na 2 1.5 b c d e\n", r"phones\.item, line 2 ends at 1\.5 s"),
            (HEADER + "\na x 1 b c d e\n", r"phones\.item, line 2 has the onset 'x', expected a number of seconds"),
            (HEADER + "\na 0 nan b c d e\n", r"phones\.item, line 2 has the offset 'nan'"),
            (HEADER + "\na 0 inf b c d e\n", r"phones\.item, line 2 has the offset 'inf'"),
        ],
    )
    def test_malformed(self, tmp_path, text, message):
        with pytest.raises(ValueError, match=message):
            read_items(self.write(tmp_path, text))

    @pytest.mark.parametrize(
        "content",
        [b"\xff\xfe\x00", gzip.compress(HEADER.encode(), mtime=0)[:-9], b"\x1f\x8b rubbish"],
        ids=["other encoding", "cut short", "not gzip"],
    )
    def test_not_text(self, tmp_path, content):
        (tmp_path / "phones.item").write_bytes(content)
        with pytest.raises(ValueError, match=r"phones\.item can't be read as text in UTF-8, plain or gzipped"):
            read_items(tmp_path / "phones.item")

    def test_not_there(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"phones\.item"):
            read_items(tmp_path / "phones.item")


def item(onset, offset, file="file"):
    return Item(file, onset, offset, "a", "b", "c", "d")


class TestCutting:
    """Frame i holds the number i, so that what was cut shows what it is."""

    def cut(self, *items, **settings):
        files = {"file": np.arange(10), "other": np.arange(100, 104)}
        tokens = cut_tokens(items, files, **({"shift": 0.01, "units": True} | settings))
        runs = [tokens.frames[at : at + n].tolist() for at, n in zip(tokens.starts, tokens.lengths, strict=True)]
        return tokens, runs

    @pytest.mark.parametrize(
        ("onset", "offset", "settings", "expected"),
        [
            (0.02, 0.05, {}, [2, 3, 4]),  # centres at 0.025, 0.035, 0.045
            (0.025, 0.045, {}, [2, 3, 4]),
            (0.0251, 0.0449, {}, [3]),
            (0.035, 0.07, {}, [3, 4, 5, 6]),  # 0.005 + 3 * 0.01 is not quite 0.035 in binary
            (0.02, 0.05, {"start": 0.0}, [2, 3, 4, 5]),
            (0.3, 0.6, {"start": 0.0, "shift": 0.1}, [3, 4, 5, 6]),
            (0.05, 0.12, {"start": 0.03}, [2, 3, 4, 5, 6, 7, 8, 9]),
        ],
    )
    def test_frames_whose_centre_lies_within(self, onset, offset, settings, expected):
        tokens, runs = self.cut(item(onset, offset), **settings)
        assert runs == [expected]
        assert (tokens.shortened, tokens.without_frames, tokens.without_features) == (0, 0, 0)

    def test_beyond_the_frames(self):
        tokens, runs = self.cut(item(0.08, 0.13), item(0.2, 0.3), item(0.026, 0.034), item(0.0, 0.02))
        assert runs == [[0, 1], [8, 9]]
        assert (tokens.shortened, tokens.without_frames) == (1, 2)
        tokens, runs = self.cut(item(0.0, 0.05), start=0.03)
        assert (runs, tokens.shortened) == ([[0, 1, 2]], 1)

    def test_of_several_files(self):
        tokens, runs = self.cut(item(0.0, 0.02, "other"), item(0.0, 0.02), item(0.02, 0.04, "other"))
        assert [found.file for found in tokens.items] == ["file", "other", "other"]
        assert runs == [[0, 1], [100, 101], [102, 103]]

    def test_missing_features(self):
        items = [item(0.0, 0.02), item(0.0, 0.02, "gone"), item(0.1, 0.2, "gone"), item(0.1, 0.2, "lost")]
        with pytest.raises(ValueError, match=r"2 of the 3 files of the items have no features: gone, lost\."):
            self.cut(*items)
        tokens, runs = self.cut(*items, allow_missing=True)
        assert (runs, tokens.without_features) == ([[0, 1]], 3)
        with pytest.raises(ValueError, match=r"none of the 3 items has a frame \(0 lie .* 3 have no features"):
            self.cut(*items[1:], allow_missing=True)

    def test_none_has_frames(self):
        with pytest.raises(ValueError, match=r"none of the 1 items has a frame \(1 lie .* are shift = 0\.01 s"):
            self.cut(item(1.0, 2.0))

    @pytest.mark.parametrize("shift", [0, -0.01, math.nan, math.inf])
    def test_no_shift(self, shift):
        with pytest.raises(ValueError, match=r"shift is .* expected the seconds between frames, > 0"):
            self.cut(item(0, 1), shift=shift)

    def test_no_start(self):
        with pytest.raises(ValueError, match=r"start is nan"):
            self.cut(item(0, 1), start=math.nan)

    @pytest.mark.parametrize(
        ("frames", "units", "message"),
        [
            (np.ones(4), True, r"features of file are float64 of shape \(4,\), expected integers of shape \(T,\)"),
            (np.ones((4, 1), dtype=int), True, r"int64 of shape \(4, 1\), expected integers"),
            (np.ones(4), False, r"features of file are float64 of shape \(4,\), expected numbers of shape \(T, d\)"),
            (np.ones((4, 0)), False, r"shape \(4, 0\), expected numbers"),
            (np.array([["a"]]), False, r"of shape \(1, 1\), expected numbers"),
            (np.array([[1.0], [np.nan]]), False, r"features of file .*not finite"),
        ],
    )
    def test_unfit_features(self, frames, units, message):
        with pytest.raises(ValueError, match=message):
            cut_tokens([item(0, 1)], {"file": frames}, shift=1, units=units)

    def test_different_dimensions(self):
        features = {"file": np.ones((4, 2)), "other": np.ones((4, 3))}
        with pytest.raises(ValueError, match=r"frames of other have 3 dimensions, those of file 2"):
            cut_tokens([item(0, 1), item(0, 1, "other")], features, shift=1)


class TestAbx:
    def test_within_by_hand(self):
        labels = [("a", ("k", "t"), "one")] * 2 + [("e", ("k", "t"), "one")]
        units = [np.array([1, 1]), np.array([1, 2]), np.array([1, 1, 1])]
        items, features = speech(units, labels)
        result = abx(items, features, shift=SHIFT, distance="identical")
        # X = the first: B is as it is, A is not. X = the second: A differs in 1 of 2, B in 1 of 3.
        assert result.error == 1.0
        assert result.pairs == {("a", "e"): 1.0}  # of "e" there is one token only
        assert (result.triples, result.cells, result.items) == (2, 1, 3)
        with pytest.raises(FrozenInstanceError):
            result.error = 0.0

    def test_across_by_hand(self):
        labels = [("a", ("k", "t"), "one"), ("e", ("k", "t"), "one"), ("a", ("k", "t"), "two")]
        items, features = speech([np.array([1]), np.array([2]), np.array([2])], labels)
        result = abx(items, features, shift=SHIFT, mode="across", distance="identical")
        assert (result.error, result.triples, result.cells) == (1.0, 1, 1)
        items, features = speech([np.array([1]), np.array([2]), np.array([1])], labels)
        assert abx(items, features, shift=SHIFT, mode="across", distance="identical").error == 0.0

    @pytest.mark.parametrize("distance", FRAME_DISTANCES)
    @pytest.mark.parametrize("mode", ["within", "across"])
    def test_ties_are_half(self, mode, distance):
        labels = [(phone, ("k", "t"), speaker) for phone in "aaee" for speaker in ("one", "two")]
        frames = [np.array([3] * n) if distance == "identical" else np.full((n, 4), 0.3) for n in range(1, 9)]
        items, features = speech(frames, labels)
        result = abx(items, features, shift=SHIFT, mode=mode, distance=distance)
        assert set(result.pairs.values()) == {result.error} == {0.5}

    @pytest.mark.parametrize("average", ["zerospeech2019", "zerospeech2021"])
    @pytest.mark.parametrize("distance", FRAME_DISTANCES)
    @pytest.mark.parametrize("mode", ["within", "across"])
    @pytest.mark.parametrize("seed", range(3))
    def test_every_triple_by_brute_force(self, mode, distance, average, seed):
        sequences, labels = made_up(np.random.default_rng(seed), 24, distance, longest=3)
        items, features = speech(sequences, labels)
        error, pairs, triples, cells = plain_abx(items, sequences, mode, distance, average)
        result = abx(items, features, shift=SHIFT, mode=mode, distance=distance, average=average)
        assert result.error == pytest.approx(error, abs=1e-12)
        assert result.pairs == pytest.approx(pairs, abs=1e-12)
        assert (result.triples, result.cells) == (triples, cells)

    def test_the_orders_of_means_differ_across_speakers(self):
        sequences, labels = made_up(np.random.default_rng(7), 60)
        items, features = speech(sequences, labels)
        found = {
            mode: [
                abx(items, features, shift=SHIFT, mode=mode, average=average).error
                for average in ("zerospeech2019", "zerospeech2021")
            ]
            for mode in ("within", "across")
        }
        assert found["within"][0] == found["within"][1]
        assert found["across"][0] != found["across"][1]

    @pytest.mark.parametrize("mode", ["within", "across"])
    def test_the_order_of_items_does_not_matter(self, mode):
        sequences, labels = made_up(np.random.default_rng(8), 40)
        items, features = speech(sequences, labels)
        first = abx(items, features, shift=SHIFT, mode=mode, most_tokens=2)
        assert abx(reversed(items), features, shift=SHIFT, mode=mode, most_tokens=2) == first

    @pytest.mark.parametrize("mode", ["within", "across"])
    def test_perfect_features(self, mode):
        random = np.random.default_rng(9)
        sequences, labels = made_up(random, 40)
        corners = {"a": [1, 0, 0, 0], "e": [0, 1, 0, 0], "i": [0, 0, 1, 0]}
        sequences = [corners[label[0]] + 0.1 * x for x, label in zip(sequences, labels, strict=True)]
        result = abx(*speech(sequences, labels), shift=SHIFT, mode=mode)
        assert result.error == 0
        assert len(result.pairs) == 6

    @pytest.mark.parametrize("distance", FRAME_DISTANCES)
    @pytest.mark.parametrize("mode", ["within", "across"])
    def test_random_features(self, mode, distance):
        random = np.random.default_rng(10)
        _, labels = made_up(random, 300)
        # Of one length: tokens of one phone often have nearly one, which alone tells something.
        shape = (300, 4)
        values = random.integers(0, 9, shape) if distance == "identical" else random.random((*shape, 6))
        result = abx(*speech(list(values), labels), shift=SHIFT, mode=mode, distance=distance)
        assert result.error == pytest.approx(0.5, abs=0.05)
        assert result.triples > 5_000

    @pytest.mark.parametrize("mode", ["within", "across"])
    def test_one_hot_is_identical(self, mode):
        sequences, labels = made_up(np.random.default_rng(11), 60, "identical")
        items, features = speech(sequences, labels)
        units = abx(items, features, shift=SHIFT, mode=mode, distance="identical")
        for distance in VECTORS:
            assert abx(items, {"file": np.eye(3)[features["file"]]}, shift=SHIFT, mode=mode, distance=distance) == units

    @pytest.mark.parametrize("mode", ["within", "across"])
    def test_cosine_sees_no_lengths(self, mode):
        random = np.random.default_rng(12)
        sequences, labels = made_up(random, 40)
        items, features = speech(sequences, labels)
        scaled = {"file": features["file"] * random.uniform(0.01, 100, (len(features["file"]), 1))}
        first = abx(items, features, shift=SHIFT, mode=mode)
        assert abx(items, scaled, shift=SHIFT, mode=mode) == first
        assert 0 < first.error < 1

    def test_tensors_and_single_precision(self):
        sequences, labels = made_up(np.random.default_rng(13), 40)
        items, features = speech(sequences, labels)
        single = torch.from_numpy(features["file"]).float()
        assert abx(items, {"file": single}, shift=SHIFT) == abx(items, {"file": single.numpy()}, shift=SHIFT)
        assert abx(items, {"file": single}, shift=SHIFT).error == abx(items, features, shift=SHIFT).error

    @pytest.mark.parametrize("mode", ["within", "across"])
    def test_few_pairs_at_a_time(self, mode, monkeypatch):
        sequences, labels = made_up(np.random.default_rng(14), 40)
        items, features = speech(sequences, labels)
        together = abx(items, features, shift=SHIFT, mode=mode)
        monkeypatch.setattr(sys.modules[abx.__module__], "_PAIRS_AT_ONCE", 1)
        assert abx(items, features, shift=SHIFT, mode=mode) == together

    def test_most_tokens(self):
        sequences, labels = made_up(np.random.default_rng(15), 200)
        items, features = speech(sequences, labels)
        every = abx(items, features, shift=SHIFT)
        drawn = [abx(items, features, shift=SHIFT, most_tokens=3, seed=seed) for seed in (0, 0, 1)]
        assert drawn[0] == drawn[1] != drawn[2]
        assert drawn[0].pairs.keys() == every.pairs.keys()
        assert drawn[0].cells == every.cells
        assert drawn[0].triples <= every.cells * 3 * 2 * 3 < every.triples
        assert abx(items, features, shift=SHIFT, most_tokens=200) == every

    def test_left_out_items_are_counted(self):
        labels = [("a", ("k", "t"), "one")] * 2 + [("e", ("k", "t"), "one")]
        items, features = speech([np.ones((2, 2)), np.ones((2, 2)), -np.ones((2, 2))], labels)
        others = [Item("gone", 0, 1, *items[0][3:]), items[0]._replace(onset=5, offset=6)]
        others += [items[0]._replace(onset=0.02, offset=0.5)]
        result = abx(items + others, features, shift=SHIFT, allow_missing=True)
        assert (result.items, result.items_shortened) == (4, 1)
        assert (result.items_without_frames, result.items_without_features) == (1, 1)
        with pytest.raises(ValueError, match=r"1 of the 2 files of the items have no features: gone\."):
            abx(items + others, features, shift=SHIFT)

    def test_no_triple(self):
        labels = [
            ("a", ("k", "t"), "one"),
            ("e", ("k", "t"), "one"),
            ("a", ("k", "k"), "one"),
            ("a", ("k", "t"), "two"),
        ]
        items, features = speech([np.ones((2, 2))] * 4, labels)
        with pytest.raises(
            ValueError, match=r"no triple can be made of the 4 items .* mode 'within' .* by that speaker"
        ):
            abx(items, features, shift=SHIFT)
        with pytest.raises(ValueError, match=r"no triple can be made of the 3 items .* 'across' .* by another speaker"):
            abx(items[:3], features, shift=SHIFT, mode="across")

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"mode": "any"}, r"the mode 'any' is not known, expected one of within, across"),
            ({"distance": "l1"}, r"the distance 'l1' is not known, expected one of cosine, euclidean, kl, identical"),
            ({"average": "mean"}, r"the average 'mean' is not known, expected one of zerospeech2019, zerospeech2021"),
            ({"most_tokens": 0}, r"most_tokens is 0, expected at least 1"),
        ],
    )
    def test_unknown_settings(self, settings, message):
        with pytest.raises(ValueError, match=message):
            abx([item(0, 1)], {"file": np.ones((2, 2))}, shift=1, **settings)


def phone_vectors(items, shift, spread, seed=0):
    """Made-up features: every frame is near its phone's own point."""
    random = np.random.default_rng(seed)
    points = {phone: random.normal(size=80) for phone in sorted({found.phone for found in items})}
    ends = {found.file: 0.0 for found in items}
    for found in items:
        ends[found.file] = max(ends[found.file], found.offset)
    features = {file: random.normal(0, spread, (int(end / shift) + 1, 80)) for file, end in ends.items()}
    for found in items:
        features[found.file][round(found.onset / shift) : round(found.offset / shift)] += points[found.phone]
    return features


@pytest.mark.parametrize("name", ["timit_nltk_sample", "librispeech_dev_clean_subset"])
def test_real_items(name):
    paths = [path for path in folder_of(name).iterdir() if path.name.endswith((".item", ".item.gz"))]
    assert paths
    for path in paths:
        items = read_items(path)
        assert len(items) > 5_000
        assert all(0 <= found.onset < found.offset for found in items)


def timit_items():
    """Of phones, and of the same with their neighbours."""
    return [read_items(folder_of("timit_nltk_sample") / f"timit_{kind}.item") for kind in ("phone", "triphone")]


def test_timit_items():
    phones, triphones = timit_items()
    assert phones[0] == Item("dr1-fvmh0_sa1", 0.4883, 0.5942, "sh", "h#", "iy", "dr1-fvmh0")
    assert len(phones) == len(triphones) == 5865
    assert (len({found.file for found in phones}), len({found.speaker for found in phones})) == (160, 16)
    for inner, outer in zip(phones, triphones, strict=True):
        assert outer.onset < inner.onset < inner.offset < outer.offset
        assert inner[3:] == outer[3:]


@pytest.mark.parametrize(("mode", "triples", "cells"), [("within", 146, 52), ("across", 4438, 3344)])
def test_timit_triphones(mode, triples, cells):
    phones, triphones = timit_items()
    features = phone_vectors(phones, 0.01, spread=0.5)
    result = abx(triphones, features, shift=0.01, mode=mode)
    assert (result.triples, result.cells, result.items) == (triples, cells, 5865)
    assert result.error < 0.05
    assert abx(triphones, phone_vectors(phones, 0.01, spread=8), shift=0.01, mode=mode).error > 0.2


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
@pytest.mark.parametrize("mode", ["within", "across"])
def test_as_fastabx(tmp_path, mode, distance):
    """Against the package of the challenge's authors, on vectors: of units, it may take a longer one of equal paths."""
    fastabx = pytest.importorskip("fastabx")
    sequences, labels = made_up(np.random.default_rng(16), 80, longest=8)
    items, features = speech(sequences, labels)
    lines = [HEADER, *(" ".join((i.file, f"{i.onset:.2f}", f"{i.offset:.2f}", *i[3:])) for i in items)]
    (tmp_path / "phones.item").write_text("\n".join(lines) + "\n")
    torch.save(torch.from_numpy(features["file"]).float(), tmp_path / "file.pt")
    expected = fastabx.zerospeech_abx(
        tmp_path / "phones.item",
        tmp_path,
        max_size_group=None,
        max_x_across=None,
        speaker=mode,
        context="within",
        distance=distance,
        frequency=100,
    )
    items = read_items(tmp_path / "phones.item")
    result = abx(items, features, shift=SHIFT, mode=mode, distance=distance, average="zerospeech2021")
    assert result.error == pytest.approx(expected, abs=1e-5)

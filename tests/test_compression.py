"""Compressed codes: exact on every machine, close to what their chances allow, and safe to read."""

import math
import random
import tracemalloc
import zlib
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sqvae.codec import (
    Adaptive,
    AdaptiveCost,
    CodeFileError,
    CompressedFile,
    CompressedWriter,
    Histogram,
    Learned,
    frames,
)
from sqvae.codec.frames import Body, Cursor, Header, varint
from sqvae.codec.frequencies import DEEPEST, MARGIN, SCALE, STEPS, TOTAL, WEIGHTS, counted, edges, edges_of, rounded
from sqvae.codec.range_coding import RangeSource, range_encode
from sqvae.codec.writing import DamageError

MODEL = "0123456789abcdef"
DAMAGES = 10_000


class Markov(nn.Module):
    """Each code depends on the one before it, in raster order, and numbers tremble as on another machine.

    Arguments:
        tremor: how far the numbers of logits, and those of drafts, are from what they should be.
    """

    def __init__(self, codebook_size, sharpness=3.0, seed=0, tremor=1e-12):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.codebook_size = codebook_size
        self.tremor = tremor
        # One row for each code before, and one for the first position.
        self.table = nn.Parameter(sharpness * torch.randn(codebook_size + 1, codebook_size, generator=generator))

    def trembling(self, logits):
        return logits + self.tremor * (2 * torch.rand_like(logits) - 1)

    def logits(self, codes, condition=None):
        before = torch.cat([torch.full_like(codes.flatten(1)[:, :1], self.codebook_size), codes.flatten(1)[:, :-1]], 1)
        return self.trembling(self.table[before]).reshape(*codes.shape, self.codebook_size)

    def start(self, batch, shape, condition=None):
        return MarkovDraft(self, torch.full((batch,), self.codebook_size))

    def sample(self, count, shape, seed=1):
        generator = torch.Generator().manual_seed(seed)
        chances, codes = self.table.detach().softmax(-1), []
        before = torch.full((count,), self.codebook_size)
        for _ in range(math.prod(shape)):
            before = torch.multinomial(chances[before], 1, generator=generator).flatten()
            codes.append(before)
        return torch.stack(codes, 1).reshape(count, *shape)


class MarkovDraft:
    def __init__(self, prior, before):
        self.prior, self.before = prior, before

    def next_logits(self):
        return self.prior.trembling(self.prior.table[self.before])

    def put(self, codes):
        assert codes.shape == self.before.shape
        self.before = codes


class Dense(nn.Module):
    """Two layers that see all codes before: its sums run in another order at once than step by step."""

    codebook_size = 12

    def __init__(self, positions, width=96):
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.positions = positions
        size = self.codebook_size
        self.inner = nn.Parameter(torch.randn(positions * size, width, generator=generator))
        self.outer = nn.Parameter(torch.randn(width, size, generator=generator))

    def logits(self, codes, condition=None):
        ones = nn.functional.one_hot(codes.flatten(1), self.codebook_size).to(self.inner.dtype).flatten(1)
        earlier = torch.ones(self.positions, self.positions).tril(-1).repeat_interleave(self.codebook_size, 1)
        hidden = (ones[:, None] * earlier.to(ones)) @ self.inner
        return (hidden.tanh() @ self.outer).reshape(*codes.shape, self.codebook_size)

    def start(self, batch, shape, condition=None):
        return DenseDraft(self, batch)


class DenseDraft:
    def __init__(self, prior, batch):
        self.prior = prior
        self.hidden = torch.zeros(batch, prior.inner.shape[1], dtype=torch.float64)
        self.position = 0

    def next_logits(self):
        return self.hidden.tanh() @ self.prior.outer

    def put(self, codes):
        self.hidden = self.hidden + self.prior.inner[self.position * self.prior.codebook_size + codes]
        self.position += 1


class Fixed(nn.Module):
    """The same logits everywhere, moved by a little when they are asked for step by step."""

    def __init__(self, row, moved=0.0):
        super().__init__()
        self.codebook_size = len(row)
        self.moved = moved
        self.row = nn.Parameter(torch.tensor(row, dtype=torch.float64))

    def logits(self, codes, condition=None):
        return self.row.expand(*codes.shape, -1)

    def start(self, batch, shape, condition=None):
        prior = self

        class FixedDraft:
            def next_logits(self):
                return (prior.row + prior.moved).expand(batch, -1)

            def put(self, codes):
                pass

        return FixedDraft()


def compress(path, expectation, codes, *, names=None, **options):
    with CompressedWriter(path, expectation, fingerprint=MODEL, names=names is not None, **options) as writer:
        for own in [codes] if torch.is_tensor(codes) else codes:
            writer.write(names or [""] * len(own), own)
    assert writer.size.total == path.stat().st_size
    return writer.size


def read(path, expectation, **options):
    return list(CompressedFile.open(path, expectation, fingerprint=MODEL, **options).batches())


def replace_file(path, content):
    path.unlink()  # disks take their time to shorten a file that was just written
    path.write_bytes(content)


def decompress(path, expectation):
    return torch.cat([codes for _, codes in read(path, expectation)])


class TestFrequencies:
    def test_weights_are_no_matter_of_luck(self):
        """No weight is so close to a half that another exponential might round it otherwise."""
        with mpmath.workprec(200):
            exact = [mpmath.exp(mpmath.mpf(-n) / STEPS) * SCALE for n in range(DEEPEST)]
            assert WEIGHTS.tolist() == [int(mpmath.nint(value)) for value in exact] + [0]
            assert min(abs(value - mpmath.floor(value) - 0.5) for value in exact) > 1e-4
        assert WEIGHTS[0] == SCALE
        assert WEIGHTS[DEEPEST - 1] > 0

    def test_steps_are_of_a_sixteenth_nat(self):
        logits = torch.tensor([[0.0, -1.0, -2 - 0.9 / 32, -1e6, -math.inf]], dtype=torch.float64) + 7
        steps, close = rounded(logits)
        assert steps.tolist() == [[0, 16, 32, 255, 255]]
        assert close.tolist() == [False]

    @pytest.mark.parametrize(("offset", "close"), [(0.0, True), (0.9, True), (-0.9, True), (1.1, False), (-1.1, False)])
    def test_what_is_close_to_a_boundary_is_seen(self, offset, close):
        logits = torch.tensor([0.0, -1 / 32 + offset * MARGIN, -5.0], dtype=torch.float64)
        assert bool(rounded(logits)[1]) is close

    def test_nothing_is_close_beyond_the_deepest_step(self):
        logits = torch.tensor([0.0, -(DEEPEST + 0.5) / STEPS, -(DEEPEST + 7.5) / STEPS], dtype=torch.float64)
        assert not bool(rounded(logits)[1])
        assert bool(rounded(torch.tensor([0.0, -(DEEPEST - 0.5) / STEPS], dtype=torch.float64))[1])

    def test_what_is_no_number_is_refused(self):
        for value in (math.nan, math.inf):
            with pytest.raises(ValueError, match="NaN or infinity"):
                rounded(torch.tensor([0.0, value], dtype=torch.float64))
        with pytest.raises(TypeError, match=r"must be float64, got torch.float32"):
            rounded(torch.zeros(3))

    @given(st.lists(st.integers(0, SCALE), min_size=1, max_size=40).filter(any))
    def test_shares_are_whole_and_complete(self, weights):
        table = edges(np.array(weights))
        assert table[0] == 1
        assert table[-1] == TOTAL - 1
        assert (np.diff(table) >= 1).all()
        spread, total = TOTAL - 2 - len(weights), sum(weights)
        assert table.tolist() == [1 + k + sum(weights[:k]) * spread // total for k in range(len(weights) + 1)]
        rows = np.tile(np.array(weights), (len(weights), 1))
        left, right = edges_of(np.arange(len(weights)), rows)
        assert left.tolist() == table[:-1].tolist()
        assert right.tolist() == table[1:].tolist()

    def test_the_heaviest_fit(self):
        for weights in (np.full(1 << 16, SCALE), counted(np.full(1 << 16, 1 << 45)), counted(np.array([1 << 61, 3]))):
            table = edges(weights.astype(np.int64))
            assert (np.diff(table) >= 1).all()
            assert table[-1] == TOTAL - 1


def decoded_by_hand(payload, tables):
    """Range decoding as the books have it, with whole numbers of any size."""
    point, lower, width, words = int.from_bytes(payload, "big"), 0, (1 << 64) - 1, 2
    length = len(payload)

    def first(count):
        bits = 8 * (length - 4 * count)
        return (point >> bits if bits >= 0 else point << -bits) % (1 << 64)

    codes = []
    for table in tables:
        scale = width >> 24
        share = ((first(words) - lower) % (1 << 64)) // scale
        code = int(np.searchsorted(table, share, side="right")) - 1
        lower = (lower + scale * int(table[code])) % (1 << 64)
        width = scale * int(table[code + 1] - table[code])
        if width < 1 << 32:
            lower, width, words = (lower << 32) % (1 << 64), width << 32, words + 1
        codes.append(code)
    return codes


class TestRangeCoding:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(1, 300), st.integers(1, 60), st.integers(0, 2**32), st.floats(0, 30))
    def test_coding_is_that_of_whole_numbers(self, count, size, seed, sharpness):
        """Shares are used as they were asked for: a decoder without any float reads the same."""
        source = np.random.default_rng(seed)
        weights = (np.exp(-sharpness * source.random((count, size))) * SCALE).astype(np.int64) + 1
        codes = np.array([source.choice(size, p=row / row.sum()) for row in weights])
        payload = range_encode(*edges_of(codes, weights))
        tables = edges(weights)
        assert RangeSource(payload).take(tables).tolist() == codes.tolist()
        assert decoded_by_hand(payload, tables) == codes.tolist()

    def test_no_byte_is_spent_in_vain(self):
        """The end is as short as can be: one byte less, and no bytes decode to these codes."""
        source = np.random.default_rng(3)
        for count in range(1, 9):
            weights = source.integers(1, 1000, (count, 20))
            codes = source.integers(0, 20, count)
            left, right = edges_of(codes, weights)
            payload = range_encode(left, right)
            assert len(payload) <= -np.log2((right - left) / TOTAL).sum() / 8 + 1 + 1e-6
            if len(payload) <= 2:
                shorter = (bytes(end) for end in np.ndindex(*[256] * (len(payload) - 1)))
                assert all(decoded_by_hand(other, edges(weights)) != codes.tolist() for other in shorter)

    def test_a_carry_is_taken_back(self):
        """Intervals that lie across a boundary of words, where the coder holds words back."""
        middle = TOTAL // 2
        tables = np.array([[1, middle - 1, middle + 1, TOTAL - 1]] * 40)
        for count in range(1, 40):
            codes = np.ones(count, dtype=np.int64)
            payload = range_encode(tables[:count, 1], tables[:count, 2])
            assert RangeSource(payload).take(tables[:count]).tolist() == codes.tolist()
            assert decoded_by_hand(payload, tables[:count]) == codes.tolist()

    def test_alike_is_the_same_as_one_by_one(self):
        weights = np.array([5, 0, 100, 7])
        codes = np.array([0, 2, 2, 1, 3, 2] * 20)
        payload = range_encode(*edges_of(codes, np.tile(weights, (len(codes), 1))))
        assert RangeSource(payload).take_alike(edges(weights), len(codes)).tolist() == codes.tolist()

    def test_bytes_that_no_encoder_writes(self):
        table = edges(np.ones(4, dtype=np.int64))
        with pytest.raises(DamageError, match="codes"):
            RangeSource(b"\xff" * 16).take_alike(table, 9)
        with pytest.raises(DamageError, match="codes that don't exist"):
            RangeSource(b"").take_alike(table, 1)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    prior = Markov(32)
    codes = prior.sample(1000, (4, 5))
    path = tmp_path_factory.mktemp("exact") / "codes.sqz"
    size = compress(path, Learned(prior), codes)
    return prior, codes, path, size


class TestExactness:
    @pytest.mark.parametrize("batch", [1, 7, 64])
    def test_a_thousand_pictures(self, thousand, batch):
        prior, codes, path, size = thousand
        assert decompress(path, Learned(prior, batch_size=batch)).equal(codes)
        assert (size.pictures, size.codes) == (1000, 20_000)

    def test_close_to_the_ideal(self, thousand):
        prior, codes, _, size = thousand
        chances = prior.table.detach().double().log_softmax(-1)
        before = torch.cat([torch.full((1000, 1), 32), codes.flatten(1)[:, :-1]], 1)
        assert size.ideal_bits == pytest.approx(-float(chances[before, codes.flatten(1)].sum()) / math.log(2))
        assert 0 < size.overhead < 0.002
        assert size.header == 59  # of four frames

    @pytest.mark.parametrize("encoded", [1, 7, 64])
    def test_the_encoder_s_batches_make_no_difference(self, thousand, encoded, tmp_path):
        prior, codes, path, _ = thousand
        compress(tmp_path / "other.sqz", Learned(prior, batch_size=encoded), codes)
        assert (tmp_path / "other.sqz").read_bytes() == path.read_bytes()

    def test_threads_and_batches_make_no_difference(self, tmp_path):
        prior = Dense(20)
        codes = torch.randint(12, (24, 4, 5), generator=torch.Generator().manual_seed(2))
        threads = torch.get_num_threads()
        try:
            written = set()
            for count, batch in ((1, 64), (2, 7), (3, 1)):
                torch.set_num_threads(count)
                compress(tmp_path / "codes.sqz", Learned(prior, batch_size=batch), codes)
                written.add((tmp_path / "codes.sqz").read_bytes())
            for count, batch in ((1, 1), (2, 64), (3, 7)):
                torch.set_num_threads(count)
                assert decompress(tmp_path / "codes.sqz", Learned(prior, batch_size=batch)).equal(codes)
        finally:
            torch.set_num_threads(threads)
        assert len(written) == 1

    def test_the_margin_is_far_above_what_float64_loses(self):
        """The same network at once and step by step: a hundred times the difference is still within the margin."""
        prior = Dense(30).double()
        codes = torch.randint(12, (50, 5, 6), generator=torch.Generator().manual_seed(3))
        with torch.inference_mode():
            whole, draft = prior.logits(codes).flatten(1, -2), prior.start(50, (5, 6))
            found = 0.0
            for position in range(30):
                found = max(found, float((draft.next_logits() - whole[:, position]).abs().max()))
                draft.put(codes.flatten(1)[:, position])
        assert 100 * found < MARGIN

    def test_the_prior_itself_stays_as_it_is(self, tmp_path):
        prior = Markov(4).train()
        compress(tmp_path / "codes.sqz", Learned(prior), prior.sample(3, (2, 2)))
        assert prior.training
        assert prior.table.dtype == torch.float32

    def test_uncertain_positions_are_listed_and_coded_otherwise(self, tmp_path):
        """Numbers on a boundary, which fall to the other side in the decoder: only the list saves them."""
        row, moved = [0.0, -1 / 32, -2.0, -3 / 32 + 1e-9], [0.0, 1e-9, 0.0, -1e-9]
        encoder = Fixed(row)
        decoder = Fixed(row, moved=torch.tensor(moved, dtype=torch.float64))
        sides = [rounded(torch.tensor(r, dtype=torch.float64))[0].tolist() for r in (row, np.add(row, moved).tolist())]
        assert sides[0] != sides[1]
        codes = torch.randint(4, (20, 3, 3), generator=torch.Generator().manual_seed(0))
        size = compress(tmp_path / "codes.sqz", Learned(encoder), codes)
        assert size.uncertain == size.codes == 180
        assert size.payload == pytest.approx(180 * 2 / 8, abs=1)  # four codes, equally likely
        assert decompress(tmp_path / "codes.sqz", Learned(decoder)).equal(codes)
        histogram = Histogram(torch.tensor([1000, 1, 1, 1]))
        zeros = torch.zeros_like(codes)
        assert compress(tmp_path / "codes.sqz", Learned(encoder, histogram), zeros).payload == 1
        assert decompress(tmp_path / "codes.sqz", Learned(decoder, histogram)).equal(zeros)

    def test_some_positions_are_uncertain_and_others_are_not(self, tmp_path):
        prior = Markov(8, tremor=1e-10)
        with torch.no_grad():
            prior.table.copy_((prior.table * 64).round() / 64)  # float32 holds it, and boundaries are met
        codes = prior.sample(300, (4, 5))
        size = compress(tmp_path / "codes.sqz", Learned(prior), codes)
        assert 0 < size.uncertain < size.codes
        for batch in (1, 64):
            assert decompress(tmp_path / "codes.sqz", Learned(prior, batch_size=batch)).equal(codes)

    def test_numbers_beyond_the_margin_are_found_out(self, tmp_path):
        prior = Markov(32)
        compress(tmp_path / "codes.sqz", Learned(prior), prior.sample(50, (5, 5)))
        prior.tremor = 0.05
        with pytest.raises(CodeFileError, match=r"does not decode to the codes that were compressed|is damaged"):
            decompress(tmp_path / "codes.sqz", Learned(prior))


class TestRoundTrips:
    @settings(max_examples=60, deadline=None)
    @given(data=st.data())
    def test_whatever_the_codes(self, data, tmp_path_factory):
        size = data.draw(st.sampled_from([1, 2, 3, 17, 128]))
        shapes = data.draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), max_size=3))
        seed = data.draw(st.integers(0, 99))
        source = torch.Generator().manual_seed(seed)
        batches = [
            torch.randint(size, (data.draw(st.integers(0, 6)), *shape), generator=source).pow(2) // size
            for shape in shapes
        ]
        counts = torch.randint(50, (size,), generator=source)
        prior = Markov(size, seed=seed)
        expectation = data.draw(
            st.sampled_from([Adaptive(size), Histogram(counts), Learned(prior), Learned(prior, Histogram(counts))])
        )
        names = data.draw(st.lists(st.text(max_size=5), min_size=18, max_size=18))
        path = tmp_path_factory.mktemp("any") / "codes.sqz"
        together = data.draw(st.integers(1, 5))
        with CompressedWriter(path, expectation, fingerprint=MODEL, together=together) as writer:
            for number, codes in enumerate(batches):
                writer.write(names[6 * number : 6 * number + len(codes)], codes)
        file = CompressedFile.open(path, expectation, fingerprint=MODEL)
        found = [pair for own, codes in file.batches() for pair in zip(own, codes, strict=True)]
        expected = [
            (names[6 * number + index], own) for number, codes in enumerate(batches) for index, own in enumerate(codes)
        ]
        assert len(file) == len(found) == len(expected)
        for (name, own), (other_name, other) in zip(found, expected, strict=True):
            assert name == other_name
            assert own.equal(other)

    @pytest.mark.parametrize("size", [1, 2, 65536])
    @pytest.mark.parametrize("shape", [(1, 1), (1, 6), (3, 2)])
    def test_small_and_large_codebooks(self, size, shape, tmp_path):
        generator = torch.Generator().manual_seed(1)
        codes = torch.randint(size, (5, *shape), generator=generator)
        row = torch.randn(size, generator=generator).tolist()
        for expectation in (Adaptive(size), Histogram(torch.arange(size)), Learned(Fixed(row))):
            compress(tmp_path / "codes.sqz", expectation, codes)
            assert decompress(tmp_path / "codes.sqz", expectation).equal(codes)

    @pytest.mark.parametrize("named", [True, False])
    def test_no_pictures_at_all(self, named, tmp_path):
        for expectation in (Adaptive(5), Learned(Markov(5))):
            with CompressedWriter(tmp_path / "codes.sqz", expectation, fingerprint=MODEL, names=named) as writer:
                writer.write([], torch.zeros(0, 3, 3, dtype=torch.int64))
            assert read(tmp_path / "codes.sqz", expectation) == []
            assert writer.size.total == (tmp_path / "codes.sqz").stat().st_size == 14

    def test_what_it_would_take_without_a_prior_is_known_beforehand(self, tmp_path):
        codes = (16 * torch.rand(40, 3, 5, generator=torch.Generator().manual_seed(2)) ** 3).long()
        cost = AdaptiveCost(16)
        for some in codes.split(7):
            cost.add(some)
        assert cost.bits == pytest.approx(8 * compress(tmp_path / "codes.sqz", Adaptive(16), codes).payload, rel=0.02)

    def test_one_code(self, tmp_path):
        size = compress(tmp_path / "codes.sqz", Adaptive(128), torch.tensor([[[77]]]))
        assert size.payload == 1
        assert decompress(tmp_path / "codes.sqz", Adaptive(128)).tolist() == [[[77]]]

    def test_shapes_may_differ(self, tmp_path):
        prior = Markov(6)
        batches = [prior.sample(3, shape) for shape in ((2, 3), (3, 2), (3, 2), (1, 1))]
        compress(tmp_path / "codes.sqz", Learned(prior), batches)
        found = [codes for _, codes in read(tmp_path / "codes.sqz", Learned(prior))]
        assert [tuple(codes.shape) for codes in found] == [(3, 2, 3), (6, 3, 2), (3, 1, 1)]
        with pytest.raises(CodeFileError, match=r"3 x 2 codes.*2 x 3"):
            read(tmp_path / "codes.sqz", Learned(prior), shapes=[(2, 3)])

    def test_names_are_kept_or_left_out(self, tmp_path):
        names = ["a/b.png", "", "ö\0\n", "\udcff.png", "x" * 5000]
        codes = torch.arange(5).reshape(5, 1, 1)
        size = compress(tmp_path / "codes.sqz", Adaptive(5), codes, names=names)
        assert size.names < 100
        assert read(tmp_path / "codes.sqz", Adaptive(5))[0][0] == names
        assert compress(tmp_path / "codes.sqz", Adaptive(5), codes, together=2).names == 0
        assert [name for own, _ in read(tmp_path / "codes.sqz", Adaptive(5)) for name in own] == list("01234")

    def test_large_maps_are_coded_one_by_one(self, tmp_path):
        codes = torch.zeros(3, 256, 200, dtype=torch.int64)
        codes[1, 5, 7] = 3
        compress(tmp_path / "codes.sqz", Adaptive(4), codes)
        found = read(tmp_path / "codes.sqz", Adaptive(4))
        assert [len(own) for own, _ in found] == [1, 1, 1]
        assert torch.cat([own for _, own in found]).equal(codes)


class TestSizes:
    def test_a_digit_is_smaller_than_its_plain_codes(self, tmp_path):
        """49 codes of 128 in seven bits each take 43 bytes; compressed, the whole file is smaller."""
        prior = Markov(128, sharpness=2.6)
        sizes = []
        for number in range(20):
            codes = prior.sample(1, (7, 7), seed=number)
            sizes.append(compress(tmp_path / "digit.sqz", Learned(prior), codes))
            assert sizes[-1].header == 17
            assert sizes[-1].payload < sizes[-1].ideal_bits / 8 + 1.01
            assert decompress(tmp_path / "digit.sqz", Learned(prior)).equal(codes)
        assert 20 < sum(size.ideal_bits / 8 for size in sizes) / 20 < 25
        assert sum(size.total for size in sizes) / 20 < 40
        assert all(size.total < 43 for size in sizes if size.ideal_bits < 8 * 24.9)

    def test_a_histogram_pays(self, tmp_path):
        generator = torch.Generator().manual_seed(0)
        chances = torch.rand(64, generator=generator).pow(6)
        codes = torch.multinomial(chances, 50_000, replacement=True, generator=generator).reshape(-1, 5, 10)
        known = Histogram(torch.bincount(codes.flatten(), minlength=64))
        share = known.edges[1:] - known.edges[:-1]
        bits = -float(np.log2(share / share.sum())[codes.flatten().numpy()].sum())
        static = compress(tmp_path / "known.sqz", known, codes)
        assert static.ideal_bits == pytest.approx(bits, rel=1e-5)
        assert static.overhead < 0.001
        # What it takes to learn 64 chances: half of log2 of the number of codes each.
        adaptive = compress(tmp_path / "adaptive.sqz", Adaptive(64), codes)
        assert 8 * adaptive.payload < bits + 1.2 * 64 / 2 * math.log2(50_000)
        assert adaptive.overhead < 0.001
        assert decompress(tmp_path / "known.sqz", known).equal(codes)
        assert decompress(tmp_path / "adaptive.sqz", Adaptive(64)).equal(codes)

    def test_likely_codes_cost_next_to_nothing(self, tmp_path):
        size = compress(
            tmp_path / "codes.sqz", Learned(Fixed([0.0, -40.0])), torch.zeros(256, 8, 16, dtype=torch.int64)
        )
        assert size.payload == 32  # a byte every 1024 codes is the least that a file may have

    @pytest.mark.parametrize("sharpness", [0.0, 1.0, 8.0, 30.0])
    def test_overhead_is_small_whatever_the_prior(self, sharpness, tmp_path):
        prior = Markov(512, sharpness)
        size = compress(tmp_path / "codes.sqz", Learned(prior), prior.sample(256, (8, 8)))
        # In bits a code, as a sharp prior's ideal is nearly nothing.
        assert 8 * size.payload - size.ideal_bits < 0.001 * size.ideal_bits + 0.003 * size.codes + 8

    @pytest.mark.parametrize("kind", ["histogram", "adaptive", "learned", "uncertain"])
    def test_the_format_stays(self, kind, tmp_path):
        """Bytes of the first version: files that were written then can be read for ever."""
        codes = torch.tensor([[[0, 1, 2], [3, 2, 1]], [[2, 2, 2], [0, 3, 3]]])
        histogram = Histogram(torch.tensor([5, 0, 9, 2]))
        expectation = {
            "histogram": histogram,
            "adaptive": Adaptive(4),
            "learned": Learned(Fixed([0.0, -0.5, -1.0, -2.0])),
            "uncertain": Learned(Fixed([0.0, -1 / 32, -1.0, -2.0]), histogram),
        }[kind]
        path = tmp_path / "codes.sqz"
        path.write_bytes(bytes.fromhex(GOLDEN[kind]))
        assert decompress(path, expectation).equal(codes)
        compress(path, expectation, codes, together=1 if kind == "adaptive" else 256)
        assert path.read_bytes().hex() == GOLDEN[kind]

    def test_the_format_of_names_stays(self, tmp_path):
        # Read only: not every library deflates to the same bytes.
        (tmp_path / "codes.sqz").write_bytes(bytes.fromhex(GOLDEN["named"]))
        assert read(tmp_path / "codes.sqz", Adaptive(4))[0][0] == ["one", "zwölf"]

    def test_memory_stays_flat(self, tmp_path):
        """Ten times the pictures, no more memory."""
        peaks = []
        for count in (1_000, 10_000):
            tracemalloc.start()
            with CompressedWriter(tmp_path / "codes.sqz", Adaptive(16), fingerprint=MODEL) as writer:
                for start in range(0, count, 50):
                    names = [f"a/rather/long/name/of/picture/{number}.png" for number in range(start, start + 50)]
                    writer.write(names, torch.full((50, 4, 4), start // 50 % 16))
            for _ in CompressedFile.open(tmp_path / "codes.sqz", Adaptive(16), fingerprint=MODEL).batches():
                pass
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert peaks[1] < peaks[0] + 200_000


GOLDEN = {
    "histogram": "73717a19a93fa6d5207c394bc4c20402032787b3b6",
    "adaptive": "73717a10d6f81c49059d92fe8278bb0202032947057f6d25c735ac020203b1dd004d49",
    "learned": "73717a1ac3361eaef9a645832b180402036c0a353c",
    "uncertain": "73717a1aa0291a26b726b64594830502030c0101010101010101010101012787b3b6",
    "named": "73717a1cd6f81c49f1fb3028e8920402030d63cecf4b65ab2a3fbc2d270d002fd1219e",
}


class TestRefusals:
    @pytest.fixture
    def written(self, tmp_path):
        prior = Markov(6)
        codes = prior.sample(9, (3, 3))
        compress(tmp_path / "codes.sqz", Learned(prior), codes)
        return tmp_path / "codes.sqz", prior, codes

    def test_another_model_prior_or_histogram(self, written):
        path, prior, _ = written
        match = r"another model.* prior or histogram.*compress .* again"
        with pytest.raises(CodeFileError, match=match):
            CompressedFile.open(path, Learned(prior), fingerprint="another")
        others = [Learned(Markov(6, seed=9)), Learned(Markov(7)), Learned(prior, Histogram(torch.arange(6)))]
        for other in others:
            with pytest.raises(CodeFileError, match=match):
                CompressedFile.open(path, other, fingerprint=MODEL)
        with pytest.raises(CodeFileError, match=r"compressed with a learned prior.*counts"):
            CompressedFile.open(path, Adaptive(6), fingerprint=MODEL)
        compress(path, Histogram(torch.tensor([1, 2])), torch.zeros(1, 1, 1, dtype=torch.int64))
        with pytest.raises(CodeFileError, match=match):
            CompressedFile.open(path, Histogram(torch.tensor([2, 1])), fingerprint=MODEL)

    def test_what_is_no_such_file(self, tmp_path, written):
        prior = Learned(written[1])
        with pytest.raises(CodeFileError, match="there is no file"):
            CompressedFile.open(tmp_path / "nothing", prior, fingerprint=MODEL)
        with pytest.raises(CodeFileError, match="can't be read: Is a directory"):
            CompressedFile.open(tmp_path, prior, fingerprint=MODEL)
        for content in (b"", b"sq", b"sqz", b"hello, this is text", written[0].read_bytes()[:7]):
            (tmp_path / "other").write_bytes(content)
            with pytest.raises(CodeFileError, match=r"compressed codes.*`sqvae compress`"):
                CompressedFile.open(tmp_path / "other", prior, fingerprint=MODEL)
        newer = bytearray(written[0].read_bytes())
        newer[3] += 1 << 4
        (tmp_path / "newer").write_bytes(newer)
        with pytest.raises(CodeFileError, match=r"version 2\b.*version 1\b"):
            CompressedFile.open(tmp_path / "newer", prior, fingerprint=MODEL)

    def test_what_can_t_be_compressed(self, tmp_path):
        with CompressedWriter(tmp_path / "codes.sqz", Adaptive(4), fingerprint=MODEL) as writer:
            for names, codes, message in (
                (["a"], torch.zeros(2, 1, 1, dtype=torch.int64), "1 names and 2 rows"),
                (["a"], torch.zeros(1, 1, 1), r"\(batch, h, w\), got torch.float32"),
                (
                    ["a"],
                    torch.zeros(1, 1, dtype=torch.int64),
                    r"\(batch, h, w\), got torch.int64 \(1, 1\)",
                ),
                (["a"], torch.tensor([[[4]]]), "must lie between 0 and 3, got 4 to 4"),
                (["a"], torch.tensor([[[-1, 2]]]), "must lie between 0 and 3, got -1 to 2"),
                (["a"], torch.zeros(1, 0, 5, dtype=torch.int64), "1 to 1,048,576 codes, got 0"),
                (["a"], torch.zeros(1, 1025, 1024, dtype=torch.uint8), "1 to 1,048,576 codes, got 1,049,600"),
            ):
                with pytest.raises(ValueError, match=message):
                    writer.write(names, codes)
            with pytest.raises(CodeFileError, match="a name has 70,000 bytes, more than 65,535"):
                writer.write(["x" * 70_000], torch.zeros(1, 1, 1, dtype=torch.int64))
            writer.write(["a"], torch.ones(1, 2, 2, dtype=torch.uint8))
        assert decompress(tmp_path / "codes.sqz", Adaptive(4)).tolist() == [[[1, 1], [1, 1]]]

    def test_what_can_t_be_expected(self):
        with pytest.raises(ValueError, match="must have 1 to 65,536 codes, got 65,537"):
            Adaptive(65537)
        with pytest.raises(ValueError, match="must have 1 to 65,536 codes, got 0"):
            Histogram(torch.zeros(0, dtype=torch.int64))
        with pytest.raises(ValueError, match=r"got torch.float32 of shape \(2,\). Pass counts, not shares"):
            Histogram(torch.tensor([0.5, 0.5]))
        with pytest.raises(ValueError, match=r"negative.*got torch.int64 of shape \(2,\)"):
            Histogram(torch.tensor([-1, 4]))
        with pytest.raises(ValueError, match="batch_size"):
            Learned(Markov(3), batch_size=0)
        with pytest.raises(ValueError, match=r"3 codes in the prior\b.*2 in the histogram"):
            Learned(Markov(3), Histogram(torch.tensor([1, 2])))

    def test_a_prior_that_breaks_its_word(self, tmp_path):
        class Single(Fixed):
            def logits(self, codes, condition=None):
                return super().logits(codes).float()

        class Short(Fixed):
            def logits(self, codes, condition=None):
                return super().logits(codes)[..., :-1]

        codes = torch.zeros(2, 2, 2, dtype=torch.int64)
        with pytest.raises(TypeError, match=r"must be float64, got torch.float32"):
            compress(tmp_path / "codes.sqz", Learned(Single([0.0, 1.0])), codes)
        with pytest.raises(ValueError, match=r"must have the shape \(2, 2, 2, 3\), got \(2, 2, 2, 2\)"):
            compress(tmp_path / "codes.sqz", Learned(Short([0.0, 1.0, 2.0])), codes)
        with pytest.raises(ValueError, match="NaN or infinity"):
            compress(tmp_path / "codes.sqz", Learned(Fixed([0.0, math.nan])), codes)
        assert list(tmp_path.iterdir()) == []

    def test_an_interrupted_write_leaves_nothing(self, tmp_path):
        (tmp_path / "codes.sqz").write_bytes(b"before")

        def write_half():
            with CompressedWriter(tmp_path / "codes.sqz", Adaptive(4), fingerprint=MODEL, together=1) as writer:
                writer.write(["", ""], torch.zeros(2, 1, 1, dtype=torch.int64))
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            write_half()
        assert [path.name for path in tmp_path.iterdir()] == ["codes.sqz"]
        assert (tmp_path / "codes.sqz").read_bytes() == b"before"
        with pytest.raises(CodeFileError, match="it is a folder; name a file"):
            compress(tmp_path, Adaptive(4), torch.zeros(1, 1, 1, dtype=torch.int64))

    def test_every_truncation_and_every_flipped_bit(self, tmp_path):
        prior = Markov(6)
        for together, names in ((256, None), (2, list("abcde"))):
            path = tmp_path / "codes.sqz"
            compress(path, Learned(prior), prior.sample(5, (2, 2)), together=together, names=names)
            whole = path.read_bytes()
            altered = [whole[:end] for end in range(len(whole))] + [whole + b"\0", whole + whole]
            for index in range(8 * len(whole)):
                flipped = bytearray(whole)
                flipped[index // 8] ^= 1 << index % 8
                altered.append(bytes(flipped))
            expectation = Learned(prior)
            for content in altered:
                replace_file(path, content)
                with pytest.raises(CodeFileError):
                    read(path, expectation)

    def test_frames_can_t_be_exchanged_left_out_or_repeated(self, tmp_path):
        path = tmp_path / "codes.sqz"
        compress(path, Adaptive(9), torch.arange(54).reshape(6, 3, 3) % 9, together=2)
        whole = path.read_bytes()
        cursor = Cursor(whole[frames.HEADER :])
        parts = []
        while length := cursor.number():
            parts.append(varint(length) + cursor.take(6 + length))
        end = b"\0" + cursor.take(cursor.left)
        assert b"".join([whole[: frames.HEADER], *parts, end]) == whole
        first, second, third = parts
        for order in ((second, first, third), (first, second), (first, third), (first, second, second, third), ()):
            path.write_bytes(b"".join([whole[: frames.HEADER], *order, end]))
            with pytest.raises(CodeFileError, match=r"is damaged: .*checksum"):
                CompressedFile.open(path, Adaptive(9), fingerprint=MODEL)


def rewritten(path, change, codes=b""):
    """A file of one frame whose body is another, with checks that hold as far as a stranger can make them."""
    whole = path.read_bytes()
    header = Header.from_bytes(whole[: frames.HEADER])
    body = change(whole[frames.HEADER + 6 :])
    path.write_bytes(header.to_bytes() + frames.frame(body, codes, zlib.crc32(header.to_bytes()), alone=True)[0])


class TestHostileFiles:
    """Checks hold, but the content is impossible, or claims what no memory can hold."""

    @pytest.mark.parametrize(
        ("body", "message"),
        [
            (b"", "is damaged: it ends too early"),
            (varint(0) + varint(2) + varint(2), r"claims 0 \w+ of 2 x 2"),
            (varint(2) + varint(0) + varint(2), r"claims 1 \w+ of 0 x 2"),
            (varint(2) + varint(2**34) + varint(2**34), r"claims 1 \w+ of 17,179,869,184 x"),
            (varint(2 << 1) + varint(1 << 9) + varint(1 << 9), r"claims 2 \w+ of 512 x 512"),
            (varint(257 << 1) + varint(1) + varint(1), "claims 257 "),
            (varint(2**34) + varint(1) + varint(1), "claims 8,589,934,592 "),
            (b"\xff" * 6, "a number that is too long"),
            (b"\x02", "ends too early"),
            (varint(3) + varint(2) + varint(2), "ends too early"),
            (varint(3) + varint(2) + varint(2) + varint(2**30) + b"\1" * 3, "ends too early"),
            (varint(3) + varint(2) + varint(2) + varint(2) + b"\1\0", "lists positions that don't exist"),
            (varint(3) + varint(2) + varint(2) + varint(1) + b"\5", "lists positions that don't exist"),
            (varint(2) + varint(1) + varint(1) + bytes(12), "more bytes than"),
            (varint(2) + varint(1) + varint(1), "claims 1 codes in 0 bytes"),
            (varint(2) + varint(1024) + varint(1024) + b"\x80", "claims 1,048,576 codes in 1 bytes"),
            (varint(256 << 1) + varint(8) + varint(16) + bytes(31), "claims 32,768 codes in 31 bytes"),
        ],
    )
    def test_impossible_bodies(self, body, message, tmp_path):
        path = tmp_path / "codes.sqz"
        compress(path, Adaptive(4), torch.zeros(1, 1, 1, dtype=torch.int64))
        rewritten(path, lambda own: body, b"x" if not body else b"")
        tracemalloc.start()
        try:
            with pytest.raises(CodeFileError, match=message):
                read(path, Adaptive(4))
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()

    def test_names_that_would_fill_the_memory(self, tmp_path):
        path = tmp_path / "codes.sqz"
        compress(path, Adaptive(4), torch.zeros(1, 1, 1, dtype=torch.int64), names=["a"])
        packer = zlib.compressobj(9, wbits=-15)
        bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
        names = {"bomb": bomb, "none": b"", "noise": b"\xff" * 9, "two": frames.pack_names(["a", "b"])}
        for packed in names.values():
            body = Body(1, (1, 1), packed, [], b"\x80").to_bytes(named=True)
            rewritten(path, lambda own, body=body: body)
            tracemalloc.start()
            try:
                with pytest.raises(CodeFileError, match="is damaged: it"):
                    read(path, Adaptive(4))
                assert tracemalloc.get_traced_memory()[1] < 80_000_000
            finally:
                tracemalloc.stop()

    def test_lengths_are_held_against_the_file(self, tmp_path):
        path = tmp_path / "codes.sqz"
        compress(path, Adaptive(4), torch.zeros(3, 1, 1, dtype=torch.int64), together=1)
        header = path.read_bytes()[: frames.HEADER]
        for length, message in ((2**34, "it ends too early"), (100, "it ends too early")):
            path.write_bytes(header + varint(length) + bytes(40))
            with pytest.raises(CodeFileError, match=message):
                CompressedFile.open(path, Adaptive(4), fingerprint=MODEL)
        with path.open("wb") as file:  # a hole in the disk: a large file that takes no room
            file.write(header + varint(2**33))
            file.truncate(2**34)
        with pytest.raises(CodeFileError, match="a part is too long"):
            CompressedFile.open(path, Adaptive(4), fingerprint=MODEL)
        with path.open("wb") as file:
            file.write(replace(Header.from_bytes(header), alone=True).to_bytes())
            file.truncate(2**34)
        with pytest.raises(CodeFileError, match="a part is too long"):
            CompressedFile.open(path, Adaptive(4), fingerprint=MODEL)

    def test_random_damage(self, tmp_path):
        """Bits, bytes, pieces of other files; half of the time with a first check that holds all the same."""
        source = random.Random(0)
        prior = Markov(6)
        expectations = [Learned(prior), Adaptive(6), Histogram(torch.arange(6))]
        files = []
        for expectation in expectations:
            for names, together in ((None, 256), (list("abcdefgh"), 256), (None, 3)):
                path = tmp_path / f"{len(files)}.sqz"
                compress(path, expectation, prior.sample(8, (2, 3)), names=names, together=together)
                files.append((expectation, path.read_bytes()))
        path = tmp_path / "damaged.sqz"
        path.touch()
        refused = 0
        for number in range(DAMAGES):
            expectation, whole = source.choice(files)
            damaged = mutated(whole, source, [content for _, content in files])
            if number % 2:
                damaged = with_checks(damaged, source)
            replace_file(path, damaged)
            try:
                found = read(path, expectation)
            except CodeFileError:
                refused += 1
            else:
                for names, codes in found:
                    assert len(names) == len(codes)
                    assert 0 <= int(codes.min()) <= int(codes.max()) < 6
        assert refused > 0.97 * DAMAGES


def mutated(whole, source, others):
    """One to three changes; the first bytes, which say what the file is, mostly stay."""
    data = bytearray(whole)
    for _ in range(source.randint(1, 3)):
        start = source.choice([0, frames.HEADER, frames.HEADER, frames.HEADER])
        at = source.randint(min(start, len(data)), len(data))
        kind = source.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << source.randrange(8)
        elif kind == 1 and at < len(data):
            data[at] = source.randrange(256)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + source.randint(1, 4)]
        elif kind == 4:
            data[at:at] = source.randbytes(source.randint(1, 5))
        else:
            other = source.choice(others)
            cut = source.randrange(len(other))
            data[at : at + source.randint(0, 20)] = other[cut : cut + source.randint(1, 30)]
    return bytes(data)


def with_checks(data, source):
    """The same as one frame or several, with first checks that hold."""
    header, rest = data[: frames.HEADER], data[frames.HEADER :]
    if len(header) < frames.HEADER:
        return data
    crc = zlib.crc32(header)
    if header[3] & 8:
        return header + frames.frame(rest[6:], b"", crc, alone=True)[0]
    written = b""
    for body in (rest[7:30], rest[37:]):
        if body:
            content, crc = frames.frame(body, source.randbytes(1), crc, alone=False)
            written += content
    return header + written + frames.last_frame(crc)


def test_every_varint():
    for number in (0, 1, 127, 128, 300, 2**14, 2**35 - 1):
        assert Cursor(varint(number)).number() == number

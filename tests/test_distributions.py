"""Entropies, Gumbel-softmax and the block noise, against what theory says of them."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sqvae.distributions import entropy, gumbel_softmax, perplexity, sample_categorical
from sqvae.distributions.gumbel import gumbel_like
from sqvae.distributions.noise import BLOCKS_PER_DRAW, MULTIPLIER, GumbelBlocks, scrambled


def test_entropy_of_known_distributions():
    assert entropy(torch.tensor([1.0, 0.0, 0.0])) == 0
    assert entropy(torch.full((8,), 1 / 8)).item() == pytest.approx(math.log(8))
    assert entropy(torch.tensor([[0.5, 0.5], [0.25, 0.75]])).shape == (2,)


def test_entropy_has_finite_gradients_at_impossible_outcomes():
    probabilities = torch.tensor([0.5, 0.5, 0.0], requires_grad=True)
    entropy(probabilities).backward()
    assert probabilities.grad is not None
    assert probabilities.grad.isfinite().all()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50))
@settings(deadline=None)
def test_perplexity_lies_between_one_and_the_codes_in_use(counts):
    value = perplexity(torch.tensor(counts, dtype=torch.float64)).item()
    assert 1 - 1e-9 <= value <= max(1, sum(count > 0 for count in counts)) + 1e-9


def test_perplexity_does_not_depend_on_the_number_of_observations():
    counts = torch.tensor([3.0, 1.0, 4.0, 0.0])
    assert perplexity(counts).item() == pytest.approx(perplexity(1000 * counts).item())


def chi_square(codes: torch.Tensor, probabilities: torch.Tensor) -> float:
    """The p-value of drawn codes under their probabilities."""
    observed = torch.bincount(codes.flatten(), minlength=len(probabilities)).double()
    expected = probabilities.double() / probabilities.double().sum() * observed.sum()
    return stats.chisquare(observed.numpy(), expected.numpy()).pvalue


@pytest.mark.parametrize("temperature", [0.1, 1.0, 5.0])
def test_gumbel_softmax_samples_follow_the_softmax_at_every_temperature(temperature):
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0, 0.5])
    drawn = gumbel_softmax(logits.expand(100_000, 5), temperature).argmax(-1)
    assert chi_square(drawn, logits.softmax(-1)) > 1e-4


def test_categorical_samples_follow_the_softmax():
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0, 0.5])
    assert chi_square(sample_categorical(logits.expand(100_000, 5)), logits.softmax(-1)) > 1e-4


def test_hard_gumbel_softmax_is_one_hot_with_the_soft_gradient():
    logits = torch.randn(6, 4, requires_grad=True)
    torch.manual_seed(1)
    hard = gumbel_softmax(logits, 0.7, hard=True)
    torch.manual_seed(1)
    soft = gumbel_softmax(logits, 0.7)
    torch.testing.assert_close(hard.detach().sort(-1).values, torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(6, 4))
    weights = torch.randn(6, 4)
    (hard_gradient,) = torch.autograd.grad((hard * weights).sum(), logits)
    (soft_gradient,) = torch.autograd.grad((soft * weights).sum(), logits)
    torch.testing.assert_close(hard_gradient, soft_gradient)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gumbel_noise_is_finite_even_at_the_ends_of_the_uniform_distribution(dtype, monkeypatch):
    for end in (0.0, 1.0):
        monkeypatch.setattr(torch, "rand_like", lambda x, end=end: torch.full_like(x, end))
        assert gumbel_like(torch.zeros(3, dtype=dtype)).isfinite().all()


def draw(seed: int, blocks: int, rows: int = 64, columns: int = 100, dtype: torch.dtype = torch.float32):
    noise = GumbelBlocks(seed, blocks * rows, columns, dtype, torch.device("cpu"), height=rows)
    return torch.stack([-noise.rows(block * rows, (block + 1) * rows).clone() for block in range(blocks)])


@pytest.mark.parametrize("seed", [0, -(2**61), 2**61 + 12345])
def test_block_noise_is_standard_gumbel(seed):
    values = draw(seed, 40).flatten().double()
    assert stats.kstest(values.numpy(), "gumbel_r").pvalue > 1e-4
    assert values.isfinite().all()


def test_the_upper_tail_of_block_noise_has_the_right_mass():
    """The winner of many codes comes from there."""
    uniform = (-(-draw(3, 320, rows=256).flatten().double()).exp()).exp()
    assert len(uniform) > 8e6
    for tail in (1e-3, 1e-4, 1e-5):
        count = int((uniform > 1 - tail).sum())
        assert stats.binomtest(count, len(uniform), tail).pvalue > 1e-4


def test_block_noise_is_uncorrelated_across_blocks_rows_and_columns():
    values = draw(5, 64).double()
    values = (values - values.mean()) / values.std()
    shifts = [(1, 0, 0), (2, 0, 0), (15, 0, 0), (16, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (1, 0, 1)]
    for b, r, c in shifts:
        product = values[b:, r:, c:] * values[: 64 - b, : 64 - r, : 100 - c]
        assert abs(product.mean()) < 4.5 / math.sqrt(product.numel()), (b, r, c)


def test_pairs_of_successive_block_noise_are_independent():
    """A finer look than correlation at what one cell gives in a row: tables of pairs and of triples."""
    uniform = (-(-draw(7, 64, rows=512).double()).exp()).exp()
    cells = (uniform * 64).long().clamp_max(63)
    for distance in (1, 2, 3, 7, 15):
        pairs = (cells[distance:] * 64 + cells[:-distance]).flatten()
        assert chi_square(pairs, torch.ones(64**2)) > 1e-4, distance
    coarse = cells // 4
    triples = (coarse[2:] * 256 + coarse[1:-1] * 16 + coarse[:-2]).flatten()
    assert chi_square(triples, torch.ones(16**3)) > 1e-4


def test_the_generator_s_multiplier_passes_the_spectral_test_at_every_distance_that_occurs():
    """The shortest vector of the dual lattice, over the longest that a lattice of 2^32 pairs can have."""
    for distance in range(1, BLOCKS_PER_DRAW):
        u, v = (2**32, 0), (-pow(MULTIPLIER, distance, 2**32), 1)
        while True:  # Gauss's reduction of a basis in two dimensions
            if math.hypot(*u) < math.hypot(*v):
                u, v = v, u
            factor = round((u[0] * v[0] + u[1] * v[1]) / (v[0] ** 2 + v[1] ** 2))
            u = (u[0] - factor * v[0], u[1] - factor * v[1])
            if math.hypot(*u) >= math.hypot(*v):
                break
        assert math.hypot(*v) / math.sqrt(2**32 * 2 / math.sqrt(3)) > 0.7, distance


def test_block_noise_repeats_for_the_same_seed_only():
    assert torch.equal(draw(11, 20), draw(11, 20))
    assert not torch.equal(draw(11, 20), draw(12, 20))


def test_the_way_of_accelerators_gives_the_same_distribution():
    """They draw uniform numbers directly; on a CPU that is only slower."""
    noise = GumbelBlocks(1, 40 * 64, 100, torch.float32, torch.device("cpu"), height=64)
    noise._vectorized = False
    values = torch.stack([-noise.rows(64 * block, 64 * block + 64).clone() for block in range(40)]).flatten().double()
    assert stats.kstest(values.numpy(), "gumbel_r").pvalue > 1e-4
    assert values.isfinite().all()


@pytest.mark.parametrize("vectorized", [True, False], ids=["CPU", "accelerator"])
def test_a_row_of_block_noise_does_not_depend_on_what_was_asked_before(vectorized):
    rows, height = 203, 5

    def start():
        noise = GumbelBlocks(9, rows, 7, torch.float32, torch.device("cpu"), height=height)
        noise._vectorized = vectorized
        return noise

    noise = start()
    whole = torch.cat([noise.rows(row, min(row + height, rows)).clone() for row in range(0, rows, height)])
    assert len(whole.unique()) > 0.99 * whole.numel()
    for first in (0, 3, 4, 79, 80, 83, 161, 200, 202):
        stop = min(first + height - first % height, rows)
        assert torch.equal(start().rows(first, stop), whole[first:stop])
    wandering = start()
    for row in (17, 19, 18, 99, 98, 0, 202, 5):
        assert torch.equal(wandering.rows(row, row + 1), whole[row : row + 1])


def test_block_noise_of_different_draws_and_of_neighbouring_seeds_is_independent():
    """What follows from each draw's own seed: tables of pairs, one of each from two draws or two seeds."""

    def cells(seed: int) -> torch.Tensor:
        uniform = (-(-draw(seed, 5 * BLOCKS_PER_DRAW, rows=512).double()).exp()).exp()
        return (uniform * 64).long().clamp_max(63)

    first = cells(7)
    for distance in (1, 2, 3, 4):
        blocks = distance * BLOCKS_PER_DRAW
        assert chi_square((first[blocks:] * 64 + first[:-blocks]).flatten(), torch.ones(64**2)) > 1e-4, distance
    # The first words of a generator are where like seeds would show; rows 0 and 1 hold the first two hundred.
    for other in (6, 8, 7 + 2**32, 7 - 2**61):
        second = cells(other)
        assert chi_square((first * 64 + second).flatten(), torch.ones(64**2)) > 1e-4, other
    starts = torch.cat([draw(seed, 1, rows=2) for seed in range(3000)]).flatten(1).double()
    correlations = torch.corrcoef(torch.cat((starts[1:], starts[:-1]), 1).T)
    off_diagonal = correlations[~torch.eye(len(correlations), dtype=torch.bool)]
    assert off_diagonal.abs().max() < 6.5 / math.sqrt(len(starts))


def test_seeds_of_draws_are_the_words_of_splitmix64():
    """As other implementations give them for the seed 1234567."""
    words = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert [scrambled(1234567, index) for index in range(5)] == words

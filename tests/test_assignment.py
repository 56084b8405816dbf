"""The fused assignment against the same thing written out in plain torch."""

import pytest
import torch

from sqvae.distributions import assign, assignment, entropy
from sqvae.distributions.noise import GumbelBlocks


def plain(queries, keys, values, temperature, noise, hard, weights):
    """The formulas one after the other; `noise` is the Gumbel noise that the fused version draws."""
    logits = queries @ keys.T
    probabilities = logits.softmax(-1)
    soft = ((logits + noise) / temperature).softmax(-1)
    codes = (logits + noise).argmax(-1)
    image = soft @ values
    if hard:
        image = values[codes] + soft @ values.detach() - (soft @ values).detach()
        soft = torch.nn.functional.one_hot(codes, len(keys)) + soft - soft.detach()
    return image, entropy(probabilities), codes, weights @ probabilities, weights @ soft


@pytest.fixture
def inputs():
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((50, 7), (12, 7), (12, 5))]


def drawn_noise(count: int, few: int, codes: int, seed: int) -> torch.Tensor:
    """The noise of a call after `torch.manual_seed(seed)`, which draws one word for its own seed."""
    torch.manual_seed(seed)
    own_seed = int(torch.randint(-(2**62), 2**62, ()))
    noise = GumbelBlocks(own_seed, count, codes, torch.float64, torch.device("cpu"), height=few)
    return torch.cat([-noise.rows(start, min(start + few, count)).clone() for start in range(0, count, few)])


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "recomputed"])
@pytest.mark.parametrize("rows_per_block", [(7, 7), (50, 50), (21, 4)])
@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("noisy", [True, False], ids=["sampled", "mode"])
def test_values_and_gradients_equal_the_plain_formulas(inputs, monkeypatch, keep, rows_per_block, hard, noisy):
    monkeypatch.setattr(assignment, "KEPT_LOGITS", 10**9 if keep else 0)
    monkeypatch.setattr(assignment, "_rows_per_block", lambda codes, device: rows_per_block)
    noise = drawn_noise(50, rows_per_block[1], 12, seed=5) if noisy else torch.zeros(50, 12, dtype=torch.float64)
    torch.manual_seed(5)
    counted = torch.linspace(0, 1, 50, dtype=torch.float64)
    result = assign(
        *inputs, temperature=torch.tensor(0.6, dtype=torch.float64), weights=counted, noisy=noisy, hard=hard
    )
    image, entropies, codes, usage, drawn = plain(*inputs, 0.6, noise, hard, counted)
    torch.testing.assert_close(result.values, image)
    torch.testing.assert_close(result.entropy, entropies)
    torch.testing.assert_close(result.usage, usage)
    torch.testing.assert_close(result.drawn, drawn)
    assert torch.equal(result.codes, codes)

    outputs, others = (result.values, result.entropy, result.drawn), (image, entropies, drawn)
    weights = [torch.randn_like(output) for output in outputs]
    for asked in ((0, 1), (0, 1, 2), (2,)):
        fused, expected = (
            torch.autograd.grad(
                sum((given[place] * weights[place]).sum() for place in asked),
                inputs[: 2 if asked == (2,) else 3],
                retain_graph=True,
            )
            for given in (outputs, others)
        )
        for left, right in zip(fused, expected, strict=True):
            torch.testing.assert_close(left, right)


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "recomputed"])
def test_gradcheck(inputs, monkeypatch, keep):
    monkeypatch.setattr(assignment, "KEPT_LOGITS", 10**9 if keep else 0)
    monkeypatch.setattr(assignment, "_rows_per_block", lambda codes, device: (7, 2))

    def run(*tensors):
        torch.manual_seed(1)
        result = assign(*tensors, temperature=torch.tensor(0.8))
        return result.values, result.entropy, result.drawn

    assert torch.autograd.gradcheck(run, [tensor[:9].detach().requires_grad_() for tensor in inputs])


def test_each_output_alone_has_its_gradient(inputs):
    result = assign(*inputs, temperature=torch.tensor(1.0))
    assert torch.autograd.grad(result.entropy.sum(), inputs[0], retain_graph=True)[0].abs().sum() > 0
    assert torch.autograd.grad(result.values.sum(), inputs[2])[0].abs().sum() > 0


def test_weights_count_in_the_usage_only(inputs):
    weights = torch.rand(50, dtype=torch.float64)
    result = assign(*inputs, temperature=torch.tensor(1.0), weights=weights)
    torch.testing.assert_close(result.usage, weights @ (inputs[0] @ inputs[1].T).softmax(-1))


def test_nothing_is_kept_where_no_gradient_is_wanted(inputs):
    with torch.no_grad():
        outputs = torch.ops.sqvae.assign(
            *inputs, torch.ones(50).double(), torch.tensor(1.0).double(), True, False, False
        )
    assert outputs[6].numel() == outputs[7].numel() == 0


def test_entropy_is_exact_and_never_negative_where_one_code_takes_all():
    queries = torch.tensor([[1e6], [0.0]])
    result = assign(queries, torch.tensor([[1.0], [0.5]]), torch.eye(2), temperature=torch.tensor(1.0))
    assert 0 <= result.entropy[0] < 1e-20
    assert result.entropy[1].item() == pytest.approx(0.6931472)


def test_the_operators_satisfy_torch_s_own_checks(inputs):
    arguments = (*inputs, torch.ones(50).double(), torch.tensor(0.7).double(), False, False, True)
    torch.library.opcheck(torch.ops.sqvae.assign.default, arguments)


def nothing_but_noise(count: int, codes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Relaxed samples where all logits are 0, (count, codes), and a gradient through such samples, (count, 1)."""
    queries, slopes = torch.zeros(count, 1, requires_grad=True), torch.linspace(-1, 1, codes).unsqueeze(-1)
    temperature = torch.tensor(0.5)
    blocks = assignment._blocks(
        queries.detach(), slopes, temperature, 3, True, soft=torch.empty(0, codes), slope=None, report=None
    )
    relaxed = torch.cat([block.relaxed.clone() for block in blocks])
    torch.manual_seed(3)
    (gradient,) = torch.autograd.grad(assign(queries, slopes, slopes, temperature=temperature).values.sum(), queries)
    return relaxed, gradient


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "recomputed"])
@pytest.mark.parametrize(
    ("number", "count", "codes", "rows_per_block"),
    [
        (2, 60, 12, None),  # all in one block of noise
        (3, 600, 2048, None),  # process 1 begins in the midst of a block
        (2, 90, 10_000, None),  # products' blocks of two of the noise's
        (3, 36, 65_536, None),
        (2, 80, 5, (8, 2)),  # more blocks than one draw gives
        (4, 140, 5, (21, 4)),  # products' blocks that cut the noise's
        (5, 50, 3, (7, 7)),
    ],
)
def test_processes_meet_the_noise_of_their_own_rows(monkeypatch, number, count, codes, rows_per_block, keep):
    monkeypatch.setattr(assignment, "KEPT_LOGITS", 10**9 if keep else 0)
    if rows_per_block:
        monkeypatch.setattr(assignment, "_rows_per_block", lambda codes, device: rows_per_block)
    whole, gradient = nothing_but_noise(count, codes)
    for rank in range(number):
        monkeypatch.setattr(assignment, "processes", lambda rank=rank: (rank, number))
        part, part_gradient = nothing_but_noise(count // number, codes)
        own = slice(rank * count // number, (rank + 1) * count // number)
        assert torch.equal(part, whole[own])
        torch.testing.assert_close(part_gradient, gradient[own])


def test_no_block_of_noise_is_cut_in_a_single_process():
    for codes in (1, 2, 100, 512, 3000, 10_000, 40_000, 65_536, 10**6):
        rows, few = assignment._rows_per_block(codes, torch.device("cpu"))
        assert rows % few == 0


@pytest.mark.parametrize("noisy", [True, False], ids=["sampled", "mode"])
def test_no_probability_is_a_denormal_number(noisy):
    """Processors compute with denormal numbers up to a hundred times more slowly."""
    queries, keys = torch.ones(64, 1), -torch.linspace(0, 300, 32).unsqueeze(-1)
    result = assign(queries, keys, torch.eye(32), temperature=torch.tensor(0.5), noisy=noisy)
    tiny = torch.finfo(torch.float32).tiny
    for probabilities in (result.usage, result.drawn, result.values):
        assert ((probabilities == 0) | (probabilities >= tiny)).all()
    exact = entropy((queries @ keys.T).double().softmax(-1))
    torch.testing.assert_close(result.entropy.double(), exact, rtol=1e-4, atol=0)

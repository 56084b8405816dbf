"""The fused assignment against the same thing written out in plain torch."""

import pytest
import torch

from sqvae.distributions import assign, assignment, entropy
from sqvae.distributions.noise import GumbelBlocks


def plain(queries, keys, values, temperature, noise, hard):
    """The formulas one after the other; `noise` is the Gumbel noise that the fused version draws."""
    logits = queries @ keys.T
    probabilities = logits.softmax(-1)
    soft = ((logits + noise) / temperature).softmax(-1)
    codes = (logits + noise).argmax(-1)
    image = soft @ values
    if hard:
        image = values[codes] + soft @ values.detach() - (soft @ values).detach()
    return image, entropy(probabilities), codes, probabilities.sum(0)


@pytest.fixture
def inputs():
    torch.manual_seed(0)
    return [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((50, 7), (12, 7), (12, 5))]


def drawn_noise(count: int, rows: int, few: int, codes: int, seed: int) -> torch.Tensor:
    """The noise of a call after `torch.manual_seed(seed)`, which draws one word for its own seed."""
    torch.manual_seed(seed)
    noise = GumbelBlocks(int(torch.randint(-(2**62), 2**62, ())), few, codes, torch.float64, torch.device("cpu"))
    sizes = [
        min(few, block - first)
        for block in (min(rows, count - start) for start in range(0, count, rows))
        for first in range(0, block, few)
    ]
    return torch.cat([-noise.next(size).clone() for size in sizes])


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "recomputed"])
@pytest.mark.parametrize("rows_per_block", [(7, 7), (50, 50), (21, 4)])
@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("noisy", [True, False], ids=["sampled", "mode"])
def test_values_and_gradients_equal_the_plain_formulas(inputs, monkeypatch, keep, rows_per_block, hard, noisy):
    monkeypatch.setattr(assignment, "KEPT_LOGITS", 10**9 if keep else 0)
    monkeypatch.setattr(assignment, "_rows_per_block", lambda codes, device: rows_per_block)
    noise = drawn_noise(50, *rows_per_block, 12, seed=5) if noisy else torch.zeros(50, 12, dtype=torch.float64)
    torch.manual_seed(5)
    result = assign(*inputs, temperature=torch.tensor(0.6, dtype=torch.float64), noisy=noisy, hard=hard)
    image, entropies, codes, usage = plain(*inputs, 0.6, noise, hard)
    torch.testing.assert_close(result.values, image)
    torch.testing.assert_close(result.entropy, entropies)
    torch.testing.assert_close(result.usage, usage)
    assert torch.equal(result.codes, codes)

    weights = torch.randn_like(image), torch.randn_like(entropies)
    fused = torch.autograd.grad((result.values * weights[0]).sum() + (result.entropy * weights[1]).sum(), inputs)
    expected = torch.autograd.grad((image * weights[0]).sum() + (entropies * weights[1]).sum(), inputs)
    for left, right in zip(fused, expected, strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "recomputed"])
def test_gradcheck(inputs, monkeypatch, keep):
    monkeypatch.setattr(assignment, "KEPT_LOGITS", 10**9 if keep else 0)
    monkeypatch.setattr(assignment, "_rows_per_block", lambda codes, device: (7, 2))

    def run(*tensors):
        torch.manual_seed(1)
        result = assign(*tensors, temperature=torch.tensor(0.8))
        return result.values, result.entropy

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
    assert outputs[4].numel() == outputs[5].numel() == 0


def test_entropy_is_exact_and_never_negative_where_one_code_takes_all():
    queries = torch.tensor([[1e6], [0.0]])
    result = assign(queries, torch.tensor([[1.0], [0.5]]), torch.eye(2), temperature=torch.tensor(1.0))
    assert result.entropy[0] == 0
    assert result.entropy[1].item() == pytest.approx(0.6931472)


def test_the_operators_satisfy_torch_s_own_checks(inputs):
    arguments = (*inputs, torch.ones(50).double(), torch.tensor(0.7).double(), False, False, True)
    torch.library.opcheck(torch.ops.sqvae.assign.default, arguments)

"""torch.compile and torch.export take the quantizers whole."""

import warnings

import pytest
import torch
from torch import nn

from families import DIM, DISCRETE, RELAXED, build, encoder_output
from sqvae import GaussianLikelihood, LatentModel
from sqvae.quantizers import LATENTS
from test_models import LIKELIHOODS, make


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def loss_and_gradients(step, quantizer, inputs):
    torch.manual_seed(7)
    quantizer.zero_grad()
    leaves = {key: value.clone().requires_grad_() for key, value in inputs.items()}
    loss = step(leaves)
    loss.backward()
    return loss.detach(), [leaf.grad for leaf in leaves.values()]


@pytest.mark.parametrize(
    ("name", "options"),
    [*[(name, {}) for name in LATENTS], *[(name, {"dequantize": True, "hard": True}) for name in RELAXED]],
)
def test_a_training_step_is_one_graph_with_the_same_loss_and_gradients(name, options):
    """Traced and differentiated by the compiler, run by the eager backend: quick, and any graph break is an error."""
    quantizer = build(name, channel_first=True, **options)
    inputs = encoder_output(quantizer, 4, DIM, 3, 5)
    state = {key: value.clone() for key, value in quantizer.state_dict().items()}

    def step(leaves):
        result = quantizer(**leaves, temperature=0.7)
        z_q, _, loss = result
        return loss + z_q.square().sum()

    expected, gradients = loss_and_gradients(step, quantizer, inputs)
    quantizer.load_state_dict(state)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    result, compiled_gradients = loss_and_gradients(compiled, quantizer, inputs)
    torch.testing.assert_close(result, expected)
    for left, right in zip(compiled_gradients, gradients, strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_whole_model_s_training_step_is_one_graph_with_the_same_loss(likelihood):
    model, x = make("gaussian-1", likelihood)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    torch.manual_seed(3)
    expected = model(x, 0.7).loss
    model.load_state_dict(state)
    compiled = torch.compile(lambda x, temperature: model(x, temperature).loss, fullgraph=True, backend="aot_eager")
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(x, 0.7), expected)


def test_a_changing_temperature_does_not_recompile_for_ever():
    quantizer = build("gaussian-1")
    z = torch.randn(4, 6, DIM)
    count = 0

    def counting(graph, _inputs):
        nonlocal count
        count += 1
        return graph.forward

    step = torch.compile(lambda temperature: quantizer(z, temperature).loss, fullgraph=True, backend=counting)
    for index in range(12):
        step(1.0 - 0.01 * index)
    assert count <= 2


@pytest.mark.slow
def test_a_real_compiled_training_step_gives_the_same_loss():
    quantizer = build("gaussian-1", channel_first=True)
    model = LatentModel(nn.Conv2d(1, DIM, 4, 4), quantizer, nn.ConvTranspose2d(DIM, 1, 4, 4), GaussianLikelihood())
    x = torch.rand(6, 1, 8, 8)

    def step(x, temperature):
        objective = model(x, temperature)
        return objective.loss

    torch.manual_seed(3)
    expected = step(x, 0.7)
    expected.backward()
    gradient = quantizer.codebook.grad.clone()
    model.zero_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own, about its own imports
        compiled = torch.compile(step, fullgraph=True)
        torch.manual_seed(3)
        result = compiled(x, 0.7)
        result.backward()
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(quantizer.codebook.grad, gradient)


class Encode(nn.Module):
    def __init__(self, quantizer):
        super().__init__()
        self.quantizer = quantizer

    def forward(self, z, log_variance=None):
        return self.quantizer.encode(z, log_variance=log_variance)


class Decode(nn.Module):
    def __init__(self, quantizer):
        super().__init__()
        self.quantizer = quantizer

    def forward(self, codes):
        return self.quantizer.decode(codes)


@pytest.mark.parametrize("name", DISCRETE)
def test_encode_and_decode_export_with_a_dynamic_batch_and_only_standard_operators(name):
    quantizer = build(name).eval()
    inputs = encoder_output(quantizer, 4, 6, DIM)
    batch = torch.export.Dim("batch", min=2, max=64)
    exported = torch.export.export(Encode(quantizer), (), inputs, dynamic_shapes={key: {0: batch} for key in inputs})
    assert "sqvae" not in str(exported.graph)
    larger = encoder_output(quantizer, 9, 6, DIM)
    codes = exported.module()(**larger)
    assert torch.equal(codes, quantizer.encode(**larger))
    decoder = torch.export.export(Decode(quantizer), (codes[:4],), dynamic_shapes={"codes": {0: batch}})
    torch.testing.assert_close(decoder.module()(codes), quantizer.decode(codes))

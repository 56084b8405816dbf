"""The bound against the exact log-likelihood, by enumerating every latent map there is.

The toy models have K codes at d_z positions, so that all K^d_z maps can be decoded and

    log p(x) = log sum_{Z_q} p(x | Z_q) / K^d_z

is known. The bound's Monte Carlo mean may not exceed it, and must meet it where the posterior is exact.
"""

import itertools
import math

import pytest
import torch
from torch import nn

from families import codebooks_of
from sqvae import (
    VAE,
    CategoricalLikelihood,
    EMAVectorQuantizer,
    GaussianLikelihood,
    GaussianQuantizer,
    LatentModel,
    VectorQuantizer,
    VonMisesFisherLikelihood,
    VonMisesFisherQuantizer,
    half_circle_directions,
)
from sqvae.quantizers import LayeredQuantizer, ResidualQuantizer, ResidualVectorQuantizer

POSITIONS, DIM, DRAWS = 2, 3, 400_000


class Constant(nn.Module):
    """An encoder that has one answer: what matters here is where the encoding lies, not how it got there."""

    def __init__(self, *answers: torch.Tensor) -> None:
        super().__init__()
        self.answers = answers

    def forward(self, x):
        answers = [answer.expand(len(x), *answer.shape) for answer in self.answers]
        return answers[0] if len(answers) == 1 else tuple(answers)


class Linear(nn.Module):
    """A decoder of all positions at once."""

    def __init__(self, *outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.layer = nn.Linear(POSITIONS * DIM, math.prod(outputs))

    def forward(self, z_q):
        return self.layer(z_q.flatten(1)).view(-1, *self.outputs)


def exact_log_likelihood(model, x) -> float:
    sizes = model.quantizer.codebook_sizes
    codes = torch.tensor(list(itertools.product(*(range(size) for size in sizes * POSITIONS))))
    if isinstance(model.quantizer, LayeredQuantizer):
        codes = codes.view(-1, POSITIONS, len(sizes))
    outputs = model.decoder(model.quantizer.decode(codes))
    each = torch.stack([model.likelihood(output.unsqueeze(0), x.unsqueeze(0)).log_likelihood for output in outputs])
    return (each.logsumexp(0) - POSITIONS * math.log(math.prod(sizes))).item()


def bound_and_error(model, x, draws: int = DRAWS) -> tuple[float, float]:
    """The mean of the bound over draws, and that mean's standard error."""
    batches = torch.stack([model.bound(x.expand(draws // 40, *x.shape)).nats for _ in range(40)])
    return batches.mean().item(), (batches.std() / math.sqrt(40)).item()


def make(kind: str, codes: int, *, dequantize: bool = True, spread: float = 1.0, encoding: torch.Tensor | None = None):
    """A toy model in float64 and a datum."""
    answers = [torch.randn(POSITIONS, DIM) if encoding is None else encoding]
    if kind.startswith("vmf"):
        quantizer = VonMisesFisherQuantizer(codes, DIM, initial_concentration=1 / spread, dequantize=dequantize)
    elif kind.startswith("residual"):
        variance = {"1": "shared", "3": "per_position"}[kind[-1]]
        quantizer = ResidualQuantizer(codes, DIM, 2, variance, initial_variance=spread, dequantize=dequantize)
        if quantizer.needs_log_variance:
            answers.append(0.5 * torch.randn(POSITIONS, DIM))
    else:
        types = {"1": "shared", "2": "per_sample", "3": "per_position", "4": "per_dimension", "f": "fixed"}
        variance = types[kind[-1]]
        quantizer = GaussianQuantizer(codes, DIM, variance, initial_variance=spread, dequantize=dequantize)
        if quantizer.needs_log_variance:
            answers.append(0.5 * torch.randn(POSITIONS, DIM))
    if kind == "vmf-labels":
        likelihood, outputs, x = (
            VonMisesFisherLikelihood(half_circle_directions(5), initial_concentration=3.0),
            (2, 4),
            torch.tensor([0, 2, 4, 1]),
        )
    elif kind == "categorical-1":
        likelihood, outputs, x = CategoricalLikelihood(5), (5, 4), torch.tensor([0, 2, 4, 1])
    else:
        likelihood, outputs, x = GaussianLikelihood("fixed", initial_variance=0.5), (4,), torch.randn(4)
    model = LatentModel(Constant(*[answer.double() for answer in answers]), quantizer, Linear(*outputs), likelihood)
    return model.double().eval(), x.double() if x.is_floating_point() else x


KINDS = ["gaussian-1", "gaussian-2", "gaussian-3", "gaussian-4", "gaussian-f", "categorical-1", "vmf", "vmf-labels"]
KINDS += ["residual-1", "residual-3"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("dequantize", [True, False])
def test_the_bound_never_exceeds_the_log_likelihood(kind, spread, dequantize):
    model, x = make(kind, codes=3, spread=spread, dequantize=dequantize)
    bound, error = bound_and_error(model, x, draws=40_000)
    exact = exact_log_likelihood(model, x)
    assert bound < exact + 4 * error
    assert math.isfinite(bound)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [0.05, 1.0])
def test_with_one_code_and_the_encoding_on_it_the_bound_is_exact(kind, spread):
    model, x = make(kind, codes=1, spread=spread)
    code = sum(part.vectors() for part in codebooks_of(model.quantizer)).detach()
    model.encoder.answers = (code.expand(POSITIONS, DIM), *model.encoder.answers[1:])
    bound, error = bound_and_error(model, x)
    assert 0 < error < 0.01
    assert bound == pytest.approx(exact_log_likelihood(model, x), abs=4 * error)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("categorical-1", "vmf-labels")])
def test_with_codes_far_apart_and_an_exact_decoder_the_bound_is_exact(kind):
    """The encoding sits on the right codes, and the decoder leaves no doubt which those are."""
    model, _ = make(kind, codes=3, spread=0.02)
    right = torch.tensor([2, 0])
    if kind == "vmf":
        model.quantizer.codebook.data.copy_(torch.eye(3))
    elif kind.startswith("residual"):  # the second layer's codes lie closer together than those of the first
        for part, scale in zip(codebooks_of(model.quantizer), (100, 10), strict=True):
            part.codebook.data.mul_(scale)
        right = torch.tensor([[2, 1], [0, 2]])
    else:
        model.quantizer.codebook.data.mul_(10)
    model.encoder.answers = (model.quantizer.decode(right.unsqueeze(0))[0].detach(), *model.encoder.answers[1:])
    model.likelihood.log_variance.fill_(math.log(1e-4))
    x = model.decode(right.unsqueeze(0))[0]
    bound, error = bound_and_error(model, x)
    assert 0 < error < 0.01
    assert bound == pytest.approx(exact_log_likelihood(model, x), abs=4 * error)


def test_without_dequantization_the_bound_is_exact_only_up_to_the_regularizer():
    """Z = Z_hat leaves out no constant: d_b d_z / 2 belongs to the noise, and without noise would break the bound."""
    model, x = make("gaussian-1", codes=1, dequantize=False)
    encoding, code = model.encoder.answers[0], model.quantizer.codebook.detach()
    regularizer = (encoding - code).square().sum().item() / 2
    assert model.bound(x.unsqueeze(0)).nats.item() == pytest.approx(exact_log_likelihood(model, x) - regularizer)


@pytest.mark.parametrize(
    "quantizer", [VectorQuantizer(3, DIM), EMAVectorQuantizer(3, DIM), ResidualVectorQuantizer(3, DIM, 2)]
)
def test_the_deterministic_posterior_is_a_bound_too(quantizer):
    encoder = Constant(torch.randn(POSITIONS, DIM).double())
    model = LatentModel(encoder, quantizer, Linear(4), GaussianLikelihood("fixed"))
    model, x = model.double().eval(), torch.randn(4).double()
    assert model.bound(x.unsqueeze(0)).nats.item() < exact_log_likelihood(model, x)


def test_the_vae_s_bound_meets_the_evidence_of_a_linear_model():
    """With x = z + noise, z normal, everything is Gaussian: evidence and posterior are known."""
    noise = 0.3
    x = torch.tensor([0.7, -1.2], dtype=torch.float64)
    mean, variance = x / (1 + noise), noise / (1 + noise)
    encoder = Constant(mean, torch.full((2,), math.log(variance), dtype=torch.float64))
    model = VAE(encoder, 2, nn.Identity(), GaussianLikelihood("fixed", initial_variance=noise)).double().eval()
    evidence = torch.distributions.Normal(0, math.sqrt(1 + noise)).log_prob(x).sum().item()
    bound, error = bound_and_error(model, x)
    assert bound == pytest.approx(evidence, abs=4 * error)
    encoder.answers = (mean + 0.5, encoder.answers[1])
    assert bound_and_error(model, x)[0] < evidence - 4 * error


def test_bits_per_dimension():
    model, x = make("gaussian-1", codes=3)
    bound = model.bound(x.expand(10, 4), samples=3)
    assert bound.bits_per_dimension.item() == pytest.approx(-bound.nats.item() / 4 / math.log(2))

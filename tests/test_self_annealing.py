"""Propositions 1 and 2 as experiments: the surer the decoder, the less random the best quantization.

Three data points, three codes, one position, a fixed decoder. For each decoder variance, minimise

    mean over x of KL(Q(Z_q | x) || P(Z_q | x)),    Q(Z_q | x) = E[P^(Z_q | Z)] over the dequantization noise of Z,

in the encodings (bounded, as the proposition asks) and in the quantization's spread. Expectations are sums over fine
grids, so the only approximation is the optimizer's.
"""

import itertools
import math

import torch
from torch import nn
from torch.nn.functional import normalize

from sqvae import SQVAE, GaussianLikelihood, GaussianQuantizer, VonMisesFisherQuantizer
from sqvae.distributions import von_mises_fisher


def divergence(q, log_p):
    return (q * (q.clamp_min(1e-300).log() - log_p)).sum(-1).mean()


def minimise(loss, parameters, steps=600):
    # Gradients fade by orders of magnitude as certainty grows, so the optimizer must forget their size quickly.
    optimizer = torch.optim.Adam(parameters, lr=0.05, betas=(0.8, 0.9), eps=1e-30)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        schedule.step()


def optimal_variance(decoder_variance: float) -> float:
    torch.manual_seed(0)
    quantizer = GaussianQuantizer(3, 1, initial_variance=1.0).double()
    quantizer.codebook.data.copy_(torch.tensor([[-1.0], [0.0], [1.0]]))
    data = torch.tensor([-0.8, 0.1, 1.3], dtype=torch.float64)  # each decoded code is its own value
    log_p = (-((data.unsqueeze(-1) - quantizer.codebook.detach().T) ** 2) / (2 * decoder_variance)).log_softmax(-1)
    free = torch.randn(3, 1, dtype=torch.float64, requires_grad=True)
    steps = torch.linspace(-6, 6, 241, dtype=torch.float64)
    weights = (-(steps**2) / 2).softmax(0)

    def loss():
        encodings = 2 * free.tanh()
        z = encodings + (quantizer.log_variance / 2).exp() * steps
        q = (quantizer.logits(z.unsqueeze(-1)).softmax(-1) * weights.unsqueeze(-1)).sum(1)
        return divergence(q, log_p)

    minimise(loss, [free, quantizer.log_variance])
    return quantizer.log_variance.exp().item()


def optimal_concentration(decoder_concentration: float) -> float:
    torch.manual_seed(0)
    quantizer = VonMisesFisherQuantizer(3, 2).double()
    angles = torch.tensor([0.0, 2.0, 4.0], dtype=torch.float64)
    quantizer.codebook.data.copy_(torch.stack((angles.cos(), angles.sin()), -1))
    data = normalize(quantizer.codebook.detach() + 0.3 * torch.randn(3, 2, dtype=torch.float64), dim=-1)
    log_p = (decoder_concentration * data @ quantizer.codebook.detach().T).log_softmax(-1)
    free = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    circle = torch.linspace(0, 2 * math.pi, 721, dtype=torch.float64)[:-1]
    points = torch.stack((circle.cos(), circle.sin()), -1)

    def loss():
        concentration = quantizer.log_concentration.exp()
        density = von_mises_fisher.log_density(points, normalize(free, dim=-1).unsqueeze(1), concentration).exp()
        weights = density * (circle[1] - circle[0])
        return divergence((quantizer.logits(points).softmax(-1) * weights.unsqueeze(-1)).sum(1), log_p)

    minimise(loss, [free, quantizer.log_concentration])
    return quantizer.log_concentration.exp().item()


def test_proposition_1_the_optimal_variance_vanishes_with_the_decoder_s():
    optima = [optimal_variance(variance) for variance in (1.0, 0.3, 0.1, 0.03, 0.01)]
    assert all(later < earlier for earlier, later in itertools.pairwise(optima)), optima
    assert optima[-1] < 0.1 * optima[0], optima


def test_proposition_2_the_optimal_concentration_grows_with_the_decoder_s():
    optima = [optimal_concentration(concentration) for concentration in (1.0, 3.0, 10.0, 30.0, 100.0)]
    assert all(later > earlier for earlier, later in itertools.pairwise(optima)), optima
    assert optima[-1] > 10 * optima[0], optima


def test_without_a_decoder_s_preference_the_quantization_becomes_uniform():
    assert optimal_variance(1e4) > 10 * optimal_variance(1.0)


def train_on_clusters(variance: str) -> tuple[list[float], list[float]]:
    """The entropy, and the variance over the codes' mean squared distance, step by step: 16 clusters, 16 codes."""
    torch.manual_seed(0)
    centres = torch.randn(16, 32)
    quantizer = GaussianQuantizer(16, 4, variance, initial_variance=4.0)
    encoder = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32))
    model = SQVAE(encoder, quantizer, decoder, GaussianLikelihood())
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    entropies, variances = [], []
    for _ in range(600):
        x = centres[torch.randint(16, (128,))] + 0.1 * torch.randn(128, 32)
        objective = model(x, 0.5)
        optimizer.zero_grad()
        objective.loss.backward()
        optimizer.step()
        entropies.append(objective.quantized.entropy.item())
        spread = torch.pdist(quantizer.codebook.detach()).square().mean()
        variances.append((objective.quantized.variance / spread).item())
    return entropies, variances


def test_a_trained_variance_anneals_itself_and_a_fixed_one_stays_behind():
    entropies, variances = train_on_clusters("shared")
    assert entropies[-1] < 0.2 * entropies[0]
    assert variances[-1] < 0.2 * variances[0]
    fixed_entropies, _ = train_on_clusters("fixed")
    assert entropies[-1] < 0.5 * fixed_entropies[-1]

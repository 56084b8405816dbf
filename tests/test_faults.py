"""Each fault of a loop of one's own is made on purpose, and named."""

import pytest
import torch
from torch import nn

from sqvae import Annealing, GaussianQuantizer, VonMisesFisherQuantizer, faults_of

D = 64


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def data(number=256):
    """Points around 16 centres in 64 dimensions."""
    centres = torch.randn(16, D, generator=torch.Generator().manual_seed(0))
    return centres[torch.randint(16, (number,))] + 0.1 * torch.randn(number, D)


def trained(objective, *, steps=150, variance=1.0, schedule=None):
    """A small loop, and what it kept."""
    encoder, decoder = nn.Linear(D, 8), nn.Linear(8, D)
    quantizer = GaussianQuantizer(16, 8, initial_variance=variance)
    model = nn.ModuleList([encoder, quantizer, decoder])
    optimizer = torch.optim.Adam(model.parameters() if schedule is None else schedule.groups(model), lr=1e-2)
    kept = []
    for step in range(steps):
        x = data()
        quantized = quantizer(encoder(x), 1.0 if schedule is None else schedule.begin(step, optimizer))
        error = (decoder(quantized.z_q) - x).square().mean()
        loss = objective(error, quantized.loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(quantized)
    model.eval()
    x = data()
    single = (decoder(quantizer(encoder(x)).z_q) - x).square().mean()
    return kept[::50] + kept[-1:], {"loss": loss.detach(), "error": error.detach(), "single_error": single.detach()}


def right(error, loss):
    return D / 2 * error.log() + loss


def test_nothing_is_said_of_a_sound_loop():
    kept, last = trained(right, steps=400, schedule=Annealing(400))
    assert faults_of(kept, dimensions=D, **last) == ()


def test_blind_choice():
    kept, _ = trained(right, steps=2, variance=1e6)
    assert "entropy" in " ".join(faults_of(kept))
    assert "100% of its maximum log K" in faults_of(kept)[0]


def test_an_error_that_is_averaged():
    kept, last = trained(lambda error, loss: error.log() / 2 + loss)
    found = " ".join(faults_of(kept, dimensions=D, **last))
    assert "averaged over the values" in found


@pytest.mark.parametrize("kind", ["variance", "concentration"])
def test_a_spread_that_runs_away(kind):
    z = torch.randn(32, 8)
    if kind == "variance":
        quantizer, scale, sign = (one := GaussianQuantizer(16, 8, initial_variance=0.05)), one.log_variance, 1
    else:
        quantizer = one = VonMisesFisherQuantizer(16, 8, initial_concentration=50.0)
        scale, sign = one.log_concentration, -1
    before = quantizer(z)
    with torch.no_grad():
        scale.add_(sign * 3)
    assert f"{kind} has {'grown' if sign > 0 else 'fallen'} 20 times" in " ".join(faults_of([before, quantizer(z)]))
    assert faults_of([before, before]) == ()


def test_mixtures_that_no_code_equals():
    """A variance that stays where it is: the decoder sees mixtures to the end."""
    encoder, decoder = nn.Linear(D, 8), nn.Linear(8, D)
    quantizer = GaussianQuantizer(16, 8, "fixed", initial_variance=8.0)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
    for _ in range(300):
        x = data()
        quantized = quantizer(encoder(x), 5.0)
        error = (decoder(quantized.z_q) - x).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
    quantizer.eval()
    single = (decoder(quantizer(encoder(x)).z_q) - x).square().mean()
    (said,) = faults_of([quantized], error=error.detach(), single_error=single.detach())
    assert "mixtures of codes" in said


def test_nothing_to_look_at():
    with pytest.raises(ValueError, match="no results"):
        faults_of([])

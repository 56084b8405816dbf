"""Models of every combination of parts, and what a person does with them."""

import math

import pytest
import torch
from torch import nn

from families import CODES, DIM, DISCRETE, build, codes_shape
from sqvae import VAE, CategoricalLikelihood, GaussianLikelihood, LatentModel, VonMisesFisherLikelihood
from sqvae.likelihoods import half_circle_directions
from sqvae.networks import conv_decoder, conv_encoder
from sqvae.quantizers import LATENTS

LIKELIHOODS = {
    "gaussian": (GaussianLikelihood, 1, 1),
    "categorical": (lambda: CategoricalLikelihood(5), 5, 5),
    "vmf": (lambda: VonMisesFisherLikelihood(half_circle_directions(5)), 2, 2),
    "vmf, closed form": (
        lambda: VonMisesFisherLikelihood(half_circle_directions(5), concentration="closed_form"),
        2,
        2,
    ),
}


class TwoHeads(nn.Module):
    """Encodings and log-variances from one convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, 2 * DIM, 4, stride=4)

    def forward(self, x):
        return self.convolution(x).chunk(2, 1)


def make(quantizer: str, likelihood: str = "gaussian") -> tuple[LatentModel, torch.Tensor]:
    build_likelihood, seen, given = LIKELIHOODS[likelihood]
    part = build(quantizer, channel_first=True)
    encoder = TwoHeads(seen) if part.needs_log_variance else nn.Conv2d(seen, DIM, 4, stride=4)
    decoder = nn.ConvTranspose2d(DIM, given, 4, stride=4)
    x = torch.rand(6, 1, 8, 8) if likelihood == "gaussian" else torch.randint(0, 5, (6, 8, 8))
    return LatentModel(encoder, part, decoder, build_likelihood()), x


@pytest.mark.parametrize("quantizer", LATENTS)
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_every_combination_trains(quantizer, likelihood):
    model, x = make(quantizer, likelihood)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(60):
        objective = model(x, 0.5)
        optimizer.zero_grad()
        objective.loss.backward()
        optimizer.step()
        losses.append(objective.fit.loss.item())
    assert all(torch.tensor(losses).isfinite())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("quantizer", LATENTS)
def test_codes_and_reconstructions(quantizer):
    model, x = make(quantizer)
    model.eval()
    codes = model.encode(x)
    expected = codes_shape(quantizer, 6, 2, 2) if quantizer in DISCRETE else (6, DIM, 2, 2)
    assert codes.shape == expected
    reconstruction = model.reconstruct(x)
    assert reconstruction.shape == x.shape
    assert torch.equal(reconstruction, model.decode(codes))
    torch.testing.assert_close(reconstruction, model(x).output)


@pytest.mark.parametrize("likelihood", ["categorical", "vmf"])
def test_labels_come_back_as_labels(likelihood):
    model, x = make("gaussian-1", likelihood)
    reconstruction = model.eval().reconstruct(x)
    assert reconstruction.shape == x.shape
    assert reconstruction.dtype == torch.int64
    assert 0 <= reconstruction.min() <= reconstruction.max() < 5


def test_the_terms_add_up():
    model, x = make("gaussian-3")
    terms = model(x, 0.5).terms
    assert terms["loss"].item() == pytest.approx((terms["reconstruction"] + terms["latent"]).item())
    assert terms["latent"].item() == pytest.approx((terms["regularizer"] - terms["entropy"]).item())
    assert terms["bound"].item() == pytest.approx((terms["log_likelihood"] - terms["divergence"]).item())


def test_a_vae_by_the_same_parts():
    model = VAE(TwoHeads(1), DIM, nn.ConvTranspose2d(DIM, 1, 4, stride=4), GaussianLikelihood(), channel_first=True)
    x = torch.rand(6, 1, 8, 8)
    objective = model(x)
    objective.loss.backward()
    z, log_variance = model.encoder(x)
    divergence = (z**2 + log_variance.exp() - log_variance - 1).sum() / 2 / 6
    assert objective.quantized.loss.item() == pytest.approx(divergence.item(), rel=1e-5)
    assert torch.equal(model.eval().reconstruct(x), model.decode(model.encode(x)))


def test_codes_reconstructions_and_bound_are_those_of_eval_and_leave_training_as_it_was():
    model, x = make("gaussian-1")
    model.encoder = nn.Sequential(model.encoder, nn.BatchNorm2d(DIM).eval(), nn.BatchNorm2d(DIM))
    model.train()
    model.encoder[1].eval()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    codes, reconstruction = model.encode(x), model.reconstruct(x)
    torch.manual_seed(1)
    bound = model.bound(x, samples=2).nats
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key
    assert [module.training for module in model.encoder] == [True, False, True]
    model.eval()
    assert torch.equal(codes, model.encode(x))
    assert torch.equal(reconstruction, model.reconstruct(x))
    torch.manual_seed(1)
    assert torch.equal(bound, model.bound(x, samples=2).nats)


def test_the_bound_is_a_mean_over_as_many_draws_as_asked_for():
    model, x = make("gaussian-1")
    draws = []
    model.decoder.register_forward_hook(lambda *_: draws.append(1))
    model.bound(x, samples=3)
    assert len(draws) == 3


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_models_work_in_other_precisions(likelihood, dtype):
    model, x = make("gaussian-1", likelihood)
    x = x.to(dtype) if x.is_floating_point() else x
    objective = model.to(dtype)(x)
    objective.loss.backward()
    assert objective.loss.isfinite()


def test_parts_that_do_not_fit():
    model, x = make("gaussian-1")
    encoder, quantizer, decoder, likelihood = model.encoder, model.quantizer, model.decoder, model.likelihood
    with pytest.raises(ValueError, match="samples must be at least 1, got 0"):
        model.bound(x, samples=0)
    with pytest.raises(ValueError, match=r"returns \(z, log_variance\), got Tensor"):
        LatentModel(encoder, build("gaussian-4", channel_first=True), decoder, likelihood)(x)
    with pytest.raises(ValueError, match="takes no log_variance, so the encoder must return z alone, got tuple"):
        LatentModel(TwoHeads(1), quantizer, decoder, likelihood)(x)
    with pytest.raises(TypeError, match=r"second part must be a quantizer.*got ConvTranspose2d"):
        LatentModel(encoder, decoder, quantizer, likelihood)
    with pytest.raises(TypeError, match=r"must be a likelihood.*got the class GaussianLikelihood itself"):
        LatentModel(encoder, quantizer, decoder, GaussianLikelihood)
    with pytest.raises(ValueError, match=r"real-valued data, got torch.uint8"):
        model((255 * x).byte())


def test_results_print_their_numbers_and_not_their_tensors():
    model, x = make("gaussian-1")
    text = repr(model(x))
    assert "divergence=" in text
    assert len(text) < 1500


def test_parts_can_be_any_network_and_rank():
    """A sequence model, channels last: (batch, time, dim)."""
    model = LatentModel(nn.Linear(3, DIM), build("gaussian-1"), nn.Linear(DIM, 3), GaussianLikelihood("learned"))
    objective = model(torch.randn(4, 11, 3), 0.5)
    objective.loss.backward()
    assert objective.quantized.counts.sum() == 44
    assert objective.quantized.counts.shape == (CODES,)


def test_normalisation_can_be_worked_into_the_convolutions():
    from sqvae.networks import BatchNorm2d, conv_decoder, conv_encoder, without_batch_norm

    sizes = {"widths": (8, 16), "mix": True, "blocks": 2}
    encoder, decoder = conv_encoder(3, 16, log_variance=True, **sizes), conv_decoder(3, 16, **sizes)
    for _ in range(20):  # statistics and weights that are not those of the start
        decoder(encoder(5 * torch.rand(8, 3, 16, 16) + 1)[0])
    for network in (encoder, decoder):
        for layer in network.modules():
            if isinstance(layer, BatchNorm2d):
                torch.nn.init.uniform_(layer.weight, 0.5, 2)
                torch.nn.init.normal_(layer.bias)
    x = torch.rand(4, 3, 16, 16)
    encoder.eval(), decoder.eval()
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    fast_encoder, fast_decoder = without_batch_norm(encoder), without_batch_norm(decoder)
    assert not any(isinstance(layer, BatchNorm2d) for layer in [*fast_encoder.modules(), *fast_decoder.modules()])
    for own, other in zip(encoder(x), fast_encoder(x), strict=True):
        torch.testing.assert_close(other, own, rtol=1e-4, atol=1e-4)
    z = torch.randn(4, 16, 4, 4)
    torch.testing.assert_close(fast_decoder(z), decoder(z), rtol=1e-4, atol=1e-5)
    assert all(tensor.equal(before[name]) for name, tensor in encoder.state_dict().items())


@pytest.mark.parametrize(("name", "codebook_weight"), [("vq-ema", 0.0), ("vq", 1.0)])
def test_averaged_latent_terms_are_the_objective_that_vq_vae_is_usually_trained_with(name, codebook_weight):
    """Mean squared error over the data's variance, and mean squared distances, of which commitment counts a quarter."""
    torch.manual_seed(0)
    x = torch.rand(3, 1, 8, 8)
    variance = float(x.var(correction=0))
    quantizer = LATENTS[name](codebook_size=6, dim=4, channel_first=True)
    likelihood = GaussianLikelihood("fixed", initial_variance=variance)
    model = LatentModel(conv_encoder(1, 4), quantizer, conv_decoder(1, 4), likelihood, latent_terms="mean")
    objective = model(x)
    z = model.encoder(x)
    distance = (z - objective.quantized.z_q).square().mean()
    expected = (objective.output - x).square().mean() / variance + (0.25 + codebook_weight) * distance
    constant = math.log(variance)
    torch.testing.assert_close(2 / 64 * objective.loss, expected + constant)

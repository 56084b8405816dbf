"""The convolutional networks: sizes, depths, and a latent that is one vector."""

import math
from dataclasses import replace

import pytest
import torch

from runs import tiny, write_pictures
from sqvae.config import Experiment, NetworkSettings, QuantizerSettings
from sqvae.data import load as load_data
from sqvae.modalities.evaluation import evaluate
from sqvae.modalities.images.assembly import build_model
from sqvae.networks import BatchNorm2d, conv_decoder, conv_encoder, from_vector, to_vector, without_batch_norm
from sqvae.networks.convolutional import ResBlock
from sqvae.runs import train
from sqvae.tokenizers import load


def vector_model(dim=12, **network):
    settings = NetworkSettings(**{"map_dim": 16, "blocks": 1, **network})
    return Experiment(network=settings, quantizer=QuantizerSettings(name="gaussian-latent", dim=dim))


def blocks_in(network):
    return sum(isinstance(layer, ResBlock) for layer in network.modules())


@pytest.mark.parametrize(("decoder_blocks", "expected"), [(None, 3), (0, 0), (2, 2), (5, 5)])
def test_the_decoder_may_have_another_depth(decoder_blocks, expected):
    settings = NetworkSettings(widths=(4, 8), blocks=3, decoder_blocks=decoder_blocks)
    model = build_model(Experiment(network=settings, quantizer=QuantizerSettings(dim=8)), (1, 16, 16))
    assert (blocks_in(model.encoder), blocks_in(model.decoder)) == (3, expected)
    x = torch.rand(2, 1, 16, 16)
    assert model.reconstruct(x).shape == x.shape


@pytest.mark.parametrize(
    ("shape", "network"),
    [
        ((1, 28, 28), {}),
        ((3, 64, 64), {"mix": True}),
        ((3, 16, 40), {}),
        ((3, 4, 4), {}),
        ((1, 128, 128), {}),
        ((3, 16, 16), {"widths": (4, 6, 8), "mix": True}),
        ((3, 16, 16), {"widths": (4, 16)}),
        ((1, 16, 16), {"map_dim": 1}),
    ],
)
def test_a_vector_latent_for_every_shape_of_pictures(shape, network):
    model = build_model(vector_model(12, **network), shape)
    x = torch.rand(3, *shape)
    objective = model(x)
    assert objective.output.shape == x.shape
    assert objective.quantized.z_q.shape == objective.quantized.variance.shape == (3, 12)
    objective.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert model.encode(x).shape == (3, 12)
    assert model.reconstruct(x).shape == x.shape
    assert model.decode(torch.randn(5, 12)).shape == (5, *shape)


def test_a_vector_is_a_linear_function_of_the_map():
    convolutions = conv_encoder(3, 8, blocks=1)
    encoder = to_vector(convolutions, (8, 4, 6), 5, log_variance=True).eval()
    torch.nn.init.normal_(encoder.head.weight)
    torch.nn.init.normal_(encoder.head.bias)
    x = torch.rand(2, 3, 16, 24)
    f = convolutions(x).reshape(2, 8 * 4 * 6)
    for got, layer in zip(encoder(x), (encoder.vector, encoder.head), strict=True):
        torch.testing.assert_close(got, f @ layer.weight.T / math.sqrt(8 * 4 * 6) + layer.bias)
    alone = to_vector(convolutions, (8, 4, 6), 5).eval()
    assert alone(x).shape == (2, 5)
    decoder = from_vector(conv_decoder(3, 8, blocks=1), (8, 4, 6), 5).eval()
    z = torch.randn(2, 5)
    linear, _, rest = decoder
    torch.testing.assert_close(decoder(z), rest((z @ linear.weight.T + linear.bias).view(2, 8, 4, 6)))


def test_vectors_and_maps_start_with_the_spread_of_what_they_come_from():
    encoder = to_vector(torch.nn.Identity(), (64, 16, 16), 72, log_variance=True)
    z, log_variance = encoder(torch.randn(50, 64, 16, 16))
    assert z.std().item() == pytest.approx(1, abs=0.05)
    assert torch.equal(log_variance, torch.zeros(50, 72))
    decoder = from_vector(torch.nn.Identity(), (64, 4, 4), 72)
    assert decoder(torch.randn(50, 72)).std().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("side", [16, 64, 128])
def test_a_step_of_adam_moves_a_vector_little_however_large_the_map(side):
    """Without the root in the linear layer, log-variances move by tens at 64x64, and their exponentials explode."""
    model = build_model(replace(vector_model(8), network=NetworkSettings(map_dim=32, blocks=1)), (3, side, side))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x = torch.rand(8, 3, side, side)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).loss.backward()
        optimizer.step()
    _, log_variance = model.encoder(x)
    assert 0 < log_variance.abs().max() < 1


def test_a_vector_latent_refuses_pictures_of_another_size():
    model = build_model(vector_model(), (3, 16, 32))
    with pytest.raises(ValueError, match=r"one vector.* of 16x32; got 32x32"):
        model.encode(torch.rand(1, 3, 32, 32))


def test_normalisation_is_worked_into_the_networks_of_a_vector_too():
    model = build_model(vector_model(blocks=2, mix=True), (3, 16, 16))
    torch.nn.init.normal_(model.encoder.head.weight)
    for _ in range(20):  # statistics that are not those of the start
        model(torch.rand(8, 3, 16, 16))
    model.eval()
    encoder, decoder = without_batch_norm(model.encoder), without_batch_norm(model.decoder)
    assert not any(isinstance(layer, BatchNorm2d) for layer in [*encoder.modules(), *decoder.modules()])
    x = torch.rand(4, 3, 16, 16)
    torch.testing.assert_close(encoder(x), model.encoder(x), rtol=1e-4, atol=1e-4)
    z = torch.randn(4, 12)
    torch.testing.assert_close(decoder(z), model.decoder(z), rtol=1e-4, atol=1e-5)


def test_a_vae_with_a_vector_latent_from_training_to_use(tmp_path):
    source = write_pictures(tmp_path / "squares.npy")
    experiment = replace(tiny(source, epochs=12), quantizer=QuantizerSettings(name="gaussian-latent", dim=6))
    experiment = replace(experiment, network=replace(experiment.network, map_dim=8))
    train(experiment, tmp_path / "run", announce=lambda note: None)
    tokenizer = load(tmp_path / "run", device="cpu")
    pictures = load_data(source).test
    x = pictures.take(slice(None)).float() / 255
    reconstruction = tokenizer.reconstruct(x)
    assert reconstruction.shape == x.shape
    # It has learned where the squares are, which the mean picture does not know.
    mse = (reconstruction - x).square().mean()
    assert mse < 0.7 * (x - x.mean(0)).square().mean()
    measures = evaluate(tokenizer.model, pictures, medium=tokenizer.medium, sampled_bound=True).measures
    assert measures["mse"] == pytest.approx(mse.item(), rel=1e-3)
    assert "perplexity" not in measures
    with pytest.raises(ValueError, match=r"gaussian-latent has a continuous latent, and no codes"):
        tokenizer.encode(x)
    tokenizer.save_pretrained(tmp_path / "copy")
    assert torch.equal(load(tmp_path / "copy", device="cpu").reconstruct(x), reconstruction)

"""What holds for every quantizer there is."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from families import (
    CODES,
    DIM,
    DISCRETE,
    LAYERED,
    LAYERS,
    RELAXED,
    STOCHASTIC,
    build,
    codes_shape,
    encoder_output,
    layers_of,
)
from sqvae.quantizers import LATENTS

every = pytest.mark.parametrize("name", LATENTS)


@every
@pytest.mark.parametrize("places", [(), (7,), (3, 5), (2, 3, 4)])
def test_the_result_unpacks_and_has_the_shapes_of_the_input(name, places):
    quantizer = build(name)
    inputs = encoder_output(quantizer, 4, *places, DIM)
    result = quantizer(**inputs, temperature=0.7)
    z_q, codes, loss = result
    assert z_q.shape == inputs["z"].shape
    assert codes.shape == codes_shape(name, 4, *places)
    assert loss.shape == result.divergence.shape == result.regularizer.shape == result.entropy.shape == ()
    if name in DISCRETE:
        assert codes.dtype == torch.int64
        assert result.counts.shape == result.mean_probabilities.shape == (layers_of(name) * CODES,)
        assert result.counts.sum() == layers_of(name) * 4 * math.prod(places)
        assert result.mean_probabilities.sum().item() == pytest.approx(layers_of(name), abs=1e-5)
        assert result.perplexity.shape == result.soft_perplexity.shape == ((LAYERS,) if name in LAYERED else ())
        for spread in (result.perplexity, result.soft_perplexity):
            assert ((spread >= 1) & (spread <= CODES + 1e-3)).all()


@pytest.mark.parametrize(
    ("name", "options"), [*[(name, {}) for name in LATENTS], *[(name, {"dequantize": True}) for name in RELAXED]]
)
def test_eval_is_deterministic_and_a_round_trip_through_codes(name, options):
    quantizer = build(name, **options).eval()
    inputs = encoder_output(quantizer, 4, 7, DIM)
    first, second = quantizer(**inputs), quantizer(**inputs)
    assert torch.equal(first.z_q, second.z_q)
    assert torch.equal(first.loss, second.loss)
    codes = quantizer.encode(**inputs)
    assert torch.equal(codes, first.codes)
    assert torch.equal(quantizer.decode(codes), first.z_q)


@every
def test_channel_first_is_the_same_with_axes_moved(name):
    quantizer = build(name).eval()
    last = encoder_output(quantizer, 2, 3, 5, DIM)
    first = {key: value.movedim(-1, 1) for key, value in last.items()}
    expected, result = quantizer(**last), quantizer(**first, channel_first=True)
    torch.testing.assert_close(result.z_q, expected.z_q.movedim(-1, 1))
    torch.testing.assert_close(result.loss, expected.loss)
    constructed = build(name, channel_first=True).eval()
    constructed.load_state_dict(quantizer.state_dict())
    codes = constructed.encode(**first)
    assert torch.equal(constructed.decode(codes), quantizer.decode(codes, channel_first=True))
    assert torch.equal(constructed.decode(codes), result.z_q)


@every
def test_the_loss_is_a_sum_over_positions_and_a_mean_over_the_batch(name):
    quantizer = build(name).eval()
    inputs = encoder_output(quantizer, 3, 5, DIM)
    doubled = {key: torch.cat((value, value), 1) for key, value in inputs.items()}
    repeated = {key: torch.cat((value, value), 0) for key, value in inputs.items()}
    loss = quantizer(**inputs).loss
    torch.testing.assert_close(quantizer(**doubled).loss, 2 * loss)
    torch.testing.assert_close(quantizer(**repeated).loss, loss)


@every
@pytest.mark.parametrize("training", [True, False])
def test_a_mask_leaves_positions_out_whatever_they_hold(name, training):
    inputs = {}
    results = []
    for garbage in (0.0, 1e4, float("nan")):
        torch.manual_seed(0)
        quantizer = build(name).train(training)
        inputs = encoder_output(quantizer, 3, 6, DIM)
        mask = torch.tensor([6, 4, 1]).unsqueeze(-1) > torch.arange(6)
        inputs = {key: torch.where(mask.unsqueeze(-1), value, garbage) for key, value in inputs.items()}
        results.append((quantizer(**inputs, mask=mask), quantizer))
    (reference, first), *others = results
    for result, quantizer in others:
        for field in ("loss", "divergence", "entropy", "regularizer", "counts", "mean_probabilities"):
            torch.testing.assert_close(getattr(result, field), getattr(reference, field))
        for left, right in zip(quantizer.state_dict().values(), first.state_dict().values(), strict=True):
            torch.testing.assert_close(left, right)
    if name in DISCRETE:
        assert reference.counts.sum() == 11 * layers_of(name)


@every
def test_masking_equals_cutting_off(name):
    quantizer = build(name).eval()
    inputs = encoder_output(quantizer, 3, 6, DIM)
    mask = torch.arange(6).expand(3, 6) < 4
    cut = quantizer(**{key: value[:, :4] for key, value in inputs.items()})
    masked = quantizer(**inputs, mask=mask)
    torch.testing.assert_close(masked.loss, cut.loss)
    torch.testing.assert_close(masked.divergence, cut.divergence)
    torch.testing.assert_close(masked.counts, cut.counts)
    torch.testing.assert_close(masked.mean_probabilities, cut.mean_probabilities)
    padded = {key: torch.where(mask.unsqueeze(-1), value, float("nan")) for key, value in inputs.items()}
    assert torch.equal(quantizer.encode(**padded, mask=mask)[:, :4], cut.codes)


@every
def test_gradients_reach_the_encoder_and_every_parameter(name):
    quantizer = build(name)
    inputs = {key: value.requires_grad_() for key, value in encoder_output(quantizer, 4, 6, DIM).items()}
    z_q, _, loss = quantizer(**inputs, temperature=0.5)
    (loss + (z_q * torch.randn_like(z_q)).sum()).backward()
    for key, value in [*inputs.items(), *quantizer.named_parameters()]:
        if value.requires_grad:
            assert value.grad is not None, key
            assert value.grad.isfinite().all(), key
            assert value.grad.abs().sum() > 0, key


@every
@pytest.mark.parametrize("training", [True, False])
def test_half_precision_input_is_computed_in_float32_and_given_back_as_it_came(name, training):
    quantizer = build(name).train(training)
    inputs = {key: value.bfloat16() for key, value in encoder_output(quantizer, 4, 6, DIM).items()}
    torch.manual_seed(1)
    result = quantizer(**inputs)
    torch.manual_seed(1)
    exact = quantizer(**{key: value.float() for key, value in inputs.items()})
    assert result.z_q.dtype == torch.bfloat16
    assert result.loss.dtype == torch.float32
    if "ema" not in name:
        torch.testing.assert_close(result.loss, exact.loss)


@every
def test_float64_throughout(name):
    quantizer = build(name, dtype=torch.float64)
    result = quantizer(**encoder_output(quantizer, 4, 6, DIM, dtype=torch.float64))
    assert result.z_q.dtype == result.loss.dtype == torch.float64


@every
def test_autocast_leaves_loss_and_codes_as_they_are(name):
    quantizer = build(name).eval()
    inputs = encoder_output(quantizer, 4, 6, DIM)
    exact = quantizer(**inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = quantizer(**inputs)
    assert torch.equal(cast.codes, exact.codes)
    torch.testing.assert_close(cast.loss, exact.loss)


@every
def test_the_state_survives_saving(name):
    quantizer = build(name)
    inputs = encoder_output(quantizer, 4, 6, DIM)
    quantizer(**inputs)
    twin = build(name)
    twin.load_state_dict(quantizer.state_dict())
    torch.testing.assert_close(twin.eval()(**inputs).loss, quantizer.eval()(**inputs).loss)


@every
def test_training_is_governed_by_the_seed(name):
    outcomes = []
    for seed in (3, 3, 4):
        torch.manual_seed(0)
        quantizer = build(name)
        inputs = encoder_output(quantizer, 4, 6, DIM)
        torch.manual_seed(seed)
        outcomes.append(quantizer(**inputs, temperature=0.5).z_q)
    assert torch.equal(outcomes[0], outcomes[1])
    if name in RELAXED:
        assert not torch.equal(outcomes[0], outcomes[2])


@pytest.mark.parametrize("name", DISCRETE)
def test_the_bound_pays_the_uniform_prior_for_each_position(name):
    quantizer = build(name).eval()
    result = quantizer(**encoder_output(quantizer, 4, 6, DIM))
    prior = 6 * layers_of(name) * math.log(CODES)
    paid = result.divergence - (result.loss if name in RELAXED else 0)
    assert paid.item() == pytest.approx(prior, rel=1e-5)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_perplexities_are_those_of_codes_and_of_probabilities(name):
    quantizer = build(name).eval()
    inputs = encoder_output(quantizer, 4, 6, DIM)
    result = quantizer(**inputs)
    probabilities = quantizer.logits(**inputs).softmax(-1).flatten(0, 1).mean(0)
    expected = (-(probabilities * probabilities.log()).sum()).exp()
    torch.testing.assert_close(result.soft_perplexity, expected, rtol=1e-4, atol=0)
    shares = torch.bincount(result.codes.flatten(), minlength=CODES) / 24
    expected = (-torch.special.xlogy(shares, shares).sum()).exp()
    torch.testing.assert_close(result.perplexity, expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", RELAXED)
@pytest.mark.parametrize("temperature", [1e-45, 1e-38, 1e-10, 1e10])
def test_no_temperature_is_too_low_or_too_high(name, temperature):
    quantizer = build(name)
    inputs = {key: value.requires_grad_() for key, value in encoder_output(quantizer, 4, 6, DIM).items()}
    result = quantizer(**inputs, temperature=temperature)
    assert result.z_q.isfinite().all()
    assert result.loss.isfinite()


@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.uint16, torch.int32])
def test_codes_of_any_integer_type_are_decoded(name, dtype):
    quantizer = build(name)
    codes = torch.randint(0, CODES, codes_shape(name, 3, 5))
    assert torch.equal(quantizer.decode(codes.to(dtype)), quantizer.decode(codes))


def test_sizes_and_temperatures_may_be_numpy_s():
    quantizer = build("gaussian-1", codes=np.int64(5), dim=np.int32(3))
    assert quantizer(torch.randn(4, 3), np.float32(0.5)).loss.isfinite()


@given(
    batch=st.integers(1, 3),
    places=st.lists(st.integers(1, 4), max_size=3),
    codes=st.integers(1, 40),
    dim=st.integers(2, 9),
    name=st.sampled_from(sorted(LATENTS)),
)
@settings(deadline=None, max_examples=60)
def test_any_size_works(batch, places, codes, dim, name):
    quantizer = build(name, codes=codes, dim=dim)
    inputs = encoder_output(quantizer, batch, *places, dim)
    result = quantizer(**inputs, temperature=0.3)
    assert result.loss.isfinite()
    assert result.z_q.isfinite().all()
    if name in DISCRETE:
        assert 0 <= int(result.codes.min()) <= int(result.codes.max()) < codes


@pytest.mark.parametrize("name", ["gaussian-1", "gaussian-4", "vmf", "vq", "vq-ema"])
def test_the_codebook_starts_at_the_scale_that_is_asked_for(name):
    for scale in (0.1, 3.0):
        quantizer = LATENTS[name](codebook_size=200, dim=20, codebook_scale=scale)
        assert float(quantizer.codebook.detach().std()) == pytest.approx(scale, rel=0.05)
    with pytest.raises(ValueError, match="codebook_scale"):
        LATENTS[name](codebook_size=2, dim=2, codebook_scale=0.0)

"""Errors say what was given, what was expected and, where it helps, what to do."""

import pytest
import torch

from families import CODES, DIM, DISCRETE, SINGLE, build, codebooks_of, encoder_output
from sqvae import (
    CategoricalLikelihood,
    EMAVectorQuantizer,
    GaussianLikelihood,
    GaussianQuantizer,
    VectorQuantizer,
    VonMisesFisherLikelihood,
    VonMisesFisherQuantizer,
)
from sqvae.quantizers import LATENTS

every = pytest.mark.parametrize("name", LATENTS)


@every
@pytest.mark.parametrize("method", ["__call__", "encode"])
def test_wrong_rank_or_dimension(name, method):
    quantizer = build(name)
    call = getattr(quantizer, method)
    with pytest.raises(ValueError, match=r"at least 2 axes, got shape \(8,\)"):
        call(torch.randn(DIM))
    with pytest.raises(ValueError, match=r"dim = 8, got shape \(4, 6, 7\)"):
        call(torch.randn(4, 6, 7))
    with pytest.raises(ValueError, match=r"got shape \(4, 8, 6\).*pass channel_first=True"):
        call(torch.randn(4, DIM, 6))
    with pytest.raises(ValueError, match=r"z must hold real numbers, got torch.int64"):
        call(torch.ones(4, DIM, dtype=torch.int64))
    with pytest.raises(ValueError, match="z is empty"):
        call(torch.randn(0, DIM))


@every
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_encodings_that_are_not_finite(name, value):
    quantizer = build(name)
    inputs = encoder_output(quantizer, 4, 6, DIM)
    inputs["z"][1, 2, 3] = value
    with pytest.raises(ValueError, match=r"z must be finite, got [01] NaN and [01] infinite of 192 values"):
        quantizer(**inputs)
    with pytest.raises(ValueError, match="z must be finite"):
        quantizer.encode(**inputs)


def test_large_but_finite_encodings_pass():
    z = torch.full((4, DIM), 3e38)
    assert GaussianQuantizer(CODES, DIM).encode(z).shape == (4,)


def test_parameters_that_have_diverged():
    for name in DISCRETE:
        quantizer = build(name)
        codebooks_of(quantizer)[-1].codebook.data[1, 2] = float("nan")
        inputs = encoder_output(quantizer, 4, DIM)
        for call in (quantizer, quantizer.encode):
            with pytest.raises(ValueError, match=r"the codebook (of layer 3 )?must be finite, got 1 NaN"):
                call(**inputs)
    for parameter, name in (("log_variance", "gaussian-1"), ("log_concentration", "vmf")):
        for value, message in ((float("nan"), "be finite"), (100.0, "between -80 and 80.*has diverged")):
            quantizer = build(name, dequantize=True)
            getattr(quantizer, parameter).data.fill_(value)
            with pytest.raises(ValueError, match=f"the quantizer's.* {parameter} must.*{message}"):
                quantizer(torch.randn(4, DIM))


@every
@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf"), torch.tensor(0.0)])
def test_temperatures_that_are_not_positive(name, temperature):
    quantizer = build(name)
    with pytest.raises(ValueError, match="temperature must be finite and > 0, got"):
        quantizer(**encoder_output(quantizer, 4, DIM), temperature=temperature)


@every
def test_temperatures_that_are_not_one_number(name):
    quantizer = build(name)
    inputs = encoder_output(quantizer, 4, DIM)
    with pytest.raises(ValueError, match=r"single number, got a tensor of shape \(2,\)"):
        quantizer(**inputs, temperature=torch.ones(2))
    for temperature in ("0.5", None):
        with pytest.raises(TypeError, match="temperature must be a number, got"):
            quantizer(**inputs, temperature=temperature)


@every
def test_things_that_are_not_tensors(name):
    quantizer = build(name)
    with pytest.raises(TypeError, match="z must be a tensor, got ndarray"):
        quantizer(torch.randn(4, DIM).numpy())
    with pytest.raises(TypeError, match="z must be a tensor, got tuple"):
        quantizer((torch.randn(4, DIM), torch.randn(4, DIM)))
    if name in DISCRETE:
        with pytest.raises(TypeError, match="codes must be a tensor, got list"):
            quantizer.decode([[1, 2]])


@every
def test_a_mask_that_leaves_out_everything(name):
    quantizer = build(name)
    inputs = encoder_output(quantizer, 4, 6, DIM)
    with pytest.raises(ValueError, match=r"mask .* positions.* True"):
        quantizer(**inputs, mask=torch.zeros(4, 6, dtype=torch.bool))


@every
def test_masks_of_another_shape_or_type(name):
    quantizer = build(name)
    inputs = encoder_output(quantizer, 4, 6, DIM)
    for mask in (torch.ones(4, 5, dtype=torch.bool), torch.ones(4, 6)):
        with pytest.raises(ValueError, match=r"mask must be boolean, \(batch, ...\) = \(4, 6\).*got torch"):
            quantizer(**inputs, mask=mask)


@pytest.mark.parametrize("name", SINGLE)
def test_codes_out_of_range(name):
    quantizer = build(name)
    with pytest.raises(ValueError, match="codes must lie between 0 and 15, got values from 3 to 16"):
        quantizer.decode(torch.tensor([[3, 16]]))
    with pytest.raises(ValueError, match="got values from -1 to 3"):
        quantizer.decode(torch.tensor([[3, -1]]))
    with pytest.raises(ValueError, match=r"codes must be integers between 0 and 15, got torch.float32"):
        quantizer.decode(torch.tensor([[3.0, 1.0]]))


def test_unknown_variance_lists_the_choices():
    with pytest.raises(
        ValueError, match="'shared', 'per_sample', 'per_position', 'per_dimension', 'fixed'; got 'diag'"
    ):
        GaussianQuantizer(CODES, DIM, variance="diag")
    with pytest.raises(ValueError, match="'closed_form', 'learned', 'fixed'; got 'free'"):
        GaussianLikelihood("free")


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("gaussian-2", r"\(4, 6, 8\) or \(4,\)"),
        ("gaussian-3", r"\(4, 6, 8\) or \(4, 6\)"),
        ("gaussian-4", r"\(4, 6, 8\)"),
        ("gaussian-latent", r"\(4, 6, 8\)"),
    ],
)
def test_log_variance_missing_or_of_the_wrong_shape(name, shapes):
    quantizer = build(name)
    z = torch.randn(4, 6, DIM)
    with pytest.raises(ValueError, match=rf"log_variance.*shape {shapes}; got none"):
        quantizer(z)
    with pytest.raises(ValueError, match=rf"log_variance.*shape {shapes}.*got .*\(4, 6, 3\)"):
        quantizer(z, log_variance=torch.zeros(4, 6, 3))
    broken = torch.zeros(4, 6, DIM)
    broken[0, 0, 0] = float("nan")
    with pytest.raises(ValueError, match="log_variance must be finite, got 1 NaN"):
        quantizer(z, log_variance=broken)


@pytest.mark.parametrize("name", ["gaussian-2", "gaussian-3", "gaussian-4"])
def test_a_log_variance_that_has_diverged(name):
    quantizer = build(name)
    for value in (-90.0, 90.0):
        with pytest.raises(ValueError, match=r"log_variance.*between -80 and 80, got values from .*has diverged"):
            quantizer(torch.randn(4, 6, DIM), log_variance=torch.full((4, 6, DIM), value))


@pytest.mark.parametrize("name", ["gaussian-1", "gaussian-fixed", "vmf", "vq", "vq-ema"])
def test_log_variance_where_there_is_no_use_for_it(name):
    with pytest.raises(ValueError, match="leave"):
        build(name)(torch.randn(4, DIM), log_variance=torch.zeros(4, DIM))


@pytest.mark.parametrize(
    ("construct", "message"),
    [
        (lambda: GaussianQuantizer(32.0, 8), "codebook_size must be a whole number, got 32.0"),
        (lambda: GaussianQuantizer(8, "8"), "dim must be a whole number, got '8'"),
        (lambda: VonMisesFisherLikelihood(5), "must be a tensor .* got 5; one_hot_directions"),
        (lambda: GaussianQuantizer(0, 8), "codebook_size.*at least 1, got 0"),
        (lambda: GaussianQuantizer(8, 0), "dim.*at least 1, got 0"),
        (lambda: GaussianQuantizer(8, 8, initial_variance=0.0), "initial_variance must be finite and > 0, got 0.0"),
        (lambda: VonMisesFisherQuantizer(8, 1), "dim must be at least 2, got 1"),
        (lambda: VonMisesFisherQuantizer(8, 2, initial_concentration=-1.0), "initial_concentration.*got -1.0"),
        (lambda: VectorQuantizer(8, 8, commitment=-0.5), "commitment.*at least 0, got -0.5"),
        (lambda: EMAVectorQuantizer(8, 8, decay=1.0), "decay must be at least 0 and below 1, got 1.0"),
        (lambda: EMAVectorQuantizer(8, 8, reset_every=0), "reset_every must be at least 1, got 0"),
        (lambda: EMAVectorQuantizer(8, 8, reset_below=1.5), "reset_below must be at least 0 and below 1, got 1.5"),
        (lambda: EMAVectorQuantizer(8, 8, reset_variance=-1.0), "reset_variance must be finite and > 0, got -1.0"),
        (lambda: GaussianLikelihood(decay=5.0), "decay must be at least 0 and below 1, got 5.0"),
        (lambda: GaussianLikelihood(initial_variance=-1.0), "initial_variance.*got -1.0"),
        (lambda: CategoricalLikelihood(1), "num_classes must be at least 2, got 1"),
        (lambda: VonMisesFisherLikelihood(torch.ones(3, 2)), "length 1, got lengths 1.414 to 1.414"),
        (lambda: VonMisesFisherLikelihood(torch.ones(3)), r"\(classes, dimensions >= 2\), got shape \(3,\)"),
        (lambda: VonMisesFisherLikelihood(torch.eye(3), initial_concentration=0.0), "initial_concentration.*got 0.0"),
        (lambda: VonMisesFisherLikelihood(torch.eye(3), concentration="fitted"), "concentration.*'fitted'"),
        (
            lambda: VonMisesFisherLikelihood(torch.eye(3), concentration="closed_form", concentration_offset=1.0),
            "concentration_offset.*got 1.0.*closed_form",
        ),
    ],
)
def test_constructors(construct, message):
    with pytest.raises((ValueError, TypeError), match=message):
        construct()


@pytest.mark.parametrize("likelihood", [CategoricalLikelihood(4), VonMisesFisherLikelihood(torch.eye(4))])
def test_labels(likelihood):
    output = torch.randn(2, 4, 3)
    with pytest.raises(
        ValueError, match=r"labels must lie between 0 and 3, got values from 0 to 7;.*larger num_classes"
    ):
        likelihood(output, torch.tensor([[0, 1, 7], [0, 1, 2]]))
    with pytest.raises(ValueError, match="between 0 and 3, got values from -1 to 1"):
        likelihood(output, torch.tensor([[0, 1, -1], [0, 1, 1]]))
    with pytest.raises(ValueError, match=r"labels must be integers between 0 and 3, got torch.float32"):
        likelihood(output, torch.rand(2, 3))
    with pytest.raises(ValueError, match=r"output must be .* = \(2, 4, 5\), got \(2, 4, 3\)"):
        likelihood(output, torch.zeros(2, 5, dtype=torch.int64))


def test_data_and_output_of_a_gaussian_likelihood():
    with pytest.raises(ValueError, match=r"real-valued data, got torch.uint8"):
        GaussianLikelihood()(torch.rand(2, 3), torch.zeros(2, 3, dtype=torch.uint8))
    with pytest.raises(ValueError, match="x must be finite, got 1 NaN"):
        GaussianLikelihood()(torch.rand(1, 2), torch.tensor([[0.5, float("nan")]]))
    with pytest.raises(ValueError, match=r"of the data's shape = \(2, 3\), got \(2, 4\)"):
        GaussianLikelihood()(torch.rand(2, 4), torch.rand(2, 3))

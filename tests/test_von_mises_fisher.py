"""The von Mises-Fisher distribution against high-precision arithmetic, integration and theory."""

import mpmath
import pytest
import torch
from scipy import stats

from sqvae.distributions.von_mises_fisher import (
    likeliest_concentration,
    log_density,
    log_normalizer,
    mean_resultant_length,
    sample,
)

DIMENSIONS = [2, 3, 4, 19, 20, 65, 256, 1024]
CONCENTRATIONS = [10.0 ** (exponent / 2) for exponent in range(-12, 13)]


def exact_log_normalizer(dim: int, kappa: float) -> mpmath.mpf:
    with mpmath.workdps(50):
        order, kappa = mpmath.mpf(dim) / 2 - 1, mpmath.mpf(kappa)
        bessel = mpmath.log(mpmath.besseli(order, kappa))
        return order * mpmath.log(kappa) - bessel - mpmath.mpf(dim) / 2 * mpmath.log(2 * mpmath.pi)


def exact_mean_length(dim: int, kappa: float) -> mpmath.mpf:
    with mpmath.workdps(50):
        order, kappa = mpmath.mpf(dim) / 2 - 1, mpmath.mpf(kappa)
        return mpmath.besseli(order + 1, kappa) / mpmath.besseli(order, kappa)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_log_normalizer_and_derivative_are_exact_in_float64(dim):
    kappa = torch.tensor(CONCENTRATIONS, dtype=torch.float64, requires_grad=True)
    values = log_normalizer(kappa, dim)
    (slopes,) = torch.autograd.grad(values.sum(), kappa)
    for value, slope, at in zip(values.tolist(), slopes.tolist(), CONCENTRATIONS, strict=True):
        expected, expected_slope = exact_log_normalizer(dim, at), -exact_mean_length(dim, at)
        assert abs((value - expected) / expected) <= 1e-10, at
        assert abs((slope - expected_slope) / expected_slope) <= 1e-8, at


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_log_normalizer_is_finite_and_close_in_float32(dim):
    kappa = torch.tensor([0.0, *CONCENTRATIONS], dtype=torch.float32, requires_grad=True)
    values = log_normalizer(kappa, dim)
    (slopes,) = torch.autograd.grad(values.sum(), kappa)
    assert values.dtype == torch.float32
    assert values.isfinite().all()
    assert slopes.isfinite().all()
    expected = torch.tensor([float(exact_log_normalizer(dim, at)) for at in CONCENTRATIONS])
    torch.testing.assert_close(values[1:], expected, rtol=1e-5, atol=1e-4)


def test_without_concentration_the_density_is_one_over_the_sphere_s_surface():
    values = [log_normalizer(torch.zeros((), dtype=torch.float64), dim).exp().item() for dim in (2, 3)]
    assert values == pytest.approx([1 / (2 * torch.pi), 1 / (4 * torch.pi)])


@pytest.mark.parametrize("dim", [2, 3, 5, 19])
@pytest.mark.parametrize("kappa", [0.1, 3.0, 200.0])
def test_the_density_integrates_to_one(dim, kappa):
    """Around the mean, an angle a has a sphere of one dimension less and radius sin a."""
    area = 2 * torch.pi ** ((dim - 1) / 2) / float(mpmath.gamma((dim - 1) / 2))
    angles = torch.linspace(0, torch.pi, 100_001, dtype=torch.float64)
    directions = torch.zeros(len(angles), dim, dtype=torch.float64)
    directions[:, 0], directions[:, 1] = angles.cos(), angles.sin()
    density = log_density(directions, directions[0], torch.tensor(kappa, dtype=torch.float64)).exp()
    total = area * torch.trapezoid(density * angles.sin() ** (dim - 2), angles)
    assert total.item() == pytest.approx(1, abs=1e-6)


def test_log_normalizer_is_twice_differentiable():
    kappa = torch.tensor([0.0, 0.5, 3.0, 40.0], dtype=torch.float64, requires_grad=True)
    for dim in (2, 3, 20):
        assert torch.autograd.gradgradcheck(
            lambda at, dim=dim: log_normalizer(at, dim), kappa[1:].detach().requires_grad_()
        )
        assert torch.autograd.gradcheck(
            lambda at, dim=dim: mean_resultant_length(at, dim), kappa[1:].detach().requires_grad_()
        )


@pytest.mark.parametrize("dim", [2, 3, 11, 256])
def test_the_likeliest_concentration_has_the_data_s_mean_length(dim):
    kappa = torch.tensor([1e-3, 0.1, 1.0, 3.0, 10.0, 100.0, 1e4, 1e7], dtype=torch.float64)
    found = likeliest_concentration(1 - mean_resultant_length(kappa, dim), dim)
    torch.testing.assert_close(found, kappa, rtol=2e-5, atol=0)
    assert likeliest_concentration(torch.tensor(1.5), dim) == 0  # directions that point away
    assert likeliest_concentration(torch.zeros(()), dim) > 1e6  # directions that are all the same


@pytest.mark.parametrize("dim", [2, 3, 8, 64])
@pytest.mark.parametrize("kappa", [0.0, 1.0, 30.0, 3000.0])
def test_samples_are_unit_vectors_with_the_right_mean(dim, kappa):
    mean = torch.nn.functional.normalize(torch.randn(dim, dtype=torch.float64), dim=-1)
    drawn = sample(mean.expand(40_000, dim), torch.tensor(kappa, dtype=torch.float64))
    torch.testing.assert_close(drawn.norm(dim=-1), torch.ones(40_000, dtype=torch.float64))
    length = mean_resultant_length(torch.tensor(kappa, dtype=torch.float64), dim)
    error = (drawn.mean(0) - length * mean).norm()
    assert error < 5 * ((1 - length**2) / 40_000) ** 0.5


@pytest.mark.parametrize(("dim", "kappa"), [(2, 0.5), (2, 20.0), (3, 5.0), (16, 40.0)])
def test_the_cosine_of_samples_has_the_right_distribution(dim, kappa):
    mean = torch.eye(dim, dtype=torch.float64)[0]
    cosines = sample(mean.expand(20_000, dim), torch.tensor(kappa, dtype=torch.float64))[:, 0]
    grid = torch.linspace(0, torch.pi, 20_001, dtype=torch.float64).flip(0)
    density = (kappa * (grid.cos() - 1)).exp() * grid.sin() ** (dim - 2)
    cumulative = torch.cat((torch.zeros(1, dtype=torch.float64), torch.cumulative_trapezoid(density, -grid)))
    cumulative /= cumulative[-1].clone()

    def distribution(values):
        positions = torch.searchsorted(grid.cos(), torch.as_tensor(values).contiguous()).clamp_max(20_000)
        return cumulative[positions].numpy()

    assert stats.kstest(cosines.numpy(), distribution).pvalue > 1e-4


@pytest.mark.parametrize(("dim", "kappa"), [(2, 0.3), (2, 8.0), (3, 4.0), (19, 60.0), (64, 1e4), (256, 500.0)])
def test_the_gradient_of_samples_is_that_of_the_quantile(dim, kappa):
    """Moving the concentration moves a draw along its quantile: the implicit gradient must say how far."""
    mean = torch.eye(dim, dtype=torch.float64)[0].expand(3, dim)
    concentration = torch.full((3,), kappa, dtype=torch.float64, requires_grad=True)
    cosines = sample(mean, concentration)[:, 0]
    (slopes,) = torch.autograd.grad(cosines.sum(), concentration)

    def below(cosine: float, at: float) -> mpmath.mpf:
        """The probability of a smaller cosine, by the angle so that two dimensions have no singularity."""
        with mpmath.workdps(25):
            mode = mpmath.acos(mpmath.mpf(cosine))

            def density(angle):
                return mpmath.exp(at * (mpmath.cos(angle) - cosine)) * (mpmath.sin(angle) / mpmath.sin(mode)) ** (
                    dim - 2
                )

            width = 1 / mpmath.sqrt(dim + at)
            cuts = [max(mpmath.mpf(0), min(mpmath.pi, mode + step * width)) for step in range(-12, 13, 3)]
            upper = mpmath.quad(density, [mpmath.mpf(0), *[cut for cut in cuts if cut < mode], mode])
            lower = mpmath.quad(density, [mode, *[cut for cut in cuts if cut > mode], mpmath.pi])
            return lower / (lower + upper)

    for cosine, slope in zip(cosines.tolist(), slopes.tolist(), strict=True):
        step, shift = kappa * 1e-4, (1 - cosine) * 1e-4
        by_concentration = (below(cosine, kappa + step) - below(cosine, kappa - step)) / (2 * step)
        density = (below(cosine + shift, kappa) - below(cosine - shift, kappa)) / (2 * shift)
        assert slope == pytest.approx(float(-by_concentration / density), rel=1e-4)


def test_samples_are_differentiable_in_the_mean():
    """With the same seed the cosines are the same, whatever the mean: differences can be taken."""

    def draw(mean):
        torch.manual_seed(1)
        return sample(mean, torch.tensor(10.0, dtype=torch.float64))

    mean = torch.nn.functional.normalize(torch.randn(5, 3, dtype=torch.float64), dim=-1)
    assert torch.autograd.gradcheck(draw, mean.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_concentration_is_drawn_and_what_is_none_is_refused(dtype):
    mean = torch.eye(3, dtype=dtype)
    for concentration in (1e-30, 1e10, 1e16, 1e30):
        drawn = sample(mean, torch.tensor(concentration, dtype=dtype))
        torch.testing.assert_close(drawn.norm(dim=-1), torch.ones(3, dtype=dtype))
    for concentration in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="concentration must be finite"):
            sample(mean, torch.tensor(concentration, dtype=dtype))


def test_one_dimension_has_no_directions():
    with pytest.raises(ValueError, match="dim must be at least 2, got 1"):
        log_normalizer(torch.tensor(1.0), 1)

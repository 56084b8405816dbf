"""Likelihoods: a contract over all of them, and each against its own formula."""

import copy
import math

import pytest
import torch
from scipy import stats

from families import build_likelihood
from sqvae import CategoricalLikelihood, GaussianLikelihood, VonMisesFisherLikelihood
from sqvae.likelihoods import LIKELIHOODS, half_circle_directions, one_hot_directions

every = pytest.mark.parametrize("name", LIKELIHOODS)


@every
def test_the_contract(name):
    likelihood, x, output = build_likelihood(name)
    output.requires_grad_()
    fit = likelihood(output, x)
    assert fit.loss.shape == fit.log_likelihood.shape == ()
    fit.loss.backward()
    assert output.grad is not None
    assert output.grad.abs().sum() > 0
    assert likelihood.predict(output).shape == x.shape
    embedded = likelihood.embed(x)
    assert embedded.is_floating_point()
    assert embedded.shape[0] == x.shape[0]
    assert embedded.shape[-2:] == x.shape[-2:]


@every
def test_the_log_likelihood_is_a_sum_over_the_sample_and_a_mean_over_the_batch(name):
    likelihood, x, output = build_likelihood(name)
    likelihood.eval()
    once = likelihood(output, x).log_likelihood
    repeated = likelihood(torch.cat((output, output)), torch.cat((x, x))).log_likelihood
    wider = likelihood(torch.cat((output, output), -1), torch.cat((x, x), -1)).log_likelihood
    torch.testing.assert_close(repeated, once)
    torch.testing.assert_close(wider, 2 * once)


@every
def test_prediction_recovers_data_that_the_output_points_at(name):
    likelihood, x, _ = build_likelihood(name)
    assert torch.equal(likelihood.predict(likelihood.embed(x)), x)


@every
def test_autocast_does_not_touch_the_likelihood(name):
    likelihood, x, output = build_likelihood(name)
    exact = likelihood.eval()(output.bfloat16().float(), x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = likelihood(output.bfloat16(), x)
    torch.testing.assert_close(cast.loss, exact.loss)


def test_gaussian_log_density():
    x, mean = torch.randn(6, 3, 4).double(), torch.randn(6, 3, 4).double()
    likelihood = GaussianLikelihood("fixed", initial_variance=0.37).double()
    expected = stats.norm(mean, math.sqrt(0.37)).logpdf(x).sum() / 6
    assert likelihood(mean, x).log_likelihood.item() == pytest.approx(expected)


def test_closed_form_loss_is_half_d_log_mse_and_its_density_complete():
    x, mean = torch.randn(6, 3, 4).double(), torch.randn(6, 3, 4).double()
    fit = GaussianLikelihood("closed_form").double()(mean, x)
    error = (x - mean).square().mean().item()
    assert fit.loss.item() == pytest.approx(12 / 2 * math.log(error))
    assert fit.variance.item() == pytest.approx(error)
    expected = stats.norm(mean, math.sqrt(error)).logpdf(x).sum() / 6
    assert fit.log_likelihood.item() == pytest.approx(expected)


def test_each_group_has_a_variance_of_its_own():
    """Coarse samples have a hundred times the error of fine ones, and do not take their gradient away."""
    torch.manual_seed(0)
    x = torch.rand(6, 3, 4, 4)
    output = (x + torch.tensor([1.0, 1, 0.1, 0.1, 0.1, 0.1]).view(-1, 1, 1, 1) * torch.randn_like(x)).requires_grad_()
    depths = torch.tensor([1, 1, 3, 3, 3, 3])
    groups = depths.unsqueeze(-1) == torch.arange(1, 4)
    likelihood = GaussianLikelihood()
    fit = likelihood(output, x, groups)
    errors = [(output - x)[depths == depth].square().mean() for depth in (1, 3)]
    expected = 24 * (errors[0].log() / 3 + 2 * errors[1].log() / 3)
    torch.testing.assert_close(fit.loss, expected)
    torch.testing.assert_close(fit.log_likelihood, -expected - 24 * (math.log(2 * math.pi) + 1))
    torch.testing.assert_close(fit.variance, errors[1].detach())
    torch.testing.assert_close(likelihood.log_variance.exp(), errors[1].detach())
    own, other = (torch.autograd.grad(loss, output, retain_graph=True)[0] for loss in (fit.loss, expected))
    torch.testing.assert_close(own, other)
    likelihood(output, x, groups & (depths == 1).unsqueeze(-1))  # without the finest: its variance stays
    torch.testing.assert_close(likelihood.log_variance.exp(), errors[1].detach())


@every
def test_one_group_is_no_group(name):
    likelihood, x, output = build_likelihood(name)
    twin = copy.deepcopy(likelihood)
    alike = twin(output, x, torch.ones(len(x), 1, dtype=torch.bool)).loss
    torch.testing.assert_close(alike, likelihood(output, x).loss)


def test_learned_and_closed_form_variance_agree_at_the_optimum():
    """Both fit a line to noisy data: slope, variance and log-likelihood must come out alike."""
    inputs = torch.linspace(-1, 1, 400, dtype=torch.float64).unsqueeze(-1)
    x = 2 * inputs + 0.3 * torch.randn(400, 1, dtype=torch.float64)
    outcomes = []
    for variance in ("closed_form", "learned"):
        likelihood = GaussianLikelihood(variance).double()
        slope = torch.zeros((), dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS([slope, *likelihood.parameters()], max_iter=200, line_search_fn="strong_wolfe")

        def closure(likelihood=likelihood, slope=slope, optimizer=optimizer):
            optimizer.zero_grad()
            loss = likelihood(slope * inputs, x).loss
            loss.backward()
            return loss

        optimizer.step(closure)
        fit = likelihood(slope * inputs, x)
        outcomes.append((slope.item(), fit.variance.item(), fit.log_likelihood.item()))
    assert outcomes[0] == pytest.approx(outcomes[1], rel=1e-5)


def test_in_eval_the_closed_form_uses_the_average_of_training_and_not_the_data_asked_about():
    likelihood = GaussianLikelihood()
    for _ in range(5):
        x = torch.rand(10, 4)
        likelihood(x + 0.2, x)
    likelihood.eval()
    assert likelihood(x + 1.0, x).variance.item() == pytest.approx(0.04, rel=1e-4)
    few, many = likelihood(x[:1] + 1, x[:1]), likelihood(x + 1, x)
    torch.testing.assert_close(few.log_likelihood, many.log_likelihood)


def test_the_average_is_one_of_many_batches():
    """Plain at first: the logarithms of the first three errors, 0.01, 0.04 and 0.16, have a mean of log 0.04."""
    likelihood = GaussianLikelihood()
    for distance in (0.1, 0.2, 0.4):
        x = torch.rand(10, 4)
        likelihood(x + distance, x)
    assert likelihood.eval()(x, x).variance.item() == pytest.approx(0.04, rel=1e-4)


def test_a_perfect_reconstruction_stays_finite():
    x = torch.rand(4, 3, requires_grad=True)
    fit = GaussianLikelihood()(x, x.detach())
    fit.loss.backward()
    assert fit.loss.isfinite()
    assert x.grad.isfinite().all()


def test_categorical_is_the_cross_entropy():
    logits, labels = torch.randn(3, 5, 2, 2), torch.randint(0, 5, (3, 2, 2))
    fit = CategoricalLikelihood(5)(logits, labels)
    probabilities = logits.softmax(1).gather(1, labels.unsqueeze(1))
    assert fit.log_likelihood.item() == pytest.approx(probabilities.log().sum().item() / 3, rel=1e-5)


@pytest.mark.parametrize("directions", [one_hot_directions(5), half_circle_directions(5)])
def test_vmf_log_density_is_scipy_s(directions):
    space = directions.shape[1]
    likelihood = VonMisesFisherLikelihood(directions.double(), initial_concentration=7.0).double()
    output, labels = torch.randn(3, space, 2, 2).double(), torch.randint(0, 5, (3, 2, 2))
    fit = likelihood(output, labels)
    means = torch.nn.functional.normalize(output, dim=1).movedim(1, -1).reshape(-1, space).numpy()
    values = directions.double()[labels].reshape(-1, space).numpy()
    each = [stats.vonmises_fisher(mean, 7.0).logpdf(value) for mean, value in zip(means, values, strict=True)]
    assert fit.log_likelihood.item() == pytest.approx(float(sum(each)) / 3, rel=1e-6)


def test_vmf_s_concentration_is_trained_to_fit_the_data():
    """The maximum-likelihood concentration is the one whose mean length is that of the data."""
    likelihood = VonMisesFisherLikelihood(half_circle_directions(4), initial_concentration=100.0)
    output = torch.tensor([1.0, 0.0]).view(1, 2, 1).expand(1, 2, 4)
    optimizer = torch.optim.Adam(likelihood.parameters(), lr=0.05)
    labels = torch.tensor([[0, 0, 0, 1]])
    for _ in range(400):
        optimizer.zero_grad()
        likelihood(output, labels).loss.backward()
        optimizer.step()
    from sqvae.distributions.von_mises_fisher import mean_resultant_length

    length = mean_resultant_length(likelihood.log_concentration.exp().detach(), 2).item()
    assert length == pytest.approx((3 + math.cos(math.pi / 4)) / 4, abs=1e-3)


@pytest.mark.parametrize("directions", [half_circle_directions(5), one_hot_directions(5)], ids=["grey", "one-hot"])
def test_vmf_s_closed_form_is_the_highest_likelihood_and_its_gradient(directions):
    """As if the concentration had been chosen by hand: no other fits better, and the output's gradient is the same."""
    labels = torch.randint(0, 5, (3, 4, 4))
    output = (directions[labels].movedim(-1, 1) + 0.3 * torch.randn(3, directions.shape[1], 4, 4)).requires_grad_()
    fit = VonMisesFisherLikelihood(directions, concentration="closed_form")(output, labels)
    best = fit.concentration.item()
    chosen = [VonMisesFisherLikelihood(directions, initial_concentration=best * factor) for factor in (0.9, 1, 1.1)]
    lower, equal, higher = (one(output, labels).log_likelihood.item() for one in chosen)
    assert fit.log_likelihood.item() == pytest.approx(equal, rel=1e-4)
    assert equal > max(lower, higher)
    own, other = (torch.autograd.grad(loss, output)[0] for loss in (fit.loss, chosen[1](output, labels).loss))
    torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4)


def test_in_eval_vmf_s_closed_form_uses_the_average_of_training():
    directions = one_hot_directions(4)
    likelihood = VonMisesFisherLikelihood(directions, concentration="closed_form")
    labels = torch.randint(0, 4, (4, 6))
    found = [
        likelihood(directions[labels].movedim(-1, 1) + width * torch.randn(4, 4, 6), labels).concentration.log()
        for width in (0.1, 0.3, 0.2)
    ]
    likelihood.eval()
    far = likelihood(torch.randn(4, 4, 6), labels)
    assert far.concentration.log().item() == pytest.approx(torch.stack(found).mean().item(), rel=1e-4)
    assert "log_concentration" in dict(likelihood.named_buffers())  # it comes along with the weights


def test_a_vmf_decoder_that_points_away_still_learns_in_closed_form():
    output = (-one_hot_directions(3)[torch.zeros(1, 2, dtype=torch.int64)].movedim(-1, 1) + 0.1).requires_grad_()
    fit = VonMisesFisherLikelihood(one_hot_directions(3), concentration="closed_form")(output, torch.zeros(1, 2).long())
    fit.loss.backward()
    assert fit.concentration == 1
    assert (output.grad[:, 0] < 0).all()


def test_the_closed_form_leaves_places_out_that_are_ignored():
    directions, labels = one_hot_directions(3), torch.tensor([[0, 1, 2, 2]])
    output = torch.randn(1, 3, 4) + 3 * directions[labels].movedim(-1, 1)
    some = VonMisesFisherLikelihood(directions, concentration="closed_form", ignore=2)(output, labels)
    alone = VonMisesFisherLikelihood(directions, concentration="closed_form")(output[..., :2], labels[:, :2])
    torch.testing.assert_close(some.concentration, alone.concentration)
    nothing = VonMisesFisherLikelihood(directions, concentration="closed_form", ignore=2)(output, labels * 0 + 2)
    assert nothing.loss.isfinite()


def test_a_perfect_reconstruction_of_labels_stays_finite_in_closed_form():
    directions, labels = one_hot_directions(3), torch.tensor([[0, 1, 2]])
    output = directions[labels].movedim(-1, 1).clone().requires_grad_()
    fit = VonMisesFisherLikelihood(directions, concentration="closed_form")(output, labels)
    fit.loss.backward()
    assert fit.loss.isfinite()
    assert output.grad.isfinite().all()


@pytest.mark.parametrize("directions", [half_circle_directions(256), one_hot_directions(256)], ids=["grey", "one-hot"])
@pytest.mark.parametrize("concentration", [1e2, 1e4, 1e6])
def test_vmf_in_float32_has_the_loss_and_gradients_of_float64(directions, concentration):
    """Densities of sharp directions: kappa v.f and log C are large and cancel."""
    labels = torch.randint(0, 256, (2, 32, 32))
    noise = torch.randn(2, directions.shape[1], 32, 32, dtype=torch.float64) / math.sqrt(concentration)
    outcomes = []
    for dtype in (torch.float32, torch.float64):
        likelihood = VonMisesFisherLikelihood(directions.to(dtype), initial_concentration=concentration).to(dtype)
        output = (directions.to(dtype)[labels].movedim(-1, 1) + noise.to(dtype)).requires_grad_()
        loss = likelihood(output, labels).loss
        gradients = torch.autograd.grad(loss, [output, likelihood.log_concentration])
        outcomes.append([value.double() for value in (loss, *gradients)])
    for single, double in zip(*outcomes, strict=True):
        torch.testing.assert_close(single, double, rtol=2e-3, atol=2e-3 * double.abs().max().item())


def test_ordered_directions_are_a_half_circle_of_equal_steps():
    directions = half_circle_directions(256)
    assert directions.shape == (256, 2)
    steps = (directions[1:] * directions[:-1]).sum(-1).clamp(-1, 1)
    torch.testing.assert_close(steps, torch.full((255,), math.cos(math.pi / 256)))
    assert (directions[:, 1] >= 0).all()


def test_the_shortfall_from_an_axis_is_one_minus_the_cosine_with_its_gradient():
    from sqvae.likelihoods.categorical import AxisShortfall

    output = torch.randn(3, 5, 4, 2, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 5, (3, 4, 2))
    v = torch.eye(5, dtype=torch.float64)[labels].movedim(-1, 1)
    plain = 1 - (v * torch.nn.functional.normalize(output, dim=1)).sum(1)
    torch.testing.assert_close(AxisShortfall.apply(output, labels), plain)
    assert torch.autograd.gradcheck(AxisShortfall.apply, (output, labels))


def test_the_shortfall_from_an_axis_has_digits_where_it_is_small_and_none_missing_where_a_vector_is_nothing():
    from sqvae.likelihoods.categorical import AxisShortfall

    labels = torch.tensor([0, 0, 0, 1])
    output = torch.tensor([[1.0, 1e-5], [0.0, 0.0], [-1.0, 0.0], [1e-20, -1e-20]], requires_grad=True)
    shortfalls = AxisShortfall.apply(output, labels)
    torch.testing.assert_close(shortfalls, torch.tensor([5e-11, 1.0, 2.0, 1.0]), rtol=1e-5, atol=0)
    shortfalls.sum().backward()
    assert output.grad.isfinite().all()

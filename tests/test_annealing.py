"""The schedule for any number of steps: what it says, what it does to gradients, and that it resumes exactly."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from runs import tiny, weights_of, with_quantizer, write_pictures
from sqvae import Annealing, EMAVectorQuantizer, GaussianQuantizer, VonMisesFisherQuantizer, load
from sqvae.data import digits
from sqvae.distributions import assign
from sqvae.networks import conv_decoder, conv_encoder
from sqvae.quantizers import Stage, stochastic
from sqvae.runs import resume, train
from sqvae.training import ANY_BUDGET, Plan, TrainingStoppedError, any_budget
from sqvae.training.schedules import SCHEDULES, stage
from test_exact_resume import SignalAt

QUANTIZERS = {
    "I": lambda: GaussianQuantizer(12, 4, initial_variance=2.0),
    "III": lambda: GaussianQuantizer(12, 4, "per_position", initial_variance=2.0),
    "IV": lambda: GaussianQuantizer(12, 4, "per_dimension", initial_variance=2.0),
    "vMF": lambda: VonMisesFisherQuantizer(12, 4, initial_concentration=3.0),
}


def scale_of(quantizer):
    return quantizer.log_concentration if hasattr(quantizer, "log_concentration") else quantizer.log_variance


@pytest.fixture(params=QUANTIZERS)
def quantizer(request):
    torch.manual_seed(0)
    return QUANTIZERS[request.param]().double()


def forward(quantizer, told):
    """The same encodings, with the same noise."""
    torch.manual_seed(1)
    z = torch.randn(5, 7, 4, dtype=torch.float64, requires_grad=True)
    head = 0.3 * torch.randn(5, 7, 4, dtype=torch.float64)
    options = {"log_variance": head} if quantizer.needs_log_variance else {}
    return z, quantizer(z, told, **options)


class TestWhatTheStageDoes:
    def test_values_are_the_same(self, quantizer):
        _, usual = forward(quantizer, 0.7)
        _, told = forward(quantizer, Stage(0.7, 0.1, 0.5, 2.0))
        torch.testing.assert_close(told.z_q, usual.z_q)
        torch.testing.assert_close(told.loss, usual.loss)
        torch.testing.assert_close(told.divergence, usual.divergence)

    @pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
    def test_the_entropy_pulls_the_spread_by_its_weight_and_nothing_else_less(self, quantizer, weight):
        def gradients(told):
            z, quantized = forward(quantizer, told)
            return torch.autograd.grad(quantized.entropy, (scale_of(quantizer), z, quantizer.codebook))

        usual, told = gradients(0.7), gradients(Stage(0.7, weight))
        assert abs(usual[0]) > 0.1
        torch.testing.assert_close(told[0], weight * usual[0], rtol=1e-6, atol=1e-9)
        for own, before in zip(told[1:], usual[1:], strict=True):
            torch.testing.assert_close(own, before)

    def test_a_tensor_says_the_same_as_a_number(self, quantizer):
        def gradient(told):
            return torch.autograd.grad(forward(quantizer, told)[1].loss, scale_of(quantizer))[0]

        tensors = Stage(*(torch.tensor(value, dtype=torch.float64) for value in (0.7, 0.3, 0.5)))
        torch.testing.assert_close(gradient(tensors), gradient(Stage(0.7, 0.3, 0.5)))

    def test_the_decoders_gradient_goes_straight_through_by_its_share(self, quantizer):
        weights = torch.randn(5, 7, 4, dtype=torch.float64)

        def gradient(told):
            z, quantized = forward(quantizer, told)
            return torch.autograd.grad((quantized.z_q * weights).sum(), z)[0]

        def straight(z):
            return torch.autograd.grad((quantizer.project(z) * weights).sum(), z)[0]

        z, _ = forward(quantizer, 0.7)
        torch.testing.assert_close(gradient(Stage(0.7, 1.0, 0.4)), gradient(0.7) + 0.4 * straight(z))

    def test_evenness_is_the_gradient_of_the_mean_use_s_divergence_through_the_draws(self, quantizer, monkeypatch):
        """That of KL(mean use || even): a price for each code, the logarithm of its use, that the draws pay."""
        kept = []
        monkeypatch.setattr(stochastic, "assign", lambda *a, **b: kept.append(assign(*a, **b)) or kept[-1])

        def gradients(told):
            z, quantized = forward(quantizer, told)
            usage, drawn = kept[-1].usage, kept[-1].drawn
            price = (usage / usage.mean()).log()
            inputs = (z, quantizer.codebook)
            return tuple(
                torch.autograd.grad(output, inputs, retain_graph=True)
                for output in (quantized.loss, (drawn * price).sum() / 5)  # samples
            )

        usual, paid = gradients(Stage(0.7))
        told, _ = gradients(Stage(0.7, evenness=0.5))
        for own, before, more in zip(told, usual, paid, strict=True):
            torch.testing.assert_close(own, before + 0.5 * more)

    def test_evenness_makes_use_even(self):
        """Encodings that all lie near one code come to be shared out among codes."""
        torch.manual_seed(0)
        z, perplexities = torch.cat((0.2 * torch.randn(1, 450, 4), torch.randn(1, 50, 4)), 1), []
        for evenness in (0.0, 3.0):
            torch.manual_seed(1)
            quantizer = GaussianQuantizer(16, 4, initial_variance=0.3)
            optimizer = torch.optim.Adam([quantizer.codebook], lr=0.05)
            for _ in range(60):
                optimizer.zero_grad()
                quantizer(z, Stage(0.7, evenness=evenness)).loss.backward()
                optimizer.step()
            perplexities.append(float(quantizer.eval()(z).perplexity))
        assert perplexities[1] > 1.3 * perplexities[0]

    def test_nothing_of_it_in_eval(self, quantizer):
        z, quantized = forward(quantizer.eval(), Stage(0.7, 0.1, 1.0, 1.0))
        assert torch.autograd.grad(quantized.z_q.sum(), z, allow_unused=True) == (None,)


CERTAIN = Stage(0.7, 0.3, 0.5, 1.0, price=0.5)


def train_certain(quantizer, batches):
    """The last result of a stage where assignments are certain, over batches of encodings."""
    for z in batches:
        head = {"log_variance": torch.zeros_like(z)} if quantizer.needs_log_variance else {}
        result = quantizer(z, CERTAIN, **head)
    return result


class TestOnceAssignmentsAreCertain:
    @pytest.fixture(autouse=True)
    def settling(self, monkeypatch):
        monkeypatch.setattr(VonMisesFisherQuantizer, "settles", True)

    def test_positions_take_their_likeliest_code_and_its_vector(self, quantizer):
        vectors = quantizer.vectors().detach().clone()
        z, result = forward(quantizer, CERTAIN)
        twin = QUANTIZERS[next(name for name, make in QUANTIZERS.items() if repr(make()) == repr(quantizer))]().double()
        twin.load_state_dict({key: value for key, value in quantizer.state_dict().items() if key != "usage"})
        twin.codebook.data.copy_(vectors)
        head = forward(twin.eval(), 0.7)[1]
        if not quantizer.needs_log_variance:  # the trained scale has moved by a little since
            assert torch.equal(result.codes, head.codes)
        torch.testing.assert_close(result.z_q, vectors[result.codes])
        weights = torch.randn_like(z)
        own = torch.autograd.grad((result.z_q * weights).sum(), z, retain_graph=True)[0]
        straight = torch.autograd.grad((quantizer.project(z) * weights).sum(), z)[0]
        torch.testing.assert_close(own, straight)
        commitment = (quantizer.project(z) - vectors[result.codes]).square().sum() / 5
        torch.testing.assert_close(result.loss, commitment)

    def test_codes_follow_encodings_as_those_of_vq_do(self):
        torch.manual_seed(0)
        quantizer, rival = GaussianQuantizer(6, 4), EMAVectorQuantizer(6, 4, commitment=1.0)
        rival.load_state_dict({**rival.state_dict(), "codebook": quantizer.codebook.detach()})
        rival.smoothed_sums.copy_(quantizer.codebook.detach())
        quantizer.usage = torch.ones(6)
        mask = torch.rand(5, 7) < 0.8
        for _ in range(3):
            z = torch.randn(5, 7, 4)
            told, known = quantizer(z, CERTAIN._replace(price=0.0), mask=mask), rival(z, mask=mask)
            assert torch.equal(told.codes[mask], known.codes[mask])
            torch.testing.assert_close(told.loss, known.loss)
            torch.testing.assert_close(quantizer.codebook, rival.codebook)
            torch.testing.assert_close(quantizer.usage, rival.smoothed_counts)

    def test_codes_of_few_components_follow_as_far_as_they_can(self):
        torch.manual_seed(0)
        quantizer = GaussianQuantizer(6, 8, code_dim=3)
        z = torch.randn(40, 9, 8)
        before = train_certain(quantizer, [z]).loss.item()
        after = train_certain(quantizer, [z] * 200).loss.item()
        assert after < 0.93 * before

    def test_a_code_that_is_used_often_has_a_price(self, quantizer):
        """Encodings between two codes go to the one that is used less."""
        z = torch.randn(400, 5, 4, dtype=torch.float64)
        even = train_certain(quantizer, [z] * 200)
        quantizer.usage[even.counts.argmax()] *= 20
        for price, fewer in ((0.0, False), (0.5, True)):
            twin = copy.deepcopy(quantizer)
            head = {"log_variance": torch.zeros_like(z)} if quantizer.needs_log_variance else {}
            counts = twin(z, CERTAIN._replace(price=price), **head).counts
            assert (counts[even.counts.argmax()] < 0.9 * even.counts.max()) == fewer

    def test_a_lost_code_is_found_again(self, quantizer):
        z = torch.randn(400, 5, 4, dtype=torch.float64)
        result = train_certain(quantizer, [z] * 50)
        quantizer.codebook.data[3] = 1.5 * quantizer.vectors()[result.counts.argmax()].detach()
        quantizer.usage[3] = 1e-3
        assert train_certain(quantizer, [z] * 300).counts[3] > 50

    def test_the_scale_goes_to_its_maximum_likelihood(self, quantizer):
        z = torch.randn(50, 20, 4, dtype=torch.float64)
        result = train_certain(quantizer, [z] * 3000)
        scale = scale_of(quantizer).detach().double()
        assert float(result.regularizer) / 20 == pytest.approx(float(quantizer._dequantization_cost(scale)), rel=0.06)

    def test_a_fixed_variance_stays(self):
        quantizer = GaussianQuantizer(6, 4, "fixed", initial_variance=0.5)
        train_certain(quantizer, [torch.randn(50, 20, 4)] * 5)
        assert quantizer.log_variance.exp() == pytest.approx(0.5)

    def test_parameters_have_a_gradient_of_zero(self, quantizer):
        z, result = forward(quantizer, CERTAIN)
        (result.loss + result.z_q.sum()).backward()
        assert all((parameter.grad == 0).all() for parameter in quantizer.parameters())
        assert z.grad.abs().sum() > 0

    def test_the_smoothed_usage_is_saved_once_there_is_one(self, quantizer):
        assert "usage" not in quantizer.state_dict()
        fresh = {name: make().double() for name, make in QUANTIZERS.items()}
        twin = next(other for other in fresh.values() if repr(other) == repr(quantizer))
        twin.load_state_dict(quantizer.state_dict())
        train_certain(quantizer, [torch.randn(5, 7, 4, dtype=torch.float64)])
        twin.load_state_dict(quantizer.state_dict())
        for own, other in zip(quantizer.state_dict().values(), twin.state_dict().values(), strict=True):
            assert torch.equal(own, other)
        z = torch.randn(5, 7, 4, dtype=torch.float64)
        torch.manual_seed(1)
        expected = train_certain(quantizer, [z])
        torch.manual_seed(1)
        assert torch.equal(train_certain(twin, [z]).loss, expected.loss)
        assert torch.equal(twin.codebook, quantizer.codebook)

    def test_nothing_of_it_in_eval(self, quantizer):
        state = {key: value.clone() for key, value in quantizer.state_dict().items()}
        result = forward(quantizer.eval(), CERTAIN)[1]
        assert torch.equal(result.loss, forward(quantizer, 0.7)[1].loss)
        assert all(torch.equal(value, state[key]) for key, value in quantizer.state_dict().items())


def test_codes_on_a_sphere_stay_random():
    z = torch.randn(5, 7, 4)
    quantizer = VonMisesFisherQuantizer(12, 4)
    torch.manual_seed(1)
    usual = quantizer(z, CERTAIN._replace(price=None)).loss
    torch.manual_seed(1)
    assert torch.equal(quantizer(z, CERTAIN).loss, usual)
    assert quantizer.usage is None


class TestWhatTheScheduleSays:
    def test_from_the_bound_to_the_error(self):
        annealing, plan = Annealing(1000), any_budget(steps=1000)
        optimizer = torch.optim.SGD(annealing.groups(nn.Linear(2, 2)))
        assert annealing.begin(0, optimizer) == Stage(1.0, 1.0, 0.0, plan.evenness)
        assert annealing.begin(500, optimizer) == stage(plan, 500, 1000)
        assert annealing.begin(1000, optimizer) == pytest.approx((0.3, 0.1, 1.0, 1.0, 0.125))
        assert annealing.begin(5000, optimizer) == pytest.approx((0.3, 0.1, 1.0, 1.0, 0.125))

    @pytest.mark.parametrize(("steps", "first"), [(1, 1), (400, 160), (843, 338), (16_000, 6_400)])
    def test_assignments_become_certain(self, steps, first):
        annealing, optimizer = Annealing(steps), torch.optim.SGD(nn.Linear(2, 2).parameters())
        assert not annealing.begin(first - 1, optimizer).certain
        assert annealing.begin(first, optimizer).certain
        assert annealing.begin(steps, optimizer).certain
        assert annealing.begin(steps, optimizer).price == pytest.approx(0.125)

    def test_the_price_falls_evenly(self):
        plan = any_budget(certain_from=0.4, price=0.5, price_end=0.0)
        prices = [stage(plan, step, 1000).price for step in (399, 400, 700, 850, 1000)]
        assert prices == [None, *map(pytest.approx, (0.5, 0.25, 0.125, 0.0))]

    def test_epochs_of_a_run_that_becomes_certain_are_compared_by_their_error(self):
        assert any_budget().compared_latent_weight == 0
        assert any_budget(certain_from=1.0).compared_latent_weight == 0.1
        assert Plan().compared_latent_weight == 1

    def test_a_long_run_by_another_plan_is_as_it_was(self):
        plan = Plan(schedule="cosine", learning_rate=3e-3)
        assert SCHEDULES["cosine"](plan, 20_000).rate(0) == 3e-3
        assert stage(plan, 20_000, 20_000).latent_weight == 1

    def test_codes_learn_faster_and_all_rates_fall_to_0(self):
        model = nn.Sequential(nn.Linear(2, 4), GaussianQuantizer(8, 4), nn.Linear(4, 2))
        annealing = Annealing(100, learning_rate=1e-3)
        optimizer = torch.optim.Adam(annealing.groups(model))
        network, own = optimizer.param_groups
        assert {id(p) for p in own["params"]} == {id(p) for p in model[1].parameters()}
        assert len(network["params"]) == 4
        annealing.begin(0, optimizer)
        assert (network["lr"], own["lr"]) == pytest.approx((1e-3, 5e-3))
        annealing.begin(50, optimizer)
        assert (network["lr"], own["lr"]) == pytest.approx((5e-4, 2.5e-3))
        annealing.begin(100, optimizer)
        assert (network["lr"], own["lr"]) == pytest.approx((0, 0), abs=1e-12)

    def test_codes_that_are_not_trained_make_no_group(self):
        model = nn.Sequential(nn.Linear(2, 4), GaussianQuantizer(8, 4).requires_grad_(False))
        assert len(Annealing(100).groups(model)) == 1

    def test_the_papers_plan_says_nothing_of_it(self):
        assert not Plan().anneals
        assert stage(Plan(), 700, 1000)[1:] == (1.0, 0.0, 0.0, None)

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"latent_weight_end": 0.0}, "latent_weight_end must be more than 0"),
            ({"certain_from": 0.0}, "certain_from must be more than 0"),
            ({"straight_through_end": -0.1}, "straight_through_end must be"),
            ({"codebook_rate": 0.0}, "codebook_rate must be"),
            ({"evenness": -1.0}, "evenness must be"),
            ({"price": -1.0}, "price must be"),
            ({"price_end": -1.0}, "price_end must be"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, settings, words):
        with pytest.raises(ValueError, match=words):
            Plan(**settings)

    def test_a_run_has_steps(self):
        with pytest.raises(ValueError, match="steps must be at least 1"):
            Annealing(0)


@pytest.mark.parametrize("certain_from", [1.0, 0.2, 0.5])
@pytest.mark.parametrize("name", ["gaussian-1", "gaussian-4", "vmf"])
def test_it_resumes_exactly(tmp_path, name, certain_from):
    """Before, after and across the step from which assignments are certain."""
    source = write_pictures(tmp_path / "pictures.npy")
    experiment = with_quantizer(tiny(source, **{**ANY_BUDGET, "certain_from": certain_from}), name)
    if name == "vmf":
        experiment = replace(experiment, data=replace(experiment.data, kind="levels"))
    whole = train(experiment, tmp_path / "whole", announce=_quiet)
    with pytest.raises(TrainingStoppedError):
        train(experiment, tmp_path / "cut", watchers=[SignalAt(17)], announce=_quiet)
    assert ("quantizer.usage" in weights_of(whole.last)) == (certain_from < 1 and name != "vmf")
    cut = resume(tmp_path / "cut", announce=_quiet)
    assert weights_of(cut.last) == weights_of(whole.last)
    assert load(cut.last).codebook_size == 16


def _quiet(text):
    pass


def test_in_a_loop_of_ones_own_codes_are_used_and_agree_with_what_was_decoded():
    """A few hundred steps on real digits: many codes, and one code as good as the mixtures that training decodes."""
    torch.manual_seed(0)
    pictures, held_out = digits(held_out=500)
    model = nn.ModuleDict(
        {
            "encoder": conv_encoder(channels=1, dim=16, widths=(8, 16)),
            "decoder": conv_decoder(channels=1, dim=16, widths=(8, 16)),
            "quantizer": GaussianQuantizer(codebook_size=64, dim=16, channel_first=True),
        }
    )
    steps = 300
    schedule = Annealing(steps)
    optimizer = torch.optim.Adam(schedule.groups(model))
    for step in range(steps):
        x = pictures[torch.randint(len(pictures), (32,))]
        z_q, _, loss = model["quantizer"](model["encoder"](x), schedule.begin(step, optimizer))
        error = (model["decoder"](z_q) - x).square().mean()
        optimizer.zero_grad()
        (x[0].numel() / 2 * error.log() + loss).backward()
        optimizer.step()
    encodings = model.eval()["encoder"](held_out)
    single = model["quantizer"](encodings)
    mixed = model["quantizer"].train()(encodings, 0.3)
    errors = [(model["decoder"](quantized.z_q) - held_out).square().mean() for quantized in (single, mixed)]
    assert errors[0] < 1.1 * errors[1]
    assert errors[0] < 0.02
    assert single.perplexity > 20

"""The mathematics of stochastic quantization, against brute force and known limits."""

import math

import pytest
import torch

from families import CODES, DIM, GAUSSIAN, STOCHASTIC, build, encoder_output, takes
from sqvae import EMAVectorQuantizer, GaussianQuantizer, VectorQuantizer, VonMisesFisherQuantizer
from sqvae.quantizers.nearest import squared_distance_factors
from test_distributions import chi_square


def textbook_logits(quantizer, z, variance):
    """What the formula says: a tensor of positions x codes x dimensions. `variance` broadcasts against z."""
    difference = quantizer.codebook.double() - z.double().unsqueeze(-2)
    return -(difference**2 / (2 * variance.double().unsqueeze(-2))).sum(-1)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_logits_are_those_of_the_formula(name):
    quantizer = build(name)
    inputs = encoder_output(quantizer, 3, 5, DIM)
    log_variance = inputs.get("log_variance", torch.zeros(3, 5, DIM))
    axes = {"per_sample": (1, 2), "per_position": (2,), "per_dimension": ()}.get(quantizer.variance, (0, 1, 2))
    shared = log_variance.mean(axes, keepdim=True) if axes else log_variance
    variance = (shared + quantizer.log_variance).exp().expand(3, 5, DIM)
    expected = textbook_logits(quantizer, inputs["z"], variance)
    torch.testing.assert_close(
        quantizer.logits(**inputs), (expected - expected.amax(-1, keepdim=True)).float(), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("name", [name for name in GAUSSIAN if name != "gaussian-fixed"])
def test_a_variance_counts_only_beside_the_codes_distance(name):
    """Encodings and codes c times as large, and a variance c² times: the same draws, and the same loss."""
    quantizer = build(name, dtype=torch.float64)
    inputs = encoder_output(quantizer, 3, 5, DIM, dtype=torch.float64)
    outcomes = []
    for factor in (1, 3):
        with torch.no_grad():
            quantizer.codebook *= factor
            quantizer.log_variance += 2 * math.log(factor)
        torch.manual_seed(0)
        outcomes.append(quantizer(**{**inputs, "z": factor * inputs["z"]}, temperature=0.5))
    torch.testing.assert_close(outcomes[1].z_q, 3 * outcomes[0].z_q)
    torch.testing.assert_close(outcomes[1].loss, outcomes[0].loss)


OFFICIAL = [
    *[(name, {"variance_offset": 0.7}) for name in GAUSSIAN if name != "gaussian-fixed"],
    *[(f"gaussian-{kind}", {"heads": "sum", "variance_offset": offset}) for kind in "234" for offset in (0.0, 0.7)],
    *[(f"gaussian-{kind}", {"heads": "bounded"}) for kind in "234"],
]


def official_variance(quantizer, log_variance):
    """The authors' two forms and the bounded one, number by number in float64, for encodings (3, 5, DIM)."""
    offset, own = quantizer.variance_offset, quantizer.log_variance.double().exp()
    if log_variance is None:
        return (offset + own).expand(3, 5, DIM)
    axes = {"per_sample": (1, 2), "per_position": (2,)}.get(quantizer.variance, ())
    given = log_variance.double()
    given = given.tanh() if quantizer.heads == "bounded" else given
    head = (given.mean(axes, keepdim=True) if axes else given).exp()
    return (head + offset + own if quantizer.heads == "sum" else head * (offset + own)).expand(3, 5, DIM)


@pytest.mark.parametrize(("name", "options"), OFFICIAL)
@pytest.mark.parametrize("initial_variance", [1e-6, 0.5, 20.0])
def test_the_authors_own_variances_are_those_of_their_formulas(name, options, initial_variance):
    quantizer = build(name, initial_variance=initial_variance, **options)
    inputs = encoder_output(quantizer, 3, 5, DIM)
    variance = official_variance(quantizer, inputs.get("log_variance"))
    logits = textbook_logits(quantizer, inputs["z"], variance)
    torch.testing.assert_close(
        quantizer.logits(**inputs).double(), logits - logits.amax(-1, keepdim=True), rtol=1e-5, atol=1e-4
    )
    result = quantizer.eval()(**inputs)
    shown = result.variance
    while shown.ndim and shown.ndim < 3:
        shown = shown.unsqueeze(-1)
    torch.testing.assert_close(shown.expand(3, 5, DIM).double(), variance, rtol=1e-5, atol=0)
    regularizer = ((inputs["z"] - result.z_q).double() ** 2 / (2 * variance)).sum() / 3
    torch.testing.assert_close(result.regularizer.double(), regularizer, rtol=1e-5, atol=1e-6)
    assert torch.equal(quantizer.encode(**inputs), logits.argmax(-1))


@pytest.mark.parametrize(("name", "options"), OFFICIAL)
def test_the_authors_own_variances_have_the_gradients_of_their_formulas(name, options):
    quantizer = build(name, dtype=torch.float64, **options).eval()
    inputs = encoder_output(quantizer, 3, 5, DIM, dtype=torch.float64)
    head = inputs.get("log_variance")
    wanted = [quantizer.log_variance] if head is None else [quantizer.log_variance, head.requires_grad_()]
    result = quantizer(**inputs)
    variance = official_variance(quantizer, head)
    regularizer = ((inputs["z"] - result.z_q.detach()) ** 2 / (2 * variance)).sum() / 3
    expected = torch.autograd.grad(regularizer, wanted)
    torch.testing.assert_close(torch.autograd.grad(result.regularizer, wanted), expected)


@pytest.mark.parametrize(("name", "options"), OFFICIAL)
@pytest.mark.parametrize("log_variance", [-60.0, 0.0, 60.0])
def test_gradients_of_the_authors_own_variances_are_finite_where_one_part_is_all(name, options, log_variance):
    quantizer = build(name, **options)
    inputs = encoder_output(quantizer, 3, 5, DIM)
    if "log_variance" in inputs:
        inputs["log_variance"] = torch.full_like(inputs["log_variance"], -log_variance).requires_grad_()
    quantizer.log_variance.data.fill_(log_variance)
    quantizer(**inputs, temperature=0.7).loss.backward()
    for value in (quantizer.log_variance, inputs.get("log_variance", quantizer.log_variance)):
        assert value.grad.isfinite().all()


@pytest.mark.parametrize("name", GAUSSIAN)
def test_without_an_offset_and_with_a_product_nothing_changes_by_a_bit(name):
    quantizer = build(name)
    inputs = encoder_output(quantizer, 3, 5, DIM)
    positions = quantizer._positions(inputs["z"], None, None)
    head = inputs.get("log_variance")
    own = quantizer.log_variance.view(1, 1)
    expected = own if head is None else own + quantizer._spread(head, positions)
    assert torch.equal(quantizer._scale(head, positions), expected)
    assert "variance_offset" not in repr(quantizer)
    assert "heads" not in repr(quantizer)


@pytest.mark.parametrize("kind", "234")
def test_a_bounded_head_stays_near_the_trained_scalar_however_far_it_runs(kind):
    quantizer = build(f"gaussian-{kind}", heads="bounded", initial_variance=3.0)
    inputs = encoder_output(quantizer, 3, 5, DIM)
    for given, factor in ((-1e4, math.exp(-1)), (1e4, math.exp(1))):
        far = torch.full_like(inputs["z"], given)
        shown = quantizer(inputs["z"], log_variance=far).variance
        torch.testing.assert_close(shown, torch.full_like(shown, 3 * factor))


def test_an_offset_is_a_floor_that_annealing_does_not_go_below():
    quantizer = build("gaussian-1", variance_offset=1.0)
    quantizer.log_variance.data.fill_(-200.0)
    assert quantizer(torch.randn(4, DIM)).variance == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variance_offset": -1.0}, r"variance_offset must be finite and at least 0, got -1\.0"),
        ({"variance_offset": math.nan}, r"variance_offset must be finite and at least 0, got nan"),
        ({"variance_offset": math.inf}, r"variance_offset must be finite and at least 0, got inf"),
        (
            {"variance": "fixed", "variance_offset": 1.0},
            r"takes no variance_offset, got 1\.0; pass initial_variance=2",
        ),
        ({"variance": "per_sample", "heads": "mean"}, r"heads must be one of 'product', 'sum', 'bounded'; got 'mean'"),
        ({"heads": "sum"}, r"variance='shared' .*heads.*leave heads out"),
    ],
)
def test_a_wrong_offset_or_form_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussianQuantizer(CODES, DIM, **arguments)


def test_vmf_logits_are_scaled_cosines():
    quantizer = build("vmf", initial_concentration=7.0)
    z = torch.randn(3, 5, DIM)
    cosines = torch.nn.functional.cosine_similarity(z.unsqueeze(-2), quantizer.codebook, dim=-1)
    torch.testing.assert_close(quantizer.logits(z).softmax(-1), (7 * cosines).softmax(-1))


@pytest.mark.parametrize("name", [*GAUSSIAN, "vmf"])
def test_regularizer_and_entropy_are_those_of_the_formulas(name):
    quantizer = build(name).eval()
    inputs = encoder_output(quantizer, 3, 5, DIM)
    result = quantizer(**inputs)
    probabilities = quantizer.logits(**inputs).softmax(-1)
    entropy = -(probabilities * probabilities.log()).sum() / 3
    torch.testing.assert_close(result.entropy, entropy)
    if name == "vmf":
        cosine = torch.nn.functional.cosine_similarity(inputs["z"], result.z_q, dim=-1)
        regularizer = (result.concentration * (1 - cosine)).sum() / 3
    else:
        variance = result.variance
        while variance.ndim and variance.ndim < 3:
            variance = variance.unsqueeze(-1)
        regularizer = ((inputs["z"] - result.z_q) ** 2 / (2 * variance)).sum() / 3
    torch.testing.assert_close(result.regularizer, regularizer)
    torch.testing.assert_close(result.loss, regularizer - entropy)


@pytest.mark.parametrize("other", ["gaussian-3", "gaussian-4"])
def test_a_constant_variance_makes_types_three_and_four_type_one(other):
    first, second = build("gaussian-1", initial_variance=2.0), build(other, initial_variance=0.5)
    second.codebook.data.copy_(first.codebook)
    z = torch.randn(4, 6, DIM)
    constant = torch.full((4, 6, DIM), math.log(4.0))
    torch.testing.assert_close(second.logits(z, constant), first.logits(z))
    for mode in (True, False):
        torch.manual_seed(1)
        expected = first.train(mode)(z, 0.7)
        torch.manual_seed(1)
        result = second.train(mode)(z, 0.7, log_variance=constant)
        torch.testing.assert_close(result.z_q, expected.z_q)
        torch.testing.assert_close(result.loss, expected.loss)


def test_type_two_with_a_batch_of_one_is_type_one():
    first, second = build("gaussian-1", initial_variance=2.0), build("gaussian-2", initial_variance=1.0)
    second.codebook.data.copy_(first.codebook)
    z = torch.randn(1, 6, DIM)
    head = torch.randn(1, 6, DIM)
    head += math.log(2.0) - head.mean()
    torch.manual_seed(1)
    expected = first(z, 0.7)
    torch.manual_seed(1)
    result = second(z, 0.7, log_variance=head)
    torch.testing.assert_close(result.z_q, expected.z_q)
    torch.testing.assert_close(result.loss, expected.loss)


@pytest.mark.parametrize(
    ("name", "shape"),
    [("gaussian-2", (4,)), ("gaussian-2", (4, 1, 1)), ("gaussian-3", (4, 6)), ("gaussian-3", (4, 6, 1))],
)
def test_a_log_variance_may_come_with_its_shared_axes_already_gone(name, shape):
    quantizer = build(name).eval()
    z, reduced = torch.randn(4, 6, DIM), torch.randn(shape)
    full = reduced.view(*shape, *[1] * (3 - len(shape))).expand(4, 6, DIM)
    expected = quantizer(z, log_variance=full)
    torch.testing.assert_close(quantizer(z, log_variance=reduced).loss, expected.loss)
    if reduced.ndim == 3:
        first = quantizer(z.movedim(-1, 1), log_variance=reduced.movedim(-1, 1), channel_first=True)
        torch.testing.assert_close(first.loss, expected.loss)


def test_no_variance_is_nearest_neighbour_with_the_codes_of_plain_vq():
    plain, z = VectorQuantizer(64, DIM), torch.randn(10, 20, DIM)
    quantizer = GaussianQuantizer(64, DIM, initial_variance=1e-12)
    quantizer.codebook.data.copy_(plain.codebook)
    result = quantizer(z, 0.5)
    assert torch.equal(result.codes, plain.encode(z))
    torch.testing.assert_close(result.z_q, plain.eval()(z).z_q)
    assert result.entropy.item() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(
    "quantizer",
    [
        GaussianQuantizer(CODES, DIM, initial_variance=1e12),
        VonMisesFisherQuantizer(CODES, DIM, initial_concentration=1e-12),
    ],
    ids=["gaussian", "vmf"],
)
def test_no_precision_is_the_uniform_distribution(quantizer):
    z = torch.randn(10, 20, DIM)
    result = quantizer(z)
    assert result.entropy.item() == pytest.approx(20 * math.log(CODES), rel=1e-5)
    torch.testing.assert_close(quantizer.logits(z).softmax(-1), torch.full((10, 20, CODES), 1 / CODES))


def test_much_concentration_is_the_nearest_direction():
    quantizer, z = VonMisesFisherQuantizer(64, DIM, initial_concentration=1e9), torch.randn(10, 20, DIM)
    cosines = torch.nn.functional.cosine_similarity(z.unsqueeze(-2), quantizer.codebook, dim=-1)
    assert torch.equal(quantizer(z).codes, cosines.argmax(-1))


@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize("training", [True, False])
def test_samples_follow_the_softmax(name, training):
    spread = {"initial_concentration": 2.0, "initial_variance": 4.0}
    spread = {option: value for option, value in spread.items() if takes(name, option)}
    quantizer = build(name, codes=6, **spread).train(training)
    inputs = encoder_output(quantizer, 1, 1, DIM)
    many = {key: value.expand(1, 60_000, DIM) for key, value in inputs.items()}
    codes = quantizer(**many, temperature=0.5, sample=True).codes
    probabilities = quantizer.logits(**inputs).softmax(-1).flatten().detach()
    assert probabilities.max() < 0.95
    assert chi_square(codes, probabilities) > 1e-4


def test_the_relaxed_sample_s_largest_weight_is_the_code_and_low_temperatures_give_the_code_itself():
    quantizer = GaussianQuantizer(CODES, DIM)
    result = quantizer(torch.randn(50, DIM), 1e-4)
    torch.testing.assert_close(result.z_q, quantizer.decode(result.codes), atol=1e-3, rtol=0)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_hard_samples_are_codes_with_the_relaxed_gradient(name):
    gradients = []
    for hard in (True, False):
        torch.manual_seed(0)
        quantizer = build(name, hard=hard)
        inputs = encoder_output(quantizer, 3, 5, DIM)
        z = inputs.pop("z").requires_grad_()
        torch.manual_seed(1)
        result = quantizer(z, 0.7, **inputs)
        if hard:
            torch.testing.assert_close(result.z_q, quantizer.decode(result.codes))
        gradients.append(torch.autograd.grad(result.z_q.sum(), z)[0])
    torch.testing.assert_close(*gradients)


# A dequantizing vmf draws by rejection, which no finite difference can follow: its gradient is tested on the quantile.
@pytest.mark.parametrize(
    ("name", "dequantize"), [*[(name, False) for name in STOCHASTIC], *[(name, True) for name in GAUSSIAN]]
)
def test_gradcheck(name, dequantize):
    quantizer = build(name, codes=5, dim=3, dtype=torch.float64, dequantize=dequantize)
    inputs = encoder_output(quantizer, 2, 3, 3, dtype=torch.float64)
    parameters = dict(quantizer.named_parameters())

    def run(*values):
        torch.manual_seed(2)
        arguments = dict(zip(inputs, values, strict=False))
        given = dict(zip(parameters, values[len(inputs) :], strict=True))
        result = torch.func.functional_call(quantizer, given, (), {**arguments, "temperature": 0.8})
        return result.z_q, result.loss, result.divergence

    tensors = [*inputs.values(), *parameters.values()]
    assert torch.autograd.gradcheck(run, [value.detach().requires_grad_() for value in tensors])


def spread_of(codebook: torch.Tensor) -> float:
    """The codes' mean squared distance from each other."""
    return torch.pdist(codebook.double()).square().mean().item()


def between_codes(codebook: torch.Tensor, count: int) -> torch.Tensor:
    """Points on the way from one code to another; half of them near the middle, the hardest choice for float32."""
    start, end = (codebook.double()[torch.randint(len(codebook), (count,))] for _ in range(2))
    way = torch.rand(count, 1, dtype=torch.float64)
    way[::2] = 0.5 + 1e-4 * torch.randn(len(way[::2]), 1, dtype=torch.float64)
    return (start + way * (end - start)).float()


@pytest.mark.parametrize("offset", [0.0, 100.0], ids=["centred", "far"])
@pytest.mark.parametrize("relative_variance", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("dim", [2, 64, 256])
@pytest.mark.parametrize("per_dimension", [False, True], ids=["isotropic", "diagonal"])
def test_float32_probabilities_are_those_of_float64(offset, relative_variance, dim, per_dimension):
    codebook = torch.randn(256, dim)
    codebook += offset * math.sqrt(dim)
    z = between_codes(codebook, 400)
    variance = relative_variance * spread_of(codebook)
    precision = torch.full((400, dim) if per_dimension else (1, 1), 1 / variance)
    if per_dimension:
        precision = precision * torch.linspace(0.5, 2, dim)
    squares = (z.double().unsqueeze(1) - codebook.double()) ** 2
    exact = (-squares * precision.double().unsqueeze(1) / 2).sum(-1).softmax(-1)
    queries, keys = squared_distance_factors(z, codebook, precision)
    assert queries.dtype == torch.float32
    assert (queries @ keys.T).softmax(-1).sub(exact).abs().max() < 1e-3


@pytest.mark.parametrize("offset", [0.0, 100.0], ids=["centred", "far"])
@pytest.mark.parametrize("relative_variance", [1e-4, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("name", ["gaussian-1", "gaussian-4"])
def test_the_chosen_code_is_float64_s_however_small_the_variance(offset, relative_variance, name):
    dim = 64
    codebook = torch.randn(256, dim) + offset * math.sqrt(dim)
    z = between_codes(codebook, 2000)
    quantizer = build(name, codes=256, dim=dim, initial_variance=relative_variance * spread_of(codebook)).eval()
    quantizer.codebook.data.copy_(codebook)
    extra = {"log_variance": 0.5 * torch.randn(2000, dim)} if name == "gaussian-4" else {}
    variance = (extra.get("log_variance", torch.zeros(1)).double() + quantizer.log_variance.double()).exp()
    exact = textbook_logits(quantizer, z, variance.expand(2000, dim))
    best, second = exact.topk(2).values.unbind(-1)
    clear = best - second > 1
    assert clear.float().mean() > 0.5
    chosen = exact.argmax(-1)
    for codes in (quantizer.encode(z, **extra), quantizer(z, **extra).codes, quantizer.logits(z, **extra).argmax(-1)):
        assert torch.equal(codes[clear], chosen[clear])
    expected = exact.softmax(-1).float()
    assert (quantizer.logits(z, **extra).softmax(-1) - expected).abs().max() < 1e-3


def test_plain_vq_finds_the_nearest_code_of_float64_far_from_the_origin():
    quantizer = VectorQuantizer(256, 64)
    quantizer.codebook.data.add_(1000)
    z = between_codes(quantizer.codebook.detach(), 2000)
    exact = torch.cdist(z.double(), quantizer.codebook.double(), compute_mode="donot_use_mm_for_euclid_dist")
    best, second = exact.topk(2, largest=False).values.unbind(-1)
    clear = second - best > 1e-9
    assert torch.equal(quantizer.encode(z)[clear], exact.argmin(-1)[clear])


@pytest.mark.parametrize("relative_variance", [1e-4, 1e-6, 1e-9])
def test_in_training_too_the_drawn_code_is_float64_s_where_no_other_is_likely(relative_variance):
    codebook = torch.randn(256, 64) + 100
    z = between_codes(codebook, 2000)
    quantizer = build("gaussian-1", codes=256, dim=64, initial_variance=relative_variance * spread_of(codebook))
    quantizer.codebook.data.copy_(codebook)
    exact = textbook_logits(quantizer, z, quantizer.log_variance.double().exp().expand(2000, 64))
    best, second = exact.topk(2).values.unbind(-1)
    clear = best - second > max(40, 1e-6 / relative_variance)  # what float32 can tell apart, in nats
    assert clear.float().mean() > 0.4
    assert torch.equal(quantizer(z).codes[clear], exact.argmax(-1)[clear])


def test_the_cost_of_vmf_dequantization_has_its_gradient():
    quantizer = build("vmf", dtype=torch.float64)
    scale = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(quantizer._dequantization_cost, scale)


def test_default_variances_are_the_paper_s():
    assert GaussianQuantizer(4, 2).log_variance.exp().item() == pytest.approx(10)
    assert GaussianQuantizer(4, 2, "fixed").log_variance.exp().item() == pytest.approx(1)


@pytest.mark.parametrize("concentration", [1.0, 100.0, 5000.0])
def test_vmf_probabilities_in_float32_are_those_of_float64(concentration):
    quantizer = VonMisesFisherQuantizer(256, 64, initial_concentration=concentration)
    z = between_codes(quantizer.codebook.detach(), 2000)
    unit_z, unit_codes = (
        torch.nn.functional.normalize(value.double(), dim=-1) for value in (z, quantizer.codebook.detach())
    )
    exact = (quantizer.log_concentration.double().exp() * unit_z @ unit_codes.T).softmax(-1)
    assert (quantizer.logits(z).softmax(-1) - exact).abs().max() < 1e-3
    queries, keys = quantizer._factors(quantizer.project(z), quantizer.vectors(), quantizer.log_concentration)
    assert ((queries @ keys.T).softmax(-1) - exact).abs().max() < 1e-3


def test_a_large_codebook_gives_the_gradients_of_the_path_that_keeps_everything(monkeypatch):
    from sqvae.distributions import assignment

    gradients = []
    for kept in (0, 10**9):
        monkeypatch.setattr(assignment, "KEPT_LOGITS", kept)
        torch.manual_seed(0)
        quantizer = GaussianQuantizer(3000, 16)
        z = torch.randn(500, 16, requires_grad=True)
        z_q, _, loss = quantizer(z, 0.7)
        (loss + z_q.square().sum()).backward()
        gradients.append((z.grad, quantizer.codebook.grad, quantizer.log_variance.grad))
    for left, right in zip(*gradients, strict=True):
        torch.testing.assert_close(left, right)


def test_plain_vq_has_the_loss_and_gradients_of_its_formula():
    quantizer = VectorQuantizer(CODES, DIM, commitment=0.3)
    z = torch.randn(4, 6, DIM, requires_grad=True)
    weights = torch.randn(4, 6, DIM)
    z_q, codes, loss = quantizer(z)
    chosen = quantizer.codebook.detach()[codes]
    squared = (z.detach() - chosen).square().sum() / 4
    assert loss.item() == pytest.approx(1.3 * squared.item(), rel=1e-5)
    (loss + (z_q * weights).sum()).backward()
    torch.testing.assert_close(z.grad, 0.3 * 2 * (z.detach() - chosen) / 4 + weights)
    expected = torch.zeros(CODES, DIM).index_add_(0, codes.flatten(), (2 * (chosen - z.detach()) / 4).flatten(0, 1))
    torch.testing.assert_close(quantizer.codebook.grad, expected)


def test_ema_vq_has_only_the_commitment_left():
    quantizer = EMAVectorQuantizer(CODES, DIM, commitment=0.3).eval()
    z = torch.randn(4, 6, DIM)
    z_q, _, loss = quantizer(z)
    assert loss.item() == pytest.approx(0.3 * (z - z_q).square().sum().item() / 4, rel=1e-5)


def test_ema_codes_move_to_the_mean_of_their_encodings():
    quantizer = EMAVectorQuantizer(2, 2, decay=0.9)
    quantizer.codebook.data.copy_(torch.tensor([[0.0, 0.0], [10.0, 10.0]]))
    quantizer.smoothed_sums.copy_(quantizer.codebook)
    z = torch.tensor([[1.0, 1.0], [3.0, 1.0], [11.0, 9.0]])
    quantizer(z)
    counts = [0.9 * 1 + 0.1 * 2, 0.9 * 1 + 0.1 * 1]
    sums = [[0.9 * 0 + 0.1 * 4, 0.9 * 0 + 0.1 * 2], [0.9 * 10 + 0.1 * 11, 0.9 * 10 + 0.1 * 9]]
    expected = torch.tensor(sums) / torch.tensor(counts).unsqueeze(-1)
    torch.testing.assert_close(quantizer.codebook.data, expected)
    quantizer.eval()
    before = quantizer.codebook.clone()
    quantizer(z)
    assert torch.equal(quantizer.codebook, before)


def test_an_unused_ema_code_stays_where_it_is_for_ever():
    quantizer = EMAVectorQuantizer(2, 2, decay=0.5)
    far = torch.tensor([50.0, 50.0])
    quantizer.codebook.data[1] = quantizer.smoothed_sums[1] = far
    for _ in range(500):
        quantizer(torch.randn(20, 2))
    torch.testing.assert_close(quantizer.codebook.data[1], far)
    assert quantizer.codebook.isfinite().all()


def test_reset_moves_the_least_used_code_beside_the_most_used_one_when_it_is_due():
    quantizer = EMAVectorQuantizer(3, 2, decay=0.99, reset_every=4)
    start = torch.tensor([[0.0, 0.0], [5.0, 5.0], [90.0, 90.0]])
    quantizer.codebook.data.copy_(start)
    quantizer.smoothed_sums.copy_(start)
    z = torch.cat((torch.zeros(30, 2), torch.full((10, 2), 5.0)))
    for _ in range(3):
        quantizer(z)
        assert quantizer.codebook[2, 0].item() == pytest.approx(90)
    quantizer(z)
    assert (quantizer.codebook[2] - quantizer.codebook[0]).norm() < 0.6
    assert quantizer.recent_counts.sum() == 0
    # From its new place it goes on like a code that has seen one position there.
    torch.testing.assert_close(quantizer.smoothed_sums[2], quantizer.codebook.data[2])
    assert quantizer.smoothed_counts[2] == 1


def test_reset_draws_with_the_given_variance_where_use_is_under_three_percent():
    distances = []
    for _ in range(200):
        quantizer = EMAVectorQuantizer(2, 20, reset_every=1, reset_variance=0.01)
        start = torch.stack((torch.zeros(20), torch.full((20,), 5.0)))
        quantizer.codebook.data.copy_(start)
        quantizer.smoothed_sums.copy_(start)
        quantizer(torch.cat((torch.zeros(100, 20), start[1:])))  # 1 of 100
        distances.append(quantizer.codebook.data[1].clone())
    assert torch.stack(distances).std().item() == pytest.approx(0.1, rel=0.1)


def test_reset_leaves_codes_that_are_used_enough():
    quantizer = EMAVectorQuantizer(2, 2, reset_every=1)
    start = torch.tensor([[0.0, 0.0], [5.0, 5.0]])
    quantizer.codebook.data.copy_(start)
    quantizer.smoothed_sums.copy_(start)
    quantizer(torch.cat((torch.zeros(30, 2), torch.full((1, 2), 5.0))))  # 1 / 30 is over 3%
    torch.testing.assert_close(quantizer.codebook.data, start)

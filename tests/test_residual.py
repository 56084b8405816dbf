"""What is special about quantizers with layers; what holds for all quantizers is in test_quantizer_contract.py."""

import math

import pytest
import torch

from families import CODES, DIM, LAYERED, LAYERS, build, encoder_output
from sqvae.quantizers import GaussianQuantizer, ResidualQuantizer, ResidualVectorQuantizer, Stage, all_layers
from sqvae.quantizers.contract import LEFT_OUT

STOCHASTIC = [name for name in LAYERED if "vq" not in name]
each = pytest.mark.parametrize("name", LAYERED)


def gradients(quantizer, z, told, **inputs):
    torch.manual_seed(5)
    leaves = z.clone().requires_grad_()
    result = quantizer(leaves, told, **inputs)
    (result.loss + result.z_q.square().sum()).backward()
    own = {name.rpartition(".")[-1]: value.grad for name, value in quantizer.named_parameters()}
    return result, leaves.grad, own


@pytest.mark.parametrize("variance", ["shared", "per_sample", "per_position", "per_dimension", "fixed"])
@pytest.mark.parametrize("told", [0.7, Stage(0.7, 0.3, 0.4, 1.0)])
@pytest.mark.parametrize("options", [{}, {"dequantize": True}, {"hard": True}, {"code_dim": 3}])
def test_one_layer_is_the_single_quantizer_to_the_bit(variance, told, options):
    outcomes = []
    for make in (GaussianQuantizer, lambda *sizes, **given: ResidualQuantizer(*sizes, 1, **given)):
        torch.manual_seed(1)
        quantizer = make(CODES, DIM, variance=variance, **options)
        inputs = encoder_output(quantizer, 4, 7, DIM)
        outcomes.append(gradients(quantizer, inputs.pop("z"), told, **inputs))
    (single, by_z, by_own), (layered_result, by_z_too, by_own_too) = outcomes
    for field in ("z_q", "loss", "divergence", "regularizer", "entropy"):
        assert torch.equal(getattr(single, field), getattr(layered_result, field)), field
    for field in ("counts", "mean_probabilities"):
        assert torch.equal(getattr(single, field), getattr(layered_result, field)), field
    for field in ("variance", "perplexity", "soft_perplexity"):
        assert torch.equal(getattr(single, field), getattr(layered_result, field)[0]), field
    assert torch.equal(single.codes, layered_result.codes[..., 0])
    assert torch.equal(by_z, by_z_too)
    assert by_own.keys() == by_own_too.keys()
    assert all(torch.equal(by_own[key], by_own_too[key]) for key in by_own)


@pytest.mark.parametrize("name", STOCHASTIC)
def test_the_loss_is_the_one_in_the_docstring(name):
    """With exact draws: the squared distance to the sum, over twice the sum of variances, minus all entropies."""
    quantizer = build(name, dtype=torch.float64).eval()
    inputs = encoder_output(quantizer, 4, 7, DIM, dtype=torch.float64)
    result = quantizer(**inputs, sample=True)
    scales = torch.stack([layer.log_variance for layer in quantizer.layers]).view(LAYERS, 1, 1)
    if "log_variance" in inputs:
        scales = scales + inputs["log_variance"].mean(-1)
    scales = scales.expand(LAYERS, 4, 7).detach()
    rest, entropy = inputs["z"], 0.0
    for index, layer in enumerate(quantizer.layers):
        distances = (rest.unsqueeze(-2) - layer.codebook).square().sum(-1)
        probabilities = (-distances / (2 * scales[index].exp().unsqueeze(-1))).softmax(-1)
        entropy = entropy - (probabilities * probabilities.log()).sum() / 4
        rest = rest - layer.codebook[result.codes[..., index]]
    pull = (rest.square().sum(-1) / (2 * scales.exp().sum(0))).sum() / 4
    torch.testing.assert_close(result.z_q, inputs["z"] - rest)
    torch.testing.assert_close(result.regularizer, pull)
    torch.testing.assert_close(result.entropy, entropy)
    torch.testing.assert_close(result.loss, pull - entropy)
    torch.testing.assert_close(result.divergence, pull - entropy + 7 * LAYERS * math.log(CODES))
    torch.testing.assert_close(result.layer_entropies.sum(), entropy)


@each
def test_the_first_layers_are_a_prefix(name):
    quantizer = build(name).eval()
    inputs = encoder_output(quantizer, 4, 7, DIM)
    codes = quantizer.encode(**inputs)
    errors = []
    for number in range(1, LAYERS + 1):
        assert torch.equal(quantizer.encode(**inputs, layers=number), codes[..., :number])
        result = quantizer(**inputs, layers=number)
        assert torch.equal(result.z_q, quantizer.decode(codes[..., :number]))
        assert result.counts.shape == (number * CODES,)
        assert result.perplexity.shape == (number,)
        errors.append((result.z_q - inputs["z"]).square().mean())
    assert torch.equal(errors[-1], (quantizer(**inputs).z_q - inputs["z"]).square().mean())


@each
def test_the_axis_of_layers_can_come_first(name):
    last, first = build(name).eval(), build(name, codes_first=True, channel_first=True).eval()
    first.load_state_dict(last.state_dict())
    inputs = encoder_output(last, 4, 7, DIM)
    codes = last.encode(**inputs)
    own = first.encode(**{key: value.movedim(-1, 1) for key, value in inputs.items()})
    assert torch.equal(own, codes.movedim(-1, 1))
    assert torch.equal(first.decode(own), last.decode(codes).movedim(-1, 1))


@each
def test_layer_dropout_leaves_layers_out_of_whole_samples(name):
    quantizer = build(name, layer_dropout=1.0)
    torch.manual_seed(0)
    inputs = encoder_output(quantizer, 300, 7, DIM)
    before = [layer.vectors().detach().clone() for layer in quantizer.layers]
    result = quantizer(**inputs, temperature=1e-6)
    used = result.codes != LEFT_OUT
    numbers = used.sum(-1)
    assert (numbers == numbers[:, :1]).all()
    assert torch.equal(used, torch.arange(LAYERS) < numbers.unsqueeze(-1))
    for number in range(1, LAYERS + 1):
        assert 70 < (numbers[:, 0] == number).sum() < 130
    assert torch.equal(result.counts.view(LAYERS, CODES).sum(-1), used.sum((0, 1)).float())
    total = sum(
        torch.where(used[..., index, None], vectors[result.codes[..., index].clamp_min(0)], 0)
        for index, vectors in enumerate(before)
    )
    torch.testing.assert_close(result.z_q, total, rtol=1e-4, atol=1e-4)
    assert (quantizer.eval()(**inputs).codes != LEFT_OUT).all()
    half = build(name, layer_dropout=0.5)(**inputs)
    assert 170 < (half.codes != LEFT_OUT).all(-1).all(-1).sum() < 230


@pytest.mark.parametrize("name", STOCHASTIC)
@pytest.mark.parametrize("masked", [False, True])
def test_with_layer_dropout_each_sample_pays_for_its_own_layers(name, masked, monkeypatch):
    """The loss of a batch is the mean of those of its samples, each quantized by its own number of layers alone."""
    quantizer = build(name, layer_dropout=1.0, hard=True, dtype=torch.float64)
    for layer in quantizer.layers:  # so certain that noise makes no difference
        layer.log_variance.data.fill_(-9)
    inputs = encoder_output(quantizer, 3, 7, DIM, dtype=torch.float64)
    numbers = torch.tensor([2, 1, 3])
    monkeypatch.setattr(quantizer, "_random_numbers", lambda positions: numbers.repeat_interleave(7))
    mask = torch.arange(7).expand(3, 7) < torch.tensor([[7], [4], [5]]) if masked else None
    result = quantizer(**inputs, mask=mask)
    alone = [
        quantizer(
            **{key: value[index : index + 1] for key, value in inputs.items()},
            mask=None if mask is None else mask[index : index + 1],
            layers=int(number),
        )
        for index, number in enumerate(numbers)
    ]
    for field in ("loss", "divergence", "regularizer", "entropy"):
        expected = torch.stack([getattr(one, field) for one in alone]).mean()
        torch.testing.assert_close(getattr(result, field), expected, rtol=1e-6, atol=1e-6)


def test_moving_averages_see_only_what_reaches_a_layer(monkeypatch):
    quantizer = ResidualVectorQuantizer(CODES, DIM, 2, decay=0.5, layer_dropout=1.0)
    monkeypatch.setattr(quantizer, "_random_numbers", lambda positions: torch.tensor([1, 2]))
    first, second = (layer.vectors().detach().clone() for layer in quantizer.layers)
    z = torch.randn(2, DIM)
    codes = quantizer(z).codes
    assert codes[0, 1] == LEFT_OUT
    rest = z[1] - first[codes[1, 0]]
    moved = (quantizer.vectors(1) - second).abs().sum(-1) > 0
    assert moved.nonzero().flatten().tolist() == [codes[1, 1]]
    torch.testing.assert_close(quantizer.vectors(1)[codes[1, 1]], (second[codes[1, 1]] + rest) / 2)


class TestCodebooks:
    def test_of_different_sizes(self):
        quantizer = ResidualQuantizer([32, 8, 4], DIM, 3)
        result = quantizer(torch.randn(5, 9, DIM))
        assert [int(part.max()) < size for part, size in zip(result.codes.unbind(-1), (32, 8, 4), strict=True)]
        assert [int(own.sum()) for own in result.counts.split([32, 8, 4])] == [45, 45, 45]
        assert (result.perplexity <= torch.tensor([32.0, 8.0, 4.0]) + 1e-3).all()
        assert quantizer.codebook_sizes == (32, 8, 4)
        assert quantizer.codebook_size == 44
        paid = result.divergence - result.loss
        assert paid.item() == pytest.approx(9 * math.log(32 * 8 * 4), rel=1e-5)
        with pytest.raises(ValueError, match="codes of layer 2 must lie between 0 and 7, got values from 9 to 9"):
            quantizer.decode(torch.tensor([[1, 9, 2]]))

    def test_shared_by_all_layers(self):
        quantizer = ResidualQuantizer(CODES, DIM, LAYERS, shared_codebook=True)
        assert sum(value.numel() for value in quantizer.parameters()) == CODES * DIM + LAYERS
        state = quantizer.state_dict()
        assert [key for key in state if "codebook" in key] == ["layers.0.codebook"]
        twin = ResidualQuantizer(CODES, DIM, LAYERS, shared_codebook=True)
        twin.load_state_dict({key: value.clone() for key, value in state.items()})
        z = torch.randn(4, 7, DIM)
        assert torch.equal(twin.encode(z), quantizer.encode(z))
        assert torch.equal(twin.vectors(2), quantizer.vectors(0))
        with pytest.raises(ValueError, match=r"layers that share a codebook must have one size, got \[4, 8\]"):
            ResidualQuantizer([4, 8], DIM, 2, shared_codebook=True)

    def test_of_few_components(self):
        """Code vectors then lie in a space of few dimensions, and are searched as exactly as others."""
        quantizer = ResidualQuantizer(64, 32, 2, code_dim=4)
        assert quantizer.layers[0].codebook.shape == (64, 4)
        vectors = quantizer.vectors(1).detach()
        assert vectors.shape == (64, 32)
        assert torch.linalg.matrix_rank(vectors) == 4
        assert float(vectors.square().sum(-1).mean()) == pytest.approx(32, rel=0.6)
        z = torch.randn(50, 32)
        codes = quantizer.encode(z)
        first = torch.cdist(z.double(), quantizer.vectors(0).double()).argmin(-1)
        assert torch.equal(codes[:, 0], first)


class TestErrors:
    def test_sizes(self):
        with pytest.raises(ValueError, match=r"one for each of 3 layers; got \[4, 8\]"):
            ResidualQuantizer([4, 8], DIM, 3)
        with pytest.raises(ValueError, match="layers must be at least 1, got 0"):
            ResidualQuantizer(4, DIM, 0)
        with pytest.raises(ValueError, match="code_dim must be at most dim, which is 8; got 9"):
            ResidualQuantizer(4, DIM, code_dim=9)
        for share in (-0.1, 1.5, math.nan):
            with pytest.raises(ValueError, match="layer_dropout is a share of the samples, between 0 and 1; got"):
                ResidualQuantizer(4, DIM, layer_dropout=share)

    @each
    def test_more_layers_than_there_are(self, name):
        quantizer = build(name)
        inputs = encoder_output(quantizer, 4, DIM)
        for call in (quantizer, quantizer.encode):
            with pytest.raises(ValueError, match="layers must be at most 3, the number of layers; got 4"):
                call(**inputs, layers=4)
            with pytest.raises(ValueError, match="layers must be at least 1, got 0"):
                call(**inputs, layers=0)
        with pytest.raises(ValueError, match=r"\(batch, ..., layers\) with 1 to 3 layers, got shape \(5, 4\)"):
            quantizer.decode(torch.zeros(5, 4, dtype=torch.int64))


@pytest.mark.parametrize("name", STOCHASTIC)
def test_once_assignments_are_certain_layers_take_single_codes(name):
    torch.manual_seed(0)
    told = Stage(0.5, price=0.5)
    quantizer = build(name)
    inputs = encoder_output(quantizer, 40, 7, DIM)
    result = quantizer(**inputs, temperature=told)
    vectors = [layer.vectors().detach().clone() for layer in quantizer.layers]
    result = quantizer(**inputs, temperature=told)
    total = sum(own[codes] for own, codes in zip(vectors, result.codes.unbind(-1), strict=True))
    torch.testing.assert_close(result.z_q, total)
    rest, commitment = inputs["z"], 0.0
    for own, codes in zip(vectors, result.codes.unbind(-1), strict=True):
        rest = rest - own[codes]
        commitment = commitment + rest.square().sum() / (40 * LAYERS)
    torch.testing.assert_close(result.loss, commitment)
    first = rest.square().mean()
    for _ in range(300):
        result = quantizer(**inputs, temperature=told)
    assert (inputs["z"] - result.z_q).square().mean() < 0.6 * first
    assert (result.perplexity > 0.6 * CODES).all()


@pytest.mark.parametrize("name", STOCHASTIC)
def test_training_uses_all_layers(name):
    """On vectors of no structure, each layer lowers the error, and none of them collapses."""
    torch.manual_seed(0)
    z = torch.randn(40, 16, DIM)
    quantizer = build(name, codes=8)
    optimizer = torch.optim.Adam(quantizer.parameters(), lr=0.05)
    head = {"log_variance": torch.zeros_like(z)} if quantizer.needs_log_variance else {}
    for step in range(150):
        optimizer.zero_grad()
        result = quantizer(z, Stage(0.5, 0.1 ** (step / 150)), **head)
        (50 * (result.z_q - z).square().mean((0, 1)).sum() + result.loss).backward()
        optimizer.step()
    quantizer.eval().requires_grad_(False)
    errors = [float((quantizer(z, layers=n, **head).z_q - z).square().mean()) for n in (1, 2, 3)]
    assert errors[2] < 0.8 * errors[1] < 0.64 * errors[0]
    assert (quantizer(z, **head).perplexity > 4).all()


@pytest.mark.parametrize("name", STOCHASTIC)
def test_layer_dropout_can_be_held_back(name):
    quantizer = build(name, layer_dropout=1.0)
    inputs = encoder_output(quantizer, 20, 7, DIM)
    with all_layers(torch.nn.ModuleList([quantizer])):
        assert quantizer(**inputs).depths is None
    assert quantizer(**inputs).depths is not None

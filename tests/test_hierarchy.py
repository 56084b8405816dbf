"""Hierarchies: several levels of codes, trained together."""

import itertools
import math

import pytest
import torch
from torch import nn

from families import codebooks_of
from sqvae import (
    CategoricalLikelihood,
    EMAVectorQuantizer,
    GaussianLatent,
    GaussianLikelihood,
    GaussianQuantizer,
    HierarchicalModel,
    LatentModel,
    ResidualQuantizer,
    Stage,
    VonMisesFisherQuantizer,
)
from sqvae.networks import LevelBlock, LevelDecoder, LevelEncoder, conv_decoder, conv_encoder
from sqvae.quantizers import LayeredQuantizer
from sqvae.quantizers.levels import LevelQuantizers
from sqvae.training import Plan
from sqvae.training.annealing import ANY_BUDGET, parameter_groups
from test_bound import bound_and_error

DIM = 3
POSITIONS = (1, 2)
"""The number of positions of each level of the toy models."""


class Features(nn.Module):
    """An encoder that has one answer for each level."""

    def __init__(self, *answers: torch.Tensor) -> None:
        super().__init__()
        self.answers = list(answers)

    def forward(self, x):
        return tuple(answer.expand(len(x), *answer.shape) for answer in self.answers)


class Leaning(nn.Module):
    """A block whose encodings depend on the coarser codes, with a log-variance if one is given."""

    def __init__(self, weight: float = 0.7, log_variance: torch.Tensor | None = None) -> None:
        super().__init__()
        self.weight, self.log_variance = weight, log_variance

    def forward(self, features, latents):
        z = features + self.weight * sum(latent.mean(1, keepdim=True) for latent in latents)
        if self.log_variance is None:
            return z
        return z, self.log_variance.expand(len(z), *self.log_variance.shape)


class Linear(nn.Module):
    """A decoder of all levels at once."""

    def __init__(self, *outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.layer = nn.Linear(sum(POSITIONS) * DIM, math.prod(outputs))

    def forward(self, latents):
        return self.layer(torch.cat([latent.flatten(1) for latent in latents], 1)).view(-1, *self.outputs)


def toy_quantizer(kind: str, codes: int, spread: float, dequantize: bool):
    if kind == "vmf":
        return VonMisesFisherQuantizer(codes, DIM, initial_concentration=1 / spread, dequantize=dequantize)
    if kind == "residual":
        return ResidualQuantizer(codes, DIM, 2, initial_variance=spread, dequantize=dequantize)
    variance = {"1": "shared", "3": "per_position"}[kind[-1]]
    return GaussianQuantizer(codes, DIM, variance, initial_variance=spread, dequantize=dequantize)


KINDS = {
    "gaussian-1": ("gaussian-1", "gaussian-1"),
    "gaussian-3": ("gaussian-3", "gaussian-3"),
    "vmf": ("vmf", "vmf"),
    "residual below": ("gaussian-1", "residual"),
    "mixed": ("residual", "vmf"),
}
"""The quantizers of two levels."""


def toy(kind: str, codes: int, *, spread: float = 1.0, dequantize: bool = True, classes: bool = False):
    """A model of two levels in float64, and a datum."""
    quantizers = [toy_quantizer(name, codes, spread, dequantize) for name in KINDS[kind]]
    answers = [torch.randn(number, DIM).double() for number in POSITIONS]
    blocks = [
        Leaning(log_variance=0.5 * torch.randn(number, DIM).double() if quantizer.needs_log_variance else None)
        for number, quantizer in zip(POSITIONS, quantizers, strict=True)
    ]
    if classes:
        likelihood, outputs, x = CategoricalLikelihood(5), (5, 4), torch.tensor([0, 2, 4, 1])
    else:
        likelihood, outputs = GaussianLikelihood("fixed", initial_variance=0.5), (4,)
        x = torch.randn(4).double()
    return HierarchicalModel(Features(*answers), blocks, quantizers, Linear(*outputs), likelihood).double().eval(), x


def all_codes(model) -> list[torch.Tensor]:
    """Every combination of codes at all positions of all levels: (combinations, positions) for each level."""
    each = []
    for quantizer, positions in zip(model.quantizer.levels, POSITIONS, strict=True):
        sizes = quantizer.codebook_sizes * positions
        each.append([range(size) for size in sizes])
    rows = torch.tensor(list(itertools.product(*itertools.chain(*each))))
    parts = rows.split([len(own) for own in each], 1)
    return [
        part.view(-1, positions, len(quantizer.codebook_sizes)) if isinstance(quantizer, LayeredQuantizer) else part
        for part, quantizer, positions in zip(parts, model.quantizer.levels, POSITIONS, strict=True)
    ]


def exact_log_likelihood(model, x) -> float:
    codes = all_codes(model)
    latents = tuple(quantizer.decode(own) for quantizer, own in zip(model.quantizer.levels, codes, strict=True))
    outputs = model.decoder(latents)
    each = torch.stack([model.likelihood(output.unsqueeze(0), x.unsqueeze(0)).log_likelihood for output in outputs])
    return (each.logsumexp(0) - math.log(len(outputs))).item()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("dequantize", [True, False])
def test_the_bound_never_exceeds_the_log_likelihood(kind, spread, dequantize):
    model, x = toy(kind, codes=3, spread=spread, dequantize=dequantize)
    bound, error = bound_and_error(model, x, draws=40_000)
    assert math.isfinite(bound)
    assert bound < exact_log_likelihood(model, x) + 4 * error


def test_the_bound_of_labels_never_exceeds_the_log_likelihood():
    model, x = toy("gaussian-1", codes=3, classes=True)
    bound, error = bound_and_error(model, x, draws=40_000)
    assert bound < exact_log_likelihood(model, x) + 4 * error


def put_encodings_on(model, codes: list[torch.Tensor]) -> None:
    """Move the features so that each level's encoding lies on the vectors of these codes, given those above."""
    made: list[torch.Tensor] = []
    for level, (quantizer, own) in enumerate(zip(model.quantizer.levels, codes, strict=True)):
        vectors = quantizer.decode(own.unsqueeze(0)).detach()
        above = sum(latent.mean(1, keepdim=True) for latent in made)
        model.encoder.answers[level] = (vectors - model.blocks[level].weight * above)[0]
        made.append(vectors)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spread", [0.05, 1.0])
def test_with_one_code_and_the_encodings_on_it_the_bound_is_exact(kind, spread):
    model, x = toy(kind, codes=1, spread=spread)
    put_encodings_on(model, [codes[0] for codes in all_codes(model)])
    bound, error = bound_and_error(model, x)
    assert 0 < error < 0.01
    assert bound == pytest.approx(exact_log_likelihood(model, x), abs=4 * error)


@pytest.mark.parametrize("kind", KINDS)
def test_with_codes_far_apart_and_an_exact_decoder_the_bound_is_exact(kind):
    model, _ = toy(kind, codes=3, spread=0.02)
    for quantizer in model.quantizer.levels:
        if isinstance(quantizer, VonMisesFisherQuantizer):
            quantizer.codebook.data.copy_(torch.eye(3))
        else:  # the codes of the second layer lie closer together than those of the first
            for part, scale in zip(codebooks_of(quantizer), (100, 10), strict=False):
                part.codebook.data.mul_(scale)
    right = [codes[len(codes) // 2] for codes in all_codes(model)]
    put_encodings_on(model, right)
    model.likelihood.log_variance.fill_(math.log(1e-4))
    x = model.decode([codes.unsqueeze(0) for codes in right])[0]
    bound, error = bound_and_error(model, x)
    assert 0 < error < 0.01
    assert bound == pytest.approx(exact_log_likelihood(model, x), abs=4 * error)


def test_the_deterministic_posterior_is_a_bound_too():
    quantizers = [EMAVectorQuantizer(3, DIM), EMAVectorQuantizer(3, DIM)]
    answers = [torch.randn(number, DIM).double() for number in POSITIONS]
    likelihood = GaussianLikelihood("fixed")
    model = HierarchicalModel(Features(*answers), [Leaning(), Leaning()], quantizers, Linear(4), likelihood)
    model, x = model.double().eval(), torch.randn(4).double()
    assert model.bound(x.unsqueeze(0)).nats.item() < exact_log_likelihood(model, x)


# Convolutional models

MAKE = {
    "gaussian-1": lambda: GaussianQuantizer(16, 8, channel_first=True),
    "gaussian-3": lambda: GaussianQuantizer(16, 8, "per_position", channel_first=True),
    "residual": lambda: ResidualQuantizer(16, 8, 2, channel_first=True),
    "vmf": lambda: VonMisesFisherQuantizer(16, 8, channel_first=True),
    "vq-ema": lambda: EMAVectorQuantizer(16, 8, channel_first=True),
    "continuous": lambda: GaussianLatent(8, channel_first=True),
}


def make(*names: str, **options) -> HierarchicalModel:
    """A small convolutional model with these quantizers, the coarsest first."""
    quantizers, levels = [MAKE[name]() for name in names], len(names)
    blocks = [
        LevelBlock(8, level, blocks=1, log_variance=quantizer.needs_log_variance)
        for level, quantizer in enumerate(quantizers)
    ]
    encoder = LevelEncoder(conv_encoder(1, 8, widths=(4, 8), blocks=1), 8, levels, blocks=1)
    decoder = LevelDecoder(conv_decoder(1, 8, widths=(4, 8), blocks=1), 8, levels)
    return HierarchicalModel(encoder, blocks, quantizers, decoder, GaussianLikelihood(), **options)


@pytest.mark.parametrize("name", MAKE)
def test_it_trains_and_codes_decode_to_the_reconstruction(name):
    model, x = make(name, name), torch.rand(6, 1, 16, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(40):
        objective = model(x, 0.5)
        optimizer.zero_grad()
        objective.loss.backward()
        assert all(parameter.grad is not None for parameter in model.parameters() if name != "vq-ema")
        optimizer.step()
        losses.append(objective.fit.loss.item())
    assert losses[-1] < losses[0]
    model.eval()
    codes = model.encode(x)
    wanted = {"residual": ((6, 2, 2, 2), (6, 4, 4, 2)), "continuous": ((6, 8, 2, 2), (6, 8, 4, 4))}
    assert tuple(own.shape for own in codes) == wanted.get(name, ((6, 2, 2), (6, 4, 4)))
    assert torch.equal(model.reconstruct(x), model.decode(codes))
    torch.testing.assert_close(model.reconstruct(x), model(x).output)
    assert [own.shape for own in model.encodings(x)] == [(6, 2, 2, 8), (6, 4, 4, 8)]


def test_the_terms_add_up_over_levels():
    model = make("gaussian-1", "residual", "vmf")
    objective = model(torch.rand(2, 1, 16, 16), 0.5)
    quantized, terms = objective.quantized, objective.terms
    for name in ("loss", "divergence", "regularizer", "entropy"):
        total = sum(getattr(level, name) for level in quantized.levels)
        assert getattr(quantized, name).item() == pytest.approx(total.item(), rel=1e-5)
    assert terms["latent"].item() == pytest.approx((terms["regularizer"] - terms["entropy"]).item(), rel=1e-4)
    constant = 2 * (1 * 1 + 2 * 2 * 2 + 4 * 4) * math.log(16) / 2
    assert (quantized.divergence - quantized.loss).item() == pytest.approx(constant, rel=1e-4)
    assert quantized.layer_sizes == model.quantizer.codebook_sizes == (16, 16, 16, 16)
    assert quantized.counts.sum() == 2 * (1 + 2 * 4 + 16)
    assert quantized.perplexity.shape == quantized.soft_perplexity.shape == (4,)
    assert quantized.variance is None, "the last level has a concentration"


@pytest.mark.parametrize("name", ["gaussian-1", "gaussian-3", "residual", "vq-ema"])
def test_one_level_is_a_latent_model_to_the_bit(name):
    model, x = make(name), torch.rand(4, 1, 16, 16)

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.block = model.encoder.encoder, model.blocks[0]

        def forward(self, x):
            return self.block(self.encoder(x), ())

    single = LatentModel(Encoder(), model.quantizer.levels[0], model.decoder.decoder, model.likelihood)
    for stage in (0.7, Stage(0.7, 0.3, 0.5, 1.0)):
        found = []
        for one in (model, single):
            state = {key: value.clone() for key, value in one.state_dict().items()}
            torch.manual_seed(3)
            objective = one.train()(x, stage)
            one.zero_grad()
            objective.loss.backward()
            gradients = [parameter.grad.clone() for parameter in single.parameters() if parameter.grad is not None]
            found.append((objective.loss, objective.bound.nats, objective.output, *gradients))
            one.load_state_dict(state)
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(*found, strict=True))
    assert torch.equal(model.encode(x)[0], single.encode(x))
    assert torch.equal(model.reconstruct(x), single.reconstruct(x))


def test_fewer_levels_decode_with_what_the_model_expects_of_the_others():
    model, x = make("gaussian-1", "residual").eval(), torch.rand(4, 1, 16, 16)
    codes = model.encode(x)
    others = (codes[0], codes[1].flip(0))
    assert torch.equal(model.decode(codes, levels=1), model.decode(others, levels=1)), "only shapes count"
    assert not torch.equal(model.decode(codes, levels=1), model.decode(codes))
    assert torch.equal(model.reconstruct(x, levels=2), model.reconstruct(x))
    coarse, fine = model.quantizer.levels
    mean = sum(book.codebook.mean(0) for book in fine.books).view(1, -1, 1, 1).expand(4, -1, 4, 4)
    expected = model.likelihood.predict(model.decoder((coarse.decode(codes[0]), mean)))
    torch.testing.assert_close(model.decode(codes, levels=1), expected)


@pytest.mark.parametrize("certain", [False, True])
def test_the_schedule_serves_all_levels(certain):
    """Codes of all levels have their own rate, and all codes move once assignments are certain."""
    model, x = make("gaussian-1", "residual"), torch.rand(4, 1, 16, 16)
    _, own = parameter_groups(model, Plan(**ANY_BUDGET))
    books = model.quantizer.books
    assert {id(parameter) for parameter in own["params"]} == {id(p) for book in books for p in book.parameters()}
    before = [book.codebook.detach().clone() for book in books]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(2):
        model(x, Stage(0.5, 0.5, 0.5, 1.0, 0.5 if certain else None)).loss.backward()
        optimizer.step()
    assert all(not torch.equal(book.codebook, codebook) for book, codebook in zip(books, before, strict=True))
    assert [book.usage is not None for book in books] == [certain] * 3
    fresh = make("gaussian-1", "residual")
    fresh.load_state_dict(model.state_dict())
    assert all(torch.equal(value, model.state_dict()[key]) for key, value in fresh.state_dict().items())
    assert torch.equal(fresh.reconstruct(x), model.reconstruct(x))


def test_averaged_latent_terms_are_over_the_values_of_all_levels():
    model, x = make("gaussian-1", "gaussian-1", latent_terms="mean"), torch.rand(3, 1, 16, 16)
    assert model(x).latent_weight == pytest.approx(256 / (2 * 8 * (4 + 16)))


def test_parts_that_do_not_fit():
    model, x = make("gaussian-1", "gaussian-1"), torch.rand(2, 1, 16, 16)
    codes = model.encode(x)
    with pytest.raises(ValueError, match="one tensor for each of 2 levels, got 1"):
        model.decode(codes[:1])
    with pytest.raises(ValueError, match="levels must be between 1 and 2 for this model; got 3"):
        model.reconstruct(x, levels=3)
    with pytest.raises(ValueError, match="3x3 can't be halved"):
        model(torch.rand(2, 1, 12, 12))
    with pytest.raises(TypeError, match="one quantizer for each level, as in LATENTS; got Linear"):
        LevelQuantizers([nn.Linear(1, 1)])
    parts = model.encoder, list(model.blocks), model.quantizer.levels, model.decoder
    with pytest.raises(ValueError, match="got 2 blocks and 1 quantizers"):
        HierarchicalModel(*parts[:2], parts[2][:1], parts[3], model.likelihood)
    with pytest.raises(TypeError, match="must be a likelihood"):
        HierarchicalModel(*parts, GaussianLikelihood)
    with pytest.raises(ValueError, match="features for each of 2 levels in a tuple, got one tensor"):
        HierarchicalModel(model.encoder.encoder, *parts[1:], model.likelihood)(x)

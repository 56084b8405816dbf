"""What holds for every prior there is, and what sampling does with any of them."""

import itertools
import math
import os
import sys

import pytest
import torch
from scipy import stats
from torch import Tensor, distributed, multiprocessing

from sqvae.distributions.processes import mean_over_processes
from sqvae.priors import (
    PRIORS,
    CodeBatch,
    CodeLikelihood,
    Condition,
    PixelCNN,
    PixelSNAIL,
    Prior,
    RecomputedDraft,
    draw,
    sample,
    uniform_numbers,
)

CODES, CLASSES, COARSE = 5, 3, 4
SIZES = {"pixelcnn": {"layers": 6}, "pixelsnail": {"blocks": 2, "layers": 1, "heads": 2}}

every = pytest.mark.parametrize("name", PRIORS)
conditions = pytest.mark.parametrize("given", ["nothing", "class", "codes", "both"])
shapes = pytest.mark.parametrize(("shape", "coarse"), [((8,), (4,)), ((4, 4), (2, 2)), ((3, 6), (3, 2))])


def build(name: str, shape: tuple[int, ...], given: str = "nothing", *, codes: int = CODES, **options) -> Prior:
    """A small prior, in float64."""
    sizes = {"channels": 8} | SIZES.get(name, {}) | options
    if given in ("class", "both"):
        sizes["classes"] = CLASSES
    if given in ("codes", "both"):
        sizes["context"] = COARSE
    return PRIORS[name](codes, ndim=len(shape), **sizes).double()


def a_condition(given: str, batch: int, coarse: tuple[int, ...]) -> Condition | None:
    classes = torch.arange(batch) % CLASSES if given in ("class", "both") else None
    codes = torch.randint(COARSE, (batch, *coarse)) if given in ("codes", "both") else None
    return None if given == "nothing" else Condition(classes, codes)


def every_map(codes: int, shape: tuple[int, ...]) -> Tensor:
    positions = math.prod(shape)
    return torch.tensor(list(itertools.product(range(codes), repeat=positions))).view(-1, *shape)


def log_likelihood(prior: Prior, codes: Tensor, condition: Condition | None = None) -> Tensor:
    """(batch, *shape) -> (batch,)."""
    chosen = prior.logits(codes, condition).log_softmax(-1).gather(-1, codes.unsqueeze(-1))
    return chosen.flatten(1).sum(-1)


@every
@conditions
@shapes
@torch.no_grad()
def test_a_position_sees_all_that_come_before_and_nothing_else(name, given, shape, coarse):
    prior, condition = build(name, shape, given), a_condition(given, 1, coarse)
    codes = torch.randint(CODES, (1, *shape))
    before = prior.logits(codes, condition).view(-1, CODES)
    last = math.prod(shape) - 1
    for position in range(last + 1):
        changed = codes.clone()
        changed.view(-1)[position] += 1
        after = prior.logits(changed % CODES, condition).view(-1, CODES)
        assert torch.equal(after[: position + 1], before[: position + 1])
        if position < last:
            assert not torch.equal(after[position + 1], before[position + 1])
            assert not torch.equal(after[last], before[last]), f"{position} is in a blind spot"


@every
@conditions
@torch.no_grad()
def test_all_parts_of_a_condition_reach_every_position(name, given):
    prior, condition = build(name, (4, 4), given), a_condition(given, 1, (2, 2))
    codes = torch.randint(CODES, (1, 4, 4))
    before = prior.logits(codes, condition)
    others = []
    if condition is not None and condition.classes is not None:
        others.append(Condition((condition.classes + 1) % CLASSES, condition.codes))
    if condition is not None and condition.codes is not None:
        others.append(Condition(condition.classes, (condition.codes + 1) % COARSE))
    for other in others:
        assert (prior.logits(codes, other) != before).any(-1).all()


@every
@conditions
@pytest.mark.parametrize("shape", [(4,), (2, 2)])
@torch.no_grad()
def test_the_probabilities_of_all_maps_add_up_to_one(name, given, shape):
    maps = every_map(3, shape)
    prior, condition = build(name, shape, given, codes=3), a_condition(given, 1, shape)
    if condition is not None:
        condition = condition[torch.zeros(len(maps), dtype=torch.int64)]
    assert log_likelihood(prior, maps, condition).exp().sum().item() == pytest.approx(1, abs=1e-12)


OPTIONS = [(name, {"kernel": kernel}) for name in PRIORS for kernel in (3, 5)]


@pytest.mark.parametrize(("name", "options"), OPTIONS)
@conditions
@shapes
@torch.no_grad()
def test_a_draft_gives_the_same_logits_one_by_one(name, options, given, shape, coarse):
    prior, condition = build(name, shape, given, **options), a_condition(given, 3, coarse)
    codes = torch.randint(CODES, (3, *shape))
    expected = prior.logits(codes, condition).flatten(1, -2)
    draft = prior.start(3, shape, condition)
    for position, settled in enumerate(codes.flatten(1).T):
        if position != 2:  # nobody need ask for the logits of a position that is known
            torch.testing.assert_close(draft.next_logits(), expected[:, position], rtol=0, atol=1e-10)
            assert draft.next_logits() is draft.next_logits()
        draft.put(settled)
    assert torch.equal(draft.codes, codes)
    with pytest.raises(ValueError, match=r"all \d+ positions.*start another draft"):
        draft.next_logits()


def test_a_draft_of_dilated_convolutions_remembers_far_enough():
    prior = PixelCNN(CODES, ndim=1, channels=8, layers=5, kernel=5, dilations=(1, 3, 2)).double()
    codes = torch.randint(CODES, (2, 40))
    draft, expected = prior.start(2, (40,)), prior.logits(codes)
    for position in range(40):
        torch.testing.assert_close(draft.next_logits(), expected[:, position].detach(), rtol=0, atol=1e-10)
        draft.put(codes[:, position])


@every
@torch.no_grad()
def test_a_draft_in_single_precision_is_close(name):
    prior, codes = build(name, (4, 4)).float(), torch.randint(CODES, (2, 4, 4))
    draft, expected = prior.start(2, (4, 4)), prior.logits(codes).flatten(1, -2)
    for position, settled in enumerate(codes.flatten(1).T):
        torch.testing.assert_close(draft.next_logits(), expected[:, position], rtol=0, atol=1e-5)
        draft.put(settled)


@every
@conditions
@shapes
def test_remembering_and_evaluating_anew_draw_the_same_codes(name, given, shape, coarse):
    prior, condition = build(name, shape, given), a_condition(given, 4, coarse)
    options = {"condition": condition, "temperature": 1.3, "top_k": 4, "seed": 7}
    remembered = sample(prior, 4, shape, **options)
    assert torch.equal(remembered, sample(prior, 4, shape, draft=RecomputedDraft, **options))
    assert remembered.shape == (4, *shape)
    assert len(remembered.unique()) > 1


@every
def test_batches_make_no_difference_to_what_is_drawn(name):
    prior, condition = build(name, (3, 4), "both"), a_condition("both", 5, (3, 2))
    whole = sample(prior, 5, (3, 4), condition=condition, seed=3)
    parts = [
        sample(prior, 2, (3, 4), condition=condition[:2], seed=3),
        sample(prior, 3, (3, 4), condition=condition[2:], seed=3, first=2),
    ]
    assert torch.equal(torch.cat(parts), whole)
    assert not torch.equal(sample(prior, 5, (3, 4), condition=condition, seed=4), whole)


@every
@torch.no_grad()
def test_samples_occur_as_often_as_their_probabilities_say(name):
    prior, maps = build(name, (2, 2), codes=2), every_map(2, (2, 2))
    for parameter in prior.head.parameters():
        parameter.mul_(4)  # as they begin, all maps are about equally likely
    expected = log_likelihood(prior, maps).exp()
    drawn = sample(prior, 4000, (2, 2), seed=1).flatten(1) @ torch.tensor([8, 4, 2, 1])
    counts = torch.bincount(drawn, minlength=16)
    assert expected.max() > 2 * expected.min()
    assert stats.chisquare(counts, 4000 * expected / expected.sum()).pvalue > 1e-3


LAYERS = 3
positions = pytest.mark.parametrize(("shape", "coarse"), [((6,), (3,)), ((3, 4), (3, 2))])
"""The shapes of positions that have several codes each, and those of a coarser level."""


@every
@conditions
@positions
@torch.no_grad()
def test_a_layer_sees_all_codes_before_it_and_nothing_else(name, given, shape, coarse):
    prior, condition = build(name, shape, given, code_layers=LAYERS), a_condition(given, 1, coarse)
    codes = torch.randint(CODES, (1, *shape, LAYERS))
    before = prior.logits(codes, condition)
    assert before.shape == (*codes.shape, CODES)
    before, last = before.view(-1, CODES), codes.numel() - 1
    for place in range(last + 1):
        changed = codes.clone()
        changed.view(-1)[place] += 1
        after = prior.logits(changed % CODES, condition).view(-1, CODES)
        assert torch.equal(after[: place + 1], before[: place + 1])
        if place < last:
            assert not torch.equal(after[place + 1], before[place + 1])
            assert not torch.equal(after[last], before[last]), f"{place} is in a blind spot"


@every
@conditions
@pytest.mark.parametrize("shape", [(3,), (1, 3), (3, 1)])
@torch.no_grad()
def test_the_probabilities_of_all_maps_of_layers_add_up_to_one(name, given, shape):
    maps = every_map(3, (*shape, 2))
    prior, condition = build(name, shape, given, codes=3, code_layers=2), a_condition(given, 1, shape)
    if condition is not None:
        condition = condition[torch.zeros(len(maps), dtype=torch.int64)]
    assert log_likelihood(prior, maps, condition).exp().sum().item() == pytest.approx(1, abs=1e-12)


@every
@conditions
@positions
@torch.no_grad()
def test_a_draft_of_layers_gives_the_same_logits_one_by_one(name, given, shape, coarse, monkeypatch):
    prior, condition = build(name, shape, given, code_layers=LAYERS), a_condition(given, 2, coarse)
    codes = torch.randint(CODES, (2, *shape, LAYERS))
    expected = prior.logits(codes, condition).flatten(1, -2)
    calls = []
    prior.head.register_forward_hook(lambda *told: calls.append(told))
    draft = prior.start(2, codes.shape[1:], condition)
    for step, settled in enumerate(codes.flatten(1).T):
        assert (draft.step, draft.position) == (step, step // LAYERS)
        torch.testing.assert_close(draft.next_logits(), expected[:, step], rtol=0, atol=1e-10)
        draft.put(settled)
    assert torch.equal(draft.codes, codes)
    assert len(calls) == math.prod(shape)  # the network runs once for a position
    with pytest.raises(ValueError, match=r"all \d+ positions.*start another draft"):
        draft.next_logits()


@every
@positions
def test_layers_are_drawn_the_same_with_and_without_caches(name, shape, coarse):
    prior, condition = build(name, shape, "both", code_layers=LAYERS, dropout=0.5), a_condition("both", 4, coarse)
    options = {"condition": condition, "temperature": 1.3, "top_k": 4, "seed": 7}
    remembered = sample(prior, 4, (*shape, LAYERS), **options)
    assert prior.training
    assert torch.equal(remembered, sample(prior, 4, (*shape, LAYERS), draft=RecomputedDraft, **options))
    assert remembered.shape == (4, *shape, LAYERS)
    assert len(remembered.unique()) > 1
    some = sample(prior, 2, (*shape, LAYERS), **{**options, "condition": condition[2:]}, first=2)
    assert torch.equal(some, remembered[2:])


@every
@torch.no_grad()
def test_samples_of_layers_occur_as_often_as_their_probabilities_say(name):
    prior, maps = build(name, (2,), codes=2, code_layers=2), every_map(2, (2, 2))
    for parameter in prior.layer_head.out.parameters():
        parameter.mul_(4)  # as they begin, all maps are about equally likely
    expected = log_likelihood(prior, maps).exp()
    drawn = sample(prior, 4000, (2, 2), seed=1).flatten(1) @ torch.tensor([8, 4, 2, 1])
    counts = torch.bincount(drawn, minlength=16)
    assert expected.max() > 2 * expected.min()
    assert stats.chisquare(counts, 4000 * expected / expected.sum()).pvalue > 1e-3


@every
@positions
def test_every_weight_of_a_prior_of_layers_has_a_part_in_the_loss(name, shape, coarse):
    model = CodeLikelihood(build(name, shape, "both", code_layers=LAYERS))
    codes = torch.randint(CODES, (2, *shape, LAYERS))
    cost = model(CodeBatch(codes, condition=a_condition("both", 2, coarse)))
    assert cost.number == codes.numel()
    cost.loss.backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


@every
def test_a_prior_learns_how_layers_depend_on_each_other(name):
    """The second code of a position says how far the third lies from the first, which nothing else tells."""
    torch.manual_seed(1)
    model = CodeLikelihood(build(name, (2, 3), codes=4, code_layers=3).float())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        first, second = torch.randint(4, (2, 32, 2, 3))
        codes = torch.stack((first, second, (first + second) % 4), -1)
        loss = model(CodeBatch(codes)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    least = math.log(4) * 2 / 3
    assert least < loss.item() < least + 0.1
    drawn = sample(model.prior, 32, (2, 3, 3))
    assert ((drawn[..., 0] + drawn[..., 1]) % 4 == drawn[..., 2]).double().mean() > 0.95


@every
def test_layers_beyond_a_sequence_s_length_cost_nothing(name):
    model = CodeLikelihood(build(name, (9,), code_layers=LAYERS))
    codes, lengths = torch.randint(CODES, (3, 9, LAYERS)), torch.tensor([4, 9, 1])
    cost = model(CodeBatch(codes, lengths))
    assert cost.number == 14 * LAYERS
    alone = [model(CodeBatch(codes[i : i + 1, : lengths[i]])).nats.item() for i in range(3)]
    assert cost.nats.item() == pytest.approx(sum(alone), abs=1e-10)


@every
def test_wrong_codes_of_layers_are_named(name):
    prior = build(name, (4, 4), code_layers=LAYERS)
    with pytest.raises(ValueError, match=r"takes codes as \(batch, h, w, 3\), got shape \(2, 4, 4\)"):
        prior.logits(torch.zeros(2, 4, 4, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"takes codes as \(batch, h, w, 3\).* got the shape \(4, 4, 2\)"):
        prior.logits(torch.zeros(2, 4, 4, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"takes codes as \(batch, h, w, 3\).* got the shape \(4, 4\)"):
        sample(prior, 2, (4, 4))
    with pytest.raises(ValueError, match=r"with code_layers=\.\.\. for codes with a last axis of layers"):
        build(name, (4, 4)).logits(torch.zeros(2, 4, 4, 3, dtype=torch.int64))


@every
def test_dropout_is_for_training_alone(name):
    prior, codes = build(name, (4, 4), dropout=0.5), torch.randint(CODES, (2, 4, 4))
    assert not torch.equal(prior.logits(codes), prior.logits(codes))
    drawn = sample(prior, 2, (4, 4))
    assert prior.training
    assert torch.equal(drawn, sample(prior, 2, (4, 4), draft=RecomputedDraft))
    assert prior.training
    prior.eval()
    assert torch.equal(prior.logits(codes), prior.logits(codes))
    assert torch.equal(drawn, sample(prior, 2, (4, 4)))


@every
@pytest.mark.parametrize(
    ("given", "shape"), [("nothing", (6,)), ("nothing", (4, 6)), ("class", (4, 6)), ("codes", (4, 6))]
)
def test_a_prior_learns_what_there_is_to_learn(name, given, shape):
    """Rows of one code each: as the class says, as the level above says, or else as the row's first code says."""
    torch.manual_seed(1)
    rows = math.prod(shape[:-1])
    model = CodeLikelihood(build(name, shape, given, codes=4).float())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(70):
        values = torch.randint(3, (16, 1)).expand(16, rows) if given == "class" else torch.randint(4, (16, rows))
        codes = values[..., None].expand(16, rows, shape[-1]).reshape(16, *shape)
        condition = {
            "nothing": None,
            "class": Condition(classes=values[:, 0]),
            "codes": Condition(codes=codes[..., ::3]),
        }[given]
        loss = model(CodeBatch(codes, condition=condition), torch.tensor(1.0)).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    least = math.log(4) / shape[-1] if given == "nothing" else 0.0
    assert losses[0] == pytest.approx(math.log(4), abs=0.7)
    assert sum(losses[-5:]) / 5 < least + 0.15
    drawn = sample(model.prior, 16, shape, condition=condition)
    assert (drawn[..., 1:] == drawn[..., :-1]).double().mean() > 0.85
    if condition is not None:
        assert (drawn == codes).double().mean() > 0.85


@every
@conditions
def test_the_state_makes_the_same_prior_again(name, given):
    first, second = build(name, (3, 4), given), build(name, (3, 4), given)
    codes, condition = torch.randint(CODES, (2, 3, 4)), a_condition(given, 2, (3, 2))
    assert not torch.equal(first.logits(codes, condition), second.logits(codes, condition))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.logits(codes, condition), second.logits(codes, condition))


@every
def test_every_weight_has_a_part_in_the_loss(name):
    model = CodeLikelihood(build(name, (4, 4), "both"))
    model(CodeBatch(torch.randint(CODES, (2, 4, 4)), condition=a_condition("both", 2, (2, 2)))).loss.backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in model.parameters())


@every
def test_codes_cost_their_negative_log_likelihood(name):
    prior, codes = build(name, (3, 4), "class"), torch.randint(CODES, (3, 3, 4), dtype=torch.int32)
    condition = a_condition("class", 3, ())
    cost = CodeLikelihood(prior)(CodeBatch(codes, condition=condition))
    torch.testing.assert_close(cost.nats, -log_likelihood(prior, codes.long(), condition).sum().detach())
    assert cost.number == 36
    torch.testing.assert_close(cost.loss, cost.nats / 36)
    assert cost.loss.requires_grad


@every
def test_what_lies_beyond_a_sequence_s_length_costs_nothing(name):
    model = CodeLikelihood(build(name, (9,), "class"))
    codes, lengths = torch.randint(CODES, (3, 9)), torch.tensor([4, 9, 1])
    condition = a_condition("class", 3, ())
    cost = model(CodeBatch(codes, lengths, condition))
    assert cost.number == 14
    alone = [
        model(CodeBatch(codes[i : i + 1, : lengths[i]], condition=condition[i : i + 1])).nats.item() for i in range(3)
    ]
    assert cost.nats.item() == pytest.approx(sum(alone), abs=1e-10)
    beyond = torch.arange(9) >= lengths[:, None]
    other = model(CodeBatch(torch.where(beyond, (codes + 1) % CODES, codes), lengths, condition))
    assert torch.equal(other.loss, cost.loss)


def gradients(batch: CodeBatch) -> dict[str, Tensor]:
    """Of the loss of a batch, with dropout, by every weight of a prior; averaged over processes."""
    torch.manual_seed(2)
    model = CodeLikelihood(build("pixelsnail", (7,), dropout=0.3))
    torch.manual_seed(3)
    model(batch).loss.backward()
    return {name: mean_over_processes(weight.grad) for name, weight in model.named_parameters()}


def one_of_two(rank: int, folder: str, batch: CodeBatch) -> None:
    torch.set_num_threads(1)
    if sys.platform == "linux":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the processes meet on this machine only
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    try:
        result = gradients(batch.chunk(2)[rank])
        if rank == 0:
            torch.save(result, f"{folder}/gradients.pt")
    finally:
        distributed.destroy_process_group()


@pytest.mark.skipif(not distributed.is_available(), reason="torch was built without distributed training")
def test_two_processes_train_as_one_whatever_their_lengths_and_drops(tmp_path):
    batch = CodeBatch(torch.randint(CODES, (4, 7)), torch.tensor([7, 6, 1, 2]))
    multiprocessing.spawn(one_of_two, (str(tmp_path), batch), nprocs=2)
    found, expected = torch.load(tmp_path / "gradients.pt"), gradients(batch)
    for name, gradient in expected.items():
        torch.testing.assert_close(
            found[name], gradient, rtol=0, atol=1e-12, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_a_batch_of_codes_can_be_divided():
    batch = CodeBatch(torch.arange(20).view(5, 4), torch.arange(1, 6), Condition(torch.arange(5), torch.arange(5)))
    parts = batch.chunk(2)
    assert [len(part) for part in parts] == [3, 2] == [len(part) for part in batch.codes.chunk(2)]
    assert torch.equal(torch.cat([part.codes for part in parts]), batch.codes)
    assert torch.equal(torch.cat([part.lengths for part in parts]), batch.lengths)
    for name in ("classes", "codes"):
        assert torch.equal(torch.cat([getattr(part.condition, name) for part in parts]), torch.arange(5))
    bare = CodeBatch(batch.codes).to(torch.device("cpu"))
    assert [(part.lengths, part.condition) for part in bare.chunk(5)] == [(None, None)] * 5


def allowed(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """(K,) -> (K,): the probabilities that codes are to be drawn with, one code at a time."""
    probabilities = (logits.double() / temperature).softmax(-1).tolist()
    ranking = sorted(range(len(probabilities)), key=lambda code: -probabilities[code])[:top_k]
    left, kept = sum(probabilities[code] for code in ranking), {}
    for code in ranking:
        if top_p is not None and sum(kept.values()) >= top_p * left:
            break
        kept[code] = probabilities[code]
    shares = [kept.get(code, 0.0) / sum(kept.values()) for code in range(len(probabilities))]
    return torch.tensor(shares, dtype=torch.float64)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("top_k", "top_p"), [(None, None), (3, None), (None, 0.6), (5, 0.8), (100, 1.0), (1, 0.5)])
def test_codes_are_drawn_as_often_as_they_should_be(temperature, top_k, top_p):
    logits = torch.randn(8)
    expected = allowed(logits, temperature, top_k, top_p)
    number = 20_000
    uniform = (torch.arange(number, dtype=torch.float64) + 0.5) / number
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    exact = torch.bincount(draw(logits.expand(number, -1), uniform, **options), minlength=8)
    torch.testing.assert_close(exact.double() / number, expected, rtol=0, atol=1.01 / number)
    drawn = torch.bincount(draw(logits.expand(number, -1), **options), minlength=8)
    possible = expected > 0
    assert not drawn[~possible].any()
    if possible.sum() > 1:
        assert stats.chisquare(drawn[possible], number * expected[possible]).pvalue > 1e-4


def test_no_temperature_takes_the_likeliest_code():
    logits = torch.randn(50, 9)
    assert torch.equal(draw(logits, temperature=0), logits.argmax(-1))
    assert torch.equal(draw(logits, temperature=1e-300), logits.argmax(-1))
    assert torch.equal(draw(logits, top_k=1), logits.argmax(-1))
    assert torch.equal(draw(logits, top_p=1e-9), logits.argmax(-1))


def test_no_number_draws_what_is_impossible():
    logits = torch.tensor([-1e30, 0.0, 0.0, -1e30]).expand(3, -1)
    uniform = torch.tensor([0.0, 0.5, math.nextafter(1, 0)], dtype=torch.float64)
    assert draw(logits, uniform).tolist() == [1, 2, 2]
    assert draw(logits, uniform, top_k=4).tolist() == [1, 2, 2]
    assert draw(torch.zeros(3, 4), uniform, top_k=2).tolist() == [0, 1, 1]  # the lower of equals


def test_random_numbers_belong_to_a_seed_an_example_and_a_position():
    numbers = uniform_numbers(5, range(6), 50)
    assert torch.equal(uniform_numbers(5, range(2, 4), 50), numbers[2:4])
    assert torch.equal(uniform_numbers(5, range(6), 20), numbers[:, :20])
    assert len(torch.cat((numbers, uniform_numbers(-6, range(6), 50))).unique()) == 600
    assert stats.kstest(uniform_numbers(0, range(50), 100).flatten(), "uniform").pvalue > 1e-3


def test_sampling_tells_how_far_it_is():
    told = []
    sample(build("pixelcnn", (2, 3)), 1, (2, 3), progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 6) for done in range(1, 7)]


def test_what_is_drawn_can_be_trained_on():
    prior = build("pixelcnn", (2, 3))
    CodeLikelihood(prior)(CodeBatch(sample(prior, 2, (2, 3)))).loss.backward()


WRONG_CODES = [
    (torch.zeros(2, 4, dtype=torch.int64), r"takes codes as \(batch, h, w\), got shape \(2, 4\)"),
    (torch.zeros(2, 0, 4, dtype=torch.int64), r"each size at least 1; got the shape \(0, 4\)"),
    (torch.full((2, 4, 4), CODES), "between 0 and 4, got values from 5 to 5; is this the prior of another tokenizer"),
    (torch.zeros(2, 4, 4), "codes must be integers"),
]


@every
@pytest.mark.parametrize(("codes", "message"), WRONG_CODES)
def test_wrong_codes_are_named(name, codes, message):
    with pytest.raises(ValueError, match=message):
        build(name, (4, 4)).logits(codes)


WRONG_CONDITIONS = [
    ("class", None, r"was built with classes=3: pass condition=Condition\(classes=...\)"),
    ("both", Condition(classes=torch.zeros(2).long()), r"built with context=4: pass condition=Condition\(codes=...\)"),
    ("nothing", Condition(classes=torch.zeros(2).long()), "was built without classes: leave classes out"),
    ("class", Condition(torch.zeros(2).long(), torch.zeros(2, 2, 2).long()), "without context: leave codes out"),
    ("class", Condition(torch.tensor([0, 3])), "classes must lie between 0 and 2, got values from 0 to 3"),
    ("class", Condition(torch.zeros(1).long()), r"must be \(batch,\) = \(2,\), one for each example; got shape \(1,\)"),
    (
        "codes",
        Condition(codes=torch.full((2, 2, 2), 4)),
        "between 0 and 3, got values from 4 to 4; are they of another",
    ),
    ("codes", Condition(codes=torch.zeros(2, 4).long()), r"must be \(batch, h, w\) with batch = 2, got shape \(2, 4\)"),
    ("codes", Condition(codes=torch.zeros(3, 2, 2).long()), r"with batch = 2, got shape \(3, 2, 2\)"),
    ("codes", Condition(codes=torch.zeros(2, 2, 3).long()), "2x3 codes .* 4x4 positions"),
]


@every
@pytest.mark.parametrize(("given", "condition", "message"), WRONG_CONDITIONS)
def test_wrong_conditions_are_named(name, given, condition, message):
    prior = build(name, (4, 4), given)
    with pytest.raises(ValueError, match=message):
        prior.logits(torch.zeros(2, 4, 4, dtype=torch.int64), condition)
    with pytest.raises(ValueError, match=message):
        prior.start(2, (4, 4), condition)


@every
def test_a_draft_names_what_it_can_t_settle(name):
    prior = build(name, (4, 4))
    with pytest.raises(ValueError, match=r"takes codes as \(batch, h, w\)"):
        prior.start(2, (16,))
    draft = prior.start(2, (4, 4))
    with pytest.raises(ValueError, match=r"codes must be \(batch,\) = \(2,\), got shape \(3,\)"):
        draft.put(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match="codes must lie between 0 and 4"):
        draft.put(torch.tensor([0, 5]))
    assert draft.position == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1.0}, "temperature must be finite and at least 0, got -1"),
        ({"temperature": math.nan}, "temperature must be finite"),
        ({"top_k": 0}, "top_k must be at least 1, got 0"),
        ({"top_p": 0.0}, "top_p must be more than 0 and at most 1, got 0"),
        ({"top_p": 1.1}, "top_p must be more than 0 and at most 1, got 1.1"),
    ],
)
def test_wrong_ways_to_draw_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        draw(torch.zeros(2, 3), **options)
    with pytest.raises(ValueError, match=message):
        sample(build("pixelcnn", (4,)), 1, (4,), **options)


def test_wrong_logits_and_numbers_are_named():
    with pytest.raises(ValueError, match=r"logits must be \(batch, K\), got shape \(3,\)"):
        draw(torch.zeros(3))
    with pytest.raises(ValueError, match="the logits must be finite"):
        draw(torch.tensor([[0.0, math.nan]]))
    with pytest.raises(ValueError, match=r"uniform must be \(batch,\) = \(2,\), got shape \(3,\)"):
        draw(torch.zeros(2, 3), torch.rand(3))
    with pytest.raises(ValueError, match="first must be at least 0"):
        sample(build("pixelcnn", (4,)), 1, (4,), first=-1)
    with pytest.raises(ValueError, match="batch must be at least 1"):
        sample(build("pixelcnn", (4,)), 0, (4,))


def test_wrong_lengths_are_named():
    model = CodeLikelihood(build("pixelcnn", (4,)))
    with pytest.raises(ValueError, match="lengths must lie between 1 and 4, got values from 0 to 5"):
        model(CodeBatch(torch.zeros(2, 4, dtype=torch.int64), torch.tensor([0, 5])))
    model = CodeLikelihood(build("pixelcnn", (4, 4)))
    with pytest.raises(ValueError, match=r"only sequences \(batch, n\) have lengths"):
        model(CodeBatch(torch.zeros(2, 4, 4, dtype=torch.int64), torch.tensor([4, 4])))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (PixelCNN, {"ndim": 3}, "ndim must be 1 for sequences or 2 for maps, got 3"),
        (PixelCNN, {"kernel": 4}, "kernel must be odd"),
        (PixelCNN, {"layers": 0}, "layers must be at least 1"),
        (PixelCNN, {"classes": 0}, "classes must be at least 1"),
        (PixelSNAIL, {"code_layers": 0}, "code_layers must be at least 1"),
        (PixelCNN, {"dropout": 1.0}, "dropout must be at least 0 and below 1"),
        (PixelCNN, {"dilations": (1, 2)}, "only sequences"),
        (PixelCNN, {"ndim": 1, "dilations": ()}, "dilations must have at least one"),
        (PixelSNAIL, {"heads": 3, "channels": 8}, "attention must be a multiple of heads, got attention=4 .* heads=3"),
        (PixelSNAIL, {"blocks": 0}, "blocks must be at least 1"),
    ],
)
def test_wrong_sizes_are_named(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(CODES, **options)


def test_the_benchmark_of_sampling_runs_and_writes_its_table(tmp_path):
    from benchmarks import sampling

    assert sampling.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    for row in ("pixelcnn, 4 maps", "pixelsnail, 2 maps", "2 of 16 positions, times 8"):
        assert row in table

"""Several processes that share a batch train as one process with the whole of it."""

import os
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

from families import DIM, build
from sqvae import EMAVectorQuantizer, GaussianLikelihood, HierarchicalModel, LatentModel
from sqvae.distributions.processes import (
    mean_over_processes,
    own_rows,
    processes,
    same_on_all_processes,
    stack_over_processes,
    sum_over_processes,
)
from sqvae.likelihoods import CategoricalLikelihood, VonMisesFisherLikelihood, half_circle_directions
from sqvae.networks import conv_decoder, conv_encoder
from sqvae.networks.normalisation import BatchNorm2d
from sqvae.quantizers import LATENTS, Stage
from test_hierarchy import make as make_levels

pytestmark = pytest.mark.skipif(not distributed.is_available(), reason="torch was built without distributed training")

BATCH = 12
CLASSES = 6
STEPS = {torch.float32: 20, torch.float64: 6}

LEVELS = "levels"
"""In place of a quantizer's name: two levels of codes, the finer one with layers."""

MODELS = {
    **{name: (name, {}, "gaussian") for name in LATENTS},
    "vq-ema-reset": ("vq-ema-reset", {"reset_every": 4, "reset_below": 0.5}, "gaussian"),
    "gaussian-1 by the schedule": ("gaussian-1", {}, "gaussian"),
    "gaussian-3, certain": ("gaussian-3", {}, "gaussian"),
    "residual-1, certain": ("residual-1", {"layer_dropout": 0.5}, "gaussian"),
    "gaussian-1 dequantized": ("gaussian-1", {"dequantize": True}, "gaussian"),
    "vmf dequantized, hard": ("vmf", {"dequantize": True, "hard": True}, "gaussian"),
    "labels": ("gaussian-1", {}, "categorical"),
    "labels as directions": ("vmf", {}, "vmf"),
    "labels in closed form": ("vmf", {}, "vmf closed"),
    "levels": (LEVELS, {}, "gaussian"),
    "levels, certain": (LEVELS, {}, "gaussian"),
}
"""A quantizer, its options and a likelihood."""

STAGES = {
    "gaussian-1 by the schedule": Stage(0.7, 0.3, 0.5, 1.0),
    **{name: Stage(0.7, 0.3, 0.5, 1.0, price=0.5) for name in MODELS if "certain" in name},
}
"""What some are told; others have a temperature alone."""

WITH_THREE_PROCESSES = ("vmf dequantized, hard",)  # it draws in every way there is


class TwoHeads(nn.Module):
    """Encodings and log-variances, with a parameter for these alone, which must have a gradient at every step."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.trunk = conv_encoder(channels, 2 * DIM)
        self.offset = nn.Parameter(torch.zeros(DIM, 1, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z, log_variance = self.trunk(x).chunk(2, 1)
        return z, log_variance + self.offset


def model_and_data(
    quantizer_name: str, options: dict[str, float], likelihood_name: str
) -> tuple[LatentModel | HierarchicalModel, Tensor]:
    """A small model, the same in every process, and (steps, BATCH, ...) for it."""
    torch.manual_seed(0)
    likelihood, channels = {
        "gaussian": (GaussianLikelihood("closed_form"), 1),
        "categorical": (CategoricalLikelihood(CLASSES), CLASSES),
        "vmf": (VonMisesFisherLikelihood(half_circle_directions(CLASSES)), 2),
        # One class is ignored, so that slices know different numbers of places.
        "vmf closed": (
            VonMisesFisherLikelihood(half_circle_directions(CLASSES), concentration="closed_form", ignore=0),
            2,
        ),
    }[likelihood_name]
    # Slices of different brightness: statistics of a slice are not those of the batch.
    images = torch.rand(max(STEPS.values()), BATCH, 1, 8, 8) * torch.linspace(0.2, 1, BATCH).view(-1, 1, 1, 1)
    if quantizer_name == LEVELS:
        return make_levels("gaussian-1", "residual"), images
    quantizer = build(quantizer_name, channel_first=True, **options)
    encoder = TwoHeads(channels) if quantizer.needs_log_variance else conv_encoder(channels, DIM)
    decoder = conv_decoder(channels, DIM, bounded=likelihood_name == "gaussian")
    data = images
    if likelihood_name != "gaussian":
        data = torch.randint(0, CLASSES, (max(STEPS.values()), BATCH, 8, 8))
    return LatentModel(encoder, quantizer, decoder, likelihood), data


def slice_of(batch: Tensor) -> Tensor:
    rank, number = processes()
    return batch.chunk(number)[rank]


def trained(name: str, dtype: torch.dtype) -> dict[str, Tensor]:
    """The losses of a few steps, and the weights after them, in one of the processes or in the only one."""
    model, data = model_and_data(*MODELS[name])
    model = model.to(dtype)
    _, number = processes()
    forward = DistributedDataParallel(model) if number > 1 else model
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for step, batch in enumerate(data[: STEPS[dtype]]):
        torch.manual_seed(100 + step)
        own = slice_of(batch)
        loss = forward(own.to(dtype) if own.is_floating_point() else own, STAGES.get(name, 0.7)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses), **model.state_dict()}


def moving_averages() -> dict[str, Tensor]:
    """A codebook that follows encodings, where each process has noise of its own."""
    rank, _ = processes()
    torch.manual_seed(0)
    quantizer = EMAVectorQuantizer(12, 4, decay=0.8, reset_every=3, reset_below=0.5)
    torch.manual_seed(2 + 100 * rank)
    for batch in torch.randn(6, BATCH, 5, 4, generator=torch.Generator().manual_seed(1)):
        quantizer(slice_of(batch))
    return quantizer.state_dict()


TENSORS = (
    (torch.float32, torch.contiguous_format, 1e-4),
    (torch.bfloat16, torch.contiguous_format, 2e-2),
    (torch.float64, torch.channels_last, 1e-9),
)
"""What batch normalisation is given: a type, a memory format, and how close to torch's result it must be."""


def normalised(layer: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """Two training batches through batch normalisation, and all gradients of a loss of the second."""
    layer(1 + x)
    x = x.clone(memory_format=torch.preserve_format).requires_grad_()
    y = layer(x)
    (y.double().sin() * (1 + x.detach().double())).sum().backward()
    assert layer.weight.grad is not None
    assert layer.bias.grad is not None
    return {
        "y": y.detach(),
        "x": x.grad,
        "weight": layer.weight.grad,
        "bias": layer.bias.grad,
        **{f"state {key}": value for key, value in layer.state_dict().items()},
    }


def layer_and_input(kind: type[nn.Module], dtype: torch.dtype, memory_format: torch.memory_format, _tolerance: float):
    """Far from the origin, and each sample elsewhere."""
    torch.manual_seed(4)
    layer = kind(5).to(torch.float64 if dtype == torch.float64 else torch.float32)
    with torch.no_grad():
        layer.weight.normal_()
        layer.bias.normal_()
    x = 20 + torch.linspace(-3, 3, BATCH).view(-1, 1, 1, 1) + torch.randn(BATCH, 5, 3, 2)
    return layer, x.to(dtype).to(memory_format=memory_format)


def uneven_slice(x: Tensor) -> Tensor:
    rank, number = processes()
    return x.split([2] * (number - 1) + [len(x) - 2 * (number - 1)])[rank]


def closed_form_gradient() -> Tensor:
    """Of the loss by a parameter, averaged over processes."""
    torch.manual_seed(5)
    weight = torch.randn(3, requires_grad=True)
    x = torch.rand(BATCH, 3) * torch.linspace(0.1, 2, BATCH).unsqueeze(-1)
    own = slice_of(x)
    GaussianLikelihood("closed_form")(own.sin() * weight, own).loss.backward()
    assert weight.grad is not None
    return mean_over_processes(weight.grad)


def small_things() -> dict[str, Tensor]:
    """The functions of `processes` themselves."""
    rank, number = processes()
    torch.manual_seed(6)
    own = torch.tensor([rank + 1.0, 10.0], requires_grad=True)
    total = sum_over_processes(own)
    (gradient,) = torch.autograd.grad((total * (rank + 1)).sum(), own)
    first = torch.full((2,), float(rank + 7))
    return {
        "total": total.detach(),
        "gradient": gradient,
        "mean": mean_over_processes(own.detach()),
        "all": stack_over_processes(own.detach()),
        "first": same_on_all_processes(first),
        "untouched": first,
        "rows": own_rows(lambda rows: torch.rand(rows, 2), BATCH // number),
        "after": torch.rand(1),
    }


def run_one_of(rank: int, number: int, folder: str, names: tuple[str, ...]) -> None:
    torch.set_num_threads(1)
    if sys.platform == "linux":
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the processes meet on this machine only
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=number)
    try:
        results = {
            "small things": small_things(),
            "moving averages": moving_averages(),
            "closed form": closed_form_gradient(),
            "batch norm": [
                normalised(layer, uneven_slice(x))
                for layer, x in (layer_and_input(BatchNorm2d, *kind) for kind in TENSORS)
            ],
            **{f"{name} {dtype}": trained(name, dtype) for name in names for dtype in STEPS},
        }
        torch.save(results, f"{folder}/{rank}.pt")
    finally:
        distributed.destroy_process_group()


def run(folder: Path, number: int, names: tuple[str, ...]) -> list[dict]:
    multiprocessing.spawn(run_one_of, (number, str(folder), names), nprocs=number)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(number)]


@pytest.fixture(scope="module")
def of_two(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """What each of two processes found; they are started once for all tests."""
    return run(tmp_path_factory.mktemp("two"), 2, tuple(MODELS))


@pytest.fixture(scope="module")
def of_three(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    return run(tmp_path_factory.mktemp("three"), 3, WITH_THREE_PROCESSES)


@pytest.fixture(params=["two", "three"])
def results(request: pytest.FixtureRequest) -> list[dict]:
    return request.getfixturevalue(f"of_{request.param}")


def check_same_training(name: str, results: list[dict]) -> None:
    """To 1e-4 in float32, the losses. In float64 rounding hides nothing, and the weights are the same as well."""
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-8)):
        alone = trained(name, dtype)
        several = [result[f"{name} {dtype}"] for result in results]
        losses = torch.stack([one["losses"] for one in several]).mean(0)
        torch.testing.assert_close(losses, alone["losses"], rtol=tolerance, atol=0)
    for key, value in alone.items():
        for one in several if key != "losses" else []:
            torch.testing.assert_close(one[key], value, rtol=1e-6, atol=1e-6, msg=lambda m, key=key: f"{key}: {m}")


@pytest.mark.parametrize("name", MODELS)
def test_two_processes_train_as_one(name, of_two):
    check_same_training(name, of_two)


@pytest.mark.parametrize("name", WITH_THREE_PROCESSES)
def test_three_processes_train_as_one(name, of_three):
    check_same_training(name, of_three)


def test_moving_averages_are_those_of_the_whole_batch_whatever_the_noise(results):
    for key, value in moving_averages().items():
        for result in results:
            assert torch.equal(result["moving averages"][key], results[0]["moving averages"][key]), key
            torch.testing.assert_close(result["moving averages"][key], value)


def test_the_closed_form_variance_has_the_gradient_of_the_whole_batch(results):
    expected = closed_form_gradient()
    for result in results:
        torch.testing.assert_close(result["closed form"], expected)


@pytest.mark.parametrize("kind", TENSORS)
def test_batch_normalisation_is_over_the_whole_batch(kind, results):
    """Forward, backward and averages, with slices of unequal size."""
    _, memory_format, tolerance = kind
    expected = normalised(*layer_and_input(nn.BatchNorm2d, *kind))
    parts = [result["batch norm"][TENSORS.index(kind)] for result in results]
    for key, value in expected.items():
        of_each = [part[key] for part in parts]
        if key in ("y", "x"):
            found = torch.cat(of_each)
        else:
            found = of_each[-1] if key.startswith("state") else torch.stack(of_each).sum(0)
        torch.testing.assert_close(found, value, rtol=tolerance, atol=tolerance, msg=lambda m, key=key: f"{key}: {m}")
    assert parts[0]["y"].is_contiguous(memory_format=memory_format)


@pytest.mark.parametrize("kind", TENSORS)
def test_batch_normalisation_in_one_process_is_torch_s(kind):
    ours, theirs = (normalised(*layer_and_input(layer, *kind)) for layer in (BatchNorm2d, nn.BatchNorm2d))
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        assert torch.equal(ours[key], value), key
    layer, x = layer_and_input(BatchNorm2d, *kind)
    reference, _ = layer_and_input(nn.BatchNorm2d, *kind)
    layer(x)
    reference.load_state_dict(layer.state_dict())
    assert torch.equal(layer.eval()(x), reference.eval()(x))


def test_batch_normalisation_tells_what_shape_it_wants():
    with pytest.raises(ValueError, match=r"x must be \(batch, 5, H, W\), got shape \(2, 4, 3, 3\)"):
        BatchNorm2d(5)(torch.zeros(2, 4, 3, 3))


def test_sums_means_and_rows_of_several_processes(results):
    number = len(results)
    found = [result["small things"] for result in results]
    ranks = torch.arange(number) + 1.0
    alone = small_things()
    for rank, result in enumerate(found):
        assert result["total"].tolist() == [ranks.sum(), 10 * number]
        assert result["gradient"].tolist() == [ranks.sum()] * 2
        assert result["mean"].tolist() == [ranks.mean(), 10]
        assert result["all"].tolist() == [[rank, 10] for rank in ranks]
        assert result["first"].tolist() == [7, 7]
        assert result["untouched"].tolist() == [rank + 7] * 2
        assert torch.equal(result["after"], alone["after"])
    assert torch.equal(torch.cat([result["rows"] for result in found]), alone["rows"])


def test_one_process_is_given_back_what_it_gave():
    values = torch.randn(3)
    assert processes() == (0, 1)
    assert sum_over_processes(values) is values
    assert mean_over_processes(values) is values
    assert same_on_all_processes(values) is values
    assert own_rows(lambda rows: values[:rows], 3).data_ptr() == values.data_ptr()

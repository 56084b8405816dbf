"""The loop that trains everything."""

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
"""Of what a checkpoint says about training."""


class Batch(Protocol):
    """Examples as they are stored: a tensor, or several that belong together."""

    def chunk(self, chunks: int) -> Any:
        """The same in so many parts."""


class Examples(Protocol):
    """A training set."""

    def __len__(self) -> int: ...

    def take(self, indices: Tensor) -> Batch:
        """(n,) -> (n, ...): some of the examples. What is drawn for them is drawn from torch's own generator."""


class Outcome(Protocol):
    """What a model returns for a batch."""

    @property
    def loss(self) -> Tensor:
        """(): what training minimises."""


class Task(Protocol):
    """What the loop leaves to others: how examples become input, and what is said about them."""

    def prepare(self, examples: Any, device: torch.device) -> Any:
        """Stored examples as the model wants them."""

    def statistics(self, x: Any, outcome: Any) -> Mapping[str, float]:
        """What a record says about one step."""

    def state(self) -> Mapping[str, Any]:
        """What it must remember over an interruption."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Remember it again."""

    def validate(self, model: nn.Module, accelerator: Accelerator, temperature: float) -> Validation:
        """A judgement of the model on examples it is not trained on; every process takes part.

        Arguments:
            temperature: of the relaxation, as training has it now.
        """


class TrainingStoppedError(Exception):
    """Training was asked to stop, and has saved its state."""

    def __init__(self, folder: Path, position: Position, signal_number: int) -> None:
        super().__init__(f"stopped at {position}; saved in {folder}")
        self.position = position
        self.signal_number = signal_number


class TrainingDivergedError(Exception):
    """The loss is no longer a number."""


class Training:
    """One run, from wherever it stands to its end.

    Two runs with the same arguments give the same weights, and so does one that was killed and resumed any number of
    times (on CPUs to the bit, with the same number of threads and processes): the order of the data and all noise are
    functions of the seed and the step, and everything else is in the checkpoint.

    Arguments:
        model: called as ``model(x, temperature)``, it returns something with a loss; where the plan has more to say
            than a temperature, with a :class:`~sqvae.quantizers.Stage`.
        examples: the training set.
        task: what depends on the kind of data.
        plan: how to train.
        folder: where checkpoints go.
        config: what is stored with them.
        seed: of the order and of all noise.
        watchers: who is told what happens.
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
                f"{f' and {plan.accumulate} shares each' if plan.accumulate > 1 else ''}: choose training.batch_size "
                f"a multiple of {processes * plan.accumulate}"
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
        """Take up the state of a checkpoint."""
        saved = read_checkpoint(checkpoint, training=True)
        assert saved.state is not None
        if saved.state.get("format") != STATE_FORMAT:
            raise CheckpointError(
                f"the training state in {checkpoint} was written by another version of sqvae, and can't be gone on "
                f"from; its weights can be used as they are"
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
                f"{checkpoint} was trained with {saved.state['batches']:,} batches an epoch, and now there are "
                f"{self.position.batches:,}: use the data, the batch size and the number of processes that it had"
            )

    def _stand_at(self, epoch: int, batch: int, step: int) -> None:
        """Take a position, from which the plan says how many steps there are in all, and so how rates fall."""
        batches = len(self.order)
        steps = self.plan.steps
        if steps is None:
            steps = step - batch + (self.plan.epochs - epoch) * batches
        self.position = Position(epoch, batch, step, steps, batches)
        self.schedule = SCHEDULES[self.plan.schedule](self.plan, steps)

    @property
    def is_over(self) -> bool:
        """Whether the plan is carried out, and what came of it validated."""
        return self.position.batch == 0 and self.plan.is_over(self.position.epoch, self.position.step, self.best)

    def run(self) -> None:
        """Train to the end of the plan, or until a signal asks to stop."""
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
            if self.accelerator.device.type != "cpu":  # where there is memory to give back; it takes a quarter second
                self.accelerator.free_memory()

    def batches(self) -> Iterator[Tensor]:
        """What is left of the present epoch: of each batch, this process's part."""
        self.prepared.train()
        epoch, processes = self.position.epoch, self.accelerator.num_processes
        share = self.order.batch_size // processes
        first = share * self.accelerator.process_index
        end = min(len(self.order), self.position.batch + self.position.steps - self.position.step)
        for index in range(self.position.batch, end):
            yield self.order.batch(epoch, index)[first : first + share]

    def step(self, indices: Tensor) -> None:
        """One step of the optimizer."""
        step = self.position.step
        rate = self.schedule.rate(step)
        set_rates(self.optimizer, rate)
        self._seed(stream_seed(self.seed, "noise", step))
        batch = self.examples.take(indices)
        told = Stage(*map(torch.tensor, stage(self.plan, step, self.position.steps)))
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
        """Seed the noise: the same in every process, each of which draws what belongs to its part of the batch."""
        # Not torch.manual_seed, which looks for every kind of device there might be, and takes as long as a layer.
        torch.default_generator.manual_seed(seed)
        if self.accelerator.device.type != "cpu":
            torch.get_device_module(self.accelerator.device).manual_seed(seed)

    def _backward(self, loss: Tensor) -> None:
        # Accelerate's own way looks for optional packages at each call; only scaled losses need it.
        if self.accelerator.scaler is None:
            loss.backward()
        else:
            self.accelerator.backward(loss)

    def _record(self, x: Any, outcome: Any, rate: float, tau: float) -> None:
        """Tell the watchers the mean loss of the last steps, and more about the last one."""
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
        """(): of the steps since the last record, in this process."""
        return self._loss / max(1, self._losses)

    def _forget_losses(self) -> None:
        self._loss.zero_()
        self._losses = 0

    def _validate(self) -> None:
        """Judge the model, remember the best, and save."""
        self.prepared.eval()
        tau = temperature(self.plan, self.position.step, self.position.steps)
        validation = self.task.validate(self.model, self.accelerator, tau)
        self.schedule.validated(validation.loss)
        improved = validation.loss < self.best
        self.best = min(self.best, validation.loss)
        self._forget_losses()
        self.position = replace(self.position, epoch=self.position.epoch + 1, batch=0)
        if improved:
            # Before the newest: a kill in between then repeats this epoch, and writes both once more.
            self._write(self.folder.best, Checkpoint(self.config, self.model.state_dict()))
        self._tell("validated", validation, improved)
        for message in validation.warnings:
            self._tell("warned", message)
        self._save()

    def _save(self) -> None:
        """Write the newest checkpoint, unless its weights are no longer numbers."""
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
        """The first process writes, and the others wait for it."""
        if self.accelerator.is_main_process:
            try:
                write_checkpoint(target, checkpoint, **options)
            except CheckpointError as failure:
                raise CheckpointError(f"{failure}. {self.folder.advice()}") from failure
        self.accelerator.wait_for_everyone()

    def _optimizer_tensors(self) -> dict[str, Tensor]:
        """The optimizer's state, by the names of the parameters it belongs to."""
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
            # In the parameter's own layout in memory, which the optimizer takes for granted.
            like = parameter if value.shape == parameter.shape else value
            self.optimizer.state[parameter][key] = torch.empty_like(like, device=parameter.device).copy_(value)

    def _agreed(self, wish: bool) -> bool:
        """Whether any process wishes something, so that all do it at the same step."""
        if self.accelerator.num_processes == 1:
            return wish
        if self.position.step % 10:  # asking the others takes time
            return False
        wishes = torch.tensor(float(wish), device=self.accelerator.device)
        return bool(self.accelerator.reduce(wishes, "sum") > 0)

    def _diverged(self, what: str, cause: Exception | None = None) -> None:
        message = (
            f"training has diverged at {self.position}: {what}. Lower training.learning_rate, or bound the gradient "
            f"with training.clip=1. {self.folder.advice()}"
        )
        self._tell("warned", message)
        raise TrainingDivergedError(message) from cause

    def _tell(self, event: str, *details: Any) -> None:
        with self.folder.writing():
            for watcher in self.watchers:
                getattr(watcher, event)(self.position, *details)


def this_process() -> PartialState:
    """This process among its peers, if a launcher has started several."""
    # Accelerate takes processes without an accelerator for unrelated ones unless it is told that they run on CPUs.
    return PartialState(cpu=not torch.accelerator.is_available())


def leave_other_processes() -> None:
    """From here on this process is alone."""
    this_process().destroy_process_group()


@contextlib.contextmanager
def first_process_first() -> Iterator[None]:
    """The first process goes through the block before the others do, which find there what it has made."""
    _, number = processes()
    with this_process().main_process_first() if number > 1 else contextlib.nullcontext():
        yield


def make_accelerator(precision: str = "no") -> Accelerator:
    """Accelerate's view of this process: its device, its peers, its precision."""
    # The state is one for all accelerators of a process; without this a second run could not choose another precision.
    AcceleratorState._reset_state()
    # Batch statistics are already the same everywhere, so sending buffers around would be for nothing.
    return Accelerator(
        mixed_precision=precision,
        cpu=not torch.accelerator.is_available(),
        kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)],
    )

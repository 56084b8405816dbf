"""The settings of a training run."""

import math
from dataclasses import dataclass
from typing import Literal

Precision = Literal["no", "bf16", "fp16"]


@dataclass(frozen=True)
class Plan:
    """The settings of a training run: its length, learning rates, schedules and precision."""

    epochs: int = 100
    steps: int | None = None
    """Number of steps to train for, instead of `epochs`; the last epoch may then be incomplete. None: all epochs."""
    passes_per_epoch: int | None = None
    """Number of passes over the training set in an epoch. None: one, or for small datasets enough for 200 steps."""
    batch_size: int = 32
    """Number of examples per step, over all processes and accumulation steps."""
    accumulate: int = 1
    """Number of parts in which a batch is computed one after the other, to save memory (gradient accumulation). Batch
    statistics are then those of a part."""
    learning_rate: float = 1e-3
    schedule: str = "plateau"
    """The learning rate schedule: see `sqvae.training.SCHEDULES`."""
    until: float | None = None
    """Stop after the first validation with a loss of at most this value. None: after all epochs."""
    patience: int = 3
    """For the plateau schedule: number of epochs without improvement after which the learning rate is halved."""
    tolerance: float = 1e-4
    """For the plateau schedule: the smallest decrease of the loss per dimension that counts as improvement. 1e-4 is
    0.02% of the squared error if the loss is its logarithm."""
    temperature_decay: float = 1e-5
    """The temperature of the relaxation is exp(-decay * step), unless `temperature_end` is given."""
    temperature_end: float | None = None
    """If given, the temperature decreases exponentially from 1 to this value over the whole run."""
    temperature_hold: float = 0.0
    """The share of the run at the beginning in which the temperature stays at 1."""
    temperature_minimum: float = 1e-6
    """The minimum temperature."""
    codebook_rate: float = 1.0
    """The learning rate of the quantizer's parameters (its codes and variance), relative to that of the network."""
    latent_weight_end: float = 1.0
    """The weight of the quantizer's terms in the objective of its variance or concentration at the end of the run; it
    is 1 at the beginning. With a smaller value choices become more certain; with 1 they are trained by the bound."""
    straight_through_end: float = 0.0
    """The share of the decoder's gradient that is passed to the encodings straight through at the end of the run, in
    addition to the gradient of the relaxed sample; it is 0 at the beginning."""
    evenness: float = 0.0
    """How strongly codebook usage is pulled towards uniform: see `sqvae.quantizers.Stage`."""
    certain_from: float = 1.0
    """The share of the run after which assignments are certain: see `sqvae.training.Annealing`. 1: they never are."""
    price: float = 0.5
    """The price of codes when assignments become certain: see `sqvae.quantizers.Stage`. It falls evenly to"""
    price_end: float = 0.125
    """that at the end of the run."""
    clip: float | None = None
    """The maximum norm of the gradient; None disables clipping."""
    precision: Precision = "no"
    """Mixed precision: bf16, fp16 or no."""
    compile: bool = False
    """Compile the model first: takes about half a minute and makes steps faster."""
    threads: int | None = None
    """Number of CPU threads; None keeps torch's choice. Exact resuming requires the same number."""
    log_every: int = 50
    """Number of steps between two records of the log."""
    checkpoint_minutes: float = 5.0
    """Maximum number of minutes between checkpoints within an epoch; one is always written after each epoch."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate", "patience", "log_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"training.{name} must be at least 1, got {getattr(self, name)}")
        for name in ("learning_rate", "temperature_minimum", "checkpoint_minutes", "codebook_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"training.{name} must be finite and > 0, got {getattr(self, name)}")
        if self.temperature_end is not None and not 0 < self.temperature_end <= 1:
            raise ValueError(
                f"training.temperature_end must lie between 0 and 1, or be none; got {self.temperature_end}"
            )
        if not 0 < self.latent_weight_end <= 1:
            raise ValueError(
                f"training.latent_weight_end must be more than 0 and at most 1, got {self.latent_weight_end}"
            )
        if not 0 < self.certain_from <= 1:
            raise ValueError(f"training.certain_from must be more than 0 and at most 1, got {self.certain_from}")
        if not 0 <= self.temperature_hold < 1:
            raise ValueError(f"training.temperature_hold must be at least 0 and below 1, got {self.temperature_hold}")
        for name in ("steps", "passes_per_epoch", "clip", "threads"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"training.{name} must be > 0, or none; got {value}")
        if self.until is not None and not math.isfinite(self.until):
            raise ValueError(f"training.until must be a finite loss, or none; got {self.until}")
        for name in ("temperature_decay", "tolerance", "straight_through_end", "evenness", "price", "price_end"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"training.{name} must be finite and at least 0, got {getattr(self, name)}")
        if self.batch_size % self.accumulate:
            raise ValueError(
                f"training.accumulate must divide the batch: {self.batch_size} examples don't make "
                f"{self.accumulate} equal parts"
            )

    @property
    def anneals(self) -> bool:
        """Whether the quantizer needs a stage, and not only a temperature."""
        return any((self.latent_weight_end != 1, self.straight_through_end, self.evenness, self.certain_from != 1))

    @property
    def compared_latent_weight(self) -> float:
        """The weight of the quantizer's terms in the loss by which epochs of a run are compared: none in runs in which
        assignments become certain, because these terms don't have the same meaning before and after that."""
        return self.latent_weight_end if self.certain_from == 1 else 0.0

    def price_at(self, step: int, steps: int) -> float | None:
        """The price of codes at a step of a run with a number of steps; None before assignments are certain."""
        if self.certain_from == 1 or step < self.certain_from * steps:
            return None
        share = (step / steps - self.certain_from) / (1 - self.certain_from)
        return self.price + share * (self.price_end - self.price)

    def is_over(self, epochs: int, steps: int, best: float) -> bool:
        """Whether a run is finished.

        Arguments:
            epochs: the number of finished epochs.
            steps: the number of finished steps.
            best: the lowest validation loss so far.
        """
        done = epochs >= self.epochs if self.steps is None else steps >= self.steps
        return done or (self.until is not None and best <= self.until)

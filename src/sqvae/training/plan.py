"""What a training run is asked to do, in numbers."""

import math
from dataclasses import dataclass
from typing import Literal

Precision = Literal["no", "bf16", "fp16"]


@dataclass(frozen=True)
class Plan:
    """How long, how fast and how carefully to train."""

    epochs: int = 100
    steps: int | None = None
    """Train for so many steps, whatever the epochs, the last of which may then be cut short. None: for all epochs."""
    passes_per_epoch: int | None = None
    """How often an epoch goes through the data. None: once, or where examples are few, as often as gives 200 steps."""
    batch_size: int = 32
    """Examples a step, over all processes and accumulated shares together."""
    accumulate: int = 1
    """In how many shares a batch is computed, one after the other, to save memory. Batch statistics are then those of a
    share."""
    learning_rate: float = 1e-3
    schedule: str = "plateau"
    """How the learning rate falls: see `sqvae.training.SCHEDULES`."""
    until: float | None = None
    """Stop at the first validation whose loss is no more than this. None: after all epochs."""
    patience: int = 3
    """Of the plateau rule: so many epochs without improvement, and the rate is halved."""
    tolerance: float = 1e-4
    """Of the plateau rule: what counts as improvement of the loss per dimension. 1e-4 is 0.02% of the squared error
    where the loss is its logarithm."""
    temperature_decay: float = 1e-5
    """The relaxation's temperature is exp(-decay * step),"""
    temperature_end: float | None = None
    """or, where this is given, falls as evenly from 1 to this over the whole run, however long it is;"""
    temperature_hold: float = 0.0
    """for this share of the run it stays at 1 before;"""
    temperature_minimum: float = 1e-6
    """and is never less than this."""
    codebook_rate: float = 1.0
    """How many times faster than the rest the quantizer's own numbers learn, its codes and what spreads them."""
    latent_weight_end: float = 1.0
    """What the quantizer's terms count for its variance, or its concentration, at the end of the run, from 1 at the
    beginning. The less that is, the surer choices become; at 1 they are trained by the bound, like all else."""
    straight_through_end: float = 0.0
    """How much of the decoder's gradient is given to the encodings as it is at the end of the run, from 0 at the
    beginning, besides what comes through the relaxed draw."""
    evenness: float = 0.0
    """How strongly the codes' use is pulled towards even: see `sqvae.quantizers.Stage`."""
    clip: float | None = None
    """The largest norm of the gradient; None leaves it as it is."""
    precision: Precision = "no"
    """Mixed precision: bf16, fp16 or no."""
    compile: bool = False
    """Compile the model first: about half a minute, then faster steps."""
    threads: int | None = None
    """Of the CPU; None leaves torch's choice. A run that must resume to the same bits keeps the same number."""
    log_every: int = 50
    """Steps between two records."""
    checkpoint_minutes: float = 5.0
    """At least so often the state is saved within an epoch; after each epoch it is in any case."""

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
        if not 0 <= self.temperature_hold < 1:
            raise ValueError(f"training.temperature_hold must be at least 0 and below 1, got {self.temperature_hold}")
        for name in ("steps", "passes_per_epoch", "clip", "threads"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"training.{name} must be > 0, or none; got {value}")
        if self.until is not None and not math.isfinite(self.until):
            raise ValueError(f"training.until must be a finite loss, or none; got {self.until}")
        for name in ("temperature_decay", "tolerance", "straight_through_end", "evenness"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"training.{name} must be finite and at least 0, got {getattr(self, name)}")
        if self.batch_size % self.accumulate:
            raise ValueError(
                f"training.accumulate must divide the batch: {self.batch_size} examples don't make "
                f"{self.accumulate} equal shares"
            )

    @property
    def anneals(self) -> bool:
        """Whether it has more to say to a quantizer than a temperature."""
        return self.latent_weight_end != 1 or self.straight_through_end != 0 or self.evenness != 0

    def is_over(self, epochs: int, steps: int, best: float) -> bool:
        """Whether a run has come to its end.

        Arguments:
            epochs: those it has trained for,
            steps: and its steps.
            best: the least loss on validation so far.
        """
        done = epochs >= self.epochs if self.steps is None else steps >= self.steps
        return done or (self.until is not None and best <= self.until)

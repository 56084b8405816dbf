"""A model judged on a set of examples of one shape: images, label maps, grey levels or vectors."""

import math
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from sqvae.data import Progress
from sqvae.metrics import ReconstructionTotals
from sqvae.modalities.medium import Medium
from sqvae.models import Bound, HierarchicalModel, LatentModel, Objective
from sqvae.runs.observation import GAP_BATCHES, CodeWatch, Evaluation, annealing_of, mixture_gap
from sqvae.tokenizers import codebook_names_of, codebook_sizes_of
from sqvae.training import Validation, stream_seed

DRAWN_TOGETHER = 64
"""How many examples share a draw of codes where the bound is measured."""

SHOWN = 32
"""How many examples are kept to be looked at."""

Model: TypeAlias = LatentModel | HierarchicalModel
"""A model of examples of one shape."""


class ExampleSet(Protocol):
    """A set of examples of one shape."""

    def __len__(self) -> int: ...

    def take(self, indices: Any) -> Tensor:  # -> (n, ...)
        """Some of the examples, as they are stored."""


@torch.no_grad()
def evaluate(
    model: Model,
    examples: ExampleSet,
    *,
    medium: Medium,
    batch_size: int = 32,
    sampled_bound: bool = False,
    detailed: bool = False,
    temperature: float | None = None,
    latent_weight: float = 1.0,
    accelerator: Accelerator | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a model over a whole set, with the likeliest codes.

    Arguments:
        medium: what the set's examples are.
        sampled_bound: take the bound at codes drawn from the posterior, as the bound wants them, which costs as much
            again. Otherwise it is taken at the likeliest codes.
        detailed: measure each class too, of label maps.
        temperature: that of training, to compare single codes with the mixtures that it decodes, on a few batches.
        latent_weight: what the quantizer's terms count in the loss. The bound has them whole in any case.
        accelerator: the processes that share the work, if there are several.
        progress: called with what is being done, how many examples are done and how many there are.
    """
    model.eval()
    device = next(model.parameters()).device
    totals = ReconstructionTotals(codebook_sizes_of(model), medium.comparison(), codebook_names_of(model))
    starts = range(0, len(examples), batch_size)
    if accelerator is not None:
        starts = starts[accelerator.process_index :: accelerator.num_processes]
    for start in starts:
        x = medium.model_input(examples.take(range(start, min(start + batch_size, len(examples)))), device)
        objective: Objective = model(x)
        totals.add(
            x,
            model.likelihood.predict(objective.output),
            reconstruction_loss=objective.fit.loss,
            latent_loss=latent_weight * objective.latent_weight * objective.quantized.loss,
            bound=objective.bound.nats,
            counts=objective.quantized.counts,
            mean_probabilities=objective.quantized.mean_probabilities,
        )
        if progress is not None:
            progress("evaluating", min(start + batch_size, len(examples)), len(examples))
    if accelerator is not None and accelerator.num_processes > 1:
        for tensor in totals.tensors():
            tensor.copy_(accelerator.reduce(tensor.to(device), "sum").cpu())
    shown = min(SHOWN, len(examples))
    few = medium.model_input(examples.take([len(examples) * index // shown for index in range(shown)]), device)
    became = model.likelihood.predict(model(few).output)
    measures = totals.measures(detailed=detailed)
    dimensions = max(measures.pop("dimensions"), 1)
    reconstruction = model.likelihood.loss_of_set(
        measures.pop("reconstruction_loss"), measures.get("mse", math.nan), dimensions
    )
    if sampled_bound:
        measures |= _sampled_bound(model, examples, medium, dimensions, device, progress)
    if temperature is not None:
        measures |= _mixture_gap(model, examples, medium, batch_size, device, temperature)
    measures["loss_per_dimension"] = (reconstruction + measures.pop("latent_loss")) / dimensions
    wrong = medium.errors(few, became)
    return Evaluation(
        measures,
        tuple(int(n) for n in totals.counts),
        medium.shown(few).cpu(),
        medium.shown(became).cpu(),
        None if wrong is None else wrong.cpu(),
        medium.classes_in(few, became),
    )


def _sampled_bound(
    model: Model,
    examples: ExampleSet,
    medium: Medium,
    dimensions: float,
    device: torch.device,
    progress: Progress | None,
) -> dict[str, float]:
    """The bound over a whole set at codes drawn from the posterior: the same draws, however else the set is divided."""
    total = 0.0
    with torch.random.fork_rng():
        for start in range(0, len(examples), DRAWN_TOGETHER):
            torch.manual_seed(stream_seed(0, "bound", start))
            x = medium.model_input(examples.take(range(start, min(start + DRAWN_TOGETHER, len(examples)))), device)
            total += len(x) * float(model(x, sample=True).bound.nats)
            if progress is not None:
                progress("drawing codes", min(start + DRAWN_TOGETHER, len(examples)), len(examples))
    bound = Bound(torch.tensor(total / len(examples)), dimensions)
    return {"bound_nats": float(bound.nats), "bits_per_dimension": float(bound.bits_per_dimension)}


def _mixture_gap(
    model: Model, examples: ExampleSet, medium: Medium, batch_size: int, device: torch.device, temperature: float
) -> dict[str, float]:
    """Single codes against mixtures, on a few batches from all of a set."""
    number = min(GAP_BATCHES * batch_size, len(examples))
    chosen = [len(examples) * index // number for index in range(number)]
    parts = (chosen[start : start + batch_size] for start in range(0, number, batch_size))
    return mixture_gap(
        model,
        (medium.model_input(examples.take(part), device) for part in parts),
        temperature,
        medium.comparison,
        lambda comparison, x, objective: comparison.add(x, model.likelihood.predict(objective.output)),
    )


class ExampleTask:
    """Examples of one shape, as the training loop meets them.

    Arguments:
        model: the model that is trained.
        validation: the examples it is judged on.
        batch_size: of the judgement.
        medium: what the examples are.
        quantizer: the name of the model's.
    """

    def __init__(
        self,
        model: Model,
        validation: ExampleSet,
        batch_size: int,
        medium: Medium,
        quantizer: str,
    ) -> None:
        self.medium = medium
        self.model = model
        self.validation = validation
        self.batch_size = batch_size
        self.watch = CodeWatch(f"validation {medium.noun}s", quantizer)

    def prepare(self, examples: Tensor, device: torch.device) -> Tensor:
        """Examples as the model takes them."""
        return self.medium.model_input(examples, device)

    @torch.no_grad()
    def statistics(self, x: Tensor, outcome: Objective) -> dict[str, float]:
        """The error and what self-annealing looks like, at one training step."""
        comparison = self.medium.comparison()
        comparison.add(x, self.model.likelihood.predict(outcome.output))
        return comparison.measures() | annealing_of(self.model.quantizer, outcome)

    def state(self) -> dict[str, float]:
        """What is remembered of the codes."""
        return self.watch.state()

    def restore(self, state: Mapping[str, float]) -> None:
        """Remember it again."""
        self.watch.restore(state)

    def validate(
        self, model: nn.Module, accelerator: Accelerator, temperature: float, latent_weight: float
    ) -> Validation:
        """The whole validation set, and a word where codes die."""
        evaluation = evaluate(
            self.model,
            self.validation,
            medium=self.medium,
            batch_size=self.batch_size,
            temperature=temperature,
            latent_weight=latent_weight,
            accelerator=accelerator,
        )
        return evaluation.as_validation(tuple(self.watch.warnings(evaluation)), len(self.validation))

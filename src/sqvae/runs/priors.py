"""Priors over the codes of a trained model: what they are trained on, and how they are judged."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from sqvae.config import ConfigurationError, PriorExperiment
from sqvae.data import Progress, classes_of
from sqvae.data.named import SETS
from sqvae.distributions.processes import own_rows
from sqvae.priors import CodeBatch, CodeCost, CodeLikelihood, Condition
from sqvae.runs.code_sets import SPLITS, CodeSet, code_counts, codes_of_sets
from sqvae.runs.prepared import Announce, Prepared, Trainable, prepare, settled_source, with_passes
from sqvae.tokenizers import load
from sqvae.training import Examples, RunFolder, Task, Validation, first_process_first, read_json, stream_seed

JUDGED_AT_ONCE = 64
"""Examples that are judged at a time."""


@dataclass(frozen=True)
class CodeMaps:
    """Maps of codes, with what is given of each."""

    codes: Tensor
    """(N, h, w), or (N, h, w, layers)"""
    classes: Tensor | None = None
    """(N,)"""
    above: Tensor | None = None
    """(N, h', w'): of the next coarser level."""

    def __len__(self) -> int:
        return len(self.codes)

    def counts(self, codebook_size: int) -> Tensor:  # -> (K,), or (layers, K)
        """How often each code occurs, in each layer if there are layers."""
        return code_counts(self.codes, codebook_size, layered=self.codes.ndim == 4)

    def take(self, indices: Tensor) -> CodeBatch:  # (B,)
        """Some of the maps."""
        if self.classes is None and self.above is None:
            return CodeBatch(self.codes[indices])
        classes, above = (None if one is None else one[indices] for one in (self.classes, self.above))
        return CodeBatch(self.codes[indices], condition=Condition(classes, above))


@dataclass(frozen=True)
class CodeSequences:
    """Sequences of codes, of any lengths, of which pieces are taken.

    Arguments:
        sequences: (n,) each, or (n, layers).
        crop: how long a piece is at most; where it begins is drawn from torch's own generator. None: from the beginning
            to the end.
    """

    sequences: tuple[Tensor, ...]
    crop: int | None = None

    def __len__(self) -> int:
        return len(self.sequences)

    def counts(self, codebook_size: int) -> Tensor:  # -> (K,), or (layers, K)
        """How often each code occurs, in each layer if there are layers."""
        codes = torch.cat(self.sequences)
        return code_counts(codes, codebook_size, layered=codes.ndim == 2)

    def take(self, indices: Tensor) -> CodeBatch:  # (B,)
        """A piece of some of them."""
        chosen = [self.sequences[index] for index in indices.tolist()]
        if self.crop is not None:
            places = own_rows(lambda rows: torch.rand(rows), len(chosen)).tolist()
            chosen = [_piece(codes, place, self.crop) for codes, place in zip(chosen, places, strict=True)]
        lengths = torch.tensor([len(codes) for codes in chosen])
        return CodeBatch(pad_sequence(chosen, batch_first=True), lengths)


def _piece(codes: Tensor, place: float, length: int) -> Tensor:  # (n, ...) -> (at most length, ...)
    start = int(place * (max(len(codes) - length, 0) + 1))
    return codes[start : start + length]


CodeExamples = CodeMaps | CodeSequences


@dataclass(frozen=True)
class PreparedPrior(Trainable):
    """A prior with the codes it is about."""

    experiment: PriorExperiment
    train: CodeExamples
    validation: CodeExamples
    test: CodeExamples
    counts: Tensor
    """How often each code occurs in training, (K,); with layers how often in each of them, (layers, K)."""
    data_key: str

    @property
    def example(self) -> str:
        return "code sequence" if self.experiment.sequences else "code map"

    @property
    def key(self) -> str:
        marks = (self.data_key, self.experiment.fingerprint, self.experiment.above_fingerprint)
        return "/".join(mark for mark in marks if mark)

    @property
    def examples(self) -> Examples:
        return self.train

    def new_model(self) -> CodeLikelihood:
        torch.manual_seed(stream_seed(self.experiment.seed, "weights"))
        return CodeLikelihood(self.experiment.build())

    def task(self, model: CodeLikelihood) -> Task:
        return PriorTask(model, self.validation, self.counts)

    def evaluate(self, model: CodeLikelihood, split: str, progress: Progress | None = None) -> dict[str, float]:
        """What a set costs under the prior; and under what is known without one, to compare with."""
        examples: CodeExamples = getattr(self, split)
        return {**cost_of(model, examples, progress=progress), **costs_without_prior(self.counts, examples)}


def costs_without_prior(training: Tensor, examples: CodeExamples) -> dict[str, float]:  # (K,), or (layers, K)
    """What a set costs without a prior, to compare with: see :func:`independent_costs`."""
    return independent_costs(training, examples.counts(training.shape[-1]))


def independent_costs(training: Tensor, counts: Tensor) -> dict[str, float]:  # (K,) or (layers, K), each
    r"""What codes cost that are coded one by one, by how often each occurs in training, or as if all were equally
    likely.

    .. math:: -\sum_k \frac{n_k}{n} \log_2 \frac{m_k + 1}{m + K}, \qquad \log_2 K

    With layers each has a histogram of its own, and the cost is the mean over all their codes.
    """
    logs = ((training + 1) / (training.sum(-1, keepdim=True) + training.shape[-1])).double().log2()
    return {
        "histogram_bits_per_code": -float((counts * logs).sum() / counts.sum()),
        "uniform_bits_per_code": math.log2(training.shape[-1]),
    }


@torch.no_grad()
def cost_of(
    model: CodeLikelihood,
    examples: CodeExamples,
    *,
    accelerator: Accelerator | None = None,
    progress: Progress | None = None,
) -> dict[str, float]:
    """The mean cost of a code over a whole set, in nats and bits.

    Arguments:
        accelerator: the processes that share the work, if there are several.
        progress: called with what is being done, how many examples are done and how many there are.
    """
    model.eval()
    device = model.prior.embedding.weight.device
    totals = torch.zeros(2, dtype=torch.float64)
    batches = list(_batches(examples))
    own = batches if accelerator is None else batches[accelerator.process_index :: accelerator.num_processes]
    for indices in own:
        cost: CodeCost = model(examples.take(indices).to(device))
        totals += torch.stack((cost.nats.double(), cost.number.double())).cpu()
        if progress is not None:
            progress("evaluating", int(indices[-1]) + 1, len(examples))
    if accelerator is not None and accelerator.num_processes > 1:
        totals = accelerator.reduce(totals.to(device), "sum").cpu()
    nats = float(totals[0] / totals[1])
    return {"nats_per_code": nats, "bits_per_code": nats / math.log(2)}


def _batches(examples: CodeExamples) -> Iterator[Tensor]:
    return iter(torch.arange(len(examples)).split(JUDGED_AT_ONCE))


class PriorTask:
    """Codes as the training loop meets them.

    Arguments:
        model: the prior that is trained.
        validation: what it is judged on.
        counts: (K,) or (layers, K), how often each code occurs in training.
    """

    def __init__(self, model: CodeLikelihood, validation: CodeExamples, counts: Tensor) -> None:
        self.model = model
        self.validation = validation
        self.counts = counts

    def prepare(self, examples: CodeBatch, device: torch.device) -> CodeBatch:
        """Codes on the device."""
        return examples.to(device)

    def statistics(self, x: CodeBatch, outcome: CodeCost) -> dict[str, float]:
        """The cost of a code at one training step."""
        return {"bits_per_code": float(outcome.nats / outcome.number) / math.log(2)}

    def state(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing."""

    def validate(
        self, model: nn.Module, accelerator: Accelerator, temperature: float, latent_weight: float
    ) -> Validation:
        """The cost of a code over the whole validation set."""
        measures = cost_of(self.model, self.validation, accelerator=accelerator)
        without = costs_without_prior(self.counts, self.validation)
        return Validation(measures["nats_per_code"], {**measures, **without})


def prepare_prior(
    experiment: PriorExperiment, *, announce: Announce = print, progress: Progress | None = None
) -> PreparedPrior:
    """Encode the data, unless that has been done, and decide from the codes what the experiment leaves open."""
    source = None if experiment.data is None else settled_source(experiment.data, SETS)
    tokenizer, data, sets = _codes(experiment.tokenizer, source, announce, progress)
    decided = replace(
        experiment,
        tokenizer=settled_source(experiment.tokenizer),
        fingerprint=_same(experiment.fingerprint, tokenizer.fingerprint, experiment.tokenizer),
        data=source,
        codebook_size=tokenizer.codebook_size,
        code_layers=tokenizer.layers,
        sequences=sets["train"].lengths is not None,
        shape=_shape(sets["train"]),
        training=with_passes(experiment.training, len(sets["train"])),
    )
    counts = sets["train"].counts(tokenizer.codebook_size)
    if decided.sequences:
        crop = experiment.prior.crop
        pieces = {split: CodeSequences(codes.sequences(), crop) for split, codes in sets.items()}
        whole = {split: replace(pieces[split], crop=None) for split in ("validation", "test")}
        together = {**pieces, **whole}
        return PreparedPrior(_without_conditions(decided), **together, counts=counts, data_key=data.key_of_sets)
    decided, classes = _given_classes(decided, data)
    decided, above = _given_codes(decided, data, _shape(sets["train"]), announce, progress)
    maps = {split: CodeMaps(codes.codes, classes.get(split), above.get(split)) for split, codes in sets.items()}
    return PreparedPrior(decided, **maps, counts=counts, data_key=data.key_of_sets)


def _without_conditions(experiment: PriorExperiment) -> PriorExperiment:
    if experiment.by_class or experiment.above is not None:
        raise ConfigurationError("utterances have no classes, and no coarser level: leave `by_class=` and `above=` out")
    return experiment


def _given_classes(experiment: PriorExperiment, data: Prepared) -> tuple[PriorExperiment, dict[str, Tensor]]:
    """The classes of the pictures of each set, if they are to be given."""
    if not experiment.by_class:
        return experiment, {}
    classes = classes_of(data.experiment.data.source, data.data)
    counts = torch.bincount(classes.train, minlength=len(classes.names))
    given = {split: getattr(classes, split) for split in SPLITS}
    return replace(experiment, class_names=classes.names, class_counts=tuple(counts.tolist())), given


def _given_codes(
    experiment: PriorExperiment,
    data: Prepared,
    shape: tuple[int, ...],
    announce: Announce,
    progress: Progress | None,
) -> tuple[PriorExperiment, dict[str, Tensor]]:
    """The codes of the next coarser level for the pictures of each set, if there is one."""
    if experiment.above is None:
        return experiment, {}
    coarse, its_data, its_sets = _codes(experiment.above, experiment.data, announce, progress)
    coarse.check_without_layers("the coarser level of a hierarchy has")
    if its_data.key_of_sets != data.key_of_sets:
        raise ConfigurationError(
            f"{experiment.above} was trained on other data than {experiment.tokenizer}, on pictures of another size, "
            f"or on another part of them: the levels of a hierarchy must be models of the same pictures"
        )
    _check_coarser(_shape(its_sets["train"]), shape, experiment)
    decided = replace(
        experiment,
        above=settled_source(experiment.above),
        above_prior=None if experiment.above_prior is None else settled_source(experiment.above_prior),
        above_fingerprint=_same(experiment.above_fingerprint, coarse.fingerprint, experiment.above),
        context=coarse.codebook_size,
    )
    return decided, {split: codes.codes for split, codes in its_sets.items()}


def _codes(
    run: str, source: str | None, announce: Announce, progress: Progress | None
) -> tuple[Any, Prepared, dict[str, CodeSet]]:
    """A model, its data, and the codes of it, which are kept in the model's folder."""
    tokenizer = load(run)
    _ = tokenizer.codebook_size  # which says that a continuous latent has no codes
    tokenizer.check_one_level("a prior is over")
    experiment = tokenizer.experiment if source is None else tokenizer.experiment.moved(source)
    prepared = prepare(experiment, announce=lambda text: None, progress=progress)
    folder = RunFolder(run)
    if folder.config.exists() and read_json(folder.config).get("data_key") not in (None, prepared.key):
        announce(f"the {prepared.noun}s have changed since {run} was trained: it may have trained on some of these")
    # The first process writes them, the others find them written. A checkpoint's folder is replaced as a whole.
    with first_process_first():
        sets = codes_of_sets(tokenizer, prepared, folder.path if is_run(folder) else None, progress)
    announce(f"codes of {sum(map(len, sets.values())):,} {prepared.noun}s of {experiment.data.source}, by {run}")
    return tokenizer, prepared, sets


def is_run(folder: RunFolder) -> bool:
    """Whether it is the folder of a run, rather than of one of its checkpoints, or of a model."""
    return folder.config.exists() and not (folder.path / "model.safetensors").exists()


def _shape(codes: CodeSet) -> tuple[int, ...]:
    """The height and width of maps, or the longest length of sequences."""
    return tuple(codes.codes.shape[1:3]) if codes.lengths is None else (int(codes.lengths.max()),)


def _same(before: str | None, now: str, run: str) -> str:
    if before not in (None, now):
        raise ConfigurationError(
            f"{run} is not the model that this prior was trained for: it has been trained further since, or replaced. "
            f"Train another prior"
        )
    return now


def _check_coarser(coarse: tuple[int, ...], fine: tuple[int, ...], experiment: PriorExperiment) -> None:
    if len(coarse) != len(fine) or any(f % c for c, f in zip(coarse, fine, strict=True)):
        raise ConfigurationError(
            f"{experiment.above} has {'x'.join(map(str, coarse))} codes a picture, which don't divide the "
            f"{'x'.join(map(str, fine))} of {experiment.tokenizer}: the level above must be coarser by whole numbers"
        )

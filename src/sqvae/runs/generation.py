"""A model with a prior over its codes: what samples come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sqvae.config import ConfigurationError, PriorExperiment, nearest
from sqvae.data import Progress
from sqvae.priors import CodeLikelihood, Condition, Prior, sample
from sqvae.tokenizers import load, read_trained, with_weights
from sqvae.training import CheckpointError, stream_seed

PLACE = "prior"
"""The folder of a run's prior in the run's own."""


@dataclass(frozen=True)
class Generator:
    """A model, and a prior over its codes; and the same of the next coarser level, if they are predicted from that.

    :func:`load_generator` makes one.
    """

    tokenizer: Any
    """A ImageTokenizer, or a SpeechTokenizer."""
    prior: Prior
    experiment: PriorExperiment
    fingerprint: str
    """Of the prior: equal only for equal weights."""
    above: "Generator | None" = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes it can be asked for, on any level."""
        inherited = self.above.class_names if self.above is not None else ()
        return self.experiment.class_names or inherited

    @property
    def class_counts(self) -> tuple[int, ...]:
        """How many pictures of each class there were in training, as far as is known."""
        inherited = self.above.class_counts if self.above is not None else ()
        return self.experiment.class_counts or inherited

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an example's codes, without layers: a map's height and width, or the longest sequence that it was trained
        on."""
        assert self.experiment.shape is not None
        return self.experiment.shape

    def sample(
        self,
        number: int,
        *,
        shape: Sequence[int] | None = None,
        classes: Sequence[str] | None = None,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        first: int = 0,
        batch: int = 64,
        progress: Progress | None = None,
    ) -> Tensor:  # -> (number, *shape), or (number, *shape, layers)
        """Codes drawn from the prior; the tokenizer decodes them.

        Arguments:
            number: how many examples.
            shape: of each, without layers: (h, w), or (n,). None: as in training.
            classes: the names of the classes to draw from, in turn, where the prior knows classes. None: all.
            temperature, top_k, top_p: see :func:`sqvae.priors.draw`.
            seed: of the random numbers. The same seed gives the same examples, in whatever batches.
            first: the index of the first example: the others of a seed are drawn by other calls.
            batch: examples at a time.
            progress: called with what is being done, how many are done and how many there are.
        """
        if number < 1:
            raise ValueError(f"the number of samples must be at least 1, got {number}")
        options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        parts = []
        for start in range(first, first + number, batch):
            some = range(start, min(start + batch, first + number))
            parts.append(self._drawn(some, shape, self._classes(classes, some), seed, progress, options))
        return torch.cat(parts)

    def _drawn(
        self,
        examples: range,
        shape: Sequence[int] | None,
        classes: Tensor | None,
        seed: int,
        progress: Progress | None,
        options: dict[str, Any],
    ) -> Tensor:
        above = None
        if self.above is not None:
            coarser = stream_seed(seed, "above")
            above = self.above._drawn(examples, None, classes, coarser, progress, options)
        own = classes if self.experiment.class_names else None
        condition = None if above is None and own is None else Condition(own, above).to(self.tokenizer.device)
        what = f"drawing {examples.start + 1}-{examples.stop}" + (" from coarse to fine" if self.above else "")
        return sample(
            self.prior,
            len(examples),
            (*(shape or self.shape), *self.prior.layer_axis),
            condition=condition,
            seed=seed,
            first=examples.start,
            progress=None if progress is None else lambda done, total: progress(what, done, total),
            **options,
        )

    def _classes(self, names: Sequence[str] | None, examples: range) -> Tensor | None:  # -> (n,)
        known = self.class_names
        if not known:
            if names:
                raise ConfigurationError(
                    f"this prior knows no classes, and was asked for {', '.join(names)}: train one with "
                    "`sqvae train-prior RUN --by-class`"
                )
            return None
        for name in names or ():
            if name not in known:
                raise ConfigurationError(f"there is no class {name!r}{nearest(name, known)}; there is {_few(known)}")
        chosen = [known.index(name) for name in names or known]
        return torch.tensor([chosen[index % len(chosen)] for index in examples])


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def has_prior(run: str | Path, prior: str | Path | None = None) -> bool:
    """Whether there is a prior for a run: in its folder, or elsewhere if a place is given.

    Arguments:
        run: the folder of the model.
        prior: the folder of the prior, if it is not the run's own.
    """
    return prior is not None or (Path(run) / PLACE).exists()


def load_generator(
    run: str | Path, prior: str | Path | None = None, *, device: str | torch.device | None = None
) -> Generator:
    """A run's model with its prior.

    Arguments:
        run: of the model.
        prior: of the prior; where `sqvae train-prior` puts it, by default.
        device: where to put both; an accelerator where there is one, by default.
    """
    tokenizer = load(run, device=device)
    tokenizer.check_one_level("a prior is over")
    folder = (Path(prior) if prior is not None else Path(run) / PLACE).expanduser()
    if not folder.exists():
        raise CheckpointError(f"there is no prior in {folder}: train one with `sqvae train-prior {run}`")
    model, experiment, mark = read_prior(folder, device=device)
    if experiment.fingerprint != tokenizer.fingerprint:
        raise CheckpointError(
            f"{folder} is a prior of another model than {run}: of {experiment.tokenizer}, or of this one before it was "
            f"trained further. Train another with `sqvae train-prior {run} --out FOLDER`"
        )
    above = None
    if experiment.above is not None:
        above = load_generator(experiment.above, experiment.above_prior, device=device)
        if above.tokenizer.fingerprint != experiment.above_fingerprint:
            raise CheckpointError(
                f"{experiment.above} has changed since the prior in {folder} was trained on its codes"
            )
        if experiment.class_names and above.class_names != experiment.class_names:
            known = ", ".join(above.class_names) or "none"
            raise CheckpointError(
                f"{folder} knows classes, and so must the prior of the coarser level: that of {experiment.above} has "
                f"{known}. Train it with `by_class=True` on the same pictures, or this one without"
            )
    return Generator(tokenizer, model.prior, experiment, mark, above)


def read_prior(
    folder: str | Path, *, device: str | torch.device | None = None
) -> tuple[CodeLikelihood, PriorExperiment, str]:
    """A trained prior without its model, what it is, and its fingerprint."""
    checkpoint, experiment = read_trained(PriorExperiment, folder, {})
    model, mark = with_weights(lambda: CodeLikelihood(experiment.build()), checkpoint, folder, device)
    return model, experiment.found_in(Path(folder)), mark

"""Experiments on pictures, label maps and grey levels: their data, and what is decided from it."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from sqvae.config import Experiment
from sqvae.data import DATASETS, PictureSets, Progress, Varied
from sqvae.data import load as load_data
from sqvae.modalities.evaluation import ExampleTask, evaluate
from sqvae.modalities.images.assembly import build_model, map_sizes_of
from sqvae.modalities.images.media import medium_of
from sqvae.models import HierarchicalModel, LatentModel
from sqvae.runs.observation import Evaluation
from sqvae.runs.prepared import Announce, Prepared, settled_source, with_passes
from sqvae.training import Examples, Task, first_process_first, stream_seed

SMALLEST_VARIANCE = 1e-6
"""Of data that does not vary: less than a grey level's square."""


@dataclass(frozen=True)
class PreparedPictures(Prepared):
    """An experiment with its pictures."""

    experiment: Experiment
    data: PictureSets

    @property
    def noun(self) -> str:
        return medium_of(self.experiment).noun

    @property
    def becomes(self) -> str:
        quantizer = self.experiment.quantizer
        if not quantizer.is_discrete:
            return ""
        shape = self.data.preprocessing.shape
        layers = f"x{quantizer.number_of_layers}" if quantizer.has_layers else ""
        maps = " and ".join(f"{rows}x{columns}{layers}" for rows, columns in map_sizes_of(self.experiment, shape))
        return (
            f"a {self.noun} of {shape[1]}x{shape[2]} becomes {maps} codes out of "
            f"{quantizer.codebook_size:,}; more halvings (network.widths) make fewer"
        )

    @property
    def examples(self) -> Examples:
        data = self.experiment.data
        return Varied(self.data.train, flip=data.flip, shift=data.shift)

    def new_model(self) -> LatentModel | HierarchicalModel:
        return new_model(self.experiment)

    def task(self, model: LatentModel | HierarchicalModel) -> Task:
        return ExampleTask(
            model,
            self.data.validation,
            self.experiment.training.batch_size,
            medium_of(self.experiment),
            quantizer=self.experiment.quantizer.name,
        )

    def evaluate(
        self,
        model: Any,
        split: str,
        *,
        batch_size: int,
        temperature: float | None = None,
        progress: Progress | None = None,
    ) -> Evaluation:
        return evaluate(
            model,
            self.part(split),
            medium=medium_of(self.experiment),
            batch_size=batch_size,
            sampled_bound=True,
            detailed=True,
            temperature=temperature,
            progress=progress,
        )


def prepare_pictures(
    experiment: Experiment, *, announce: Announce = print, progress: Progress | None = None
) -> PreparedPictures:
    """Load the data, and decide from it what the experiment leaves open."""
    settings = experiment.data
    # The first process fills the cache, the others find it filled.
    with first_process_first():
        data = load_data(
            settings.source,
            settings.preprocessing,
            split_seed=settings.split_seed,
            strict=settings.strict,
            progress=progress,
            class_names=settings.class_names or (),
        )
    for note in data.notes:
        announce(note)
    decided = replace(
        settings,
        source=settled_source(settings.source, DATASETS),
        size=data.preprocessing.size,
        crop=data.preprocessing.crop,
        channels=None if settings.kind == "labels" else data.preprocessing.channels,
        classes=data.preprocessing.classes,
        ignore=data.preprocessing.ignore,
        class_names=data.class_names or None,
        class_colours=settings.class_colours or data.class_colours or None,
    )
    training = with_passes(experiment.training, len(data.train))
    likelihood = experiment.likelihood
    if likelihood.variance == "fixed" and likelihood.initial_variance is None:
        likelihood = replace(likelihood, initial_variance=max(data.train.variance(), SMALLEST_VARIANCE))
    return PreparedPictures(replace(experiment, data=decided, training=training, likelihood=likelihood), data)


def new_model(experiment: Experiment) -> LatentModel | HierarchicalModel:
    """The untrained model of an experiment whose data is known, with the weights that its seed gives."""
    torch.manual_seed(stream_seed(experiment.seed, "weights"))
    model = build_model(experiment, experiment.data.preprocessing.shape)
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]

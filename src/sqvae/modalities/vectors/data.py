"""Experiments on vectors: their data, and what is decided from it."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sqvae.config import ConfigurationError, Experiment
from sqvae.data import Progress
from sqvae.data.splits import split
from sqvae.modalities.evaluation import ExampleTask, evaluate
from sqvae.modalities.vectors.files import VectorRows, read_vectors
from sqvae.modalities.vectors.medium import VectorMedium
from sqvae.modalities.vectors.networks import VectorDecoder, VectorEncoder
from sqvae.modalities.vectors.settings import VectorNetworkSettings
from sqvae.models import LatentModel
from sqvae.runs.observation import Evaluation
from sqvae.runs.prepared import Announce, Prepared, settled_source, with_passes
from sqvae.tokenizers import build_likelihood, build_quantizer, quantizer_settings
from sqvae.training import Task, stream_seed

SMALLEST_SCALE = 1e-6
"""The scale of vectors that don't vary."""


@dataclass(frozen=True)
class VectorSets:
    """Vectors for training, validation and testing."""

    train: VectorRows
    validation: VectorRows
    test: VectorRows
    key: str
    """Equal only for equal data."""

    @cached_property
    def offset(self) -> Tensor:  # -> (values,)
        """The mean of the training set."""
        return self.train.rows.double().mean(0).float()

    @cached_property
    def scale(self) -> float:
        """The standard deviation of all values of the training set around their means: one for all, so that lengths
        and angles stay as they are."""
        around = (self.train.rows.double() - self.offset.double()).square().mean().sqrt()
        return max(float(around), SMALLEST_SCALE)


@dataclass(frozen=True)
class PreparedVectors(Prepared):
    """An experiment with its vectors."""

    experiment: Experiment
    data: VectorSets
    noun = "vector"

    @property
    def becomes(self) -> str:
        network, quantizer = network_of(self.experiment), self.experiment.quantizer
        if not quantizer.is_discrete:
            return ""
        number = network.codes * quantizer.number_of_layers
        codes = "a code" if number == 1 else f"{number} codes"
        return (
            f"a vector of {network.values:,} values becomes {codes} out of {quantizer.codebook_size:,}; more codes "
            "(network.codes) tell more vectors apart"
        )

    @property
    def examples(self) -> VectorRows:
        return self.data.train

    def new_model(self) -> LatentModel:
        return new_model(self.experiment, self.data.offset, self.data.scale)

    def task(self, model: LatentModel) -> Task:
        return ExampleTask(
            model,
            self.data.validation,
            self.experiment.training.batch_size,
            medium_of(model),
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
        medium, rows = medium_of(model), self.part(split)
        found = evaluate(
            model,
            rows,
            medium=medium,
            batch_size=batch_size,
            sampled_bound=True,
            detailed=True,
            temperature=temperature,
            progress=progress,
        )
        if not self.experiment.quantizer.is_discrete:
            return found
        device = next(model.parameters()).device
        codes = torch.cat([model.encode(medium.model_input(part, device)) for part in rows.rows.split(batch_size)])
        return replace(found, measures={**found.measures, **collisions(codes)})


def collisions(codes: Tensor) -> dict[str, float]:  # (N, codes)
    """The share of vectors whose codes are also those of another vector, and the number of different ids."""
    _, counts = codes.unique(dim=0, return_counts=True)
    return {"collisions": float(counts[counts > 1].sum()) / len(codes), "distinct_ids": float(len(counts))}


def network_of(experiment: Experiment) -> VectorNetworkSettings:
    """The settings of the networks."""
    if not isinstance(experiment.network, VectorNetworkSettings):
        raise ConfigurationError("data.kind=vectors needs the networks of the recipe `vectors`; begin with that recipe")
    return experiment.network


def medium_of(model: LatentModel) -> VectorMedium:
    """How the vectors of a model are compared and shown: its networks know their scale."""
    decoder: Any = model.decoder
    return VectorMedium(decoder.offset.detach().cpu(), float(decoder.scale))


def build_model(experiment: Experiment) -> LatentModel:
    """An untrained model of vectors, whose number of values is known."""
    network, quantizer = network_of(experiment), build_quantizer(quantizer_settings(experiment))
    if network.values is None:
        raise ConfigurationError("the number of values is not known before the data is loaded; set network.values")
    dim, sizes = experiment.quantizer.dim, {"codes": network.codes, "hidden": network.hidden, "blocks": network.blocks}
    return LatentModel(
        VectorEncoder(network.values, dim, log_variance=quantizer.needs_log_variance, **sizes),
        quantizer,
        VectorDecoder(network.values, dim, **sizes),
        build_likelihood(experiment),
        latent_terms=experiment.likelihood.latent_terms,
    )


def new_model(experiment: Experiment, offset: Tensor | None = None, scale: float = 1.0) -> LatentModel:
    """The untrained model of an experiment, with the weights that its seed gives and the scale of its data."""
    torch.manual_seed(stream_seed(experiment.seed, "weights"))
    model = build_model(experiment)
    for network in (model.encoder, model.decoder):
        if offset is not None:
            network.get_buffer("offset").copy_(offset)
        network.get_buffer("scale").fill_(scale)
    return model


def prepare_vectors(
    experiment: Experiment, *, announce: Announce = print, progress: Progress | None = None
) -> PreparedVectors:
    """Load the vectors, and decide from them what the experiment leaves open."""
    settings, network = experiment.data, network_of(experiment)
    rows = read_vectors(settings.source)
    values = rows.rows.shape[1]
    if network.values not in (None, values):
        raise ConfigurationError(
            f"network.values is {network.values}, and the vectors in {settings.source} have {values:,} values"
        )
    parts = split(
        {"all": np.arange(len(rows))}, rows.names, seed=settings.split_seed, validation_is_last=False, noun="vector"
    )
    for note in parts.notes:
        announce(note)
    train, validation, test = (rows.subset(part.tolist()) for part in (parts.train, parts.validation, parts.test))
    data = VectorSets(train, validation, test, _key(rows, settings.split_seed))
    likelihood = experiment.likelihood
    if likelihood.variance == "fixed" and likelihood.initial_variance is None:
        likelihood = replace(likelihood, initial_variance=data.scale**2)
    decided = replace(
        experiment,
        data=replace(settings, source=settled_source(settings.source)),
        network=replace(network, values=values),
        likelihood=likelihood,
        training=with_passes(experiment.training, len(data.train)),
    )
    return PreparedVectors(decided, data)


def _key(rows: VectorRows, seed: int) -> str:
    content = hashlib.sha256(rows.rows.numpy().tobytes())
    content.update("\0".join(rows.names).encode("utf-8", "surrogateescape"))
    return f"vectors-{content.hexdigest()[:24]}-{seed}"

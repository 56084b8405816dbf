"""Experiments on speech: their data, and what is decided from it."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from sqvae.config import ConfigurationError, Experiment
from sqvae.data import Progress
from sqvae.data.speech import SPEECH_SETS, Segments, SpeechSets, load_speech
from sqvae.modalities.speech.abx import abx_measures, items_of
from sqvae.modalities.speech.assembly import build_speech_model, features_of
from sqvae.modalities.speech.evaluation import SpeechTask, evaluate_speech
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.models import SpeechModel
from sqvae.networks.speech import CONTEXT, STRIDE
from sqvae.runs.observation import Evaluation
from sqvae.runs.prepared import Announce, Prepared, settled_source
from sqvae.training import Task, first_process_first, stream_seed


@dataclass(frozen=True)
class PreparedSpeech(Prepared):
    """An experiment with its utterances."""

    experiment: Experiment
    data: SpeechSets
    noun = "utterance"
    example = "crop"
    drawn = True

    @property
    def speakers(self) -> tuple[str, ...]:
        """Those that the model knows, in order."""
        return self.experiment.speech.speakers or ()

    @property
    def becomes(self) -> str:
        quantizer, features = self.experiment.quantizer, self.data.features
        if not quantizer.is_discrete:
            return ""
        rate = features.rate / features.shift / STRIDE
        codes = rate * quantizer.number_of_layers
        return f"a second of speech becomes {codes:g} codes out of {quantizer.codebook_size:,}"

    @property
    def examples(self) -> Segments:
        speech = self.experiment.speech
        strangers = sorted(set(self.data.speakers) - set(self.speakers))
        if strangers:
            raise ConfigurationError(
                f"speech.speakers leaves out {', '.join(strangers[:3])}, of whom there are utterances to train on"
            )
        return Segments(
            self.data.train,
            self.speakers,
            length=speech.segment,
            context=CONTEXT,
            number=speech.segments_per_epoch,
        )

    def new_model(self) -> SpeechModel:
        torch.manual_seed(stream_seed(self.experiment.seed, "weights"))
        offset, scale = normalisation(self.data)
        model = build_speech_model(self.experiment, offset=offset, scale=scale)
        return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]

    def task(self, model: SpeechModel) -> Task:
        return SpeechTask(
            model,
            self.data.validation,
            self.data.features,
            self.speakers,
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
        evaluation = evaluate_speech(
            model,
            self.part(split),
            self.data.features,
            self.speakers,
            sampled_bound=True,
            temperature=temperature,
            progress=progress,
        )
        abx = self.experiment.speech.abx
        if abx is None:
            return evaluation
        tokenizer = SpeechTokenizer(model, self.experiment, "")
        try:
            return replace(evaluation, measures={**evaluation.measures, **abx_measures(tokenizer, abx, progress)})
        except Exception as failure:  # whatever it is, what has been measured so far is worth keeping
            words = str(failure) or type(failure).__name__
            return replace(evaluation, notes=(*evaluation.notes, f"ABX on {abx} could not be measured: {words}"))


def normalisation(data: SpeechSets) -> tuple[Tensor, Tensor]:  # (mels,), (mels,): in dB
    """What is taken from frames, and what they are then divided by.

    Features that end so many dB below the loudest are scaled by that range, to :math:`x / R + 1`. Others are
    standardised in each dimension, with the statistics of the training set.
    """
    mels, span = data.features.mels, data.features.range
    if span is not None:
        return torch.full((mels,), -span), torch.full((mels,), span)
    return data.train.statistics()


def prepare_speech(
    experiment: Experiment, *, announce: Announce = print, progress: Progress | None = None
) -> PreparedSpeech:
    """Load the utterances, and decide from them what the experiment leaves open."""
    settings = experiment.data
    # The first process fills the cache, the others find it filled.
    with first_process_first():
        data = load_speech(
            settings.source,
            features_of(experiment),
            split_seed=settings.split_seed,
            strict=settings.strict,
            progress=progress,
        )
    for note in data.notes:
        announce(note)
    speakers = experiment.speech.speakers or data.speakers
    abx = experiment.speech.abx
    if abx is not None:
        items_of(abx)  # which says now, and not when training is over, that there are none
        abx = settled_source(abx, SPEECH_SETS)
    likelihood = experiment.likelihood
    if likelihood.variance == "fixed" and likelihood.initial_variance is None:
        _, scale = normalisation(data)
        variance = (data.train.statistics()[1] / scale).square().mean()
        likelihood = replace(likelihood, initial_variance=float(variance))
    decided = replace(
        experiment,
        data=replace(settings, source=settled_source(settings.source, SPEECH_SETS)),
        speech=replace(experiment.speech, speakers=speakers, abx=abx),
        likelihood=likelihood,
        training=replace(experiment.training, passes_per_epoch=1),
    )
    return PreparedSpeech(decided, data)

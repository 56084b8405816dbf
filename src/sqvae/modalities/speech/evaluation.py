"""A model of speech judged on whole utterances."""

import math
from collections.abc import Iterator, Mapping

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn.functional import pad

from sqvae.data import Progress
from sqvae.data.speech import Crops, LogMel, Utterances
from sqvae.metrics import Decibels, ReconstructionTotals
from sqvae.models import Bound, Objective, Speech, SpeechModel, padded
from sqvae.networks.speech import CONTEXT, STRIDE
from sqvae.runs.observation import GAP_BATCHES, CodeWatch, Evaluation, annealing_of, mixture_gap
from sqvae.tokenizers import codebook_sizes_of
from sqvae.training import Validation, stream_seed

TOGETHER = 16
"""Utterances that are judged at a time, at most,"""
MOST_FRAMES = 16_000
"""and if they have no more frames together; a longer one is judged alone."""

SHOWN = 16
"""How many utterances are kept to be looked at,"""
SHOWN_FRAMES = 200
"""and how many frames of each."""

QUIETEST = 60.0
"""dB below the loudest that are still told from black in a picture."""


@torch.no_grad()
def evaluate_speech(
    model: SpeechModel,
    utterances: Utterances,
    features: LogMel,
    speakers: tuple[str, ...],
    *,
    sampled_bound: bool = False,
    temperature: float | None = None,
    latent_weight: float = 1.0,
    accelerator: Accelerator | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a model over whole utterances, with the likeliest codes. Those of speakers it does not know are left out.

    Arguments:
        speakers: those that the model knows, in order.
        sampled_bound: take the bound at codes drawn from the posterior, which costs as much again.
        temperature: that of training, to compare single codes with the mixtures that it decodes, on a few batches.
        latent_weight: what the quantizer's terms count in the loss. The bound has them whole in any case.
        accelerator: the processes that share the work, if there are several.
        progress: called with what is being done, how many utterances are done and how many there are.
    """
    model.eval()
    device = model.scale.device
    known = _known(utterances, speakers)
    totals = ReconstructionTotals(codebook_sizes_of(model), Decibels(model.scale))
    batches = list(_batches(utterances, known))
    own = batches if accelerator is None else batches[accelerator.process_index :: accelerator.num_processes]
    done = 0
    for indices in own:
        x = _speech(utterances, indices, speakers, device)
        objective: Objective = model(x)
        real, made = _own_frames(model, x, objective)
        each = len(indices) / len(real)  # terms of the bound are sums over an utterance; here frames are the examples
        totals.add(
            real,
            made,
            reconstruction_loss=each * objective.fit.loss,
            latent_loss=each * latent_weight * objective.latent_weight * objective.quantized.loss,
            bound=each * objective.bound.nats,
            counts=objective.quantized.counts,
            mean_probabilities=objective.quantized.mean_probabilities,
        )
        done += len(indices)
        if progress is not None:
            progress("evaluating", done, len(known))
    if accelerator is not None and accelerator.num_processes > 1:
        for tensor in totals.tensors():
            tensor.copy_(accelerator.reduce(tensor.to(device), "sum").cpu())
    measures = totals.measures()
    dimensions = measures.pop("dimensions")
    measures.pop("batch_perplexity", None)  # of utterances that happen to be judged together
    reconstruction = model.likelihood.loss_of_set(measures.pop("reconstruction_loss"), measures["mse"], dimensions)
    if sampled_bound:
        measures |= _sampled_bound(model, utterances, batches, speakers, device)
    if temperature is not None:
        some = (_speech(utterances, indices, speakers, device) for indices in batches[:GAP_BATCHES])
        measures |= mixture_gap(
            model,
            some,
            temperature,
            lambda: Decibels(model.scale),
            lambda comparison, x, objective: comparison.add(*_own_frames(model, x, objective)),
        )
    measures["loss_per_dimension"] = (reconstruction + measures.pop("latent_loss")) / dimensions
    measures |= _rates(measures, features, left_out=len(utterances) - len(known))
    shown = _shown(model, utterances, known, speakers, features)
    return Evaluation(measures, tuple(int(n) for n in totals.counts), *shown)


def _known(utterances: Utterances, speakers: tuple[str, ...]) -> list[int]:
    known = [index for index, speaker in enumerate(utterances.speakers) if speaker in set(speakers)]
    if not known:
        strangers = sorted(set(utterances.speakers))
        raise ValueError(
            f"the model knows none of the speakers of these utterances ({', '.join(strangers[:3])}...), and needs a "
            f"voice to speak with: encode them, and decode with `speakers=NAME`. It knows {', '.join(speakers[:10])}"
        )
    return known


def _batches(utterances: Utterances, known: list[int]) -> Iterator[list[int]]:
    """Utterances of like length together, the longest first."""
    ordered = sorted(known, key=lambda index: -int(utterances.lengths[index]))
    while ordered:
        number = min(TOGETHER, max(1, MOST_FRAMES // int(utterances.lengths[ordered[0]])))
        yield ordered[:number]
        ordered = ordered[number:]


def _speech(
    utterances: Utterances,
    indices: list[int],
    speakers: tuple[str, ...],
    device: torch.device,
    most: int | None = None,
) -> Speech:
    """Some utterances as a batch, or so many frames of each at most."""
    numbers = {speaker: number for number, speaker in enumerate(speakers)}
    who = torch.tensor([numbers[utterances.speakers[index]] for index in indices], device=device)
    return padded([utterances.frames(index)[:most].to(device) for index in indices], who)


def _own_frames(model: SpeechModel, x: Speech, objective: Objective) -> tuple[Tensor, Tensor]:  # (F, mels) each
    """Frames on the model's scale, and what became of them."""
    real = (x.frames[:, CONTEXT:-CONTEXT] - model.offset) / model.scale
    made = model.likelihood.predict(objective.output)
    return model.own_frames(real, x.lengths), model.own_frames(made, x.lengths)


def _sampled_bound(
    model: SpeechModel,
    utterances: Utterances,
    batches: list[list[int]],
    speakers: tuple[str, ...],
    device: torch.device,
) -> dict[str, float]:
    """The bound for each frame, at codes drawn from the posterior: the same draws whenever it is asked for."""
    total, frames = 0.0, 0
    with torch.random.fork_rng():
        for number, indices in enumerate(batches):
            torch.manual_seed(stream_seed(0, "bound", number))
            x = _speech(utterances, indices, speakers, device)
            total += len(indices) * float(model(x, sample=True).bound.nats)
            frames += int(utterances.lengths[indices].sum())
    bound = Bound(torch.tensor(total / frames), model.scale.numel())
    return {"bound_nats": float(bound.nats), "bits_per_dimension": float(bound.bits_per_dimension)}


def _rates(measures: Mapping[str, float], features: LogMel, *, left_out: int) -> dict[str, float]:
    """Codes a second, and the bits that they carry by how often each is used."""
    found = {"utterances_left_out": float(left_out)} if left_out else {}
    if "perplexity" in measures:
        rate = features.rate / features.shift / STRIDE
        found |= {"codes_per_second": rate, "bits_per_second": rate * math.log2(measures["perplexity"])}
    return found


def _shown(
    model: SpeechModel, utterances: Utterances, known: list[int], speakers: tuple[str, ...], features: LogMel
) -> tuple[Tensor, Tensor]:  # (n, 3, mels, frames), in [0, 1]
    """The beginnings of some utterances, and what became of them, as pictures: time to the right, pitch upwards."""
    number = min(SHOWN, len(known))
    chosen = [known[len(known) * index // number] for index in range(number)]
    x = _speech(utterances, chosen, speakers, model.scale.device, most=SHOWN_FRAMES)
    made = model.likelihood.predict(model(x).output) * model.scale + model.offset
    assert x.lengths is not None
    inside = (torch.arange(made.shape[1], device=made.device) < x.lengths.unsqueeze(1)).unsqueeze(-1)
    real = x.frames[:, CONTEXT:-CONTEXT]
    loudest = white_level(real[inside.expand_as(real)], features)
    return (
        spectrogram_pictures(real.where(inside, -torch.inf), loudest),
        spectrogram_pictures(made.where(inside, -torch.inf), loudest),
    )


def white_level(frames: Tensor, features: LogMel) -> Tensor:  # (..., mels) -> ()
    """The dB that are white in pictures of frames: the loudest, but so many that the features' silence is black."""
    return frames.max().clamp_min(features.floor + QUIETEST)


def spectrogram_pictures(
    frames: Tensor, loudest: Tensor, length: int = SHOWN_FRAMES
) -> Tensor:  # (n, T, mels), () -> (n, 3, mels, length)
    """Log-mel frames in colours from black to white, the loudest dB being white."""
    from matplotlib import colormaps

    cut = frames[:, :length]
    cut = pad(cut, (0, 0, 0, length - cut.shape[1]), value=-torch.inf)
    level = (1 + (cut - loudest) / QUIETEST).clamp(0, 1).mT.flip(1).cpu()
    colours = torch.from_numpy(colormaps["magma"](level.numpy())[..., :3]).float()
    return colours.permute(0, 3, 1, 2)


class SpeechTask:
    """Crops and utterances as the training loop meets them.

    Arguments:
        model: the model that is trained.
        validation: the utterances it is judged on.
        features: what their frames are.
        speakers: those that the model knows, in order.
        quantizer: the name of the model's.
    """

    def __init__(
        self,
        model: SpeechModel,
        validation: Utterances,
        features: LogMel,
        speakers: tuple[str, ...],
        quantizer: str,
    ) -> None:
        self.model = model
        self.validation = validation
        self.features = features
        self.speakers = speakers
        self.watch = CodeWatch("validation utterances", quantizer)

    def prepare(self, examples: Crops, device: torch.device) -> Speech:
        """Crops as the model takes them."""
        return Speech(examples.frames.to(device, non_blocking=True), examples.speakers.to(device, non_blocking=True))

    @torch.no_grad()
    def statistics(self, x: Speech, outcome: Objective) -> dict[str, float]:
        """The error and what self-annealing looks like, at one training step."""
        comparison = Decibels(self.model.scale)
        comparison.add(*_own_frames(self.model, x, outcome))
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
        """All validation utterances, and a word where codes die."""
        evaluation = evaluate_speech(
            self.model,
            self.validation,
            self.features,
            self.speakers,
            temperature=temperature,
            latent_weight=latent_weight,
            accelerator=accelerator,
        )
        return evaluation.as_validation(tuple(self.watch.warnings(evaluation)), len(self.validation))

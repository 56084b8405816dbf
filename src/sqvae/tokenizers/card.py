"""The model card: what a person who finds a model on a hub wants to know before they use it."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sqvae.config import Experiment
from sqvae.metrics.meanings import meanings
from sqvae.metrics.measures import INSTEAD_OF_MSE, MEASURES, is_main
from sqvae.modality import modality_of
from sqvae.tokenizers.history import History, Measured, public_name

KINDS = {
    "gaussian-1": "Gaussian SQ-VAE (type I)",
    "gaussian-2": "Gaussian SQ-VAE (type II)",
    "gaussian-3": "Gaussian SQ-VAE (type III)",
    "gaussian-4": "Gaussian SQ-VAE (type IV)",
    "gaussian-fixed": "stochastic quantizer with a fixed variance",
    "vmf": "von Mises-Fisher SQ-VAE",
    "vq": "VQ-VAE",
    "vq-ema": "VQ-VAE with moving averages",
    "vq-ema-reset": "VQ-VAE with moving averages and code reset",
    "gaussian-latent": "VAE with a continuous latent",
}

SHOWN = (
    "mse_db",
    "unexplained",
    "mse",
    "cosine",
    "collisions",
    "pixel_error",
    "miou",
    "bits_per_dimension",
    "bits_per_second",
)
"""The measures of a card, the most important first."""

WHERE = "a folder, or OWNER/NAME on the hub"

MOST_NAMES = 60
"""So many classes or speakers are named."""


def model_card(tokenizer: Any, name: str) -> str:
    """A card in Markdown, with a header for the hub.

    Arguments:
        tokenizer: a ImageTokenizer or a SpeechTokenizer.
        name: of the model: where a person will find it.
    """
    modality = modality_of(tokenizer.experiment.kind)
    sections = (
        ("Use", modality.usage(tokenizer, name)),
        ("Codes" if tokenizer.is_discrete else "Latent", _codes(tokenizer)),
        ("Data", (f"- {public_name(tokenizer.experiment.data.source)}", *modality.data_facts(tokenizer))),
        ("Training", _training(tokenizer.experiment, tokenizer.history)),
        ("Measures", _measures(tokenizer)),
        ("Limits", _limits(tokenizer, name)),
    )
    body = [line for title, lines in sections for line in (f"## {title}", "", *lines, "")]
    return "\n".join([f"---\n{_header(tokenizer, name)}\n---", "", f"# {name}", "", *_opening(tokenizer), "", *body])


def _header(tokenizer: Any, name: str) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    experiment: Experiment = tokenizer.experiment
    modality, data = modality_of(experiment.kind), public_name(experiment.data.source)
    results = [
        EvalResult(
            task_type=modality.pipeline or "feature-extraction",
            dataset_type=re.sub(r"[^\w/-]+", "-", one.data.removeprefix("hf:")),
            dataset_name=one.data,
            dataset_split=one.split,
            metric_type=measure,
            metric_value=_plain(one.measures[measure]),
        )
        for one in tokenizer.history.measured
        for measure in (*SHOWN, "perplexity", "codes_used")
        if measure in one.measures and math.isfinite(one.measures[measure])
    ]
    card = ModelCardData(
        library_name="sqvae",
        pipeline_tag=modality.pipeline,
        tags=["sqvae", *(("vector-quantization", modality.tag) if tokenizer.is_discrete else ("vae",))],
        datasets=[data.removeprefix("hf:")] if data.startswith("hf:") else None,
        model_name=name.rpartition("/")[2] if results else None,
        eval_results=results or None,
    )
    return card.to_yaml()


def _plain(value: float) -> float | int:
    """Six digits, and whole numbers as such."""
    return int(value) if value == int(value) else float(f"{value:.6g}")


def _opening(tokenizer: Any) -> Iterator[str]:
    experiment: Experiment = tokenizer.experiment
    what = modality_of(experiment.kind).plural
    yield f"Data: {tokenizer.taken_as.in_full}."
    yield ""
    quantizer = experiment.quantizer.name
    kind = "A tokenizer" if tokenizer.is_discrete else "An autoencoder"
    yield (
        f"{kind} of {what}: a {KINDS.get(quantizer, quantizer)}, trained on "
        f"{public_name(experiment.data.source)} with `sqvae`."
    )


def _codes(tokenizer: Any) -> Iterator[str]:
    experiment: Experiment = tokenizer.experiment
    quantizer = experiment.quantizer
    if not tokenizer.is_discrete:
        yield f"- Continuous: vectors of {quantizer.dim} numbers, and no codes."
    else:
        size = tokenizer.codebook_size
        yield f"- {size:,} codes of {quantizer.dim} dimensions."
        yield from modality_of(experiment.kind).code_rate(tokenizer, math.log2(size))
    yield f"- Fingerprint of the weights: `{tokenizer.fingerprint}`."


def listed(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    shown = ", ".join(" ".join(name.split()) for name in names[:MOST_NAMES])
    return shown + (f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else "")


def _training(experiment: Experiment, history: History) -> Iterator[str]:
    plan = experiment.training
    yield f"- Recipe `{experiment.recipe}`, seed {experiment.seed}, quantizer `{experiment.quantizer.name}`."
    yield f"- Batches of {plan.batch_size}, learning rate {plan.learning_rate:g} ({plan.schedule})."
    if history.epochs is not None and history.steps is not None:
        yield (
            f"- These weights are those after {history.epochs} of {plan.epochs} epochs ({history.steps:,} steps), the "
            "best by validation."
        )
    if history.sqvae is not None:
        yield f"- Trained with sqvae {history.sqvae}. All settings are in `config.json`."


def _measures(tokenizer: Any) -> Iterator[str]:
    measured: tuple[Measured, ...] = tokenizer.history.measured
    if not measured:
        yield "Nothing was measured yet."
        return
    yield from ("| data | split | what | value |", "|---|---|---|---|")
    directions = tokenizer.experiment.likelihood_name == "vmf"
    for one in measured:
        number = "" if one.examples is None else f" ({one.examples:,})"
        for what, value in _rows(one, tokenizer.codebook_size if tokenizer.is_discrete else 0, directions):
            yield f"| {one.data} | {one.split}{number} | {what} | {value} |"
    told = {sentence for one in measured for sentence in _meanings(one, tokenizer.experiment.likelihood_name)}
    if told:
        yield ""
        yield from (f"- {sentence}" for sentence in sorted(told))


def _meanings(one: Measured, likelihood: str) -> list[str]:
    """What tells apart the measures that the card shows."""
    shown = {name: value for name, value in one.measures.items() if name in (*INSTEAD_OF_MSE, "bits_per_dimension")}
    return meanings({"measures": shown, "likelihood": likelihood}, 0)


def _rows(one: Measured, codebook_size: int, directions: bool) -> Iterator[tuple[str, str]]:
    for measure in SHOWN:
        if measure == "bits_per_dimension" and directions:
            continue  # a density on a sphere, from which no bits for a class follow
        if measure in one.measures and is_main(measure, one.measures):
            yield _label(measure), MEASURES[measure].text(one.measures[measure])
    if one.use is not None:
        for measure, value in zip(("perplexity", "codes_used"), one.use, strict=True):
            yield _label(measure), f"{MEASURES[measure].text(value)} of {codebook_size:,}"


def _label(measure: str) -> str:
    better = MEASURES[measure].better
    return f"{MEASURES[measure].label} ({better} is better)" if better else MEASURES[measure].label


def _limits(tokenizer: Any, name: str) -> Iterator[str]:
    experiment: Experiment = tokenizer.experiment
    source = public_name(experiment.data.source)
    yield f"- It has seen {source} alone. How it does on other data: `sqvae evaluate {name} --data FOLDER`."
    yield "- What it gives back is not what went in: fine detail is lost, and some may be made up."
    if tokenizer.is_discrete:
        yield "- Codes belong to these weights. To others, and to this model trained further, they mean something else."
    yield from modality_of(experiment.kind).limits(tokenizer)
    if tokenizer.history.on(source, "test") is None:
        yield (
            "- Nothing was measured on its test set. Validation has chosen these weights, so its numbers flatter them."
        )
    yield "- No licence is stated: what holds for the data may hold for the weights."

"""The model card: what a person who finds a model on a hub wants to know before they use it."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sqvae.config import Experiment
from sqvae.data.detection import KINDS as KINDS_OF_DATA
from sqvae.metrics.meanings import meanings
from sqvae.metrics.measures import MEASURES
from sqvae.tokenizers.assembly import stride_of
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

TAGS = {"pictures": "image-tokenizer", "levels": "image-tokenizer", "labels": "label-maps", "speech": "speech-units"}
PIPELINES = {"pictures": "image-feature-extraction", "levels": "image-feature-extraction"}
"""The hub's own words for what a model does, where one fits."""

SHOWN = ("mse_db", "mse", "pixel_error", "miou", "bits_per_dimension", "bits_per_second")
"""The measures of a card, the most important first."""

WHERE = "a folder, or OWNER/NAME on the hub"

MOST_NAMES = 60
"""So many classes or speakers are named."""


def model_card(tokenizer: Any, name: str) -> str:
    """A card in Markdown, with a header for the hub.

    Arguments:
        tokenizer: a Tokenizer or a SpeechTokenizer.
        name: of the model: where a person will find it.
    """
    speaks = tokenizer.experiment.kind == "speech"
    sections = (
        ("Use", _use_of_speech(tokenizer, name) if speaks else _use_of_pictures(tokenizer, name)),
        ("Codes" if tokenizer.is_discrete else "Latent", _codes(tokenizer)),
        ("Data", _data(tokenizer)),
        ("Training", _training(tokenizer.experiment, tokenizer.history)),
        ("Measures", _measures(tokenizer)),
        ("Limits", _limits(tokenizer, name)),
    )
    body = [line for title, lines in sections for line in (f"## {title}", "", *lines, "")]
    return "\n".join([f"---\n{_header(tokenizer, name)}\n---", "", f"# {name}", "", *_opening(tokenizer), "", *body])


def _header(tokenizer: Any, name: str) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    experiment: Experiment = tokenizer.experiment
    kind, data = experiment.kind, public_name(experiment.data.source)
    results = [
        EvalResult(
            task_type=PIPELINES.get(kind, "feature-extraction"),
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
        pipeline_tag=PIPELINES.get(kind),
        tags=["sqvae", *(("vector-quantization", TAGS[kind]) if tokenizer.is_discrete else ("vae",))],
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
    what = KINDS_OF_DATA[experiment.data.kind]
    yield f"Data: {tokenizer.taken_as.in_full}."
    yield ""
    quantizer = experiment.quantizer.name
    kind = "A tokenizer" if tokenizer.is_discrete else "An autoencoder"
    yield (
        f"{kind} of {what}: a {KINDS.get(quantizer, quantizer)}, trained on "
        f"{public_name(experiment.data.source)} with `sqvae`."
    )


def _use_of_pictures(tokenizer: Any, name: str) -> Iterator[str]:
    channels, height, width = tokenizer.shape
    stride = stride_of(tokenizer.experiment, tokenizer.shape)
    shape, codes = f"(batch, {channels}, {height}, {width})", f"(batch, {height // stride}, {width // stride})"
    given, noun = f"{shape}, uint8 or between 0 and 1", "pictures"
    if tokenizer.preprocessing.labels:
        given, noun = f"(batch, {height}, {width}), integers", "maps"
    given = f"paths, PIL images, arrays; or a tensor, {given}"
    yield from ("```python", "import sqvae", "", f'tokenizer = sqvae.load("{name}")  # {WHERE}')
    if tokenizer.is_discrete:
        yield f'codes = tokenizer.encode(["one.png", "two.png"])  # {given} -> {codes}'
        yield "rebuilt = tokenizer.decode(codes)"
    else:
        yield f'rebuilt = tokenizer.reconstruct(["one.png", "two.png"])  # {given}'
    yield 'tokenizer.images(rebuilt)[0].save("again.png")'
    yield from ("```", "", "```sh")
    if tokenizer.is_discrete:
        yield f"sqvae encode {name} {noun} -o codes.safetensors"
        yield f"sqvae decode {name} codes.safetensors -o decoded"
    yield f"sqvae reconstruct {name} {noun} -o rebuilt"
    yield "```"


def _use_of_speech(tokenizer: Any, name: str) -> Iterator[str]:
    voice = tokenizer.speakers[0]
    yield from ("```python", "import sqvae", "")
    yield f'speech = sqvae.load("{name}")  # {WHERE}'
    yield 'units = speech.encode(["one.wav"])  # paths, or samples with their rate'
    yield f'frames = speech.decode(units, "{voice}")  # log-mel frames in dB, (frames, {tokenizer.features.mels})'
    yield "sound = speech.sound(frames[0])"
    yield from ("```", "", "```sh")
    yield f"sqvae encode {name} recordings -o units.safetensors"
    yield f"sqvae decode {name} units.safetensors -o spoken --speaker {voice} --audio"
    yield "```"


def _codes(tokenizer: Any) -> Iterator[str]:
    experiment: Experiment = tokenizer.experiment
    quantizer = experiment.quantizer
    if not tokenizer.is_discrete:
        yield f"- Continuous: vectors of {quantizer.dim} numbers, and no codes."
    else:
        size = tokenizer.codebook_size
        yield f"- {size:,} codes of {quantizer.dim} dimensions."
        yield from _becomes(tokenizer, math.log2(size))
    yield f"- Fingerprint of the weights: `{tokenizer.fingerprint}`."


def _becomes(tokenizer: Any, bits: float) -> Iterator[str]:
    if tokenizer.experiment.kind == "speech":
        rate = tokenizer.codes_per_second
        yield f"- A second of speech becomes {rate:g} codes: {rate * bits:,.0f} bits at most."
        return
    stride = stride_of(tokenizer.experiment, tokenizer.shape)
    _, height, width = tokenizer.shape
    rows, columns = height // stride, width // stride
    what = {"labels": "label map"}.get(tokenizer.experiment.kind, "picture")
    yield f"- A {what} of {height}x{width} becomes {rows}x{columns} codes: {rows * columns * bits:,.0f} bits at most."


def _data(tokenizer: Any) -> Iterator[str]:
    experiment: Experiment = tokenizer.experiment
    data = experiment.data
    yield f"- {public_name(data.source)}"
    if experiment.kind == "speech":
        features = tokenizer.features
        yield (
            f"- Sound of {features.rate:,} Hz as log-mel frames in dB: {features.mels} mels, "
            f"{features.rate / features.shift:g} frames a second (`{experiment.speech.features}`)."
        )
        yield f"- {len(tokenizer.speakers):,} speakers: {_listed(tokenizer.speakers)}."
        return
    channels, height, width = tokenizer.shape
    crop = "the largest centred part of that shape" if data.crop is None else f"a centred square of {data.crop} pixels"
    colour = "" if data.kind == "labels" else " in colour" if channels == 3 else " in grey"
    yield f"- Brought to {height}x{width}{colour}, from {crop}."
    if data.kind == "labels":
        named = f": {_listed(data.class_names)}" if data.class_names else ""
        ignored = "" if data.ignore is None else f" Pixels with the label {data.ignore} are ignored."
        yield f"- {data.classes:,} classes{named}.{ignored}"


def _listed(names: Sequence[str]) -> str:
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
    shown = {name: value for name, value in one.measures.items() if name in ("mse_db", "bits_per_dimension")}
    return meanings({"measures": shown, "likelihood": likelihood}, 0)


def _rows(one: Measured, codebook_size: int, directions: bool) -> Iterator[tuple[str, str]]:
    for measure in SHOWN:
        if measure == "bits_per_dimension" and directions:
            continue  # a density on a sphere, from which no bits for a class follow
        if measure in one.measures and not (measure == "mse" and "mse_db" in one.measures):
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
    if experiment.kind == "speech":
        yield "- It speaks with the voices above and no others. Sound comes by Griffin-Lim; a neural vocoder is better."
    elif experiment.network.map_dim is None:
        stride = stride_of(experiment, tokenizer.shape)
        yield f"- Other sizes whose sides are multiples of {stride} run too, but it was not trained on them."
    if tokenizer.history.on(source, "test") is None:
        yield (
            "- Nothing was measured on its test set. Validation has chosen these weights, so its numbers flatter them."
        )
    yield "- No licence is stated: what holds for the data may hold for the weights."

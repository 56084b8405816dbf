"""What `sqvae train-prior` and `sqvae sample` put together."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from torch import Tensor

from sqvae.cli import console
from sqvae.cli.launch import is_first_process
from sqvae.cli.pictures import PictureFolder
from sqvae.cli.root import claim
from sqvae.cli.speech import SoundFolder
from sqvae.cli.targets import check_all_free, check_free
from sqvae.cli.training import is_unfinished, trained, with_threads
from sqvae.config import PriorExperiment, override
from sqvae.data import Progress
from sqvae.data.decoding import is_picture_name
from sqvae.metrics.measures import MEASURES
from sqvae.modalities import Tokenizer, load_tokenizer
from sqvae.reports import Caption, save_rows
from sqvae.runs import PLACE, Generator, is_run, load_generator, prepare_prior, read_prior
from sqvae.tokenizers import check_there
from sqvae.training import CheckpointError, RunFolder, read_json, read_records, write_json

SPLIT = "test"
"""What a prior is judged on in the end."""

SHOWN = ("bits_per_code", "nats_per_code", "histogram_bits_per_code", "uniform_bits_per_code")
"""The measures that are printed."""


def asked_for(
    run: Path,
    out: Path | None,
    name: str,
    given: str | None,
    by_class: bool,
    until: float | None,
    data: str | None,
    settings: list[str],
    *,
    seed: int | None,
    epochs: int | None,
) -> tuple[PriorExperiment, Path]:
    """What was asked for, and the folder that it is to be trained in."""
    for model in (run, *([] if given is None else [Path(given)])):
        check_there(model)
    if out is None and not is_run(RunFolder(run)):
        raise CheckpointError(f"{run} is not the folder of a run, and has no place for a prior: name one with --out")
    if is_unfinished(run):
        console.warning(
            f"{run} is not trained to its end. When it goes on it becomes another model, without this prior"
        )
    options = {
        "prior.name": name,
        "above": given,
        "by_class": True if by_class else None,
        "training.until": until,
        "data": data,
        "seed": seed,
        "training.epochs": epochs,
    }
    assignments = [f"{key}={value}" for key, value in options.items() if value is not None]
    experiment = override(PriorExperiment(tokenizer=str(run)), [*assignments, *settings])
    return with_threads(experiment), out or run / PLACE


def is_prior(run: Path) -> bool:
    """Whether a folder is that of a prior, rather than of a model."""
    with suppress(CheckpointError):
        return PriorExperiment.entry in read_json(RunFolder(run).config)
    return False


def watched_prior(folder: RunFolder, work: Callable[..., Any]) -> None:
    """Train a prior where a person can watch, and say what came of it and what to do next."""
    trained(folder, work)
    if not is_first_process():
        return
    with console.progress_bar() as progress:
        experiment, record = judged(folder, progress)
    write_json(folder.path / f"results-{SPLIT}.json", record)
    table = Table("what", "value", title=record["setting"], title_justify="left")
    for measure in SHOWN:
        table.add_row(MEASURES[measure].label, MEASURES[measure].text(record["measures"][measure]))
    console.out.print(table)
    if _missed(folder, experiment):
        console.warning(f"{experiment.training.until:g} nats per code on the validation set were not reached")
    for words in _worse(folder, experiment, record["measures"]):
        console.warning(words)
    run = experiment.tokenizer
    own = "" if folder.path.resolve() == (Path(run) / PLACE).resolve() else f" --prior {folder}"
    out = "samples" if experiment.sequences else "samples.png"
    console.out.print(f"Done: {folder}. Use it with: sqvae sample {run}{own} -o {out}", soft_wrap=True)


def _missed(folder: RunFolder, experiment: PriorExperiment) -> bool:
    """Whether it has ended before its likelihood was as wanted."""
    until = experiment.training.until
    losses = [one["loss_per_dimension"] for one in read_records(folder.log) if one["kind"] == "validation"]
    return until is not None and min(losses, default=math.inf) > until


def _worse(folder: RunFolder, experiment: PriorExperiment, measures: Mapping[str, float]) -> Iterator[str]:
    """That a prior is of no use, and what to do."""
    cost, known = measures["bits_per_code"], measures["histogram_bits_per_code"]
    if cost < known:
        return
    plan = experiment.training
    longer = f"--epochs {2 * plan.epochs}" if plan.steps is None else f"--steps {2 * plan.steps}"
    yield (
        f"the prior is worse than the histogram of codes, {cost:.3f} bits per code against {known:.3f}: files that are "
        f"compressed with it become larger, and its samples tell little. Train it longer (sqvae resume {folder} "
        f"{longer}), or make it larger, or smaller if its cost on validation rose again (prior.channels, prior.layers)"
    )


def judged(folder: RunFolder, progress: Progress) -> tuple[PriorExperiment, dict[str, Any]]:
    """A prior's experiment, and what the test set costs under it."""
    model, experiment, mark = read_prior(folder.path)
    prepared = prepare_prior(experiment, announce=lambda text: None, progress=progress)
    measures = prepared.evaluate(model, SPLIT, progress)
    number = len(prepared.test)
    setting = f"{experiment.prior.name}, seed {experiment.seed}, of {experiment.tokenizer}; {number:,} {SPLIT} examples"
    return experiment, {"setting": setting, "fingerprint": mark, "examples": number, "measures": measures}


@dataclass(frozen=True)
class Choices:
    """How samples are to be drawn."""

    number: int
    temperature: float
    top_k: int | None
    top_p: float | None
    classes: list[str] | None
    seed: int
    batch: int

    @property
    def names(self) -> list[str]:
        """Of the samples, where each has a file of its own."""
        return [f"sample-{index:05d}" for index in range(self.number)]

    def normal(self, tokenizer: Tokenizer) -> Tensor:  # -> (number, dim, ...)
        """Latents of a model without codes, whose prior is the normal distribution."""
        shape = tokenizer.latents(torch.zeros(1, *tokenizer.shape)).shape[1:]
        random = torch.Generator().manual_seed(self.seed)
        return self.temperature * torch.randn(self.number, *shape, generator=random)

    def drawn(self, generator: Generator, shape: tuple[int, ...] | None = None) -> Tensor:  # -> (number, *shape)
        """Codes, while a bar shows how far it is."""
        with console.progress_bar() as progress:
            return generator.sample(
                self.number,
                shape=shape,
                classes=self.classes,
                temperature=self.temperature,
                top_k=self.top_k,
                top_p=self.top_p,
                seed=self.seed,
                batch=self.batch,
                progress=progress,
            )


def sample_pictures(
    run: Path, prior: Path | None, out: Path, choices: Choices, *, seconds: float | None, overwrite: bool
) -> None:
    """Draw pictures: one picture of all, or each by itself in a folder."""
    if seconds is not None:
        raise ValueError(f"--seconds is of models of speech, and {run} is one of pictures")
    together = out.suffix.lower() == ".png"
    if together:
        check_free(out, overwrite)
    elif is_picture_name(out.name):
        raise ValueError(f"-o {out}: all samples together are a .png, and each by itself goes to a folder")
    else:
        check_all_free((out / f"{name}.png" for name in choices.names), overwrite)
    tokenizer = load_tokenizer(run)
    codes = choices.drawn(load_generator(run, prior)) if tokenizer.is_discrete else choices.normal(tokenizer)
    folder = None if together else PictureFolder(out, overwrite=overwrite)
    shown: list[Tensor] = []
    classes: list[tuple[str, str]] = []
    for first, some in zip(range(0, len(codes), choices.batch), codes.split(choices.batch), strict=True):
        pictures = tokenizer.decode(some)
        if folder is None:
            shown.append(tokenizer.medium.shown_output(pictures).cpu())
            classes += tokenizer.medium.classes_in(pictures)
        else:
            folder.save(choices.names[first : first + len(some)], tokenizer.medium.images(pictures))
    if together:
        out.parent.mkdir(parents=True, exist_ok=True)
        # A sheet of pictures is one to use as it is; colours of classes mean nothing without their names.
        caption = Caption(classes=tuple(dict.fromkeys(classes))) if classes else None
        save_rows(out, [torch.cat(shown)], math.ceil(math.sqrt(len(codes))), caption)
    console.out.print(f"{len(codes):,} samples in {out}")


def sample_speech(
    run: Path,
    prior: Path | None,
    out: Path,
    choices: Choices,
    *,
    seconds: float,
    speaker: str | None,
    audio: bool,
    overwrite: bool,
) -> None:
    """Draw utterances: frames, and sound if it is wanted, in a folder."""
    claim(out)
    endings = (".npy", ".wav") if audio else (".npy",)
    check_all_free((out / f"{name}{ending}" for name in choices.names for ending in endings), overwrite)
    generator = load_generator(run, prior)
    tokenizer = generator.tokenizer
    voice = speaker or tokenizer.speakers[0]
    tokenizer.speaker(voice)  # which says that it is unknown before anything is drawn
    length = max(1, round(seconds * tokenizer.codes_per_second))
    results = SoundFolder(out, tokenizer, audio=audio, overwrite=overwrite)
    for name, codes in zip(choices.names, choices.drawn(generator, (length,)), strict=True):
        frames = tokenizer.decode([codes], voice)[0]
        results.save(name, frames, (len(frames) - 1) * tokenizer.features.shift)
    results.tell()

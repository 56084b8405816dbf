"""The second stage of a run: a prior over the model's codes, and the comparison of samples with real images."""

from dataclasses import replace

from torch import Tensor

from sqvae.analysis import Makers, frechet_distances, made_by, sets_of
from sqvae.config import Experiment, PriorExperiment
from sqvae.data.cache import cache_folder
from sqvae.metrics import feature_network
from sqvae.modalities.images.tokenizer import load_tokenizer
from sqvae.runs import Evaluation, PreparedPrior, load_generator, prepare, prepare_prior, read_prior, resume, train
from sqvae.sweeps.records import SHOWN, Planned, Record, make_record
from sqvae.training import RunFolder


def carry_on(planned: Planned, folder: RunFolder) -> tuple[Record, Tensor, Tensor]:
    """Train the prior of a model, if it has codes, and evaluate it. Returns a record, some real images and some
    samples.

    Arguments:
        planned: a run with a second stage.
        folder: the folder of the model.
    """
    sequel = planned.sequel
    assert sequel is not None
    tokenizer = load_tokenizer(folder.path)
    prior = RunFolder(folder.path / f"prior-{sequel.prior_key}")
    measures: dict[str, float] = {}
    generator = counts = None
    if tokenizer.is_discrete:
        prepared_prior = _with_prior(planned, folder, prior, _levels_above(planned, folder))
        model, _, _ = read_prior(prior.path)
        measures = prepared_prior.evaluate(model, "test")
        generator, counts = load_generator(folder.path, prior.path), prepared_prior.counts
    prepared = prepare(tokenizer.experiment, announce=_silent)
    pictures = prepared.part("test")
    if sequel.pictures is not None:
        pictures = pictures.spread(sequel.pictures)
    made = Makers(tokenizer, pictures, generator, counts, planned.experiment.seed)
    cache = cache_folder(None)
    network = feature_network(sequel.features, cache=cache, device=tokenizer.device)
    distances, _ = frechet_distances(made, network, sets_of(tokenizer), key=prepared.key_of("test"), cache=cache)
    real, samples = _shown(made)
    evaluation = Evaluation({**measures, **distances}, (), real, samples)
    record = make_record(
        planned, tokenizer.experiment, prepared.sizes, prepared.key, evaluation, prior.log, tokenizer.fingerprint
    )
    return record, real, samples


def _levels_above(planned: Planned, folder: RunFolder) -> tuple[RunFolder, RunFolder] | None:
    """The next coarser level and its prior, after all coarser levels are trained; None if there is none."""
    assert planned.sequel is not None
    above = None
    for halvings in reversed(planned.sequel.levels):
        level = RunFolder(folder.path / f"level-{halvings}")
        _trained(deeper(planned.experiment, halvings), level)
        prior = RunFolder(level.path / f"prior-{planned.sequel.prior_key}")
        _with_prior(planned, level, prior, above)
        above = level, prior
    return above


def deeper(experiment: Experiment, halvings: int) -> Experiment:
    """The same model with additional convolutions before its codes, each of which downsamples by 2."""
    widths = experiment.network.widths
    if widths is None:
        raise ValueError("a coarser level adds to network.widths, which is not set: set network.widths")
    return replace(experiment, network=replace(experiment.network, widths=(*widths, *[widths[-1]] * halvings)))


def _with_prior(
    planned: Planned, folder: RunFolder, prior: RunFolder, above: tuple[RunFolder, RunFolder] | None
) -> PreparedPrior:
    """The prior of a model, after training, with its codes."""
    sequel = planned.sequel
    assert sequel is not None
    experiment = PriorExperiment(
        tokenizer=str(folder.path),
        above=None if above is None else str(above[0].path),
        above_prior=None if above is None else str(above[1].path),
        prior=sequel.prior,
        training=sequel.training,
        seed=planned.experiment.seed,
    )
    _trained(experiment, prior)
    return prepare_prior(experiment, announce=_silent)


def _trained(experiment: Experiment | PriorExperiment, folder: RunFolder) -> None:
    """Train to the end, or resume from the last checkpoint."""
    if folder.config.exists():
        resume(folder.path, announce=_silent)
    else:
        train(experiment, folder.path, announce=_silent)


def _shown(made: Makers) -> tuple[Tensor, Tensor]:  # (n, C, H, W) twice, in [0, 1]
    medium, number = made.tokenizer.medium, min(SHOWN, len(made))
    real = medium.shown(medium.model_input(made.pictures.take(range(number)), made.tokenizer.device))
    samples = next(made_by(made, "samples"))[:number]
    return real.cpu(), samples.cpu()


def _silent(text: str) -> None:
    pass

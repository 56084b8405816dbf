"""The measures of an evaluation, as text."""

from collections.abc import Iterable, Mapping, Sequence

from sqvae.metrics.measures import MEASURES, error_name, is_main
from sqvae.metrics.reconstruction import codebooks_in

MOST_CLASSES = 40
"""The largest number of classes for which a table has a row each."""


def error_of(measures: Mapping[str, float]) -> str:
    """The main error, such as "MSE x 1000 = 1.557"; or for samples, their distance from real images."""
    distances = [f"{name} = {value:.2f}" for name, value in measures.items() if name.endswith(" samples")]
    if distances:  # of a second stage
        return distances[0]
    error = MEASURES[error_name(measures)]
    return f"{error.label} = {error.text(measures[error.name])}"


def rows_of(
    measures: Mapping[str, float], codebook_size: int, batch_size: int, *, directions: bool = False
) -> dict[str, str]:
    """The label and the value of each measure, the most important first.

    Arguments:
        measures: the stored values by name.
        codebook_size: the number of codes, of all layers together.
        batch_size: the number of examples in a batch.
        directions: whether classes are directions on a sphere. Their likelihood is a density there, which cannot be
            converted to bits for a class.
    """
    rows: dict[str, str] = {}
    for name in ("mse_db", "unexplained", "mse", "cosine", "collisions", "distinct_ids", "pixel_error"):
        rows |= _rows(name, measures) if is_main(name, measures) else {}
    if "miou" in measures:
        rows |= _overlaps(measures)
    layers = codebooks_in(measures)
    for name, of_how_many in (("perplexity", codebook_size // max(1, len(layers))), ("codes_used", codebook_size)):
        rows |= {label: f"{text} of {of_how_many:,}" for label, text in _rows(name, measures).items()}
    if layers:
        rows[f"perplexity of each {kind_of(layers)}"] = ", ".join(map(MEASURES["perplexity"].text, layers.values()))
    rows |= _rows("soft_perplexity", measures) | _rows("mixture_gap", measures)
    rows |= {f"{label} of {batch_size}": text for label, text in _rows("batch_perplexity", measures).items()}
    for name in ("codes_per_second", "bits_per_second", "utterances_left_out"):
        rows |= _rows(name, measures)
    bound = MEASURES["bound_nats"]
    if directions:
        what = "bound on the log-density of directions, to compare only with such models of the same classes"
        return rows | {what: bound.text(measures["bound_nats"])}
    of_what = " of a frame" if "mse_db" in measures else ""
    rows[f"{bound.label}{of_what}"] = bound.text(measures["bound_nats"])
    return rows | _rows("bits_per_dimension", measures)


def kind_of(codebooks: Iterable[str]) -> str:
    """What codebooks of such names are of: "layer", "level", or "layer of each level"."""
    names = list(codebooks)
    if not any(name.startswith("level") for name in names):
        return "layer"
    return "layer of each level" if any("layer" in name for name in names) else "level"


def _rows(name: str, measures: Mapping[str, float]) -> dict[str, str]:
    """The label and the value of a measure, if it was measured."""
    return {MEASURES[name].label: MEASURES[name].text(measures[name])} if name in measures else {}


def _overlaps(measures: Mapping[str, float]) -> dict[str, str]:
    """The intersection over union: the mean, and that of each class that occurs."""
    mean, present = MEASURES["miou"], int(measures["classes_present"])
    each = {name: value for name, value in measures.items() if name.startswith("iou of ")}
    rows = {f"{mean.label}, of the {present} classes that occur": mean.text(measures["miou"])}
    if len(each) <= MOST_CLASSES:
        rows |= {f"IoU{name.removeprefix('iou')}": mean.text(value) for name, value in each.items()}
    return rows


def results_page(
    title: str,
    command: str,
    setting: str,
    rows: Mapping[str, str],
    pictures: Sequence[str] = (),
    meanings: Sequence[str] = (),
    *,
    warnings: Sequence[str] = (),
) -> str:
    """A Markdown page of measures, with the data and the command that they come from.

    Arguments:
        title: the title.
        command: the command that writes the page.
        setting: a sentence on the model and the data.
        rows: the labels and values of the measures.
        pictures: images, in Markdown.
        meanings: sentences that explain the measures.
        warnings: problems of the model, which come first.
    """
    wrong = [line for warning in warnings for line in (f"**{warning}**", "")]
    told = ["", *(f"- {sentence}" for sentence in meanings)] if meanings else []
    table = ["| measure | value |", "|---|---|", *(f"| {what} | {value} |" for what, value in rows.items())]
    images = [line for picture in pictures for line in ("", picture)]
    head = [f"# {title}", "", f"Written by `{command}`; do not edit.", "", setting, "", *wrong]
    return "\n".join([*head, *table, *told, *images, ""])

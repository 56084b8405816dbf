"""The measures of an evaluation, for people."""

from collections.abc import Mapping, Sequence

MOST_CLASSES = 40
"""A table names each of so many classes at most."""

ERRORS = {
    "pixel_error": ("pixel error", 100.0, "%"),
    "mse": ("MSE x 1000", 1000.0, ""),
    "mse_db": ("MSE in dB²", 1.0, ""),
}
"""What tells how far off reconstructions are, the first that was measured counts: its words, factor and unit."""


def error_of(measures: Mapping[str, float]) -> str:
    """The error that matters most, in words: "MSE x 1000 = 1.557"; or of samples, their distance from real pictures."""
    distances = [f"{name} = {value:.2f}" for name, value in measures.items() if name.endswith(" samples")]
    if distances:  # of what was done with a model
        return distances[0]
    name = error_name(measures)
    words, factor, unit = ERRORS[name]
    return f"{words} = {factor * measures[name]:.3f}{unit}"


def error_name(measures: Mapping[str, float]) -> str:
    """Of the error that matters most: of label maps the pixel error, of others the squared error, of speech in dB."""
    if "mse_db" in measures:
        return "mse_db"
    return "pixel_error" if "miou" in measures else "mse"


def rows_of(
    measures: Mapping[str, float], codebook_size: int, batch_size: int, *, directions: bool = False
) -> dict[str, str]:
    """What was measured, in words, and the value; in the order in which one wants to know.

    Arguments:
        directions: classes are directions on a sphere. Their likelihood is a density there, which no number of bits
            for a class follows from.
    """
    rows = {}
    if "mse_db" in measures:
        rows["MSE in dB²"] = f"{measures['mse_db']:.2f}"
    elif "mse" in measures:
        rows["MSE x 1000"] = f"{1000 * measures['mse']:.3f}"
    if "pixel_error" in measures:
        wrong = "levels that are not exact" if "mse" in measures else "pixels that are wrong"
        rows[wrong] = f"{100 * measures['pixel_error']:.2f}%"
    if "miou" in measures:
        rows |= _overlaps(measures)
    if "perplexity" in measures:
        rows |= {
            "perplexity of the codes": f"{measures['perplexity']:.1f} of {codebook_size}",
            "codes used": f"{int(measures['codes_used'])} of {codebook_size}",
            "perplexity, of the mean probabilities": f"{measures['soft_perplexity']:.1f}",
        }
    if "mixture_gap" in measures:
        rows["error of single codes / of the mixtures that training decodes"] = f"{measures['mixture_gap']:.2f}"
    if "batch_perplexity" in measures:
        rows[f"perplexity, mean over batches of {batch_size}"] = f"{measures['batch_perplexity']:.1f}"
    if "codes_per_second" in measures:
        rows |= {
            "codes a second": f"{measures['codes_per_second']:g}",
            "bits a second, by how often each code is used": f"{measures['bits_per_second']:.0f}",
        }
    if "utterances_left_out" in measures:
        rows["utterances left out, of speakers that the model does not know"] = (
            f"{measures['utterances_left_out']:,.0f}"
        )
    if directions:
        what = "bound on the log-density of directions, to compare with other such models of the same classes alone"
        return rows | {what: f"{measures['bound_nats']:.1f} nats"}
    of_what = " of a frame" if "mse_db" in measures else ""
    return rows | {
        f"bound on the log-likelihood{of_what}": f"{measures['bound_nats']:.1f} nats",
        "the same, in bits per dimension": f"{measures['bits_per_dimension']:.3f}",
    }


def _overlaps(measures: Mapping[str, float]) -> dict[str, str]:
    """Intersection over union: the mean, and each class that occurs."""
    present = int(measures["classes_present"])
    each = {name: value for name, value in measures.items() if name.startswith("iou of ")}
    rows = {f"mIoU, of the {present} classes that occur": f"{100 * measures['miou']:.1f}%"}
    if len(each) <= MOST_CLASSES:
        rows |= {f"IoU{name.removeprefix('iou')}": f"{100 * value:.1f}%" for name, value in each.items()}
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
    """A page in Markdown that says what was measured, on what, by which command.

    Arguments:
        pictures: in Markdown.
        meanings: sentences that tell the measures apart.
        warnings: what is wrong with the model now; they come first.
    """
    wrong = [line for warning in warnings for line in (f"**{warning}**", "")]
    told = ["", *(f"- {sentence}" for sentence in meanings)] if meanings else []
    table = ["| what | value |", "|---|---|", *(f"| {what} | {value} |" for what, value in rows.items())]
    images = [line for picture in pictures for line in ("", picture)]
    head = [f"# {title}", "", f"Written by `{command}`; do not edit.", "", setting, "", *wrong]
    return "\n".join([*head, *table, *told, *images, ""])

"""The measures of an evaluation, for people."""

from collections.abc import Mapping, Sequence


def rows_of(measures: Mapping[str, float], codebook_size: int, batch_size: int) -> dict[str, str]:
    """What was measured, in words, and the value; in the order in which one wants to know."""
    rows = {"MSE x 1000": f"{1000 * measures['mse']:.3f}"}
    if "perplexity" in measures:
        rows |= {
            "perplexity of the codes": f"{measures['perplexity']:.1f} of {codebook_size}",
            "codes used": f"{int(measures['codes_used'])} of {codebook_size}",
            "perplexity, of the mean probabilities": f"{measures['soft_perplexity']:.1f}",
            f"perplexity, mean over batches of {batch_size}": f"{measures['batch_perplexity']:.1f}",
        }
    return rows | {
        "bound on the log-likelihood": f"{measures['bound_nats']:.1f} nats",
        "the same, in bits per dimension": f"{measures['bits_per_dimension']:.3f}",
    }


def results_page(title: str, command: str, setting: str, rows: Mapping[str, str], pictures: Sequence[str] = ()) -> str:
    """A page in Markdown that says what was measured, on what, by which command."""
    table = ["| what | value |", "|---|---|", *(f"| {what} | {value} |" for what, value in rows.items())]
    images = [line for picture in pictures for line in ("", picture)]
    return "\n".join([f"# {title}", "", f"Written by `{command}`; do not edit.", "", setting, "", *table, *images, ""])

"""All measures by name, with their labels, units, number formats and meanings: the one table that others read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Measure:
    """A measure, and how it is shown."""

    name: str
    """The key in records."""
    label: str
    """The name in tables and sentences."""
    unit: str
    """The unit of the stored value, as the label of an axis."""
    format: str
    """The format of the shown value, which is `scale` times the stored value."""
    meaning: str
    """A sentence that explains the measure."""
    better: Literal["lower", "higher", ""]
    """Which values are better; "" if neither."""
    scale: float = 1.0
    """The factor between the stored and the shown value."""

    @property
    def column(self) -> str:
        """The header of a table's column, whose cells have no unit of their own."""
        return f"{self.label}, %" if self.format.endswith("%") else self.label

    def shown(self, value: float) -> float:
        """The shown value of a stored one."""
        return self.scale * value

    def text(self, value: float) -> str:
        """A stored value, as text."""
        return self.format.format(self.shown(value))


MEASURES: Mapping[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure(
            "mse",
            "MSE x 1000",
            "squared difference of values in [0, 1]",
            "{:.3f}",
            "The mean squared error of values in [0, 1], times 1000.",
            "lower",
            1000.0,
        ),
        Measure(
            "mse_db",
            "MSE in dB²",
            "dB²",
            "{:.2f}",
            "The mean squared error of log-mel spectrograms in dB.",
            "lower",
        ),
        Measure(
            "unexplained",
            "unexplained variance",
            "share of the variance of the training set",
            "{:.2f}%",
            "The mean squared error of vectors, as a share of the variance of the values in the training set.",
            "lower",
            100.0,
        ),
        Measure(
            "cosine",
            "cosine similarity",
            "cosine",
            "{:.4f}",
            "The mean cosine of the angle between a vector and its reconstruction.",
            "higher",
        ),
        Measure(
            "collisions",
            "collisions",
            "share of all vectors",
            "{:.2f}%",
            "The share of vectors that have the same id, which is all codes together, as another vector.",
            "lower",
            100.0,
        ),
        Measure("distinct_ids", "distinct ids", "ids", "{:,.0f}", "The number of different ids.", "higher"),
        Measure(
            "pixel_error",
            "pixel error",
            "share of all pixels",
            "{:.2f}%",
            "The share of pixels whose label or grey level is not exact.",
            "lower",
            100.0,
        ),
        Measure(
            "miou",
            "mIoU",
            "share",
            "{:.1f}%",
            "The intersection over union, averaged over the classes that occur.",
            "higher",
            100.0,
        ),
        Measure(
            "perplexity",
            "perplexity of the codes",
            "codes",
            "{:.1f}",
            "Perplexity of the codes: the effective number of codes in use. It counts the likeliest code at each "
            "position over the whole set, and equals the number of codes if all are used equally often. With layers it "
            "is the geometric mean over them.",
            "higher",
        ),
        Measure("codes_used", "codes used", "codes", "{:,.0f}", "The number of codes that occur at all.", "higher"),
        Measure(
            "soft_perplexity",
            "perplexity of the mean probabilities",
            "codes",
            "{:.1f}",
            "Perplexity of the mean probabilities: it weights every code by its probability at each position, as codes "
            "are drawn in training. It is usually larger than that of the codes, and approaches it as quantization "
            "anneals.",
            "higher",
        ),
        Measure(
            "batch_perplexity",
            "perplexity, mean over batches",
            "codes",
            "{:.1f}",
            "Perplexity, mean over batches: it is measured in each batch separately, which contains fewer codes than "
            "the whole set. It is usually smaller than that of the whole set, especially for small batches.",
            "higher",
        ),
        Measure(
            "mixture_gap",
            "error with single codes / with the mixtures of training",
            "multiple of the error with mixtures",
            "{:.2f}",
            "The ratio of the error with single codes to that with the mixtures of codes that the decoder sees in "
            "training; the aim is 1.",
            "lower",
        ),
        Measure("codes_per_second", "codes per second", "codes per second", "{:g}", "The rate of codes of speech.", ""),
        Measure(
            "bits_per_second",
            "bits per second, by the frequency of each code",
            "bits per second",
            "{:.0f}",
            "The entropy of the codes' frequencies, times the codes per second.",
            "",
        ),
        Measure(
            "utterances_left_out",
            "utterances left out, of speakers that the model does not know",
            "utterances",
            "{:,.0f}",
            "The number of utterances that were not measured, because the model does not know their speakers.",
            "",
        ),
        Measure(
            "bound_nats",
            "bound on the log-likelihood",
            "nats",
            "{:.1f} nats",
            "The lower bound on the log-likelihood of an example.",
            "higher",
        ),
        Measure(
            "bits_per_dimension",
            "bound in bits per dimension",
            "bits per dimension",
            "{:.3f}",
            "The bound on the negative log-likelihood, in bits per value or label.",
            "lower",
        ),
        Measure(
            "bits_per_code",
            "bits per code",
            "bits per code",
            "{:.3f}",
            "The number of bits that a code costs under the prior, given the codes before it.",
            "lower",
        ),
        Measure(
            "nats_per_code",
            "nats per code",
            "nats per code",
            "{:.3f}",
            "The negative log-likelihood of a code under the prior, given the codes before it.",
            "lower",
        ),
        Measure(
            "histogram_bits_per_code",
            "bits per code, by the histogram of training codes",
            "bits per code",
            "{:.3f}",
            "The number of bits that a code costs by its frequency in the training set.",
            "",
        ),
        Measure(
            "uniform_bits_per_code",
            "bits per code, all codes equally likely",
            "bits per code",
            "{:.3f}",
            "The number of bits that a code costs if all codes are equally likely.",
            "",
        ),
        Measure(
            "variance",
            "variance of the quantization",
            "variance of one dimension",
            "{:.4g}",
            "The variance of the quantization, which decreases as it anneals.",
            "",
        ),
        Measure(
            "relative_variance",
            "variance of the quantization, relative to the codes' distance",
            "share of the codes' mean squared distance",
            "{:.4g}",
            "The variance of the quantization over the mean squared distance between codes.",
            "",
        ),
        Measure(
            "concentration",
            "concentration of the quantization",
            "concentration, without a unit",
            "{:.4g}",
            "The concentration of the von Mises-Fisher quantization, which increases as it anneals.",
            "",
        ),
        Measure(
            "decoder_variance",
            "variance of the decoder",
            "squared difference of values in [0, 1]",
            "{:.4g}",
            "The variance of a Gaussian decoder.",
            "",
        ),
        Measure(
            "decoder_concentration",
            "concentration of the decoder",
            "concentration, without a unit",
            "{:.4g}",
            "The concentration of a von Mises-Fisher decoder.",
            "",
        ),
        Measure(
            "entropy_per_position",
            "entropy per position",
            "nats",
            "{:.2f}",
            "The mean entropy of the assignment probabilities at a position.",
            "",
        ),
        Measure("psnr", "PSNR", "dB", "{:.2f} dB", "The peak signal-to-noise ratio of values in [0, 1].", "higher"),
    )
}
"""All measures that evaluations, training logs and rates record under fixed names."""


INSTEAD_OF_MSE = ("mse_db", "unexplained")
"""Squared errors in a better unit than that of the model, which are shown in place of it."""


def error_name(measures: Mapping[str, float]) -> str:
    """The name of the main error: the pixel error for label maps, otherwise the squared error.

    It is in dB² for speech, and a share of the variance for vectors.
    """
    for name in INSTEAD_OF_MSE:
        if name in measures:
            return name
    return "pixel_error" if "miou" in measures else "mse"


def is_main(name: str, measures: Mapping[str, float]) -> bool:
    """Whether a measure is to be shown: the plain squared error is not, where it is also given in a better unit."""
    return not (name == "mse" and error_name(measures) in INSTEAD_OF_MSE)

"""The models that the paper compares, each as changes of an experiment with Gaussian SQ-VAE (I)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqvae.config import Experiment, override


@dataclass(frozen=True)
class Method:
    """A model: a row of a table, or a line of a figure."""

    label: str
    settings: tuple[str, ...]
    """The settings that it changes, as `--set` takes them."""
    colour: str
    marker: str
    stochastic: bool
    """Whether codes are drawn at random in training."""

    @property
    def self_annealing(self) -> bool:
        """Whether the variance of the quantization is learned."""
        return self.stochastic and "quantizer.name=gaussian-fixed" not in self.settings

    def applied(self, experiment: Experiment) -> Experiment:
        """An experiment with this model."""
        return override(experiment, self.settings)


_SONNET = (
    "likelihood.variance=fixed",
    "likelihood.latent_terms=mean",
    "training.learning_rate=3e-4",
    "training.tolerance=1e-6",
)
"""VQ-VAE is trained as in the example that the paper's networks come from: the squared error divided by the variance
of the data, plus averaged latent terms. That loss is not a logarithm, and it is small: an improvement of 1e-6 is
0.01% of its final value."""

METHODS: Mapping[str, Method] = {
    "vae": Method("VAE", ("quantizer.name=gaussian-latent",), "tab:brown", "P", False),
    "vq-vae": Method("VQ-VAE", ("quantizer.name=vq", *_SONNET), "tab:gray", "X", False),
    "vq-vae-ema": Method("VQ-VAE (EMA)", ("quantizer.name=vq-ema", *_SONNET), "tab:orange", "s", False),
    "vq-vae-ema-reset": Method(
        "VQ-VAE (EMA + code reset)", ("quantizer.name=vq-ema-reset", *_SONNET), "tab:red", "D", False
    ),
    "vq-vae-ema-closed": Method(
        "VQ-VAE (EMA), closed-form variance", ("quantizer.name=vq-ema",), "tab:olive", "v", False
    ),
    "vq-vae-ema-reset-closed": Method(
        "VQ-VAE (EMA + code reset), closed-form variance", ("quantizer.name=vq-ema-reset",), "tab:pink", "^", False
    ),
    "fixed": Method("fixed quantization variance", ("quantizer.name=gaussian-fixed",), "tab:green", "^", True),
    "sq-vae-1": Method("Gaussian SQ-VAE (I)", (), "tab:blue", "o", True),
    "sq-vae-2": Method("Gaussian SQ-VAE (II)", ("quantizer.name=gaussian-2",), "tab:cyan", "o", True),
    "sq-vae-3": Method("Gaussian SQ-VAE (III)", ("quantizer.name=gaussian-3",), "tab:purple", "o", True),
    "sq-vae-4": Method("Gaussian SQ-VAE (IV)", ("quantizer.name=gaussian-4",), "tab:pink", "o", True),
    "nc-sq-vae": Method(
        "NC SQ-VAE", ("quantizer.name=gaussian-1", "likelihood.name=categorical"), "tab:purple", "D", True
    ),
    "vmf-sq-vae": Method("vMF SQ-VAE", ("quantizer.name=vmf",), "tab:blue", "*", True),
    **{
        f"vq-vae-ema-{variance:g}": Method(
            f"VQ-VAE (EMA), σ² = {variance:g}",
            ("quantizer.name=vq-ema", "likelihood.variance=fixed", f"likelihood.initial_variance={variance:g}"),
            colour,
            "s",
            False,
        )
        for variance, colour in ((0.01, "tab:olive"), (0.1, "tab:orange"), (1, "tab:red"), (10, "tab:brown"))
    },
}
"""All models by the name that --only takes."""

CATEGORICAL: Mapping[str, Method] = {
    "vae": replace(METHODS["vae"], settings=("quantizer.name=gaussian-latent", "likelihood.name=categorical")),
    "vq-vae-ema": replace(
        METHODS["vq-vae-ema"],
        settings=("quantizer.name=vq-ema", "likelihood.name=categorical", "training.learning_rate=3e-4"),
    ),
    "nc-sq-vae": METHODS["nc-sq-vae"],
    "vmf-sq-vae": METHODS["vmf-sq-vae"],
}
"""The models that the paper compares on classes. All but its own are trained with cross-entropy."""


def categorical(base: Experiment, initial_variance: float) -> dict[str, Experiment]:
    """An experiment with each of the models for classes.

    Arguments:
        base: the experiment with vMF SQ-VAE.
        initial_variance: the initial variance of Gaussian quantization: 10 for images of 28x28, 20 for larger ones.
    """
    experiments = {name: method.applied(base) for name, method in CATEGORICAL.items()}
    experiments["nc-sq-vae"] = override(experiments["nc-sq-vae"], [f"quantizer.initial_variance={initial_variance:g}"])
    return experiments


def vector_dimension(positions: int, codebook_size: int, bits: int = 32) -> int:
    """The dimension of a VAE's latent vector that has as many bits as the codes of an image.

    On CelebA, 16 x 16 positions of 9 bits are 72 numbers of 32 bits.
    """
    return max(1, math.ceil(positions * math.log2(codebook_size) / bits))

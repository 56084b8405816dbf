"""Likelihoods of labels: one category out of C at each place."""

import math
from abc import ABC

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize, one_hot

from sqvae.distributions import von_mises_fisher
from sqvae.distributions.checks import check_indices, check_positive, check_size
from sqvae.distributions.precision import widest_float
from sqvae.likelihoods.contract import Fit, Likelihood, check_output_shape


class LabelLikelihood(Likelihood, ABC):
    """Data of integer labels, (batch, ...)."""

    num_classes: int

    def check(self, x: Tensor) -> None:
        check_indices(
            x, self.num_classes, "labels", "; take a larger num_classes, or map these labels to classes first"
        )


class CategoricalLikelihood(LabelLikelihood):
    r"""A softmax over the decoder's outputs; its loss is the cross-entropy.

    .. math:: P_\theta(x_d = c \mid Z_q) = \mathrm{softmax}_c(f_{\theta, d}(Z_q))

    The encoder sees one-hot pictures, (batch, C, ...), and the decoder gives the same shape, unbounded. With the
    Gaussian quantizer this is the paper's naive categorical (NC) model.

    Arguments:
        num_classes: the number of categories, C.
    """

    precision: Tensor

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        check_size(num_classes, "num_classes", least=2)
        self.num_classes = num_classes
        self.register_buffer("precision", torch.empty(0), persistent=False)  # moves and casts with the model

    def _fit(self, output: Tensor, x: Tensor) -> Fit:
        check_output_shape(output, (x.shape[0], self.num_classes, *x.shape[1:]), "(batch, classes, ...)")
        loss = cross_entropy(output, x.long(), reduction="sum") / len(x)
        return Fit(loss, -loss)

    def predict(self, output: Tensor) -> Tensor:
        return output.argmax(1)

    def embed(self, x: Tensor) -> Tensor:
        self.check(x)
        return one_hot(x.long(), self.num_classes).movedim(-1, 1).to(self.precision.dtype)

    def extra_repr(self) -> str:
        return f"num_classes={self.num_classes}"


class VonMisesFisherLikelihood(LabelLikelihood):
    r"""Categories as directions, and a trained concentration of the data around the decoder's direction.

    .. math:: -\log p_\theta(V \mid Z_q) = -\kappa \sum_{d=1}^D v_d^\top \tilde f_{\theta, d}(Z_q)
              - D \log C_F(\kappa), \qquad v_d = w_{x_d}

    The encoder sees the labels' directions, (batch, F, ...), and the decoder gives the same shape, unbounded and of any
    length: it is normalised here. The log-likelihood is a density on the sphere, not a probability of the label, so it
    is not to be set beside a softmax's.

    Arguments:
        directions: (C, F), the unit vectors :math:`w_c` that stand for the categories, as from
            :func:`one_hot_directions` or :func:`half_circle_directions`.
        initial_concentration: :math:`\kappa` before training.
    """

    directions: Tensor

    def __init__(self, directions: Tensor, *, initial_concentration: float = 100.0) -> None:
        super().__init__()
        if not isinstance(directions, Tensor):
            raise TypeError(
                f"directions must be a tensor (classes, dimensions), got {directions!r}; "
                "one_hot_directions or half_circle_directions make one"
            )
        if directions.ndim != 2 or directions.shape[1] < 2 or len(directions) < 2:
            raise ValueError(f"directions must be (classes, dimensions >= 2), got shape {tuple(directions.shape)}")
        lengths = directions.norm(dim=-1)
        if not torch.allclose(lengths, torch.ones_like(lengths), atol=1e-4):
            raise ValueError(f"directions must have length 1, got lengths {lengths.min():.4g} to {lengths.max():.4g}")
        check_positive(initial_concentration, "initial_concentration")
        self.num_classes = len(directions)
        self.register_buffer("directions", directions.clone())
        self.log_concentration = nn.Parameter(torch.tensor(math.log(initial_concentration)))

    def _fit(self, output: Tensor, x: Tensor) -> Fit:
        space = self.directions.shape[1]
        check_output_shape(output, (x.shape[0], space, *x.shape[1:]), "(batch, directions' dimension, ...)")
        # With 1 - v.f = |v - f|^2 / 2 and the scalars in float64: kappa v.f and log C are both as large as kappa, and
        # float32 has no digits left for their sum.
        shortfall = (self.embed(x).to(output.dtype) - normalize(output, dim=1)).square().sum() / (2 * x.shape[0])
        concentration = self.log_concentration.to(widest_float(output.device)).exp()
        log_peak = von_mises_fisher.log_normalizer(concentration, space) + concentration
        log_likelihood = (x[0].numel() * log_peak - concentration * shortfall).to(output.dtype)
        return Fit(-log_likelihood, log_likelihood, concentration=concentration.detach())

    def predict(self, output: Tensor) -> Tensor:
        return torch.einsum("nf...,cf->nc...", output, self.directions.to(output.dtype)).argmax(1)

    def embed(self, x: Tensor) -> Tensor:
        self.check(x)
        return self.directions[x.long()].movedim(-1, 1)

    def extra_repr(self) -> str:
        return f"num_classes={self.num_classes}, dim={self.directions.shape[1]}"


def one_hot_directions(num_classes: int) -> Tensor:  # -> (C, C)
    """Unordered categories: each at right angles to all others."""
    return torch.eye(num_classes)


def half_circle_directions(num_classes: int) -> Tensor:  # -> (C, 2)
    r"""Ordered categories, such as grey levels: :math:`w_l = (\cos(\pi l / L), \sin(\pi l / L))`."""
    angles = math.pi * torch.arange(num_classes) / num_classes
    return torch.stack((angles.cos(), angles.sin()), -1)

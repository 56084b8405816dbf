"""Likelihoods of labels: one of C classes at each position."""

import math
from abc import ABC
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize, pad

from sqvae.distributions import von_mises_fisher
from sqvae.distributions.checks import (
    check_choice,
    check_indices,
    check_offset,
    check_positive,
    check_share,
    check_size,
)
from sqvae.distributions.precision import widest_float
from sqvae.distributions.processes import mean_over_processes
from sqvae.likelihoods.averages import average_in
from sqvae.likelihoods.contract import Fit, Likelihood, check_output_shape

DecoderConcentration = Literal["learned", "closed_form"]

LEAST, MOST = 1.0, 1e9
"""The limits of a concentration in closed form. Without the lower one, a decoder that points away from the data
would have 0 and learn nothing more; without the upper one, a decoder without errors would have infinity."""

SHORTEST = 1e-12
"""The lower limit of a vector's length, so that no division is 0 / 0."""


class LabelLikelihood(Likelihood, ABC):
    """Data of integer labels, (batch, ...).

    Arguments:
        inputs: (C, F'), the encoder's input for each class.
        ignore: the label of positions whose class is unknown: the encoder sees zeros there, and they do not count in
            the loss. It may be any number, whether it is a class or not.
        num_classes: the number of classes, C.
    """

    inputs: Tensor

    def __init__(self, inputs: Tensor, ignore: int | None, num_classes: int) -> None:
        super().__init__()
        if not isinstance(inputs, Tensor) or inputs.ndim != 2 or len(inputs) != num_classes:
            given = tuple(inputs.shape) if isinstance(inputs, Tensor) else type(inputs).__name__
            raise ValueError(
                f"inputs must have a row of numbers for each class, ({num_classes}, dimensions), got {given}"
            )
        if ignore is not None:
            check_size(ignore, "ignore", least=-1)
        self.num_classes = num_classes
        self.ignore = ignore
        # An additional row of zeros is for ignored positions. It is not stored, because it follows from the
        # configuration.
        self.register_buffer("inputs", pad(inputs.float(), (0, 0, 0, 1)), persistent=False)

    def check(self, x: Tensor) -> None:
        if torch.compiler.is_compiling():
            return
        known = x if self.ignore is None or not isinstance(x, Tensor) else x.where(x != self.ignore, 0)
        check_indices(
            known, self.num_classes, "labels", "; use a larger num_classes, or map these labels to classes first"
        )

    def embed(self, x: Tensor) -> Tensor:
        self.check(x)
        labels = x.long()
        rows = labels if self.ignore is None else labels.where(labels != self.ignore, self.num_classes)
        return self.inputs[rows].movedim(-1, 1)

    def dimensions(self, x: Tensor) -> float | Tensor:
        return x[0].numel() if self.ignore is None else self.known(x).sum() / len(x)

    def known(self, x: Tensor) -> Tensor:  # -> (batch, ...), bool
        """Whether each position is not ignored."""
        return torch.ones_like(x, dtype=torch.bool) if self.ignore is None else x != self.ignore


class CategoricalLikelihood(LabelLikelihood):
    r"""A softmax over the decoder's outputs; its loss is the cross-entropy.

    .. math:: P_\theta(x_d = c \mid Z_q) = \mathrm{softmax}_c(f_{\theta, d}(Z_q))

    The encoder's input is one-hot, (batch, C, ...), and the decoder's output has the same shape and is unbounded. With
    the Gaussian quantizer this is the paper's naive categorical (NC) model.

    Arguments:
        num_classes: the number of classes, C.
        inputs: (C, F'), the encoder's input for each class, in place of one-hot vectors.
        ignore: the label of positions whose class is unknown.
    """

    def __init__(self, num_classes: int, *, inputs: Tensor | None = None, ignore: int | None = None) -> None:
        check_size(num_classes, "num_classes", least=2)
        super().__init__(one_hot_directions(num_classes) if inputs is None else inputs, ignore, num_classes)

    def _fit(self, output: Tensor, x: Tensor) -> Fit:
        check_output_shape(output, (x.shape[0], self.num_classes, *x.shape[1:]), "(batch, classes, ...)")
        nowhere = -100 if self.ignore is None else self.ignore
        # Rows are a view if channels are last in memory, as convolutions leave them, and several times faster.
        rows = output.movedim(1, -1).flatten(0, -2)
        loss = cross_entropy(rows, x.long().flatten(), ignore_index=nowhere, reduction="sum") / len(x)
        return Fit(loss, -loss)

    def predict(self, output: Tensor) -> Tensor:
        return output.argmax(1)

    def channels(self, data: int) -> tuple[int, int]:
        return self.inputs.shape[1], self.num_classes

    def extra_repr(self) -> str:
        return f"num_classes={self.num_classes}"


class VonMisesFisherLikelihood(LabelLikelihood):
    r"""Classes as unit vectors, and one concentration of the data around the decoder's direction.

    .. math:: -\log p_\theta(V \mid Z_q) = -\kappa \sum_{d=1}^D v_d^\top \tilde f_{\theta, d}(Z_q)
              - D \log C_F(\kappa), \qquad v_d = w_{x_d}

    The encoder's input is the labels' directions, (batch, F, ...), and the decoder's output has the same shape; its
    vectors may have any length, because they are normalised here. The log-likelihood is a density on the sphere, not a
    probability of the label, so it cannot be compared with that of a softmax.

    Arguments:
        directions: (C, F), the unit vectors :math:`w_c` of the classes, for example from :func:`one_hot_directions` or
            :func:`half_circle_directions`.
        concentration: where :math:`\kappa` comes from. ``"learned"`` trains it with the other parameters, as the paper
            does. ``"closed_form"`` takes its maximum-likelihood value for the minibatch, which solves
            :math:`A_F(\kappa) = \frac 1D \sum_d v_d^\top \tilde f_{\theta, d}(Z_q)`, and is at least 1, so that an
            untrained decoder can learn. In ``eval()`` it takes the average over recent training batches, as
            :class:`~sqvae.likelihoods.GaussianLikelihood` does with its variance.
        initial_concentration: :math:`e^s` before training, of :math:`\kappa = c + e^s`.
        concentration_offset: the offset c, at least 0: 0 in the paper, 1 in its authors' code. It is for a learned
            concentration only.
        inputs: (C, F'), the encoder's input for each class, in place of its direction.
        ignore: the label of positions whose class is unknown.
        decay: the decay of the average that ``"closed_form"`` keeps.
    """

    directions: Tensor
    log_concentration: Tensor
    batches: Tensor

    def __init__(
        self,
        directions: Tensor,
        *,
        concentration: DecoderConcentration = "learned",
        initial_concentration: float = 100.0,
        concentration_offset: float = 0.0,
        inputs: Tensor | None = None,
        ignore: int | None = None,
        decay: float = 0.99,
    ) -> None:
        if not isinstance(directions, Tensor):
            raise TypeError(
                f"directions must be a tensor (classes, dimensions), got {directions!r}; one_hot_directions and "
                "half_circle_directions return one"
            )
        if directions.ndim != 2 or directions.shape[1] < 2 or len(directions) < 2:
            raise ValueError(f"directions must be (classes, dimensions >= 2), got shape {tuple(directions.shape)}")
        lengths = directions.norm(dim=-1)
        if not torch.allclose(lengths, torch.ones_like(lengths), atol=1e-4):
            raise ValueError(f"directions must have length 1, got lengths {lengths.min():.4g} to {lengths.max():.4g}")
        check_choice(concentration, get_args(DecoderConcentration), "concentration")
        check_positive(initial_concentration, "initial_concentration")
        check_offset(concentration_offset, "concentration_offset")
        check_share(decay, "decay")
        if concentration == "closed_form" and concentration_offset:
            raise ValueError(
                f"concentration_offset is for a learned concentration only; got {concentration_offset} with "
                "concentration='closed_form'"
            )
        super().__init__(directions if inputs is None else inputs, ignore, len(directions))
        self.concentration: DecoderConcentration = concentration
        self.concentration_offset = concentration_offset
        self.decay = decay
        self._one_hot = directions.shape[0] == directions.shape[1] and bool((directions.diagonal() == 1).all())
        self.register_buffer("directions", directions.clone())
        log_concentration = torch.tensor(math.log(initial_concentration))
        if concentration == "learned":
            self.log_concentration = nn.Parameter(log_concentration)
        else:
            self.register_buffer("log_concentration", log_concentration)
            self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def _fit(self, output: Tensor, x: Tensor) -> Fit:
        space = self.directions.shape[1]
        check_output_shape(output, (x.shape[0], space, *x.shape[1:]), "(batch, directions' dimension, ...)")
        known = self.known(x)
        labels = x.long().where(known, 0)
        # This uses 1 - v.f rather than v.f, and float64 for the scalars: kappa v.f and log C are both as large as
        # kappa, and float32 is not precise enough for their sum.
        shortfalls = self._shortfalls(output, labels)
        if self.ignore is not None:
            shortfalls = shortfalls.where(known, 0)
        wide = widest_float(output.device)
        shortfall, places = shortfalls.sum() / len(x), known.sum(dtype=wide) / len(x)
        concentration = self._concentration(shortfall, places, wide)
        log_peak = von_mises_fisher.log_normalizer(concentration, space) + concentration
        log_likelihood = (places * log_peak - concentration * shortfall).to(output.dtype)
        return Fit(-log_likelihood, log_likelihood, concentration=concentration.detach())

    def _concentration(self, shortfall: Tensor, places: Tensor, dtype: torch.dtype) -> Tensor:  # (), () -> ()
        usual = self.concentration_offset + self.log_concentration.to(dtype).exp()
        if self.concentration == "learned" or not self.training:
            return usual
        with torch.no_grad():
            # Its gradient is not needed: the derivative of the likelihood is 0 at its maximum.
            short, known = (mean_over_processes(value.to(dtype)) for value in (shortfall, places))
            found = von_mises_fisher.likeliest_concentration(short / known, self.directions.shape[1])
            found = torch.where(known > 0, found.clamp(LEAST, MOST), usual)
            average_in(self.log_concentration, self.batches, found.log(), self.decay)
        return found

    def _shortfalls(self, output: Tensor, labels: Tensor) -> Tensor:  # (batch, F, ...), (batch, ...) -> (batch, ...)
        """1 - v.f at each position."""
        if self._one_hot:
            shortfalls: Tensor = AxisShortfall.apply(output, labels)  # type: ignore[no-untyped-call]
            return shortfalls
        v = self.directions[labels].movedim(-1, 1).to(output.dtype)
        return (v - normalize(output, dim=1)).square().sum(1) / 2

    def predict(self, output: Tensor) -> Tensor:
        if self._one_hot:
            return output.argmax(1)
        return torch.einsum("nf...,cf->nc...", output, self.directions.to(output.dtype)).argmax(1)

    def channels(self, data: int) -> tuple[int, int]:
        return self.inputs.shape[1], self.directions.shape[1]

    def extra_repr(self) -> str:
        return f"num_classes={self.num_classes}, dim={self.directions.shape[1]}, concentration={self.concentration!r}"


class AxisShortfall(torch.autograd.Function):
    r"""The distance of vectors from the direction of an axis: one minus the cosine, in full precision.

    .. math:: 1 - \frac{o_c}{n} = \frac{r}{n (n + o_c)}, \qquad r = \sum_{j \ne c} o_j^2, \quad n^2 = r + o_c^2
    .. math:: \frac{\partial}{\partial o_j} = \frac{o_c o_j}{n^3} \quad (j \ne c), \qquad
              \frac{\partial}{\partial o_c} = -\frac{r}{n^3}

    The gradient is written by hand, because the vectors of all pixels are many numbers, and automatic differentiation
    would read and write each of them a dozen times.
    """

    @staticmethod
    def forward(ctx: Any, o: Tensor, c: Tensor) -> Tensor:  # (batch, F, ...), (batch, ...) -> (batch, ...)
        index = c.unsqueeze(1)
        own = o.gather(1, index)
        others = o.scatter(1, index, 0)
        r = torch.linalg.vector_norm(others, dim=1, keepdim=True).square()
        n = (r + own.square()).sqrt().clamp_min(SHORTEST)
        ctx.save_for_backward(others, index, own, r, n)
        return torch.where(own > 0, r / (n * (n + own)), 1 - own / n).squeeze(1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        others, index, own, r, n = ctx.saved_tensors
        each = gradient.unsqueeze(1) / n
        return (others * (each * (own / n) / n)).scatter_(1, index, -each * (r / n / n)), None


def one_hot_directions(num_classes: int) -> Tensor:  # -> (C, C)
    """The directions of unordered classes: each is orthogonal to all others."""
    return torch.eye(num_classes)


def half_circle_directions(num_classes: int) -> Tensor:  # -> (C, 2)
    r"""The directions of ordered classes, such as grey levels: :math:`w_l = (\cos(\pi l / L), \sin(\pi l / L))`."""
    angles = math.pi * torch.arange(num_classes) / num_classes
    return torch.stack((angles.cos(), angles.sin()), -1)

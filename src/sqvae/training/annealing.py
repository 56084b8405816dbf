"""A schedule for any number of steps, for this package's training loop and for other loops."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn
from torch.optim import Optimizer

from sqvae.quantizers import Stage
from sqvae.quantizers.contract import CodebookQuantizer
from sqvae.training.plan import Plan
from sqvae.training.schedules import Cosine, stage

TIMES = "times"
"""The entry of a parameter group that contains the factor of its learning rate."""


ANY_BUDGET: Mapping[str, Any] = {
    "schedule": "cosine",
    "learning_rate": 8e-3,
    "codebook_rate": 5.0,
    "temperature_end": 0.3,
    "latent_weight_end": 0.1,
    "straight_through_end": 1.0,
    "evenness": 1.0,
    "certain_from": 0.4,
}
"""The plan for any number of steps, independent of the data: see :class:`Annealing`. The values were chosen on
validation images of CIFAR10 and MNIST: docs/schedule.md lists all that was tried."""


def any_budget(**changes: Any) -> Plan:
    """The plan for any number of steps. Pass the length of the run: ``epochs=20``, or ``steps=1000``.

    Arguments:
        changes: fields of the plan that differ from ``ANY_BUDGET``.
    """
    return Plan(**{**ANY_BUDGET, **changes})


class Annealing:
    r"""Temperature, variance, gradients and learning rates over a run of a given number of steps; nothing else to set.

    Four effects keep a short run from annealing by itself with all of its codes in use. Each has its remedy here.

    - The entropy in the bound keeps the variance large, so that all codes are tried. In a short run it does so to the
      end, and the decoder learns mixtures of codes. Any variance is a valid posterior, so it may follow its own
      objective: with s its logarithm,

      .. math:: \frac{d s}{d t} \propto -\frac{\partial}{\partial s} \left[-\log p_\theta(x \mid Z_q) + \beta_t
                \left(\mathcal R_\varphi(Z, Z_q) - H(\hat P_\varphi(Z_q \mid Z))\right)\right],
                \qquad \beta_t = 0.1^{t/T}.

      It decreases only as far as the reconstruction error requires: choices that make no difference stay random. Codes
      and network are trained by the bound itself, :math:`\beta = 1`, throughout.
    - The gradient of the relaxed sample vanishes as choices become certain. A share :math:`\lambda_t = t/T` of the
      decoder's gradient is passed to the encodings in addition, straight through.
    - Each code gets few gradients, so codes learn five times as fast as the network.
    - Codes are lost early, while choices are random. The bound's divergence from the uniform prior is the sum of the
      information that codes carry and of the unevenness of codebook usage, :math:`\mathrm{KL}(\bar P \,\|\, 1/K)`. The
      latter is counted once more: a code costs the logarithm of its usage. A larger divergence leaves the bound a
      bound.

    The temperature is :math:`\tau_t = 0.3^{t/T}`, and the learning rates fall to 0 by a cosine.

    From :math:`t = 0.4\, T` on, assignments of Gaussian quantizers are certain: by then all codes have their places,
    and what remains of the randomness would only be noise to encoder and decoder. Each position takes its likeliest
    code, codes follow the encodings as moving averages do in VQ, and their price keeps all of them in use. The price
    falls evenly to a quarter, so that in the end training chooses nearly the codes that evaluation chooses.

    The schedule depends on the step alone, so resuming a run needs only the number of the step.

    Arguments:
        steps: number of steps of the whole run, T.
        learning_rate: the initial learning rate of the network.
    """

    def __init__(self, steps: int, *, learning_rate: float | None = None) -> None:
        if steps < 1:
            raise ValueError(f"steps must be at least 1, the number of steps of the whole run; got {steps}")
        self.steps = steps
        self.plan = any_budget(steps=steps, **({} if learning_rate is None else {"learning_rate": learning_rate}))
        self._rate = Cosine(self.plan.learning_rate, steps)

    def groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """The parameter groups for an optimizer, for a model that contains quantizers."""
        groups = parameter_groups(model, self.plan)
        return [{**group, "lr": self._rate.rate(0) * group[TIMES]} for group in groups]

    def begin(self, step: int, optimizer: Optimizer) -> Stage:
        """Set the learning rates of a step, and return the stage to pass to the quantizer.

        Arguments:
            step: the step, from 0. After the last step everything stays as it was there.
            optimizer: an optimizer with the parameter groups of :meth:`groups`.
        """
        step = min(step, self.steps)
        set_rates(optimizer, self._rate.rate(step))
        return stage(self.plan, step, self.steps)


def parameter_groups(model: nn.Module, plan: Plan) -> list[dict[str, Any]]:
    """The parameter groups: the network, and the quantizers, whose learning rate is a multiple of the network's."""
    own = {id(parameter) for parameter in _of_quantizers(model)} if plan.codebook_rate != 1 else set()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = (
        {"params": [parameter for parameter in trained if id(parameter) not in own], TIMES: 1.0},
        {"params": [parameter for parameter in trained if id(parameter) in own], TIMES: plan.codebook_rate},
    )
    return [group for group in groups if group["params"]]


def set_rates(optimizer: Optimizer, rate: float) -> None:
    """Set the learning rate of each group to the network's rate times the group's factor."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(TIMES, 1.0)


def _of_quantizers(model: nn.Module) -> Iterator[nn.Parameter]:
    for module in model.modules():
        if isinstance(module, CodebookQuantizer):
            yield from module.parameters()

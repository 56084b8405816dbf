"""One schedule for any number of steps, for our own loop and for anybody else's."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn
from torch.optim import Optimizer

from sqvae.quantizers import Stage
from sqvae.quantizers.contract import CodebookQuantizer
from sqvae.training.plan import Plan
from sqvae.training.schedules import Cosine, stage

TIMES = "times"
"""The entry of a parameter group that says how many times faster than the rest it learns."""


ANY_BUDGET: Mapping[str, Any] = {
    "schedule": "cosine",
    "learning_rate": 8e-3,
    "codebook_rate": 5.0,
    "temperature_end": 0.3,
    "latent_weight_end": 0.1,
    "straight_through_end": 1.0,
    "evenness": 1.0,
}
"""What a plan for any number of steps says, whatever the data: see :class:`Annealing`. The numbers were chosen on
validation pictures of CIFAR10 and MNIST: docs/schedule.md has all that was tried."""


def any_budget(**changes: Any) -> Plan:
    """The plan for any number of steps, which it is left to say: ``epochs=20``, or ``steps=1000``.

    Arguments:
        changes: of the plan's fields.
    """
    return Plan(**{**ANY_BUDGET, **changes})


class Annealing:
    r"""Temperature, variance, gradients and learning rates over a run of so many steps, with nothing else to choose.

    Four things keep a short run from annealing by itself with all of its codes, and each has its answer here.

    - The entropy in the bound holds the variance up, so that all codes are tried; in a short run it does so to the end,
      and the decoder learns mixtures of codes. Any variance is a valid posterior, so it may follow an objective of its
      own: with s its logarithm,

      .. math:: \frac{d s}{d t} \propto -\frac{\partial}{\partial s} \left[-\log p_\theta(x \mid Z_q) + \beta_t
                \left(\mathcal R_\varphi(Z, Z_q) - H(\hat P_\varphi(Z_q \mid Z))\right)\right],
                \qquad \beta_t = 0.1^{t/T}.

      It goes as far down as the error asks for, and no further: choices that make no difference stay free. Codes and
      network are trained by the bound itself, :math:`\beta = 1`, throughout.
    - The relaxed draw's gradient vanishes as choices become certain. A share :math:`\lambda_t = t/T` of the decoder's
      is given to the encodings besides, straight through.
    - Each code gets few gradients, so that codes learn five times as fast as the network.
    - Which codes are lost is decided early, while choices are random. The bound's divergence from the uniform prior is
      the information that codes carry, and how uneven their mean use is, :math:`\mathrm{KL}(\bar P \,\|\, 1/K)`. The
      latter counts once more: a code costs the logarithm of how often it is used. A larger divergence leaves the bound
      a bound.

    The temperature is :math:`\tau_t = 0.3^{t/T}`, and the rates fall to 0 by a cosine.

    It is a function of the step alone, so that a run that goes on after an interruption needs no more than its number.

    Arguments:
        steps: of the whole run, T.
        learning_rate: the first of the network's.
    """

    def __init__(self, steps: int, *, learning_rate: float | None = None) -> None:
        if steps < 1:
            raise ValueError(f"steps must be at least 1, the number of steps of the whole run; got {steps}")
        self.steps = steps
        self.plan = any_budget(steps=steps, **({} if learning_rate is None else {"learning_rate": learning_rate}))
        self._rate = Cosine(self.plan.learning_rate, steps)

    def groups(self, model: nn.Module) -> list[dict[str, Any]]:
        """The parameters of a model with quantizers in it, as an optimizer takes them."""
        groups = parameter_groups(model, self.plan)
        return [{**group, "lr": self.plan.learning_rate * group[TIMES]} for group in groups]

    def begin(self, step: int, optimizer: Optimizer) -> Stage:
        """Set the rates of a step, and say what the quantizer is to know of it.

        Arguments:
            step: from 0 on; after the last, all stays as it was there.
        """
        step = min(step, self.steps)
        set_rates(optimizer, self._rate.rate(step))
        return stage(self.plan, step, self.steps)


def parameter_groups(model: nn.Module, plan: Plan) -> list[dict[str, Any]]:
    """What is trained: the network, and the quantizers' own numbers, which learn at a multiple of its rate."""
    own = {id(parameter) for parameter in _of_quantizers(model)} if plan.codebook_rate != 1 else set()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = (
        {"params": [parameter for parameter in trained if id(parameter) not in own], TIMES: 1.0},
        {"params": [parameter for parameter in trained if id(parameter) in own], TIMES: plan.codebook_rate},
    )
    return [group for group in groups if group["params"]]


def set_rates(optimizer: Optimizer, rate: float) -> None:
    """Give each group the network's rate, as many times as it says."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(TIMES, 1.0)


def _of_quantizers(model: nn.Module) -> Iterator[nn.Parameter]:
    for module in model.modules():
        if isinstance(module, CodebookQuantizer):
            yield from module.parameters()

"""The same autoencoder with vector-quantize-pytorch's ResidualVQ and with ResidualQuantizer, on the same digits.

python examples/dropin_residual.py                  a few minutes on two cores
python examples/dropin_residual.py --steps 100      a few seconds
"""

from functools import partial
from typing import Any

from dropin_comparison import DIM, VARIANCE, Autoencoder, Comparison, Contender, Passed, gaussian_objective, ours
from torch import Tensor, nn
from vector_quantize_pytorch import ResidualVQ

from sqvae import ResidualQuantizer
from sqvae.quantizers import Stage

CODES, LAYERS = 64, 4


def before(**settings: Any) -> nn.Module:
    return Autoencoder(partial(ResidualVQ, dim=DIM, codebook_size=CODES, num_quantizers=LAYERS, **settings))


def run_before(model: nn.Module, x: Tensor, stage: Stage) -> Passed:
    z = model.encoder(x)
    vectors, codes, commitments = model.quantizer(z.flatten(2).mT)
    pictures = model.decoder(vectors.mT.view_as(z))
    return Passed(pictures, codes, (pictures - x).square().mean() / VARIANCE + commitments.sum())


def after() -> nn.Module:
    return Autoencoder(partial(ResidualQuantizer, CODES, DIM, LAYERS, channel_first=True))


def run_after(model: nn.Module, x: Tensor, stage: Stage) -> Passed:
    z_q, codes, loss = model.quantizer(model.encoder(x), stage)
    pictures = model.decoder(z_q)
    return Passed(pictures, codes, gaussian_objective(pictures, x, loss))


COMPARISON = Comparison(
    "An autoencoder with ResidualVQ and with ResidualQuantizer",
    "examples/dropin_residual.py",
    f"{LAYERS} layers of K = {CODES}, d = {DIM}, 7x7 positions a digit; two convolutions down and two up, the same for "
    "all, beginning with the same weights.",
    (
        Contender(
            "ResidualVQ",
            "`decay=0.8, commitment_weight=1` (its defaults), error over the pixels' variance + commitment losses.",
            8e-3,
            before,
            run_before,
            layers=LAYERS,
        ),
        Contender(
            "ResidualVQ against dead codes",
            "the same with `kmeans_init=True, threshold_ema_dead_code=2, rotation_trick=True`, as its documentation "
            "advises.",
            8e-3,
            partial(before, kmeans_init=True, threshold_ema_dead_code=2, rotation_trick=True),
            run_before,
            layers=LAYERS,
        ),
        ours(8e-3, after, run_after, name="ResidualQuantizer", layers=LAYERS),
    ),
    steps=1000,
    rate_steps=300,
)

if __name__ == "__main__":
    raise SystemExit(COMPARISON.main())

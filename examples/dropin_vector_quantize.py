"""The same autoencoder with vector-quantize-pytorch's VectorQuantize and with GaussianQuantizer, on the same digits.

python examples/dropin_vector_quantize.py                  a minute or two on two cores
python examples/dropin_vector_quantize.py --steps 100      a few seconds
"""

from functools import partial

from dropin_comparison import DIM, VARIANCE, Autoencoder, Comparison, Contender, Passed, gaussian_objective, ours
from torch import Tensor, nn
from vector_quantize_pytorch import VectorQuantize

from sqvae import GaussianQuantizer
from sqvae.quantizers import Stage

CODES = 128


def before(**settings: float) -> nn.Module:
    return Autoencoder(
        partial(VectorQuantize, dim=DIM, codebook_size=CODES, accept_image_fmap=True, **settings),
    )


def run_before(model: nn.Module, x: Tensor, stage: Stage) -> Passed:
    z_q, codes, commitment = model.quantizer(model.encoder(x))
    pictures = model.decoder(z_q)
    return Passed(pictures, codes, (pictures - x).square().mean() / VARIANCE + commitment.sum())


def after() -> nn.Module:
    return Autoencoder(partial(GaussianQuantizer, CODES, DIM, channel_first=True))


def run_after(model: nn.Module, x: Tensor, stage: Stage) -> Passed:
    z_q, codes, loss = model.quantizer(model.encoder(x), stage)
    pictures = model.decoder(z_q)
    return Passed(pictures, codes, gaussian_objective(pictures, x, loss))


COMPARISON = Comparison(
    "An autoencoder with VectorQuantize and with GaussianQuantizer",
    "examples/dropin_vector_quantize.py",
    f"K = {CODES}, d = {DIM}, 7x7 codes a digit; two convolutions down and two up, the same for all, beginning with "
    "the same weights.",
    (
        Contender(
            "VectorQuantize",
            "`decay=0.8, commitment_weight=1` (its defaults), error over the pixels' variance + commitment loss.",
            3e-3,
            before,
            run_before,
        ),
        Contender(
            "VectorQuantize against dead codes",
            "the same with `kmeans_init=True, threshold_ema_dead_code=2`, as its documentation advises.",
            1e-3,
            partial(before, kmeans_init=True, threshold_ema_dead_code=2),
            run_before,
        ),
        ours(8e-3, after, run_after),
    ),
    steps=1000,
    rate_steps=1000,
)

if __name__ == "__main__":
    raise SystemExit(COMPARISON.main())

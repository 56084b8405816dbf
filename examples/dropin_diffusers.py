"""diffusers' VQModel as it comes, and with GaussianQuantizer in place of its `quantize`, on the same digits.

python examples/dropin_diffusers.py                  a minute or two on two cores
python examples/dropin_diffusers.py --steps 20       a few seconds
"""

from collections.abc import Sequence

import torch
from diffusers import VQModel
from dropin_comparison import VARIANCE, Comparison, Contender, Passed, gaussian_objective, ours
from torch import Tensor, nn

from sqvae import GaussianQuantizer
from sqvae.quantizers import Stage

CODES, DIM = 128, 64
CHANNELS = (8, 16, 32)


class Quantize(nn.Module):
    """GaussianQuantizer behind the interface that VQModel expects of its `quantize`."""

    def __init__(self, codebook_size: int, dim: int) -> None:
        super().__init__()
        self.quantizer = GaussianQuantizer(codebook_size, dim, channel_first=True)
        self.stage = Stage()  # VQModel calls this with z alone, so the loop sets it here

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor, tuple[Tensor, None, Tensor]]:
        quantized = self.quantizer(z, self.stage)
        return quantized.z_q, quantized.loss, (quantized.perplexity, None, quantized.codes.flatten())

    def get_codebook_entry(self, indices: Tensor, shape: Sequence[int]) -> Tensor:
        """For `lookup_from_codebook=True`; the shape is (batch, height, width, channels)."""
        return self.quantizer.decode(indices.view(*shape[:3]))


def before() -> VQModel:
    return VQModel(
        in_channels=1,
        out_channels=1,
        down_block_types=("DownEncoderBlock2D",) * len(CHANNELS),
        up_block_types=("UpDecoderBlock2D",) * len(CHANNELS),
        block_out_channels=CHANNELS,
        latent_channels=DIM,
        num_vq_embeddings=CODES,
        norm_num_groups=8,
        mid_block_add_attention=False,
    )


def after() -> VQModel:
    model = before()
    model.quantize = Quantize(CODES, DIM)
    return model


def run_before(model: VQModel, x: Tensor, stage: Stage) -> Passed:
    decoded = model(x)
    error = (decoded.sample - x).square().mean()
    return Passed(decoded.sample, codes_of(model, x), error / VARIANCE + decoded.commit_loss)


def run_after(model: VQModel, x: Tensor, stage: Stage) -> Passed:
    model.quantize.stage = stage
    decoded = model(x)
    return Passed(decoded.sample, codes_of(model, x), gaussian_objective(decoded.sample, x, decoded.commit_loss))


@torch.no_grad()
def codes_of(model: VQModel, x: Tensor) -> Tensor:  # (batch, 1, H, W) -> (positions,)
    """None are wanted in training."""
    if model.training:
        return torch.empty(0, dtype=torch.int64)
    _, _, (_, _, codes) = model.quantize(model.encode(x).latents)
    return codes


COMPARISON = Comparison(
    "VQModel with its own quantizer and with ours",
    "examples/dropin_diffusers.py",
    f"K = {CODES}, d = {DIM}, 7x7 codes a digit; a `VQModel` with `block_out_channels={CHANNELS}`, one layer a block "
    "and no attention. The rest of it is the same for both, and begins with the same weights.",
    (
        Contender(
            "VQModel's own",
            "as `VQModel` makes it, with its commitment loss; error over the pixels' variance + that loss.",
            3e-3,
            before,
            run_before,
        ),
        ours(8e-3, after, run_after),
    ),
    steps=600,
    rate_steps=300,
)

if __name__ == "__main__":
    raise SystemExit(COMPARISON.main())

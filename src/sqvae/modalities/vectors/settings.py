"""The settings that only models of vectors have, and the recipe for one's own vectors."""

from dataclasses import dataclass

from sqvae.config import ConfigurationError, DataSettings, Experiment, NetworkSettings, QuantizerSettings
from sqvae.training import any_budget

OF_IMAGES = {"widths": None, "mix": False, "decoder_blocks": None, "map_dim": None, "levels": 1}
"""The settings of convolutional networks, and the values that they have when nobody sets them."""


@dataclass(frozen=True)
class VectorNetworkSettings(NetworkSettings):
    """The fully connected networks for vectors: see `sqvae.modalities.vectors.networks`. `blocks` is the number of
    residual blocks in the encoder and in the decoder."""

    values: int | None = None
    """The number of values of a vector. None takes it from the data."""
    hidden: int = 256
    """The number of units in a hidden layer."""
    codes: int = 1
    """The number of codes that a vector becomes. All of them come from one codebook."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("hidden", "codes", "values"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigurationError(f"network.{name} must be at least 1, got {value}")
        foreign = [name for name, usual in OF_IMAGES.items() if getattr(self, name) != usual]
        if foreign:
            raise ConfigurationError(
                f"network.{foreign[0]} is for images only; for vectors set network.hidden, network.blocks or "
                "network.codes"
            )


def vectors() -> Experiment:
    """Your own vectors, such as embeddings, to discrete ids: pass --data with a .npy, .npz, .safetensors or .parquet
    file."""
    return Experiment(
        recipe="vectors",
        data=DataSettings(source="", kind="vectors"),
        network=VectorNetworkSettings(),
        # With a larger variance, vectors of few values teach the codes nothing: all are equally likely to the end.
        quantizer=QuantizerSettings(codebook_size=256, initial_variance=1.0),
        training=any_budget(epochs=20, batch_size=128, learning_rate=2e-3, log_every=10),
    )

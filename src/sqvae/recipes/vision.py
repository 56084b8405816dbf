"""Gaussian SQ-VAE (I) on pictures."""

from dataclasses import replace

from sqvae.experiment import DataSettings, Experiment, NetworkSettings, QuantizerSettings
from sqvae.training import Plan


def demo() -> Experiment:
    """A small model of 5,000 digits: about a minute, no download."""
    return Experiment(
        recipe="demo",
        data=DataSettings(source="demo"),
        network=NetworkSettings(widths=(32, 64), blocks=0),
        quantizer=QuantizerSettings(codebook_size=128, initial_variance=10.0),
        # Five times the paper's rate, and falling to 0: this run is forty times shorter.
        training=Plan(epochs=20, learning_rate=5e-3, schedule="cosine", temperature_end=0.7),
    )


def pictures() -> Experiment:
    """Your own pictures, in colour or grey, of any size: pass --data."""
    return Experiment(
        recipe="pictures",
        data=DataSettings(source=""),
        network=NetworkSettings(mix=True, blocks=2),
        # A few hundred pictures are some 1,500 steps, a hundredth of what the paper takes: so a larger rate, a
        # quantization that has less far to go, and a temperature that comes down by the end.
        quantizer=QuantizerSettings(codebook_size=512, initial_variance=4.0),
        training=Plan(epochs=7, learning_rate=3e-3, schedule="cosine", temperature_end=0.5, log_every=10),
    )


def mnist() -> Experiment:
    """The paper's MNIST: 28x28, 128 codes, 2 ResBlocks, 100 epochs."""
    return Experiment(
        recipe="mnist",
        data=DataSettings(source="mnist"),
        network=NetworkSettings(widths=(32, 64), blocks=2),
        quantizer=QuantizerSettings(codebook_size=128, initial_variance=10.0),
    )


def fashion_mnist() -> Experiment:
    """The paper's Fashion-MNIST: 28x28, 256 codes, 6 ResBlocks, 100 epochs."""
    return replace(
        mnist(),
        recipe="fashion-mnist",
        data=DataSettings(source="fashion-mnist"),
        network=NetworkSettings(widths=(32, 64), blocks=6),
        quantizer=QuantizerSettings(codebook_size=256, initial_variance=10.0),
    )


def cifar10() -> Experiment:
    """The paper's CIFAR10: 32x32, colour, 512 codes, 6 ResBlocks, 100 epochs."""
    return Experiment(
        recipe="cifar10",
        data=DataSettings(source="cifar10"),
        network=NetworkSettings(widths=(32, 64), mix=True, blocks=6),
        quantizer=QuantizerSettings(codebook_size=512, initial_variance=20.0),
    )


def celeba() -> Experiment:
    """The paper's CelebA: faces of 64x64, 512 codes, 6 ResBlocks, 70 epochs."""
    return replace(cifar10(), recipe="celeba", data=DataSettings(source="celeba"), training=Plan(epochs=70))


def celeba_hq() -> Experiment:
    """The paper's CelebA-HQ: faces of 256x256, 512 codes, 6 ResBlocks, 70 epochs."""
    network = NetworkSettings(widths=(16, 32, 64), mix=True, blocks=6)
    return replace(celeba(), recipe="celeba-hq", data=DataSettings(source="celeba-hq"), network=network)

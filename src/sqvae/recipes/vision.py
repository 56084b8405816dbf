"""Gaussian SQ-VAE (I) on images."""

from dataclasses import replace

from sqvae.config import DataSettings, Experiment, NetworkSettings, QuantizerSettings
from sqvae.training import Plan, any_budget


def demo() -> Experiment:
    """A small model of 5,000 digits: it trains in about a minute, without a download."""
    return Experiment(
        recipe="demo",
        data=DataSettings(source="demo"),
        network=NetworkSettings(widths=(32, 64), blocks=2),
        quantizer=QuantizerSettings(codebook_size=128),
        training=any_budget(epochs=5),
    )


def pictures() -> Experiment:
    """Your own images, in colour or grey, of any size: pass --data."""
    return Experiment(
        recipe="pictures",
        data=DataSettings(source=""),
        network=NetworkSettings(mix=True, blocks=2),
        quantizer=QuantizerSettings(codebook_size=512),
        training=any_budget(epochs=7, log_every=10),
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

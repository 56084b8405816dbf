"""Von Mises-Fisher SQ-VAE on label maps and grey levels."""

from dataclasses import replace

from sqvae.config import DataSettings, Experiment, LikelihoodSettings, NetworkSettings, QuantizerSettings
from sqvae.training import Plan, any_budget


def label_maps() -> Experiment:
    """Your own label maps, with any number of classes: pass --data."""
    return Experiment(
        recipe="label-maps",
        data=DataSettings(source="", kind="labels"),
        network=NetworkSettings(blocks=2),
        quantizer=QuantizerSettings("vmf", codebook_size=128),
        likelihood=LikelihoodSettings(concentration="closed_form"),
        training=any_budget(epochs=7, log_every=10),
    )


def grey_levels() -> Experiment:
    """Your own grey images, with their grey levels as 256 ordered classes: pass --data."""
    return replace(
        label_maps(),
        recipe="grey-levels",
        data=DataSettings(source="", kind="levels"),
        quantizer=QuantizerSettings("vmf", codebook_size=512),
    )


def celebamask_hq() -> Experiment:
    """The paper's CelebAMask-HQ: label maps of faces, 64x64, 19 classes, 64 codes, 2 ResBlocks, 70 epochs."""
    return Experiment(
        recipe="celebamask-hq",
        data=DataSettings(source="celebamask-hq", kind="labels"),
        network=NetworkSettings(widths=(32, 64, 64), blocks=2),
        quantizer=QuantizerSettings("vmf", codebook_size=64),
        training=Plan(epochs=70),
    )


def camvid() -> Experiment:
    """Label maps of streets instead of faces: 64x64, 11 classes, 64 codes, 2 ResBlocks."""
    faces = celebamask_hq()
    # 367 maps are few: without augmentation, the model overfits after a thousand steps.
    data = DataSettings(source="camvid", kind="labels", flip=True, shift=6)
    # One pass through the training set has only 12 steps.
    training = replace(faces.training, passes_per_epoch=10)
    return replace(faces, recipe="camvid", data=data, training=training)


def mnist_levels() -> Experiment:
    """The paper's MNIST as 256 classes: 28x28, 128 codes, 2 ResBlocks, 100 epochs."""
    return Experiment(
        recipe="mnist-levels",
        data=DataSettings(source="mnist", kind="levels"),
        network=NetworkSettings(widths=(32, 64), blocks=2),
        quantizer=QuantizerSettings("vmf", codebook_size=128),
    )


def gray_celeba() -> Experiment:
    """The paper's Gray-CelebA: grey faces of 64x64 as 256 classes, 512 codes, 6 ResBlocks, 70 epochs."""
    return replace(
        celebamask_hq(),
        recipe="gray-celeba",
        data=DataSettings(source="celeba", kind="levels"),
        network=NetworkSettings(widths=(32, 64, 64), blocks=6),
        quantizer=QuantizerSettings("vmf", codebook_size=512),
    )

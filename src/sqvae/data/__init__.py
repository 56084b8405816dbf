"""Pictures, from wherever they lie, as tensors."""

from sqvae.data.catalogue import DATASETS, Dataset, folder_of
from sqvae.data.collection import Skipped, UnreadablePictureError
from sqvae.data.content import Progress
from sqvae.data.detection import holds_labels
from sqvae.data.digits import digits
from sqvae.data.loading import load
from sqvae.data.pictures import Mirrored, Pictures, PictureSets
from sqvae.data.preprocessing import Preprocessing
from sqvae.data.readers import READERS
from sqvae.data.streaming import count, stream

__all__ = [
    "DATASETS",
    "READERS",
    "Dataset",
    "Mirrored",
    "PictureSets",
    "Pictures",
    "Preprocessing",
    "Progress",
    "Skipped",
    "UnreadablePictureError",
    "count",
    "digits",
    "folder_of",
    "holds_labels",
    "load",
    "stream",
]

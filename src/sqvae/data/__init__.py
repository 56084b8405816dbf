"""Image datasets: finding, decoding and caching images, as tensors."""

from sqvae.data.catalogue import DATASETS, Dataset, folder_of
from sqvae.data.classes import Classes, classes_of
from sqvae.data.collection import Skipped, UnreadablePictureError
from sqvae.data.content import Progress
from sqvae.data.detection import TakenAs, recognise
from sqvae.data.digits import digits
from sqvae.data.loading import load
from sqvae.data.locations import data_folder
from sqvae.data.pictures import Pictures, PictureSets, Varied
from sqvae.data.preprocessing import Preprocessing
from sqvae.data.processing import ImageProcessor
from sqvae.data.readers import READERS
from sqvae.data.streaming import count, stream

__all__ = [
    "DATASETS",
    "READERS",
    "Classes",
    "Dataset",
    "ImageProcessor",
    "PictureSets",
    "Pictures",
    "Preprocessing",
    "Progress",
    "Skipped",
    "TakenAs",
    "UnreadablePictureError",
    "Varied",
    "classes_of",
    "count",
    "data_folder",
    "digits",
    "folder_of",
    "load",
    "recognise",
    "stream",
]

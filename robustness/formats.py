"""Every format that is read, as a small file that is whole, and what reading it gives."""

import gzip
import hashlib
import io
import pickle
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import soundfile
import torch
from PIL import Image
from torch import Tensor

from sqvae.codec import (
    Adaptive,
    CodeFile,
    CodeWriter,
    CompressedFile,
    CompressedWriter,
    LanguageFile,
    UnitFile,
    write_language_file,
)
from sqvae.codec.formats import to_npz
from sqvae.codec.units import UnitWriter
from sqvae.config import DataSettings, Experiment, NetworkSettings, QuantizerSettings
from sqvae.data import Preprocessing, load, stream
from sqvae.data.speech import FEATURES, stream_speech
from sqvae.files import UncheckedWarning
from sqvae.modalities.images.data import new_model
from sqvae.modalities.images.tokenizer import ImageTokenizer, load_tokenizer
from sqvae.tokenizers import pretrained

MARK = "f" * 32
SIDE = 8


@dataclass
class Reading:
    """What was read."""

    content: Any
    """Equal only if it is the same."""
    told: list[str] = field(default_factory=list)
    """What was said to be wrong, or can't be checked."""


@dataclass(frozen=True)
class Format:
    """A kind of file."""

    make: Callable[[Path], Sequence[Path]]
    """Writes it into a folder, and says which of its files are to be altered."""
    read: Callable[[Path], Reading]
    """Reads what is in a folder."""
    sealed: bool
    """Whether it has checks of its own, so that no alteration may give something else without a word. Where a format
    has none, other bytes are other pictures."""


def digest(*parts: Any) -> str:
    """A short name for values, arrays and tensors."""
    found = hashlib.sha256()
    for part in parts:
        value = part.numpy() if isinstance(part, Tensor) else part
        found.update(
            f"{value.dtype} {value.shape}".encode() + value.tobytes()
            if isinstance(value, np.ndarray)
            else repr(value).encode()
        )
    return found.hexdigest()


# What sqvae writes.


def _make_codes(folder: Path) -> list[Path]:
    codes = torch.randint(0, 200, (12, 4, 4), generator=torch.Generator().manual_seed(0))
    path = folder / "codes.safetensors"
    with CodeWriter(path, codebook_size=200, fingerprint=MARK, shape=(3, 16, 16)) as writer:
        writer.write([f"folder/{number}.png" for number in range(12)], codes)
    return [path]


def _make_codes_npz(folder: Path) -> list[Path]:
    (path,) = _make_codes(folder)
    to_npz(path, folder / "codes.npz")
    path.unlink()
    return [folder / "codes.npz"]


def _read_codes(folder: Path) -> Reading:
    (path,) = folder.iterdir()
    file = CodeFile.open(path)
    batches = [(names, codes.tolist()) for names, codes in file.batches(5)]
    told = [] if file.checked else ["without a checksum"]
    return Reading(digest(file.fingerprint, file.codebook_size, file.picture_shape, batches), told)


def _make_units(folder: Path) -> list[Path]:
    path = folder / "units.safetensors"
    with UnitWriter(path, codebook_size=200, fingerprint=MARK, codes_per_second=50.0, rate=16_000) as writer:
        for number in range(8):
            writer.add(torch.arange(10 + number))
            writer.end(f"{number}.wav", "anna", frames=20 + 2 * number, samples=3_200 + 320 * number)
    return [path]


def _read_units(folder: Path) -> Reading:
    (path,) = folder.iterdir()
    file = UnitFile.open(path)
    rows = [(unit.name, unit.speaker, unit.frames, unit.samples, unit.codes.tolist()) for unit in file.units()]
    told = [] if file.checked else ["without a checksum"]
    return Reading(digest(file.fingerprint, file.codebook_size, file.rate, file.codes_per_second, rows), told)


def _make_token_ids(folder: Path) -> list[Path]:
    (path,) = _make_codes(folder)
    write_language_file(path, folder / "ids.jsonl", pattern="delayed")
    path.unlink()
    return [folder / "ids.jsonl"]


def _read_token_ids(folder: Path) -> Reading:
    file = LanguageFile.open(folder / "ids.jsonl")
    return Reading(digest(file.vocabulary, file.fingerprint, [(name, codes.tolist()) for name, codes in file.rows()]))


def _make_compressed(folder: Path) -> list[Path]:
    codes = torch.randint(0, 50, (12, 4, 4), generator=torch.Generator().manual_seed(0))
    with CompressedWriter(folder / "codes.sqz", Adaptive(50), fingerprint=MARK, names=True) as writer:
        writer.write([f"folder/{number}.png" for number in range(12)], codes)
    return [folder / "codes.sqz"]


def _read_compressed(folder: Path) -> Reading:
    file = CompressedFile.open(folder / "codes.sqz", Adaptive(50), fingerprint=MARK, shapes=[(4, 4)])
    return Reading(digest([(names, codes.tolist()) for names, codes in file.batches()]))


def _model(folder: Path) -> Path:
    torch.manual_seed(0)
    experiment = Experiment(
        data=DataSettings(source="nowhere", size=SIDE, channels=1),
        network=NetworkSettings(widths=(4, 8), blocks=1),
        quantizer=QuantizerSettings(codebook_size=16, dim=8),
    )
    ImageTokenizer(new_model(experiment).eval(), experiment, "none").save_pretrained(folder / "model")
    return folder / "model"


def _make_model(folder: Path) -> list[Path]:
    model = _model(folder)
    return [model / name for name in ("config.json", "model.safetensors", "manifest.json")]


def _make_configuration(folder: Path) -> list[Path]:
    model = _model(folder)
    (model / "manifest.json").unlink()
    return [model / "config.json"]


def _read_model(folder: Path) -> Reading:
    # No run is replacing it, and a wait for one is most of the time that it takes to refuse a model.
    with _unchecked() as told, mock.patch.object(pretrained, "REPLACING", 0.0):
        tokenizer = load_tokenizer(folder / "model", device="cpu")
        size = tokenizer.experiment.data.size
        codes = (
            tokenizer.encode(torch.zeros(1, *tokenizer.shape, dtype=torch.uint8)) if size == SIDE else torch.zeros(0)
        )
    public = replace(tokenizer.experiment, data=replace(tokenizer.experiment.data, source=""))
    return Reading(digest(tokenizer.fingerprint, public, codes), told)


@contextmanager
def _unchecked() -> Iterator[list[str]]:
    """Takes down the warnings about files that can't be checked."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    told += [str(one.message) for one in caught if issubclass(one.category, UncheckedWarning)]


def _make_cache(folder: Path) -> list[Path]:
    np.save(folder / "pictures.npy", _pictures())
    load(folder / "pictures.npy", cache=folder / "cache")
    return sorted(path for path in (folder / "cache").rglob("*") if path.is_file() and path.suffix in (".npy", ".json"))


def _read_cache(folder: Path) -> Reading:
    sets = load(folder / "pictures.npy", cache=folder / "cache")
    parts = [(list(part.names), part.take(list(range(len(part)))).tolist()) for part in (sets.train, sets.validation)]
    return Reading(digest(parts))


# What others write.


def _pictures(number: int = 20) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (number, SIDE, SIDE), dtype=np.uint8)


def _streamed(name: str, *, labels: bool = False, channels: int = 1) -> Callable[[Path], Reading]:
    preprocessing = (
        Preprocessing(SIDE, labels=True, classes=200, ignore=255) if labels else Preprocessing(SIDE, channels=channels)
    )

    def read(folder: Path) -> Reading:
        told: list[str] = []
        batches = stream(
            [folder / name],
            preprocessing,
            batch=7,
            on_skip=lambda skipped: told.append(str(skipped)),
            on_note=told.append,
        )
        return Reading(digest([(names, pictures.tolist()) for names, pictures in batches]), told)

    return read


def _make_idx(folder: Path) -> list[Path]:
    pictures = _pictures()
    header = bytes((0, 0, 8, 3)) + b"".join(side.to_bytes(4, "big") for side in pictures.shape)
    (folder / "train-images-idx3-ubyte").write_bytes(header + pictures.tobytes())
    return [folder / "train-images-idx3-ubyte"]


def _make_idx_gz(folder: Path) -> list[Path]:
    (path,) = _make_idx(folder)
    (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()
    return [folder / f"{path.name}.gz"]


def _rows_of_cifar(number: int = 5) -> bytes:
    return np.random.default_rng(0).integers(0, 10, (number, 3073), dtype=np.uint8).tobytes()


def _make_cifar_binary(folder: Path) -> list[Path]:
    for name in (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"):
        (folder / name).write_bytes(_rows_of_cifar())
    return [folder / "data_batch_1.bin"]


def _batch_of_cifar() -> bytes:
    rows = np.frombuffer(_rows_of_cifar(), np.uint8).reshape(-1, 3073)
    batch = {
        b"batch_label": b"training batch",
        b"labels": [int(row[0]) for row in rows],
        b"data": rows[:, 1:].copy(),
        b"filenames": [b"%d.png" % number for number in range(len(rows))],
    }
    return pickle.dumps(batch, protocol=2)


def _make_cifar_pickled(folder: Path) -> list[Path]:
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        (folder / name).write_bytes(_batch_of_cifar())
    return [folder / "data_batch_1"]


def _make_cifar_tar(folder: Path) -> list[Path]:
    path = folder / "cifar-10-python.tar.gz"
    content, unpacked = _batch_of_cifar(), io.BytesIO()
    with tarfile.open(fileobj=unpacked, mode="w") as archive:
        for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            entry = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(unpacked.getvalue(), mtime=0))
    return [path]


def _make_npy(folder: Path) -> list[Path]:
    np.save(folder / "pictures.npy", _pictures())
    return [folder / "pictures.npy"]


def _make_npz(folder: Path) -> list[Path]:
    np.savez_compressed(folder / "pictures.npz", train=_pictures(12), test=_pictures(4))
    return [folder / "pictures.npz"]


def _png(picture: np.ndarray[Any, Any]) -> bytes:
    content = io.BytesIO()
    Image.fromarray(picture).save(content, "PNG")
    return content.getvalue()


def _make_zip(folder: Path) -> list[Path]:
    with zipfile.ZipFile(folder / "pictures.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number, picture in enumerate(_pictures(6)):
            archive.writestr(zipfile.ZipInfo(f"inner/{number}.png"), _png(picture))
    return [folder / "pictures.zip"]


def _make_picture(ending: str, **options: Any) -> Callable[[Path], list[Path]]:
    def make(folder: Path) -> list[Path]:
        colours = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
        (folder / "pictures").mkdir()
        Image.fromarray(colours).save(folder / "pictures" / f"one.{ending}", **options)
        Image.fromarray(colours).save(folder / "pictures" / "two.png")
        return [folder / "pictures" / f"one.{ending}"]

    return make


def _make_labels(folder: Path) -> list[Path]:
    (folder / "maps").mkdir()
    picture = Image.fromarray((_pictures(1)[0] % 20).astype(np.uint8), "P")
    picture.putpalette([number % 256 for number in range(768)])
    picture.save(folder / "maps" / "one.png")
    Image.fromarray((_pictures(1)[0] % 20).astype(np.uint8)).save(folder / "maps" / "two.png")
    return [folder / "maps" / "one.png"]


def _make_wav(folder: Path) -> list[Path]:
    sound = (np.sin(np.arange(8_000) / 7) * 8_000).astype(np.int16)
    (folder / "sounds").mkdir()
    soundfile.write(folder / "sounds" / "one.wav", sound, 16_000, subtype="PCM_16")
    soundfile.write(folder / "sounds" / "two.wav", sound, 16_000, subtype="PCM_16")
    return [folder / "sounds" / "one.wav"]


def _read_sounds(folder: Path) -> Reading:
    told: list[str] = []
    heard = [
        (one.name, digest(torch.cat(list(one.pieces()))))
        for one in stream_speech(
            [folder / "sounds"],
            FEATURES["zerospeech"],
            on_skip=lambda skipped: told.append(str(skipped)),
            on_note=told.append,
        )
    ]
    return Reading(digest(heard), told)


FORMATS: Mapping[str, Format] = {
    "codes": Format(_make_codes, _read_codes, sealed=True),
    "codes-npz": Format(_make_codes_npz, _read_codes, sealed=True),
    "units": Format(_make_units, _read_units, sealed=True),
    "token-ids": Format(_make_token_ids, _read_token_ids, sealed=False),  # whole rows may be left out
    "sqz": Format(_make_compressed, _read_compressed, sealed=True),
    "model": Format(_make_model, _read_model, sealed=True),
    "configuration": Format(_make_configuration, _read_model, sealed=True),
    "cache": Format(_make_cache, _read_cache, sealed=True),
    "idx": Format(_make_idx, _streamed("train-images-idx3-ubyte"), sealed=False),
    "idx-gz": Format(_make_idx_gz, _streamed("train-images-idx3-ubyte.gz"), sealed=True),
    "cifar-binary": Format(_make_cifar_binary, _streamed(".", channels=3), sealed=False),
    "cifar-pickled": Format(_make_cifar_pickled, _streamed(".", channels=3), sealed=False),
    "cifar-tar": Format(_make_cifar_tar, _streamed("cifar-10-python.tar.gz", channels=3), sealed=True),
    "npy": Format(_make_npy, _streamed("pictures.npy"), sealed=False),
    "npz": Format(_make_npz, _streamed("pictures.npz"), sealed=True),
    "zip": Format(_make_zip, _streamed("pictures.zip"), sealed=True),
    "png": Format(_make_picture("png"), _streamed("pictures", channels=3), sealed=False),
    "jpeg": Format(_make_picture("jpg"), _streamed("pictures", channels=3), sealed=False),
    "gif": Format(_make_picture("gif"), _streamed("pictures", channels=3), sealed=False),
    "tiff": Format(_make_picture("tif"), _streamed("pictures", channels=3), sealed=False),
    "label-map": Format(_make_labels, _streamed("maps", labels=True), sealed=False),
    "wav": Format(_make_wav, _read_sounds, sealed=False),
}

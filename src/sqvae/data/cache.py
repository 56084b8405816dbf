"""The cache of decoded images on disk, and functions to make any kind of cache entry atomically.

    CACHE/pictures/KEY/pictures.npy   uint8 (N, C, H, W), or uint16 for more than 256 labels
    CACHE/pictures/KEY/names.json     N names
    CACHE/pictures/KEY/entry.json     everything else, with checksums of all files; written last
    CACHE/building/KEY/               an entry that is being made; renamed when it is complete
    CACHE/locks/KEY                   the lock of the process that makes it; released by the system if that dies
    CACHE/index/LISTING.json          what ``content.py`` knows about files that have not changed
    CACHE/speech/KEY/                 frames of recordings, see ``speech/stored.py``
    CACHE/inception/                  weights of the Inception network, see ``sqvae.metrics.inception_weights``
    CACHE/statistics/                 feature statistics of real images, see ``sqvae.analysis.frechet``

KEY is a hash of the content of the files, of their names, of the preprocessing and of ``FORMAT``.
"""

import errno
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
from filelock import FileLock, Timeout

from sqvae.data.collection import Found, Part, Skipped, UnreadablePictureError, decode_all
from sqvae.data.content import FORMAT, Progress
from sqvae.data.locations import cache_folder as cache_folder
from sqvae.data.preprocessing import Preprocessing
from sqvae.files import checksum_of

ENTRY = "entry.json"
"""The file that describes the other files of an entry. It is written last."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_CLOSED = (
    *(errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOTDIR, errno.EEXIST, errno.ENOENT, errno.ENAMETOOLONG, errno.ELOOP),
)
"""Error numbers of a full disk, and of a folder that can't be written to or can't exist."""

NPY_HEADER = 128
"""Number of bytes before the data of an .npy file: NumPy's magic, version, length and description, padded."""

AnyEntry = TypeVar("AnyEntry")


@dataclass(frozen=True)
class Entry:
    """Decoded images in the cache, complete and verified."""

    pictures: Path
    shape: tuple[int, int, int, int]
    """(N, C, H, W)"""
    names: list[str]
    parts: dict[Part, int]
    """Number of rows of each part. The parts are stored one after the other, in this order."""
    skipped: dict[Part, list[Skipped]]
    enlarged: int
    """Number of images that were smaller than the result."""


_WITH_JPEGS = frozenset((".jpg", ".jpeg", ".jpe", ".jfif", ".zip", ".arrow"))
"""File extensions of JPEGs, and of files that may contain JPEGs."""


def has_jpegs(found: Found) -> bool:
    """Whether there may be JPEGs among the images, judging by the file names."""
    return any(file.path.suffix.lower() in _WITH_JPEGS for _, part in found.in_order() for file in part.files())


def entry_key(content: str, preprocessing: Preprocessing, *, jpegs: bool = False) -> str:
    """The name of an entry.

    Arguments:
        content: the hash of the files.
        preprocessing: how images become arrays.
        jpegs: whether there may be JPEGs among the images. Earlier versions decoded JPEGs at a fraction of their size
            if no crop was given, which gives other arrays. The entries of all other data keep their names.
    """
    whole = jpegs and preprocessing.crop is None and not preprocessing.labels
    made = json.dumps([FORMAT, content, _described(preprocessing), *(["whole JPEGs"] if whole else [])], sort_keys=True)
    return hashlib.sha256(made.encode()).hexdigest()[:32]


def _described(preprocessing: Preprocessing) -> dict[str, object]:
    """The preprocessing as it is stored; the settings of label maps are left out for images."""
    described = asdict(preprocessing)
    if not preprocessing.labels:
        for name in ("labels", "classes", "ignore"):
            del described[name]
    return described


def find_entry(root: Path, key: str) -> Entry | None:
    """The entry if it exists and is complete, otherwise None."""
    folder = root / "pictures" / key
    try:
        stored = read_entry(folder)
        names = json.loads((folder / "names.json").read_text("utf-8"))
        shape = tuple(stored["shape"])
        size = (folder / "pictures.npy").stat().st_size
        bytes_each = stored.get("bytes", 1)
        skipped = {part: [Skipped(*pair) for pair in pairs] for part, pairs in stored["skipped"].items()}
        entry = Entry(folder / "pictures.npy", shape, names, stored["parts"], skipped, stored["enlarged"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = len(shape) == 4 and size == NPY_HEADER + bytes_each * int(np.prod(shape)) and len(names) == shape[0]
    return entry if whole else None


def has_remains(root: Path, key: str, kind: str = "pictures") -> bool:
    """Whether something exists in the place of an entry, complete or not."""
    return os.path.exists(root / kind / key)  # unlike pathlib's, returns False for a name that is not valid


def make_entry(
    root: Path, key: str, found: Found, preprocessing: Preprocessing, *, strict: bool, progress: Progress
) -> Entry:
    """Decode every image into a new entry, or wait for another process that is doing so."""

    def build(folder: Path) -> None:
        _build(folder, found, preprocessing, strict, progress)

    return make_whole(root, "pictures", key, find_entry, build, "decoded images")


def make_whole(
    root: Path,
    kind: str,
    key: str,
    find: Callable[[Path, str], AnyEntry | None],
    build: Callable[[Path], None],
    what: str,
) -> AnyEntry:
    """Make a new entry atomically, or wait for another process that is making it, and return the entry.

    Arguments:
        root: the folder of the cache.
        kind: the subfolder of this kind of entry.
        key: the entry's name.
        find: takes the cache and the key; returns the entry if it exists and is complete.
        build: writes the entry into a folder, which is renamed afterwards.
        what: what the entry contains, in words for an error message.
    """
    with _explained(root, what):
        for folder in (kind, "building", "locks"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        _remove_abandoned(root)
        with FileLock(root / "locks" / key):
            entry = find(root, key)
            if entry is not None:
                return entry
            building = root / "building" / key
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            try:
                build(building)
                place = root / kind / key
                shutil.rmtree(place, ignore_errors=True)
                building.rename(place)
            finally:
                shutil.rmtree(building, ignore_errors=True)
            entry = find(root, key)
    if entry is None:
        raise OSError(
            f"the cache {root} did not keep what was written to it; set SQVAE_CACHE=DIR to use another folder"
        )
    return entry


def _build(folder: Path, found: Found, preprocessing: Preprocessing, strict: bool, progress: Progress) -> None:
    names: list[str] = []
    parts: dict[Part, int] = {}
    skipped: dict[Part, list[Skipped]] = {}
    enlarged = 0
    kept = [part for part, _ in found.in_order() if part != "rest"]
    total = sum(len(found.parts[part]) for part in kept)
    done = 0
    with (folder / "pictures.npy").open("wb") as file:
        file.write(npy_header((0, *preprocessing.shape), preprocessing.dtype))
        for part in kept:
            before = len(names)
            # On an error, closed immediately: before the archive that its threads read from.
            with closing(decode_all(found.parts[part], preprocessing)) as outcomes:
                for outcome in outcomes:
                    done += 1
                    progress("decoding", done, total)
                    if isinstance(outcome, Skipped):
                        if strict:
                            raise UnreadablePictureError(outcome)
                        skipped.setdefault(part, []).append(outcome)
                        continue
                    # Written instead of memory-mapped, so that a full disk is an error and does not kill the process.
                    file.write(outcome.pixels.tobytes())
                    names.append(outcome.name)
                    enlarged += outcome.enlarged
            parts[part] = len(names) - before
        shape = (len(names), *preprocessing.shape)
        finish_npy(file, shape, preprocessing.dtype)
    (folder / "names.json").write_text(json.dumps(names), "utf-8")
    stored = {
        "shape": shape,
        "parts": parts,
        "skipped": {part: [(one.name, one.reason) for one in ones] for part, ones in skipped.items()},
        "enlarged": enlarged,
        "bytes": preprocessing.dtype.itemsize,
        "preprocessing": _described(preprocessing),
    }
    write_entry(folder, stored)


def write_entry(folder: Path, stored: Mapping[str, Any]) -> None:
    """Write the description of an entry, with a checksum of each file and of the description itself."""
    sums = {path.name: f"{checksum_of(path):08x}" for path in sorted(folder.iterdir())}
    said = {**stored, "sums": sums}
    (folder / ENTRY).write_text(json.dumps({**said, "sum": _sum_of(said)}), "utf-8")


def read_entry(folder: Path) -> dict[str, Any]:
    """Read the description of an entry; raises ValueError if a checksum does not match.

    Entries of earlier versions have no checksums and are not verified.
    """
    stored: dict[str, Any] = json.loads((folder / ENTRY).read_text("utf-8"))
    if "sums" in stored or "sum" in stored:
        said = {name: value for name, value in stored.items() if name != "sum"}
        if stored.get("sum") != _sum_of(said):
            raise ValueError(f"{folder / ENTRY} is damaged: its checksum does not match")
        for name, expected in said["sums"].items():
            if f"{checksum_of(folder / name):08x}" != expected:
                raise ValueError(f"{folder / name} is damaged: its checksum does not match")
    return stored


def _sum_of(said: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(said, sort_keys=True).encode()):08x}"


def finish_npy(file: BinaryIO, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    """Write the header again with the final shape, and flush the file to the disk."""
    file.seek(0)
    file.write(npy_header(shape, dtype))
    file.flush()
    os.fsync(file.fileno())


def npy_header(shape: Sequence[int], dtype: np.dtype[Any]) -> bytes:
    """The header of an .npy file, of a fixed length, so that it can be rewritten when the number of rows is known."""
    description = repr({"descr": dtype.str, "fortran_order": False, "shape": tuple(shape)}).encode()
    start = b"\x93NUMPY\x01\x00" + (NPY_HEADER - 10).to_bytes(2, "little")
    return start + description.ljust(NPY_HEADER - len(start) - 1) + b"\n"


def _remove_abandoned(root: Path) -> None:
    """Delete incomplete entries of processes that died."""
    for building in (root / "building").iterdir():
        with suppress(Timeout), FileLock(root / "locks" / building.name, timeout=0):
            shutil.rmtree(building, ignore_errors=True)


@contextmanager
def _explained(root: Path, what: str = "decoded images") -> Iterator[None]:
    """Raise errors about a full or read-only disk with advice on what to do."""
    try:
        yield
    except OSError as failure:
        if failure.errno not in (*_FULL, *_CLOSED) or not _is_of(root, failure):
            raise
        # Without the error number, which would be printed before the sentence.
        raise OSError(_explanation(root, what, failure)) from failure


def _is_of(root: Path, failure: OSError) -> bool:
    """Whether the failure concerns the cache or a folder above it, and not a source."""
    if failure.filename is None:
        return True  # only failures to write have no file name
    path = Path(os.fsdecode(failure.filename))
    return path.is_relative_to(root) or root.is_relative_to(path)


def _explanation(root: Path, what: str, failure: OSError) -> str:
    chosen = os.environ.get("SQVAE_CACHE")
    place = f"{root} (set by SQVAE_CACHE)" if chosen and Path(chosen) == root else f"the cache {root}"
    reason = failure.strerror
    for path in (root, *root.parents):
        if os.path.isfile(path):
            reason = f"{'it' if path == root else path} is a file, not a folder"
    remedy = "free some space there, or use another folder" if failure.errno in _FULL else "use another folder"
    return (
        f"{what} can't be written to {place} ({reason}); {remedy}: set SQVAE_CACHE=DIR to a folder that you can "
        f"write to"
    )

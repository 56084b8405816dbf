"""The cache of frames of recordings on disk.

    CACHE/speech/KEY/frames.npy        float32 (frames of all recordings, mels), in dB
    CACHE/speech/KEY/recordings.json   the name of each recording, and its number of frames and samples
    CACHE/speech/KEY/entry.json        everything else; written last

KEY is a hash of the content of the files, of the recordings' names, of the features and of ``FORMAT``. The speaker and
the set of a recording follow from its name and are not stored.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np

from sqvae.data.cache import NPY_HEADER, finish_npy, make_whole, npy_header, read_entry, write_entry
from sqvae.data.collection import Skipped
from sqvae.data.content import Progress
from sqvae.data.speech.log_mel import LogMel
from sqvae.data.speech.reading import hear
from sqvae.data.speech.recordings import Recording, UnreadableRecordingError
from sqvae.data.threads import in_order

KIND = "speech"
"""The subfolder of these entries in the cache."""

FORMAT = 1
"""Increase this whenever the same recordings would give other frames, or another entry format."""

_DTYPE = np.dtype("<f4")


@dataclass(frozen=True)
class StoredSpeech:
    """Frames of recordings in the cache, complete and verified."""

    file: Path
    names: list[str]
    frames: list[int]
    """The number of frames of each recording; they are stored one after the other."""
    samples: list[int]
    skipped: list[Skipped]

    def starts(self) -> list[int]:
        """The index of the first frame of each recording."""
        return [0, *accumulate(self.frames)][:-1]


def speech_key(content: str, recordings: Sequence[Recording], features: LogMel) -> str:
    """The name of an entry."""
    names = [recording.name for recording in recordings]
    made = json.dumps([KIND, FORMAT, content, names, asdict(features)], sort_keys=True)
    return hashlib.sha256(made.encode()).hexdigest()[:32]


def find_speech(root: Path, key: str) -> StoredSpeech | None:
    """The entry if it exists and is complete, otherwise None."""
    folder = root / KIND / key
    try:
        stored = read_entry(folder)
        table = json.loads((folder / "recordings.json").read_text("utf-8"))
        frames, mels = stored["shape"]
        size = (folder / "frames.npy").stat().st_size
        skipped = [Skipped(*pair) for pair in stored["skipped"]]
        entry = StoredSpeech(folder / "frames.npy", table["names"], table["frames"], table["samples"], skipped)
        counts = {len(entry.names), len(entry.frames), len(entry.samples), stored["recordings"]}
        whole = size == NPY_HEADER + _DTYPE.itemsize * frames * mels and sum(entry.frames) == frames
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return entry if whole and len(counts) == 1 else None


def make_speech(
    root: Path,
    key: str,
    recordings: Sequence[Recording],
    features: LogMel,
    *,
    strict: bool,
    progress: Progress,
) -> StoredSpeech:
    """Convert every recording to frames in a new entry, or wait for another process that is doing so."""

    def build(folder: Path) -> None:
        _build(folder, recordings, features, strict, progress)

    return make_whole(root, KIND, key, find_speech, build, "frames of recordings")


def _build(folder: Path, recordings: Sequence[Recording], features: LogMel, strict: bool, progress: Progress) -> None:
    table: dict[str, list[object]] = {"names": [], "frames": [], "samples": []}
    skipped: list[tuple[str, str]] = []
    total = 0
    with (folder / "frames.npy").open("wb") as file:
        file.write(npy_header((0, features.mels), _DTYPE))
        # On an error, closed immediately: before the archive that its threads read from.
        with closing(in_order(partial(hear, features=features), recordings)) as outcomes:
            for done, outcome in enumerate(outcomes, 1):
                if isinstance(outcome, Skipped):
                    if strict:
                        raise UnreadableRecordingError(outcome)
                    skipped.append((outcome.name, outcome.reason))
                else:
                    # Written instead of memory-mapped, so that a full disk is an error and does not kill the process.
                    for piece in outcome.pieces():
                        file.write(piece.numpy().astype(_DTYPE, copy=False).tobytes())
                    table["names"].append(outcome.name)
                    table["frames"].append(len(outcome))
                    table["samples"].append(outcome.samples)
                    total += len(outcome)
                progress("decoding", done, len(recordings))
        shape = (total, features.mels)
        finish_npy(file, shape, _DTYPE)
    (folder / "recordings.json").write_text(json.dumps(table), "utf-8")
    stored = {
        "shape": shape,
        "recordings": len(table["names"]),
        "skipped": skipped,
        "features": asdict(features),
    }
    write_entry(folder, stored)

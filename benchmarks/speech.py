"""Speech against real time: recordings to frames, and recordings to codes with the paper's encoder."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.side_by_side import Result, arguments, at_least, at_most, median_seconds, report
from sqvae.config import override
from sqvae.data.speech import FEATURES, LogMel, count_speech, folder_of_speech, read_audio, stream_speech, write_audio
from sqvae.metrics import abx, read_items
from sqvae.modalities.speech.tokenizer import SpeechTokenizer, untrained_speech_tokenizer
from sqvae.recipes import RECIPES


def recordings(number: int) -> tuple[list[Path], str]:
    """Some of LibriSpeech, or noise where that is not at hand."""
    try:
        files = sorted(folder_of_speech("librispeech").rglob("*.flac"))
    except FileNotFoundError:
        return [], "noise, 4 seconds each"
    return files[:: max(1, len(files) // number)][:number], "LibriSpeech"


def noise(folder: Path, number: int) -> list[Path]:
    """Recordings of noise."""
    random = np.random.default_rng(0)
    files = [folder / f"{index}.flac" for index in range(number)]
    for file in files:
        write_audio(file, 0.1 * random.standard_normal(64_000), 16_000)
    return files


def seconds_of(files: Sequence[Path]) -> float:
    """How long they last together."""
    return sum(len(read_audio(file, 16_000)) for file in files) / 16_000


def to_frames(files: Sequence[Path], features: LogMel) -> None:
    """Read and transform them, as `load` and `encode` do."""
    for _ in stream_speech(files, features, on_skip=lambda skipped: None):
        pass


def to_codes(files: Sequence[Path], tokenizer: SpeechTokenizer) -> None:
    """Read, transform and encode them, as `sqvae encode` does."""
    for heard in stream_speech(files, tokenizer.features, on_skip=lambda skipped: None):
        for _ in tokenizer.encode_pieces(heard.pieces()):
            pass


def of_speed(files: Sequence[Path], rounds: int) -> list[Result]:
    """Against the time that the recordings last."""
    assert count_speech(files) == len(files)
    lasting = seconds_of(files)
    experiment = override(RECIPES["zerospeech"](), ["speech.speakers=one,two"])
    tokenizer = untrained_speech_tokenizer(experiment)
    steps = [
        lambda: to_frames(files, FEATURES["vctk"]),
        lambda: to_frames(files, FEATURES["zerospeech"]),
        lambda: to_codes(files, tokenizer),
    ]
    vctk, zerospeech, codes = median_seconds(steps, rounds, "speech")
    return [
        at_least("real time / recordings to frames, as for VCTK", lasting, vctk, 20, digits=0),
        at_least("real time / recordings to frames, as for ZeroSpeech", lasting, zerospeech, 20, digits=0),
        at_least("real time / recordings to codes, the paper's encoder", lasting, codes, 10, digits=0),
    ]


def of_abx(rounds: int) -> list[Result]:
    """The ABX test on TIMIT's triphones, frames as features, against a minute."""
    try:
        folder = folder_of_speech("timit")
    except FileNotFoundError:
        return []
    features = FEATURES["zerospeech"]
    items = read_items(folder / "timit_triphone.item")
    heard = stream_speech([folder], features, on_skip=lambda skipped: None)
    frames = {one.file_id: one.frames().numpy() for one in heard}

    def test() -> None:
        for mode in ("within", "across"):
            abx(items, frames, shift=features.seconds_per_frame, start=0.0, mode=mode)

    (seconds,) = median_seconds([test], rounds, "abx")
    return [at_most("ABX of TIMIT's 5,865 triphones, within and across / a minute", seconds, 60.0, 1.0)]


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__, argv)
    number, rounds = (3, 1) if options.quick else (60, 5)
    torch.set_num_threads(1)
    files, name = recordings(number)
    with TemporaryDirectory() as folder:
        files = files or noise(Path(folder), number)
        results = [*of_speed(files, rounds), *of_abx(rounds)]
        setting = f"{len(files)} recordings of {name}, {seconds_of(files):.0f} seconds; {rounds} rounds."
    report("Benchmarks of speech", setting, results, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

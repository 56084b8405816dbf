"""How well the units of a model tell phones apart: the ABX test on what it makes of recordings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from sqvae.data import Progress, Skipped
from sqvae.data.speech import MADE_UP, SPEECH_SETS, folder_of_speech, item_names, made_up_items, stream_speech
from sqvae.metrics import AbxResult, Item, abx, read_items
from sqvae.modalities.speech.tokenizer import SpeechTokenizer
from sqvae.networks.speech import STRIDE

MODES = ("within", "across")


@dataclass(frozen=True)
class Representation:
    """One of the things that a model makes of an utterance."""

    description: str
    of: Callable[[SpeechTokenizer, Tensor], Tensor]
    """(T, mels) -> (n, d), or (n,) for codes."""
    distance: str
    stride: int = STRIDE
    """Frames that one row stands for."""
    continuous: bool = True
    """Whether a model without codes has it too."""


def _codes(tokenizer: SpeechTokenizer, frames: Tensor) -> Tensor:  # (T, mels) -> (n,)
    return tokenizer.encode_frames([frames])[0]


def _vectors(tokenizer: SpeechTokenizer, frames: Tensor) -> Tensor:  # (T, mels) -> (n, dim)
    return tokenizer.vectors(_codes(tokenizer, frames))


REPRESENTATIONS: Mapping[str, Representation] = {
    "vectors": Representation("the codes' vectors", _vectors, "cosine", continuous=False),
    "codes": Representation("the codes themselves, equal or not", _codes, "identical", continuous=False),
    "encodings": Representation(
        "encodings before quantization", lambda tokenizer, frames: tokenizer.encodings([frames])[0], "cosine"
    ),
    "frames": Representation("log-mel frames", lambda tokenizer, frames: frames, "cosine", stride=1),
}
"""What can be tested, by name."""


def abx_of(
    tokenizer: SpeechTokenizer,
    items: Sequence[Item],
    sources: Sequence[str | Path],
    *,
    representations: Sequence[str] = (),
    modes: Sequence[str] = MODES,
    allow_missing: bool = False,
    on_skip: Callable[[Skipped], None] = lambda skipped: None,
    progress: Progress | None = None,
) -> dict[tuple[str, str], AbxResult]:
    """ABX tests of what a model makes of recordings, by mode and representation.

    Arguments:
        items: what is compared: see :func:`sqvae.metrics.read_items`. They call a recording by its file's name without
            the ending, NAME, or where several have one name, by SPEAKER/NAME or SPEAKER_NAME.
        sources: where the recordings are that the items are from.
        representations: names in ``REPRESENTATIONS``; by default all that the model has.
        allow_missing: leave out items of recordings that are not there, or can't be read, rather than raise.
        on_skip: called with each recording that can't be read.
        progress: called with what is being done, how many recordings are done and how many there are.
    """
    representations = representations or [
        name for name, form in REPRESENTATIONS.items() if form.continuous or tokenizer.is_discrete
    ]
    wanted = {item.file for item in items}
    found: dict[str, dict[str, Tensor]] = {name: {} for name in representations}
    names: dict[str, str] = {}
    for heard in stream_speech(sources, tokenizer.features, on_skip=on_skip, only=wanted):
        called = [name for name in item_names(heard.file_id, heard.speaker) if name in wanted]
        for name in called:
            if name in names:
                raise ValueError(
                    f"{names[name]} and {heard.name} are both called {name}, and the items don't say which is meant: "
                    f"write {heard.speaker}/{heard.file_id} in the items, name the folder of one, or give the files "
                    f"different names"
                )
            names[name] = heard.name
        frames = heard.frames()
        for form_name in representations:
            rows = REPRESENTATIONS[form_name].of(tokenizer, frames).cpu()
            found[form_name] |= dict.fromkeys(called, rows)
        if progress is not None:
            progress("encoding", len(names), len(wanted))
    missing = sorted(wanted - set(names))
    if not names or (missing and not allow_missing):
        raise ValueError(
            f"{len(missing):,} of the {len(wanted):,} recordings that the items are from are not there, or can't be "
            f"read: {', '.join(missing[:3])}{', ...' if len(missing) > 3 else ''}; name their folder with `sources=`; "
            f"items call a recording NAME (its file's name without the ending), SPEAKER/NAME or SPEAKER_NAME"
            + (", or leave their items out with `allow_missing=True`" if names else "")
        )
    seconds = tokenizer.features.seconds_per_frame
    results = {}
    for name in representations:
        form = REPRESENTATIONS[name]
        for mode in modes:
            results[mode, name] = abx(
                items,
                {file: rows.numpy() for file, rows in found[name].items()},
                shift=form.stride * seconds,
                start=(form.stride - 1) / 2 * seconds,  # the middle of the frames that a row stands for
                mode=mode,  # type: ignore[arg-type]
                distance=form.distance,
                allow_missing=allow_missing,
            )
    return results


def abx_measures(tokenizer: SpeechTokenizer, source: str, progress: Progress | None = None) -> dict[str, float]:
    """The errors of all tests on recordings that have a list of items beside them: `abx_across_codes` and so on.

    Arguments:
        source: a folder, or the name of a set.
    """
    results = abx_of(tokenizer, items_of(source), [source], progress=progress)
    return {f"abx_{mode}_{name}": result.error for (mode, name), result in results.items()}


def items_of(source: str) -> list[Item]:
    """The items of recordings that have a list of them beside them.

    Arguments:
        source: a folder, or the name of a set.
    """
    return [Item(*item) for item in made_up_items()] if source == MADE_UP else read_items(find_items(source))


def find_items(source: str) -> Path:
    """The list of items in a folder of recordings; of triphones, where there are several lists."""
    folder = folder_of_speech(source) if source in SPEECH_SETS else Path(source)
    lists = sorted([*folder.rglob("*.item"), *folder.rglob("*.item.gz")], key=lambda path: path.name)
    preferred = [path for path in lists if "triphone" in path.name] or lists
    if not preferred:
        raise FileNotFoundError(
            f"{folder} holds no list of ABX items: a file whose name ends in .item, in the format of ZeroSpeech"
        )
    return preferred[0]

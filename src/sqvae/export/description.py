"""What someone needs to know to use an exported tokenizer without this package."""

from dataclasses import asdict
from typing import Any

from sqvae import __version__
from sqvae.export.halves import Half, Slot
from sqvae.modalities import SpeechTokenizer, Tokenizer
from sqvae.tokenizers import Pretrained, stride_of

FORMAT = 1

CROPPING = "cropped around the centre (crop: the side of a square; null: the largest part of the result's shape)"
RESIZING = {
    False: f"upright by EXIF, over white where transparent, {CROPPING}, resized bilinearly, antialiased; bytes / 255",
    True: f"{CROPPING}, resized by the nearest pixel",
}

FRAMES = (
    "mono samples at this rate, full scale 1; scaled to the peak where there is one, then preemphasis; frame t is "
    "centred at sample t * shift, the ends reflected; 20 log10 of the magnitudes of a Hann window's spectrum through "
    "triangles of area 1 on Slaney's mel scale; raised to the floor, and to the loudest value less the range; an odd "
    "last frame is repeated"
)


def described(tokenizer: Pretrained, halves: tuple[Half, Half]) -> dict[str, Any]:
    """A tokenizer's codes, what its halves take and give, and how data is brought there."""
    experiment = tokenizer.experiment
    return {
        "format": FORMAT,
        "sqvae": __version__,
        "fingerprint": tokenizer.fingerprint,
        "kind": experiment.kind,
        "quantizer": experiment.quantizer.name,
        "codebook_size": tokenizer.codebook_size,
        "dim": experiment.quantizer.dim,
        **{half.name: _interface(half) for half in halves},
        **_own(tokenizer),
    }


def _interface(half: Half) -> dict[str, Any]:
    return {"inputs": [_slot(slot) for slot in half.inputs], "output": _slot(half.output)}


def _slot(slot: Slot) -> dict[str, Any]:
    kind = str(slot.dtype).removeprefix("torch.")
    return {"name": slot.name, "type": kind, "shape": list(slot.shape), "meaning": slot.meaning}


def _of_pictures(tokenizer: Tokenizer) -> dict[str, Any]:
    channels, height, width = tokenizer.shape
    data, labels = tokenizer.experiment.data, tokenizer.preprocessing.labels
    found: dict[str, Any] = {
        "stride": stride_of(tokenizer.experiment, tokenizer.shape),
        "preprocessing": {"size": [height, width], "crop": data.crop, "channels": channels, "how": RESIZING[labels]},
    }
    if labels:
        classes = {
            "number": data.classes,
            "ignore": data.ignore,
            "names": data.class_names,
            "colours": data.class_colours,
        }
        found["classes"] = classes
    return found


def _of_speech(tokenizer: SpeechTokenizer) -> dict[str, Any]:
    return {
        "codes_per_second": tokenizer.codes_per_second,
        "preprocessing": {**asdict(tokenizer.features), "how": FRAMES},
        "speakers": list(tokenizer.speakers),
    }


def _own(tokenizer: Any) -> dict[str, Any]:  # Tokenizer | SpeechTokenizer, by its kind
    return _of_speech(tokenizer) if tokenizer.experiment.kind == "speech" else _of_pictures(tokenizer)

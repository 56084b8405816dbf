"""The metadata of a file of codes: texts that contain JSON. Invalid entries raise an error with a clear message."""

import json
from collections.abc import Mapping
from typing import Any

LARGEST = 2**31
"""The largest number in a file of codes: the largest integer type of codes can represent this many."""

LAYERS = "layers"
"""The entry with the number of layers."""


def text_of(metadata: Mapping[str, str], name: str) -> str:
    """An entry of the metadata; raises ValueError if it is missing."""
    if name not in metadata:
        raise ValueError(f"it has no {name} in its metadata")
    return metadata[name]


def number_of(metadata: Mapping[str, str], name: str, most: float = LARGEST) -> float:
    """A number above 0 in the metadata."""
    value = _parsed(metadata, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise ValueError(f"its {name} must be a number above 0 and up to {most:,}, got {text_of(metadata, name)}")
    return value


def whole_number_of(metadata: Mapping[str, str], name: str) -> int:
    """An integer above 0 in the metadata."""
    value = number_of(metadata, name)
    if not isinstance(value, int):
        raise ValueError(f"its {name} must be an integer, got {value}")
    return value


def layers_of(metadata: Mapping[str, str]) -> int | None:
    """The number of layers; None if codes have no axis of them."""
    return whole_number_of(metadata, LAYERS) if LAYERS in metadata else None


def whole_numbers_of(metadata: Mapping[str, str], name: str, *counts: int) -> tuple[int, ...]:
    """As many integers above 0 in the metadata as one of some numbers says."""
    values = _parsed(metadata, name)
    if not isinstance(values, list) or len(values) not in counts or not all(_is_size(value) for value in values):
        raise ValueError(
            f"its {name} must be {' or '.join(map(str, counts))} integers above 0, got {text_of(metadata, name)}"
        )
    return tuple(values)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST


def _parsed(metadata: Mapping[str, str], name: str) -> Any:
    text = text_of(metadata, name)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"its {name} is {text!r}, which is not a number") from None

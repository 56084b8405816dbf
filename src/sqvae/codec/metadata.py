"""What a file of codes says of itself, as texts that hold JSON. Whatever does not make sense is said in a sentence."""

import json
from collections.abc import Mapping
from typing import Any

LARGEST = 2**31
"""No number in a file of codes is larger: so many codes are numbered by the largest type that they are written in."""


def text_of(metadata: Mapping[str, str], name: str) -> str:
    """What a file says of itself under a name; it raises if it says nothing."""
    if name not in metadata:
        raise ValueError(f"it does not say its {name}")
    return metadata[name]


def number_of(metadata: Mapping[str, str], name: str, most: float = LARGEST) -> float:
    """A number above 0 that a file says of itself."""
    value = _parsed(metadata, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= most:
        raise ValueError(f"its {name} must be a number above 0 and up to {most:,}, got {text_of(metadata, name)}")
    return value


def whole_number_of(metadata: Mapping[str, str], name: str) -> int:
    """A whole number above 0 that a file says of itself."""
    value = number_of(metadata, name)
    if not isinstance(value, int):
        raise ValueError(f"its {name} must be a whole number, got {value}")
    return value


def whole_numbers_of(metadata: Mapping[str, str], name: str, count: int) -> tuple[int, ...]:
    """So many whole numbers above 0."""
    values = _parsed(metadata, name)
    if not isinstance(values, list) or len(values) != count or not all(_is_size(value) for value in values):
        raise ValueError(f"its {name} must be {count} whole numbers above 0, got {text_of(metadata, name)}")
    return tuple(values)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST


def _parsed(metadata: Mapping[str, str], name: str) -> Any:
    text = text_of(metadata, name)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"its {name} is {text!r}, which is no number") from None

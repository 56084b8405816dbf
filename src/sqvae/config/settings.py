"""Change settings by name from text, and read and write them as JSON."""

import contextlib
import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from sqvae.config.experiment import ConfigurationError, Experiment, QuantizerSettings, nearest
from sqvae.modality import MODALITIES, modality_of

Settings = TypeVar("Settings")


def override(settings: Settings, assignments: Iterable[str]) -> Settings:
    """Settings with some values replaced, all at once.

    If the quantizer's name changes, settings that only the former quantizer has are dropped, so that a recipe works
    with every quantizer.

    Arguments:
        settings: the settings to change.
        assignments: texts such as ``quantizer.codebook_size=1024``.
    """
    changes: dict[str, Any] = {}
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator:
            raise ConfigurationError(
                f"a setting is written as key=value, for example {assignment}=VALUE; got {assignment!r}"
            )
        *groups, name = key.strip().split(".")
        place = changes
        for group in groups:
            place = place.setdefault(group, {})
        place[name] = _from_text(text.strip(), _hint(settings, key.strip()), key.strip())
    changed: Settings = _changed(settings, changes)
    return changed


def _changed(settings: Any, changes: Mapping[str, Any]) -> Any:
    hints = _hints(settings)
    if isinstance(settings, QuantizerSettings) and "name" in changes:
        settings = settings.renamed(changes["name"])
    values = {
        name: _changed(getattr(settings, name), value) if is_dataclass(hints[name]) else value
        for name, value in changes.items()
    }
    return replace(settings, **values)


def _hints(settings: Any) -> dict[str, Any]:
    """The types of settings by their names. A group has the type that it has now, which may depend on the data."""
    hints = typing.get_type_hints(type(settings))
    return {
        name: type(getattr(settings, name)) if is_dataclass(getattr(settings, name)) else hint
        for name, hint in hints.items()
    }


def _hint(settings: Any, key: str) -> Any:
    """What kind of value a setting has."""
    names, place = key.split("."), settings
    for depth, name in enumerate(names):
        hints = _hints(place)
        if name not in hints:
            raise _unknown(key, name, hints, _places(settings, names[-1]))
        kind, place = hints[name], getattr(place, name)
        if not is_dataclass(kind) and depth + 1 < len(names):
            raise ConfigurationError(f"{key}: {name} is a single value and has no {'.'.join(names[depth + 1 :])}")
    if is_dataclass(kind):
        inner = ", ".join(f"{key}.{entry.name}" for entry in fields(kind))
        raise ConfigurationError(f"{key} is a group of settings; set one of {inner}")
    return kind


def _places(settings: Any, name: str) -> list[str]:
    """Where else a setting of this name is."""
    groups = _hints(settings)
    own = [name] if name in groups else []
    return own + [f"{group}.{name}" for group, inner in groups.items() if _has(inner, name)]


def to_json(settings: Any) -> dict[str, Any]:
    """Settings as a dictionary that JSON can store."""
    return dataclasses.asdict(settings)


FORMER = frozenset({"training.long_run"})
"""Settings in files of earlier versions that have no effect on a trained model."""


def from_json(kind: type[Settings], content: Mapping[str, Any], path: str = "") -> Settings:
    """Settings from a file's content. What it leaves out has its default; what is unknown is an error."""
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"{path.rstrip('.')} is a group of settings; got {content!r}")
    hints = {**typing.get_type_hints(kind), **_by_data(kind, content)}
    values: dict[str, Any] = {}
    for name, value in content.items():
        where = f"{path}{name}"
        if where in FORMER:
            continue
        if name not in hints:
            raise _unknown(where, name, hints)
        hint = hints[name]
        group = isinstance(hint, type) and is_dataclass(hint)
        values[name] = from_json(hint, value, f"{where}.") if group else _from_plain(value, hint, where)
    return kind(**values)


def _by_data(kind: type, content: Mapping[str, Any]) -> dict[str, type]:
    """The groups whose settings depend on the kind of data."""
    data = content.get("data") if kind is Experiment else None
    name = data.get("kind") if isinstance(data, Mapping) else None
    network = modality_of(name).network if isinstance(name, str) and name in MODALITIES else None
    return {} if network is None else {"network": network}


def _has(kind: Any, name: str) -> bool:
    return is_dataclass(kind) and any(entry.name == name for entry in fields(kind))


def _unknown(key: str, name: str, hints: Mapping[str, Any], elsewhere: Iterable[str] = ()) -> ConfigurationError:
    hint = "".join(f" (did you mean {place}?)" for place in elsewhere) or nearest(name, hints)
    return ConfigurationError(f"there is no setting {key!r}{hint}; choose from {', '.join(hints)}")


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _describe(hint: Any) -> str:
    if hint is type(None):
        return "none"
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        if str in kinds:
            return "names, such as sky,road"
        return "whole numbers, such as 32,64" if Ellipsis in kinds else f"{len(kinds)} whole numbers, such as 64,128"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names[hint]


def _from_text(text: str, hint: Any, key: str) -> Any:
    """A setting's value, from the text that a person typed."""
    # None comes first, because any text is a valid str.
    for kind in sorted(_alternatives(hint), key=lambda kind: kind is not type(None)):
        try:
            return _parse(text, kind)
        except ValueError:
            continue
    raise ConfigurationError(f"{key} must be {' or '.join(map(_describe, _alternatives(hint)))}; got {text!r}")


def _parse(text: str, kind: Any) -> Any:
    """The value, or ValueError if the text is not of this kind."""
    if kind is type(None):
        return _among(text.lower(), {"none": None, "null": None})
    if kind is bool:
        words = {
            "true": True,
            "yes": True,
            "on": True,
            "1": True,
            "false": False,
            "no": False,
            "off": False,
            "0": False,
        }
        return _among(text.lower(), words)
    if get_origin(kind) is Literal:
        return _among(text, {str(choice): choice for choice in get_args(kind)})
    if get_origin(kind) is tuple:
        item, *others = get_args(kind)
        values = tuple(item(part.strip()) for part in text.strip("()[] ").split(","))
        if Ellipsis not in others and len(values) != 1 + len(others):
            raise ValueError
        return values
    return kind(text)


def _among(text: str, values: Mapping[str, Any]) -> Any:
    if text not in values:
        raise ValueError
    return values[text]


def _from_plain(value: Any, hint: Any, key: str) -> Any:
    """A setting's value, from a value read from JSON."""
    for kind in _alternatives(hint):
        if get_origin(kind) is tuple and isinstance(value, list | tuple):
            length = None if Ellipsis in get_args(kind) else len(get_args(kind))
            if all(type(item) is get_args(kind)[0] for item in value) and length in (None, len(value)):
                return tuple(value)
        if get_origin(kind) is Literal and value in get_args(kind):
            return value
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            with contextlib.suppress(OverflowError):  # an integer with hundreds of digits
                return float(value)
        if isinstance(kind, type) and get_origin(kind) is None and type(value) is kind:
            return value
    raise ConfigurationError(f"{key} must be {' or '.join(map(_describe, _alternatives(hint)))}; got {value!r}")

"""What the library says, as people type it here."""

import re

_ASSIGNMENT = re.compile(r"`([a-z_]+(?:\.[a-z_]+)?)=([^`]*)`")

_OPTIONS = {"source": "data", "sources": "data", "speakers": "speaker", "above": "given"}
"""Arguments of Python whose options have other names."""

UNCHECKED = (
    "{} was written by an earlier version, without a checksum, so that it can't be told whether it is still as it was "
    "written; `sqvae encode` writes one now"
)
"""Of a file of codes."""


def as_typed(text: str) -> str:
    """A sentence of the library with its settings and arguments as options.

    The library writes them as Python has them, in backquotes. Here a setting, `data.size=128`, is ``--set
    data.size=128``; an argument, `out=` or `overwrite=True`, is ``--out`` or ``--overwrite``.
    """
    return _ASSIGNMENT.sub(lambda match: _option(*match.groups()), text)


def _option(name: str, value: str) -> str:
    if "." in name:
        return f"--set {name}={value}"
    option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
    return option if value in ("", "True") else f"{option} {value}"

"""What the library says about its arguments and settings, as options of the command line."""

import re

_ASSIGNMENT = re.compile(r"`([a-z_]+(?:\.[a-z_]+)?)=([^`]*)`")

_OPTIONS = {
    "source": "data",
    "sources": "data",
    "speakers": "speaker",
    "above": "given",
    "learned": "prior",
    "modes": "mode",
    "representations": "on",
}
"""Arguments of Python whose options have other names."""


def as_typed(text: str) -> str:
    """A sentence of the library with its settings and arguments as options.

    The library writes them as Python has them, in backquotes. Here a setting, `data.size=128`, is ``--set
    data.size=128``; an argument, `out=` or `overwrite=True`, is ``--out`` or ``--overwrite``, and `learned=False` is
    ``--no-prior``. What is written to, `path=`, is ``-o``.
    """
    return _ASSIGNMENT.sub(lambda match: _option(*match.groups()), text)


def _option(name: str, value: str) -> str:
    if "." in name:
        return f"--set {name}={value}"
    words = _OPTIONS.get(name, name).replace("_", "-")
    if value == "False":
        return f"--no-{words}"
    option = "-o" if name == "path" else f"--{words}"
    return option if value in ("", "True") else f"{option} {value}"

"""A safe reader of pickles, which executes nothing.

A pickle is a program: loading it means running it, and even if the functions that it may call are restricted, it may
modify their results until the process crashes. This module only parses the program. Numbers, strings, lists and
dictionaries are converted; a call is recorded as a :class:`Called`, and nothing is called.
"""

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class Called:
    """A call in a pickle, and the state that the pickle would give to the result."""

    name: str
    """The full name of the function: module, dot, name."""
    arguments: Any = None
    """The arguments; None if the function is only named and not called."""
    state: Any = None


def read_pickle(content: bytes) -> Any:
    """The data in a pickle; raises ValueError for instructions that plain data and arrays don't need."""
    return _Stack().result(content)


class _Stack:
    """The stack machine of a pickle."""

    def __init__(self) -> None:
        self._values: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}

    def result(self, content: bytes) -> Any:
        for instruction, argument, _ in pickletools.genops(content):
            if instruction.name == "STOP":
                return self._pop()
            if instruction.name in _IGNORED:
                continue
            if instruction.name in _VALUES:
                self._values.append(_VALUES[instruction.name](argument))
            elif instruction.name in _ACTIONS:
                _ACTIONS[instruction.name](self, argument)
            else:
                raise ValueError(f"it has the instruction {instruction.name}, which arrays and lists don't need")
        raise ValueError("it has no STOP instruction")

    def _pop(self) -> Any:
        if not self._values or (self._marks and len(self._values) <= self._marks[-1]):
            raise ValueError("it takes more from the stack than it has put there")
        return self._values.pop()

    def _since_mark(self) -> list[Any]:
        if not self._marks:
            raise ValueError("it takes more from the stack than it has put there")
        start = self._marks.pop()
        values, self._values[start:] = self._values[start:], []
        return values

    def mark(self, _: Any) -> None:
        self._marks.append(len(self._values))

    def store(self, place: int | None) -> None:
        value = self._pop()
        self._memo[len(self._memo) if place is None else place] = value
        self._values.append(value)

    def recall(self, place: int) -> None:
        if place not in self._memo:
            raise ValueError("it reads a memo entry that it has not stored")
        self._values.append(self._memo[place])

    def tuple_of(self, number: int) -> None:
        values = [self._pop() for _ in range(number)]
        self._values.append(tuple(reversed(values)))

    def tuple_since_mark(self, _: Any) -> None:
        self._values.append(tuple(self._since_mark()))

    def append(self, _: Any) -> None:
        self._extend([self._pop()])

    def append_since_mark(self, _: Any) -> None:
        self._extend(self._since_mark())

    def _extend(self, values: list[Any]) -> None:
        found = self._pop()
        if not isinstance(found, list):
            raise ValueError("it appends to something that is not a list")
        found += values
        self._values.append(found)

    def set_item(self, _: Any) -> None:
        value = self._pop()
        self._update([self._pop(), value])

    def set_since_mark(self, _: Any) -> None:
        self._update(self._since_mark())

    def _update(self, pairs: list[Any]) -> None:
        found = self._pop()
        if not isinstance(found, dict) or len(pairs) % 2 or not all(type(key) in _KEYS for key in pairs[::2]):
            raise ValueError("it has a dictionary whose keys are not all strings or numbers")
        found |= dict(zip(pairs[::2], pairs[1::2], strict=True))
        self._values.append(found)

    def name(self, argument: str) -> None:
        self._values.append(Called(argument.replace(" ", ".", 1)))

    def name_from_stack(self, _: Any) -> None:
        name, module = self._pop(), self._pop()
        if not (isinstance(name, str) and isinstance(module, str)):
            raise ValueError("it names a function by something that is not a string")
        self._values.append(Called(f"{module}.{name}"))

    def call(self, _: Any) -> None:
        arguments, function = self._pop(), self._pop()
        if not isinstance(function, Called) or function.arguments is not None or not isinstance(arguments, tuple):
            raise ValueError("it calls something that is not a function")
        match function.name, arguments:
            case "_codecs.encode", (str(text), "latin1"):  # bytes, as Python 3 writes them for Python 2
                self._values.append(text.encode("latin-1"))
            case _:
                self._values.append(Called(function.name, arguments))

    def build(self, _: Any) -> None:
        state, target = self._pop(), self._pop()
        if not isinstance(target, Called) or target.arguments is None or target.state is not None:
            raise ValueError("it sets the state of something that is not a new object")
        self._values.append(target)
        target.state = state


_KEYS = (bytes, str, int)

_IGNORED = ("PROTO", "FRAME")


def _as_it_is(value: Any) -> Any:
    return value


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "INT", "LONG", "BINFLOAT", "FLOAT"), _as_it_is),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"), _as_it_is),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"), _as_it_is),
    # Strings of Python 2, which are bytes.
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING", "STRING"), lambda value: value.encode("latin-1")),
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_TUPLE": lambda _: (),
    "EMPTY_LIST": lambda _: [],
    "EMPTY_DICT": lambda _: {},
}
"""Instructions that push a value."""

_ACTIONS: Mapping[str, Callable[[_Stack, Any], None]] = {
    "MARK": _Stack.mark,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _Stack.store),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Stack.recall),
    "TUPLE1": lambda stack, _: stack.tuple_of(1),
    "TUPLE2": lambda stack, _: stack.tuple_of(2),
    "TUPLE3": lambda stack, _: stack.tuple_of(3),
    "TUPLE": _Stack.tuple_since_mark,
    "APPEND": _Stack.append,
    "APPENDS": _Stack.append_since_mark,
    "SETITEM": _Stack.set_item,
    "SETITEMS": _Stack.set_since_mark,
    "GLOBAL": _Stack.name,
    "STACK_GLOBAL": _Stack.name_from_stack,
    "REDUCE": _Stack.call,
    "BUILD": _Stack.build,
}
"""Instructions that change the stack."""

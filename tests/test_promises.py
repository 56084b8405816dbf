"""The page of promises names tests that exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def names_of_tests(path: Path) -> set[str]:
    """The tests of a file, as pytest names them, without parameters."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def test_each_promise_has_a_test_that_is_there():
    page = (ROOT / "docs" / "promises.md").read_text()
    promised = page.split("## What is not promised")[0]
    rows = [line for line in promised.splitlines() if line.startswith("| ") and "held by" not in line]
    assert len(rows) > 20
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::([\w:]+)`", row)
        assert named, f"no test holds: {row}"
        for path, test in named:
            assert test in names_of_tests(ROOT / path), f"{path}::{test} is named in docs/promises.md and is not there"

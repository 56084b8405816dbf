"""Killed commands can be repeated, and give what they give undisturbed: `make crash` does more."""

import shutil

import pytest
from robustness import crash

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc)")


def attacked(tmp_path, *options):
    page = tmp_path / "page.md"
    assert crash.main([*options, "--out", str(page)]) == 0
    return page.read_text()


def test_commands_that_write_one_file_or_many(tmp_path):
    page = attacked(tmp_path, "--kills", "8", "--fills", "1", "--only", "encode", "--only", "export")
    assert "| encode | 4 | " in page


@pytest.mark.slow
def test_every_command(tmp_path):
    page = attacked(tmp_path, "--kills", str(4 * len(crash.COMMANDS)), "--fills", "2")
    assert all(f"| {name} | 4 | " in page for name in crash.COMMANDS)

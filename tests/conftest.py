"""Shared by all tests."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

from real_data import MISSING

# The tensors here are small, and two threads that wait for each other on a busy machine are many times slower than one.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _own_cache() -> Iterator[None]:
    """Decoded pictures of the tests, and of the processes that they start, stay out of the user's cache."""
    before = os.environ.get("SQVAE_CACHE")
    os.environ["SQVAE_CACHE"] = folder = tempfile.mkdtemp(prefix="sqvae-cache-")
    yield
    shutil.rmtree(folder, ignore_errors=True)
    if before is None:
        del os.environ["SQVAE_CACHE"]
    else:
        os.environ["SQVAE_CACHE"] = before


BROWSER = "browser"
"""How the reason begins for which a test is skipped where there is no browser."""

WHAT_THEY_NEED = {
    MISSING: "real data sets (SQVAE_DATA=DIR make test, where DIR holds mnist, cifar10 and so on: `sqvae list data`)",
    BROWSER: "a browser (scripts/system-packages installs Chromium)",
    "could not import": "a package that `make test` does not install (each reason above names it)",
    "Inception's weights": "the weights of Inception (SQVAE_INCEPTION names their file)",
}
"""What tests are skipped without and how to get it, by how the reason begins."""


def in_words(reasons: list[str]) -> str:
    """What was skipped, for want of what, and how to get it: one line."""
    if not reasons:
        return "No test was skipped."
    needs: Counter[str] = Counter()
    for reason in reasons:
        known = (need for start, need in WHAT_THEY_NEED.items() if reason.startswith(start))
        needs[next(known, "what this system or user does not have (each reason above says what)")] += 1
    parts = "; ".join(f"{number} without {need}" for need, number in needs.most_common())
    return f"{len(reasons)} {'test was' if len(reasons) == 1 else 'tests were'} skipped: {parts}."


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line says what was skipped; pytest's own counts stand above it."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput") or config.getoption("collectonly"):
        return
    skipped = reporter.stats.get("skipped", [])
    reasons = [str(report.longrepr[2]).removeprefix("Skipped: ") for report in skipped]
    reporter.write_line(in_words(reasons))


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts without the few steps that they measure, of models that are too large for a test."""
    import sqvae.runs.run as runs

    monkeypatch.setattr(runs, "seconds_a_step", lambda training: 0.1)

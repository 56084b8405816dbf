"""How soon the page of `sqvae explore` answers, in a real browser: from the click to the changed picture.

    make demo                                                    trains a run of 28x28 digits
    python -m benchmarks.exploring --run demo/run                prints the table
    python -m benchmarks.exploring --run demo/run --out FILE.md  writes it as well

It needs Chromium and Playwright.
"""

import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.side_by_side import Result, arguments, milliseconds, report
from sqvae.modalities.images.tokenizer import load_tokenizer

LIMIT = 0.5
"""Seconds that an answer may take."""

PICTURE = 'figure:has(b:text-is("Reconstruction")) image'


@contextmanager
def explored(run: Path) -> Iterator[str]:
    """The address of a run's page, which is there within the block."""
    command = [sys.executable, "-u", "-m", "sqvae", "explore", str(run), "--no-open"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        addresses = (re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line) for line in server.stdout)
        address = next((found[0] for found in addresses if found), None)
        if address is None:
            raise SystemExit(f"`sqvae explore {run}` did not start")
        yield address
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)


def until_changed(page: Any, act: Callable[[], None]) -> float:
    """Seconds from an act to another reconstruction."""
    from playwright.sync_api import expect

    before, start = page.locator(PICTURE).get_attribute("href") or "", time.perf_counter()
    act()
    expect(page.locator(PICTURE)).not_to_have_attribute("href", before)
    return time.perf_counter() - start


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def answers(browser: Any, address: str, rounds: int) -> dict[str, list[float]]:
    """What takes how long, round by round."""
    page = browser.new_page()
    page.goto(address)
    page.locator(PICTURE).wait_for()
    took: dict[str, list[float]] = {"a code is replaced": [], "it is taken back": [], "another picture": []}
    for number in range(rounds):
        another = page.get_by_role("button", name="Another held-out").first
        took["another picture"].append(until_changed(page, another.click))
        page.locator("#position-24").click()
        page.get_by_role("spinbutton", name="code").fill(str(number))
        took["a code is replaced"].append(until_changed(page, page.get_by_role("button", name="Replace").click))
        took["it is taken back"].append(until_changed(page, page.get_by_role("button", name="Undo").click))
    page.close()
    return took


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__, argv, run="a run of digits, such as `make demo` trains")
    rounds = 2 if options.quick else 20
    with explored(options.run) as address, browsing() as browser:
        took = answers(browser, address, rounds)
    results = []
    for what, seconds in took.items():
        middle, longest = statistics.median(seconds), max(seconds)
        met = middle <= LIMIT
        row = Result(what, milliseconds(middle), milliseconds(longest), f"{longest / middle:.2f}", "<= 500 ms", met)
        results.append(row)
    tokenizer = load_tokenizer(options.run)
    _, height, width = tokenizer.shape
    setting = (
        f"First the median of {rounds} answers in headless Chromium, then the longest. The run: "
        f"{tokenizer.experiment.recipe}, {height}x{width}, K = {tokenizer.codebook_size}."
    )
    report("Benchmarks of the page", setting, results, options.out, by="python -m benchmarks.exploring")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The page in a real browser: Chromium, driven as a person would use it, with the mouse and without."""

import base64
import io
import itertools
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from benchmarks import exploring
from PIL import Image

from runs import tiny, write_pictures
from servers import explored
from sqvae.config import SpeechSettings
from sqvae.runs import train

pytest.importorskip("nicegui", reason="the page needs NiceGUI: pip install -e '.[explore]'")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright drives the browser")

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("browser: there is no Chromium on this machine", allow_module_level=True)

OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
DROP = """([zone, name, content]) => {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const carried = new DataTransfer();
  carried.items.add(new File([bytes], name));
  zone.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("browsed")
    pictures = write_pictures(root / "pictures.npy", side=28)
    train(tiny(pictures, epochs=1), root / "run", announce=lambda text: None)
    with explored(root / "run") as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=OPTIONS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser, server):
    """A tab on the page; in the end, it must have asked nobody else, and nothing must have gone wrong in it."""
    tab = opened(browser, server)
    yield tab
    tab.close()
    assert tab.asked
    assert all(address.startswith((f"{server.address}/", "data:")) for address in tab.asked)
    assert tab.wrong == []


def opened(browser, server, width: int = 1200):
    tab = browser.new_page(viewport={"width": width, "height": 900})
    tab.asked, tab.wrong = [], []
    tab.on("request", lambda request: tab.asked.append(request.url))
    tab.on("websocket", lambda wire: tab.asked.append(wire.url.replace("ws://", "http://")))
    tab.on("pageerror", lambda failure: tab.wrong.append(str(failure)))
    tab.goto(server.page)
    tab.wait_for_selector(".codes .cell")
    return tab


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory) -> Path:
    """Where screenshots are kept."""
    folder = Path(os.environ.get("SQVAE_ARTEFACTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def drop(page, name: str, content: bytes, zone: str = ".drop") -> None:
    page.evaluate(DROP, [page.query_selector(zone), name, base64.b64encode(content).decode()])


def picture(level: int = 230) -> bytes:
    file = io.BytesIO()
    image = Image.new("L", (28, 28), 20)
    image.paste(level, (3, 3, 17, 17))
    image.save(file, "png")
    return file.getvalue()


def shown(page, title: str) -> str | None:
    """The picture with a title, as its address."""
    return page.locator(f'figure:has(b:text-is("{title}")) image').get_attribute("href")


def wait_for_change(page, title: str, before: str | None) -> None:
    playwright.expect(page.locator(f'figure:has(b:text-is("{title}")) image')).not_to_have_attribute("href", before)


def said(page) -> str:
    return page.locator(".drop .message").first.inner_text()


def test_a_dropped_picture_is_seen_and_its_codes_can_be_changed(page, artefacts):
    before = shown(page, "Original")
    drop(page, "mine.png", picture())
    wait_for_change(page, "Original", before)
    playwright.expect(page.locator(".drop .message").first).to_have_text("mine.png: loaded")
    page.locator(".codes .cell").first.wait_for()
    check_that_cells_tile(page, '[aria-label^="Original"] image')

    page.locator(".codes .cell").nth(2).click()
    playwright.expect(page.get_by_role("heading", name="row 1, column 3")).to_be_visible()
    assert page.locator(".codes .chosen").get_attribute("data-position") == "2"

    encoded = shown(page, "Reconstruction")
    page.screenshot(path=artefacts / "explore-chosen.png", full_page=True)
    page.locator(".near button").last.click()
    wait_for_change(page, "Reconstruction", encoded)
    playwright.expect(page.get_by_text("1 position changed")).to_be_visible()
    page.screenshot(path=artefacts / "explore-changed.png", full_page=True)

    page.get_by_role("button", name="Undo").click()
    playwright.expect(page.get_by_text("as encoded")).to_be_visible()
    assert shown(page, "Reconstruction") == encoded


def cells_of(page) -> list[dict[str, float]]:
    """The places of cells on the screen, without the thin lines around them."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".codes .cell > rect:first-child")].map((cell) => {
          const box = cell.getBBox(), onto = cell.getScreenCTM();
          const corner = new DOMPoint(box.x, box.y).matrixTransform(onto);
          return { x: corner.x, y: corner.y, width: box.width * onto.a, height: box.height * onto.d }; })"""
    )


def check_that_cells_tile(page, whole: str) -> None:
    """Cells meet without gaps, lie as the picture does, and answer wherever one points."""
    cells = cells_of(page)
    shown, drawn = page.locator(whole).bounding_box(), page.locator("svg.codes").bounding_box()
    assert (drawn["width"], drawn["height"]) == pytest.approx((shown["width"], shown["height"]), abs=1)
    area = sum(cell["width"] * cell["height"] for cell in cells)
    assert area == pytest.approx(drawn["width"] * drawn["height"], rel=0.01)
    for one, right in itertools.pairwise(cells[:7]):
        assert one["x"] + one["width"] == pytest.approx(right["x"], abs=0.05)
        assert one["y"] + one["height"] == pytest.approx(cells[7]["y"], abs=0.05)
    missed = page.evaluate(
        """() => { const box = document.querySelector("svg.codes").getBoundingClientRect(); let missed = 0;
          for (let across = 7; across < box.width - 7; across += 1)
            missed += !document.elementFromPoint(box.x + across, box.y + box.height / 2)?.closest("[data-position]");
          return missed; }"""
    )
    assert missed == 0


def colourful(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "orange").save(file, "png")
    return file.getvalue()


def test_what_was_done_to_a_picture_is_said_beside_it(page):
    before = shown(page, "Original")
    drop(page, "wide.png", colourful(64, 48))
    wait_for_change(page, "Original", before)
    said = "cropped from 64x48 to its centre square, 48x48, resized to 28x28, made grey"
    playwright.expect(page.get_by_text(f"wide.png ({said})")).to_be_visible()
    playwright.expect(page.locator(".drop .message").first).to_have_text(f"wide.png: {said}")
    playwright.expect(page.locator(".key").first).to_have_text("\N{MINUS SIGN}0.5, darkerequal+0.5, brighter")


@pytest.fixture(scope="module")
def speech_server(tmp_path_factory):
    root = tmp_path_factory.mktemp("heard")
    random = np.random.default_rng(0)
    for speaker, number in itertools.product(("anna", "ben"), range(6)):
        path = root / "voices" / speaker / f"{number}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, 0.1 * random.standard_normal(8000), 16_000)
    base = tiny(root / "voices", epochs=1)
    small = SpeechSettings(channels=8, hidden=8, speaker_dim=4, segments_per_epoch=32)
    experiment = replace(base, data=replace(base.data, kind="speech"), speech=small)
    train(experiment, root / "run", announce=lambda text: None)
    with explored(root / "run") as found:
        yield found


@pytest.mark.parametrize("width", [1200, 360])
def test_codes_of_speech_lie_below_the_spectrogram_and_both_sounds_play(browser, speech_server, artefacts, width):
    page = opened(browser, speech_server, width)
    whole, strip, seconds = (
        page.locator(one).first.bounding_box() for one in ("svg.strip:not(.codes)", "svg.codes.strip", "svg.seconds")
    )
    for other in (strip, seconds):
        assert (other["x"], other["width"]) == pytest.approx((whole["x"], whole["width"]), abs=0.5)
    cells = cells_of(page)
    assert len(cells) == 26  # of 51 frames
    assert cells[0]["x"] == pytest.approx(whole["x"], abs=0.5)
    assert cells[0]["width"] == pytest.approx(whole["width"] * 2 / 51, rel=0.01)
    for one, right in itertools.pairwise(cells):
        assert one["x"] + one["width"] == pytest.approx(right["x"], abs=0.05)
    assert cells[-1]["x"] + cells[-1]["width"] == pytest.approx(whole["x"] + whole["width"], abs=0.5)

    page.get_by_role("button", name="Listen").click()
    playwright.expect(page.locator("audio")).to_have_count(2)
    page.wait_for_function("[...document.querySelectorAll('audio')].every(sound => sound.readyState > 0)")
    heard = page.evaluate("[...document.querySelectorAll('audio')].map(one => [one.ariaLabel, one.duration])")
    assert [label.split(",")[0] for label, _ in heard] == ["Original", "Reconstruction from the codes"]
    assert [length for _, length in heard] == pytest.approx([0.5, 0.5], abs=0.001)
    page.screenshot(path=artefacts / f"explore-speech-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.wrong == []
    page.close()


def test_the_benchmark_measures_answers(browser, server):
    took = exploring.answers(browser, server.page, rounds=1)
    assert len(took) == 3
    assert all(seconds > 0 for own in took.values() for seconds in own)


def test_all_of_it_without_a_mouse(page):
    """From the top: to the map, to a place in it, to another code, and back."""
    page.keyboard.press("Tab")
    focused = "document.activeElement"
    for _ in range(20):
        if page.evaluate(f"{focused}.getAttribute('role')") == "grid":
            break
        page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.classList.contains('map')")
    assert page.evaluate(f"getComputedStyle({focused}).outlineStyle") == "solid"

    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(f"{focused}.getAttribute('aria-activedescendant')") == "position-8"
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # there is nothing more to the right
    page.keyboard.press("Enter")
    playwright.expect(page.get_by_role("heading", name="row 2, column 7")).to_be_visible()
    assert page.evaluate(f"{focused}.classList.contains('map')")  # which has kept the focus

    before = shown(page, "Reconstruction")
    page.keyboard.press("Tab")
    for _ in range(7):
        page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.closest('.near') !== null")
    page.keyboard.press("Enter")
    wait_for_change(page, "Reconstruction", before)

    page.get_by_role("spinbutton", name="code").focus()
    page.keyboard.type("3")
    page.keyboard.press("Enter")
    playwright.expect(page.get_by_role("heading", name="Code 3, row 2, column 7")).to_be_visible()


def test_a_narrow_screen_shows_all_without_scrolling_sideways(browser, server, artefacts):
    page = opened(browser, server, width=360)
    page.locator(".codes .cell").first.click()
    page.wait_for_selector(".codes .chosen")
    for tab, part in {
        "Example": ".near img",
        "Codebook": ".tiles button",
        "Training": ".chart",
        "Generation": ".drop",
    }.items():
        page.get_by_role("tab", name=tab).click()
        page.locator(part).last.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, tab
        page.screenshot(path=artefacts / f"explore-narrow-{tab.lower()}.png", full_page=True)
    page.close()


def test_every_picture_has_words_and_every_field_a_label(page):
    page.locator(".codes .cell").first.click()
    page.wait_for_selector(".near img")
    for tab in ("Example", "Codebook", "Training", "Generation"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(300)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("img, svg[role=img], input, button, [role=grid]")]
              .filter((one) => one.offsetParent !== null || one instanceof SVGElement)
              .filter((one) => !(one.alt || one.getAttribute("aria-label") || one.closest("label") || one.innerText
                                 || one.querySelector?.("img[alt]")))
              .map((one) => one.outerHTML.slice(0, 200))"""
        )
        assert nameless == []


def test_codes_and_training_and_the_way_between_two(page, artefacts):
    page.get_by_role("tab", name="Codebook").click()
    playwright.expect(page.get_by_text("Perplexity of the codes")).to_be_visible()
    playwright.expect(page.locator(".tiles:not(.near) button")).to_have_count(16)
    page.locator(".dots .hot").nth(5).click()
    playwright.expect(page.get_by_role("heading", name="Code 5 and its nearest codes")).to_be_visible()
    page.screenshot(path=artefacts / "explore-codes.png", full_page=True)

    page.get_by_role("tab", name="Training").click()
    playwright.expect(page.get_by_text("self-annealing").first).to_be_visible()

    page.get_by_role("tab", name="Generation").click()
    playwright.expect(page.get_by_text("sqvae train-prior")).to_be_visible()
    drop(page, "end.png", picture(90), ".q-tab-panel .drop")
    playwright.expect(page.locator(".between svg")).to_have_count(7)
    playwright.expect(page.get_by_text("to end.png, in 7 steps.")).to_be_visible()


@pytest.mark.parametrize("name", ["../../etc/passwd", "<img src=x onerror='document.title=1'>.png"])
def test_what_is_no_picture_is_refused_in_words(page, name):
    title, before = page.title(), shown(page, "Original")
    drop(page, name, b"root:x:0:0:root:/root:/bin/bash\n")
    playwright.expect(page.locator(".drop .refused")).to_have_text(
        f"{name}: refused. not an image that Pillow can read"
    )
    drop(page, name, picture())
    wait_for_change(page, "Original", before)
    assert page.title() == title
    playwright.expect(page.get_by_text(name, exact=True).first).to_be_visible()


def test_a_file_that_is_too_large_is_not_even_sent(page):
    number = len(page.asked)
    page.evaluate(
        """zone => { const carried = new DataTransfer();
          carried.items.add(new File([new Uint8Array(33 * 2 ** 20)], "large.png"));
          zone.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true })); }""",
        page.query_selector(".drop"),
    )
    playwright.expect(page.locator(".drop .refused")).to_contain_text("It has 33 MB, and a file may have at most 32 MB")
    assert len(page.asked) == number


def test_tabs_are_independent_and_forgotten_when_they_are_closed(page, browser, server):
    other = opened(browser, server)
    own, before = shown(page, "Original"), shown(other, "Original")
    assert own == before
    drop(other, "mine.png", picture())
    wait_for_change(other, "Original", before)
    assert shown(page, "Original") == own

    address = other.locator(".drop").first.get_attribute("data-address")
    assert server.ask("POST", address, picture())[0] == 200
    other.close()
    deadline = time.monotonic() + 30
    while server.ask("POST", address, b"nothing")[0] != 404:
        assert time.monotonic() < deadline, "the closed tab is still known"
        time.sleep(0.5)
    assert said(page).startswith("Drop a picture here")

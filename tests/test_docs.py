"""The documentation as a site: it builds without a warning, holds what it should, and asks nothing of other hosts."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import sqvae

ROOT = Path(__file__).parents[1]
pytest.importorskip("sphinx", reason="the documentation's tools are not installed: pip install -e '.[docs]'")
pytest.importorskip("furo", reason="the documentation's tools are not installed: pip install -e '.[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(ROOT / "docs"), str(out)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out


class Requests(HTMLParser):
    """What a browser fetches when it opens a page, as opposed to what a person may click."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        names = ("src", "srcset", "data", "poster") if tag != "link" else ("href",)
        self.addresses += [given[name] for name in names if given.get(name)]


def test_all_pages_are_there(site):
    part = "vectors-digits.md"  # included by another page
    pages = {Path(page.name).with_suffix(".html") for page in (ROOT / "docs").glob("*.md") if page.name != part}
    assert len(pages) > 15
    for page in {*pages, Path("demo/results.html"), Path("api/quantizers.html")}:
        assert (site / page).is_file(), page


def test_no_page_asks_another_host(site):
    requests = Requests()
    for page in site.rglob("*.html"):
        requests.feed(page.read_text())
    assert any(address.endswith("furo.css") or "furo.css?" in address for address in requests.addresses)
    outside = [address for address in requests.addresses if re.match(r"(https?:)?//", address)]
    assert not outside
    for style in site.rglob("*.css"):
        assert not re.search(r"""(url\(|@import)\s*["']?(https?:)?//""", style.read_text()), style.name


def test_formulas_are_drawn_by_the_browser_itself(site):
    for page, number in (("api/quantizers.html", 20), ("self-annealing.html", 10), ("notation.html", 30)):
        text = (site / page).read_text()
        formula = re.compile(r"<math\b.*?</math>", flags=re.DOTALL)
        assert len(formula.findall(text)) >= number, page
        assert not re.search(r"\\(frac|mathcal|sigma|varphi)|mathjax\S*\.js", formula.sub("", text)), page


def test_every_public_name_is_in_the_reference(site):
    reference = "".join(page.read_text() for page in (site / "api").glob("*.html"))
    first = (site / "api" / "index.html").read_text()
    for name in sqvae.__all__:
        assert re.search(rf'id="sqvae\.[\w.]+\.{name}"', reference), name
        assert f">{name}<" in first or f">{name}()<" in first, name
    for room in ("priors.PixelCNN", "networks.conv_encoder", "data.speech.read_audio", "training.Plan"):
        assert f'id="sqvae.{room}"' in reference
    assert "the number of codes" in reference  # an argument's description


def test_commands_and_measurements_are_included(site):
    commands = (site / "commands.html").read_text()
    for name in ("train", "encode", "sample", "reproduce"):
        assert f'id="sqvae-{name}"' in commands
    assert "--dry-run" in commands
    assert "VQ-VAE (EMA + code reset)" in (site / "choose.html").read_text()
    assert "fixed at 0.25" in (site / "self-annealing.html").read_text()

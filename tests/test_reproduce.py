"""The paper's tables and figures, by one command each: planned as the paper has them, carried out small."""

import json
import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from sqvae.cli import main
from sqvae.experiment import Record
from sqvae.recipes import ARTEFACTS, RECIPES, SCALES, Results, chosen, plan
from sqvae.recipes.methods import METHODS, vector_dimension
from sqvae.reports import mean_and_deviation


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """A folder of results that all tests of this file add to."""
    return tmp_path_factory.mktemp("results")


@pytest.mark.parametrize("name", ARTEFACTS)
def test_everything_has_a_smoke_version_that_draws_all_of_it(reproduced, name, capsys):
    assert main(["reproduce", name, "--scale", "smoke", "-o", str(reproduced)]) == 0
    page = (reproduced / "index.html").read_text()
    assert f'id="{name}-smoke"' in page
    assert "http" not in re.sub(r'base64,[^"]*', "", page)  # no outside requests
    planned = chosen(plan(ARTEFACTS[name], SCALES["smoke"], [0]), [], ARTEFACTS[name].extra)
    for one in planned:
        assert (reproduced / "records" / f"{one.name}.json").exists()
    numbers = json.loads((reproduced / f"{name}-smoke.json").read_text())
    if name.startswith("figure"):
        assert page.count("data:image/svg+xml") >= 1
        with Image.open(reproduced / f"{name}-smoke.png") as picture:
            assert np.asarray(picture.convert("L")).std() > 10  # something is drawn
        assert (reproduced / f"{name}-smoke.svg").read_text().lstrip().startswith("<?xml")
    if name.startswith("table"):
        methods = {METHODS[one.tags["method"]].label for one in planned}
        assert {row[0] for row in numbers["tables"][0]["rows"]} == methods
    assert "A smoke run" in (reproduced / "results.md").read_text()
    before = {path: path.stat().st_mtime_ns for path in (reproduced / "records").iterdir()}
    capsys.readouterr()
    assert main(["reproduce", name, "--scale", "smoke", "-o", str(reproduced)]) == 0
    assert {path: path.stat().st_mtime_ns for path in (reproduced / "records").iterdir()} == before
    assert "1/" not in capsys.readouterr().err  # nothing was run


def test_pages_are_made_from_the_records_alone(reproduced, tmp_path):
    if not list(reproduced.glob("records/mnist-sq-vae-1-two-layer*")):
        main(["reproduce", "figure-2", "--scale", "smoke", "-o", str(reproduced)])
    shutil.copytree(reproduced / "records", tmp_path / "copy" / "records")
    page = tmp_path / "page.md"
    assert main(["reproduce", "--no-run", "-o", str(tmp_path / "copy"), "--page", str(page)]) == 0
    text = page.read_text()
    assert "](copy/figure-2-smoke.png)" in text
    assert (tmp_path / "copy" / "figure-2-smoke.png").exists()
    assert not (tmp_path / "copy" / "runs").exists()


def test_several_seeds_are_averaged(reproduced, capsys):
    arguments = ["reproduce", "figure-2", "--scale", "smoke", "--seeds", "2", "--only", "sq-vae-1"]
    assert main([*arguments, "-o", str(reproduced)]) == 0
    table = json.loads((reproduced / "figure-2-smoke.json").read_text())["tables"][0]
    (trained,) = (row for row in table["rows"] if row[0] == "trained")
    values = [
        json.loads(path.read_text())["measures"]["mse"]
        for path in reproduced.glob("records/mnist-sq-vae-1-two-layer-smoke-seed?-*.json")
    ]
    assert len(values) == 2
    mean, deviation = np.mean(values), np.std(values, ddof=1)
    assert trained[1] == f"{1000 * mean:.3f} ± {1000 * deviation:.3f}"


def test_failures_are_told_at_the_end_and_the_rest_is_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SQVAE_DATA", str(tmp_path))  # where there is no data
    code = main(["reproduce", "table-2", "--only", "sq-vae-1", "-o", str(tmp_path / "out")])
    error = capsys.readouterr().err
    assert code == 1
    assert "failed: celeba sq-vae-1" in error
    assert "celeba is not in" in error
    assert "--data DIR" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure-3"], "the table or figure 'figure-3' is unknown"),
        ([], "say what to reproduce: figure-2"),
        (["figure-2", "--only", "vq"], "--only vq: there is no such row; there is mnist, sq-vae-1"),
        (["figure-5", "--data", "cifar10"], "it is about mnist, fashion-mnist, cifar10"),
        (["table-2", "--data", "nowhere"], "--data nowhere: there is no such folder"),
        (["--no-run"], "holds no record of a finished run yet"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message, tmp_path, capsys):
    assert main(["reproduce", *arguments, "-o", str(tmp_path / "out")]) == 1
    assert message in capsys.readouterr().err


def test_dry_run_lists_the_runs_that_are_asked_for(capsys):
    assert main(["reproduce", "figure-5", "--only", "mnist", "--only", "k=16", "--only", "k=32", "--dry-run"]) == 0
    lines = capsys.readouterr().out.split("\n")[:-1]
    assert len(lines) == 2 * 4
    assert all(line.startswith("mnist ") and ("k=16 " in line or "k=32 " in line) for line in lines)


def test_extra_rows_come_only_when_named():
    artefact = ARTEFACTS["figure-5"]
    every = plan(artefact, SCALES["short"], [0])
    usual = chosen(every, ["mnist"], artefact.extra)
    assert {one.tags["method"] for one in usual} == {"sq-vae-1", "vq-vae-ema", "vq-vae-ema-reset", "fixed"}
    assert {one.tags["method"] for one in chosen(every, ["vq-vae-ema-closed"], artefact.extra)} == {"vq-vae-ema-closed"}


def of(name, scale="paper", **tags):
    (found,) = (
        one.experiment
        for one in plan(ARTEFACTS[name], SCALES[scale], [0])
        if all(one.tags.get(kind) == tag for kind, tag in tags.items())
    )
    return found


def test_the_paper_s_schedule_is_the_paper_s():
    ours = of("figure-5", data="mnist", method="sq-vae-1", k="128", d="64")
    assert ours == replace(RECIPES["mnist"](), seed=0)
    theirs = of("figure-5", data="mnist", method="vq-vae-ema", k="128", d="64")
    assert (theirs.training.learning_rate, theirs.training.epochs, theirs.quantizer.name) == (3e-4, 100, "vq-ema")
    assert (theirs.likelihood.variance, theirs.likelihood.latent_terms) == ("fixed", "mean")
    stronger = of("figure-5", data="mnist", method="vq-vae-ema-closed", k="128", d="64")
    assert (stronger.likelihood.variance, stronger.likelihood.latent_terms) == ("closed_form", "sum")
    assert of("figure-5", data="mnist", method="fixed", k="128", d="64").quantizer.initial_variance is None  # means 1
    narrow = of("figure-5", data="fashion-mnist", method="sq-vae-1", k="256", d="16")
    assert (narrow.network.widths, narrow.network.blocks, narrow.quantizer.dim) == ((8, 16), 6, 16)
    assert of("table-2", method="sq-vae-3").training.epochs == 70


def test_the_vae_s_vector_takes_as_many_bits_as_the_codes():
    assert vector_dimension(16 * 16, 512) == 72
    vae = of("table-2", method="vae")
    assert (vae.quantizer.dim, vae.network.map_dim) == (72, 64)


@pytest.mark.parametrize("scale", ["short", "smoke"])
@pytest.mark.parametrize("name", ARTEFACTS)
def test_all_methods_take_the_same_steps(name, scale):
    steps: dict[str, set[tuple[int, int]]] = {}
    for one in plan(ARTEFACTS[name], SCALES[scale], [0]):
        training = one.experiment.training
        steps.setdefault(one.tags["data"], set()).add((training.epochs, training.batch_size))
    assert all(len(different) == 1 for different in steps.values())


def record(**changes):
    values = {
        "name": "x",
        "tags": {},
        "experiment": {"data": {"source": "mnist", "size": 28}, "training": {"epochs": 1}},
        "pictures": {"train": 1, "validation": 1, "test": 1},
        "measures": {},
        "counts": [],
        "best_epoch": 1,
        "steps": 10,
        "seconds": 1.0,
        "training": {"step": [0, 5, 10]},
        "validation": {},
        "machine": {"processor": "p", "threads": "1"},
        "fingerprint": "f",
    }
    return Record(**{**values, **changes})


def test_claims_are_decided_by_the_records(tmp_path):
    """Perplexity and error of SQ-VAE at one K spoil what they should, and nothing else."""

    def verdicts(use_at_32, error_at_32):
        records = []
        for method in ("sq-vae-1", "vq-vae-ema", "vq-vae-ema-reset", "fixed"):
            for size in (16, 32):
                own = method == "sq-vae-1"
                use, error = (0.9 * size, 1 / size) if own else (0.5 * size, 2 / size)
                if own and size == 32:
                    use, error = use_at_32, error_at_32
                tags = {"data": "mnist", "method": method, "k": str(size), "d": "64", "seed": "0"}
                records.append(record(tags=tags, measures={"perplexity": use, "mse": error}))
        report = ARTEFACTS["figure-5"].report(Results(SCALES["short"], 8, records, tmp_path))
        return [claim.holds for claim in report.claims]

    assert verdicts(28.8, 1 / 32) == [True, True, True, True]
    assert verdicts(10.0, 1 / 32) == [False, True, False, True]
    assert verdicts(18.0, 1 / 32) == [True, True, False, True]
    assert verdicts(28.8, 3 / 32) == [True, False, True, False]


def test_self_annealing_is_decided_by_the_curves(tmp_path):
    def verdicts(trained_entropy, fixed_entropy):
        curves = {"step": [0, 5, 10], "variance": [10, 5, 1], "decoder_variance": [1, 0.5, 0.1]}
        measures = {"mse": 1.0, "perplexity": 3.0}
        ours = record(
            tags={"data": "mnist", "method": "sq-vae-1", "seed": "0"},
            measures=measures,
            training={**curves, "relative_variance": [10, 5, 1], "entropy_per_position": trained_entropy},
        )
        fixed = record(
            tags={"data": "mnist", "method": "fixed", "variance": "1", "seed": "0"},
            measures={**measures, "mse": 2.0},
            training={**curves, "entropy_per_position": fixed_entropy},
        )
        report = ARTEFACTS["figure-2"].report(Results(SCALES["short"], 2, [ours, fixed], tmp_path))
        return [claim.holds for claim in report.claims]

    assert verdicts([4, 2, 1], [4, 4, 4]) == [True, True, True, True, True]
    assert verdicts([4, 4, 5], [4, 4, 4]) == [True, True, False, False, True]
    assert verdicts([4, 2, 1], [4, 2, 0.5]) == [True, True, True, False, True]


def test_means_and_deviations():
    assert mean_and_deviation([]) == "-"
    assert mean_and_deviation([1.234]) == "1.23"
    assert mean_and_deviation([1.0, 2.0], 1) == f"1.5 ± {math.sqrt(0.5):.1f}"

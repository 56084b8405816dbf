"""The command line, as a person uses it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from PIL import Image

from runs import said
from sqvae.cli import main
from sqvae.cli.app import app
from sqvae.cli.groups import GROUPS
from sqvae.cli.reference import GENERATOR, commands_page
from sqvae.recipes import RECIPES
from sqvae.training import read_records

SMALL = [
    *("--set", "network.widths=4,8", "--set", "network.mix=false", "--set", "network.blocks=1"),
    *("--set", "quantizer.dim=8", "--set", "quantizer.codebook_size=16", "--set", "training.passes_per_epoch=2"),
    *("--set", "training.log_every=2", "--set", "training.threads=1"),
]


EVERY_STEP = ["data.size=16", "training.passes_per_epoch=8", "training.log_every=1", "training.schedule=constant"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Pictures of many sizes and kinds in two folders, with a broken one and a text among them."""
    root = tmp_path_factory.mktemp("mine") / "photos"
    random = np.random.default_rng(0)
    for number in range(60):
        height, width = (int(side) for side in random.integers(20, 90, 2))
        picture = Image.fromarray(random.integers(0, 255, (height, width, 3), dtype=np.uint8))
        mode = ("RGB", "L", "RGBA", "P", "1")[number % 5]
        path = root / ("holiday" if number % 2 else "home") / f"picture {number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.convert(mode).save(path)
    (root / "home" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not much of a picture")
    (root / "notes.txt").write_text("a text")
    return root


@pytest.fixture(scope="module")
def run(pictures, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", "--data", str(pictures), "--out", str(out), "--epochs", "2", *SMALL]) == 0
    return out


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def commands() -> list[str]:
    return [command.name or command.callback.__name__ for command in app.registered_commands]


def test_the_commands_are_those_we_promise():
    assert set(commands()) >= {"train", "resume", "evaluate", "reconstruct", "encode", "decode", "inspect", "list"}


@pytest.mark.parametrize("command", commands())
def test_every_command_has_help_with_an_example(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"Example: sqvae {command}" in said(capsys)


NEVER_REPLACED = {"train": "a run", "train-prior": "a prior"}


def test_every_command_that_writes_somewhere_takes_o_and_overwrite():
    for name, command in typer.main.get_command(app).commands.items():
        options = {option for parameter in command.params for option in parameter.opts}
        if "--out" in options:
            assert "-o" in options, name
            assert "--overwrite" in options or name in NEVER_REPLACED, name


def test_everything_that_a_command_takes_is_described():
    for name, command in typer.main.get_command(app).commands.items():
        for parameter in command.params:
            assert parameter.help, f"{name} {parameter.name}"
            if parameter.param_type_name != "option" or not parameter.is_flag:
                assert parameter.metavar, f"{name} {parameter.name}: say in a word what is put there"
            if "--prior" in parameter.opts:
                assert parameter.metavar == "DIR", f"{name}: --prior is the folder of a prior"


def test_commands_come_in_groups_in_the_order_of_use(capsys):
    listed = [name for names in GROUPS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert commands() == listed
    assert main(["--help"]) == 0
    printed = said(capsys)
    places = [printed.index(f" {title} ──") for title in GROUPS]
    assert places == sorted(places)


@pytest.mark.parametrize("width", ["80", "120"])
def test_help_names_no_types_and_cuts_nothing_off(width, capsys, monkeypatch):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", int(width))
    for command in ([], *([name] for name in commands())):
        assert main([*command, "--help"]) == 0
        printed = capsys.readouterr().out
        assert max(map(len, printed.splitlines())) <= int(width)
        for word in ("<bool>", "BOOL", "<path>", "<str>", "<int", "<list", "{", "…"):
            assert word not in printed, f"{command}: {word}"


def test_the_page_of_commands_is_what_help_says():
    page = Path(__file__).parents[1] / "docs" / "commands.md"
    assert page.read_text(encoding="utf-8") == commands_page(), (
        f"docs/commands.md is stale: renew it with `{GENERATOR}`"
    )


def test_the_examples_of_help_are_commands():
    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        program, typed, *arguments = shlex.split(command.epilog.removeprefix("Example: "))
        assert (program, typed) == ("sqvae", name)
        command.make_context(name, arguments)


def test_help_does_not_wait_for_torch():
    code = "import sys; from sqvae.cli import main; main(['train', '--help']); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("False")


def test_from_a_folder_of_pictures_to_decoded_pictures(pictures, run, tmp_path, capsys):
    assert main(["evaluate", str(run)]) == 0
    printed = said(capsys)
    assert "MSE x 1000" in printed
    assert "6 test pictures" in printed
    assert main(["encode", str(run), str(pictures), "-o", "codes.safetensors"]) == 0
    printed = said(capsys)
    assert "60 pictures, 16x16 codes each, below 16" in printed
    assert "left out: home/broken.jpg" in printed
    assert main(["decode", str(run), "codes.safetensors", "-o", "decoded"]) == 0
    decoded = sorted(path.relative_to("decoded").as_posix() for path in Path("decoded").rglob("*.png"))
    assert decoded == sorted(path.relative_to(pictures).as_posix() for path in pictures.rglob("*.png"))
    with Image.open("decoded/holiday/picture 1.png") as picture:
        assert picture.size == (64, 64)
        assert picture.mode == "RGB"
    one = str(pictures / "home" / "picture 0.png")
    assert main(["reconstruct", str(run), one, "-o", "rebuilt"]) == 0
    with Image.open("rebuilt/picture 0.png") as rebuilt, Image.open("decoded/home/picture 0.png") as same:
        # Alone or among others a picture comes out the same, up to rounding.
        assert np.abs(np.asarray(rebuilt).astype(int) - np.asarray(same)).max() <= 1
    capsys.readouterr()
    assert main(["inspect", str(run)]) == 0
    printed = said(capsys)
    for words in (
        "a Gaussian SQ-VAE (I)",
        "a colour image of 64x64 becomes 16x16 codes: 1,024 bits instead of 98,304, 96 times fewer",
        "all 2 epochs are done",
        "most used:",
        "Self-annealing variance of the quantization:",
    ):
        assert words in printed


def test_training_says_what_it_does(pictures, run, capsys):
    """What was decided about the data, what was left out, each epoch, and what to do next."""
    assert main(["train", "--data", str(pictures), "--out", "again", "--epochs", "1", *SMALL]) == 0
    printed = said(capsys)
    for words in (
        "training pictures in again",
        "sizes, from",
        "each is cropped to its centre square and resized to 64x64",
        "broken.jpg",
        "notes.txt",
        "48 for training, 6 for validation, 6 for testing",
        "epoch 1/1 loss per dimension",
        "6 test pictures of photos",
        "MSE x 1000",
        "Done: again. Use it with: sqvae encode again",
    ):
        assert words in printed


def test_evaluation_as_json_is_json_and_is_kept(run, capsys):
    assert main(["evaluate", str(run), "--json", "--split", "validation"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["split"] == "validation"
    assert record["pictures"] == 6
    assert set(record["measures"]) >= {"mse", "perplexity", "batch_perplexity", "soft_perplexity", "bits_per_dimension"}
    assert sum(record["counts"]) == 6 * 256
    assert json.loads((run / "results-validation.json").read_text()) == record
    page = (run / "results-validation.md").read_text()
    assert f"{1000 * record['measures']['mse']:.3f}" in page
    with Image.open(run / "results-validation.png") as picture:
        assert picture.width > 64


def test_evaluation_agrees_with_a_direct_computation(run, pictures):
    import sqvae
    from sqvae.data import load as load_data

    assert main(["evaluate", str(run), "--json"]) == 0
    record = json.loads((run / "results-test.json").read_text())
    tokenizer = sqvae.load(run)
    test = load_data(pictures, tokenizer.preprocessing).test
    x = test.take(range(len(test))).float() / 255
    error = (tokenizer.reconstruct(x) - x).square().mean()
    assert record["measures"]["mse"] == pytest.approx(error.item(), rel=1e-5)
    counts = torch.bincount(tokenizer.encode(x).flatten(), minlength=16)
    assert record["counts"] == counts.tolist()
    p = counts[counts > 0] / counts.sum()
    assert record["measures"]["perplexity"] == pytest.approx((-(p * p.log()).sum()).exp().item(), rel=1e-5)
    assert record["measures"]["codes_used"] == len(p)
    with torch.no_grad():
        latent = tokenizer.model.eval()(x).quantized.loss
    expected = error.log() / 2 + latent / x[0].numel()
    assert record["measures"]["loss_per_dimension"] == pytest.approx(expected.item(), rel=1e-4)


def test_evaluation_on_other_data(run, tmp_path, capsys):
    np.save("other.npy", np.zeros((30, 32, 32, 3), np.uint8))
    assert main(["evaluate", str(run), "--data", "other.npy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pictures"] == 3


@pytest.mark.parametrize("kind", ["recipes", "quantizers", "data"])
def test_lists(kind, capsys):
    from sqvae.data import DATASETS
    from sqvae.quantizers import QUANTIZERS

    assert main(["list", kind]) == 0
    printed = said(capsys)
    for name in {"recipes": RECIPES, "quantizers": QUANTIZERS, "data": DATASETS}[kind]:
        assert name in printed
    if kind == "data":
        assert "sqvae[hub]" in printed


@pytest.mark.usefixtures("unmeasured")
def test_a_dry_run_shows_the_configuration(capsys):
    assert main(["train", "mnist", "--set", "quantizer.name=vq-ema", "--seed", "5", "--dry-run"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["quantizer"]["name"] == "vq-ema"
    assert shown["seed"] == 5
    assert not Path("runs").exists()


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(("profile", "heads"), [("any-budget", "bounded"), ("paper", None)])
def test_a_dry_run_shows_what_follows_from_the_schedule(profile, heads, capsys):
    given = ["--set", "quantizer.name=gaussian-4", "--profile", profile]
    assert main(["train", "mnist", *given, "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["quantizer"]["heads"] == heads


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "sqvae: say what to train on: --data DIR for your own pictures, or a recipe"),
        (
            ["train", "minst"],
            "sqvae: the recipe 'minst' is unknown (did you mean mnist?); choose from demo, pictures, mnist",
        ),
        (["train", "pictures"], "is for your own data: pass --data DIR"),
        (["train", "demo", "--set", "quantizer.codebok_size=3"], "did you mean codebook_size?"),
        (["train", "--data", "nowhere"], "nowhere"),
        (["resume", "nowhere"], "sqvae: there is no folder nowhere"),
        (["evaluate", "nowhere"], "sqvae: there is no folder nowhere"),
        (["encode", "nowhere", "x.png", "-o", "y"], "sqvae: there is no folder nowhere"),
        (["inspect", "nowhere"], "sqvae: there is no folder nowhere"),
        (["report", "nowhere", "-o", "page.html"], "sqvae: there is no folder nowhere"),
        (
            ["report", "runs/photos", "-o", "page.pdf"],
            "the name of a page must end in .html",
        ),
        (
            ["compress", "runs/photos", "x.png", "-o", "some.zip"],
            "name of a file of compressed codes must end in .sqz",
        ),
        (["train-prior", "nowhere"], "sqvae: there is no folder nowhere"),
        (["train", "demo", "--nodes", "2"], "sqvae: --nodes 2 needs MASTER_ADDR and NODE_RANK in the environment"),
        (["train", "demo", "--precision", "fp8"], "Invalid value for '--precision'"),
        (["trian"], "No such command 'trian'"),
    ],
)
def test_a_mistake_gets_one_clear_message(arguments, message, capsys, monkeypatch):
    for name in ("MASTER_ADDR", "NODE_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert main(arguments) != 0
    printed = said(capsys).replace("│ ", "").replace(" │", "")
    assert message in printed
    assert "Traceback" not in printed
    assert not Path("runs").exists() or not list(Path("runs").rglob("*.safetensors"))


def test_data_that_is_not_there_is_said_before_all_else(run, capsys):
    Path("photos").mkdir()
    Image.new("L", (8, 8)).save("photos/cat.png")
    for command, near in (
        (["train", "--data", "phots"], "photos"),
        (["train", "pictures", "--data", "phots"], "photos"),
        (["encode", str(run), "phots", "-o", "codes.npz"], "photos"),
        (["neighbors", str(run), "photos/cta.png", "-o", "near.png"], "photos/cat.png"),
    ):
        assert main(command) == 1
        missing = next(word for word in command if word in ("phots", "photos/cta.png"))
        assert said(capsys).strip() == f"sqvae: there is no such file or folder: {missing}; did you mean {near}?"


def test_a_run_that_is_there_is_said_before_the_data_is_looked_at(run, capsys):
    assert main(["train", "--data", "nowhere", "-o", str(run)]) == 1
    words = said(capsys)
    assert words.startswith(f"sqvae: {run} already contains a run")
    assert f"sqvae resume {run}" in words


def test_a_folder_given_as_a_recipe(pictures, capsys):
    assert main(["train", str(pictures)]) == 1
    assert f"to train on it: sqvae train --data {pictures}" in said(capsys)


def test_an_empty_folder_and_one_without_pictures(tmp_path, capsys):
    Path("empty").mkdir()
    assert main(["train", "--data", "empty"]) == 1
    assert "empty" in said(capsys)
    Path("texts").mkdir()
    Path("texts/a.txt").write_text("a")
    assert main(["train", "--data", "texts"]) == 1
    assert ".txt" in said(capsys)


def test_one_picture_is_enough_to_train_and_too_few_to_judge(pictures, capsys):
    Path("one").mkdir()
    Image.open(pictures / "home" / "picture 0.png").save("one/only.png")
    assert main(["train", "--data", "one", "--epochs", "1", *SMALL]) == 0
    printed = said(capsys)
    assert "only 1 image, so training, validation and test sets are the same" in printed
    assert Path("runs/one/best/model.safetensors").exists()


def test_strict_ends_at_a_broken_picture(pictures, capsys):
    assert main(["train", "--data", str(pictures), "--strict", *SMALL]) == 1
    assert "broken.jpg" in said(capsys)


def test_codes_of_another_run_are_refused(run, pictures, capsys):
    assert main(["train", "--data", str(pictures), "--out", "other", "--epochs", "1", "--seed", "9", *SMALL]) == 0
    assert main(["encode", "other", str(pictures / "home"), "-o", "codes.safetensors"]) == 0
    capsys.readouterr()
    assert main(["decode", str(run), "codes.safetensors", "-o", "decoded"]) == 1
    assert "codes of another model" in said(capsys)
    assert not Path("decoded").exists()


def test_originals_are_never_written_over(run, pictures, capsys):
    import shutil

    shutil.copytree(pictures / "home", "home")
    before = Path("home/picture 0.png").read_bytes()
    assert main(["reconstruct", str(run), "home", "-o", "home"]) == 1
    assert "-o home lies in home, among the originals" in said(capsys)
    assert main(["reconstruct", str(run), "home/picture 0.png", "-o", "home"]) == 1
    assert "picture 0.png is there already, and is left as it is" in said(capsys)
    assert Path("home/picture 0.png").read_bytes() == before
    assert main(["reconstruct", str(run), "home", "-o", "home", "--overwrite"]) == 0
    assert Path("home/picture 0.png").read_bytes() != before


def test_codes_of_an_unfinished_run_come_with_a_warning(pictures, capsys):
    assert main(["train", "--data", str(pictures), "--out", "early", "--epochs", "1", *SMALL]) == 0
    config = json.loads(Path("early/config.json").read_text())
    config["experiment"]["training"]["epochs"] = 2
    Path("early/config.json").write_text(json.dumps(config))
    assert main(["encode", "early", str(pictures / "home"), "-o", "codes.safetensors"]) == 0
    told = said(capsys)
    assert "early is not trained to its end" in told
    assert f"copy {Path('early/best')}" in told
    Path("early/best").rename("aside")
    assert main(["encode", "early", str(pictures / "home"), "-o", "codes.safetensors", "--overwrite"]) == 0
    assert f"copy {Path('early/last')}" in said(capsys)
    Path("aside").rename("early/best")
    assert main(["resume", "early"]) == 0
    assert main(["encode", "early", str(pictures / "home"), "-o", "codes.safetensors", "--overwrite"]) == 0
    assert "not trained to its end" not in said(capsys)


def test_changed_pictures_are_noticed_where_numbers_depend_on_them(run, pictures, capsys):
    import shutil

    shutil.copytree(pictures, "mine")
    assert main(["train", "--data", "mine", "--out", "own", "--epochs", "1", *SMALL]) == 0
    next(Path("mine/home").glob("*.png")).unlink()
    capsys.readouterr()
    assert main(["evaluate", "own"]) == 0
    assert "the pictures have changed since this run was trained" in said(capsys)
    shutil.rmtree("mine")
    assert main(["evaluate", "own"]) == 1
    assert "is not here: say where the data is with --data" in said(capsys)


def test_the_version(capsys):
    import sqvae

    assert main(["--version"]) == 0
    assert said(capsys) == f"sqvae {sqvae.__version__}"


def test_results_on_other_data_stand_beside_the_run_s_own(run, pictures):
    np.save("other.npy", np.zeros((30, 32, 32, 3), np.uint8))
    own = (run / "results-test.json").read_text()
    assert main(["evaluate", str(run), "--data", "other.npy"]) == 0
    assert (run / "results-test.json").read_text() == own
    assert json.loads((run / "results-test-other.json").read_text())["pictures"] == 3
    assert main(["evaluate", str(run), "--data", str(pictures)]) == 0
    assert not list(run.glob("results-test-photos*"))
    assert main(["evaluate", str(run / "best")]) == 0
    assert not list((run / "best").glob("results*"))


def test_training_replaces_nothing(pictures, capsys):
    Path("mine/pictures").mkdir(parents=True)
    Path("mine/config.json").write_text("{}")
    assert main(["train", "--data", str(pictures), "-o", "mine", "--epochs", "1", *SMALL]) == 1
    assert "mine already contains config.json, pictures" in said(capsys)
    assert Path("mine/config.json").read_text() == "{}"
    assert sorted(path.name for path in Path("mine").iterdir() if path.name[0] != ".") == ["config.json", "pictures"]


def test_new_folders_are_numbered(pictures):
    for _ in range(2):
        assert main(["train", "--data", str(pictures / "home"), "--epochs", "1", *SMALL]) == 0
    assert {path.name for path in Path("runs").iterdir()} == {"home", "home-2"}


def test_a_failure_that_we_did_not_expect_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr("sqvae.analysis.inspect_run", lambda run, **options: 1 / 0)
    Path("x").mkdir()
    with pytest.raises(ZeroDivisionError):
        main(["inspect", "x"])


@pytest.mark.parametrize("quantizer", ["gaussian-4", pytest.param("vq-ema", marks=pytest.mark.slow)])
def test_several_processes_by_one_flag(quantizer, pictures):
    """Two processes train one run as one process would, and resume it; its files are those of any other run."""
    settings = [
        *SMALL,
        *(part for text in EVERY_STEP for part in ("--set", text)),
        "--set",
        f"quantizer.name={quantizer}",
        "--set",
        "training.learning_rate=3e-3",  # three times the paper's: rounding errors grow as fast
    ]
    train = ["train", "--data", str(pictures), "--epochs", "1", *settings]
    assert main([*train, "--out", "one"]) == 0
    assert main(["resume", "one", "--epochs", "2"]) == 0
    for command in ([*train, "--out", "two"], ["resume", "two", "--epochs", "2"]):
        done = subprocess.run(
            [sys.executable, "-m", "sqvae", *command, "--devices", "2"],
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Done: two") == 1
    assert json.loads(Path("two/last/training.json").read_text())["processes"] == 2
    one, two = (
        [record for record in read_records(Path(run) / "log.jsonl") if record["kind"] == "step"]
        for run in ("one", "two")
    )
    assert len(one) == 24
    assert [record["loss"] for record in two] == pytest.approx([record["loss"] for record in one], rel=1e-4)
    assert main(["evaluate", "two"]) == 0


def test_a_signal_to_several_processes_saves_and_ends_all_of_them(pictures):
    settings = [part for text in EVERY_STEP for part in ("--set", text)]
    command = ["train", "--data", str(pictures), "--out", "two", "--epochs", "500", *SMALL, *settings, "--devices", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sqvae", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    while not read_records(Path("two/log.jsonl")):
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    printed = process.communicate(timeout=60)[0]
    assert process.returncode == 143, printed
    assert "Resume with: sqvae resume two" in printed
    assert "Traceback" not in printed
    steps = len(read_records(Path("two/log.jsonl")))
    time.sleep(1)
    assert len(read_records(Path("two/log.jsonl"))) == steps, "a process lives on"
    failed = subprocess.run([sys.executable, "-m", "sqvae", *command], capture_output=True, text=True, timeout=100)
    assert failed.returncode == 1
    assert failed.stderr.count("\n") < 5, failed.stderr
    assert "two already contains a run" in failed.stderr


@pytest.mark.usefixtures("unmeasured")
def test_the_authors_variants_are_a_profile(capsys):
    assert main(["train", "cifar10", "--profile", "official", "--set", "quantizer.name=gaussian-3", "--dry-run"]) == 0
    experiment = json.loads(capsys.readouterr().out)
    assert (experiment["quantizer"]["heads"], experiment["network"]["blocks"]) == ("sum", 2)
    assert main(["train", "mnist", "--profile", "official", "--set", "network.decoder_blocks=2", "--dry-run"]) == 0
    experiment = json.loads(capsys.readouterr().out)
    assert (experiment["quantizer"]["variance_offset"], experiment["network"]["decoder_blocks"]) == (1.0, 2)


def test_a_hundred_files_with_one_fault_are_a_few_lines(run, pictures, capsys):
    bad = Path("bad")
    bad.mkdir()
    Image.open(pictures / "home" / "picture 0.png").save(bad / "good.png")
    whole = (bad / "good.png").read_bytes()
    for number in range(100):
        (bad / f"{number:03d}.png").write_bytes(b"no picture")
    for number in range(5):
        (bad / f"cut{number}.png").write_bytes(whole[: 200 + 10 * number])
    for command in (["encode", "-o", "codes.npz"], ["reconstruct", "-o", "rebuilt"], ["compress", "-o", "some.sqz"]):
        capsys.readouterr()
        assert main([command[0], str(run), "bad", *command[1:]]) == 0
        lines = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
        assert len(lines) == 8
        assert "97 more images for the same reason as 000.png (" in lines[-2]
        assert "2 more images for the same reason as cut0.png" in lines[-1]
    assert main(["train", "--data", "bad", "--out", "new", "--epochs", "1", *SMALL]) == 0
    words = said(capsys)
    assert re.search(r"105 \w+ could not be read .*: 000\.png, 001\.png, 002\.png and 97 more \(", words)
    assert "; cut0.png, cut1.png, cut2.png and 2 more (" in words


@pytest.mark.parametrize(
    ("number", "code", "ending"), [(signal.SIGTERM, 143, ".npz"), (signal.SIGINT, 130, ".safetensors")]
)
def test_a_signal_leaves_nothing_half_written(number, code, ending, run):
    np.save("many.npy", np.zeros((200_000, 8, 8), np.uint8))
    command = [sys.executable, "-m", "sqvae", "encode", str(run), "many.npy", "-o", f"codes{ending}", "--batch", "8"]
    # A shell that runs tests in the background has them, and what they start, ignore Ctrl-C.
    heed = partial(signal.signal, number, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed) as process:
        deadline = time.monotonic() + 60
        while not any(".partial" in path.suffixes for path in Path().iterdir()):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(60) == code
        assert "Traceback" not in process.stderr.read()
    assert [path.name for path in Path().iterdir()] == ["many.npy"]

"""Nothing is lost: full disks, read-only folders, damaged files, two processes in one folder."""

import contextlib
import json
import os
import pickle
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from runs import tiny, weights_of, write_pictures
from sqvae.runs import resume, train
from sqvae.tokenizers import load
from sqvae.training import Checkpoint, CheckpointError, RunFolder, fingerprint, read_checkpoint, write_checkpoint


def quiet(text: str) -> None:
    pass


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("data") / "pictures.npy")


@pytest.fixture(scope="module")
def trained(source, tmp_path_factory):
    return train(tiny(source, epochs=2), tmp_path_factory.mktemp("trained") / "run", announce=quiet).path


@pytest.fixture
def run(trained, tmp_path):
    """A trained run that a test may damage."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@contextlib.contextmanager
def small_disk(folder: Path, size: str, *options: str):
    """A file system of its own, where the system lets us make one."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", ",".join((f"size={size}", *options)), "tmpfs", folder], capture_output=True
    )
    if done.returncode:
        pytest.skip(f"needs the right to mount a file system: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_named_and_the_last_checkpoint_stays(source, tmp_path):
    with small_disk(tmp_path / "disk", "1m") as disk:
        out = disk / "run"
        train(tiny(source, epochs=2), out, announce=quiet)
        before = weights_of(out / "last")
        filler = disk / "filler"
        # Room for a few records, and for no checkpoint.
        free = shutil.disk_usage(disk).free
        filler.write_bytes(bytes(free - 12_000))
        with pytest.raises(CheckpointError, match=r"can't write .*No space left.*Intact: .*run/last"):
            resume(out, epochs=4, announce=quiet)
        assert weights_of(out / "last") == before
        assert RunFolder(out).last in RunFolder(out).intact()
        filler.unlink()
        resume(out, epochs=4, announce=quiet)
        assert weights_of(out / "last") != before


def test_a_file_that_may_grow_no_further_is_an_error_too(tmp_path):
    """The same without the right to mount: the system refuses to write past a limit."""
    weights = {"a": torch.randn(50_000)}
    write_checkpoint(tmp_path / "last", Checkpoint({}, {"a": torch.zeros(3)}))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(CheckpointError, match=r"can't write the checkpoint .*last.*too large"):
            write_checkpoint(tmp_path / "last", Checkpoint({}, weights))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read_checkpoint(tmp_path / "last").weights["a"].equal(torch.zeros(3))
    assert [path.name for path in tmp_path.iterdir()] == ["last"]


def test_a_read_only_folder_is_an_error_before_anything_is_done(source, tmp_path):
    with (
        small_disk(tmp_path / "disk", "1m", "ro") as disk,
        pytest.raises(CheckpointError, match=r"can't write to .*Read-only.*`out=`"),
    ):
        train(tiny(source), disk / "run", announce=quiet)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"can't write to .*Not a directory.*`out=`"):
        train(tiny(source), tmp_path / "file" / "run", announce=quiet)


@pytest.mark.parametrize(
    "file", ["model.safetensors", "training.safetensors", "training.json", "config.json", "manifest.json"]
)
@pytest.mark.parametrize("damage", ["truncated", "altered", "missing"])
def test_a_damaged_checkpoint_is_found_out_and_a_whole_one_named(run, file, damage):
    path = run / "last" / file
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[:-7])
    elif damage == "altered":
        path.write_bytes(content[:-7] + bytes([content[-7] ^ 1]) + content[-6:])
    else:
        path.unlink()
    expected = {"truncated": "bytes", "altered": "was changed", "missing": "is missing"}[damage]
    if file == "manifest.json" and damage != "missing":
        file, expected = "", "can't be read|has been changed|was changed"
    with pytest.raises(CheckpointError, match=rf"last is damaged: {file}.*({expected}).*Intact: .*previous.*best"):
        resume(run, epochs=3, announce=quiet)
    assert load(run).fingerprint == load(run / "best").fingerprint
    resume(run, epochs=3, checkpoint="previous", announce=quiet)


def test_resuming_from_the_previous_checkpoint_ends_the_same(run, trained):
    resume(run, checkpoint="previous", announce=quiet)
    assert weights_of(run / "last") == weights_of(trained / "last")


def test_the_best_checkpoint_damaged_names_the_others(run):
    (run / "best" / "model.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"best is damaged.*0 bytes.*Intact: .*last, .*previous"):
        load(run)
    assert load(run / "last").shape == (1, 8, 8)


def test_weights_are_never_unpickled(run, tmp_path):
    class Attack:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "owned"),))

    for name in ("model.safetensors", "training.safetensors"):
        (run / "last" / name).write_bytes(pickle.dumps(Attack()))
    (run / "last" / "manifest.json").unlink()
    with pytest.raises(CheckpointError):
        load(run / "last")
    with pytest.raises(CheckpointError):
        resume(run, epochs=3, announce=quiet)
    assert not (tmp_path / "owned").exists()
    sources = Path(sys.modules["sqvae"].__file__).parent.rglob("*.py")
    assert not [path for path in sources if "torch.load(" in path.read_text() or "pickle.load(" in path.read_text()]


def test_a_folder_in_use_is_left_alone(run, source):
    with RunFolder(run).locked():
        code = "import sys; from sqvae.runs import resume\nresume(sys.argv[1], epochs=3)"
        other = subprocess.run([sys.executable, "-c", code, str(run)], capture_output=True, text=True)
    assert other.returncode == 1
    assert f"is in use: process {os.getpid()} is training there" in other.stderr
    assert not (run / ".owner").exists()
    resume(run, epochs=3, announce=quiet)


def test_a_folder_that_holds_a_run_is_not_written_over(run, source):
    before = weights_of(run / "last")
    with pytest.raises(CheckpointError, match=r"already contains a run.*sqvae resume"):
        train(tiny(source), run, announce=quiet)
    assert weights_of(run / "last") == before


def test_changed_data_is_noticed(run, source, tmp_path):
    fewer = write_pictures(tmp_path / "fewer.npy", count=60)
    with pytest.raises(CheckpointError, match=r"was trained on other data than .*fewer.npy holds now"):
        resume(run, epochs=3, source=str(fewer), announce=quiet)
    (tmp_path / "elsewhere").mkdir()
    same = Path(shutil.copy(source, tmp_path / "elsewhere"))
    resume(run, epochs=3, source=str(same), announce=quiet)


def test_what_is_no_run_says_so(tmp_path):
    for use in (load, resume):
        with pytest.raises(CheckpointError, match=r"there is no folder|holds no run"):
            use(tmp_path / "nothing")
        with pytest.raises(CheckpointError, match=r"(holds|contains) no"):
            use(tmp_path)


def test_a_run_that_has_saved_nothing_yet_says_when_it_will(run, tmp_path):
    shutil.copy(run / "config.json", tmp_path)
    with pytest.raises(CheckpointError, match=r"nothing is saved in .* yet: .*first checkpoint"):
        load(tmp_path)


def test_a_format_from_the_future_is_refused(run):
    config = json.loads((run / "best" / "config.json").read_text())
    weights = read_checkpoint(run / "best").weights
    write_checkpoint(run / "best", Checkpoint({**config, "format": 99, "sqvae": "7.0"}, weights))
    with pytest.raises(CheckpointError, match=r"has the format 99, .* reads 1; it was written by sqvae 7.0"):
        load(run)


@pytest.mark.parametrize("manifest", ["{}", '{"model.safetensors": 3}', "[]", '{"config.json": {}}'])
def test_a_manifest_that_lists_nothing_guards_nothing(manifest, run):
    (run / "best" / "manifest.json").write_text(manifest)
    with pytest.raises(CheckpointError, match=r"best is damaged: manifest.json"):
        load(run)


def test_a_training_state_of_another_version_is_refused_in_one_sentence(run):
    saved = read_checkpoint(run / "last", training=True)
    old = Checkpoint(saved.config, saved.weights, {**saved.state, "format": 0}, saved.state_tensors)
    write_checkpoint(run / "last", old)
    with pytest.raises(CheckpointError, match="written by another version of sqvae"):
        resume(run, epochs=3, announce=quiet)


def test_a_run_can_be_read_by_others(run):
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in (run / "last").iterdir())


def test_a_run_goes_on_from_its_own_checkpoints_only(run):
    with pytest.raises(CheckpointError, match=r"one of last, previous; got '../other/last'"):
        resume(run, epochs=3, checkpoint="../other/last", announce=quiet)


def test_a_checkpoint_is_no_place_for_a_run(run, source):
    with pytest.raises(CheckpointError, match="already contains a run"):
        train(tiny(source), run / "best", announce=quiet)
    assert load(run / "best")


def test_a_changed_configuration_does_not_fit_the_weights(run):
    config = json.loads((run / "config.json").read_text())
    config["experiment"]["quantizer"]["codebook_size"] = 17
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="does not fit the run's configuration"):
        resume(run, epochs=3, announce=quiet)


def test_data_that_is_not_there_leaves_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        train(tiny(tmp_path / "nowhere"), tmp_path / "run", announce=quiet)
    assert not (tmp_path / "run").exists()


def test_where_the_data_lay_is_not_published(trained, tmp_path):
    load(trained).save_pretrained(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["experiment"]["data"]["source"] == "pictures.npy"


def test_a_fingerprint_changes_with_any_bit():
    weights = {"a": torch.zeros(3), "b": torch.zeros(2, 2)}
    one = fingerprint(weights)
    assert fingerprint({"b": torch.zeros(2, 2), "a": torch.zeros(3)}) == one
    assert fingerprint({**weights, "a": torch.tensor([0, 0, 1e-45])}) != one
    assert fingerprint({**weights, "b": torch.zeros(4)}) != one
    assert fingerprint({"a": torch.zeros(3), "c": torch.zeros(2, 2)}) != one


def test_what_was_loaded_is_what_was_trained(trained):
    tokenizer, weights = load(trained), read_checkpoint(trained / "best").weights
    assert {name: t.numpy().tobytes() for name, t in weights.items()} == weights_of(trained / "best")
    for name, tensor in tokenizer.model.state_dict().items():
        assert tensor.cpu().equal(weights[name])
    assert not tokenizer.model.training

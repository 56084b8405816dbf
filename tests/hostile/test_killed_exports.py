"""An export that is killed, at each of its steps, can be repeated."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kinds import picture_tokenizer
from sqvae import load
from sqvae.cli import main

KILLED = """
import os, signal, sys
from pathlib import Path
from sqvae.cli import main

calls, replace = 0, Path.replace
def killed(self, target):
    global calls
    calls += 1
    if calls > int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
Path.replace = killed
sys.exit(main(["export", sys.argv[1], "--pretrained", "-o", sys.argv[2]]))
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    picture_tokenizer("pictures").save_pretrained(folder)
    return folder


@pytest.mark.parametrize("renames", [0, 2, 5, 6])
def test_a_killed_export_can_be_repeated(renames, model, tmp_path):
    """Killed before so many renames: while files are written to the side, and while they are put in their places."""
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", KILLED, str(model), str(out), str(renames)], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    visible = [path.name for path in out.iterdir() if not path.name.startswith(".")]
    assert main(["export", str(model), "--pretrained", "-o", str(out), *(["--overwrite"] if visible else [])]) == 0
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]
    pictures = torch.rand(2, 3, 8, 16)
    assert torch.equal(load(out).encode(pictures), load(model).encode(pictures))

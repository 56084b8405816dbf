"""Two processes write to one target: what is there in the end is whole, and of one of them; the other says so."""

import multiprocessing
import threading

import numpy as np
import pytest
import torch
from PIL import Image

from kinds import picture_tokenizer
from sqvae.cli import main
from sqvae.codec import CodeFile, CodeFileError, CodeWriter
from sqvae.files import BusyError, alone

RACES = 50


def _write(path, code, together, answers):
    together.wait()
    try:
        with CodeWriter(path, codebook_size=200, fingerprint="f" * 32, shape=(3, 16, 16)) as writer:
            for batch in range(20):
                writer.write([f"{code}-{batch}-{row}" for row in range(8)], torch.full((8, 4, 4), code))
    except CodeFileError as failure:
        answers.put((code, str(failure)))
    else:
        answers.put((code, None))


def test_of_two_writers_each_is_whole_or_says_that_it_lost(tmp_path):
    context = multiprocessing.get_context("fork")
    lost = 0
    for race in range(RACES):
        path, together, answers = tmp_path / f"{race}.safetensors", context.Barrier(2), context.Queue()
        writers = [context.Process(target=_write, args=(path, code, together, answers)) for code in (1, 2)]
        for writer in writers:
            writer.start()
        said = dict(answers.get(timeout=60) for _ in writers)
        for writer in writers:
            writer.join(60)
        file = CodeFile.open(path)
        (winner,) = np.unique(file.codes().numpy())
        assert len(file) == 160
        assert {name.split("-")[0] for name in file.names} == {str(winner)}
        assert said[int(winner)] is None
        loser = said[3 - int(winner)]
        lost += loser is not None
        assert loser is None or "another process" in loser
    assert lost > 0, "the two never met"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"{race}.safetensors" for race in range(RACES))


def _command(arguments, together, answers):
    together.wait()
    answers.put(main(arguments))


@pytest.mark.parametrize("what", ["encode", "decode"])
def test_commands_that_meet_do_not_overwrite_each_other(tmp_path, what, capfd):
    picture_tokenizer("pictures").save_pretrained(tmp_path / "model")
    for folder, level in (("dark", 10), ("light", 240)):
        (tmp_path / folder).mkdir()
        for number in range(40):
            Image.new("RGB", (16, 8), (level,) * 3).save(tmp_path / folder / f"{number}.png")
    model, target = str(tmp_path / "model"), tmp_path / ("codes.safetensors" if what == "encode" else "decoded")
    sources = [str(tmp_path / folder) for folder in ("dark", "light")]
    if what == "decode":
        for source in sources:
            assert main(["encode", model, source, "-o", f"{source}.safetensors"]) == 0
        sources = [f"{source}.safetensors" for source in sources]
    context = multiprocessing.get_context("fork")
    together, answers = context.Barrier(2), context.Queue()
    commands = [[what, model, source, "-o", str(target)] for source in sources]
    runners = [context.Process(target=_command, args=(command, together, answers)) for command in commands]
    for runner in runners:
        runner.start()
    codes = sorted(answers.get(timeout=120) for _ in runners)
    for runner in runners:
        runner.join(60)
    assert codes == [0, 1], "one has won, without --overwrite, and the other has refused"
    words = " ".join(capfd.readouterr().err.split())
    assert "another process" in words or "there already" in words
    if what == "encode":
        assert len(CodeFile.open(target)) == 40
    else:
        assert len(list(target.glob("*.png"))) == 40


def test_a_claim_is_held_by_one_and_free_after_it(tmp_path):
    target, refused = tmp_path / "file", []

    def other():
        try:
            with alone(target):
                pass
        except BusyError as busy:
            refused.append(busy.strerror)

    with alone(target), alone(target):  # in several steps of one piece of work
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert "is writing it. Wait for it, stop it, or choose another name" in refused[0]
    with alone(target):
        pass
    assert not list(tmp_path.iterdir()), "nothing is left beside the file"

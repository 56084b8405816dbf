"""What several commands say of their results."""

from rich.table import Table

from sqvae.analysis import EvaluatedRun
from sqvae.cli import console
from sqvae.data.wording import counted
from sqvae.inference import Saved

VOCODER = "sound by the method of Griffin and Lim; a neural vocoder, given the .npy frames, sounds better"


def show_evaluation(result: EvaluatedRun) -> None:
    """Print what was measured, on what, and where it is kept."""
    table = Table("what", "value", title=result.setting, title_justify="left")
    for what, value in result.rows.items():
        table.add_row(what, value)
    console.out.print(table)
    for sentence in result.meanings:
        console.note(sentence)
    for sentence in result.warnings:
        console.warning(sentence)
    for path in result.written:
        console.note(f"written: {path}")


def show_saved(saved: Saved) -> None:
    """Print how many results there are, and where."""
    text = f"{counted(saved.number, saved.noun)} in {saved.path}"
    if saved.mels is None:
        console.out.print(text)
        return
    sound = f", and {VOCODER}" if saved.audio else "; --audio writes sound as well"
    console.out.print(f"{text}: log-mel frames in dB, (frames, {saved.mels}), as .npy{sound}", soft_wrap=True)

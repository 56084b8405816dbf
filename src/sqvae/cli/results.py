"""The output of results that several commands share."""

from rich.table import Table

from sqvae.analysis import EvaluatedRun
from sqvae.cli import console
from sqvae.data.wording import counted
from sqvae.inference import Saved

VOCODER = "sound, synthesized by the Griffin-Lim method; a neural vocoder gives better sound from the .npy frames"
"""The note about the sound that is written for frames."""


def show_evaluation(result: EvaluatedRun) -> None:
    """Print the measures, the data they were computed on, and the files they were saved to."""
    table = Table("measure", "value", title=result.setting, title_justify="left")
    for measure, value in result.rows.items():
        table.add_row(measure, value)
    console.out.print(table)
    for sentence in result.meanings:
        console.note(sentence)
    for sentence in result.warnings:
        console.warning(sentence)
    for path in result.written:
        console.note(f"saved: {path}")


def show_saved(saved: Saved) -> None:
    """Print the number of results and their location."""
    text = f"{counted(saved.number, saved.noun)} in {saved.path}"
    if saved.mels is None:
        console.out.print(text)
        return
    sound = f", and {VOCODER}" if saved.audio else "; --audio writes sound as well"
    console.out.print(f"{text}: log-mel frames in dB, (frames, {saved.mels}), as .npy{sound}", soft_wrap=True)

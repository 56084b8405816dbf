"""Runs of a sweep, one after the other, in a process of their own: `python -m sqvae.sweeps.worker`.

It takes orders as lines of JSON and answers them so. A run goes on where its folder stands and ends with a record; the
process ends when the one that started it is gone.
"""

import json
import os
import queue
import signal
import sys
import threading
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from sqvae.config import Experiment, from_json
from sqvae.runs import prepare, read_experiment, resume, train
from sqvae.sweeps.records import Planned, Sequel, fits, make_record, save_record
from sqvae.sweeps.second_stage import carry_on
from sqvae.tokenizers import load
from sqvae.training import CheckpointError, RunFolder, TrainingStoppedError


def run_member(planned: Planned, folder: RunFolder, records: Path) -> None:
    """Train to the end, measure on the test set, and write the record."""
    if folder.config.exists():
        before, _ = read_experiment(folder)
        if not fits(planned, before):
            raise CheckpointError(f"{folder} holds another experiment than the one that is planned: move it away")
        resume(folder.path)
    else:
        train(planned.experiment, folder.path)
    if planned.sequel is not None:
        save_record(records, *carry_on(planned, folder))
        return
    tokenizer = load(folder.path)
    prepared = prepare(tokenizer.experiment, announce=lambda text: None)
    evaluation = prepared.evaluate(tokenizer.model, "test", batch_size=planned.experiment.training.batch_size)
    record = make_record(
        planned, tokenizer.experiment, prepared.sizes, prepared.key, evaluation, folder.log, tokenizer.fingerprint
    )
    save_record(records, record, evaluation.originals, evaluation.reconstructions)


def _stop_with_parent(orders: "queue.SimpleQueue[str]") -> None:
    """Hand on what comes by standard input; once nobody holds its other end, ask this process to save and end."""

    def listen() -> None:
        for line in sys.stdin:
            orders.put(line)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=listen, daemon=True).start()


def carry_out(order: str) -> str:
    """Do what a line of JSON asks for, and return why it failed, or nothing. What it prints goes to its log."""
    content = json.loads(order)
    sequel = None if content["sequel"] is None else from_json(Sequel, content["sequel"])
    planned = Planned(from_json(Experiment, content["experiment"]), content["tags"], sequel)
    try:
        with Path(content["log"]).open("a") as log, redirect_stdout(log), redirect_stderr(log):
            try:
                run_member(planned, RunFolder(content["run"]), Path(content["records"]))
            except Exception:
                traceback.print_exc()
                raise
    except TrainingStoppedError:
        raise
    except Exception as failure:
        return f"{type(failure).__name__}: {failure}"
    return ""


def main() -> int:
    """Carry out one order after the other, and answer each with a line of JSON."""
    orders: queue.SimpleQueue[str] = queue.SimpleQueue()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # so that nothing but answers goes there, whoever prints
    _stop_with_parent(orders)
    while True:
        try:
            failure = carry_out(orders.get())
        except TrainingStoppedError as stop:
            return 128 + stop.signal_number
        print(json.dumps({"failure": failure}), file=answers, flush=True)


if __name__ == "__main__":
    sys.exit(main())

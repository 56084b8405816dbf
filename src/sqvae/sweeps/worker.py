"""A process that carries out runs of a sweep, one after the other: `python -m sqvae.sweeps.worker`.

Orders and answers are lines of JSON. A run resumes from its folder's checkpoint, and ends with a record. The process
ends when its parent process ends.
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
    """Train to the end, evaluate on the test set, and write the record."""
    if folder.config.exists():
        before, _ = read_experiment(folder)
        if not fits(planned, before):
            raise CheckpointError(f"{folder} holds an experiment other than the planned one: move it away")
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
    """Pass on the lines of standard input. When it closes, make this process save a checkpoint and end."""

    def listen() -> None:
        for line in sys.stdin:
            orders.put(line)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=listen, daemon=True).start()


def carry_out(order: str) -> str:
    """Carry out an order, and return the reason if it fails, or "". All output goes to the run's log."""
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
    os.dup2(2, 1)  # so that standard output has nothing but answers
    _stop_with_parent(orders)
    while True:
        try:
            failure = carry_out(orders.get())
        except TrainingStoppedError as stop:
            return 128 + stop.signal_number
        print(json.dumps({"failure": failure}), file=answers, flush=True)


if __name__ == "__main__":
    sys.exit(main())

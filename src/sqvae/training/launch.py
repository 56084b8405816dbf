"""Several processes: the same command once more, in each of them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType

GRACE = 5.0
"""Seconds that processes have to end by themselves after another one has failed."""


def is_launched() -> bool:
    """Whether this process is already one of several, started by us, torchrun or `accelerate launch`."""
    return "LOCAL_RANK" in os.environ


def is_first_process() -> bool:
    """Whether this process talks to the person."""
    return os.environ.get("RANK", "0") == "0"


def launch(arguments: Sequence[str], devices: int, nodes: int) -> int:
    """Run the command `sqvae` with these arguments in several processes, and return the exit code.

    Arguments:
        arguments: what follows `sqvae` on the command line.
        devices: the number of processes on this machine, one for each device.
        nodes: the number of machines.

    On several machines the command is run on each, and the environment says which one it is, as torchrun has it.
    Signals go on to all processes, which save and end; when one of them fails the others are ended.
    """
    environment = _environment(devices, nodes)
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "sqvae", *arguments],
            env={**environment, "LOCAL_RANK": str(local), "RANK": str(int(environment["RANK"]) + local)},
            start_new_session=True,  # or the terminal would send Ctrl-C as well, and twice means at once
        )
        for local in range(devices)
    ]

    def forward(number: int, frame: FrameType | None) -> None:
        for process in processes:
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return _wait(processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(processes: Sequence["subprocess.Popen[bytes]"]) -> int:
    """The first failure's exit code, once all have ended or had time to; 0 if all is well."""
    deadline = None
    while True:
        codes = [process.poll() for process in processes]
        failed = next((code for code in codes if code), 0)
        if None not in codes:
            return failed
        if failed and deadline is None:
            deadline = time.monotonic() + GRACE
        if deadline is not None and time.monotonic() > deadline:
            return failed
        time.sleep(0.05)


def _environment(devices: int, nodes: int) -> Mapping[str, str]:
    """What the processes of this machine have in common; RANK is the first one's."""
    if nodes == 1:
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    else:
        missing = [name for name in ("MASTER_ADDR", "NODE_RANK") if name not in os.environ]
        if missing:
            raise ValueError(
                f"`nodes={nodes}` needs {' and '.join(missing)} in the environment: the first machine's address, and "
                f"this machine's number from 0. Run the same command on each machine, such as: "
                f"MASTER_ADDR=10.0.0.1 NODE_RANK=0 sqvae train ..."
            )
        place = {"MASTER_PORT": "29500"}
    node = int(os.environ.get("NODE_RANK", "0")) if nodes > 1 else 0
    return {
        # Without this each process would take all cores, and they would wait for each other.
        "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // devices)),
        **place,
        **{name: value for name, value in os.environ.items() if nodes > 1 or name not in place},
        "WORLD_SIZE": str(devices * nodes),
        "LOCAL_WORLD_SIZE": str(devices),
        "RANK": str(devices * node),
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""Several processes: the same command once more, in each of them."""

import os
import subprocess
import sys
from collections.abc import Sequence


def is_launched() -> bool:
    """Whether this process is already one of several, started by us, torchrun or `accelerate launch`."""
    return "LOCAL_RANK" in os.environ


def is_first_process() -> bool:
    """Whether this process talks to the person."""
    return os.environ.get("RANK", "0") == "0"


def launch(arguments: Sequence[str], devices: int, nodes: int) -> int:
    """Run `sqvae` with these arguments in so many processes, and return the exit code.

    On several machines the command is run on each, and the environment says which one it is, as torchrun has it.
    """
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={devices}", f"--nnodes={nodes}"]
    if nodes == 1:
        command += ["--standalone"]
    else:
        missing = [name for name in ("MASTER_ADDR", "NODE_RANK") if name not in os.environ]
        if missing:
            raise ValueError(
                f"--nodes {nodes} needs {' and '.join(missing)} in the environment: the first machine's address, and "
                f"this machine's number from 0. Run the same command on each machine, such as: "
                f"MASTER_ADDR=10.0.0.1 NODE_RANK=0 sqvae train ..."
            )
        command += [
            f"--node-rank={os.environ['NODE_RANK']}",
            f"--master-addr={os.environ['MASTER_ADDR']}",
            f"--master-port={os.environ.get('MASTER_PORT', '29500')}",
        ]
    # Without this each process would take all cores, and they would wait for each other.
    environment = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // devices)), **os.environ}
    process = subprocess.Popen([*command, "-m", "sqvae", *arguments], env=environment)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # the processes have heard it too; they save, and end

"""The same function over many items, in a few threads, with the results in order."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Pillow and hashlib leave the interpreter's lock while they work, so threads suffice; beyond this many, disks don't.
_WORKERS = min(os.cpu_count() or 1, 8)

# Small enough to begin soon, large enough that handing work to a thread costs little against small pictures.
_CHUNK = 16


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """Map with threads. Items are taken, and results kept, only a little ahead of where the caller is."""
    remaining = iter(items)

    def work(chunk: list[Item]) -> list[Result]:
        return [function(item) for item in chunk]

    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="sqvae-data") as pool:
        pending: deque[Future[list[Result]]] = deque()
        try:
            while chunk := list(islice(remaining, _CHUNK)):
                pending.append(pool.submit(work, chunk))
                if len(pending) > 2 * _WORKERS:
                    yield from pending.popleft().result()
            while pending:
                yield from pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()

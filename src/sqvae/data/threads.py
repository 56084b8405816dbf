"""A parallel map with a few threads, which returns results in order."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Pillow and hashlib release the interpreter's lock, so threads suffice; more threads than this overload disks.
_WORKERS = min(os.cpu_count() or 1, 8)

# Small enough to start quickly, large enough that passing work to a thread costs little even for small images.
_CHUNK = 16


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
    """Map a function over items with threads. Only a few items are read and results stored ahead of the caller."""
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

"""Ctrl-C and SIGTERM as requests to stop, which the training loop checks between steps."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class StopSignals:
    """Record a signal during the block instead of acting on it; a second Ctrl-C interrupts as usual.

    A SIGTERM after a Ctrl-C does not interrupt: launchers of several processes send it after the terminal's Ctrl-C.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():  # handlers can be set only there
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received == number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = signal.Signals(number)

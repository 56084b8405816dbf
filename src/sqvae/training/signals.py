"""Ctrl-C and SIGTERM as a wish that the loop hears between two steps."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class StopSignals:
    """Within the block, a signal is remembered rather than obeyed at once; a second Ctrl-C interrupts as usual.

    Not a SIGTERM after a Ctrl-C: launchers of several processes send it after what the terminal has sent to all.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():  # only there may handlers be set
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

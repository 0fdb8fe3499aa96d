"""Signals that wait: imports and compilers, interrupted, leave modules half loaded, or end the process."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import current_thread, main_thread
from typing import Any

# As numbers, which are faster to ask for.
_SIGNALS = tuple(map(int, signal.valid_signals()))


@contextmanager
def signals_later() -> Iterator[None]:
    """Let the signals that have a handler in Python, such as Ctrl-C, wait for the end of the block.

    Each handler is then called once, with the arguments of its first signal, and may raise an exception.
    """
    if current_thread() is not main_thread():  # handlers run in the main thread
        yield
        return
    waiting = _Waiting()
    with ExitStack() as stack:
        stack.callback(waiting.deliver)
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                waiting.handlers[number] = handler
                stack.callback(_restore, number, handler, waiting.note)
                signal.signal(number, waiting.note)
        yield


class _Waiting:
    """Handlers by signal, and the signals that came, in order."""

    def __init__(self) -> None:
        self.handlers: dict[int, Callable[..., Any]] = {}
        self.came: dict[int, Any] = {}

    def note(self, number: int, frame: Any) -> None:
        self.came.setdefault(number, frame)

    def deliver(self) -> None:
        with ExitStack() as stack:  # it calls all, whatever they raise, the last one first
            for number, frame in reversed(self.came.items()):
                stack.callback(self.handlers[number], number, frame)


def _restore(number: int, handler: Callable[..., Any], temporary: Callable[..., Any]) -> None:
    """Restore a handler, unless the block has set another one."""
    if signal.getsignal(number) == temporary:
        signal.signal(number, handler)

"""Calls in threads, in forks and in joblib's processes: the same results."""

from __future__ import annotations

import threading

import numpy as np

from tests.fuzz.checks import Found, require
from tests.fuzz.forks import ForkError, in_fork
from tests.fuzz.interfaces import Arguments, Interface, estimators, solves
from tests.fuzz.relations import draw_pair, same_bits
from tests.fuzz.trial import Trial, WrongError, pick

__all__ = ["forked", "in_processes", "threaded"]

Generator = np.random.Generator
# Seconds until a fork counts as hanging.
_PATIENCE = 15.0


def _draw(rng: Generator) -> tuple[Interface, Arguments]:
    interface = pick(rng, [*estimators(), *solves()])
    arguments = draw_pair(rng, interface)
    for at in arguments.values():
        if "n_threads" in at:
            at["n_threads"] = int(rng.integers(1, 4))
    return interface, arguments


def threaded(rng: Generator) -> Trial:
    """Return a call in two threads at once."""
    interface, arguments = _draw(rng)

    def run() -> None:
        first = interface.run(arguments)
        found: list[Found] = []
        errors: list[BaseException] = []

        def call() -> None:
            try:
                found.append(interface.run(arguments))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=call, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_PATIENCE)
        require(not any(thread.is_alive() for thread in threads), "a thread hangs")
        if errors:
            raise errors[0]
        for other in found:
            same_bits(first, other, "in a thread")

    return Trial(interface.name, "threads", run, interface.names, interface.refusals)


def forked(rng: Generator) -> Trial:
    """Return a call in a fork, after one in the parent, or while a thread of the parent makes one."""
    interface, arguments = _draw(rng)
    busy = bool(rng.integers(2))

    def run() -> None:
        first = interface.run(arguments)
        stop = threading.Event()
        thread = threading.Thread(target=_until, args=(stop, interface, arguments), daemon=True)
        if busy:
            thread.start()
        try:
            numbers, fun = in_fork(lambda: _numbers(interface, arguments), _PATIENCE)
        except ForkError as error:
            raise WrongError(f"in a fork: {error}") from None
        finally:
            stop.set()
            if busy:
                thread.join(_PATIENCE)
        same_bits(first, Found(numbers, fun), "in a fork")

    return Trial(interface.name, "fork, busy" if busy else "fork", run, interface.names, interface.refusals)


def _until(stop: threading.Event, interface: Interface, arguments: Arguments) -> None:
    while not stop.is_set():
        interface.run(arguments)


def _numbers(interface: Interface, arguments: Arguments) -> tuple[dict[str, np.ndarray], float | None]:
    found = interface.run(arguments)
    return found.numbers, found.fun


def in_processes(rng: Generator) -> Trial:
    """Return a fit with two processes of joblib's, beside one without."""
    interface = pick(rng, [interface for interface in estimators() if "n_jobs" in interface.defaults["init"]])
    arguments = draw_pair(rng, interface)

    def run() -> None:
        first = interface.run(arguments)
        second = interface.run({**arguments, "init": {**arguments["init"], "n_jobs": 2}})
        same_bits(first, second, "in two processes")

    return Trial(interface.name, "n_jobs=2", run, interface.names, interface.refusals)

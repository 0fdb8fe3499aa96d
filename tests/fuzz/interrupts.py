"""Ctrl-C at a random time, limits that are over at once, and calls in threads."""

import contextlib
import math
import signal
import threading
from collections.abc import Iterator

import numpy as np

from mopn.solvers import Status
from tests.fuzz.checks import Found, check_found, require
from tests.fuzz.interfaces import Fit, Interface, PartialFit, estimators, solves
from tests.fuzz.relations import draw_pair, same_bits
from tests.fuzz.trial import Trial, pick

Generator = np.random.Generator


@contextlib.contextmanager
def _ctrl_c_after(seconds: float) -> Iterator[None]:
    """Send SIGINT to this process after some seconds, unless the block is over before."""
    inside = True

    def interrupt(number: int, frame: object) -> None:
        if inside:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    timer = threading.Timer(seconds, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    try:
        yield
    finally:
        inside = False
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGINT, before)


def interrupted(rng: Generator) -> Trial:
    """Return a call with Ctrl-C at a random time: the best point, and an estimator that can be fitted again."""
    interface: Interface = pick(rng, [*estimators(), *solves()])
    arguments = draw_pair(rng, interface)
    seconds = float(10.0 ** rng.uniform(-4, -1.3))
    run = _interrupted_fit if isinstance(interface, Fit) else _interrupted_run
    return Trial(
        interface.name,
        f"Ctrl-C after {seconds:.1g} s",
        lambda: run(interface, arguments, seconds),
        interface.names,
        interface.refusals,
    )


def _interrupted_fit(interface: Fit, arguments: dict, seconds: float) -> None:
    estimator = interface.cls(**arguments["init"])
    learn = "partial_fit" if isinstance(interface, PartialFit) else "fit"
    with contextlib.suppress(KeyboardInterrupt), _ctrl_c_after(seconds):
        getattr(estimator, learn)(**arguments["fit"])
    if hasattr(estimator, "model_"):
        check_found(interface.found(estimator, **arguments["predict"]))
    if learn == "fit":
        again = interface.found(estimator.fit(**arguments["fit"]), **arguments["predict"])
        same_bits(interface.run(arguments), again, "a fit after an interrupted one")


def _interrupted_run(interface: Interface, arguments: dict, seconds: float) -> None:
    with contextlib.suppress(KeyboardInterrupt), _ctrl_c_after(seconds):
        check_found(interface.run(arguments))
    same_bits(interface.run(arguments), interface.run(arguments), "a run after an interrupted one")


_LIMITS = (
    {"max_iter": 0}, {"max_iter": 1}, {"max_time": 0.0}, {"max_time": 1e-300}, {"max_time": 1e-4},
    {"max_time": math.inf}, {"max_iter": 0, "max_time": 0}, {"tol": 0.0}, {"tol": 1.0}, {"tol": 1e300}, {"tol": 1e-300},
)  # fmt: skip


def limited(rng: Generator) -> Trial:
    """Return a call whose limits are over at once, or never: a point that is finite, and a status."""
    interface = pick(rng, [*estimators(), *solves()])
    arguments = interface.draw(rng)
    step = "init" if isinstance(interface, Fit) else "minimize"
    limits = {name: value for name, value in pick(rng, _LIMITS).items() if name in interface.defaults[step]}
    arguments[step] |= limits

    def run() -> None:
        found = interface.run(arguments)
        check_found(found)
        status = getattr(found.made, "status", getattr(found.made, "status_", Status.STOPPED))
        require(status != Status.RUNNING, "the run has ended, but its status is RUNNING")

    return Trial(interface.name, str(limits), run, interface.names, interface.refusals)


# Seconds until a thread counts as hanging.
_PATIENCE = 15.0


def threaded(rng: Generator) -> Trial:
    """Return a call in two threads at once."""
    interface = pick(rng, [*estimators(), *solves()])
    arguments = draw_pair(rng, interface)
    for at in arguments.values():
        if "n_threads" in at:
            at["n_threads"] = int(rng.integers(1, 4))

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

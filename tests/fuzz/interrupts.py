"""Ctrl-C at a random time."""

import contextlib
import signal
import threading
from collections.abc import Iterator

import numpy as np

from tests.fuzz.checks import check_found
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

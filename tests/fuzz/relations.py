"""Calls that must agree with each other.

Other orders of the samples, repeated ones and repeated calls are in ``tests/test_same_answer.py``,
``tests/estimators/test_weights.py`` and ``tests/test_surroundings.py``, with every estimator, problem and solver.
"""

import contextlib
import signal
import threading
from functools import cache

import numpy as np

from mopn.solvers import SGD, AdaGrad, OutputRefit, PlainStep
from tests.fuzz.arrays import FORMS, STORAGE, dense
from tests.fuzz.checks import Trial, check_found, require
from tests.fuzz.interfaces import Fit, PartialFit, Solve, estimators, solves
from tests.fuzz.samples import pick

# Objectives of the same iterates, but for rounding, which restarts of FISTA multiply; and of a perfect fit.
_SAME, _NOTHING = 1e-4, 1e-9


def relation(rng, name):
    """Return a trial of a relation, by an interface for which it holds."""
    check, holds = RELATIONS[name]
    interface = pick(rng, [interface for interface in _all() if holds(interface)])
    arguments = interface.draw(rng)
    for at in arguments.values():
        if "max_time" in at:
            # Two calls differ by it.
            at["max_time"] = None
    return Trial(interface.name, name, lambda: check(rng, interface, arguments), interface.names, interface.refusals)


@cache
def _all():
    return [*estimators(), *solves()]


# -- what agrees -------------------------------------------------------------------------------------------------------


def same_bits(first, second, what):
    """Require equal numbers."""
    require(first.numbers.keys() == second.numbers.keys(), f"{what}: other results")
    for name, value in first.numbers.items():
        other = second.numbers[name]
        equal = value.shape == other.shape and (value == other).all()
        require(equal, f"{what}: {name} differs{_by(value, other)}")
    require(first.fun == second.fun, f"{what}: the objective is {first.fun!r}, then {second.fun!r}")


def _by(value, other):
    if value.shape != other.shape:
        return f" in shape, {value.shape} and {other.shape}"
    return f" by {np.abs(value - other).max(initial=0.0):.3g}" if value.dtype.kind == "f" else ""


def certificates_agree(first, second, what):
    """Require that neither objective lies below the other's proven lower bound."""
    if first.gap is None or second.gap is None or first.fun is None or second.fun is None:
        return
    for one, other in ((first, second), (second, first)):
        least = one.fun - one.gap
        require(
            least <= other.fun * (1 + 1e-10), f"{what}: the minimum is at least {least!r}, but {other.fun!r} is reached"
        )


def _is_convex(interface, arguments):
    """Whether nothing refits both layers, which is not convex: rounding may change where it ends."""
    if isinstance(interface, Solve):
        refit = getattr(interface.make_solver(arguments["solver"]), "refit", "none")
    else:
        refit = arguments["init"].get("refit", interface.defaults["init"].get("refit", "none"))
    return refit in ("output", "none") or isinstance(refit, OutputRefit | PlainStep)


def _agree(interface, arguments, others, what):
    """Require what two calls have in common that differ by rounding."""
    first, second = interface.run(arguments), interface.run(others)
    certificates_agree(first, second, what)
    if first.fun is not None and second.fun is not None and _is_convex(interface, arguments):
        close = abs(first.fun - second.fun) <= _SAME * abs(first.fun) + _NOTHING
        require(close, f"{what}: the objective is {first.fun!r}, then {second.fun!r}")


# -- relations ---------------------------------------------------------------------------------------------------------


def _given(rng, arguments, form):
    """Return the arguments with dense samples, and with these in another form."""
    step = "fit" if "fit" in arguments else "problem"
    name = "X" if "X" in arguments[step] else "features"
    X = dense(arguments[step][name])
    return [{**arguments, step: {**arguments[step], name: samples}} for samples in (X, form(rng, X))]


def _storage(rng, interface, arguments):
    name = pick(rng, [name for name in STORAGE if "pandas" not in name])
    plain, other = _given(rng, arguments, STORAGE[name])
    if _is_fit(interface):
        same_bits(interface.run(plain), interface.run(other), name)
    else:
        # BLAS may add up in another order.
        _agree(interface, plain, other, name)


def _sparse(rng, interface, arguments):
    name = pick(rng, list(FORMS))
    if "beta" in interface.defaults.get("init", {}):
        # To choose it, samples are held out in an order that depends on the storage.
        arguments = {**arguments, "init": {**arguments["init"], "beta": 1.0}}
    _agree(interface, *_given(rng, arguments, FORMS[name]), f"dense and {name}")


def _batches(rng, interface, arguments):
    estimator, X = interface.fitted(arguments), arguments["predict"]["X"]
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            whole = getattr(estimator, method)(X)
            rows = np.concatenate([getattr(estimator, method)(X[i : i + 1]) for i in range(len(X))])
            close = np.allclose(whole, rows, rtol=1e-9, atol=1e-12 * np.abs(whole).max())
            require(close, f"{method} of a row is another one among others")


@contextlib.contextmanager
def _ctrl_c_after(seconds):
    """Send SIGINT to this process after some seconds, unless the block is over before."""
    inside = True

    def interrupt(number, frame):
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


def _interrupted(rng, interface, arguments):
    """Ctrl-C at a random time: the best point, and an estimator that can be fitted again."""
    seconds = float(10.0 ** rng.uniform(-4, -1.3))
    if isinstance(interface, Solve):
        with contextlib.suppress(KeyboardInterrupt), _ctrl_c_after(seconds):
            check_found(interface.run(arguments))
        same_bits(interface.run(arguments), interface.run(arguments), "a run after an interrupted one")
        return
    estimator = interface.cls(**arguments["init"])
    with contextlib.suppress(KeyboardInterrupt), _ctrl_c_after(seconds):
        interface.learn(estimator, arguments)
    if hasattr(estimator, "model_"):
        check_found(interface.found(estimator, **arguments["predict"]))
    if not isinstance(interface, PartialFit):
        again = interface.found(interface.learn(estimator, arguments), **arguments["predict"])
        same_bits(interface.run(arguments), again, "a fit after an interrupted one")


# -- where they hold ---------------------------------------------------------------------------------------------------


def _is_fit(interface):
    return type(interface) is Fit


def _any_order(interface):
    """Whether samples may come in any order: not if they are visited one after the other, or split into folds."""
    if isinstance(interface, Solve):
        return interface.functions["solver"] not in (AdaGrad, SGD)
    return not isinstance(interface, PartialFit) and "cv" not in interface.defaults["init"]


RELATIONS = {
    "storage": (_storage, lambda of: True),
    # Tables shift the functions of sparse columns to 0 at 0.
    "dense and sparse": (_sparse, lambda of: "X" in of.names and _any_order(of) and not of.taken),
    "batches": (_batches, _is_fit),
    "Ctrl-C": (_interrupted, lambda of: True),
}

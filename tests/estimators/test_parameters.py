"""The parameters of all estimators: what is no value of a parameter is refused by an error that names it."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from odd_values import ODD, failures

import mopn.estimators
from mopn.solvers.numerics.threads import most_threads

X = np.random.default_rng(0).uniform(-1, 1, (24, 3))
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)
FAST = {"max_iter": 1, "max_units": 2, "n_components": 2, "shares": (0.1, 0.01), "cv": 2}
# What is callable but no callback, and what starts other processes.
LEFT_OUT = {"callback": ("a class",), "n_jobs": ("-1",)}

# The two kernels share every line but that of the kernel.
TRIED = [name for name in mopn.estimators.__all__ if not name.startswith(("MultiOutputFM", "OrdinalPN"))]


def parameters_of(name):
    return getattr(mopn.estimators, name)().get_params(deep=False)


# What a cross-validated estimator shares with the plain one it hands on.
PARAMETERS = [
    (getattr(mopn.estimators, name), parameter)
    for name in TRIED
    for parameter in parameters_of(name)
    if not (name.endswith("CV") and parameter in parameters_of(name.removesuffix("CV")))
]


def attempt(kind, parameter, value):
    """Fit an estimator with a value of a parameter to a few samples."""
    names = inspect.signature(kind).parameters
    options = {name: fast for name, fast in FAST.items() if name in names} | {parameter: value}
    if parameter in ("validation_fraction", "n_iter_no_change", "random_state") and "validation_fraction" in names:
        options = {"validation_fraction": 0.5} | options
    if parameter == "radius":
        options["strength"] = None
    kind(**options).fit(X, LABELS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("kind", "parameter"), PARAMETERS, ids=lambda part: getattr(part, "__name__", part))
def test_odd_parameters_fit_or_are_refused_by_name(kind, parameter):
    values = {label: value for label, value in ODD.items() if label not in LEFT_OUT.get(parameter, ())}
    assert not failures(parameter, values, lambda value: attempt(kind, parameter, value))


@pytest.mark.parametrize("name", [name for name in mopn.estimators.__all__ if not name.endswith("CV")])
def test_the_number_of_threads_reaches_the_fit(name):
    seen = []
    estimator = getattr(mopn.estimators, name)(n_threads=3, tol=10.0, callback=lambda **_: seen.append(most_threads()))
    estimator.fit(X, LABELS)
    assert set(seen) == {3}

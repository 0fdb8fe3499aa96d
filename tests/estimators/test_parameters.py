"""The parameters of all estimators: a wrong value is refused by an error that names the parameter."""

import inspect
import re

import numpy as np
import pytest
from estimator_names import OF_SAMPLES
from odd_values import ODD, failures

import mopn

X = np.random.default_rng(0).uniform(-1, 1, (24, 3))
LABELS = (X[:, 0] * X[:, 1] > 0).astype(int)
FAST = {
    "max_iter": 1,
    "max_units": 2,
    "n_components": 2,
    "tol": 0.1,
    "refit": "output",
    "strength": mopn.Ratio(0.2),
    "curves": 1,
    "strengths": (1.0, 0.3),
    "cv": 2,
}

# The two kernels share every line but the kernel's own.
TRIED = [name for name in OF_SAMPLES if not name.startswith(("MultiOutputFM", "OrdinalPN"))]


def made(kind, **options):
    """An estimator; a search has one."""
    search = kind is mopn.estimators.PathCV
    return kind(mopn.estimators.MultiOutputPNClassifier(), **options) if search else kind(**options)


PARAMETERS = [
    (kind, parameter)
    for kind in (getattr(mopn.estimators, name) for name in TRIED)
    for parameter in made(kind).get_params(deep=False)
    if parameter not in ("estimator", "n_jobs", "scoring")  # which joblib and scikit-learn check
]


def attempt(kind, parameter, value):
    """Fit an estimator with a value of a parameter to a few samples."""
    names = inspect.signature(kind).parameters
    options = {name: fast for name, fast in FAST.items() if name in names} | {parameter: value}
    made(kind, **options).fit(X, LABELS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*predictions are the same")
@pytest.mark.parametrize(("kind", "parameter"), PARAMETERS, ids=lambda part: getattr(part, "__name__", part))
def test_odd_parameters_fit_or_are_refused_by_name(kind, parameter):
    assert not failures(parameter, ODD, lambda value: attempt(kind, parameter, value))


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_parameters_are_few_and_documented_in_the_class(name):
    """In the docstring of the class, before the other sections, in the order of the signature."""
    kind = getattr(mopn.estimators, name)
    parameters = inspect.signature(kind).parameters
    assert len(parameters) <= 18
    found = documented(kind)
    assert list(found) == list(parameters)
    for entry, parameter in parameters.items():
        shown = re.escape(shown_default(parameter.default))
        assert parameter.default is parameter.empty or re.search(rf"{shown}(?![\d.])", found[entry]), entry


def documented(kind):
    """The parameters in the docstring of a class."""
    text = re.split(r"^(?:Attributes|See Also)\n", inspect.cleandoc(kind.__doc__), flags=re.MULTILINE)[0]
    return dict(re.findall(r"^(\w+) : (.*)$", text, flags=re.MULTILINE))


def shown_default(value):
    if isinstance(value, tuple):
        return "default ("
    return f'default "{value}"' if isinstance(value, str) else f"default {value}"

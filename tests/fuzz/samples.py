"""Valid samples and valid options: the arguments of a call before something odd is put into them."""

import ast
import inspect
import re
from functools import cache

import numpy as np
from scipy import sparse

from mopn.losses.losses import LOSSES, get_loss
from mopn.solvers import FullRefit, OutputRefit, PlainStep


def pick(rng, items):
    """Return one of some items, of any types."""
    return items[int(rng.integers(len(items)))]


def draw_X(rng):
    """Return samples in [-1, 1], dense, with zeros, or sparse."""
    n, d = int(rng.integers(20, 61)), int(rng.integers(3, 6))
    X = rng.uniform(-1, 1, (n, d))
    form = rng.uniform()
    if form < 0.4:
        X *= np.abs(X) > 0.5
    return sparse.csr_array(X) if form < 0.2 else X


def draw_targets(rng, X, kind):
    """Return targets that a quadratic function of the samples decides.

    Kinds: "labels" and "two" are labels of three and two classes, "levels" and "numbers" are (n,), "several" is (n, m),
    "counts" are whole numbers (n,) from 0, "signs" and "sign" are -1 and 1, (n, m) and (n,).
    """
    X = X.toarray() if sparse.issparse(X) else X
    m = int(rng.integers(2, 4))
    scores = np.einsum("ni,cij,nj->nc", X, rng.standard_normal((m, X.shape[1], X.shape[1])), X)
    scores += 0.1 * rng.standard_normal(scores.shape)
    first, ranks = scores[:, 0], np.argsort(np.argsort(scores[:, 0]))
    return {
        "labels": 3 * ranks // len(X),
        "two": 2 * ranks // len(X),
        "levels": 1.0 + 4 * ranks // len(X),
        "numbers": first,
        "several": scores,
        "counts": np.floor(np.exp(first / max(np.abs(first).max(), 1e-9))),
        "signs": np.sign(scores),
        "sign": np.sign(first),
    }[kind]


def targets_of(loss, *, single):
    """Return the kind of targets that a loss takes."""
    kind = get_loss(loss).targets
    single_kinds = {"numbers": "numbers", "signs": "sign", "counts": "counts"}
    return single_kinds[kind] if single else {"numbers": "several"}.get(kind, kind)


def draw_weights(rng, n):
    """Return no weights, or weights of which some may be zero."""
    form = rng.uniform()
    if form < 0.7:
        return None
    weights = rng.uniform(0.5, 2.0, n)
    return weights * (rng.uniform(size=n) > 0.1) if form < 0.85 else weights


# -- options -----------------------------------------------------------------------------------------------------------

# Options that are always set, since a call must be short.
_SHORT = {
    "max_units": lambda rng: int(rng.integers(2, 4)),
    "max_iter": lambda rng: int(rng.integers(2, 5)),
    "max_time": lambda rng: 5.0,
    "n_components": lambda rng: int(rng.integers(1, 4)),
    "n_units": lambda rng: int(rng.integers(1, 4)),
    "rank": lambda rng: int(rng.integers(1, 4)),
    "strengths": lambda rng: 10.0 ** rng.uniform(-2, 1, 2),
    "cv": lambda rng: 2,
    "random_state": lambda rng: int(rng.integers(100)),
    "rng": lambda rng: int(rng.integers(100)),
    "rounds": lambda rng: 1,
}
# Options without a list of choices in the docstring, or with more of them.
_REFITS = ("full", "output", "none", FullRefit(max_iter=5), OutputRefit(), PlainStep("open-loop"))
_OTHERS = {
    "degree": lambda rng: pick(rng, (2, 2, 3)),
    "alpha": lambda rng: float(10.0 ** rng.uniform(-2, 1)),
    "beta": lambda rng: float(10.0 ** rng.uniform(-2, 1)),
    "tol": lambda rng: pick(rng, (1e-1, 1e-3, 1e-6)),
    "oracle": lambda rng: pick(rng, ("auto", "exact", "refine", "eigh")),
    "refit": lambda rng: pick(rng, _REFITS),
    "class_weight": lambda rng: "balanced",
    "batch_size": lambda rng: int(rng.integers(1, 9)),
    "decay": lambda rng: 0.1,
    "atoms_per_round": lambda rng: int(rng.integers(1, 4)),
}
# How often an option that has a default is set to another value.
_SET_OPTIONS = 0.3


def draw_options(rng, function, given=()):
    """Return options of a class or a function that are not among those given: short runs, else mostly the defaults."""
    options = {}
    parameters, documented = parameters_of(function), _choices(function)
    for name, parameter in parameters.items():
        if name in given:
            continue
        if name in _SHORT:
            options[name] = _SHORT[name](rng)
        elif name == "loss":
            options[name] = pick(rng, documented.get(name) or [parameter.default])
        elif rng.uniform() < _SET_OPTIONS:
            if name in _OTHERS:
                options[name] = _OTHERS[name](rng)
            elif name in documented:
                options[name] = pick(rng, documented[name])
            elif isinstance(parameter.default, bool) and name != "warm_start":
                options[name] = not parameter.default
    if {"strength", "radius"} <= parameters.keys():
        form = "strength" if rng.uniform() < 0.8 else "radius"
        options |= {"strength": None, "radius": None, form: float(10.0 ** rng.uniform(-1.5, 0.7))}
    return options


@cache
def parameters_of(function):
    """Return the parameters of a class or a function by name."""
    return inspect.signature(function).parameters


@cache
def _choices(function):
    """Return the choices of options that a docstring lists in braces, and the names of losses that it mentions."""
    doc = inspect.cleandoc(function.__doc__ or "")
    choices = {
        name: sorted(ast.literal_eval(listed), key=repr)
        for name, listed in re.findall(r"^(\w+) : .*?(\{[^}]*\})", doc, flags=re.MULTILINE)
        if "..." not in listed
    }
    entry = re.search(r"^loss : .*\n(?:    .*\n)*", doc, flags=re.MULTILINE)
    if entry and "loss" not in choices:
        choices["loss"] = [name for name in LOSSES if f'"{name}"' in entry[0]] or list(LOSSES)
    return choices

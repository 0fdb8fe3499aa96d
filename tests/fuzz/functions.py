"""The public functions, and the models made by hand: how to draw valid arguments, and how to make the call."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import mopn
from tests.fitted_models import KINDS, factors
from tests.fuzz.checks import Found, require
from tests.fuzz.interfaces import Arguments, Interface, Maker, n_outputs
from tests.fuzz.trial import pick
from tests.own_losses import OWN_LOSSES
from tests.table_models import network, table

Generator = np.random.Generator


class Function(Interface):
    """A function.

    Parameters
    ----------
    function : callable
    draw : callable
        Returns its arguments from a generator.
    found : callable, optional
        Returns what a value of the function says.
    raises : tuple of exception types
        What it documents to raise, beside ValueError and TypeError.
    """

    def __init__(
        self,
        function: Any,
        draw: Callable[[Generator], dict[str, Any]],
        found: Callable[[Any], Found] = lambda value: Found({"value": np.asarray(value)}),
        raises: tuple[type[BaseException], ...] = (),
        words: frozenset[str] = frozenset(),
    ) -> None:
        self.function, self._draw, self._found = function, draw, found
        self.name, self.refusals, self.words = function.__name__, (ValueError, TypeError, *raises), words

    @property
    def functions(self) -> dict[str, Any]:
        return {"call": self.function}

    def draw(self, rng: Generator) -> Arguments:
        return {"call": self._draw(rng)}

    def run(self, arguments: Arguments) -> Found:
        return self._found(self.function(**arguments["call"]))


class ByHand(Interface):
    """A model made by hand, and its predictions."""

    words = frozenset({"X", "features", "samples"})

    def __init__(self, cls: type) -> None:
        self.cls, self.name = cls, cls.__name__

    @property
    def functions(self) -> dict[str, Any]:
        return {"init": self.cls}

    def draw(self, rng: Generator) -> Arguments:
        model = pick(rng, [model for model in KINDS.values() if type(model) is self.cls])
        return {"init": model._fields(), "predict": {"X": rng.uniform(-1, 1, (7, model.n_features))}}

    def run(self, arguments: Arguments) -> Found:
        model = self.cls(**arguments["init"])
        X = arguments["predict"]["X"]
        numbers = {"outputs": model.outputs(X), "predict": np.asarray(model.predict(X))}
        if model.link is not None:
            numbers["predict_proba"] = model.predict_proba(X)
        return Found(numbers, made=model)


# -- functions ---------------------------------------------------------------------------------------------------------


def _network_problem(rng: Generator) -> mopn.NetworkProblem:
    while True:
        try:
            return mopn.NetworkProblem(**Maker(mopn.NetworkProblem).draw(rng)["problem"])
        except ValueError:
            continue


def _factorization_model(rng: Generator) -> mopn.FactorizationModel:
    degree, form = pick(rng, (2, 3)), pick(rng, ("direct", "lifted"))
    orders = degree if form == "lifted" else 1
    return factors(orders, d=int(rng.integers(3, 6)), degree=degree, form=form, kernel="homogeneous")


def _of_certify(rng: Generator) -> dict[str, Any]:
    problem = _network_problem(rng)
    k = int(rng.integers(0, 3))
    weights = 1e-3 * rng.standard_normal((k, problem.losses.n_outputs))
    return {"problem": problem, "basis": rng.standard_normal((k, problem.design.shape[1])), "weights": weights}


def _of_certify_network(rng: Generator) -> dict[str, Any]:
    drawn = Maker(mopn.NetworkProblem).draw(rng)["problem"]
    X, y, k, norm = drawn["X"], drawn["y"], int(rng.integers(1, 4)), drawn.get("norm", "l1/l2")
    m = n_outputs(y)
    V = rng.standard_normal((k, m))
    return {
        "H": rng.standard_normal((k, X.shape[1] + int(rng.integers(2)))),
        "V": np.abs(V) if norm == "nonnegative-l1" else V,
        "linear": pick(rng, (None, (rng.standard_normal((m, X.shape[1])), None), (None, rng.standard_normal(m)))),
        **{name: drawn[name] for name in ("X", "y", "loss", "sample_weight")},
        "norm": norm,
        "offset": None,
        "oracle": "auto",
    }


def _of_path(rng: Generator) -> dict[str, Any]:
    problem = _network_problem(rng)
    return {
        "problem": problem,
        "strengths": 2,
        "max_time": 5.0,
        "score": lambda model: 0.5,
        "patience": 2,
    }


def _of_strongest(rng: Generator) -> dict[str, Any]:
    model = _factorization_model(rng)
    return {"model": model, "k": 3, "degree": model.degree}


def _of_effects(rng: Generator) -> dict[str, Any]:
    X = table(int(rng.integers(3, 9)), int(rng.integers(9)))
    return {"model": network(X, outputs=int(rng.integers(1, 4))), "X": X}


def _of_weights(rng: Generator) -> dict[str, Any]:
    model = _factorization_model(rng)
    return {
        "model": model,
        "features": [tuple(range(model.degree)), tuple(range(1, model.degree + 1))][: int(rng.integers(3))],
    }


def _of_oracle(rng: Generator) -> dict[str, Any]:
    m, d = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    gammas = rng.standard_normal((m, d, d))
    norm = pick(rng, ("l1", "l1/l2", "l1/linf"))
    return {
        "norm": norm,
        "method": pick(
            rng, ("auto", "power", "eigh", "refine", "exact", *(["enumerate"] if norm == "l1/linf" else []))
        ),
        "gammas": gammas + gammas.transpose(0, 2, 1),
        "precision": pick(rng, (None, 1e-3)),
    }


def basis_oracle(
    norm: Any,
    gammas: Any,
    method: Any = "auto",
    tol: Any = 1e-6,
    max_work: Any = 4.4e7,
    max_time: Any = 1.0,
    precision: Any = None,
    work: Any = np.inf,
    seconds: Any = np.inf,
) -> Any:
    """Make an oracle, and call it on a stack."""
    effort = mopn.solvers.interface.Effort(precision, work, seconds)
    return mopn.oracles.basis_oracle(norm, method, tol, max_work, max_time)(gammas, effort)


def _found_by_oracle(atoms: Any) -> Found:
    # No unit is better than the bound.
    require(atoms.values.max() <= atoms.bound, f"the value {atoms.values.max()!r} exceeds the bound {atoms.bound!r}")
    return Found({"basis": atoms.basis, "values": atoms.values})


def _found_on_path(path: Any) -> Found:
    return Found({"strengths": path.strengths, "fun": path.column("fun")})


_STACK = frozenset({"Gamma", "precision", "work", "seconds"})
_FUNCTIONS = [
    Function(
        mopn.certify, _of_certify, lambda measure: Found({}, measure.fun, measure.gap), words=frozenset({"start"})
    ),
    Function(
        mopn.certify_network,
        _of_certify_network,
        lambda found: Found({"unit": found.unit, "weights": found.unit_weights}, found.objective, found.gap),
        words=frozenset({"radius"}),
    ),
    Function(mopn.path, _of_path, _found_on_path, words=frozenset({"max_iter", "callback", "NetworkProblem"})),
    Function(
        mopn.explain.strongest_interactions,
        _of_strongest,
        lambda found: Found({"weights": np.array([i.weight for i in found])}),
    ),
    Function(mopn.explain.interaction_weights, _of_weights),
    Function(mopn.explain.effects, _of_effects, lambda found: Found({"constant": np.asarray(found.constant)})),
    Function(basis_oracle, _of_oracle, _found_by_oracle, words=_STACK),
    Function(
        mopn.testing.check_loss,
        lambda rng: {"loss": pick(rng, OWN_LOSSES)},
        lambda nothing: Found({}),
        words=frozenset({"targets"}),
    ),
]


@cache
def functions() -> list[Interface]:
    """All functions, and the models made by hand."""
    return [*_FUNCTIONS, ByHand(mopn.Model), ByHand(mopn.FactorizationModel)]

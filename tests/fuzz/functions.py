"""The public functions, and the models made by hand: how to draw valid arguments, and how to make the call."""

import numpy as np

import mopn
from tests.fitted_models import KINDS, factors
from tests.fuzz.checks import Found
from tests.fuzz.interfaces import Interface, Maker, n_outputs
from tests.fuzz.samples import pick
from tests.table_models import network, table


class Function(Interface):
    """A function: ``draw`` returns its arguments from a generator, and ``found`` what its value says."""

    def __init__(self, function, draw, found=lambda value: Found({"value": np.asarray(value)}), words=()):
        self.name, self.words = function.__name__, frozenset(words)
        self.functions = {"call": function}
        self.draw = lambda rng: {"call": draw(rng)}
        self.run = lambda arguments: found(function(**arguments["call"]))


class ByHand(Interface):
    """A model made by hand, and its predictions."""

    words = frozenset({"X", "features", "samples"})

    def __init__(self, cls):
        self.cls, self.name = cls, cls.__name__
        self.functions = {"init": cls}

    def draw(self, rng):
        model = pick(rng, [model for model in KINDS.values() if type(model) is self.cls])
        return {"init": model._fields(), "predict": {"X": rng.uniform(-1, 1, (7, model.n_features))}}

    def run(self, arguments):
        model = self.cls(**arguments["init"])
        X = arguments["predict"]["X"]
        numbers = {"outputs": model.outputs(X), "predict": np.asarray(model.predict(X))}
        if model.link is not None:
            numbers["predict_proba"] = model.predict_proba(X)
        return Found(numbers, made=model)


def _network_problem(rng):
    while True:
        try:
            return mopn.NetworkProblem(**Maker(mopn.NetworkProblem).draw(rng)["problem"])
        except ValueError:
            # Options that exclude each other.
            continue


def _factorization_model(rng):
    degree, form = pick(rng, (2, 3)), pick(rng, ("direct", "lifted"))
    orders = degree if form == "lifted" else 1
    return factors(orders, d=int(rng.integers(3, 6)), degree=degree, form=form, kernel="homogeneous")


def _of_certify(rng):
    problem = _network_problem(rng)
    k = int(rng.integers(0, 3))
    weights = 1e-3 * rng.standard_normal((k, problem.losses.n_outputs))
    return {"problem": problem, "basis": rng.standard_normal((k, problem.design.shape[1])), "weights": weights}


def _of_certify_network(rng):
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


def _of_path(rng):
    options = {"strengths": 2, "max_time": 5.0, "score": lambda model: 0.5, "patience": 2}
    return {"problem": _network_problem(rng), **options}


def _of_strongest(rng):
    model = _factorization_model(rng)
    return {"model": model, "k": 3, "degree": model.degree}


def _of_effects(rng):
    X = table(int(rng.integers(3, 9)), int(rng.integers(9)))
    return {"model": network(X, outputs=int(rng.integers(1, 4))), "X": X}


def _of_weights(rng):
    model = _factorization_model(rng)
    features = [tuple(range(model.degree)), tuple(range(1, model.degree + 1))]
    return {"model": model, "features": features[: int(rng.integers(3))]}


def functions():
    """All functions, and the models made by hand."""
    explain = mopn.explain
    return [
        Function(mopn.certify, _of_certify, lambda measure: Found({}, measure.fun, measure.gap), {"start"}),
        Function(
            mopn.certify_network,
            _of_certify_network,
            lambda found: Found({"unit": found.unit, "weights": found.unit_weights}, found.objective, found.gap),
            {"radius"},
        ),
        Function(
            mopn.path,
            _of_path,
            lambda path: Found({"strengths": path.strengths, "fun": path.column("fun")}),
            {"max_iter", "callback", "NetworkProblem"},
        ),
        Function(
            explain.strongest_interactions,
            _of_strongest,
            lambda found: Found({"weights": np.array([interaction.weight for interaction in found])}),
        ),
        Function(explain.interaction_weights, _of_weights),
        Function(explain.effects, _of_effects, lambda found: Found({"constant": np.asarray(found.constant)})),
        ByHand(mopn.Model),
        ByHand(mopn.FactorizationModel),
    ]

"""The table of interfaces, from the public names: how to draw valid arguments, and how to make the call.

Every step of a call, such as "init" and "fit", has its arguments, by name.
"""

from functools import cache

import numpy as np
from estimator_names import OF_SAMPLES
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import get_tags

import mopn
import mopn.estimators
from mopn.solvers import Solver
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.interface import Problem
from tests.fuzz.arrays import TAKEN_BY_TABLES
from tests.fuzz.checks import Found
from tests.fuzz.samples import draw_options, draw_targets, draw_weights, draw_X, parameters_of, pick, targets_of
from tests.helpers.fitted_models import KINDS, factors
from tests.helpers.table_models import network, table

# Draws of a problem that offers the oracle of a solver.
_TRIES = 40


class Interface:
    """A public interface: ``draw(rng)`` returns valid arguments, and ``run(arguments)`` the findings of the call.

    ``functions`` are the class or the function that takes the arguments of each step, where these have a signature.
    """

    name = ""
    refusals = (ValueError, TypeError)
    # Words for arguments that have several names.
    words = frozenset()
    # The names of arguments that are taken and not read.
    ignored = ()
    # Changes of X that have a meaning here, though others refuse them.
    taken = frozenset()

    @property
    def defaults(self):
        """The options that have a default."""
        return {
            step: {name: p.default for name, p in parameters_of(function).items() if p.default is not p.empty}
            for step, function in self.functions.items()
        }

    @property
    def names(self):
        """The names of all arguments, and what messages call them."""
        return self.words.union(*map(parameters_of, self.functions.values()))


# -- estimators --------------------------------------------------------------------------------------------------------


class Fit(Interface):
    """Fit an estimator, and predict."""

    words = frozenset({"X", "y", "sample_weight", "features", "samples", "classes", "callback", "intermediate_result"})

    def __init__(self, cls):
        self.cls, self.name = cls, cls.__name__
        self.functions = {"init": cls}
        self.taken = frozenset(TAKEN_BY_TABLES if self.name.startswith("Table") else ())
        if not hasattr(cls, "predict"):
            self.ignored = ("y",)
            self.taken |= {"fewer rows", "more rows"}

    @property
    def targets(self):
        """The kind of y."""
        if not is_classifier(self.cls()):
            return "levels"
        return "labels" if get_tags(self.cls()).classifier_tags.multi_class else "two"

    def draw(self, rng):
        X = draw_X(rng)
        # The docstrings of regressors mention losses that are not for them.
        given = ("loss",) if self.targets == "levels" else ()
        return {
            "init": draw_options(rng, self.cls, given),
            "fit": {"X": X, "y": draw_targets(rng, X, self.targets), "sample_weight": draw_weights(rng, X.shape[0])},
            "predict": {"X": rng.uniform(-1, 1, (7, X.shape[1]))},
        }

    def run(self, arguments):
        return self.found(self.fitted(arguments), **arguments["predict"])

    def fitted(self, arguments):
        """Return the estimator, fitted."""
        return self.learn(self.cls(**arguments["init"]), arguments)

    def learn(self, estimator, arguments):
        """Fit an estimator."""
        return estimator.fit(**arguments["fit"])

    def found(self, estimator, X):
        """Return the fitted attributes and the predictions."""
        numbers = {
            name: value
            for name, value in vars(estimator).items()
            if name.endswith("_") and not name.startswith("_") and isinstance(value, np.ndarray)
        }
        for method in ("predict", "decision_function", "predict_proba", "transform"):
            if hasattr(estimator, method):
                values = getattr(estimator, method)(X)
                numbers[method] = values.toarray() if sparse.issparse(values) else np.asarray(values)
        return Found(numbers, getattr(estimator, "objective_", None), getattr(estimator, "gap_", None), estimator)


class PartialFit(Fit):
    """Fit an estimator part by part, and predict."""

    # An estimator whose solver makes no passes has no such method.
    refusals = (ValueError, TypeError, AttributeError)
    words = Fit.words | {"partial_fit"}

    def __init__(self, cls):
        super().__init__(cls)
        self.name = f"{cls.__name__}.partial_fit"

    def draw(self, rng):
        arguments = super().draw(rng)
        arguments["init"]["solver"] = pick(rng, ("adagrad", "sgd"))
        if "classes" in parameters_of(self.cls.partial_fit):
            arguments["fit"]["classes"] = np.unique(arguments["fit"]["y"])
        return arguments

    def learn(self, estimator, arguments):
        return estimator.partial_fit(**arguments["fit"]).partial_fit(**arguments["fit"])


class Search(Fit):
    """Choose parameters of an estimator of networks on held-out samples, and predict."""

    targets = "labels"

    def __init__(self):
        super().__init__(mopn.estimators.PathCV)
        self.single = Fit(mopn.estimators.MultiOutputPNClassifier)

    def draw(self, rng):
        arguments = self.single.draw(rng)
        arguments["init"].pop("radius", None)
        options = draw_options(rng, self.cls, ("estimator",))
        return {**arguments, "init": {"estimator": self.single.cls(**arguments["init"]), **options}}


@cache
def estimators():
    """All estimators, and those that learn part by part."""
    classes = [getattr(mopn.estimators, name) for name in OF_SAMPLES if name != "PathCV"]
    learners = [cls for cls in classes if hasattr(cls, "partial_fit")]
    return [*map(Fit, classes), Search(), *map(PartialFit, learners)]


# -- problems and solvers ----------------------------------------------------------------------------------------------


class Maker:
    """A problem that is made from samples: its first two arguments are X, or features, and y."""

    def __init__(self, cls):
        self.cls, self.name = cls, cls.__name__
        self.data, self.y, *_ = parameters_of(cls)
        self.names = set(parameters_of(cls))
        self.single = bool(self.names & {"n_components", "rank"})

    def draw(self, rng):
        options = draw_options(rng, self.cls, (self.data, self.y, "sample_weight", "offset"))
        X = draw_X(rng)
        X = X if self.data == "X" else np.abs(X.toarray() if sparse.issparse(X) else X)
        y = draw_targets(rng, X, targets_of(options["loss"], single=self.single))
        data = {self.data: X, self.y: y, "sample_weight": draw_weights(rng, X.shape[0])}
        if rng.uniform() < 0.1:
            data["offset"] = rng.uniform(-1, 1, X.shape[0] if self.single else n_outputs(y))
        return {"problem": data | options}

    def make(self, arguments):
        """Return the problem."""
        return self.cls(**arguments["problem"])


class Solve(Interface):
    """Minimise a problem with a solver, or with a solver that is made of a part of it."""

    words = frozenset({"callback", "intermediate_result", "refit", "Solver", "basis", "weights", "samples"})

    def __init__(self, maker, part, make_solver=None):
        self.maker, self.name = maker, f"{maker.name} {part.__name__}"
        self.make_solver = make_solver or (lambda options: part(**options))
        self.functions = {"problem": maker.cls, "solver": part, "minimize": mopn.minimize}

    def draw(self, rng):
        return next(drawn for _ in range(100 * _TRIES) if (drawn := self.draw_fitting(rng)))

    def draw_fitting(self, rng):
        """Return arguments, unless the problem does not offer the solver's oracle."""
        arguments = self.maker.draw(rng) | {
            "solver": draw_options(rng, self.functions["solver"]),
            "minimize": {
                "max_iter": int(rng.integers(2, 5)),
                "max_time": 5.0,
                "tol": pick(rng, (1e-6, 1e-3)),
                "start": None,
                "callback": None,
            },
        }
        try:
            needs = self.make_solver(arguments["solver"]).needs
            return arguments if needs <= self.maker.make(arguments).oracles else None
        except ValueError:
            # Options that exclude each other.
            return None

    def run(self, arguments):
        options = {"solver": None} | arguments["minimize"]
        solver = self.make_solver(arguments["solver"])
        options["solver"] = solver if options["solver"] is None else options["solver"]
        result = mopn.minimize(self.maker.make(arguments), **options)
        numbers = {}
        for name, part in result.items():
            parts = part if isinstance(part, list) else [part]
            if all(isinstance(array, np.ndarray) for array in parts):
                numbers |= {f"{name}{index or ''}": array for index, array in enumerate(parts)}
        return Found(numbers, result.fun, result.gap, result)


def _correct(correction):
    """Return the minimisation of a network problem by conditional gradient, with a correction from its options."""

    def make_solver(options):
        return mopn.solvers.ConditionalGradient(refit=correction(**options), max_units=3)

    return Solve(Maker(mopn.NetworkProblem), correction, make_solver)


def public(module, base):
    """Return the public classes of a module that are derived from a base."""
    things = [getattr(module, name) for name in module.__all__]
    # Not issubclass, which protocols do not allow.
    return [thing for thing in things if isinstance(thing, type) and base in thing.__mro__[1:]]


@cache
def solves():
    """Every problem with every solver whose oracles it offers, with some options."""
    # Implicit feedback has pairs of users and items in place of X and y, and attacks of its own.
    makers = [Maker(cls) for cls in public(mopn, Problem) if cls is not mopn.ImplicitProblem]
    pairs = [Solve(maker, solver) for maker in makers for solver in public(mopn.solvers, Solver)]
    pairs += map(_correct, public(mopn.solvers, CorrectiveStep))
    rng = np.random.default_rng(0)
    return [pair for pair in pairs if any(pair.draw_fitting(rng) for _ in range(_TRIES))]


def n_outputs(y):
    """Return the number of outputs: one a class of labels."""
    return len(np.unique(y)) if y.dtype.kind == "i" else y.reshape(len(y), -1).shape[1]


# -- functions, and models made by hand --------------------------------------------------------------------------------


class Function(Interface):
    """A function: ``draw`` returns its arguments from a generator, and ``found`` the findings from its value."""

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
    form = pick(rng, ("direct", "lifted"))
    orders = 2 if form == "lifted" else 1
    return factors(orders, d=int(rng.integers(3, 6)), degree=2, form=form, kernel="homogeneous")


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


def _of_effects(rng):
    X = table(int(rng.integers(3, 9)), int(rng.integers(9)))
    return {"model": network(X, outputs=int(rng.integers(1, 4))), "X": X}


@cache
def interfaces():
    """All interfaces."""
    explain = mopn.explain
    return [
        *estimators(),
        *solves(),
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
            lambda rng: {"model": _factorization_model(rng), "k": 3, "degree": 2},
            lambda found: Found({"weights": np.array([interaction.weight for interaction in found])}),
        ),
        Function(
            explain.interaction_weights,
            lambda rng: {"model": _factorization_model(rng), "features": [(0, 1), (1, 2)][: int(rng.integers(3))]},
        ),
        Function(explain.effects, _of_effects, lambda found: Found({"constant": np.asarray(found.constant)})),
        ByHand(mopn.Model),
        ByHand(mopn.FactorizationModel),
    ]

"""The table of interfaces, from the public names: how to draw valid arguments, and how to make the call."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import get_tags

import mopn
import mopn.estimators
from mopn.network.joint import JointProblem
from mopn.network.unit_ball import UnitBallProblem
from mopn.solvers import Solver
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.interface import Form, Problem
from tests.fuzz.checks import Found
from tests.fuzz.inputs.refused import TAKEN_BY_TABLES
from tests.fuzz.samples import draw_options, draw_targets, draw_weights, draw_X, targets_of
from tests.fuzz.trial import WrongError

# The steps of a call, such as "init" and "fit", with the arguments of each.
Arguments = dict[str, dict[str, Any]]
# Drawing a problem that offers what a solver needs.
_TRIES = 40


class Interface(ABC):
    """A public interface."""

    name: str
    refusals: tuple[type[BaseException], ...] = (ValueError, TypeError)

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Arguments:
        """Return valid arguments."""

    @abstractmethod
    def run(self, arguments: Arguments) -> Found:
        """Make the call."""

    @property
    @abstractmethod
    def functions(self) -> dict[str, Any]:
        """The class or the function that takes the arguments of each step, where these have a signature."""

    @property
    def defaults(self) -> Arguments:
        """The options that have a default."""
        return {
            step: {
                name: p.default
                for name, p in inspect.signature(function).parameters.items()
                if p.default is not p.empty
            }
            for step, function in self.functions.items()
        }

    # Words for arguments that have several names.
    words: frozenset[str] = frozenset()

    @property
    def ignored(self) -> tuple[str, ...]:
        """The names of arguments that are taken and not read."""
        return ()

    @property
    def taken(self) -> Collection[str]:
        """Changes of X that have a meaning here, though others refuse them."""
        return ()

    @property
    def names(self) -> frozenset[str]:
        """The names of all arguments, and what messages call them."""
        return self.words.union(*(inspect.signature(function).parameters for function in self.functions.values()))


# -- estimators --------------------------------------------------------------------------------------------------------


class Fit(Interface):
    """Fit an estimator, and predict."""

    words = frozenset({"X", "y", "sample_weight", "features", "samples", "classes", "callback", "intermediate_result"})

    def __init__(self, cls: type) -> None:
        self.cls, self.name = cls, cls.__name__

    @property
    def functions(self) -> dict[str, Any]:
        return {"init": self.cls}

    @property
    def ignored(self) -> tuple[str, ...]:
        return () if hasattr(self.cls, "predict") else ("y",)

    @property
    def taken(self) -> Collection[str]:
        taken = TAKEN_BY_TABLES if self.name.startswith("Table") else set()
        return taken | ({"fewer rows", "more rows"} if "y" in self.ignored else set())

    @property
    def targets(self) -> str:
        """The kind of y."""
        if not is_classifier(self.cls()):
            return "levels"
        return "labels" if get_tags(self.cls()).classifier_tags.multi_class else "two"

    def draw(self, rng: np.random.Generator) -> Arguments:
        X = draw_X(rng)
        # The docstrings of regressors mention losses that are not for them.
        given = ("loss",) if self.targets == "levels" else ()
        return {
            "init": draw_options(rng, self.cls, given),
            "fit": {"X": X, "y": draw_targets(rng, X, self.targets), "sample_weight": draw_weights(rng, X.shape[0])},
            "predict": {"X": rng.uniform(-1, 1, (7, X.shape[1]))},
        }

    def run(self, arguments: Arguments) -> Found:
        estimator = self.fitted(arguments)
        return self.found(estimator, **arguments["predict"])

    def fitted(self, arguments: Arguments) -> Any:
        """Return the estimator, fitted."""
        return self.cls(**arguments["init"]).fit(**arguments["fit"])

    def found(self, estimator: Any, X: Any) -> Found:
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

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self.name = f"{cls.__name__}.partial_fit"

    def draw(self, rng: np.random.Generator) -> Arguments:
        arguments = super().draw(rng)
        arguments["init"]["solver"] = ("adagrad", "sgd")[int(rng.integers(2))]
        if "classes" in inspect.signature(self.cls.partial_fit).parameters:
            arguments["fit"]["classes"] = np.unique(arguments["fit"]["y"])
        return arguments

    def fitted(self, arguments: Arguments) -> Any:
        estimator = self.cls(**arguments["init"])
        return estimator.partial_fit(**arguments["fit"]).partial_fit(**arguments["fit"])


# The searches, and the estimators in them.
SEARCHES = {"PathCV": "MultiOutputPNClassifier"}


class Search(Fit):
    """Choose parameters of an estimator of networks on held-out samples, and predict."""

    targets = "labels"

    def __init__(self, name: str) -> None:
        super().__init__(getattr(mopn.estimators, name))
        self.single = Fit(getattr(mopn.estimators, SEARCHES[name]))

    def draw(self, rng: np.random.Generator) -> Arguments:
        arguments = self.single.draw(rng)
        arguments["init"].pop("radius", None)
        options = draw_options(rng, self.cls, ("estimator",))
        return {**arguments, "init": {"estimator": self.single.cls(**arguments["init"]), **options}}


@cache
def estimators() -> list[Fit]:
    """All estimators, and those that learn part by part."""
    classes = [getattr(mopn.estimators, name) for name in mopn.estimators.__all__ if name not in SEARCHES]
    learners = [cls for cls in classes if hasattr(cls, "partial_fit")]
    return [*map(Fit, classes), *map(Search, SEARCHES), *map(PartialFit, learners)]


# -- problems and solvers ----------------------------------------------------------------------------------------------


class Maker:
    """A problem that is made from samples: its first two arguments are X, or features, and y."""

    def __init__(self, cls: type[Problem]) -> None:
        self.cls, self.name = cls, cls.__name__
        self.data, self.y, *_ = inspect.signature(cls).parameters
        self.single = "n_components" in self.names or "rank" in self.names

    @property
    def names(self) -> set[str]:
        return set(inspect.signature(self.cls).parameters)

    def draw(self, rng: np.random.Generator) -> Arguments:
        options = draw_options(rng, self.cls, (self.data, self.y, "sample_weight", "offset"))
        X = draw_X(rng)
        X = X if self.data == "X" else np.abs(X.toarray() if hasattr(X, "toarray") else X)
        y = draw_targets(rng, X, targets_of(options["loss"], single=self.single))
        data = {self.data: X, self.y: y, "sample_weight": draw_weights(rng, X.shape[0])}
        if rng.uniform() < 0.1:
            data["offset"] = rng.uniform(-1, 1, X.shape[0] if self.single else n_outputs(y))
        return {"problem": data | options}

    def make(self, arguments: Arguments) -> Problem:
        return self.cls(**arguments["problem"])


class Joint(Maker):
    """A refit of both layers, made from a network problem and a network."""

    def __init__(self, cls: type[Problem], form: str) -> None:
        super().__init__(mopn.NetworkProblem)
        self.name, self.form = cls.__name__, form

    def draw(self, rng: np.random.Generator) -> Arguments:
        arguments = super().draw(rng)
        at = arguments["problem"]
        dummies = {"homogeneous": 1, "anova": 2}[at.get("kernel", "homogeneous")] if at.get("augment") else 0
        basis = rng.standard_normal((2, dummies + at["X"].shape[1]))
        weights = 0.1 * rng.standard_normal((2, n_outputs(at["y"])))
        return arguments | {"network": {"basis": basis, "weights": weights}}

    def make(self, arguments: Arguments) -> Problem:
        problem = mopn.NetworkProblem(**arguments["problem"])
        network = problem.start((arguments["network"]["basis"], arguments["network"]["weights"]))
        return problem.joint(network, Form(self.form))


# Problems that are made from another one, and the form of their refits.
_JOINT = {JointProblem: "gradient", UnitBallProblem: "composite"}


class Solve(Interface):
    """Minimise a problem with a solver."""

    words = frozenset({"callback", "intermediate_result", "refit", "Solver", "basis", "weights", "samples"})

    def __init__(self, maker: Maker, solver: type[Solver]) -> None:
        self.maker, self.solver, self.name = maker, solver, f"{maker.name} {solver.__name__}"

    @property
    def functions(self) -> dict[str, Any]:
        return {"problem": self.maker.cls, "solver": self.solver, "minimize": mopn.minimize}

    def draw(self, rng: np.random.Generator) -> Arguments:
        return next(drawn for _ in range(100 * _TRIES) if (drawn := self.draw_fitting(rng)))

    def draw_fitting(self, rng: np.random.Generator) -> Arguments | None:
        """Return arguments, unless the problem does not offer what the solver needs."""
        arguments = self.maker.draw(rng) | {
            "solver": draw_options(rng, self.solver),
            "minimize": {
                "max_iter": int(rng.integers(2, 5)),
                "max_time": 5.0,
                "tol": (1e-6, 1e-3)[int(rng.integers(2))],
                "start": None,
                "callback": None,
            },
        }
        try:
            problem = self.maker.make(arguments)
        except ValueError:
            # Options that exclude each other.
            return None
        return arguments if self.solver(**arguments["solver"]).needs <= problem.oracles else None

    def make_solver(self, options: dict[str, Any]) -> Solver:
        """Return the solver with options."""
        return self.solver(**options)

    def run(self, arguments: Arguments) -> Found:
        problem, solver = self.maker.make(arguments), self.make_solver(arguments["solver"])
        result = mopn.minimize(problem, **({"solver": solver} | arguments["minimize"]))
        if isinstance(result.error, WrongError):
            # From a callback that checks.
            raise result.error
        numbers = {}
        for name, part in result.items():
            parts = part if isinstance(part, list) else [part]
            if all(isinstance(array, np.ndarray) for array in parts):
                numbers |= {f"{name}{index or ''}": array for index, array in enumerate(parts)}
        return Found(numbers, result.fun, result.gap, result)


class Correct(Solve):
    """Minimise a network problem by conditional gradient, with a correction made from its options."""

    def __init__(self, correction: type) -> None:
        super().__init__(Maker(mopn.NetworkProblem), mopn.solvers.ConditionalGradient)
        self.correction, self.name = correction, f"NetworkProblem {correction.__name__}"

    @property
    def functions(self) -> dict[str, Any]:
        return super().functions | {"solver": self.correction}

    def draw_fitting(self, rng: np.random.Generator) -> Arguments | None:
        arguments, options = super().draw_fitting(rng), draw_options(rng, self.correction)
        try:
            self.make_solver(options)
        except ValueError:
            # Options that exclude each other.
            return None
        return None if arguments is None else arguments | {"solver": options}

    def make_solver(self, options: dict[str, Any]) -> Solver:
        return self.solver(refit=self.correction(**options), max_units=3)


@cache
def solves() -> list[Solve]:
    """Every problem with every solver whose oracles it offers, with some options."""
    classes = [cls for name in mopn.__all__ if _is_subclass(cls := getattr(mopn, name), Problem)]
    makers = [Maker(cls) for cls in classes] + [Joint(cls, form) for cls, form in _JOINT.items()]
    solvers = [cls for name in mopn.solvers.__all__ if _is_subclass(cls := getattr(mopn.solvers, name), Solver)]
    corrections = [
        cls for name in mopn.solvers.__all__ if _is_subclass(cls := getattr(mopn.solvers, name), CorrectiveStep)
    ]
    pairs = [Solve(maker, solver) for maker in makers for solver in solvers] + [Correct(cls) for cls in corrections]
    rng = np.random.default_rng(0)
    return [pair for pair in pairs if any(pair.draw_fitting(rng) for _ in range(_TRIES))]


def _is_subclass(thing: Any, base: type) -> bool:
    # Not issubclass, which protocols do not allow.
    return isinstance(thing, type) and base in thing.__mro__[1:]


def n_outputs(y: np.ndarray) -> int:
    """Return the number of outputs: one a class of labels."""
    return len(np.unique(y)) if y.dtype.kind == "i" else y.reshape(len(y), -1).shape[1]

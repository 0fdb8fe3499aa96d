"""One fit of the multi-class benchmark: a task in, a row of results out. Models are judged at every number of units."""

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import mopn
from benchmarks.common.datasets import Split, load, split
from benchmarks.multiclass.paper_tables import Cell
from mopn.core.regularizers import make_regularizer
from mopn.network.linear_term import LinearTerm
from mopn.network.ridge import Ridge
from mopn.network.unit_ball import UnitBallProblem
from mopn.solvers import FISTA, ConditionalGradient

# The quadratic kernel (<x, x'> + 1)^2.
_QUADRATIC = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
# A network is done when its objective is proven to be within this of the minimum, relative.
_TOL = 1e-3
# On letter a round of a network of all classes adds more than one unit; between rounds the last one counts.
_UNITS_A_ROUND = {"letter": 5}
# The paper's limits for FISTA (appendix D); on split 0, 1e-5 has on average no better validation accuracy.
_FISTA_TOL, _FISTA_ITERATIONS = 1e-3, 1000


@dataclass(frozen=True)
class Task:
    """A fit on a split of a set; ``"-"`` where a method has no such option.

    ``strength`` is the penalty's on a sum of losses, or scikit-learn's C; ``max_units`` the largest number of
    units (one-vs-rest: of each class), or of landmarks; 0 where there are none.
    """

    set: str
    split: int
    method: str
    norm: str
    loss: str
    refit: str
    strength: float
    max_units: int

    @property
    def cell(self) -> Cell:
        """The row of a table that this belongs to."""
        return Cell(self.method, self.norm, self.loss, self.refit)


@dataclass(frozen=True)
class Curve:
    """Accuracies of the models of a fit, by the largest number of units allowed, from 1 on."""

    units: list[int]
    validation: list[float]
    test: list[float]

    def best(self) -> int:
        """Index of the best validation accuracy, the first of equals."""
        return int(np.argmax(self.validation))


@dataclass(frozen=True)
class Fit:
    """A finished fit; ``seconds`` is training alone, and objective and gap are NaN where a method has none."""

    curve: Curve
    seconds: float
    fun: float = np.nan
    gap: float = np.nan


KEY = [field.name for field in fields(Task)]
COLUMNS = [
    *KEY,
    *("k", "units", "validation", "test", "objective", "gap", "seconds"),
    *("curve_units", "curve_validation", "curve_test"),
]


def run_task(task: Task, folder: str) -> dict[str, Any]:
    """Fit and return a row; ``k`` units were allowed at the best validation accuracy, and ``units`` were used."""
    data = split(*load(task.set, folder), task.split)
    fit = METHODS[task.method](task, data)
    curve, best = fit.curve, fit.curve.best()
    return asdict(task) | {
        "k": best + 1,
        "units": curve.units[best],
        "validation": f"{curve.validation[best]:.4f}",
        "test": f"{curve.test[best]:.4f}",
        "objective": f"{fit.fun:.6g}",
        "gap": f"{fit.gap:.3g}",
        "seconds": f"{fit.seconds:.3f}",
        "curve_units": " ".join(str(units) for units in curve.units),
        "curve_validation": " ".join(f"{accuracy:.4f}" for accuracy in curve.validation),
        "curve_test": " ".join(f"{accuracy:.4f}" for accuracy in curve.test),
    }


# -- networks ----------------------------------------------------------------------------------------------------------


def _problem(task: Task, data: Split, y: np.ndarray) -> mopn.NetworkProblem:
    return mopn.NetworkProblem(
        data.X_train, y, loss=task.loss, norm=task.norm, strength=task.strength, kernel="homogeneous", augment=True
    )


def _solve(task: Task, problem: mopn.NetworkProblem, step: int = 1) -> tuple[mopn.Result, list[mopn.Model]]:
    """Run conditional gradient with output-layer refits; return its result and the model of every number of units."""
    models: dict[int, mopn.Model] = {}

    def keep(intermediate_result: mopn.Result) -> None:
        models[intermediate_result.nit] = mopn.Model.from_result(problem, intermediate_result)

    # Algorithm 1 as it stands adds a unit a round, so that every number of units can be judged.
    solver = ConditionalGradient(oracle="refine", max_units=task.max_units, schedule="fill", atoms_per_round=step)
    result = mopn.minimize(problem, solver, tol=_TOL, max_iter=task.max_units // step, callback=keep)
    if result.error is not None:
        raise result.error
    # A run that stops at once has the empty network only.
    return result, [models[k // step] for k in range(1, max(models) * step + 1)] or [models[0]]


def conditional_gradient(task: Task, data: Split) -> Fit:
    """Algorithm 1 of the paper, judged after every round; with full refits the default policy, judged at its end."""
    problem = _problem(task, data, data.y_train)
    if task.refit == "full":
        solver = ConditionalGradient(refit="full", oracle="refine", max_units=task.max_units, schedule="fill")
        result = mopn.minimize(problem, solver, tol=_TOL)
        models = [mopn.Model.from_result(problem, result)]
    else:
        result, models = _solve(task, problem, _UNITS_A_ROUND.get(task.set, 1))
    scores = [(len(model.basis), *_accuracies(model.predict, data)) for model in models]
    return Fit(_curve(scores), result.time, result.fun, result.gap)


def one_vs_rest(task: Task, data: Split) -> Fit:
    """One network of one output a class, all with the same number of rounds; the largest output decides."""
    classes = np.unique(data.y_train)
    runs = [_solve(task, _problem(task, data, np.where(data.y_train == c, 1.0, -1.0))) for c in classes]
    scores = []
    for round_ in range(max(len(models) for _, models in runs)):
        models = [models[min(round_, len(models) - 1)] for _, models in runs]

        def predict(X: np.ndarray, models: list[mopn.Model] = models) -> np.ndarray:
            return classes[np.argmax(np.hstack([model.outputs(X) for model in models]), axis=1)]

        scores.append((sum(len(model.basis) for model in models), *_accuracies(predict, data)))
    # The objective is the sum over the classes, and so is its gap.
    seconds, fun, gap = (sum(getattr(result, name) for result, _ in runs) for name in ("time", "fun", "gap"))
    return Fit(_curve(scores), seconds, fun, gap)


def projected_gradient(task: Task, data: Split) -> Fit:
    """FISTA on both layers from random units and zero weights (the paper's third block of Table 2)."""
    problem = _problem(task, data, data.y_train) if task.norm != "squared-l2" else _squared_l2_parts(task, data)
    d, m = problem.design.shape[1], problem.losses.n_outputs
    units = np.random.default_rng([task.split, task.max_units]).standard_normal((task.max_units, d))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    regularizer = make_regularizer(task.norm, task.strength, None)
    start = SimpleNamespace(basis=units, weights=np.zeros((task.max_units, m)), linear=np.zeros((m, 0)))
    joint = UnitBallProblem(problem.rows, problem.kernel, regularizer, LinearTerm(), start, Ridge(problem.kernel, 0.0))
    result = mopn.minimize(joint, FISTA(), tol=_FISTA_TOL, max_iter=_FISTA_ITERATIONS)
    alive = result.weights.any(axis=1)
    network = SimpleNamespace(basis=result.basis[alive], weights=result.weights[alive])
    model = mopn.Model.from_result(problem, network)
    return Fit(_curve([(int(alive.sum()), *_accuracies(model.predict, data))]), result.time, result.fun)


def _squared_l2_parts(task: Task, data: Split) -> mopn.NetworkProblem:
    """Return design, kernel and fit; the squared l2 norm makes no unit zero, so it has no network problem itself."""
    return mopn.NetworkProblem(data.X_train, data.y_train, loss=task.loss, strength=task.strength, augment=True)


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def _logistic_regression(task: Task) -> LogisticRegression:
    return LogisticRegression(C=task.strength, max_iter=3000)


def linear(task: Task, data: Split) -> Fit:
    """Linear multi-class logistic regression."""
    return _fit_sklearn(_logistic_regression(task), data, lambda model: 0)


def svm(task: Task, data: Split) -> Fit:
    """Support vector machine with the quadratic kernel; its support vectors are counted as units."""
    return _fit_sklearn(SVC(C=task.strength, **_QUADRATIC), data, lambda model: len(model.support_))


def nystrom(task: Task, data: Split) -> Fit:
    """Nyström features of the quadratic kernel at random landmarks, and linear logistic regression on them."""
    features = Nystroem(n_components=task.max_units, random_state=task.split, **_QUADRATIC)
    return _fit_sklearn(make_pipeline(features, _logistic_regression(task)), data, lambda model: task.max_units)


def _fit_sklearn(model: Any, data: Split, count: Callable[[Any], int]) -> Fit:
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - began
    return Fit(_curve([(count(model), *_accuracies(model.predict, data))]), seconds)


METHODS: dict[str, Callable[[Task, Split], Fit]] = {
    "conditional-gradient": conditional_gradient,
    "projected-gradient": projected_gradient,
    "linear": linear,
    "svm": svm,
    "one-vs-rest": one_vs_rest,
    "nystrom": nystrom,
}


def _accuracies(predict: Callable[[np.ndarray], np.ndarray], data: Split) -> tuple[float, float]:
    """Return validation and test accuracy."""
    return (
        float(np.mean(predict(data.X_validation) == data.y_validation)),
        float(np.mean(predict(data.X_test) == data.y_test)),
    )


def _curve(scores: list[tuple[int, float, float]]) -> Curve:
    units, validation, test = zip(*scores, strict=True)
    return Curve(list(units), list(validation), list(test))

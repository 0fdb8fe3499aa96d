"""The regularisation path: a problem is solved for a series of strengths, each from the solution before it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.core.regularizers import Ratio
from mopn.data.validation import finite_numbers
from mopn.models.multi_output import Model
from mopn.network.problem import NetworkProblem
from mopn.solvers import ConditionalGradient, Result, Solver, minimize
from mopn.solvers.conditional_gradient import Precision, RefitName, make_corrective_step
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.budgets import Deadline
from mopn.solvers.tools.checks import Rule, check_seconds, count, shown
from mopn.solvers.tools.decorators import callers_state, quiet
from mopn.solvers.tools.display import Displayed

__all__ = ["EarlyStopping", "Path", "check_strengths", "path", "path_solver"]

# Relative decrease in ten iterations that ends the refit of all units: the next strengths improve the same units.
_POLISH_TOL = 5e-3
# The smallest strength whose solution is zero counts as zero up to this multiple of its rounding error.
_ROUNDINGS_OF_ZERO = 2.0
_SERIES = Rule("a number >= 2 or an array of strengths", count(2).convert)


class EarlyStopping:
    """The scores of a series of networks, and the best network so far; an empty one only if there is no other."""

    def __init__(self, patience: int | None) -> None:
        self.patience = math.inf if patience is None else patience
        self.scores: list[float] = []
        self.best: Result | None = None
        self.best_index = 0

    def add(self, result: Result, score: float) -> None:
        """Add the next network and its score, the larger the better."""
        self.scores.append(score)
        if self.best is None or len(self.best.basis) == 0 or score > self.scores[self.best_index]:
            self.best = result
            self.best_index = len(self.scores) - 1

    @property
    def is_over(self) -> bool:
        """Whether the last ``patience`` networks were no better than an earlier one."""
        return len(self.scores) - 1 - self.best_index >= self.patience


@dataclass(frozen=True, repr=False)
class Path(Displayed):
    """The solutions along a path.

    Attributes
    ----------
    strengths : ndarray of shape (q,)
        The strengths of the results, descending.
    results : list of Result
        One per strength.
    scores : ndarray of shape (q,) or None
        The validation scores, if ``score`` was given.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=0.5)
    >>> path = mopn.path(problem, 5)
    >>> len(path.results), path.column("gap").shape, int(path.n_units[0])
    (5, (5,), 0)
    """

    strengths: np.ndarray
    results: list[Result]
    scores: np.ndarray | None

    @property
    def best(self) -> int:
        """Index of the best score (the first if several are equal); without scores, of the last strength."""
        return len(self.results) - 1 if self.scores is None else int(np.argmax(self.scores))

    @property
    def n_units(self) -> np.ndarray:
        """Number of units at every strength."""
        return np.array([len(result.basis) for result in self.results])

    def _entries(self) -> dict[str, str]:
        entries = {"strengths": f"{len(self.strengths)} from {self.strengths[0]:.3g} to {self.strengths[-1]:.3g}"}
        if self.scores is not None:
            entries["best"] = f"{self.strengths[self.best]:.3g} (score {self.scores[self.best]:.4g})"
        return entries | {"n_units": str(self.n_units.tolist()), "time": f"{self.column('time').sum():.3g}"}

    def column(self, name: str) -> np.ndarray:
        """Return a field of all results, such as ``"fun"``, ``"gap"`` or ``"time"``."""
        return np.array([getattr(result, name) for result in self.results])


@quiet()
def path(
    problem: NetworkProblem,
    strengths: int | Any = 20,
    solver: Solver | None = None,
    *,
    start: Any = None,
    rounds: int | None = 1,
    score: Callable[[Model], float] | None = None,
    patience: int | None = None,
    tol: float = 1e-3,
    max_time: float | None = None,
    callback: Callable[..., Any] | None = None,
    verbose: int = 0,
    n_threads: int | None = None,
) -> Path:
    """Solve a problem for descending strengths, each from the solution before it.

    Parameters
    ----------
    problem : NetworkProblem
        The problem; its own strength is ignored.
    strengths : int or array-like of shape (q,), default 20
        Number of strengths, in a geometric series from ``problem.strength_max()``, where the solution is zero, down to
        a thousandth of it; or the strengths themselves, positive numbers or :class:`mopn.Ratio`, in any order. With a
        ridge also 0, the kernel machine.
    solver : Solver, optional
        Default ``mopn.regularization_path.path_solver(q)``, for 50 units.
    start : object, optional
        Where the largest strength starts, as for :func:`mopn.minimize`: an earlier ``Result``, or a model of
        :func:`mopn.load`, to go on with a path that ended. Default: the zero point.
    rounds : int or None, default 1
        Largest number of rounds per strength; None to continue until the gap is at most ``tol``, or to the solver's
        limits.
    score : callable, optional
        Called with the :class:`mopn.Model` of every strength; returns its score on validation data, the larger the
        better.
    patience : int, optional
        With ``score``: number of strengths without a better score after which the path ends, before units are added
        that do not help; counted from the first network that is not empty.
    tol, max_time, callback, verbose
        As for :func:`mopn.minimize`, for every strength; ``max_time`` is for the whole call, ``score`` included.
    n_threads : int, optional
        Number of threads that compute blocks of rows, as in :func:`mopn.minimize`.

    Returns
    -------
    Path
        A run that is interrupted or out of time ends the path, and is its last entry.

    Raises
    ------
    TypeError
        If the problem is not a ``NetworkProblem``.
    ValueError
        If the problem has a radius, or an option is out of range.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (300, 5))
    >>> y = np.sign(X[:, 0] * X[:, 1]).astype(int)
    >>> problem = mopn.NetworkProblem(X[:200], y[:200], strength=1.0, augment=True)
    >>> found = mopn.path(problem, 10, score=lambda model: np.mean(model.predict(X[200:]) == y[200:]))
    >>> len(found.strengths), len(found.results[0].basis), bool(found.scores[found.best] > 0.9)
    (10, 0, True)
    """
    if not isinstance(problem, NetworkProblem):
        estimator = "; its problem(X, y) is one" if hasattr(problem, "problem") else ""
        raise TypeError(f"problem must be a NetworkProblem, got {type(problem).__name__}{estimator}")
    if problem.regularizer.constrained:
        raise ValueError("path follows strengths, but the problem has a radius; make it with a strength instead")
    rounds = count(0).or_none()(rounds, "rounds")
    patience = count().or_none()(patience, "patience")
    deadline = Deadline(check_seconds.or_none()(max_time, "max_time"))
    if score is not None and (not callable(score) or isinstance(score, type)):
        raise TypeError(f"score must be a function, called as score(model), or None, got {shown(score)}")
    if patience is not None and score is None:
        raise ValueError("patience waits for a better score: give score too")
    with limited_threads(n_threads):
        series = check_strengths(problem, strengths)
        solver = path_solver(len(series)) if solver is None else solver
        options: dict[str, Any] = {"tol": tol, "max_iter": rounds, "callback": callback, "verbose": verbose}
        results: list[Result] = []
        watch = EarlyStopping(patience)
        for strength in series:
            part = problem.with_strength(float(strength))
            result = minimize(part, solver, start=start, max_time=deadline.left, **options)
            results.append(result)
            start = result
            if score is not None:
                model = Model.from_result(part, result)
                with callers_state():
                    watch.add(result, float(score(model)))
            if watch.is_over or result.status.ends_path:
                break
    scores = None if score is None else np.array(watch.scores)
    return Path(series[: len(results)], results, scores)


def path_solver(
    n_strengths: int,
    max_units: int | None = 50,
    refit: RefitName | CorrectiveStep = "full",
    max_iter: int = 100,
    precision: Precision = "double",
    least_decrease: float = 1e-3,
) -> ConditionalGradient:
    """Return a solver for a path: few units per strength, short refits, and cheap searches.

    Refits have at most ``max_iter`` iterations, and end when ten of them lower the objective by less than
    ``least_decrease``, relative.
    """
    full = {"polish_tol": _POLISH_TOL, "least_tol": least_decrease, "precision": precision}
    step = make_corrective_step(refit, full=full, max_iter=max_iter, polish_iter=max_iter)
    return ConditionalGradient(
        refit=step,
        max_units=max_units,
        schedule="grow" if max_units is None else "fill",
        # Units that move need only directions to start from.
        oracle="power" if step.can_move_units else "refine",
        atoms_per_round=None if max_units is None else math.ceil(2 * max_units / n_strengths),
    )


def check_strengths(problem: NetworkProblem, strengths: Any) -> np.ndarray:
    """Return distinct strengths as numbers in descending order, or a geometric series of a given length."""
    if np.iterable(strengths):
        values = [problem.with_strength(s).strength if isinstance(s, Ratio) else s for s in strengths]
        series = finite_numbers(values, "strengths")
        may_be_zero = problem.ridge > 0
        if series.ndim != 1 or not len(series) or not np.all((series > 0) | ((series == 0) & may_be_zero)):
            raise ValueError(
                f"strengths must be finite numbers > 0 in one dimension, or 0 with a ridge, got {shown(values)}"
            )
        return np.unique(series)[::-1]
    length = _SERIES(strengths, "strengths")
    at = problem.gradient_at_zero()
    largest = problem.bound(at)
    if largest <= _ROUNDINGS_OF_ZERO * problem.dual_rounding(at):
        raise ValueError(
            "the gradient at zero is zero, up to rounding errors, so the model is empty at every strength; check that "
            "y varies with X, or set center or scale"
        )
    return np.geomspace(largest, 1e-3 * largest, length)

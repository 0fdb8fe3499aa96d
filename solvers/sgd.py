"""Stochastic gradient descent and AdaGrad, with sparse steps."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mopn.solvers.interface import Monitor, Passes, Solver, WithPasses
from mopn.solvers.numerics.precision import Plateau
from mopn.solvers.result import Status
from mopn.solvers.tools.checks import check_nonnegative, check_options, check_positive, count


@dataclass(frozen=True)
class SGD(Solver[WithPasses]):
    """Stochastic gradient descent over mini-batches in random order.

    An iteration is a pass over all samples, in steps along the mean gradients of mini-batches. Each gradient is of the
    loss of a sample, and of its share of the penalties of its non-zero features. The objective is computed after every
    pass, and the best point is returned. Parameters of features that are zero in all samples start from zero.

    The run ends when ten passes together decrease the objective by less than ``tol``, relative: as ``CONVERGED`` if no
    step along the gradient of all samples decreases it by more than that, else as ``STALLED``: the steps are too small
    or too large. It ends as ``NONFINITE`` if the objective becomes infinite; use a smaller step then. Where no point is
    better than zeros, these are the result, as ``NOT_BETTER_THAN_ZERO`` if nothing else ended the run.

    Parameters
    ----------
    step : float, default 0.01
        Step size of the first pass.
    decay : float, default 0.0
        The step size of pass t = 0, 1, ... is ``step / (1 + decay * t)``.
    batch_size : int, default 1
        Number of samples in a mini-batch. Their order follows ``mopn.minimize(rng=...)``.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    >>> problem = mopn.FactorizationProblem(X, X[:, 0] * X[:, 1], n_components=2, beta=0.1)
    >>> result = mopn.minimize(problem, mopn.solvers.SGD(step=0.1), tol=0, max_iter=20)
    >>> result.nit, bool(result.fun < result.trace["fun"][0])
    (20, True)
    """

    step: float = 0.01
    decay: float = 0.0
    batch_size: int = 1
    needs = frozenset({"passes"})
    adaptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self, step=check_positive, decay=check_nonnegative, batch_size=count())

    def run(self, problem: WithPasses, start: Any, monitor: Monitor) -> None:
        """Make passes until the monitor ends the run."""
        passes = problem.passes(start)
        rng = np.random.default_rng(monitor.seed)
        levelled_off = Plateau(monitor.tol)
        zeros = np.zeros_like(start)
        monitor.set_least(zeros, problem.measure(zeros).fun, Status.NOT_BETTER_THAN_ZERO)
        done = 0
        while True:
            point = passes.point()
            fun = problem.measure(point).fun
            monitor(point, fun=fun)
            if monitor.tol > 0 and levelled_off(fun):
                is_minimum = _is_stationary(problem, point, monitor.tol)
                monitor.stop(Status.CONVERGED if is_minimum else Status.STALLED)
            self.do_pass(passes, rng, done)
            done += 1

    def do_pass(self, passes: Passes, rng: np.random.Generator, done: int = 0) -> None:
        """Make one pass in steps of ``batch_size`` samples, in random order, after ``done`` earlier passes."""
        step = self.step / (1.0 + self.decay * done)
        passes.run(rng.permutation(passes.n), self.batch_size, step, adaptive=self.adaptive)


def _is_stationary(problem: Any, point: np.ndarray, tol: float) -> bool:
    """Whether no step along the gradient decreases the objective by more than ``tol``, relative."""
    if "gradient" not in problem.oracles:
        return False
    at = problem.value_gradient(point)
    slope = float(np.vdot(at.gradient, at.gradient))
    if not slope > 0.0:
        return slope == 0.0
    # If the objective were linear, the first step would take it to 0, and the last, by halves, decrease it by tol.
    halvings = np.arange(1 + math.log2(1.0 / min(tol, 1.0)))
    steps = abs(at.value) / slope * 0.5**halvings
    target = at.value - tol * abs(at.value)
    return not any(problem.measure(point - step * at.gradient).fun < target for step in steps)


@dataclass(frozen=True)
class AdaGrad(SGD):
    """SGD with a step size for each parameter (Duchi, Hazan and Singer, 2011).

    The step of a parameter is divided by the root of the sum of its squared gradients so far.

    Parameters
    ----------
    step : float, default 0.1
        Step size of the first pass.
    decay, batch_size : float and int, default 0.0 and 1
        As of :class:`SGD`.

    Examples
    --------
    >>> import mopn
    >>> mopn.solvers.AdaGrad(step=0.5, batch_size=10).adaptive
    True
    """

    step: float = 0.1
    adaptive: ClassVar[bool] = True

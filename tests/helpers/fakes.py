"""A convex problem over infinitely many units that is no model of mopn's, whose minimum is known; and a monitor.

Solvers are tested on these: they ask problems only for members of ``mopn.solvers.interface``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mopn.solvers import Result, Solver, Status, minimize
from mopn.solvers.interface import Atomic, Bounds, Corrective, Effort, Evaluation, Form, Measure, Problem, Smooth
from mopn.solvers.tools.budgets import FailureBudget

# How far the bounds of the oracle "patient" exceed the dual norm if it is not asked for more.
_LOOSE = 1.0


class Selected(NamedTuple):
    """Units, their values, a bound on all units, and whether there is no tighter one."""

    basis: np.ndarray
    values: np.ndarray
    bound: float
    bound_is_best: bool = False


class AtMatrix(NamedTuple):
    """Objective and gradient of the loss, (p, q)."""

    value: float
    G: np.ndarray


@dataclass(frozen=True, eq=False)
class LowRank:
    """W = sum_r w_r u_r v_r' as rows (u_r, v_r) of ``units`` (k, p + q) and weights (k,)."""

    units: np.ndarray
    weights: np.ndarray
    p: int
    extra_size: int = 0

    @property
    def n_units(self) -> int:
        return len(self.units)

    @property
    def matrix(self) -> np.ndarray:
        return (self.units[:, : self.p].T * self.weights) @ self.units[:, self.p :]

    @property
    def features(self) -> np.ndarray:
        """The matrices u_r v_r' as columns (p q, k)."""
        products = np.einsum("ri,rj->ijr", self.units[:, : self.p], self.units[:, self.p :])
        return products.reshape(math.prod(products.shape[:2]), self.n_units)

    def compact(self) -> LowRank:
        return self

    def drop_zero_units(self, fraction: float = 0.0) -> LowRank:
        alive = self.weights > fraction * self.weights.sum()
        return replace(self, units=self.units[alive], weights=self.weights[alive])

    def without_smallest_unit(self) -> LowRank:
        return self.without_unit(int(np.argmin(self.weights)))

    def without_unit(self, unit: int) -> LowRank:
        kept = np.arange(self.n_units) != unit
        return replace(self, units=self.units[kept], weights=self.weights[kept])

    def with_units(self, units: np.ndarray) -> LowRank:
        weights = np.concatenate([self.weights, np.zeros(len(units))])
        return replace(self, units=np.vstack([self.units, units]), weights=weights)

    def with_layer(self, refit: Result) -> LowRank:
        return replace(self, weights=refit.weights)

    def with_layers(self, refit: Result) -> LowRank:
        return replace(self, units=refit["units"], weights=refit.weights)

    def merge_parallel_units(self) -> LowRank:
        features = self.features
        cosines = features.T @ features
        keeper = np.argmax(np.abs(cosines) > 0.999, axis=1) if self.n_units else np.arange(0)
        weights = np.zeros(self.n_units)
        np.add.at(weights, keeper, self.weights * np.sign(cosines[np.arange(self.n_units), keeper]))
        kept = np.unique(keeper)
        return replace(self, units=self.units[kept], weights=weights[kept])


class LowRankSegment:
    """The way from a point to the extreme point of its units in the epigraph of the penalty."""

    limit = 1.0

    def __init__(self, problem: LowRankSteps, point: LowRank, at: AtMatrix, units: np.ndarray, least: float) -> None:
        self._from, self._outputs = point, point.matrix
        self._loss, self.curvature = problem.loss, float(problem.M.max())
        towards = LowRank(units, np.full(len(units), 1.0 / len(units)), point.p)
        worth = -float(np.vdot(at.G, towards.matrix)) > problem.strength
        self._to = replace(towards, weights=(least / problem.strength if worth else 0.0) * towards.weights)
        self._step = self._to.matrix - self._outputs
        self._sizes = problem.penalty(point), problem.penalty(self._to)
        self.squared_length = float(np.vdot(self._step, self._step))
        self.gap = self._sizes[0] - self._sizes[1] - float(np.vdot(at.G, self._step))

    def value(self, gamma: float) -> float:
        loss = self._loss(self._outputs + gamma * self._step)
        return loss + (1.0 - gamma) * self._sizes[0] + gamma * self._sizes[1]

    def point(self, gamma: float) -> LowRank:
        weights = np.concatenate([(1.0 - gamma) * self._from.weights, gamma * self._to.weights])
        return replace(self._from, units=np.vstack([self._from.units, self._to.units]), weights=weights)


class LowRankSteps(Atomic):
    """Minimise sum_ij M_ij (W - B)_ij^2 / 2 + strength ||W||_* over W (p, q): the oracle "atomic" alone.

    Oracles by name: "exact"; "patient", whose bound is as tight as it is asked for; "loose", whose bound is the
    Frobenius norm, and stays that.
    """

    oracles = frozenset({"atomic"})

    def __init__(self, M: np.ndarray, B: np.ndarray, strength: float) -> None:
        self.M, self.B, self.strength = M, B, strength

    def loss(self, W: np.ndarray) -> float:
        return 0.5 * float(np.sum(self.M * (W - self.B) ** 2))

    def penalty(self, point: LowRank) -> float:
        return self.strength * float(np.abs(point.weights).sum())

    def start(self, start: Any = None) -> LowRank:
        p, q = self.B.shape
        if start is None:
            return LowRank(np.zeros((0, p + q)), np.zeros(0), p)
        return LowRank(start.units, start.weights, p)

    def unpack(self, point: LowRank) -> dict[str, Any]:
        return {"x": point.matrix.ravel(), "units": point.units, "weights": point.weights}

    def measure(self, point: LowRank) -> Measure:
        at = self.output_gradient(point)
        return Measure(at.value, self.lower(at, self.bound(at, "exact", Effort())))

    def output_gradient(self, point: LowRank) -> AtMatrix:
        W = point.matrix
        return AtMatrix(self.loss(W) + self.penalty(point), self.M * (W - self.B))

    def oracle(self, spec: str, failure_budget: FailureBudget, seed: int) -> str:
        return "patient" if spec == "auto" else spec

    def lmo(self, at: AtMatrix, oracle: str, effort: Effort) -> Selected:
        U, values, V = np.linalg.svd(at.G, full_matrices=False)
        return Selected(np.hstack([-U.T, V]), values, self.bound(at, oracle, effort), oracle != "patient")

    def bound(self, at: AtMatrix, oracle: str, effort: Effort) -> float:
        if oracle == "loose":
            return float(np.linalg.norm(at.G))
        precision = 0.0 if oracle == "exact" or effort.precision is None else min(effort.precision, _LOOSE)
        return float(np.linalg.norm(at.G, 2)) * (1.0 + precision)

    def lower(self, at: AtMatrix, bound: float) -> float:
        """The gradient s G, s <= strength / bound, is a dual point: the best one is taken."""
        if not self.strength or math.isinf(bound):
            return -math.inf
        along, square = -float(np.vdot(at.G, self.B)), max(float(np.sum(at.G**2 / self.M)), math.ulp(0.0))
        s = min(max(along / square, 0.0), self.strength / max(bound, math.ulp(0.0)))
        return s * along - 0.5 * s * s * square

    def segment(
        self,
        point: LowRank,
        at: AtMatrix,
        units: np.ndarray,
        *,
        least: float = math.inf,
        whole: bool = True,
        away: int | None = None,
    ) -> LowRankSegment:
        if away is not None:
            raise NotImplementedError
        return LowRankSegment(self, point, at, units, least)

    def active_units(self, point: LowRank, at: AtMatrix, *, least: float = math.inf) -> NoReturn:
        raise NotImplementedError


class LowRankProblem(LowRankSteps, Corrective):
    """The same problem with the oracle "corrective"."""

    oracles = frozenset({"atomic", "corrective"})
    can_rotate_units = True

    @property
    def regularized(self) -> bool:
        return self.strength > 0

    def select_units(
        self, point: LowRank, at: AtMatrix, atoms: Selected, most: int, *, fill: bool = False, seed: int = 0
    ) -> np.ndarray:
        units = atoms.basis[: max(1, min(most, int(np.sum(atoms.values > self.strength))))]
        if not fill:
            return units
        sides = np.random.default_rng(0).standard_normal((most - len(units), sum(self.B.shape)))
        for side in np.split(sides, [point.p], axis=1):
            side /= np.linalg.norm(side, axis=1, keepdims=True)
        return np.vstack([units, sides])

    def output_layer(self, point: LowRank) -> LayerOfLowRank:
        roots = np.sqrt(self.M).ravel()
        return LayerOfLowRank(roots[:, None] * point.features, roots * self.B.ravel(), self.strength)

    def joint(self, point: LowRank, form: Form) -> FactorsOfLowRank:
        return FactorsOfLowRank(self, point, form)


class LayerOfLowRank(Problem):
    """Minimise ||Phi w - b||^2 / 2 + strength ||w||_1 over w (k,)."""

    oracles = frozenset({"composite"})

    def __init__(self, features: np.ndarray, b: np.ndarray, strength: float) -> None:
        self.features, self.b, self.strength = features, b, strength
        self.curvature = max(float(np.linalg.norm(features, 2)) ** 2 if features.size else 0.0, 1e-9)

    def start(self, start: Any = None) -> np.ndarray:
        return np.zeros(self.features.shape[1]) if start is None else start.weights

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        return {"x": x, "weights": x}

    def image(self, x: np.ndarray) -> np.ndarray:
        return self.features @ x

    def smooth(self, image: np.ndarray) -> Evaluation:
        G = image - self.b
        return Evaluation(0.5 * float(G @ G), self.features.T @ G, G)

    def smooth_value(self, image: np.ndarray) -> float:
        return self.smooth(image).value

    def regularizer_value(self, x: np.ndarray) -> float:
        return self.strength * float(np.abs(x).sum())

    def prox(self, x: np.ndarray, step: float) -> np.ndarray:
        return np.sign(x) * np.maximum(np.abs(x) - step * self.strength, 0.0)

    def dual_bound(self, at: Evaluation) -> float:
        if not self.strength or at.G is None:
            return -math.inf
        G = at.G * min(1.0, self.strength / max(float(np.abs(at.gradient).max(initial=0.0)), math.ulp(0.0)))
        return -float(0.5 * G @ G + G @ self.b)

    def measure(self, x: np.ndarray) -> Measure:
        at = self.smooth(self.image(x))
        fun = at.value + self.regularizer_value(x)
        return Measure(fun, self.dual_bound(at))


class FactorsOfLowRank(Smooth):
    """Minimise the loss at P' Q + strength (||P||^2 + ||Q||^2) / 2 over P (k, p) and Q (k, q), in both forms."""

    curvature = 1.0
    bounds: Bounds | None = None
    scales: np.ndarray | None = None

    def __init__(self, problem: LowRankSteps, point: LowRank, form: Form) -> None:
        self.problem, self.around, self.form = problem, point, form

    @property
    def oracles(self) -> frozenset[str]:
        return frozenset({self.form.oracle})

    def start(self, start: Any = None) -> np.ndarray:
        point = self.around
        P, Q = point.units[:, : point.p], point.units[:, point.p :]
        roots = np.sqrt(np.abs(point.weights))[:, None]
        return np.hstack([roots * P, np.sign(point.weights)[:, None] * roots * Q]).ravel()

    def _split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = x.reshape(self.around.n_units, -1)
        return x[:, : self.around.p], x[:, self.around.p :]

    def unpack(self, x: np.ndarray) -> dict[str, Any]:
        lengths = [np.linalg.norm(part, axis=1) for part in self._split(x)]
        units = [part / np.where(r > 0, r, 1.0)[:, None] for part, r in zip(self._split(x), lengths, strict=True)]
        return {"x": x, "units": np.hstack(units), "weights": lengths[0] * lengths[1]}

    def image(self, x: np.ndarray) -> np.ndarray:
        return x

    def smooth(self, image: np.ndarray) -> Evaluation:
        P, Q = self._split(image)
        W = P.T @ Q
        G = self.problem.M * (W - self.problem.B)
        return Evaluation(self.problem.loss(W), np.hstack([Q @ G.T, P @ G]).ravel())

    def smooth_value(self, image: np.ndarray) -> float:
        return self.smooth(image).value

    def regularizer_value(self, x: np.ndarray) -> float:
        return 0.5 * self.problem.strength * float(x @ x)

    def prox(self, x: np.ndarray, step: float) -> np.ndarray:
        return x / (1.0 + step * self.problem.strength)

    def value_gradient(self, x: np.ndarray) -> Evaluation:
        at = self.smooth(x)
        return Evaluation(at.value + self.regularizer_value(x), at.gradient + self.problem.strength * x)

    def measure(self, x: np.ndarray) -> Measure:
        return Measure(self.value_gradient(x).value)


class Asked(NamedTuple):
    """A subproblem, and how it was to be solved."""

    problem: Any
    solver: Solver[Any]
    tol: float
    max_iter: int


@dataclass
class FakeMonitor:
    """Records the reports and requests of a solver; its clock goes only where a test moves it."""

    tol: float = 1e-3
    elapsed: float = 0.0
    left: float = math.inf
    seed: int = 0
    failure_budget: FailureBudget = field(default_factory=FailureBudget)
    max_iter: int = 1000
    nit: int = -1
    status: Status = Status.RUNNING
    rows: list[dict[str, float]] = field(default_factory=list)
    solved: list[Asked] = field(default_factory=list)
    answer: Callable[..., Result] = minimize
    least: tuple[Any, float, Status] | None = None

    def __call__(self, point: Any, fun: float, lower: float = -math.inf, **columns: float) -> None:
        self.nit += 1
        self.rows.append({"fun": fun, "lower": lower, **columns})
        if self.nit >= self.max_iter:
            self.stop(Status.MAX_ITER)

    def check_finite(self, fun: float) -> None:
        assert math.isfinite(fun)

    def set_least(self, point: Any, fun: float, status: Status) -> None:
        self.least = point, fun, status

    def stop(self, status: Status) -> NoReturn:
        self.status = status
        raise StopIteration

    def solve(
        self, problem: Any, solver: Solver[Any], *, start: Any, tol: float, max_iter: int, as_point: Any = None
    ) -> Result:
        self.solved.append(Asked(problem, solver, tol, max_iter))
        return self.answer(problem, solver, start=start, tol=tol, max_iter=max_iter)


class Noted:
    """A problem that notes the names of its methods as they are called."""

    def __init__(self, problem: Any) -> None:
        self.noted_problem, self.calls = problem, list[str]()

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.noted_problem, name)
        if not callable(member):
            return member

        def noted(*args: Any, **options: Any) -> Any:
            self.calls.append(name)
            return member(*args, **options)

        return noted


def low_rank(seed: int = 0, strength: float = 0.5) -> tuple[LowRankProblem, float]:
    """Return a problem and its minimum, at a matrix W of rank 2 that B is made around.

    With W = U S V', W is optimal if M (B - W) = strength (U V' + N), where N' U = 0, N V = 0 and ||N|| <= 1.
    """
    rng = np.random.default_rng(seed)
    (U, _), (V, _) = (np.linalg.qr(rng.standard_normal((size, size))) for size in (6, 5))
    S, M = np.diag([3.0, 2.0]), rng.uniform(0.2, 2.0, (6, 5))
    slope = strength * (U[:, :2] @ V[:, :2].T + U[:, 2:5] @ np.diag([0.9, 0.5, 0.1]) @ V[:, 2:].T)
    problem = LowRankProblem(M, U[:, :2] @ S @ V[:, :2].T + slope / M, strength)
    return problem, 0.5 * float(np.sum(slope**2 / M)) + strength * float(np.trace(S))

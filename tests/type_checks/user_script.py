"""A script as users write it, for ``mypy --strict``: nothing here is run.

Each line with ``type: ignore[...]`` is a mistake that types find: without the error the comment itself would be one.
"""

from __future__ import annotations

import numpy as np

import mopn
from mopn.estimators import MultiOutputPNClassifier


def solve(X: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray, str]:
    problem = mopn.NetworkProblem(X, y, norm="l1", strength=1.0)
    solver = mopn.solvers.ConditionalGradient(refit="full", max_units=5)
    result = mopn.minimize(problem, solver, tol=1e-4, callback=lambda intermediate_result: None)
    times: np.ndarray = result.trace["time"]
    return result.gap + result.relative_gap + times[-1], result.basis @ result.basis.T, result.status.message


def lazy_names(X: np.ndarray, y: np.ndarray) -> tuple[mopn.FactorizationProblem, mopn.LiftedProblem]:
    direct = mopn.FactorizationProblem(X, y, kernel="all-subsets")
    mopn.minimize(direct, mopn.solvers.CoordinateDescent())
    return direct, mopn.LiftedProblem(X, y)


def estimators(X: np.ndarray, y: np.ndarray) -> mopn.Model:
    model: MultiOutputPNClassifier = mopn.estimators.MultiOutputPNClassifier(norm="l1").fit(X, y)
    return mopn.Model(model.basis_, model.weights_)


def mistakes(X: np.ndarray, y: np.ndarray) -> None:
    problem = mopn.NetworkProblem(X, y, norm="l2", strength=1.0)  # type: ignore[arg-type]
    mopn.NetworkProblem(X, y, loss="hinge", strength=1.0)  # type: ignore[arg-type]
    mopn.solvers.ConditionalGradient(refit="both")  # type: ignore[arg-type]
    MultiOutputPNClassifier(norm="l2")  # type: ignore[arg-type]
    mopn.minimize(5, mopn.solvers.FISTA())  # type: ignore[misc]
    mopn.minimize(problem, mopn.solvers.FISTA())  # type: ignore[misc]
    mopn.minimize(problem, "cg")  # type: ignore[arg-type]
    mopn.minimize(problem, mopn.solvers.ConditionalGradient()).gapp  # type: ignore[attr-defined]  # noqa: B018

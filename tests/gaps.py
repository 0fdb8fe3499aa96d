"""Gaps of a network problem, against the best that is known of its minimum."""

import numpy as np
from reference import matrix_optimum

import mopn
from mopn.solvers import FISTA, ConditionalGradient, OutputRefit


def check_gaps(problem, X, form):
    """No gap of a solver is below the distance to a reference; under a penalty that is over matrices."""
    solvers = [ConditionalGradient(refit=refit) for refit in ("none", "output", "full")]
    solvers.append(ConditionalGradient(refit=OutputRefit(solver=FISTA())))
    runs = [mopn.minimize(problem, solver, tol=1e-4, max_iter=30) for solver in solvers]
    least = min(run.fun for run in runs)
    if form == "strength":
        least = min(least, matrix_optimum(problem.losses, X, "l1", 0.5, iterations=500))
    # What rounding allows in the sums of the least value.
    allowed = len(X) * 3 * np.finfo(float).eps * least
    for run in runs:
        lower = np.asarray(run.trace["fun"]) - np.asarray(run.trace["gap"])
        assert lower.max() <= least + allowed
        assert run.fun - run.gap <= least + allowed
        measured = mopn.certify(problem, run.basis, 0.9 * run.weights)
        assert measured.fun - measured.gap <= least + allowed
    # And the gaps say something.
    assert runs[2].gap <= 1e-3 * runs[2].fun

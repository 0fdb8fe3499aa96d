"""mopn's refit of both layers, alone."""

from functools import partial

import numpy as np
from benchmark_utils import follow
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

import mopn


class Solver(BaseSolver):
    """Both layers by mopn's L-BFGS from random units: what conditional gradient does between its choices of units."""

    name = "mopn L-BFGS"
    sampling_strategy = "callback"
    stopping_criterion = SufficientProgressCriterion(patience=10)
    parameters = {"n_units": [10, 30]}
    requirements = ["pip::mopn"]

    def set_objective(self, X, y, norm, strength):
        """Make the problem, and draw the start."""
        problem = mopn.NetworkProblem(X, y, norm=norm, strength=strength)
        self.result = problem.start()
        rng = np.random.default_rng(self.get_seed())
        self.problem = problem.joint(problem.with_random_units(self.result, self.n_units, rng))
        self.solver = mopn.solvers.LBFGS()

    def warm_up(self):
        """Load all code."""
        mopn.minimize(self.problem, self.solver, max_iter=1, tol=0)

    def run(self, callback):
        """Run until the callback says no more."""
        follow(self.problem, self.solver, callback, partial(setattr, self, "result"))

    def get_result(self):
        """Return the last network."""
        return {"H": self.result.basis, "V": self.result.weights}

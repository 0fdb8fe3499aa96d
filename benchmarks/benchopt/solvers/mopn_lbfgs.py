"""mopn's refit of both layers, alone."""

import numpy as np
from benchmark_utils import random_units
from benchopt import BaseSolver

import mopn


class Solver(BaseSolver):
    """Both layers by mopn's L-BFGS from random units: what conditional gradient does between its choices of units."""

    name = "mopn L-BFGS"
    sampling_strategy = "iteration"
    parameters = {"n_units": [10, 30]}
    requirements = ["pip::mopn"]

    def set_objective(self, X, y, norm, strength):
        """Draw the start."""
        m = y.max() + 1
        weights = 0.01 * np.random.default_rng(self.get_seed()).standard_normal((self.n_units, m))
        if norm == "l1":
            # A unit serves one class.
            weights *= np.eye(m)[np.arange(self.n_units) % m]
        problem = mopn.NetworkProblem(X, y, norm=norm, strength=strength)
        start = random_units(self.n_units, X.shape[1], self.get_seed()), weights
        self.problem = problem.joint(problem.start(start))

    def run(self, n_iter):
        """Take so many iterations."""
        result = mopn.minimize(self.problem, mopn.solvers.LBFGS(), tol=0, max_iter=n_iter)
        self.H, self.V = result.basis, result.weights

    def get_result(self):
        """Return the network."""
        return {"H": self.H, "V": self.V}

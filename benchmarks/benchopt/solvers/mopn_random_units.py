"""The convex problem in the weights of random units, by mopn."""

from benchmark_utils import random_units
from benchopt import BaseSolver

import mopn


class Solver(BaseSolver):
    """Random units that stay as they are; the convex problem in their weights, by FISTA or an interior-point method."""

    name = "random units, mopn"
    sampling_strategy = "iteration"
    parameters = {"method": ["FISTA", "InteriorPoint"], "n_units": [200]}
    requirements = ["pip::mopn"]

    def set_objective(self, X, y, norm, strength):
        """Make the problem of the output layer."""
        self.H = random_units(self.n_units, X.shape[1], self.get_seed())
        self.problem = mopn.OutputLayerProblem((X @ self.H.T) ** 2, y, norm=norm, strength=strength)

    def run(self, n_iter):
        """Take a number of iterations."""
        solver = getattr(mopn.solvers, self.method)()
        self.V = mopn.minimize(self.problem, solver, tol=0, max_iter=n_iter).weights

    def get_result(self):
        """Return the network."""
        return {"H": self.H, "V": self.V}

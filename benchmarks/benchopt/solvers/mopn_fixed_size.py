"""mopn as its estimators use it."""

from benchopt import BaseSolver

import mopn


class Solver(BaseSolver):
    """The best network of a number of units, as the estimators fit it."""

    name = "mopn, fixed size"
    sampling_strategy = "tolerance"
    parameters = {"n_units": [30]}
    requirements = ["pip::mopn"]

    def set_objective(self, X, y, norm, strength):
        """Make the problem."""
        self.problem = mopn.NetworkProblem(X, y, norm=norm, strength=strength)

    def run(self, tol):
        """Fit to a tolerance of the last refit."""
        refit = mopn.solvers.FullRefit(polish_tol=max(tol, 1e-12))
        solver = mopn.solvers.ConditionalGradient(refit=refit, max_units=self.n_units, schedule="fill", oracle="refine")
        self.result = mopn.minimize(self.problem, solver, tol=0, max_iter=20)

    def get_result(self):
        """Return the network."""
        return {"H": self.result.basis, "V": self.result.weights}

"""
A corrective step of one's own
==============================

Conditional gradient selects units, and a corrective step sets their weights. Calls of the oracle are expensive, so this
step makes five away steps after each: they move weight away from the worst vertex (Lacoste-Julien and Jaggi, NIPS
2015).
"""

import matplotlib.pyplot as plt
import numpy as np

import mopn
from mopn.plotting import plot_convergence
from mopn.solvers import ConditionalGradient, Status
from mopn.solvers.conditional_gradient import (
    CorrectiveRun,
    CorrectiveStep,
    line_search,
)


class MoreAwaySteps(CorrectiveStep):
    """A step towards each new unit, then five away steps."""

    needs = frozenset({"atomic"})
    units_per_round = 1

    def begin(self, problem, monitor, schedule):
        """Return the steps of one run."""
        return AwayRun(problem, monitor)


class AwayRun(CorrectiveRun):
    """The steps of one run."""

    def insert(self, point, at, units):
        """Step towards new units."""
        segment = self.problem.segment(point, at, units)
        return segment.point(line_search(segment))

    def improve(self, point):
        """Move away from the worst vertices."""
        for _ in range(5):
            at = self.problem.output_gradient(point)
            worst = int(np.argmax(self.problem.active_units(point, at).slopes))
            segment = self.problem.segment(point, at, None, away=worst)
            point = segment.point(line_search(segment)).drop_zero_units()
        return point

    def polish(self, point):
        """Stop: there are max_units units, so that no round can add one."""
        self.monitor.stop(Status.MAX_UNITS)


rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (200, 5))
y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.1 * rng.standard_normal(200)
problem = mopn.NetworkProblem(
    X, y, loss="squared", kernel="anova", norm="l1", radius=1.0
)
steps = {"plain": "none", "five away steps": MoreAwaySteps()}
runs = {
    name: mopn.minimize(problem, ConditionalGradient(step), tol=1e-8, max_iter=150)
    for name, step in steps.items()
}
for name, run in runs.items():
    print(f"{name:15} gap {run.relative_gap:.1e}, {len(run.basis)} units")

ax = plot_convergence(runs, x="nit", y="relative_gap", marker="")
ax.set(xscale="log", xlabel="rounds")
ax.figure.set_size_inches(4.5, 3.4)
plt.show()

# %%
# ``"none"``, ``"output"`` and ``"full"`` are corrective steps, too.

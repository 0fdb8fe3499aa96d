"""
Matrix completion: a problem of your own
========================================

Some entries of a matrix are known, and its nuclear norm is at most a radius. The ball is the hull of the matrices
of rank one, so conditional gradient completes the matrix unit by unit, and its gap is a proof.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

import mopn
from mopn.solvers.interface import ActiveUnits, Atomic, Measure

# more than the rounding errors of sums and singular values, relative to the moduli of their terms
SLACK = 1e-12


class LowRank:
    """The point: the matrix A' diag(w) B, with unit vectors in the rows of A and B, and weights w >= 0."""

    def __init__(self, A, B, w):
        self.A, self.B, self.w, self.n_units = A, B, w, len(w)

    def compact(self):
        return self

    def drop_zero_units(self, fraction=0.0):
        alive = self.w > max(fraction, 1e-14) * self.w.sum()
        return LowRank(self.A[alive], self.B[alive], self.w[alive])


class Segment:
    """The points whose weights are w + gamma * change, 0 <= gamma <= limit."""

    curvature = 1.0  # of the squared loss

    def __init__(self, problem, point, at, change, limit):
        self.y, self.origin, self.change, self.limit = problem.y, point, change, limit
        self.outputs = problem.outputs(point)
        self.step = problem.outputs(LowRank(point.A, point.B, change))
        self.gap, self.squared_length = -at.G @ self.step, self.step @ self.step

    def value(self, gamma):
        return 0.5 * np.sum((self.outputs + gamma * self.step - self.y) ** 2)

    def point(self, gamma):
        return LowRank(
            self.origin.A,
            self.origin.B,
            np.maximum(self.origin.w + gamma * self.change, 0.0),
        )


class BallCompletion(Atomic):
    """Minimise sum (M_ij - y_ij)^2 / 2 over known entries, where the nuclear norm of M is at most the radius."""

    oracles = frozenset({"atomic"})

    def __init__(self, rows, cols, y, shape, radius):
        self.rows, self.cols, self.y, self.shape, self.radius = (
            rows,
            cols,
            y,
            shape,
            radius,
        )

    def start(self, start=None):
        return LowRank(
            np.zeros((0, self.shape[0])), np.zeros((0, self.shape[1])), np.zeros(0)
        )

    def unpack(self, point):
        matrix = (point.A.T * point.w) @ point.B
        return {"x": matrix.ravel(), "matrix": matrix}

    def outputs(self, point):
        return np.einsum(
            "k,kn,kn->n", point.w, point.A[:, self.rows], point.B[:, self.cols]
        )

    def output_gradient(self, point):
        r = self.outputs(point) - self.y
        return SimpleNamespace(value=0.5 * r @ r, G=r)

    def oracle(self, spec, failure_budget, seed):
        return spec  # there is only one

    def lmo(self, at, oracle, effort):
        G = np.zeros(self.shape)
        G[self.rows, self.cols] = at.G
        U, s, Vt = np.linalg.svd(G, full_matrices=False)
        return SimpleNamespace(
            basis=[(-U[:, 0], Vt[0])],
            values=s[:1],
            bound=s[0] * (1 + SLACK),
            bound_is_best=True,
        )

    def bound(self, at, oracle, effort):
        return self.lmo(at, oracle, effort).bound

    def lower(self, at, bound):
        r = at.G
        return -(0.5 * r @ r + r @ self.y + self.radius * bound) - SLACK * (
            r @ r + np.abs(r) @ np.abs(self.y)
        )

    def rounding(self, point, at):
        return SLACK * np.sum(np.abs(at.G) * (np.abs(self.y) + self.radius))

    def measure(self, point):
        at = self.output_gradient(point)
        return Measure(
            at.value,
            self.lower(at, self.bound(at, None, None)),
            self.rounding(point, at),
        )

    def active_units(self, point, at, *, least=np.inf):
        shares = point.w / self.radius
        slopes = self.radius * (point.A[:, self.rows] * point.B[:, self.cols]) @ at.G
        rest = 1.0 - shares.sum()
        if rest <= SLACK:
            return ActiveUnits(shares, slopes)
        # the rest is that of 0
        return ActiveUnits(np.append(shares, rest), np.append(slopes, 0.0))

    def segment(self, point, at, units, *, least=np.inf, whole=True, away=None):
        change, limit = -point.w, 1.0  # towards a vertex
        if away is not None:
            share = self.active_units(point, at).coefficients[away]
            if units is None:  # away from one
                change, limit = (
                    point.w.copy(),
                    share / (1.0 - share) if 1.0 - share > SLACK else 0.0,
                )
            else:  # from one to another
                change, limit = np.zeros(point.n_units), share
            change -= self.radius * (np.arange(point.n_units) == away)
        if units is not None:
            a, b = units[0]
            point = LowRank(
                np.vstack([point.A, a]),
                np.vstack([point.B, b]),
                np.append(point.w, 0.0),
            )
            change = np.append(change, self.radius)
        return Segment(self, point, at, change, limit)


# %%
# Half of the entries of a matrix of rank 3 are known. The radius is the nuclear norm of the solution with a penalty in
# :doc:`/extending`. The error of the known entries falls, and the proven bound rises to it.

rng = np.random.default_rng(0)
matrix = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20))
known = rng.uniform(size=matrix.shape) < 0.5
rows, cols = np.nonzero(known)
problem = BallCompletion(rows, cols, matrix[known], matrix.shape, radius=31.6598)
unknown = []


def record(intermediate_result):
    """Keep the error of the entries that the fit does not know."""
    errors = intermediate_result.matrix - matrix
    unknown.append(0.5 * np.sum(errors[~known] ** 2))


solver = mopn.solvers.ConditionalGradient(refit="none")
result = mopn.minimize(problem, solver, tol=1e-2, callback=record)
print(f"{result.status.name}: error {result.fun:.1f}, gap {result.gap:.1f}")

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
rounds = result.trace["nit"]
lower = np.maximum.accumulate(result.trace["fun"] - result.trace["gap"])
ax.semilogx(1 + rounds, result.trace["fun"], label="known entries")
ax.semilogx(1 + rounds[lower > 0], lower[lower > 0], ":", label="proven lower bound")
ax.semilogx(1 + np.arange(len(unknown)), unknown, label="other entries")
ax.set(xlabel="round", ylabel="half of the squared error")
ax.legend()
plt.show()

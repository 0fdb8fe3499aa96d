"""The intercept b and the linear term <w, x>."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mopn.core.factor_kernels import AnovaFactors
from mopn.data.designs import Design, ridge_scales
from mopn.data.rows import Block, Rows
from mopn.factorization.sweep_state import SweepState
from mopn.factorization.terms.base import Parameters, Term, Update
from mopn.solvers.numerics.precision import dot


class Intercept(Term):
    """A constant, without a penalty."""

    def __init__(self, n: int) -> None:
        super().__init__({"intercept": (1,)})
        self.n = n

    def start(self, rng: np.random.Generator) -> Parameters:
        return {"intercept": np.zeros(1)}

    def outputs(self, at: Parameters) -> np.ndarray:
        return np.full(self.n, at["intercept"][0])

    def penalty(self, at: Parameters) -> float:
        return 0.0

    def gradient(self, at: Parameters, slopes: np.ndarray) -> Parameters:
        return {"intercept": np.array([slopes.sum()])}

    def on(self, block: Block) -> Intercept:
        return Intercept(block.design.shape[0])

    def updates(self, at: Parameters, state: SweepState) -> Iterator[Update]:
        def update() -> float:
            slope = float(state.slopes.sum())
            step = slope / (state.smoothness * state.total_weight)
            at["intercept"] -= step
            state.shift_outputs(np.full(self.n, -step))
            return slope * step

        yield update


class Linear(Term):
    """<w, x> with the penalty ``alpha / 2 * ||w||^2``; dummies of the design have no coefficients.

    As A^{1..m}(w, x; theta) for theta = (1, 0, ..., 0), of a ``degree`` m that the problem has anyway, it needs no
    compiled functions of its own.
    """

    def __init__(self, design: Design, alpha: float, degree: int = 1) -> None:
        self.design, self.alpha, self.degree = design.without_dummies, alpha, degree
        super().__init__({"w": (self.design.shape[1],)}, (self.design,))

    def start(self, rng: np.random.Generator) -> Parameters:
        return {"w": np.zeros(self.shapes["w"])}

    def outputs(self, at: Parameters) -> np.ndarray:
        return self.design.project(at["w"][None])[:, 0]

    def penalty(self, at: Parameters) -> float:
        return 0.5 * self.alpha * dot(at["w"], at["w"])

    def gradient(self, at: Parameters, slopes: np.ndarray) -> Parameters:
        return {"w": self.design.adjoint(slopes[:, None])[0] + self.alpha * at["w"]}

    def scales(self, rows: Rows) -> Parameters:
        largest = rows.reduce(_largest, combine=max)
        return {"w": ridge_scales(rows.sum(_squares), largest, rows.losses.smoothness, self.alpha)}

    def on(self, block: Block) -> Linear:
        return Linear(block.design, self.alpha, self.degree)

    def updates(self, at: Parameters, state: SweepState) -> Iterator[Update]:
        sweep = state.sweeper(self.design)
        theta = AnovaFactors(np.arange(self.degree) == 0).coefficients
        # No derivative depends on the state but for the slopes.
        nothing, scale, ridge = np.zeros((1, self.degree - 1, self.design.shape[0])), np.ones(1), np.array([self.alpha])
        yield lambda: sweep(theta, None, nothing, at["w"][None], scale, ridge)


def _largest(block: Block) -> float:
    return block.design.without_dummies.largest


def _squares(block: Block) -> np.ndarray:
    return block.design.without_dummies.adjoint_squares(block.losses.sample_weights[:, None])[0]

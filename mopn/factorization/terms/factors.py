"""The term sum_s lambda_s K(p_s, x): the direct approach of Blondel et al. (ICML 2016), section 4."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from mopn.compiled.coordinates import SQUARED, minimize_l1
from mopn.compiled.jit import WIDTH
from mopn.core.factor_kernels import AnovaFactors, FactorKernel
from mopn.data.chunked_rows import IN_MEMORY
from mopn.data.designs import Design, ridge_scales
from mopn.data.rows import Block, Rows
from mopn.data.validation import as_numbers
from mopn.factorization.sweep_state import Sweeper, SweepState
from mopn.factorization.terms.base import Parameters, Term, Update, unit_curvature

# Rounds of the inner problems in lambda and theta, at most: they are small, and mostly end by their tolerance.
_MAX_INNER_ROUNDS = 200
# Relative change of lambda, or change of theta, at which the inner problems stop.
_INNER_TOL = 1e-6
# Epochs after which kept kernels are computed again, from the rows, so that rounding errors do not add up.
RENEWAL_EPOCHS = 10


class KernelTerm(Term):
    """sum_s lambda_s K(p_s, x) with fixed lambda (k,) and the penalty ``sum_s ridge_s / 2 * ||p_s||^2``."""

    # Whether nothing but its sweeps changes P.
    is_swept_alone = True

    def __init__(
        self, design: Design, kernel: FactorKernel, lams: np.ndarray, ridge: np.ndarray, scale: float, name: str = "P"
    ) -> None:
        super().__init__({name: (len(lams), design.shape[1])}, (design.without_dummies,))
        self.design = design
        self.kernel = kernel
        self.scale = scale
        self.name = name
        self.lams = lams
        self.ridge = ridge
        self.multiconvex = kernel.multilinear

    def start(self, rng: np.random.Generator) -> Parameters:
        return {self.name: self.scale * rng.standard_normal(self.shapes[self.name])}

    def weights(self, at: Parameters) -> tuple[np.ndarray, np.ndarray]:
        """Return lambda (k,) and the ridge of each unit (k,)."""
        return self.lams, self.ridge

    def kernel_at(self, at: Parameters) -> FactorKernel:
        return self.kernel

    def outputs(self, at: Parameters) -> np.ndarray:
        lams, _ = self.weights(at)
        return self.kernel_at(at).outputs(self.design, at[self.name], lams)

    def penalty(self, at: Parameters) -> float:
        _, ridge = self.weights(at)
        return 0.5 * float(ridge @ _squared_norms(at[self.name]))

    def gradient(self, at: Parameters, slopes: np.ndarray) -> Parameters:
        P = at[self.name]
        lams, ridge = self.weights(at)
        of_losses = self.kernel_at(at).gradient(self.design, P, lams, slopes)
        return {self.name: of_losses + ridge[:, None] * P}

    def scales(self, rows: Rows) -> Parameters:
        curvature = np.abs(self.lams) * unit_curvature(rows)
        return {self.name: ridge_scales(rows.squares, rows.largest, curvature[:, None], self.ridge[:, None])}

    def on(self, block: Block) -> KernelTerm:
        term = copy(self)
        term.design = block.design
        term.designs = (block.design.without_dummies,)
        return term

    def updates(self, at: Parameters, state: SweepState) -> Iterator[Update]:
        """Yield the updates of P, eight units at a time; each keeps the kernels of lower degrees if they are few."""
        (design,) = self.designs
        sweep = state.sweeper(design)
        anova = isinstance(self.kernel, AnovaFactors)
        P = at[self.name]
        columns = len(self.kernel.theta) if anova else 2
        shape = WIDTH, columns - 1, self.design.shape[0]
        fits = len(P) * math.prod(shape[1:]) <= IN_MEMORY
        keeps = self.is_swept_alone and isinstance(sweep, Sweeper) and fits

        def update(first: int, epochs: Iterator[int]) -> float:
            some = slice(first, first + WIDTH)
            values = state.workspace(shape, first if keeps else 0)
            lams, ridge = self.weights(at)
            kernel = self.kernel_at(at)
            theta = kernel.coefficients if isinstance(kernel, AnovaFactors) else None
            if theta is None:
                sweep.features(self.kernel.features(self.design, P[some]), values)
            elif not keeps or next(epochs) % RENEWAL_EPOCHS == 0:
                sweep.degrees(theta, P[some], values)
            return sweep(theta, None, values, P[some], lams[some], ridge[some])

        for first in range(0, len(P), WIDTH):
            yield partial(update, first, count())


class FittedKernelTerm(KernelTerm):
    """sum_s lambda_s K(p_s, x) with fitted lambda, the difference of two parts (equation 13).

    The penalty is ``beta sum_s |lambda_s| ||p_s||^2``, where the sum of the parts replaces the modulus.
    """

    def __init__(self, design: Design, kernel: FactorKernel, k: int, beta: float, scale: float) -> None:
        super().__init__(design, kernel, np.ones(k), np.full(k, 2.0 * beta), scale)
        self.beta = beta
        self.is_swept_alone = False
        self.shapes |= {"lams_plus": (k,), "lams_minus": (k,)}
        self.lower = {"lams_plus": 0.0, "lams_minus": 0.0}

    def start(self, rng: np.random.Generator) -> Parameters:
        return super().start(rng) | self._signed_parts(np.ones(len(self.lams)))

    def weights(self, at: Parameters) -> tuple[np.ndarray, np.ndarray]:
        plus = at["lams_plus"]
        minus = at["lams_minus"]
        return plus - minus, 2.0 * self.beta * (plus + minus)

    def gradient(self, at: Parameters, slopes: np.ndarray) -> Parameters:
        of_lams = self.kernel.features(self.design, at["P"]).T @ slopes
        penalty = self.beta * _squared_norms(at["P"])
        parts = {"lams_plus": of_lams + penalty, "lams_minus": penalty - of_lams}
        return super().gradient(at, slopes) | parts

    def updates(self, at: Parameters, state: SweepState) -> Iterator[Update]:
        """Yield the update of lambda, a convex problem, then the updates of P."""
        yield partial(self.fit_lams, at, state)
        yield from super().updates(at, state)

    def fit_lams(self, at: Parameters, state: SweepState) -> float:
        """Minimise over lambda, a weighted l1 problem; return the largest violation at the start times its step."""
        lams = at["lams_plus"] - at["lams_minus"]
        self._rotate(at["P"], lams == 0.0, state)

        features = self.kernel.features(self.design, at["P"])
        thresholds = self.beta * _squared_norms(at["P"])
        weighted = state.weighted(features)
        # The curvature of an upper bound of the losses, which is exact for the squared loss: one round is enough then.
        K = state.smoothness * (weighted.T @ weighted)
        slopes = features.T @ state.slopes
        largest = _largest_decrease(slopes, lams, thresholds, np.diagonal(K))
        for _ in range(1 if state.losses.loss.code == SQUARED else _MAX_INNER_ROUNDS):
            old = lams.copy()
            minimize_l1(K, slopes, thresholds, lams, _MAX_INNER_ROUNDS, _INNER_TOL)
            state.shift_outputs(features @ (lams - old))
            slopes = features.T @ state.slopes
            if np.abs(lams - old).max() <= _INNER_TOL * np.abs(lams).max():
                break
        for name, part in self._signed_parts(lams).items():
            at[name][:] = part
        return largest

    def _rotate(self, P: np.ndarray, idle: np.ndarray, state: SweepState) -> None:
        """Rotate the units whose lambda is 0 by a step of the power method; the objective does not depend on them."""
        if not idle.any():
            return
        gradient = self.kernel.gradient(self.design, P[idle], np.ones(idle.sum()), state.slopes)
        lengths = np.sqrt(_squared_norms(gradient))
        alive = lengths > 0
        scale = np.sqrt(_squared_norms(P[idle][alive])) / lengths[alive]
        P[np.flatnonzero(idle)[alive]] = gradient[alive] * scale[:, None]

    def present(self, at: Parameters) -> dict[str, Any]:
        lams, _ = self.weights(at)
        return {"P": at["P"], "lams": lams}

    def absorb(self, given: dict[str, Any]) -> Parameters:
        parameters = super().absorb(given)
        if "lams" in given:
            parameters |= self._signed_parts(as_numbers(given["lams"], "start: lams"))
        return parameters

    @staticmethod
    def _signed_parts(lams: np.ndarray) -> Parameters:
        return {"lams_plus": np.maximum(lams, 0.0), "lams_minus": np.maximum(-lams, 0.0)}


class SharedKernelTerm(KernelTerm):
    """sum_s lambda_s A^{1..m}(p_s, x; theta) with theta on the simplex: HOFM-shared-simplex of the NIPS paper."""

    smooth = False

    def __init__(self, design: Design, degree: int, lams: np.ndarray, ridge: np.ndarray, scale: float) -> None:
        super().__init__(design, AnovaFactors(np.full(degree, 1.0 / degree)), lams, ridge, scale)
        self.shapes |= {"theta": (degree,)}

    def start(self, rng: np.random.Generator) -> Parameters:
        return super().start(rng) | {"theta": self.kernel.theta.copy()}

    def kernel_at(self, at: Parameters) -> FactorKernel:
        return AnovaFactors(at["theta"])

    def updates(self, at: Parameters, state: SweepState) -> Iterator[Update]:
        """Yield the updates of P, then the update of theta, a convex problem."""
        yield from super().updates(at, state)
        yield partial(self._fit_theta, at, state)

    def _fit_theta(self, at: Parameters, state: SweepState) -> float:
        """Minimise over theta by projected gradients; return the curvature times the largest first change squared."""
        degrees = map(AnovaFactors, np.eye(len(at["theta"])))
        features = np.array([kernel.outputs(self.design, at[self.name], self.lams) for kernel in degrees]).T
        curvature = state.smoothness * float(np.linalg.norm(state.weighted(features), 2)) ** 2
        theta = at["theta"]
        largest = None
        if not curvature > 0:
            return 0.0
        for _ in range(_MAX_INNER_ROUNDS):
            new = _on_simplex(theta - (features.T @ state.slopes) / curvature)
            step = new - theta
            theta[:] = new
            state.shift_outputs(features @ step)
            change = float(np.abs(step).max())
            if largest is None:
                largest = curvature * change**2
            if change <= _INNER_TOL:
                break
        return largest or 0.0


def _squared_norms(P: np.ndarray) -> np.ndarray:
    return np.einsum("sj,sj->s", P, P)


def _largest_decrease(slopes: np.ndarray, lams: np.ndarray, thresholds: np.ndarray, curvatures: np.ndarray) -> float:
    """Return the largest product of a violation of optimality and its step; units of zero curvature stay."""
    idle = np.maximum(np.abs(slopes) - thresholds, 0.0)
    violations = np.where(lams == 0.0, idle, np.abs(slopes + np.sign(lams) * thresholds))
    steps = np.divide(violations, curvatures, out=np.zeros_like(violations), where=curvatures > 0.0)
    return float((violations * steps).max())


def _on_simplex(v: np.ndarray) -> np.ndarray:
    """Project onto {theta >= 0, sum theta = 1}."""
    # A shift of all entries does not change the projection; added to large ones, the 1 would be lost in rounding.
    v = v - v.max()
    u = np.sort(v)[::-1]
    shifts = (np.cumsum(u) - 1.0) / np.arange(1, len(u) + 1)
    last_positive = np.flatnonzero(u > shifts)[-1]
    return np.maximum(v - shifts[last_positive], 0.0)

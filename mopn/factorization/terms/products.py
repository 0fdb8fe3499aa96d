"""The terms b, <w, x> and sum_s prod_t <u_s^t, x>, the lifted approach.

Blondel et al. (ICML 2016), section 5 and appendix D.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial

import numpy as np

from mopn.compiled.jit import WIDTH
from mopn.core.factor_kernels import AnovaFactors
from mopn.data.designs import Design, ridge_scales
from mopn.data.rows import Block, Rows, SumOfLosses
from mopn.factorization.sweep_state import SweepState
from mopn.factorization.terms.base import Parameters, Term, Update, unit_curvature
from mopn.solvers.numerics.precision import dot

# Coefficients of degree 2, for which ``degrees`` computes A^1 = <p, x> only.
_THETA_OF_DEGREE_TWO = (0.0, 1.0)


class ProductTerm(Term):
    """sum_s prod_t <u_s^t, z^t> with the penalty ``beta / 2 * sum_t ||U^t||^2``.

    With z^t = x for all t it is a homogeneous polynomial of degree m (equation 10 of the paper), otherwise low-rank
    bilinear regression. With ``distinct``, m = 2, it is 1/2 (<u, x> <v, x> - <u * x, v * x>) (appendix D.3). ``scale``
    is the standard deviation of the random start.
    """

    def __init__(self, designs: Sequence[Design], rank: int, beta: float, distinct: bool, scale: float) -> None:
        self.beta = beta
        self.distinct = distinct
        self.scale = scale
        self.names = [f"U{t}" for t in range(len(designs))]
        super().__init__({name: (rank, z.shape[1]) for name, z in zip(self.names, designs, strict=True)}, designs)

    def start(self, rng: np.random.Generator) -> Parameters:
        return {name: self.scale * rng.standard_normal(shape) for name, shape in self.shapes.items()}

    def outputs(self, at: Parameters) -> np.ndarray:
        products = np.prod(self._projections(at), axis=0).sum(axis=1)
        if not self.distinct:
            return products
        U, V = (at[name] for name in self.names)
        squares = self.designs[0].project_squares(np.sum(U * V, axis=0)[None])[:, 0]
        return 0.5 * (products - squares)

    def penalty(self, at: Parameters) -> float:
        return 0.5 * self.beta * sum(float(np.vdot(at[name], at[name])) for name in self.names)

    def gradient(self, at: Parameters, slopes: np.ndarray) -> Parameters:
        projections = self._projections(at)
        gradients = {}
        for t, (name, design) in enumerate(zip(self.names, self.designs, strict=True)):
            others = np.prod(projections[:t] + projections[t + 1 :], axis=0)
            gradients[name] = design.adjoint(others * slopes[:, None])
        if self.distinct:
            diagonal = self.designs[0].adjoint_squares(slopes[:, None])
            U, V = self.names
            gradients[U] = 0.5 * (gradients[U] - diagonal * at[V])
            gradients[V] = 0.5 * (gradients[V] - diagonal * at[U])
        return {name: gradient + self.beta * at[name] for name, gradient in gradients.items()}

    def scales(self, rows: Rows) -> Parameters:
        curvature = unit_curvature(rows)
        if not self._several:
            return dict.fromkeys(self.names, ridge_scales(rows.squares, rows.largest, curvature, self.beta))
        weights = SumOfLosses(rows).in_memory.sample_weights[:, None]
        return {
            name: ridge_scales(design.adjoint_squares(weights)[0], design.largest, curvature, self.beta)
            for name, design in zip(self.names, self.designs, strict=True)
        }

    @property
    def _several(self) -> bool:
        """Whether every factor has its own data."""
        return any(design is not self.designs[0] for design in self.designs)

    def on(self, block: Block) -> ProductTerm:
        term = copy(self)
        if self._several:
            term.designs = tuple(design.rows(block.rows) for design in self.designs)
        else:
            # Factors that share X take the X of the block, which may have been read from a file.
            term.designs = tuple(block.design for _ in self.designs)
        return term

    def updates(self, at: Parameters, state: SweepState) -> Iterator[Update]:
        """Yield the sweeps of Algorithm 2, eight units of a factor at a time."""
        shape = (WIDTH, 1, self.designs[0].shape[0])
        xi = state.workspace(shape, copy=0)
        factor = state.workspace(shape, copy=1)
        sweeps = [state.sweeper(design) for design in self.designs]

        def update(t: int, some: slice) -> float:
            xi[:] = 0.5 if self.distinct else 1.0
            for u, name in enumerate(self.names):
                if u != t:
                    sweeps[u].degrees(_THETA_OF_DEGREE_TWO, at[name][some], factor)
                    np.multiply(xi, factor, out=xi)
            U = at[self.names[t]][some]
            # For products of distinct features omega is v / 2, as xi is half its projections.
            omegas = 0.5 * at[self.names[1 - t]][some] if self.distinct else np.zeros(U.shape)
            return sweeps[t](None, omegas, xi, U, np.ones(len(U)), np.full(len(U), self.beta))

        for t in range(len(self.designs)):
            for first in range(0, len(at[self.names[t]]), WIDTH):
                yield partial(update, t, slice(first, first + WIDTH))

    def _projections(self, at: Parameters) -> list[np.ndarray]:
        return [design.project(at[name]) for name, design in zip(self.names, self.designs, strict=True)]


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
    """<w, x>, as A^{1..m}(w, x; (1, 0, ..., 0)) without dummies, with the penalty ``alpha / 2 * ||w||^2``."""

    def __init__(self, design: Design, alpha: float, degree: int = 1) -> None:
        self.design = design.without_dummies
        self.alpha = alpha
        self.degree = degree
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
        largest = rows.sum(lambda block: block.design.without_dummies.largest, combine=max)
        squares = rows.sum(
            lambda block: block.design.without_dummies.adjoint_squares(block.losses.sample_weights[:, None])[0]
        )
        return {"w": ridge_scales(squares, largest, rows.losses.smoothness, self.alpha)}

    def on(self, block: Block) -> Linear:
        return Linear(block.design, self.alpha, self.degree)

    def updates(self, at: Parameters, state: SweepState) -> Iterator[Update]:
        sweep = state.sweeper(self.design)
        theta = AnovaFactors(np.arange(self.degree) == 0).coefficients
        # No derivative depends on the state, except for the slopes.
        nothing = np.zeros((1, self.degree - 1, self.design.shape[0]))
        scale = np.ones(1)
        ridge = np.array([self.alpha])
        yield lambda: sweep(theta, None, nothing, at["w"][None], scale, ridge)

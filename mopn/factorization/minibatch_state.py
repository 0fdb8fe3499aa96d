"""The state of stochastic gradient methods on a factorization problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mopn.compiled.kernels import pack, unpack
from mopn.compiled.losses import CODES
from mopn.compiled.stochastic import count_entries, stochastic_pass
from mopn.compiled.vectorization import WIDTH

if TYPE_CHECKING:
    from mopn.factorization.direct import FactorizationProblem
    from mopn.factorization.terms import KernelTerm

__all__ = ["StochasticPasses"]


class StochasticPasses:
    """Passes of mini-batches over the rows; parameters are kept as the compiled functions want them.

    Parameters
    ----------
    problem : FactorizationProblem
    x : ndarray
        The flat point to start from; it is left as it is.
    sums : ndarray or None
        Sums of squared gradients of earlier passes, flat like the point.
    part : bool
        Whether the samples are a part of all: else features that none has are set to zero, as their penalty asks for.
    """

    def __init__(
        self, problem: FactorizationProblem, x: np.ndarray, sums: np.ndarray | None = None, *, part: bool = False
    ) -> None:
        self._problem, self._x = problem, x.copy()
        self._kernels: list[KernelTerm] = problem.kernel_terms
        self.n = problem.design.shape[0]
        fit = problem.fit
        self._y = np.ascontiguousarray(fit.y[:, 0], dtype=np.float64)
        self._offset = np.zeros(self.n) if fit.offset is None else np.ascontiguousarray(fit.offset[:, 0])
        self._weights = np.ones(self.n) if fit.weights is None else fit.weights
        self._counts = count_entries(problem.design.row_lines)
        self._panels, self._w, self._intercept = self._packed(self._x)
        self._sums = self._packed(np.zeros_like(x) if sums is None else sums)
        if not part:
            self._drop_absent_features()
        lams, ridges = problem.kernel_terms[0].weights({})
        chunks = len(self._panels) // len(self._kernels)
        self._lams = np.tile(pack(lams[:, None])[:, 0], (len(self._kernels), 1))
        self._ridges = np.tile(pack(ridges[:, None])[:, 0], (len(self._kernels), 1))
        thetas = [term.kernel.theta for term in self._kernels]
        longest = max(len(theta) for theta in thetas)
        # A^t of lower degrees as that of the highest one with zero coefficients.
        self._thetas = np.repeat([np.pad(theta, (0, longest - len(theta))) for theta in thetas], chunks, axis=0)

    def run(self, order: np.ndarray, batch: int, step: float, *, adaptive: bool) -> None:
        """Take one step for every ``batch`` of the rows in ``order``."""
        problem = self._problem
        panel_sums, w_sums, intercept_sum = self._sums
        intercept = np.array([self._intercept[0], intercept_sum[0]])
        stochastic_pass(
            self._kernels[0].kernel.kind,
            self._thetas,
            problem.design.row_lines,
            CODES[problem.fit.loss.name],
            self._y,
            self._offset,
            self._weights,
            order,
            batch,
            step,
            adaptive,
            self._counts,
            self._panels,
            panel_sums,
            self._lams,
            self._ridges,
            self._w,
            w_sums,
            problem.fit_linear,
            problem.alpha,
            problem.dummies,
            intercept,
            problem.fit_intercept,
        )
        self._intercept[0], intercept_sum[0] = intercept

    def point(self) -> np.ndarray:
        """Return the flat point."""
        return self._flat(self._panels, self._w, self._intercept)

    def sums(self) -> np.ndarray:
        """Return the sums of squared gradients, flat like the point."""
        return self._flat(*self._sums)

    def _packed(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the panels of all degrees (c, d, 8), w with room for the 1-features (d,) and the intercept (1,)."""
        parts = {name: value for view in self._problem.views(x) for name, value in view.items()}
        panels = np.concatenate([pack(parts[term.name]) for term in self._kernels])
        w = np.zeros(self._problem.design.shape[1])
        if "w" in parts:
            w[self._problem.dummies :] = parts["w"]
        return panels, w, parts.get("intercept", np.zeros(1)).copy()

    def _flat(self, panels: np.ndarray, w: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        x = np.empty_like(self._x)
        k = self._problem.n_components
        per_order = -(-k // WIDTH)
        parts = {"w": w[self._problem.dummies :], "intercept": intercept}
        for order, term in enumerate(self._kernels):
            parts[term.name] = unpack(panels[order * per_order : (order + 1) * per_order], k)
        for view in self._problem.views(x):
            for name, value in view.items():
                value[:] = parts[name]
        return x

    def _drop_absent_features(self) -> None:
        """Set what no step touches to zero, if there is a penalty."""
        absent = self._counts == 0
        if self._problem.beta > 0:
            self._panels[:, absent] = 0.0
        if self._problem.alpha > 0:
            self._w[absent] = 0.0

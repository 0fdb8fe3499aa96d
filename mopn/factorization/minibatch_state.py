"""The state of stochastic gradient methods on a factorization problem."""

import numpy as np

from mopn.compiled.jit import WIDTH
from mopn.compiled.kernels import pack, unpack
from mopn.compiled.stochastic import count_entries, stochastic_pass
from mopn.compiled.storage import constant
from mopn.data.losses_of_rows import Losses
from mopn.factorization.terms import KernelTerm, Linear
from mopn.factorization.terms.base import Layout


class StochasticPasses:
    """Passes of mini-batches over the rows from a flat point x, and ``sums`` of squared gradients so far."""

    def __init__(self, losses: Losses, layout: Layout, x: np.ndarray, sums: np.ndarray | None = None) -> None:
        self._layout = layout
        self._kernels = [term for term in layout.terms if isinstance(term, KernelTerm)]
        self._linear = next((term for term in layout.terms if isinstance(term, Linear)), None)
        self._fit_intercept = any("intercept" in term.shapes for term in layout.terms)
        self._rows = self._kernels[0].design.row_lines
        self._dummies = 0 if self._linear is None else self._rows.length - self._linear.design.shape[1]
        self.n = len(losses.y)
        offset = np.zeros(self.n) if losses.offset is None else losses.offset[:, 0]
        self._losses = losses.loss.compiled, *map(constant, (losses.y[:, 0], offset, losses.sample_weights))
        self._counts = count_entries(self._rows)
        self._panels, self._w, self._intercept = self._packed(x)
        self._sums = self._packed(np.zeros_like(x) if sums is None else sums)
        chunks, of_units = len(self._panels) // len(self._kernels), (self._kernels[0].lams, self._kernels[0].ridge)
        self._of_units = [np.tile(pack(each[:, None])[:, 0], (len(self._kernels), 1)) for each in of_units]
        thetas = [term.kernel.theta for term in self._kernels]
        longest = max(len(theta) for theta in thetas)
        # Coefficients of lower degrees are padded with zeros to the highest degree.
        self._thetas = np.repeat([np.pad(theta, (0, longest - len(theta))) for theta in thetas], chunks, axis=0)

    def run(self, order: np.ndarray, batch: int, step: float, *, adaptive: bool) -> None:
        panel_sums, w_sums, intercept_sum = self._sums
        intercept = np.array([self._intercept[0], intercept_sum[0]])
        data = self._kernels[0].kernel.kind, self._thetas, self._rows, *self._losses, order, batch, step, adaptive
        units = self._counts, self._panels, panel_sums, *self._of_units
        alpha = 0.0 if self._linear is None else self._linear.alpha
        linear = self._w, w_sums, self._linear is not None, alpha, self._dummies
        stochastic_pass(*data, *units, *linear, intercept, self._fit_intercept)
        self._intercept[0], intercept_sum[0] = intercept

    def point(self) -> np.ndarray:
        return self._flat(self._panels, self._w, self._intercept)

    def sums(self) -> np.ndarray:
        """Return the sums of squared gradients, flat like the point."""
        return self._flat(*self._sums)

    def _packed(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the panels of all degrees (c, d, 8), w with zeros for the dummies (d,) and the intercept (1,)."""
        parts = {name: value for view in self._layout.views(x) for name, value in view.items()}
        panels = np.concatenate([pack(parts[term.name]) for term in self._kernels])
        w = np.zeros(self._rows.length)
        if "w" in parts:
            w[self._dummies :] = parts["w"]
        return panels, w, parts.get("intercept", np.zeros(1)).copy()

    def _flat(self, panels: np.ndarray, w: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        x = np.empty(self._layout.size)
        k = len(self._kernels[0].lams)
        per_order = -(-k // WIDTH)
        parts = {"w": w[self._dummies :], "intercept": intercept}
        for order, term in enumerate(self._kernels):
            parts[term.name] = unpack(panels[order * per_order : (order + 1) * per_order], k)
        for view in self._layout.views(x):
            for name, value in view.items():
                value[:] = parts[name]
        return x


def without_absent_features(layout: Layout, x: np.ndarray) -> np.ndarray:
    """Return the point with zeros for the penalised parameters of features that no sample has, and no step changes."""
    x = x.copy()
    for term, at in zip(layout.terms, layout.views(x), strict=True):
        if isinstance(term, KernelTerm):
            absent = count_entries(term.design.row_lines) == 0
            at[term.name][np.ix_(term.ridge > 0, absent)] = 0.0
        elif isinstance(term, Linear) and term.alpha > 0:
            at["w"][count_entries(term.design.row_lines) == 0] = 0.0
    return x

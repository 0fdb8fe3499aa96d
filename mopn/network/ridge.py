"""The ridge of a network: a multiple of the squared length of its functions, as in a machine of the same kernel.

The units give the output c the function f_c = sum_r v_rc K(h_r, .). In the space of the kernel its squared length is
sum_rs v_rc v_sc K(h_r, h_s): for ``homogeneous`` the squared Frobenius norm of W_c = sum_r v_rc h_r h_r', for ``anova``
half of that without the diagonal. The slope of ridge / 2 times it along a unit h is ridge f_c(h). So the units act as
rows of data whose losses have the slopes ridge V, and the matrices of the whole gradient are Gamma_c + ridge W_c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mopn.core.gap import dual_error
from mopn.core.kernels import Kernel
from mopn.data.designs import DenseDesign
from mopn.network.gradient_forms import SMALLEST, GradientForms
from mopn.solvers.numerics.precision import EPS
from mopn.solvers.sphere import DenseStack, power_of_two
from mopn.solvers.tools.decorators import cached_property


class RidgeSegment(NamedTuple):
    """The ridge along U + gamma D: ``value + gamma * slope + gamma^2 * curvature / 2``."""

    value: float
    slope: float
    curvature: float

    def __call__(self, gamma: float) -> float:
        """Return the value at gamma."""
        return self.value + gamma * (self.slope + 0.5 * gamma * self.curvature)


@dataclass(frozen=True)
class Ridge:
    """``amount / 2`` times the squared length of the functions of units H (k, d), of any length, and V (k, m)."""

    kernel: Kernel
    amount: float

    @property
    def active(self) -> bool:
        return self.amount > 0

    def features(self, H: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Return K(h_r, a_q), shape (q, k), for the rows of ``at`` (q, d)."""
        if not len(at):
            return np.zeros((0, len(H)))
        return self.kernel.features(DenseDesign(at), H)

    def inner(self, H: np.ndarray, V: np.ndarray, at: np.ndarray, weights: np.ndarray) -> float:
        """Return ``amount`` times the inner product of the functions of two networks."""
        return self.amount * float(np.vdot(self.features(H, at) @ V, weights))

    def slopes(self, H: np.ndarray, V: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Return the derivatives (q, m) of the value along the units ``at`` (q, d)."""
        return self.amount * (self.features(H, at) @ V)

    def value(self, H: np.ndarray, V: np.ndarray) -> float:
        return 0.5 * self.inner(H, V, H, V) if self.active else 0.0

    def value_gradient(self, A: np.ndarray, E: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the value, and its gradients with respect to units and weights."""
        units = DenseDesign(A)
        along = E @ E.T
        of_weights = self.amount * (self.kernel.features(units, A) @ E)
        of_units = 2.0 * self.amount * self.kernel.products(units, along, A)
        return 0.5 * float(np.vdot(of_weights, E)), of_units, of_weights

    def forms(self, data: GradientForms, H: np.ndarray, V: np.ndarray) -> GradientForms:
        """Return the matrices of losses and ridge at a network, given the matrices of the losses."""
        if not len(H):
            return data
        return RidgeForms(data, self, H, self.amount * V)

    def segment(self, H: np.ndarray, V: np.ndarray, at: np.ndarray, weights: np.ndarray) -> RidgeSegment:
        """Return the ridge along a segment from (H, V) in the direction of another network."""
        value = 0.5 * self.inner(H, V, H, V)
        slope = self.inner(H, V, at, weights)
        curvature = self.inner(at, weights, at, weights)
        return RidgeSegment(value, slope, curvature)

    def curvature(self, A: np.ndarray, E: np.ndarray) -> np.ndarray:
        """Return about the mean curvature (k,) in the entries of every unit, divided by 2, for a metric."""
        squares = np.einsum("rc,rc->r", E, E) * np.einsum("rd,rd->r", A, A)
        return self.amount * self.kernel.of_square * squares

    def error(self, H: np.ndarray, V: np.ndarray) -> float:
        """Bound the rounding error of the value."""
        k, d = H.shape
        sizes = np.linalg.norm(V, axis=1) * np.einsum("rd,rd->r", H, H)
        roundings = 3 * d + 2 * k + V.shape[1] + 16
        return 0.5 * self.amount * roundings * EPS * float(sizes.sum()) ** 2

    def change(self, V: np.ndarray, errors: np.ndarray) -> float:
        """Bound the change of the value if the functions K(h_r, .), of length 1, change by ``errors`` (k,)."""
        sizes = np.linalg.norm(V, axis=1)
        changed = float(sizes @ errors)
        return self.amount * changed * (float(sizes.sum()) + changed)

    def slope_errors(self, H: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Bound the rounding errors (m,) of ``slopes`` along any unit."""
        k, d = H.shape
        sizes = np.abs(V).T @ np.einsum("rd,rd->r", H, H)
        return self.amount * (3 * d + k + 16) * EPS * sizes


class LayerRidge:
    """The ridge of weights V (k, m) alone, with the units fixed: amount / 2 * <V, K V> for their kernel matrix K."""

    def __init__(self, ridge: Ridge, H: np.ndarray) -> None:
        self.ridge, self.H = ridge, H
        self.matrix = ridge.amount * ridge.features(H, H)

    def of_units(self, units: np.ndarray) -> LayerRidge:
        return LayerRidge(self.ridge, self.H[units])

    def error(self, V: np.ndarray) -> float:
        return self.ridge.error(self.H, V)

    def slope_errors(self, V: np.ndarray) -> np.ndarray:
        return self.ridge.slope_errors(self.H, V)

    def slopes(self, V: np.ndarray) -> np.ndarray:
        return self.matrix @ V

    def value(self, V: np.ndarray) -> float:
        return 0.5 * float(np.vdot(self.matrix @ V, V))

    @cached_property
    def curvature(self) -> float:
        """The largest eigenvalue of amount * K."""
        return float(np.linalg.eigvalsh(self.matrix)[-1]) if len(self.matrix) else 0.0


class RidgeForms(GradientForms):
    """The stack Gamma + ridge W of a loss gradient and a network."""

    def __init__(self, data: GradientForms, ridge: Ridge, H: np.ndarray, slopes: np.ndarray) -> None:
        super().__init__(data.kernel, data.rows, data.G, data.seed)
        self.data, self.ridge, self.H, self.slopes = data, ridge, H, slopes
        self._units = DenseDesign(H)

    @property
    def of_losses(self) -> GradientForms:
        return self.data

    def forms(self, H: np.ndarray) -> np.ndarray:
        """Return q (k, m), the values h_r' (Gamma_c + ridge W_c) h_r for the rows of H (k, d)."""
        return self.data.forms(H) + self.ridge.features(self.H, H) @ self.slopes

    def products(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return (k, d), whose row r is (sum_c W_rc (Gamma_c + ridge W_c)) h_r."""
        return self.data.products(W, H) + self.kernel.products(self._units, self.slopes @ W.T, H)

    def scaled(self) -> tuple[RidgeForms, float]:
        """Return the forms divided exactly by a power of two, and that power."""
        _, scale_of_losses = self.data.scaled()
        scale = max(scale_of_losses, power_of_two(float(np.abs(self.slopes).max(initial=0.0))))
        data = GradientForms(self.kernel, self.rows, self.G / scale, self.seed)
        return RidgeForms(data, self.ridge, self.H, self.slopes / scale), scale

    @cached_property
    def dense(self) -> DenseStack:
        """The matrices, and bounds of their errors: the error of each term exceeds 8 roundings of that term."""
        data = self.data.dense
        matrices = data.matrices + self.kernel.gammas(self._units, self.slopes)
        # The sum of both adds one rounding of each term, an eighth of its error at most.
        return DenseStack(matrices, 1.25 * data.error + self._own_errors, self.seed)

    def rounding(self, p: float) -> float:
        """Bound the change in max ||q(h)||_p over unit h by the rounding errors of the matrices."""
        return 1.25 * self.data.rounding(p) + float(np.linalg.norm(self._own_errors, p))

    @property
    def work(self) -> tuple[float, float]:
        """The cost of the product with one vector and of one combination, in operations of a matrix product."""
        product, combination = self.data.work
        k, d = self.H.shape
        return product + 4.0 * k * d, combination + 1.0 * k * d * d

    def combination(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Return sum_c w_c (Gamma_c + ridge W_c) (d, d), and a bound of the spectral norm of its error."""
        matrix, error = self.data.combination(w)
        own = self.kernel.gammas(self._units, (self.slopes @ w)[:, None])[0]
        own_error = (1 + len(w)) * float(self._own_errors @ np.abs(w))
        return matrix + own, 1.25 * error + own_error

    @cached_property
    def _own_errors(self) -> np.ndarray:
        """Bounds (m,) of the errors made in forming ridge W_c; see ``GradientForms``."""
        k, m = self.slopes.shape
        sizes = np.abs(self.slopes).T @ np.einsum("rd,rd->r", self.H, self.H)
        lost = 16.0 * self.shape[1] * SMALLEST * (k + float(np.abs(self.slopes).sum()))
        return 1.25 * (k + 8 + dual_error(m)) * EPS * sizes + lost

    def gram(self) -> np.ndarray:
        """Return an estimate of M (m, m), M_ce = <Gamma_c + ridge W_c, Gamma_e + ridge W_e>."""
        return self._estimated_gram()

    def bound(self, p: float) -> float:
        """Proven upper bound of max ||q(h)||_p over unit h; for the ridge by |K(h, h_r)| <= ||h_r||^2."""
        sizes = np.linalg.norm(self.slopes, p, axis=1) @ np.einsum("rd,rd->r", self.H, self.H)
        own = float(sizes) * (1.0 + (sum(self.H.shape) + 8) * EPS)
        return (self.data.bound(p) + own) * (1.0 + EPS)

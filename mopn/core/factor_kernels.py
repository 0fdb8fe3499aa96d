"""Kernels K(p, x) of any degree for the rows of a design: features, outputs and gradients.

ANOVA A^m and its weighted sums over the degrees, all-subsets S, homogeneous H^m; see :mod:`mopn.compiled.kernels`.
"""

from abc import ABC
from typing import Any

import numpy as np

from mopn.compiled import kernels as compiled
from mopn.compiled.jit import WIDTH
from mopn.data.designs import Design, SparseDesign
from mopn.data.relation_design import RelationDesign
from mopn.data.validation import check_factor_kernel

# Largest number of coefficients whose loops are unrolled: each number is compiled separately.
_MAX_UNROLLED_DEGREE = 10


class FactorKernel(ABC):
    """A kernel of some degree; ``kind`` and ``theta`` are its code and its coefficients in compiled functions."""

    kind: int
    theta: np.ndarray
    # Whether it is affine in each p_j, as coordinate descent requires.
    multilinear = True

    def features(self, design: Design, P: np.ndarray) -> np.ndarray:
        """Return K(p_s, x_i), shape (n, k), for P (k, d)."""
        panels = compiled.pack(P)
        out = np.zeros((design.shape[0], len(panels), WIDTH))
        compiled.set_features(self.kind, self.theta, design.row_lines, panels, out)
        return out.reshape(len(out), -1)[:, : len(P)]

    def outputs(self, design: Design, P: np.ndarray, lams: np.ndarray) -> np.ndarray:
        """Return sum_s lambda_s K(p_s, x_i), shape (n,)."""
        out = np.zeros(design.shape[0])
        compiled.add_outputs(self.kind, self.theta, design.row_lines, compiled.pack(P), _packed_weights(lams), out)
        return out

    def gradient(self, design: Design, P: np.ndarray, lams: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Return the gradient (k, d) of sum_is slopes_i lambda_s K(p_s, x_i) with respect to P."""
        panels = compiled.pack(P)
        gradient = np.zeros_like(panels)
        weights = _packed_weights(lams)
        compiled.add_gradient(self.kind, self.theta, design.row_lines, panels, weights, slopes, gradient)
        return compiled.unpack(gradient, len(P))


class AnovaFactors(FactorKernel):
    """sum_t theta_t A^t(p, x); for theta = (0, ..., 0, 1) it is A^m."""

    kind = compiled.ANOVA

    def __init__(self, theta: np.ndarray) -> None:
        self.theta = np.asarray(theta, dtype=np.float64)

    @property
    def coefficients(self) -> Any:
        """The coefficients for compiled loops: as a tuple if they are few, so that the compiler unrolls the loops."""
        return tuple(self.theta.tolist()) if len(self.theta) <= _MAX_UNROLLED_DEGREE else self.theta

    def outputs(self, design: Design, P: np.ndarray, lams: np.ndarray) -> np.ndarray:
        out = np.zeros(design.shape[0])
        compiled.add_anova(self.coefficients, design.row_lines, compiled.pack(P), _packed_weights(lams), out)
        return out


class RelatedPairs(AnovaFactors):
    """A^2 on a design S B of relation blocks: pairs within the rows of B, and pairs of B p within the rows of S."""

    def __init__(self) -> None:
        super().__init__(np.array([0.0, 1.0]))

    def features(self, design: Design, P: np.ndarray) -> np.ndarray:
        S, B = _factors(design)
        return super().features(S, B.project(P).T) + S.X @ super().features(B, P)

    def outputs(self, design: Design, P: np.ndarray, lams: np.ndarray) -> np.ndarray:
        S, B = _factors(design)
        return super().outputs(S, B.project(P).T, lams) + S.X @ super().outputs(B, P, lams)

    def gradient(self, design: Design, P: np.ndarray, lams: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        S, B = _factors(design)
        between = super().gradient(S, B.project(P).T, lams, slopes)
        return B.adjoint(between.T) + super().gradient(B, P, lams, S.X.T @ slopes)


def _factors(design: Design) -> tuple[SparseDesign, SparseDesign]:
    """Return S and B of a design S B of relation blocks."""
    assert isinstance(design, RelationDesign)
    return design.choice, design.tables


class AllSubsetsFactors(FactorKernel):
    """prod_j (1 + p_j x_j)."""

    kind = compiled.SUBSETS
    theta = np.zeros(0)


class HomogeneousFactors(FactorKernel):
    """<p, x>^m, by matrix products."""

    multilinear = False

    def __init__(self, degree: int) -> None:
        self.degree = degree

    def features(self, design: Design, P: np.ndarray) -> np.ndarray:
        return design.project(P) ** self.degree

    def outputs(self, design: Design, P: np.ndarray, lams: np.ndarray) -> np.ndarray:
        return self.features(design, P) @ lams

    def gradient(self, design: Design, P: np.ndarray, lams: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        powers = design.project(P) ** (self.degree - 1)
        return design.adjoint(powers * (self.degree * lams) * slopes[:, None])


def _packed_weights(lams: np.ndarray) -> np.ndarray:
    """Return lambda (k,) in panels of eight, (panels, 8)."""
    return compiled.pack(np.asarray(lams, dtype=np.float64)[:, None])[:, 0]


def make_factor_kernel(kernel: str, degree: int, theta: Any = None) -> FactorKernel:
    kernel, degree, theta = check_factor_kernel(kernel, degree, theta)
    if kernel == "all-subsets":
        return AllSubsetsFactors()
    if kernel == "homogeneous":
        return HomogeneousFactors(degree)
    if theta is None:
        theta = np.arange(1, degree + 1) == degree
    return AnovaFactors(theta)

"""The two kernels K(h, x) of degree 2, and the quadratic forms h' Gamma_c h = sum_i G_ic K(h, x_i) they induce.

``homogeneous``: K = <h, x>^2, polynomial networks, with Gamma_c = X' diag(G_c) X. ``anova``: K = sum_{i<j} h_i x_i h_j
x_j, factorization machines, with half of that Gamma_c and zeros on its diagonal (section 4 of Blondel et al., NIPS
2017).
"""

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from mopn.data.designs import Design
from mopn.data.validation import check_member
from mopn.solvers.numerics.precision import NULL

KernelName = Literal["homogeneous", "anova"]


class Kernel(ABC):
    """A kernel of degree 2."""

    name: str
    # Number of dummies, columns of ones, that give the model its linear and constant terms. ``anova`` multiplies
    # distinct features only, so one dummy gives a linear term but no constant.
    dummies: int
    # Whether the kernel has products of distinct features only.
    distinct: bool
    # The factor of <h, x>^2 in the kernel.
    of_square: float

    def features(self, design: Design, H: np.ndarray) -> np.ndarray:
        """Return K(h_r, x_i), shape (n, k), for H (k, d)."""
        P = design.project(H)
        P *= P
        return self.features_of(design, H, P)

    def products(self, design: Design, R: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return (k, d): row r is the product of h_r with the matrix Gamma of column r of R (n, k).

        Twice that is the gradient of sum_i R_ir K(h_r, x_i) with respect to h_r.
        """
        return self.products_of(design, R, H, design.project(H))

    @abstractmethod
    def features_of(self, design: Design, H: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return ``features`` given the squares of the projections X H' (n, k), which are overwritten."""

    @abstractmethod
    def products_of(self, design: Design, R: np.ndarray, H: np.ndarray, P: np.ndarray) -> np.ndarray:
        """Return ``products`` given the projections P, which are overwritten."""

    def gammas(self, design: Design, G: np.ndarray) -> np.ndarray:
        """Return the stack Gamma (m, d, d) for G (n, m)."""
        stack = np.stack([design.gram(g) for g in np.ascontiguousarray(G.T)])
        stack *= self.of_square
        if self.distinct:
            for matrix in stack:
                np.fill_diagonal(matrix, 0.0)
        return stack

    @abstractmethod
    def inner_products(self, design: Design) -> np.ndarray:
        """Return the inner products (n, n) of the matrices Gamma of single samples, divided by ``design.unit ** 4``."""


class Homogeneous(Kernel):
    """K(h, x) = <h, x>^2."""

    name = "homogeneous"
    dummies = 1
    distinct = False
    of_square = 1.0

    def features_of(self, design: Design, H: np.ndarray, squares: np.ndarray) -> np.ndarray:
        return squares

    def inner_products(self, design: Design) -> np.ndarray:
        return design.row_products**2

    def products_of(self, design: Design, R: np.ndarray, H: np.ndarray, P: np.ndarray) -> np.ndarray:
        P *= R
        return design.adjoint(P)


class Anova(Kernel):
    """K(h, x) = sum_{i<j} h_i x_i h_j x_j = (<h, x>^2 - <h * h, x * x>) / 2."""

    name = "anova"
    dummies = 2
    distinct = True
    of_square = 0.5

    def features_of(self, design: Design, H: np.ndarray, squares: np.ndarray) -> np.ndarray:
        squares -= design.project_squares(H * H)
        squares *= 0.5
        return squares

    def inner_products(self, design: Design) -> np.ndarray:
        return 0.25 * (design.row_products**2 - design.squared_row_products)

    def products_of(self, design: Design, R: np.ndarray, H: np.ndarray, P: np.ndarray) -> np.ndarray:
        P *= R
        return 0.5 * (design.adjoint(P) - H * design.adjoint_squares(R))


KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in (Homogeneous(), Anova())}


def get_kernel(kernel: str | Kernel) -> Kernel:
    reason = "bounds over all units and compiled loops hold for these alone"
    return check_member(kernel, "kernel", Kernel, KERNELS, reason)


def eigen_units(weights: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nonzero eigenvalues (r,) and eigenvectors (r, d) of W = sum_s weights_s h_s h_s'."""
    # W = H' diag(weights) H is decomposed in the span of the units, without a d x d matrix.
    Q, R = np.linalg.qr(units.T)
    values, vectors = np.linalg.eigh((R * weights) @ R.T)
    kept = np.abs(values) > NULL * np.abs(values).max(initial=0.0)
    return values[kept], (Q @ vectors[:, kept]).T

"""The two kernels K(h, x) of degree 2, and the quadratic forms h' Gamma_c h = sum_i G_ic K(h, x_i) they induce.

``homogeneous``: K = <h, x>^2, polynomial networks. ``anova``: K = sum_{i<j} h_i x_i h_j x_j, factorization machines.
Gamma_c = X' diag(G_c) X for the first; half of it with the diagonal taken out for the second (section 4 of Blondel et
al., NIPS 2017). Where only features of different groups interact, whole blocks are taken out: groups are lists of
columns, or a number for every feature.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from mopn.data.designs import Design
from mopn.data.validation import as_array, check_member
from mopn.solvers.numerics.precision import NULL
from mopn.solvers.tools.checks import shown

KernelName = Literal["homogeneous", "anova"]


class Kernel(ABC):
    """A kernel of degree 2."""

    name: str
    # Number of dummies, columns of ones, that give the model its linear and constant terms. ``anova`` multiplies
    # distinct features only, so one dummy gives a linear term but no constant.
    dummies: int
    # Whether the kernel has products of distinct features only.
    distinct: bool
    # The share of <h, x>^2 in the kernel.
    of_square: float
    # The number of each feature's group (d,), -1 for a group of its own; only features of different groups multiply.
    groups: np.ndarray | None = None

    def features(self, design: Design, H: np.ndarray) -> np.ndarray:
        """Return K(h_r, x_i), shape (n, k), for H (k, d)."""
        P = design.project(H)
        P *= P
        return self.features_of(design, H, P)

    def products(self, design: Design, R: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return (k, d), row r the product of h_r with the matrix Gamma of the column r of R (n, k).

        Twice that is the gradient of sum_i R_ir K(h_r, x_i) with respect to h_r.
        """
        return self.products_of(design, R, H, design.project(H))

    @abstractmethod
    def features_of(self, design: Design, H: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return ``features`` given the squares of the projections X H' (n, k), which are overwritten."""

    @abstractmethod
    def products_of(self, design: Design, R: np.ndarray, H: np.ndarray, P: np.ndarray) -> np.ndarray:
        """Return ``products`` given the projections P, which are overwritten."""

    @abstractmethod
    def gammas(self, design: Design, G: np.ndarray) -> np.ndarray:
        """Return the stack Gamma (m, d, d) for G (n, m)."""

    @abstractmethod
    def inner_products(self, design: Design) -> np.ndarray:
        """Return the inner products (n, n) of the matrices Gamma of single samples, divided by ``design.unit ** 4``."""


class Homogeneous(Kernel):
    """K(h, x) = <h, x>^2."""

    name, dummies, distinct, of_square = "homogeneous", 1, False, 1.0

    def features_of(self, design: Design, H: np.ndarray, squares: np.ndarray) -> np.ndarray:
        return squares

    def gammas(self, design: Design, G: np.ndarray) -> np.ndarray:
        return design.grams(G)

    def inner_products(self, design: Design) -> np.ndarray:
        return design.row_products**2

    def products_of(self, design: Design, R: np.ndarray, H: np.ndarray, P: np.ndarray) -> np.ndarray:
        P *= R
        return design.adjoint(P)


class Anova(Kernel):
    """K(h, x) = sum_{i<j} h_i x_i h_j x_j = (<h, x>^2 - <h * h, x * x>) / 2."""

    name, dummies, distinct, of_square = "anova", 2, True, 0.5

    def features_of(self, design: Design, H: np.ndarray, squares: np.ndarray) -> np.ndarray:
        squares -= design.project_squares(H * H)
        squares *= 0.5
        return squares

    def gammas(self, design: Design, G: np.ndarray) -> np.ndarray:
        stack = 0.5 * design.grams(G)
        for matrix in stack:
            np.fill_diagonal(matrix, 0.0)
        return stack

    def inner_products(self, design: Design) -> np.ndarray:
        return 0.25 * (design.row_products**2 - design.squared_row_products)

    def products_of(self, design: Design, R: np.ndarray, H: np.ndarray, P: np.ndarray) -> np.ndarray:
        P *= R
        return 0.5 * (design.adjoint(P) - H * design.adjoint_squares(R))


class AnovaBetweenGroups(Anova):
    """K(h, x) = sum of h_i x_i h_j x_j over the pairs i < j of different groups: A^2 minus that of every group."""

    def __init__(self, groups: np.ndarray) -> None:
        self.groups, self._d = groups, len(groups)
        self._members = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]

    def _columns(self, d: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the members of every group, and where they are among d columns, behind the dummies."""
        for members in self._members:
            yield members, members + (d - self._d)

    def features_of(self, design: Design, H: np.ndarray, squares: np.ndarray) -> np.ndarray:
        features = super().features_of(design, H, squares)
        for members, columns in self._columns(H.shape[1]):
            features -= KERNELS["anova"].features(design.columns(members), H[:, columns])
        return features

    def gammas(self, design: Design, G: np.ndarray) -> np.ndarray:
        stack = super().gammas(design, G)
        for _, columns in self._columns(stack.shape[-1]):
            stack[:, columns[:, None], columns] = 0.0
        return stack

    def inner_products(self, design: Design) -> np.ndarray:
        products = super().inner_products(design)
        for members in self._members:
            part = design.columns(members)
            products -= (part.unit / design.unit) ** 4 * super().inner_products(part)
        return products

    def products_of(self, design: Design, R: np.ndarray, H: np.ndarray, P: np.ndarray) -> np.ndarray:
        products = super().products_of(design, R, H, P)
        for members, columns in self._columns(H.shape[1]):
            products[:, columns] -= KERNELS["anova"].products(design.columns(members), R, H[:, columns])
        return products


KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in (Homogeneous(), Anova())}


def get_kernel(kernel: str | Kernel, groups: np.ndarray | None = None) -> Kernel:
    reason = "bounds over all units and compiled loops hold for these alone"
    found = check_member(kernel, "kernel", Kernel, KERNELS, reason)
    if groups is None:
        return found
    if not found.distinct:
        raise ValueError(
            f"groups of features that do not interact need kernel='anova', got {found.name!r}, whose units have squares"
        )
    return AnovaBetweenGroups(groups)


def eigen_units(weights: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nonzero eigenvalues (r,) and eigenvectors (r, d) of W = sum_s weights_s h_s h_s'."""
    # W = H' diag(weights) H is decomposed in the span of the units: no d x d matrix.
    Q, R = np.linalg.qr(units.T)
    values, vectors = np.linalg.eigh((R * weights) @ R.T)
    kept = np.abs(values) > NULL * np.abs(values).max(initial=0.0)
    return values[kept], (Q @ vectors[:, kept]).T


def feature_groups(interactions: Any, d: int, names: Sequence[Any] = ()) -> np.ndarray | None:
    """Return the number (d,) of each feature's group in lists of columns, -1 for one alone; None if all are."""
    listed = list(interactions) if _is_collection(interactions) else [interactions]
    if not all(map(_is_collection, listed)):
        raise TypeError(
            "interactions must hold groups of columns, such as [range(100), range(100, 300)]: pairs of different "
            f"groups interact; got {shown(interactions)}"
        )
    places = {name: j for j, name in enumerate(names) if isinstance(name, str)}
    groups = np.full(d, -1)
    for number, group in enumerate(listed):
        for column in group:
            j = places.get(column, column) if isinstance(column, str) else column
            if isinstance(j, (bool, np.bool_)) or not isinstance(j, (int, np.integer)) or not 0 <= j < d:
                known = "or names of columns" if places else "as the columns have no names"
                raise ValueError(
                    f"interactions must hold indices of columns from 0 to {d - 1}, {known}, got {column!r}"
                )
            if groups[j] != -1:
                raise ValueError(
                    f"interactions: the groups {groups[j]} and {number} overlap in the column {column!r}; give each "
                    "column in one group, or in none if it interacts with all others"
                )
            groups[j] = number
    sizes = np.bincount(groups[groups >= 0], minlength=len(listed))
    if not sizes.all():
        raise ValueError(f"interactions: the group {int(np.argmin(sizes))} is empty; leave it out")
    if sizes.max(initial=0) == d:
        raise ValueError("interactions: all columns are in one group, so no pair is left; give several groups")
    return check_groups(groups, d)


def check_groups(groups: Any, d: int) -> np.ndarray | None:
    """Return groups by number as ``feature_groups`` does: groups of several features are 0, 1, ... in their order."""
    groups = as_array(groups, "groups")
    if groups.shape != (d,) or groups.dtype.kind not in "iu" or (groups < -1).any():
        raise ValueError(
            f"groups must hold an integer of at least -1 for each of the {d} features, got {shown(groups)}"
        )
    numbers, which, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    several = (numbers >= 0) & (sizes > 1)
    if not several.any():
        return None
    return np.where(several, np.cumsum(several) - 1, -1)[which]


def _is_collection(value: Any) -> bool:
    return np.iterable(value) and not isinstance(value, str)

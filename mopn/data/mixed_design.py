"""Two designs side by side, for sparse data with full columns, such as numbers among indicators of categories.

Products with full columns are matrix products, in which an entry takes a tenth of the time of a stored sparse entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.designs import Design, SparseDesign
from mopn.solvers.tools.decorators import cached_property

# Least part of the entries of a full column that is stored.
_LEAST_FILL = 0.5
# Least part of all stored entries that is in full columns: otherwise compiled loops over all entries are quicker.
_LEAST_SHARE = 0.75


def full_columns(design: SparseDesign) -> np.ndarray:
    """Return the indices of the full columns; none where products with them would save no time."""
    n, d = design.shape
    counts = np.bincount(design.stored_columns, minlength=d)
    full = counts >= _LEAST_FILL * n
    if counts[full].sum() < _LEAST_SHARE * counts.sum():
        return np.empty(0, np.intp)
    return np.flatnonzero(full)


def other_columns(places: np.ndarray, d: int) -> np.ndarray:
    """Return the columns of d that are not at some places, in their order."""
    return np.setdiff1d(np.arange(d), places, assume_unique=True)


class MixedDesign(Design):
    """The design ``full`` of the columns ``places``, and the design ``rest`` of all others, in their order."""

    def __init__(self, full: Design, rest: Design, places: np.ndarray) -> None:
        self.full, self.rest, self.places = full, rest, places
        d = full.shape[1] + rest.shape[1]
        self.shape = full.shape[0], d
        self.others = other_columns(places, d)

    @cached_property
    def _order(self) -> np.ndarray:
        """The places (d,) of all columns among the full ones and then the others."""
        return np.argsort(np.concatenate([self.places, self.others]))

    @property
    def _is_in_order(self) -> bool:
        """Whether the full columns are the first ones."""
        return self.places[-1] < len(self.places)

    def project(self, H: np.ndarray) -> np.ndarray:
        P = self.full.project(H[:, self.places])
        P += self.rest.project(H[:, self.others])
        return P

    def adjoint(self, R: np.ndarray) -> np.ndarray:
        return self._joined(self.full.adjoint(R), self.rest.adjoint(R))

    @cached_property
    def squares(self) -> MixedDesign:
        return MixedDesign(self.full.squares, self.rest.squares, self.places)

    def gram(self, g: np.ndarray) -> np.ndarray:
        of_full = self.full.gram(g)
        of_rest = self.rest.gram(g)
        between = self.rest.adjoint(g[:, None] * self.full.matrix())
        matrix = np.block([[of_full, between], [between.T, of_rest]])
        return matrix if self._is_in_order else matrix[np.ix_(self._order, self._order)]

    def occurrences(self, weights: np.ndarray) -> np.ndarray:
        return self._joined(self.full.occurrences(weights), self.rest.occurrences(weights))

    def inner_products(self, unit: float) -> np.ndarray:
        return self.full.inner_products(unit) + self.rest.inner_products(unit)

    @cached_property
    def largest(self) -> float:
        return max(self.full.largest, self.rest.largest)

    @cached_property
    def absolute(self) -> MixedDesign:
        return MixedDesign(self.full.absolute, self.rest.absolute, self.places)

    @property
    def squared_sizes(self) -> np.ndarray:
        return self.full.squared_sizes + self.rest.squared_sizes

    @property
    def squared_column_sizes(self) -> np.ndarray:
        return self._joined(self.full.squared_column_sizes, self.rest.squared_column_sizes)

    def matrix(self) -> Any:
        """Return X (n, d), formed at each call: in CSR, or as an array if the rest is not sparse either."""
        full = self.full.matrix()
        rest = self.rest.matrix()
        if sparse.issparse(rest):
            return sparse.hstack([sparse.csr_array(full), rest], format="csr")[:, self._order]
        return np.hstack([full, rest])[:, self._order]

    @property
    def full_part(self) -> tuple[Design, np.ndarray]:
        return self.full, self.places

    @property
    def work(self) -> tuple[float, float]:
        of_full, pairs_of_full = self.full.work
        of_rest, pairs_of_rest = self.rest.work
        return of_full + of_rest, pairs_of_full + self.full.shape[1] * of_rest + pairs_of_rest

    def rows(self, rows: slice | np.ndarray) -> MixedDesign:
        return MixedDesign(self.full.rows(rows), self.rest.rows(rows), self.places)

    def single(self) -> MixedDesign:
        return MixedDesign(self.full.single(), self.rest.single(), self.places)

    def _joined(self, of_full: np.ndarray, of_rest: np.ndarray) -> np.ndarray:
        """Return numbers (..., d) of all columns from numbers of the two designs."""
        joined = np.empty((*of_full.shape[:-1], self.shape[1]), of_full.dtype)
        joined[..., self.places] = of_full
        joined[..., self.others] = of_rest
        return joined

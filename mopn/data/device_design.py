"""Dense data in the arrays of another namespace, such as a GPU's, with dummies and coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mopn.data.designs import AugmentedDesign, DenseDesign, Design
from mopn.losses.namespaces import as_double, as_type, crossed, namespace, to_device, to_host
from mopn.solvers.tools.cached import cached_property

if TYPE_CHECKING:
    from mopn.data.feature_scaling import Coordinates

__all__ = ["DeviceDesign"]


class DeviceDesign:
    """What functions of blocks for any namespace need of [1, ..., 1, (X - c) / s].

    It offers these methods of :class:`mopn.data.designs.Design`, for arrays of the namespace of X. Nothing of the size
    of X is kept: float32 data is mapped, and converted into the ``dtype`` of products, whenever it is used.

    Parameters
    ----------
    X : array of shape (n, d)
        float32 or float64.
    coordinates : Coordinates, optional
        c and s.
    dummies : int, default 0
    single : bool, default False
        Whether products are in float32; otherwise they are in float64.
    """

    def __init__(
        self, X: Any, coordinates: Coordinates | None = None, dummies: int = 0, *, single: bool = False
    ) -> None:
        self.X, self.coordinates, self.dummies = X, coordinates, dummies
        self.is_single = single
        self.shape = X.shape[0], X.shape[1] + dummies

    def rows(self, rows: slice) -> DeviceDesign:
        """Return the design of some rows."""
        return DeviceDesign(self.X[rows, :], self.coordinates, self.dummies, single=self.is_single)

    def taken(self, rows: np.ndarray) -> DeviceDesign:
        """Return the design of the rows of some indices."""
        X = namespace(self.X).take(self.X, to_device(rows, self.X), axis=0)
        return DeviceDesign(X, self.coordinates, self.dummies, single=self.is_single)

    def single(self) -> DeviceDesign:
        """Return the design in float32; data in other coordinates, or of float64, are stored anew."""
        return DeviceDesign(as_type(self._data, namespace(self.X).float32), None, self.dummies, single=True)

    @property
    def without_dummies(self) -> DeviceDesign:
        """The design without its leading dummies."""
        return DeviceDesign(self.X, self.coordinates, single=self.is_single)

    @cached_property
    def linear(self) -> DeviceDesign:
        """[1, X], the design of a linear term."""
        return DeviceDesign(self.X, self.coordinates, 1, single=self.is_single)

    def host(self, rows: slice) -> Design:
        """Return the design of some rows in arrays of NumPy."""
        base = DenseDesign(to_host(self.X[rows, :]), np.float32 if self.is_single else np.float64)
        design = base if self.coordinates is None else self.coordinates.view(base)
        return AugmentedDesign(design, self.dummies) if self.dummies else design

    @property
    def _data(self) -> Any:
        """(X - c) / s in the precision of products."""
        if self.is_single:
            return self.X
        X = as_double(self.X)
        if self.coordinates is None:
            return X
        if self.coordinates.center is not None:
            X = X - to_device(self.coordinates.center, X)
        return X / to_device(self.coordinates.scale, X)

    def project(self, H: Any) -> Any:
        """Return X H' (n, k)."""
        return self._with_dummies(self._data @ H[:, self.dummies :].T, H)

    def project_squares(self, H: Any) -> Any:
        """Return (X * X) H' (n, k)."""
        X = self._data
        return self._with_dummies((X * X) @ H[:, self.dummies :].T, H)

    def _with_dummies(self, P: Any, H: Any) -> Any:
        if self.dummies:
            P += namespace(H).sum(H[:, : self.dummies], axis=1)
        return P

    def adjoint(self, R: Any) -> Any:
        """Return R' X (k, d) in float64."""
        return self._after_dummies(crossed(R, self._data), R)

    def adjoint_squares(self, R: Any) -> Any:
        """Return R' (X * X) (k, d) in float64."""
        X = self._data
        return self._after_dummies(crossed(R, X * X), R)

    def _after_dummies(self, sums: Any, R: Any) -> Any:
        if not self.dummies:
            return sums
        xp = namespace(R)
        of_ones = xp.sum(R, axis=0, dtype=xp.float64)
        return xp.concat([*(of_ones[:, None],) * self.dummies, sums], axis=1)

    def grams(self, G: Any) -> Any:
        """Return X' diag(g) X for every column of G (n, m), shape (m, d, d)."""
        xp, X = namespace(G), self._data
        if self.dummies:
            X = xp.concat([*(xp.ones_like(X[:, :1]),) * self.dummies, X], axis=1)
        return xp.stack([crossed(G[:, c : c + 1] * X, X) for c in range(G.shape[1])])

    def occurrences(self, weights: Any) -> Any:
        """Return the total weight (d,), for each feature, of the rows in which it is not zero."""
        return self._after_dummies(crossed(weights[:, None], as_double(self._data != 0)), weights[:, None])[0, :]

    @cached_property
    def largest(self) -> float:
        """The largest modulus of an entry."""
        return max(float(namespace(self.X).max(abs(self._data))), 1.0 if self.dummies else 0.0)

    @cached_property
    def squared_norms(self) -> Any:
        """Squared lengths of the rows (n,), in float64."""
        xp, X = namespace(self.X), self._data
        return xp.sum(X * X, axis=1, dtype=xp.float64) + self.dummies

    @property
    def squared_sizes(self) -> Any:
        """Squared lengths of the rows of the numbers that products add up."""
        return self.squared_norms

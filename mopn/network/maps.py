"""Networks on the training data: their outputs there, and the same networks for the user's X and y."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mopn.core.kernels import Kernel
from mopn.data.feature_scaling import Coordinates
from mopn.data.rows import Rows
from mopn.network.linear_term import LinearTerm
from mopn.solvers.numerics.precision import EPS


@dataclass(frozen=True)
class Maps:
    """The maps of the training data that a network needs."""

    rows: Rows
    kernel: Kernel
    linear_term: LinearTerm


class MappingErrors(NamedTuple):
    """Errors (k,) of the squares of units, relative to ||x||^2, and (m,) of the linear term, relative to ||[1, x]||."""

    units: np.ndarray
    linear: np.ndarray


@dataclass(frozen=True)
class UserX:
    """The user's X, before it is centered and scaled, and the networks for it: the same functions."""

    coordinates: Coordinates | None
    dummies: int

    @property
    def feature_scales(self) -> np.ndarray | None:
        """Divisors of the features (d,), 0 for constant ones; None if all are 1."""
        return None if self.coordinates is None else self.coordinates.finite_scale

    def network(
        self, basis: np.ndarray, weights: np.ndarray, linear: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return copies of unit vectors, weights and linear term (None without one) for the user's X."""
        linear = None if linear is None or not linear.size else np.array(linear)
        if self.coordinates is None:
            return np.array(basis), np.array(weights), linear
        basis = self.coordinates.original(basis, self.dummies)
        lengths = np.linalg.norm(basis, axis=1, keepdims=True)
        linear = None if linear is None else self.coordinates.original(linear, 1)
        return basis / lengths, weights * lengths**2, linear

    def mapping_errors(self, basis: np.ndarray, linear: np.ndarray) -> MappingErrors:
        """Bound the rounding errors of ``network``, of weights times a unit, and of outputs for the user's X.

        Docs/mathematics.md, 5.4: the place of a center c in the constant, and the sums that cancel it again, err by
        (3 d / 2 + 4) eps of |h| |c| / s, and everything else by (2 d + 8) eps of the length of a row.
        """
        d = basis.shape[1]
        W = np.abs(linear)
        if self.coordinates is None:
            return MappingErrors(np.full(len(basis), 2.0 * EPS), 2.0 * EPS * np.linalg.norm(W, axis=1))
        far = self.coordinates.relative_center
        near = (2 * d + 8) * EPS
        moved = near + (1.5 * d + 4) * EPS * (np.abs(basis[:, self.dummies :]) @ far)
        of_linear = np.zeros(len(W))
        if W.size:
            of_linear = near * np.linalg.norm(W, axis=1) + (1.5 * d + 4) * EPS * (W[:, 1:] @ far)
        return MappingErrors((len(basis) + 8) * EPS + moved * (2.0 + moved), of_linear)

    def of_problem(self, basis: np.ndarray, linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return units of any length and the linear term in the problem's coordinates, given in the user's."""
        if self.coordinates is None:
            return basis, linear
        linear = self.coordinates.of_original(linear, 1) if linear.size else linear
        return self.coordinates.of_original(basis, self.dummies), linear


@dataclass(frozen=True)
class UserY:
    """The user's targets y = level + unit * target, for the targets of a problem, and the networks for them.

    Levels are subtracted before anything else, since 3e12 + 0.1 leaves few digits to a slope. Units make targets weigh
    alike, whatever they are measured in.
    """

    level: np.ndarray  # (m,)
    unit: np.ndarray  # (m,)

    def targets(self, y: np.ndarray) -> np.ndarray:
        """Return the targets of the problem for y (n, m)."""
        return (y - self.level) / self.unit

    def network(self, weights: np.ndarray, linear: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Return weights (k, m) and the linear term (m, 1 + d), if any, for y."""
        return weights * self.unit, None if linear is None else linear * self.unit[:, None]

    def offset(self, offset: np.ndarray | float) -> np.ndarray:
        """Return the constant (m,) that is added to outputs for y."""
        return self.level + self.unit * offset

    def offset_error(self, offset: np.ndarray | float) -> np.ndarray:
        """Bound the rounding error (m,) of ``offset``, in outputs of the problem."""
        if not np.any(offset):
            return np.zeros(len(self.level))
        return 2.0 * EPS * np.abs(self.offset(offset)) / self.unit + 2.0 * EPS * np.abs(offset)

    def of_problem(self, weights: np.ndarray, linear: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Return weights and linear term for the problem, given both for y."""
        return weights / self.unit, None if linear is None else linear / self.unit[:, None]

    def offset_of_problem(self, offset: np.ndarray | float) -> np.ndarray:
        """Return the constant (m,) of the problem from the one for y."""
        return (offset - self.level) / self.unit

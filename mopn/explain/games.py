"""Exact Shapley values of polynomials of degree 2: games whose players are the features of a row.

The game of a row x and an output f is v(T) = E f(x_T, b_{-T}): features in T come from x, the others from a
background row b, averaged over the rows of a background (the "interventional" value function of Lundberg and Lee, NIPS
2017). The background enters by its mean and covariance alone. Higher degrees: :mod:`mopn.explain.higher_games`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from mopn.data.designs import DenseDesign, Design, SparseDesign, rows_at_once
from mopn.data.feature_scaling import CenteredDesign
from mopn.models.formula import dense_rows
from mopn.models.quadratic import Quadratic
from mopn.solvers.tools.decorators import cached_property


class Background:
    """The rows b that features are compared with: as given and centered, their mean and their variances."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.n = design.shape[0]
        self.mean = design.adjoint(np.full((self.n, 1), 1.0 / self.n))[0]

    @cached_property
    def rows(self) -> np.ndarray:
        """The rows (N, d) as a dense array."""
        return dense_rows(self.design)

    @cached_property
    def centered(self) -> Design:
        if isinstance(self.design, SparseDesign):
            return CenteredDesign(self.design, self.mean)
        return DenseDesign(self.rows - self.mean)

    @cached_property
    def variances(self) -> np.ndarray:
        return self.centered.adjoint_squares(np.full((self.n, 1), 1.0 / self.n))[0]

    def covariances(self, H: np.ndarray) -> np.ndarray:
        """Return the rows of H (k, d) times the covariance of the features."""
        return self.centered.adjoint(self.centered.project(H)) / self.n


class Game(ABC):
    """The games of rows against a background, for every output."""

    @abstractmethod
    def values(self, design: Design) -> np.ndarray:
        """Return the Shapley values (m, n, d) of the rows of a design."""

    @abstractmethod
    def interactions(self, design: Design) -> np.ndarray:
        """Return the SHAP interaction values (m, n, d, d): symmetric, with rows that add up to the Shapley values."""


class ColumnGame(Game):
    """Games of degree 2 whose players are columns, the ``owners`` (d,) of features: sums of values of ``game``."""

    def __init__(self, game: QuadraticGame, owners: np.ndarray, columns: int) -> None:
        self.game, self.owners = game, owners
        # (d, columns): 1 where a column owns a feature.
        self.members = (owners[:, None] == np.arange(columns)).astype(np.float64)

    def values(self, design: Design) -> np.ndarray:
        return self.game.values(design) @ self.members

    def interactions(self, design: Design) -> np.ndarray:
        return self.members.T @ self.game.interactions(design) @ self.members

    def between(self, x: np.ndarray, fields: Sequence[np.ndarray]) -> np.ndarray:
        """Return the interaction values (m, G, G) of one row whose players are fields, sets of columns."""
        features = [np.flatnonzero(np.isin(self.owners, field)) for field in fields]
        return self.game.between(x, features)


class QuadraticGame(Game):
    """Outputs <w_c, x> + x' A_c x with A_c = sum_r v_rc h_r h_r' + diag(q_c).

    With the mean mu and the covariance S of the background,

        phi = (x - mu) * (w + A (x + mu)) - diag(A S),
        Phi_ij = A_ij ((x_i - mu_i) (x_j - mu_j) + S_ij) for i != j.
    """

    def __init__(self, outputs: Quadratic, background: Background) -> None:
        self.outputs, self.background = outputs, background
        units = outputs.squared()
        self.H = units.factors[0]
        self.V = units.weights
        self.W = outputs.linear + 2.0 * (self.V.T * units.biases[0]) @ self.H

    def values(self, design: Design) -> np.ndarray:
        n, d = design.shape
        phi = np.empty((self.V.shape[1], n, d))
        mean = self.background.mean
        for rows, block in design.blocks(rows_at_once(4 * (d + len(self.H)))):
            X = dense_rows(block)
            sums = X + mean
            differences = X - mean
            # The matrices of products need no projections.
            projections = None if self._matrices else sums @ self.H.T
            for c, out in enumerate(phi[:, rows]):
                self._products(c, sums, projections, out)
                out += self.W[c]
                out *= differences
                out -= self.spread[c]
        return phi

    def interactions(self, design: Design) -> np.ndarray:
        n, d = design.shape
        Phi = np.empty((self.V.shape[1], n, d, d))
        phi = self.values(design)
        differences = dense_rows(design) - self.background.mean
        products = differences[:, :, None] * differences[:, None, :] + self.background.covariances(np.eye(d))
        for c in range(len(Phi)):
            np.multiply(products, self.matrix(c), out=Phi[c])
        return with_totals(Phi, phi)

    def between(self, x: np.ndarray, fields: Sequence[np.ndarray]) -> np.ndarray:
        """Return the interaction values (m, G, G) of one row whose players are fields, sets of features."""
        whole = np.zeros((self.H.shape[1], len(fields)))
        for g, field in enumerate(fields):
            whole[field, g] = 1.0
        # The parts of the fields in the forms: <h_r, x - mu>, and its covariances over the background.
        here = (self.H * (x - self.background.mean)) @ whole
        Phi = np.empty((self.V.shape[1], len(fields), len(fields)))
        for g, indicator in enumerate(whole.T):
            spread = (self.background.covariances(self.H * indicator) * self.H) @ whole
            Phi[:, g] = self.V.T @ (here[:, [g]] * here + spread)
        phi = self.values(DenseDesign(x[None]))[:, 0]
        return with_totals(Phi, phi @ whole)

    def matrix(self, c: int) -> np.ndarray:
        """Return A_c (d, d)."""
        active = np.flatnonzero(self.V[:, c])
        return (self.H[active].T * self.V[active, c]) @ self.H[active] + np.diag(self.outputs.squares[c])

    @cached_property
    def _matrices(self) -> list[np.ndarray]:
        """All A_c, where products with them take less work than products with the units; else none."""
        k, d = self.H.shape
        if d > k:
            return []
        return [self.matrix(c) for c in range(self.V.shape[1])]

    @cached_property
    def spread(self) -> np.ndarray:
        """The diagonals of A_c S, shape (m, d)."""
        spread = self.V.T @ (self.H * self.background.covariances(self.H))
        return spread + self.outputs.squares * self.background.variances

    def _products(self, c: int, Z: np.ndarray, projections: np.ndarray | None, out: np.ndarray) -> None:
        """Write Z A_c (n, d), given the projections of Z on the units unless the matrices are at hand."""
        if projections is None:
            np.matmul(Z, self._matrices[c], out=out)
            return
        active = np.flatnonzero(self.V[:, c])  # under the norm l1 they are few
        np.matmul(projections[:, active] * self.V[active, c], self.H[active], out=out)
        if self.outputs.squares[c].any():
            out += Z * self.outputs.squares[c]


def with_totals(Phi: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Set the diagonals so that the rows of Phi (..., d, d) add up to phi (..., d)."""
    diagonal = np.arange(Phi.shape[-1])
    Phi[..., diagonal, diagonal] = 0.0
    Phi[..., diagonal, diagonal] = phi - Phi.sum(axis=-1)
    return Phi

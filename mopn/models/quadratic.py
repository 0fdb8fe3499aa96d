"""Outputs of degree 2 as quadratic functions, the basis of radii, Shapley values, effects, integers and QUBO."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mopn.data.designs import Design
from mopn.models.formula import Formula, Products


def is_quadratic(formula: Formula) -> bool:
    """Return whether no term has products of more than two features."""
    return all(isinstance(term, Products) and len(term.factors) * term.power <= 2 for term in formula.terms)


@dataclass(frozen=True)
class Quadratic:
    """Outputs c + W x + Q (x * x) + sum_s v_s (a_s + <p_s, x>) (b_s + <r_s, x>); factors p, r, biases a, b."""

    constant: np.ndarray
    linear: np.ndarray
    squares: np.ndarray
    factors: np.ndarray
    biases: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, formula: Formula) -> Quadratic:
        """Return the outputs of a formula that :func:`is_quadratic`; forms of degree 1 join the linear term."""
        constant, linear = formula.constant, formula.linear
        m, d = linear.shape
        factors, biases, weights = [np.zeros((2, 0, d))], [np.zeros((2, 0))], [np.zeros((0, m))]
        for term in formula.terms:
            assert isinstance(term, Products)
            U, b, V = term.factors, term.biases, term.weights
            if len(U) * term.power == 1:
                constant, linear = constant + b[0] @ V, linear + V.T @ U[0]
                continue
            factors.append(np.broadcast_to(U, (2, *U.shape[1:])))
            biases.append(np.broadcast_to(b, (2, len(V))))
            weights.append(V)
        parts = np.concatenate(factors, axis=1), np.concatenate(biases, axis=1), np.concatenate(weights)
        return cls(constant, linear, formula.squares, *parts)

    def forms(self, design: Design) -> np.ndarray:
        """Return a + <p, x> and b + <r, x> for rows x, shape (2, n, k)."""
        return np.stack([design.project(U) + b for U, b in zip(self.factors, self.biases, strict=True)])

    def matrix(self, t: np.ndarray) -> np.ndarray:
        """Return the symmetric A (d, d) of x'Ax in the outputs' combination with coefficients t (m,)."""
        weights, _, squares = self._combined(t)
        half = (self.factors[0].T * weights) @ self.factors[1]
        return 0.5 * (half + half.T) + np.diag(squares)

    def slopes(self, forms: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return the gradients (n, d) of the combination where forms have given values, without those of x * x."""
        weights, linear, _ = self._combined(t)
        first, second = forms * weights
        return first @ self.factors[1] + second @ self.factors[0] + linear

    def _combined(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return v, w and q of a combination, in which outputs of coefficient 0 may be infinite."""
        used = np.flatnonzero(t)
        return self.weights[:, used] @ t[used], t[used] @ self.linear[used], t[used] @ self.squares[used]

    def squared(self) -> Quadratic:
        """Return the same with both factors alike: z_1 z_2 = ((z_1 + z_2)^2 - (z_1 - z_2)^2) / 4."""
        (P, R), (a, b), V = self.factors, self.biases, self.weights
        same = (P == R).all(axis=1) & (a == b)
        H = np.vstack([P[same], (P + R)[~same], (P - R)[~same]])
        c = np.concatenate([a[same], (a + b)[~same], (a - b)[~same]])
        weights = np.vstack([V[same], 0.25 * V[~same], -0.25 * V[~same]])
        both = np.broadcast_to(H, (2, *H.shape)), np.broadcast_to(c, (2, len(c)))
        return replace(self, factors=both[0], biases=both[1], weights=weights)

    def formula(self) -> Formula:
        """Return a formula with one term, squares of forms, or with none: a single case for what is written."""
        of = self.squared()
        terms = (Products(of.weights, of.factors[:1], of.biases[:1], 2),) if len(of.weights) else ()
        return Formula(self.constant, self.linear, self.squares, terms)

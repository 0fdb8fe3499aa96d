"""Outputs of degree 2 as quadratic functions; weights of products of features, without the tensor of all weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mopn.data.designs import Design
from mopn.models.base import Predictor
from mopn.models.formula import Formula, Products
from mopn.models.multi_output import Model
from mopn.models.single_output import FactorizationModel


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
        factors = [np.zeros((2, 0, d))]
        biases = [np.zeros((2, 0))]
        weights = [np.zeros((0, m))]
        for term in formula.terms:
            assert isinstance(term, Products)
            U, b, V = term.factors, term.biases, term.weights
            if len(U) * term.power == 1:
                constant = constant + b[0] @ V
                linear = linear + V.T @ U[0]
                continue
            factors.append(np.broadcast_to(U, (2, *U.shape[1:])))
            biases.append(np.broadcast_to(b, (2, len(V))))
            weights.append(V)
        return cls(
            constant,
            linear,
            formula.squares,
            np.concatenate(factors, axis=1),
            np.concatenate(biases, axis=1),
            np.concatenate(weights),
        )

    def forms(self, design: Design) -> np.ndarray:
        """Return a + <p, x> and b + <r, x> for rows x, shape (2, n, k)."""
        return np.stack([design.project(U) + b for U, b in zip(self.factors, self.biases, strict=True)])

    def matrix(self, t: np.ndarray) -> np.ndarray:
        """Return the symmetric A (d, d) of x'Ax in the outputs' combination with coefficients t (m,)."""
        weights, _, squares = self._combined(t)
        half = (self.factors[0].T * weights) @ self.factors[1]
        return 0.5 * (half + half.T) + np.diag(squares)

    def slopes(self, forms: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return the gradients (n, d) of the combination where forms have given values, without the term in x * x."""
        weights, linear, _ = self._combined(t)
        first, second = forms * weights
        return first @ self.factors[1] + second @ self.factors[0] + linear

    def _combined(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return v, w and q of a combination, in which outputs of coefficient 0 may be infinite."""
        used = np.flatnonzero(t)
        t = t[used]
        return self.weights[:, used] @ t, t @ self.linear[used], t @ self.squares[used]

    def squared(self) -> Quadratic:
        """Return the same outputs with equal factors: z_1 z_2 = ((z_1 + z_2)^2 - (z_1 - z_2)^2) / 4."""
        P, R = self.factors
        a, b = self.biases
        V = self.weights
        same = (P == R).all(axis=1) & (a == b)
        H = np.vstack([P[same], (P + R)[~same], (P - R)[~same]])
        c = np.concatenate([a[same], (a + b)[~same], (a - b)[~same]])
        weights = np.vstack([V[same], 0.25 * V[~same], -0.25 * V[~same]])
        factors = np.broadcast_to(H, (2, *H.shape))
        biases = np.broadcast_to(c, (2, len(c)))
        return replace(self, factors=factors, biases=biases, weights=weights)

    def formula(self) -> Formula:
        """Return a formula with one term, squares of forms, or with none, so that exports have a single case."""
        outputs = self.squared()
        terms: tuple[Products, ...] = ()
        if len(outputs.weights):
            terms = (Products(outputs.weights, outputs.factors[:1], outputs.biases[:1], 2),)
        return Formula(self.constant, self.linear, self.squares, terms)


def units_and_weights(model: Predictor) -> tuple[FactorizationModel, np.ndarray]:
    """Return a model of one output and the weights V (k, m) of its units in the outputs."""
    if isinstance(model, Model):
        V = model.weights
        dummies = model.basis.shape[1] - model.n_features
        options: dict[str, Any] = {"degree": 2, "kernel": model.kernel, "dummies": dummies}
        return FactorizationModel(factors=model.basis[None], lams=np.ones(len(V)), **options), V
    if isinstance(model, FactorizationModel):
        return model, np.ones((1, 1))
    raise TypeError(
        "products of columns of a table have no weights, as columns are curves: use "
        "mopn.explain.strongest_interactions, mopn.explain.effects, or the network of the features, model.model"
    )


def products(model: FactorizationModel, V: np.ndarray, degree: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return C (R, m) and F_1, ..., F_t (R, d): features j1, ..., jt have the weights sum_r C_r prod_a F_a[r, ja]."""
    most = model.n_features if model.kernel == "all-subsets" else min(model.degree, model.n_features)
    if degree > most:
        raise ValueError(f"degree={degree}, but the model has interactions of at most {most} features")
    parts = _lifted_products(model, degree) if model.form == "lifted" else _direct_products(model, degree)
    coefficients = []
    factors: list[list[np.ndarray]] = []
    for of_units, units in parts:
        coefficients.append(of_units[:, None] * V)
        factors.append(units)
    if not factors:
        raise ValueError(f"degree={degree}: the model has no interactions of this number of features")
    return np.concatenate(coefficients), [np.vstack(stack) for stack in zip(*factors, strict=True)]


def _direct_products(model: FactorizationModel, degree: int) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Yield weights (k,) of units and their factors (k, d), one for each feature of a product, of a direct form."""
    assert model.lams is not None
    for m, P in zip(model.degrees(), model.factors, strict=True):
        gamma = P[:, : model.dummies]
        rest = P[:, model.dummies :]
        if model.kernel == "all-subsets":
            weights = model.lams
        elif model.kernel == "homogeneous":
            if degree > m or (degree < m and not model.dummies):
                continue
            # (sum of gamma + <p, x>)^m contains every order of the features.
            powers = gamma.sum(axis=1) ** (m - degree)
            weights = model.lams * math.comb(m, degree) * math.factorial(degree) * powers
        else:
            if model.theta is None and not 0 <= m - degree <= model.dummies:
                continue
            weights = model.lams * _theta_of_degree(model.theta_of(m), gamma, degree)
        yield weights, [rest for _ in range(degree)]


def _theta_of_degree(theta: np.ndarray, gamma: np.ndarray, degree: int) -> np.ndarray:
    """Return, for every unit, the weight of A^degree in sum_t theta_t A^t([gamma, p], [1, x])."""
    from mopn.compiled.kernels import theta_of_dummies  # needs numba, which loading and predicting do not

    total = np.zeros(len(gamma))
    # The elementary symmetric polynomials of gamma, from degree 0 on.
    symmetric = theta_of_dummies(gamma)[:, ::-1]
    for t, coefficient in enumerate(theta, start=1):
        if 0 <= t - degree < symmetric.shape[1]:
            total += coefficient * symmetric[:, t - degree]
    return total


def _lifted_products(model: FactorizationModel, degree: int) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Yield weights (k,) of units and their factors (k, d), one for each feature of a product, of a lifted form."""
    m, dummies = model.degree, model.dummies
    if degree < m and not dummies:
        return
    scale = 0.5 if model.kernel == "anova" else 1.0
    # All assignments of the features to factors; the other factors contribute their dummies.
    for places in itertools.permutations(range(m), degree):
        others = [t for t in range(m) if t not in places]
        weights = np.prod([model.factors[t][:, :dummies].sum(axis=1) for t in others], axis=0, initial=1.0)
        weights = np.broadcast_to(weights, model.factors.shape[1:2])
        yield scale * weights, [model.factors[t][:, dummies:] for t in places]

"""Formulas of degree 2 with squares of forms as their only units: a single case for what is written about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mopn.models.formula import Formula, Products

__all__ = ["quadratic_formula"]


def quadratic_formula(formula: Formula, purpose: str) -> Formula:
    """Return the same outputs with one term, sum_s v_s (b_s + <u_s, x>)^2, or with none.

    Forms of degree 1 become part of the linear term, and products of two forms are differences of squares:
    z_1 z_2 = ((z_1 + z_2)^2 - (z_1 - z_2)^2) / 4.

    Raises
    ------
    TypeError
        If the degree is higher; ``purpose`` says in the message what needs degree 2.
    """
    constant, linear = formula.constant, formula.linear
    m, d = linear.shape
    factors, biases, weights = [np.zeros((0, d))], [np.zeros(0)], [np.zeros((0, m))]
    for term in formula.terms:
        if not isinstance(term, Products) or len(term.factors) * term.power > 2:
            raise TypeError(f"{purpose} for models of degree 1 and 2 alone, and this model has a higher degree")
        U, b, V = term.factors, term.biases, term.weights
        if term.power == 2:
            factors += [U[0]]
            biases += [b[0]]
            weights += [V]
        elif len(U) == 2:
            factors += [U[0] + U[1], U[0] - U[1]]
            biases += [b[0] + b[1], b[0] - b[1]]
            weights += [0.25 * V, -0.25 * V]
        else:
            constant, linear = constant + b[0] @ V, linear + V.T @ U[0]
    squares = Products(np.vstack(weights), np.vstack(factors)[None], np.concatenate(biases)[None], 2)
    return replace(formula, constant=constant, linear=linear, terms=(squares,) if len(squares.weights) else ())

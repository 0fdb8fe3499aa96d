"""Exact Shapley values of outputs of any degree, in time polynomial in the number of features.

Owen's diagonal formula (Management Science, 1972): with the multilinear extension F(t) = E v(T) of a game v, where T
contains each feature j independently with probability t_j,

    phi_j = integral from 0 to 1 of the derivative of F in t_j along (t, ..., t).

The integrand is a polynomial of lower degree than the game, so Gauss-Legendre nodes integrate it without an error.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mopn.data.designs import DenseDesign, Design, rows_at_once
from mopn.data.validation import finite_numbers
from mopn.explain.games import Background, ColumnGame, Game, QuadraticGame, with_totals
from mopn.models.formula import dense_rows
from mopn.models.quadratic import Quadratic, is_quadratic
from mopn.models.single_output import FactorizationModel
from mopn.models.table import TableModel


class _HigherDegreeGame(Game):
    """One output of any degree; its values are averages over the values against each row of the background."""

    def __init__(self, background: Background) -> None:
        self.background = background

    @abstractmethod
    def against(self, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return the Shapley values (n, d) of the rows of X against the rows of B, one by one."""

    def values(self, design: Design) -> np.ndarray:
        return self._average(dense_rows(design), self.against)

    def interactions(self, design: Design) -> np.ndarray:
        X = dense_rows(design)
        columns = [self._average(X, partial(self._half_gain, j)) for j in range(X.shape[1])]
        return with_totals(np.stack(columns, axis=-1), self.values(design))

    def _average(self, X: np.ndarray, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the mean (1, n, d) of a function of X and a background row, over the background."""
        total = np.zeros_like(X)
        for b in self.background.rows:
            total += function(X, np.broadcast_to(b, X.shape))
        return total[None] / self.background.n

    def _half_gain(self, j: int, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return half the gain if j is in every coalition rather than in none (Grabisch and Roubens, 1999)."""
        with_j = B.copy()
        without_j = X.copy()
        with_j[:, j] = X[:, j]
        without_j[:, j] = B[:, j]
        return 0.5 * (self.against(X, with_j) - self.against(without_j, B))


class Multilinear(_HigherDegreeGame):
    """An output that is affine in every feature, by its gradient: the multilinear extension is the output itself."""

    def __init__(self, gradient: Callable[[np.ndarray], np.ndarray], degree: int, background: Background) -> None:
        super().__init__(background)
        self.gradient, self.degree = gradient, degree

    def against(self, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        D = X - B
        return D * sum(weight * self.gradient(B + t * D) for t, weight in _nodes(self.degree))


class PowersOfForms(NamedTuple):
    """The outputs sum_s lambda_s (gamma_s + <p_s, x>)^degree, for P (k, d)."""

    degree: int
    lams: np.ndarray
    gamma: np.ndarray
    P: np.ndarray


class Powers(_HigherDegreeGame):
    """<w, x> and powers of linear forms, whose multilinear extension is a moment of a sum of independent variables.

    With delta_j = p_j (x_j - b_j) and S = gamma + <p, b> + sum_j B_j delta_j for Bernoulli variables B_j of mean t, the
    derivative in t_j is E (S_{-j} + delta_j)^m - E S_{-j}^m, where S_{-j} leaves j out. Its moments follow from
    cumulants, which add up over the features.
    """

    def __init__(self, parts: Sequence[PowersOfForms], w: np.ndarray, background: Background) -> None:
        super().__init__(background)
        self.parts, self.w = parts, w

    def against(self, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        out = (X - B) * self.w
        for part in self.parts:
            step = rows_at_once(part.P.size)
            for first in range(0, len(X), step):
                rows = slice(first, first + step)
                out[rows] += _values_of_powers(part, X[rows], B[rows])
        return out


def _values_of_powers(part: PowersOfForms, X: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the Shapley values (n, d) of a sum of powers, for rows against rows."""
    m = part.degree
    deltas = (X - B)[:, None, :] * part.P
    start = (part.gamma + B @ part.P.T)[:, :, None]
    powers = [deltas**i for i in range(1, m + 1)]
    total = np.zeros_like(deltas)
    for t, weight in _nodes(m):
        # The cumulants of S_{-j}, for all j at once.
        cumulants = []
        for factor, power in zip(_bernoulli_cumulants(t, m), powers, strict=True):
            without_j = power.sum(axis=2, keepdims=True) - power
            cumulants.append(factor * without_j)
        cumulants[0] += start
        moments = _moments(cumulants[: m - 1])
        total += weight * sum(math.comb(m, i) * powers[i - 1] * moments[m - i] for i in range(1, m + 1))
    return np.einsum("s,isj->ij", part.lams, total)


def _moments(cumulants: list[np.ndarray]) -> list[np.ndarray | float]:
    """Return the moments, from order 0 on, of a variable of given cumulants, from order 1 on."""
    moments: list[np.ndarray | float] = [1.0]
    for order in range(1, len(cumulants) + 1):
        terms = (math.comb(order - 1, i - 1) * cumulants[i - 1] * moments[order - i] for i in range(1, order + 1))
        moments.append(sum(terms))
    return moments


def _bernoulli_cumulants(t: float, most: int) -> list[float]:
    """Return the cumulants 1, ..., ``most`` of a variable that is 1 with probability t, else 0: all moments are t."""
    found: list[float] = []
    for order in range(1, most + 1):
        found.append(t - t * sum(math.comb(order - 1, i - 1) * found[i - 1] for i in range(1, order)))
    return found


def _nodes(degree: int) -> list[tuple[float, float]]:
    """Return nodes and weights on [0, 1] that integrate polynomials of degree below ``degree`` exactly."""
    nodes, weights = np.polynomial.legendre.leggauss((degree + 1) // 2)
    # From the interval [-1, 1] to [0, 1].
    nodes = 0.5 * (nodes + 1.0)
    weights = 0.5 * weights
    return list(zip(nodes.tolist(), weights.tolist(), strict=True))


def background_rows(model: Any, background: Any, design: Design) -> Background:
    """Return the rows that a design's rows are compared with, by default themselves."""
    if background is None:
        if design.shape[0] == 1:
            raise ValueError("X has a single row, which cannot be compared with itself: give a background")
        return Background(design)
    if model.encoding is None and not sparse.issparse(background):
        finite_numbers(background, "background")
    return Background(model.design(background, "background"))


def model_game(model: Any, background: Background) -> Game:
    """Return the games of the outputs; the players are features, or the columns of a table."""
    if isinstance(model, TableModel):
        of_features = QuadraticGame(Quadratic.of(model.formula()), background)
        return ColumnGame(of_features, model.encoding.owners, model.n_features)
    formula = model.formula()
    if is_quadratic(formula):
        return QuadraticGame(Quadratic.of(formula), background)
    direct = _as_direct(model) if model.form == "lifted" else model
    assert direct.lams is not None
    if direct.kernel == "homogeneous":
        parts = []
        for degree, P in zip(direct.degrees(), direct.factors, strict=True):
            gamma = P[:, : direct.dummies].sum(axis=1)
            parts.append(PowersOfForms(degree, direct.lams, gamma, P[:, direct.dummies :]))
        w = np.zeros(direct.n_features) if direct.w is None else direct.w
        return Powers(parts, w, background)
    # No product has a feature twice.
    degree = direct.n_features if direct.kernel == "all-subsets" else min(direct.degree, direct.n_features)
    return Multilinear(partial(_output_gradient, direct), degree, background)


def _output_gradient(model: FactorizationModel, X: np.ndarray) -> np.ndarray:
    """Return the gradients (n, d) of the output of a direct form at the rows of X."""
    from mopn.core.factor_kernels import make_factor_kernel  # needs numba, which degree 2 does not

    assert model.lams is not None
    ones = np.ones(len(X))
    augmented = np.hstack([np.ones((len(X), model.dummies)), X])
    total = np.zeros_like(augmented)
    for degree, P in zip(model.degrees(), model.factors, strict=True):
        # Kernels are symmetric: rows and units change places.
        kernel = make_factor_kernel(model.kernel, degree, model.theta)
        total += kernel.gradient(DenseDesign(np.ascontiguousarray(P)), augmented, ones, model.lams)
    gradient = total[:, model.dummies :]
    return gradient if model.w is None else gradient + model.w


def _as_direct(model: FactorizationModel) -> FactorizationModel:
    """Return a lifted model in the direct form, by polarisation: a product of forms is a sum of their powers.

    prod_t a_t = sum over signs of (prod_t s_t) (a_1 + s_2 a_2 + ... + s_m a_m)^m / (2^(m - 1) m!).
    """
    m = model.degree
    signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=m - 1)])
    P = np.einsum("et,trj->erj", signs, model.factors).reshape(-1, model.factors.shape[2])
    lams = np.repeat(signs.prod(axis=1) / (2 ** (m - 1) * math.factorial(m)), model.factors.shape[1])
    return replace(model, form="direct", factors=P[None], lams=lams)

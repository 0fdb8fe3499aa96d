"""Effects of columns and of pairs of columns in a model of tables: its functional ANOVA, exactly.

The outputs are of degree 2 in features that belong to one column each, so they are a constant, functions of single
columns, and functions of pairs of columns. These are unique if each has mean 0 over each of its columns, with the
distributions of a background: then no pair effect holds a part that a main effect can say.
"""

from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mopn.data.cells import CATEGORIES, NUMBERS
from mopn.data.values import to_host
from mopn.models.base import Fitted, fitted_model
from mopn.models.quadratic import Quadratic
from mopn.models.table import TableModel
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import quiet
from mopn.solvers.tools.display import Displayed
from mopn.tables.columns import CategoryColumn, hats_among
from mopn.tables.distribution import category_shares
from mopn.tables.encoding import TableEncoding
from mopn.tables.functions import KNOTS, fading_of_curves
from mopn.tables.reading import Table, read_table

# Values of each column in a background without rows: the sizes of effects are then exact to 1 %.
_VALUES_PER_COLUMN = 1000


class EffectSize(NamedTuple):
    """A column or pair of columns, and the standard deviation of its effect on the output, or on all outputs (m,)."""

    columns: tuple[str, ...]
    deviation: Any


class Effects(Displayed):
    """Effects of single columns and of pairs of columns on the outputs of a model, from :func:`effects`.

    The outputs of a row are ``constant``, plus :meth:`main` of every column, plus :meth:`pair` of every two columns.
    All are arrays with the outputs last, or without this axis if there is one output.

    Attributes
    ----------
    model : TableModel
    background : Table
        The values of each column, in the order of the training data.
    constant : float or ndarray of shape (m,)
        The mean output over all combinations of the columns' values in the background.
    """

    @quiet()
    def __init__(self, model: TableModel, X: Any) -> None:
        self.model, encoding = model, model.encoding
        self.background = _typical_values(encoding) if X is None else encoding.arranged(X)
        encoding.warn_of_unknown(self.background)
        self._columns = [
            _Column(encoding.of_column(j), self.background.columns[j], self.background.kinds[j])
            for j in range(len(encoding.columns))
        ]
        self._members = [np.flatnonzero(encoding.owners == j) for j in range(len(self._columns))]
        constant, W, self._H, biases, self._V = _outputs_as_squares(model)
        mean = np.zeros(encoding.n_features)
        for column, members in zip(self._columns, self._members, strict=True):
            mean[members] = column.mean
        # (bias + <h, z>)^2 = at_mean^2 + 2 at_mean <h, z - mean> + <h, z - mean>^2
        at_mean = biases + self._H @ mean
        self._linear = W + 2.0 * (self._V.T * at_mean) @ self._H
        self._covariances = [
            self._H[:, members] @ column.covariance @ self._H[:, members].T
            for column, members in zip(self._columns, self._members, strict=True)
        ]
        squares = sum((C.diagonal() for C in self._covariances), at_mean**2)
        self.constant = _without_single_axis(constant + W @ mean + squares @ self._V)

    def _entries(self) -> dict[str, str]:
        largest = [f"{' × '.join(size.columns)}: {np.linalg.norm(size.deviation):.3g}" for size in self.sizes()[:3]]
        return {
            "columns": shown(list(self.model.encoding.columns)),
            "constant": shown(np.round(self.constant, 6).tolist()),
            "largest": f"[{', '.join(largest)}]",
        }

    @quiet()
    def main(self, column: str | int, values: Any = None) -> Any:
        """Return the effect (n, m), or (n,), of a column, averaged over all values of the other columns.

        ``column`` is a name or index. ``values`` (n,) are by default the background's; None and NaN are missing.
        """
        j = self.index(column)
        found = self._columns[j]
        members = self._members[j]
        Z = found.features(values)
        s = found.project(self._H[:, members], Z)
        linear = found.project(self._linear[:, members], Z)
        return _without_single_axis(linear + (s * s - self._covariances[j].diagonal()) @ self._V)

    @quiet()
    def pair(self, a: str | int, b: str | int, values_a: Any = None, values_b: Any = None) -> Any:
        """Return the effect (n, m), or (n,), of a pair of columns beyond the effects of both, row by row.

        ``values_a`` and ``values_b`` (n,) are by default the background's. ``ValueError`` for one column twice,
        or different numbers of values.
        """
        i = self.index(a)
        j = self.index(b)
        if i == j:
            raise ValueError(f"a and b must be two columns, got {self.model.encoding.columns[i]!r} twice")
        s = self._sums(i, values_a)
        t = self._sums(j, values_b)
        if len(s) != len(t):
            raise ValueError(f"a and b must have a value each for every row, got {len(s)} and {len(t)} values")
        return _without_single_axis(2.0 * (s * t) @ self._V)

    @quiet()
    def sizes(self) -> list[EffectSize]:
        """Return the standard deviations of all effects, the largest first.

        They are over all combinations of the columns' values in the background, where effects are uncorrelated: the
        squares of all deviations add up to the variance of the output. With several outputs, effects are ordered by
        the length of their deviations (m,). Effects of 0 are left out.
        """
        names = self.model.encoding.columns
        count = len(self._columns)
        found = []
        for j in range(count):
            main = np.atleast_2d(self.main(j).T)
            found.append(EffectSize((names[j],), np.sqrt(np.mean(main**2, axis=1))))

        C = np.reshape(self._covariances, (count, -1))
        # The mean of (2 sum_r v_r s_r t_r)^2 for independent s and t.
        squares = np.array([4.0 * (C * np.outer(v, v).ravel()) @ C.T for v in self._V.T])
        deviations = np.sqrt(np.maximum(squares, 0.0))
        for i, j in combinations(range(count), 2):
            found.append(EffectSize((names[i], names[j]), deviations[:, i, j]))

        found.sort(key=lambda item: -float(np.linalg.norm(item.deviation)))
        return [
            EffectSize(item.columns, _without_single_axis(item.deviation)) for item in found if item.deviation.any()
        ]

    def index(self, column: str | int) -> int:
        """Return the index of a column that is given by name or index."""
        names = self.model.encoding.columns
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and 0 <= column < len(names):
            return int(column)
        advice = "; plot_pair draws two columns" if isinstance(column, list | tuple) and len(column) == 2 else ""
        raise ValueError(f"column must be the name or the index of one of {list(names)}, got {shown(column)}{advice}")

    def _sums(self, j: int, values: Any) -> np.ndarray:
        """Return the contribution of the column to the units, <h, z - mean> over its features, shape (n, k)."""
        column = self._columns[j]
        return column.project(self._H[:, self._members[j]], column.features(values))


@quiet()
def effects(model: Fitted, X: Any = None) -> Effects:
    """Return the effects of single columns and of pairs of columns on the outputs of a model of tables.

    With the features z of the columns, f(z) = c + <w, z> + z'Az has no products of three columns. So it is exactly a
    constant, a function of each column, and a function of each pair of columns.
    :func:`mopn.plotting.plot_model` draws all of them.

    Parameters
    ----------
    model : TableModel or fitted estimator of tables
    X : DataFrame, array-like of shape (n, c), or dict, optional
        The background, such as the training data. It enters by the distribution of each column alone: effects are means
        over all combinations of values, whether or not they occur together. By default the distributions come from the
        encoding: quantiles of numbers that are not missing, and shares of categories.

    Returns
    -------
    Effects
        On outputs before any link. With a softmax they are effects on outputs minus their mean over the classes: a
        number that is added to all outputs changes no probability.

    Raises
    ------
    TypeError
        If it is not a model of tables.
    ValueError
        If X lacks the columns of the training data.

    Notes
    -----
    For the means mu and the covariance S of the features, which is zero between columns, the effect of column a is
    <(w + 2 A mu)_a, (z - mu)_a> + (z - mu)_a' A_aa (z - mu)_a - tr(A_aa S_aa), and the effect of the pair a, b is
    2 (z - mu)_a' A_ab (z - mu)_b. docs/mathematics.md derives both, and relates them to Shapley values. Effects with
    mean 0 over each column: Sobol (Mathematical Modelling and Computational Experiments, 1993), Hooker (KDD 2004).

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> table = {"size": np.tile([1.0, 2.0, 3.0], 20), "color": ["red"] * 30 + ["blue"] * 30}
    >>> y = table["size"] * np.repeat([1.0, -1.0], 30)
    >>> model = TableRegressor(strength=mopn.Ratio(1e-5)).fit(table, y)
    >>> found = mopn.explain.effects(model, table)
    >>> found.sizes()[0].columns
    ('color',)
    >>> found.pair("size", "color", [1.0, 3.0], ["red", "red"]).round(1)
    array([-1.,  1.])
    >>> total = found.constant + found.main("size") + found.main("color") + found.pair("size", "color")
    >>> bool(abs(total - model.predict(table)).max() < 1e-12)
    True
    """
    machine = fitted_model(model)
    if not isinstance(machine, TableModel):
        raise TypeError(
            "model must be a model of tables, or a fitted TableClassifier or TableRegressor, got "
            f"{type(model).__name__}; shap_values takes any model"
        )
    return Effects(machine, to_host(X))


def _typical_values(encoding: TableEncoding) -> Table:
    """Return values of the columns with the distributions of the training data, independently for each column."""
    u = (np.arange(_VALUES_PER_COLUMN) + 0.5) / _VALUES_PER_COLUMN
    columns: dict[int, np.ndarray] = {}
    kinds: dict[int, str] = {}
    training = encoding.training
    parts = zip(encoding.number_columns, encoding.number_kinds, encoding.numbers.parts, strict=True)
    size = float(fading_of_curves(np.ones(1), len(encoding.columns))[0])
    for place, (j, kind, (knots, functions)) in enumerate(parts):
        if training is None:
            columns[j] = _quantiles_by_functions(u, knots, functions, size)
        else:
            columns[j] = _quantiles(u, knots, training.below[place], training.up_to[place])
        kinds[j] = kind
    for j, column in zip(encoding.category_columns, encoding.categories, strict=True):
        columns[j] = _categories_by_share(u, column)
        kinds[j] = CATEGORIES
    indices = range(len(encoding.columns))
    values = tuple(columns[j] for j in indices)
    return Table(encoding.columns, values, tuple(kinds[j] for j in indices), len(u), named=True)


def _quantiles(u: np.ndarray, knots: np.ndarray, below: np.ndarray, up_to: np.ndarray) -> np.ndarray:
    """Return the numbers (len(u),) with the ranks u, between 0 and 1; linear between two knots."""
    ranks = np.column_stack([below, up_to]).ravel()
    return np.interp(u, ranks, np.repeat(knots, 2))


def _quantiles_by_functions(u: np.ndarray, knots: np.ndarray, functions: np.ndarray, size: float) -> np.ndarray:
    """Return the same for encodings without their distribution; their first cosine, of this size, has the ranks.

    The rank of a knot is the share of smaller values, plus half of the share of equal ones.
    """
    q, width = functions.shape
    if width > 1:  # the first curve is a cosine of the ranks
        ranks = np.arccos(np.clip(functions[:, 1] / (np.sqrt(2.0) * size), -1.0, 1.0)) / np.pi
    elif width and q == 2:  # the function is the indicator of the larger number, minus its mean
        ranks = 0.5 + 0.5 * functions[:, 0]
    else:
        ranks = (np.arange(q) + 0.5) / q

    # Columns with fewer knots have one at every number, but where many rows share a number.
    if q >= KNOTS and hats_among(functions).any():  # codes, with nothing between them
        return knots[np.searchsorted((ranks[1:] + ranks[:-1]) / 2.0, u)]
    if q >= KNOTS:
        return np.interp(u, ranks, knots)
    parts_below = [0.0]
    for rank in ranks.tolist():
        parts_below.append(2.0 * rank - parts_below[-1])
    return knots[np.searchsorted(parts_below[1:-1], u)]


def _categories_by_share(u: np.ndarray, column: CategoryColumn) -> np.ndarray:
    """Return categories (len(u),) in proportion to their shares in the training data."""
    texts: list[str | None] = [*column.categories, *column.rare[:1]]
    if column.missing:
        texts.append(None)
    places = np.searchsorted(np.cumsum(category_shares(column)), u).clip(max=len(texts) - 1)
    return np.array(texts, object)[places]


class _Column:
    """A column of the background: its values, and the mean and the covariance of its features."""

    def __init__(self, encoding: TableEncoding, values: np.ndarray, kind: str) -> None:
        self.encoding = encoding
        self.name = encoding.columns[0]
        self.table = Table(encoding.columns, (values,), (kind,), len(values), named=True)
        self.said = set(values.tolist()) if encoding.categories else set()  # the caller was warned of unknown ones
        Z = encoding.encode(self.table, said=self.said)
        self.mean = np.asarray(Z.mean(axis=0)).ravel()
        second_moments = Z.T @ Z / len(values)
        if sparse.issparse(second_moments):
            second_moments = second_moments.toarray()
        self.covariance = second_moments - np.outer(self.mean, self.mean)

    def features(self, values: Any = None) -> Any:
        """Return the features (n, d) of values, by default of the background's."""
        table = self.table if values is None else read_table({self.name: values}, "values")
        if table.kinds == (NUMBERS,):  # the axis of a plot: days, if the column holds dates
            table = replace(table, kinds=self.table.kinds)
        return self.encoding.encode(table, "values", said=self.said)

    def project(self, directions: np.ndarray, features: Any) -> np.ndarray:
        """Return the products (n, r) of features, less their means, with directions (r, d)."""
        products: np.ndarray = features @ directions.T - directions @ self.mean
        return products


def _outputs_as_squares(model: TableModel) -> tuple[np.ndarray, ...]:
    """Return c (m,), W (m, d), H (k, d), b (k,) and V (k, m) of outputs c + W z + sum_r v_r (b_r + <h_r, z>)^2."""
    outputs = Quadratic.of(model.formula()).squared()
    # The square of a feature is the square of a unit.
    squared = np.flatnonzero(outputs.squares.any(axis=0))
    H = np.vstack([np.eye(outputs.linear.shape[1])[squared], outputs.factors[0]])
    b = np.append(np.zeros(len(squared)), outputs.biases[0])
    constant = outputs.constant
    W = outputs.linear
    V = np.hstack([outputs.squares[:, squared], outputs.weights.T])
    if model.link == "softmax":
        constant = constant - constant.mean(axis=0)
        W = W - W.mean(axis=0)
        V = V - V.mean(axis=0)
    return constant, W, H, b, V.T


def _without_single_axis(values: Any) -> Any:
    """Return values with the outputs last, without this axis if there is one output."""
    return values if values.shape[-1] > 1 else values[..., 0]

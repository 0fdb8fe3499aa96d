"""Tables as features: the encoding that a pipeline and the estimators of tables learn."""

import operator
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from mopn.data.chunked_rows import Chunks, LocalChunks
from mopn.data.row_blocks import RawBlock, RowBlocks, named
from mopn.data.validation import check_sample_weight, check_weights, finite_numbers
from mopn.data.values import to_host
from mopn.solvers.tools.checks import Rule, check_nonnegative, check_options, count, shown
from mopn.solvers.tools.decorators import quiet
from mopn.tables.effects import Effects, Response
from mopn.tables.encoding import TableEncoding
from mopn.tables.learning import encoding_of, learn_encoding
from mopn.tables.reading import Table, read_table, row_of
from mopn.tables.summaries import TableSummary, summarise


def _names(columns: Any) -> list[Any]:
    if isinstance(columns, str | bytes):
        raise TypeError
    names = list(columns)
    if not all(isinstance(name, str | Integral) and not isinstance(name, bool) for name in names):
        raise TypeError
    return names


_CATEGORICAL = Rule("a list of names and indices of columns, also for a single one", _names)


class TableReader(BaseEstimator):
    """Base class of the estimators of tables, which reads and checks tables and learns their encoding."""

    encoding_: TableEncoding
    """The features of each column. Printed, it has a line for every column, with suspicious entries."""
    n_features_in_: int
    """Number of columns."""
    feature_names_in_: np.ndarray
    """Names of the columns, if they have some."""

    curves: int | None
    smoothness: float
    categorical_features: Collection[str | int]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def _read(self, X: Any, *, reset: bool) -> Table:
        if isinstance(X, RowBlocks):
            raise TypeError("X is in blocks of rows, which fit takes; call this with each of them")
        # Read as a table first: its messages about odd frames, such as two columns of one name, say more.
        table = read_table(X if is_named(X) else to_host(X))
        if reset and not table.n and table.columns:
            raise ValueError("Found array with 0 sample(s): X has no rows; give at least one")
        if not is_named(X):
            known = getattr(self, "feature_names_in_", ())  # in any order
            if reset or not (table.named and sorted(map(str, table.names)) == sorted(map(str, known))):
                validate_data(self, X, skip_check_array=True, reset=reset)
        elif reset:
            self.feature_names_in_ = np.array(table.names, object)
        if reset:
            self.n_features_in_ = len(table.names)
        return table

    def _row(self, X: Any, encoding: TableEncoding) -> Any:
        """Return a single row as a dictionary, all else as it is; scikit-learn warns where a list lacks the names."""
        row = row_of(X, encoding.columns, named=encoding.named)
        if row is not X and isinstance(X, list | tuple):
            validate_data(self, [list(row)], skip_check_array=True, reset=False)
        return row

    def _learn(
        self, table: Table, weights: np.ndarray | None, y: np.ndarray | None = None, *, is_labels: bool = False
    ) -> None:
        self.encoding_ = learn_encoding(
            table,
            weights,
            y,
            is_labels=is_labels,
            curves=self.curves,
            smoothness=self.smoothness,
            categorical_features=self._checked_categories(),
        )

    def _learn_of_row_blocks(self, X: RowBlocks, response: Response | None = None) -> None:
        """Learn the encoding, and the names of the columns, from blocks whose X are tables."""
        summary = self._learn_in_blocks(LocalChunks(X), response)
        self.n_features_in_ = len(summary.names)
        self.__dict__.pop("feature_names_in_", None)
        if summary.named:
            self.feature_names_in_ = np.array(summary.names, object)

    def _learn_in_blocks(self, tables: Chunks, response: Response | None = None) -> TableSummary:
        """Learn the encoding in a pass over tables, or two if there are targets, and return the summary of these."""
        task = partial(named, function=partial(_summary, categorical_features=self._checked_categories()))
        summary: TableSummary = tables.reduce(task, operator.add)
        if not summary.n:
            raise ValueError("sample_weight is zero for all samples; at least one must be positive")

        def effects_of(task: Any) -> Effects:
            effects: Effects = tables.reduce(partial(named, function=task), operator.add)
            return effects

        self.encoding_ = encoding_of(
            summary, curves=self.curves, smoothness=self.smoothness, response=response, effects_of=effects_of
        )
        return summary

    def _checked_categories(self) -> list[str | int]:
        check_options(self, curves=count(0).or_none(), smoothness=check_nonnegative)
        return _CATEGORICAL(self.categorical_features, "categorical_features")


def _summary(block: RawBlock, categorical_features: Collection[str | int]) -> TableSummary:
    return summarise(block.X, check_weights(block.sample_weight, block.X.n), categorical_features).sampled()


def features_of(block: RawBlock, encoding: TableEncoding) -> RawBlock:
    """Return a block with the features of its table."""
    return named(block, lambda block: block._replace(X=encoding.encode(block.X, training=True)))


def is_named(X: Any) -> bool:
    """Whether X is made of dictionaries or records, whose columns are known by name alone."""
    if getattr(getattr(X, "dtype", None), "names", None):
        return True
    return isinstance(X, Mapping) or (isinstance(X, Sequence) and len(X) > 0 and isinstance(X[0], Mapping))


class TableEncoder(TransformerMixin, TableReader):
    """The features of a table: smooth functions of numbers, indicators of categories and of missing values.

    A column of numbers becomes its standardised self and ``sqrt(2) cos(pi k u) / k^smoothness`` for k = 1, 2, ..., of
    its rank u in [0, 1], interpolated between knots and constant beyond the outer ones; where a number is
    missing these are 0, and an indicator is 1. Two values become one feature, and a constant none. A column of texts,
    booleans or categories becomes an indicator of each category, rare ones together; a category that is unknown has
    their means. Dates are numbers, days since 1970, and so are texts if all are plain numbers or signs of missing ones,
    such as "?" and "".

    Parameters
    ----------
    curves : int or None, default None
        Largest number of curves of a column of numbers. None means 8, and finer functions where y depends on them:
        up to 32 curves, or hats, one for each whole number that at least 48 rows share. Finer functions fade in where
        each explains 0.2 % of the variance of y, beyond the 8 and beyond chance; hats fade in from 24 rows on.
    smoothness : float, default 1.0
        Larger values give smoother effects: the k-th curve is scaled by 1 / k^smoothness.
    categorical_features : collection of str or int, default ()
        Names or indices of columns whose numbers, or texts of numbers, are codes of categories; a list also of one.

    See Also
    --------
    TableClassifier, TableRegressor : Networks of these features.

    Notes
    -----
    The cosines are the eigenfunctions of the squared slope on [0, 1] (Wahba, Spline Models for Observational Data,
    1990), so that a penalty on the weights of a linear model, or of a unit, asks for smooth functions.

    Examples
    --------
    >>> from mopn.estimators import TableEncoder
    >>> table = {"size": [1.0, 2.0, None, 4.0] * 2, "color": ["red", "green", "blue", "red"] * 2}
    >>> encoder = TableEncoder(curves=1).fit(table)
    >>> encoder.get_feature_names_out().tolist()[:4]
    ['size', 'size, curve 1', 'size is missing', 'color = blue']
    >>> encoder.transform({"size": 9.0, "color": "red"}).round(2)  # 9 counts as 4
    array([[ 1.34, -1.22,  0.  ,  0.  ,  0.  ,  1.  ]])
    """

    def __init__(
        self, *, curves: int | None = None, smoothness: float = 1.0, categorical_features: Collection[str | int] = ()
    ) -> None:
        self.curves = curves
        self.smoothness = smoothness
        self.categorical_features = categorical_features

    @quiet()
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn knots, categories and which columns have missing values.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, c), dict, or RowBlocks of these
        y : array-like of shape (n,) or (n, m), optional
            Targets, which decide over finer functions; without them, or in blocks, there are none. Integers, booleans
            and texts are labels, as for :func:`sklearn.utils.multiclass.type_of_target`.
        sample_weight : array-like of shape (n,), optional
            A weight of 2 equals a repeated row.

        Returns
        -------
        self
            The fitted encoder.

        Raises
        ------
        ValueError, TypeError
            If X is sparse or no table, a column has too many categories, or no column varies.

        Warns
        -----
        UserWarning
            Once, of all columns that are probably not meant as they came: dates, times and quantities as texts;
            different values that become one number; names and numbers of rows; no value at all.
        """
        if isinstance(X, RowBlocks):
            self._learn_of_row_blocks(X.read_by(read_table).with_targets(None, sample_weight))
        else:
            table = self._read(X, reset=True)
            weights = check_sample_weight(sample_weight, table.n)
            if y is None:
                self._learn(table, weights)
            else:
                y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
                check_consistent_length(y, np.empty(table.n))
                is_labels = type_of_target(y) in ("binary", "multiclass")
                self._learn(table, weights, y if is_labels else finite_numbers(y, "y"), is_labels=is_labels)
        return self

    @quiet()
    def transform(self, X: Any) -> Any:
        """Return the features.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, c), or dict
            Columns of dictionaries are taken by name.

        Returns
        -------
        ndarray or CSR matrix of shape (n, d)
            Sparse if there are many categories.

        Warns
        -----
        UserWarning
            For categories that the training data did not have: the numbers of rows and of new values.
        """
        check_is_fitted(self)
        return self.encoding_.encode(self._read(self._row(X, self.encoding_), reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names (d,) of the features.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the columns, as in the training data; default these.

        Raises
        ------
        ValueError
            If they are others, or of another number.
        """
        check_is_fitted(self)
        columns = list(self.encoding_.columns)
        given = columns if input_features is None else [str(name) for name in input_features]
        if len(given) != len(columns) or (self.encoding_.named and given != columns):
            raise ValueError(f"input_features must be the columns of the training data, {columns}, got {shown(given)}")
        return self.encoding_.feature_names.astype(object)

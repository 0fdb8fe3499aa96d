"""The encoding of a table: which columns it has, and the features of a network that each becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.cells import BOOLEANS, CATEGORIES, NOTHING, NUMBERS, TEXTS, as_given, truths
from mopn.data.rounding import exact_text, number_text
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import cached_property, warn_caller
from mopn.tables.columns import CategoryColumn, NumberColumns, hats_among
from mopn.tables.distribution import TrainingDistribution
from mopn.tables.reading import Table, read_table, row_of
from mopn.tables.report import Report
from mopn.tables.texts import numbers_of

# Indicators of categories up to which features are dense.
_MAX_DENSE_INDICATORS = 256
# Rows that are encoded at once: the features of a table are much larger than the rest.
_ROWS_AT_ONCE = 4096
# The most that a feature, of size 1, may change where its number is rounded; two days in a row change it by 1e-3.
_MAX_CHANGE_BY_ROUNDING = 2e-3


@dataclass(frozen=True, eq=False, repr=False)
class TableEncoding:
    """The encoding of a table of c columns: features of its numbers first, then of its categories."""

    columns: tuple[str, ...]  # the names of all columns, in the order of the training data
    named: bool  # whether the training data had these names; tables with names are then read by name
    number_columns: tuple[int, ...]  # dates among them
    number_kinds: tuple[str, ...]  # their kinds in the training data, as ``Table.kinds``
    numbers: NumberColumns
    category_columns: tuple[int, ...]
    categories: tuple[CategoryColumn, ...]
    report: Report | None = None  # the columns at a glance, which ``print`` and notebooks show; files do not have it
    training: TrainingDistribution | None = None  # files before format 4 do not have it

    def __repr__(self) -> str:
        return str(self.report or f"TableEncoding({len(self.columns)} columns, {self.n_features} features)")

    def _repr_html_(self) -> str:
        return f"<code>{self}</code>" if self.report is None else self.report._repr_html_()

    @cached_property
    def owners(self) -> np.ndarray:
        """The column of every feature, (d,)."""
        number_owners = np.array(self.number_columns, np.intp)[self.numbers.owners]
        widths = [len(column.means) for column in self.categories]
        return np.append(number_owners, np.repeat(np.array(self.category_columns, np.intp), widths))

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return len(self.owners)

    @cached_property
    def _is_sparse(self) -> bool:
        """Whether features are sparse: indicators of many categories."""
        return sum(len(column.means) for column in self.categories) > _MAX_DENSE_INDICATORS

    @cached_property
    def feature_names(self) -> np.ndarray:
        """Names of the features, (d,): "age", "age, curve 1", "age near 18", "age is missing", "city = Bern"."""
        names = []
        columns = zip(self.number_columns, self.number_kinds, self.numbers.parts, strict=True)
        for j, kind, (knots, functions) in columns:
            names += _names_of_functions(self.columns[j], kind, knots, functions)
        with_missing = np.array(self.number_columns, np.intp)[self.numbers.missing]
        names += [f"{self.columns[j]} is missing" for j in with_missing]
        for j, column in zip(self.category_columns, self.categories, strict=True):
            names += column.names(self.columns[j])
        return np.array(names, np.str_)

    def of_column(self, j: int) -> TableEncoding:
        """Return the encoding of a column alone, with its features in their order."""
        numbers = self.numbers
        i = [place for place, column in enumerate(self.number_columns) if column == j]
        places = [place for place, column in enumerate(self.category_columns) if column == j]
        return TableEncoding(
            columns=self.columns[j : j + 1],
            named=True,
            number_columns=tuple(0 for _ in i),
            number_kinds=tuple(self.number_kinds[place] for place in i),
            numbers=NumberColumns(numbers.knots[i], numbers.functions[i], numbers.widths[i], numbers.missing[i]),
            category_columns=tuple(0 for _ in places),
            categories=tuple(self.categories[place] for place in places),
        )

    def ordered(self, X: Any, name: str = "X", *, training: bool = False) -> Table:
        """Return a table with the columns of the training data in their order, each as it came; see :meth:`encode`."""
        table = read_table(row_of(X, self.columns, named=self.named), name)
        if not (table.n or training):
            raise ValueError(f"Found array with 0 sample(s): {name} has no rows; give at least one")
        order = self._order(table, name)
        columns = tuple(table.columns[j] for j in order)
        kinds = tuple(table.kinds[j] for j in order)
        exact = tuple(table.exact_of(j) for j in order)
        return Table(self.columns, columns, kinds, table.n, named=True, exact=exact)

    def arranged(self, X: Any, name: str = "X", *, training: bool = False) -> Table:
        """Return a table with the columns of the training data, as numbers and as categories; see :meth:`encode`."""
        table = self.ordered(X, name, training=training)
        columns = list(table.columns)
        kinds = list(table.kinds)

        for j, kind in zip(self.number_columns, self.number_kinds, strict=True):
            of = f"column {self.columns[j]!r} of {name}"
            columns[j] = _as_in_training(columns[j], kinds[j], kind, of, training=training)
            kinds[j] = kind

        for j in self.category_columns:
            if columns[j].dtype.kind == "f":  # a declared column of codes, or all values are missing
                columns[j] = category_texts(columns[j], kinds[j], table.exact_of(j))
                kinds[j] = CATEGORIES
        return Table(self.columns, tuple(columns), tuple(kinds), table.n, named=True)

    def as_given(self, table: Table) -> dict[str, np.ndarray]:
        """Return the columns of an arranged table in the types in which tables have them, such as dates."""
        columns = zip(table.columns, table.kinds, strict=True)
        return dict(zip(table.names, (as_given(x, kind) for x, kind in columns), strict=True))

    def encode(self, X: Any, name: str = "X", *, training: bool = False, said: Collection[str | None] = ()) -> Any:
        """Return the features (n, d) of a table, as an array, or a CSR matrix if there are many categories.

        A list or a Series is one row. Columns of a frame or a dictionary are taken by name, if the training data had
        names. A block of the training data (``training``) may have no rows. Its rows of weight 0 may have unknown
        categories, and words among numbers, which count as missing. Warns of categories that the training data did not
        have, except for the ones in ``said``; their features are the means.

        Raises ``ValueError`` if there is no row, or if columns are missing or unknown. It is also raised if a column
        holds categories in place of numbers, numbers in place of dates, or dates with a time zone in place of dates
        without one.
        """
        if not sparse.issparse(X):
            X = row_of(X, self.columns, named=self.named)
            plain = self._plain_row(X) if isinstance(X, Mapping) else self._plain_array(X)
            if plain is not None:
                return self.features(*plain)
        table = self.arranged(X, name, training=training)
        categories = self._codes(table)
        if not training:
            self._warn_of_unknown(table, categories, name, said)

        def features_of(rows: slice) -> Any:
            return self.features(self._numbers_of(table, rows), [codes[rows] for codes in categories])

        starts = range(0, max(table.n, 1), _ROWS_AT_ONCE)
        blocks = [slice(first, first + _ROWS_AT_ONCE) for first in starts]
        if self._is_sparse:
            return sparse.vstack([features_of(rows) for rows in blocks], "csr")
        out = np.empty((table.n, self.n_features))
        for rows in blocks:
            out[rows] = features_of(rows)
        return out

    def features(self, numbers: np.ndarray, codes: Sequence[np.ndarray]) -> Any:
        """Return the features of numbers (n, columns of numbers), and of codes (n,) of each column of categories."""
        features = self.numbers.encode(numbers)
        if not self.categories:
            return features
        if not self._is_sparse:
            indicators = [
                column.table.take(c, axis=0, mode="wrap") for column, c in zip(self.categories, codes, strict=True)
            ]
            return np.concatenate([features, *indicators], axis=1)
        stored = [column.sparse_table[c] for column, c in zip(self.categories, codes, strict=True)]
        return sparse.hstack([sparse.csr_matrix(features), *stored], "csr")

    def _plain_row(self, X: Mapping[str, Any]) -> tuple[np.ndarray, list[np.ndarray]] | None:
        """Return the numbers and codes of a row of Python's numbers, known texts and None; None for anything else."""
        if len(X) != len(self.columns) or not self._has_plain_numbers:
            return None
        columns = zip(self.category_columns, self.categories, strict=True)
        try:
            numbers = [X[self.columns[j]] for j in self.number_columns]
            codes = [column.known[X[self.columns[j]]] for j, column in columns]
            if not all(x is None or isinstance(x, float) or type(x) is int for x in numbers):
                return None
            row = np.array([numbers], np.float64)
        except (KeyError, TypeError, OverflowError):
            return None
        return None if np.isinf(row).any() else (row, [np.array([code]) for code in codes])

    def _plain_array(self, X: Any) -> tuple[np.ndarray, list[np.ndarray]] | None:
        """Return an array of numbers, if all columns are numbers; None for anything else."""
        if self.categories or not self._has_plain_numbers or type(X) is not np.ndarray or not len(X):
            return None
        if X.dtype.kind not in "fiu" or X.shape[1:] != (len(self.columns),) or np.isinf(X).any():
            return None
        return X.astype(np.float64, copy=False), []

    @cached_property
    def _has_plain_numbers(self) -> bool:
        """Whether columns of numbers held nothing else, such as dates."""
        return all(kind == NUMBERS for kind in self.number_kinds)

    def _numbers_of(self, table: Table, rows: slice) -> np.ndarray:
        """Return some rows of the columns of numbers."""
        numbers = np.empty((len(range(table.n)[rows]), len(self.number_columns)))
        for to, j in enumerate(self.number_columns):
            numbers[:, to] = table.columns[j][rows]
        return numbers

    def _order(self, table: Table, name: str) -> list[int]:
        """Return where each column is in a table."""
        if not (self.named and table.named):
            if len(table.columns) != len(self.columns):
                raise ValueError(
                    f"{name} has {len(table.columns)} features, but the training data had {len(self.columns)} columns"
                )
            return list(range(len(self.columns)))
        at = {column: i for i, column in enumerate(table.names)}
        missing = [column for column in self.columns if column not in at]
        unknown = [column for column in table.names if column not in set(self.columns)]
        if missing or unknown:
            faults = []
            if missing:
                faults.append(f"lacks the columns {missing}")
            if unknown:
                faults.append(f"has the columns {unknown}, which the training data did not have")
            raise ValueError(f"{name} {' and '.join(faults)}")
        return [at[column] for column in self.columns]

    def _codes(self, table: Table) -> list[np.ndarray]:
        """Return the codes (n,) of each column of categories of an arranged table."""
        columns = zip(self.category_columns, self.categories, strict=True)
        return [column.codes(table.columns[j]) for j, column in columns]

    def warn_of_unknown(self, table: Table, name: str = "X") -> None:
        """Warn once of all categories of an arranged table that the training data did not have."""
        self._warn_of_unknown(table, self._codes(table), name, ())

    def _warn_of_unknown(
        self, table: Table, categories: Sequence[np.ndarray], name: str, said: Collection[str | None]
    ) -> None:
        """Warn of categories without a feature, but not of missing values."""
        found = []
        for j, codes in zip(self.category_columns, categories, strict=True):
            unknown = Counter(value for value in table.columns[j][codes < 0] if value is not None and value not in said)
            if unknown:
                rows = _counted(unknown.total(), "row")
                values = _counted(len(unknown), "new value")
                example = shown(unknown.most_common(1)[0][0])
                found.append(f"column {self.columns[j]!r} of {name} has {rows} with {values}, such as {example}")
        if found:
            warn_caller(
                f"{'; '.join(found)}; values that the training data did not have count as the mean of the known "
                "categories"
            )

    def input_type(self, dtype: type) -> type:
        """Return the dtype in which numbers must be read for features of a dtype."""
        return np.float64 if self.needing_doubles(dtype) else dtype

    def needing_doubles(self, dtype: type) -> list[int]:
        """Return the columns of numbers whose digits would be lost in a dtype.

        Rounding moves a number within its segment by the precision, times its size divided by the segment's length.
        A function changes by the same fraction of its change over the segment.
        """
        numbers = self.numbers
        if not numbers.functions.size:
            return []
        knots = np.where(np.isfinite(numbers.knots), numbers.knots, 0.0)
        largest = np.maximum(np.abs(knots), np.abs(np.roll(knots, -1, axis=1)))
        flat_slopes, changes = numbers.segments
        slopes = flat_slopes.reshape(knots.shape)
        steps = np.abs(changes).max(axis=1).reshape(knots.shape)
        limits = np.finfo(dtype)
        with np.errstate(over="ignore"):
            lost = limits.eps / 2.0 * largest * slopes * steps

        is_finite = (np.abs(knots).max(axis=1) < limits.max) & (slopes.max(axis=1) < limits.max)
        is_fine = is_finite & (lost[:, :-1].max(axis=1, initial=0.0) <= _MAX_CHANGE_BY_ROUNDING)
        return [j for j, fine in zip(self.number_columns, is_fine, strict=True) if not fine]

    def rounded(self, dtype: type) -> TableEncoding:
        """Return the encoding with its knots rounded to a dtype; equal knots become one."""
        knots: list[np.ndarray] = []
        functions: list[np.ndarray] = []
        for t, f in self.numbers.parts:
            rounded: np.ndarray = t.astype(dtype)
            held, first = np.unique(rounded, return_index=True)
            knots.append(held.astype(np.float64))
            functions.append(f[first])
        rounded_numbers = NumberColumns.of(knots, functions, self.numbers.missing)
        return replace(self, numbers=rounded_numbers, training=None)


def _names_of_functions(name: str, kind: str, knots: np.ndarray, functions: np.ndarray) -> list[str]:
    """Return the names of the functions of a column of numbers: itself, its curves, and the hats of codes."""
    names = []
    for k, is_hat in enumerate(hats_among(functions).tolist()):
        if is_hat:
            knot = knots[np.flatnonzero(functions[:, k])]
            names.append(f"{name} near {number_text(knot[0]) if kind == NUMBERS else as_given(knot, kind)[0]}")
        else:
            names.append(f"{name}, curve {k}" if k else name)
    return names


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _as_in_training(values: np.ndarray, found: str, kind: str, of: str, *, training: bool) -> np.ndarray:
    """Return a column of numbers of a kind; another kind is refused."""
    if NOTHING in (found, kind):
        return np.full(len(values), np.nan)
    if found == kind:
        return values
    if kind == NUMBERS and found in (BOOLEANS, TEXTS, CATEGORIES):
        for read in (numbers_of, truths):
            numbers = read(values)
            if numbers is not None:
                return numbers
        if training:
            read_alone = (numbers_of([text]) for text in values)
            return np.array([np.nan if number is None else number[0] for number in read_alone])
    if values.dtype.kind != "f":
        text = next(value for value in values if numbers_of([value]) is None)
        raise ValueError(f"{of} holds {text!r}, but {kind} in the training data; a missing value is NaN or None")
    first = as_given(values[~np.isnan(values)][:1], found)[0]
    example = shown(first if found == NUMBERS else str(first))
    raise ValueError(f"{of} holds {found}, such as {example}, but {kind} in the training data")


def category_texts(values: np.ndarray, kind: str = NUMBERS, exact: np.ndarray | None = None) -> np.ndarray:
    """Return numbers as categories; numbers that lost digits are written as they were given."""
    if exact is not None and kind == NUMBERS:
        given = zip(exact.tolist(), values.tolist(), strict=True)
        return np.array([None if x != x else exact_text(cell) for cell, x in given], object)
    return np.array([None if x != x else number_text(x) for x in values.tolist()], object)

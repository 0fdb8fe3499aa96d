"""Doubts about columns: texts that are no categories, names of rows, no value at all; and the report of a table."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from mopn.data.cells import CATEGORIES, NUMBERS, TEXTS, as_given
from mopn.data.rounding import one_number
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import warn_caller
from mopn.tables.encoding import TableEncoding
from mopn.tables.report import Report
from mopn.tables.summaries import CategorySummary, Column, NumberSummary, TableSummary
from mopn.tables.texts import are_dates, are_values, are_written_numbers, numbers_of

# Categories that never raise a doubt: two of them are one feature, whatever they are.
_MAX_PLAIN_CATEGORIES = 2
# Rows, or categories, up to which a column may have a value of its own for each row by chance.
_MAX_ROWS_BY_CHANCE = 20
# Names of columns that count or identify rows.
_ROW_NAMES = re.compile(
    r"(unnamed: ?\d+|index|#|row|row[ _.]?(names?|num|number|no|nr))?|(.*[ _.]|row)?id", re.IGNORECASE
)
# Columns that the warning names.
_MAX_NAMED_COLUMNS = 5
# Categories of a column that the report shows.
_MAX_SHOWN_CATEGORIES = 3
# Fraction of the rows above which the other rows are few.
_NEARLY_ALL_ROWS = 0.98


class Doubt(NamedTuple):
    """Content of a column that is probably a mistake, with an example and a remedy."""

    what: str
    example: str
    advice: str
    warned: bool = True  # otherwise the report of the table alone has it


def warn_of_doubts(summary: TableSummary) -> None:
    """Warn once of all columns that are probably not meant as they came, or have no value."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, column in zip(summary.names, summary.columns, strict=True):
        doubt = _doubt(column, name, summary)
        if doubt is not None and doubt.warned:
            found.setdefault((doubt.what, doubt.advice), []).append((name, doubt.example))
    if found and not all(column.is_empty for column in summary.columns):
        doubts = [f"{what} in {_with_names(columns)}: {advice}" for (what, advice), columns in found.items()]
        warn_caller(f"X has {'; '.join(doubts)}")


def report_of(summary: TableSummary, encoding: TableEncoding) -> Report:
    """Return a line for each column of a table that was encoded."""
    widths = np.bincount(encoding.owners, minlength=len(summary.names))
    lines = []
    for name, column, kind, width in zip(summary.names, summary.columns, summary.kinds, widths, strict=True):
        distribution = column.quantiles if isinstance(column, NumberSummary) else column
        total = float(distribution.weights.sum()) + column.missing
        missing = column.missing / total if total else 1.0
        share = f"{missing:.1%}" if missing else ""

        doubt = _doubt(column, name, summary) or _weakness(distribution.weights, missing)
        note = "" if doubt is None else f"{doubt.what}: {doubt.advice}"

        is_declared = isinstance(column, CategorySummary) and column.declared
        shown_kind = CATEGORIES if is_declared else kind
        lines.append((name, shown_kind, share, _values(column, shown_kind), str(width), note))
    return Report(f"{summary.n:,} rows, {len(lines)} columns, {encoding.n_features} features", tuple(lines))


def _values(column: Column, kind: str) -> str:
    """Return the range of a column of numbers, or its most frequent categories."""
    if isinstance(column, NumberSummary):
        if column.is_empty:
            return ""
        ends = as_given(column.quantiles.values[[0, -1]], kind).tolist()
        low, high = (f"{x:.4g}" if isinstance(x, float) else str(x).removesuffix(" 00:00:00") for x in ends)
        return low if low == high else f"{low} to {high}"
    order = np.argsort(-column.weights, kind="stable")[:_MAX_SHOWN_CATEGORIES]
    shares = column.weights / column.weights.sum()
    frequent = ", ".join(f"{column.categories[i]} {shares[i]:.0%}" for i in order)
    return f"{len(column.categories):,} categories: {frequent}" if len(order) else ""


def _weakness(weights: np.ndarray, missing: float) -> Doubt | None:
    """Return why a column can say little."""
    if len(weights) == 1 and not missing:
        return Doubt("one value", "", "it has no effect")
    if missing > _NEARLY_ALL_ROWS:
        return Doubt("nearly all values missing", "", "its effect rests on few rows")
    if weights.max() > _NEARLY_ALL_ROWS * weights.sum():
        return Doubt("one value nearly always", "", "its effect rests on few rows")
    return None


def _doubt(column: Column, name: str, summary: TableSummary) -> Doubt | None:
    """Return the doubt about a column, an example and a remedy."""
    if column.is_empty:
        return Doubt("no value", "", "it has no effect, as a constant")
    if isinstance(column, NumberSummary):
        return _doubt_about_numbers(column, name, summary)
    return _doubt_about_categories(column, summary.n)


def _with_names(columns: list[tuple[str, str]]) -> str:
    """Return the names of columns as words, with an example of the first: "columns 'a', 'b' (such as ...)"."""
    noun = "columns" if len(columns) > 1 else "column"
    text = f"{noun} {', '.join(repr(name) for name, _ in columns[:_MAX_NAMED_COLUMNS])}"
    if len(columns) > _MAX_NAMED_COLUMNS:
        text += f" and {len(columns) - _MAX_NAMED_COLUMNS} more"
    example = columns[0][1]
    return f"{text} ({example})" if example else text


def _doubt_about_numbers(column: NumberSummary, name: str, summary: TableSummary) -> Doubt | None:
    """Return the doubt about a column of numbers."""
    pair = one_number(column.written)
    if pair is not None:
        kind = summary.kinds[summary.names.index(name)]
        return _doubt_about_merged(pair, kind, is_text=column.text is not None)
    if column.text is not None or column.signs:
        examples = []
        if column.text is not None:
            examples.append(f"such as {shown(column.text)}")
        if column.signs:
            examples.append(f"{' and '.join(map(repr, sorted(column.signs)))} as missing")
        advice = "they are read as numbers, unless categorical_features names it"
        return Doubt("texts that are numbers", ", ".join(examples), advice, warned=False)
    if _are_row_numbers(column, name, summary):
        values = column.quantiles.values
        return Doubt("what looks like row numbers", f"{values[0]:.0f} to {values[-1]:.0f}, all different", "drop it")
    return None


def _are_row_numbers(column: NumberSummary, name: str, summary: TableSummary) -> bool:
    """Whether a column has the name of a row number, and different integers in all rows."""
    if not (summary.named and _ROW_NAMES.fullmatch(name.strip())):
        return False
    if summary.n <= _MAX_ROWS_BY_CHANCE or column.missing:
        return False
    values = column.quantiles.values
    is_exact = not column.quantiles.error
    repeats = is_exact and len(values) < summary.n
    return not repeats and not (values != np.rint(values)).any()


def _doubt_about_merged(pair: tuple[str, ...], kind: str, *, is_text: bool) -> Doubt:
    """Return the doubt about a column in which two different values became one number."""
    a, b = map(repr, pair) if is_text else pair
    if kind in (NUMBERS, TEXTS):
        advice = "if they are names, categorical_features keeps them apart"
        return Doubt("different values that are the same number", f"{a} and {b}", advice)
    advice = "subtract a date or a duration, and give the differences as numbers"
    return Doubt("dates or durations that differ by less than a microsecond", f"{a} and {b}", advice)


def _doubt_about_categories(column: CategorySummary, n: int) -> Doubt | None:
    """Return the doubt about a column of categories; declared ones raise none."""
    categories = column.categories.tolist()
    if column.declared or len(categories) <= _MAX_PLAIN_CATEGORIES:
        return None
    if are_dates(categories):
        advice = "pandas.to_datetime makes them numbers"
        return Doubt("texts that are dates", f"such as {shown(categories[-1])}", advice)
    if are_written_numbers(categories):
        odd = next(text for text in categories if numbers_of([text]) is None)
        return Doubt(
            "texts that are mostly numbers", f"but {shown(odd)}", "remove other signs and take pandas.to_numeric"
        )
    if are_values(categories):
        advice = (
            "make numbers of them, without units or by pandas.to_datetime or to_timedelta; categorical_features keeps "
            "names as they are"
        )
        return Doubt("texts that look like quantities or times", f"such as {shown(categories[-1])}", advice)
    rows = n * float(column.weights.sum() / (column.weights.sum() + column.missing))
    if len(categories) > max(_MAX_ROWS_BY_CHANCE, 0.5 * rows):
        counts = f"{len(categories):,} categories in {round(rows):,} rows, such as {shown(categories[-1])}"
        return Doubt("a category of its own for most rows", counts, "drop it, or encode its words")
    return None

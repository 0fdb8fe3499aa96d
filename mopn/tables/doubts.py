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

# Two categories are one feature whatever they are.
_FEW = 2
# So many categories, of more than half of the rows, are names or sentences. Small tables have such columns by chance.
_MANY = 20
# Names of columns that count or identify rows.
_ROW_NAMES = re.compile(
    r"(unnamed: ?\d+|index|#|row|row[ _.]?(names?|num|number|no|nr))?|(.*[ _.]|row)?id", re.IGNORECASE
)
# Columns that are named in the warning, and categories in the report.
_NAMED, _SHOWN = 5, 3
# Part of the rows beyond which the others are few.
_NEARLY_ALL = 0.98


class Doubt(NamedTuple):
    """What a column holds that is probably not meant so, an example, and a remedy."""

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
        warn_caller("X has " + "; ".join(f"{what} in {_named(of)}: {advice}" for (what, advice), of in found.items()))


def report_of(summary: TableSummary, encoding: TableEncoding) -> Report:
    """Return a line for each column of a table that was encoded."""
    widths = np.bincount(encoding.owners, minlength=len(summary.names))
    lines = []
    for name, column, kind, width in zip(summary.names, summary.columns, summary.kinds, widths, strict=True):
        distribution = column.quantiles if isinstance(column, NumberSummary) else column
        total = float(distribution.weights.sum()) + column.missing
        missing = column.missing / total if total else 1.0
        doubt = _doubt(column, name, summary) or _weakness(distribution.weights, missing)
        note = "" if doubt is None else f"{doubt.what}: {doubt.advice}"
        kind = CATEGORIES if isinstance(column, CategorySummary) and column.declared else kind
        lines.append((name, kind, f"{missing:.1%}" if missing else "", _values(column, kind), str(width), note))
    return Report(f"{summary.n:,} rows, {len(lines)} columns, {encoding.n_features} features", tuple(lines))


def _values(column: Column, kind: str) -> str:
    """Return the range of a column of numbers, or its most frequent categories."""
    if isinstance(column, NumberSummary):
        if column.is_empty:
            return ""
        ends = as_given(column.quantiles.values[[0, -1]], kind).tolist()
        low, high = (f"{x:.4g}" if isinstance(x, float) else str(x).removesuffix(" 00:00:00") for x in ends)
        return low if low == high else f"{low} to {high}"
    order = np.argsort(-column.weights, kind="stable")[:_SHOWN]
    shares = column.weights / column.weights.sum()
    most = ", ".join(f"{column.categories[i]} {shares[i]:.0%}" for i in order)
    return f"{len(column.categories):,} categories: {most}" if len(order) else ""


def _weakness(weights: np.ndarray, missing: float) -> Doubt | None:
    """Return why a column can say little."""
    if len(weights) == 1 and not missing:
        return Doubt("one value", "", "it has no effect")
    if missing > _NEARLY_ALL:
        return Doubt("nearly all values missing", "", "its effect rests on few rows")
    if weights.max() > _NEARLY_ALL * weights.sum():
        return Doubt("one value nearly always", "", "its effect rests on few rows")
    return None


def _doubt(column: Column, name: str, summary: TableSummary) -> Doubt | None:
    """Return the doubt about a column, an example and a remedy."""
    if column.is_empty:
        return Doubt("no value", "", "it has no effect, as a constant")
    if isinstance(column, NumberSummary):
        return _of_numbers(column, name, summary)
    return _of_categories(column, summary.n)


def _named(columns: list[tuple[str, str]]) -> str:
    """Return the names of columns, with an example of the first."""
    names = ", ".join(repr(name) for name, _ in columns[:_NAMED])
    more = f" and {len(columns) - _NAMED} more" * (len(columns) > _NAMED)
    example = f" ({columns[0][1]})" * bool(columns[0][1])
    return f"column{'s' * (len(columns) > 1)} {names}{more}{example}"


def _of_numbers(column: NumberSummary, name: str, summary: TableSummary) -> Doubt | None:
    """Return the doubt about a column of numbers."""
    pair = one_number(column.written)
    if pair is not None:
        return _of_merged(pair, summary.kinds[summary.names.index(name)], is_text=column.text is not None)
    if column.text is not None or column.signs:
        examples = [] if column.text is None else [f"such as {shown(column.text)}"]
        examples += [f"{' and '.join(map(repr, sorted(column.signs)))} as missing"] if column.signs else []
        advice = "they are read as numbers, unless categorical_features names it"
        return Doubt("texts that are numbers", ", ".join(examples), advice, warned=False)
    values, exact = column.quantiles.values, not column.quantiles.error
    if not (summary.named and _ROW_NAMES.fullmatch(name.strip()) and summary.n > _MANY and not column.missing):
        return None
    if (exact and len(values) < summary.n) or (values != np.rint(values)).any():
        return None
    return Doubt("what looks like row numbers", f"{values[0]:.0f} to {values[-1]:.0f}, all different", "drop it")


def _of_merged(pair: tuple[str, ...], kind: str, *, is_text: bool) -> Doubt:
    """Return the doubt about a column in which two different values became one number."""
    a, b = map(repr, pair) if is_text else pair
    if kind in (NUMBERS, TEXTS):
        advice = "if they are names, categorical_features keeps them apart"
        return Doubt("different values that are the same number", f"{a} and {b}", advice)
    advice = "subtract a date or a duration, and give the differences as numbers"
    return Doubt("dates or durations that differ by less than a microsecond", f"{a} and {b}", advice)


def _of_categories(column: CategorySummary, n: int) -> Doubt | None:
    """Return the doubt about a column of categories; declared ones raise none."""
    categories = column.categories.tolist()
    if column.declared or len(categories) <= _FEW:
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
    if len(categories) > max(_MANY, 0.5 * rows):
        counts = f"{len(categories):,} categories in {round(rows):,} rows, such as {shown(categories[-1])}"
        return Doubt("a category of its own for most rows", counts, "drop it, or encode its words")
    return None

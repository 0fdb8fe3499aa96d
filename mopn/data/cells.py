"""Cells of tables as columns of numbers or texts.

docs/tables.md has the table of types and roles.
"""

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from mopn.data.rounding import INEXACT
from mopn.data.values import check_text, is_missing
from mopn.solvers.tools.checks import shown

# The kinds of columns, in the words of messages and of model files.
NUMBERS = "numbers"
TEXTS = "texts"
BOOLEANS = "booleans"
CATEGORIES = "categories"
DATES = "dates without a time zone"
ZONED_DATES = "dates with a time zone"
DURATIONS = "durations"
TIMES = "times of day"
NOTHING = "no value"
NUMBER_KINDS = frozenset({NUMBERS, DATES, ZONED_DATES, DURATIONS, TIMES, NOTHING})

# Booleans as other programs write them.
TRUTHS = {
    "False": False, "false": False, "FALSE": False, "0": False, "True": True, "true": True, "TRUE": True, "1": True,
}  # fmt: skip
# Types of a cell that holds several values.
_NESTED = (list, tuple, dict, set, np.ndarray)
_DAY = np.timedelta64(1, "D")
# Units of NumPy's dates that lose digits in microseconds.
_BELOW_MICROSECONDS = ("ns", "ps", "fs", "as")
# The zeros of dates and of durations, by NumPy's letters for them.
_ZEROS = {"M": np.datetime64(0, "us"), "m": np.timedelta64(0, "us")}


def as_cells(values: Any) -> np.ndarray:
    """Return values as an array, of Python objects unless they are in an array of NumPy."""
    if isinstance(values, np.ma.MaskedArray):
        is_time = values.dtype.kind in "mM"
        cells: np.ndarray = values.data.copy() if is_time else values.data.astype(object)
        cells[np.ma.getmaskarray(values)] = "NaT" if is_time else None
        return cells
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        values = [values]
    values = values.to_pylist() if hasattr(values, "to_pylist") else list(values)  # Arrow has scalars of its own
    are_rows = all(isinstance(value, (list, tuple, np.ndarray)) for value in values)
    if are_rows and len({len(value) for value in values}) == 1:
        array = np.empty((len(values), len(values[0])), object)
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                array[i, j] = value
        return array
    return _objects(values)


def _objects(values: Any) -> np.ndarray:
    """Return values as an array of objects of one dimension."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


class ReadColumn(NamedTuple):
    """A column that was read: numbers, NaN where they are missing, or texts, None where they are missing.

    ``exact`` has the values before reading, if some may be other numbers in floating point.
    """

    values: np.ndarray
    kind: str
    exact: np.ndarray | None = None


def read_column(values: np.ndarray, name: str) -> ReadColumn:
    """Return a column (n,) of any type; ``name`` is for messages."""
    if values.ndim != 1:
        raise ValueError(f"{name} must have one value a row, got shape {values.shape}; make several columns of it")
    letter = values.dtype.kind
    if letter in "fiu":
        numbers = values.astype(np.float64, copy=False)
        return as_column(numbers, NUMBERS, name, values if _loses_digits(values, numbers) else None)
    if letter in "mM":
        exact = values if np.datetime_data(values.dtype)[0] in _BELOW_MICROSECONDS else None
        return as_column(_days(values, name), DATES if letter == "M" else DURATIONS, name, exact)
    return _read_objects(values, name)


def _read_objects(values: np.ndarray, name: str) -> ReadColumn:
    """Return a column of Python objects, or of texts of NumPy."""
    cells = [None if cell is None or is_missing(cell) else cell for cell in values.tolist()]
    kind = kind_of([cell for cell in cells if cell is not None], name)
    if kind in (TEXTS, BOOLEANS):
        return as_column(as_texts(cells, name), kind, name)
    if kind == NUMBERS:
        return _read_numbers(cells, name)
    if kind == TIMES:
        seconds = np.array([np.nan if cell is None else _seconds(cell) for cell in cells])
        return as_column(seconds, kind, name)
    dates = _objects([None if cell is None else _without_zone(cell) for cell in cells])
    return as_column(_days(dates, name, "m" if kind == DURATIONS else "M"), kind, name)


def _read_numbers(cells: list[Any], name: str) -> ReadColumn:
    """Return a column of numbers of any type, None where they are missing."""
    try:
        numbers = np.array([np.nan if cell is None else cell for cell in cells], float)
    except OverflowError as error:
        raise ValueError(f"{name} has a number that is too large for floating point: {error}") from None
    return as_column(numbers, NUMBERS, name, _objects(cells) if _loses_digits(cells, numbers) else None)


def _loses_digits(values: Any, numbers: np.ndarray) -> bool:
    """Whether some of these values may be other numbers in double precision."""
    if isinstance(values, np.ndarray):
        if values.dtype.itemsize < 8 or values.dtype == np.float64:
            return False
        return values.dtype.kind == "f" or bool(np.abs(numbers).max(initial=0.0) >= INEXACT)
    types = set(map(type, values)) - {float, bool, type(None)}
    if all(issubclass(each, float | np.floating | np.bool_) and each is not np.longdouble for each in types):
        return False
    whole = all(issubclass(each, int | float | np.integer | np.bool_) for each in types)
    return not whole or bool(np.nanmax(np.abs(numbers), initial=0.0) >= INEXACT)


def as_column(values: np.ndarray, kind: str, name: str, exact: np.ndarray | None = None) -> ReadColumn:
    """Return a column of a kind, or of the kind ``NOTHING`` if all values are missing; infinity is refused."""
    is_number = values.dtype.kind == "f"
    if is_number and np.isinf(values).any():
        raise ValueError(f"{name} contains infinity; a number that is unknown is NaN")
    empty = np.isnan(values).all() if is_number else all(text is None for text in values)
    return ReadColumn(values, NOTHING if empty else kind, exact)


def as_texts(cells: Iterable[Any], name: str) -> np.ndarray:
    """Return the texts of categories, or None."""
    texts: list[str | None] = []
    known: dict[str, str] = {}  # each text is read once
    for cell in cells:
        if type(cell) is str:
            if cell not in known:
                known[cell] = _text(cell, name)
            texts.append(known[cell])
        elif cell is None or is_missing(cell):
            texts.append(None)
        else:
            texts.append(_text(cell, name))
    return np.array(texts, object)


def kind_of(present: Sequence[Any], name: str) -> str:
    """Return the kind of cells that are not missing; ``name`` is their column's, for messages."""
    if all(isinstance(cell, bool | np.bool_) for cell in present):
        return BOOLEANS if present else NUMBERS
    if all(isinstance(cell, (datetime.timedelta, np.timedelta64)) for cell in present):  # NumPy's are integers, too
        return DURATIONS
    if all(isinstance(cell, (Real, Decimal, np.bool_)) for cell in present):
        return NUMBERS
    if all(isinstance(cell, datetime.time) for cell in present):
        return TIMES
    if all(isinstance(cell, (datetime.date, np.datetime64)) or is_period(cell) for cell in present):
        zoned = {getattr(cell, "tzinfo", None) is not None for cell in present}
        if len(zoned) == 2:
            raise ValueError(f"{name} holds dates with and without a time zone; give all of them one, or none")
        return ZONED_DATES if True in zoned else DATES
    return TEXTS


def is_period(cell: Any) -> bool:
    return hasattr(cell, "to_timestamp") and hasattr(cell, "freq")


def _without_zone(cell: Any) -> Any:
    """Return a date in UTC without a zone, as NumPy reads it; of a period its start."""
    if is_period(cell):
        cell = cell.to_timestamp()
    if getattr(cell, "tzinfo", None) is None:
        return cell
    return cell.astimezone(datetime.UTC).replace(tzinfo=None)


def _seconds(time: datetime.time) -> float:
    return (time.hour * 60 + time.minute) * 60 + time.second + time.microsecond * 1e-6


def _days(values: np.ndarray, name: str, letter: str = "") -> np.ndarray:
    """Return dates as days since 1970, and durations as days; ``letter`` is NumPy's, M or m, by default of values."""
    letter = letter or values.dtype.kind
    try:
        exact = values.astype(f"{letter}8[us]")
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} has dates that NumPy does not read: {error}; give numbers") from None
    return np.where(np.isnat(exact), np.nan, (exact - _ZEROS[letter]) / _DAY)


def as_given(values: np.ndarray, kind: str) -> np.ndarray:
    """Return numbers as the dates, durations or times from which they were read; NaN as NaT or None."""
    if kind == TIMES:
        return np.array([None if np.isnan(x) else _time(x) for x in values], object)
    if kind not in (DATES, ZONED_DATES, DURATIONS):
        return values
    unit = "m8[us]" if kind == DURATIONS else "M8[us]"
    ticks = np.where(np.isnan(values), 0.0, np.round(values * (_DAY / np.timedelta64(1, "us"))))
    exact = ticks.astype(np.int64).view(unit)
    exact[np.isnan(values)] = "NaT"
    if kind != ZONED_DATES:
        return exact
    return np.array([None if date is None else date.replace(tzinfo=datetime.UTC) for date in exact.tolist()], object)


def _time(seconds: float) -> datetime.time:
    return (datetime.datetime.min + datetime.timedelta(seconds=float(seconds))).time()


def truths(texts: np.ndarray) -> np.ndarray | None:
    """Return texts of booleans as 0, 1 or NaN; None if a text is something else."""
    if not all(text is None or text in TRUTHS for text in texts):
        return None
    return np.array([np.nan if text is None else float(TRUTHS[text]) for text in texts])


def _text(cell: Any, name: str) -> str:
    """Return the text of a category; 3.0 is 3, as columns of integers become floats where one is missing."""
    if isinstance(cell, bytes):
        try:
            cell = cell.decode()
        except UnicodeDecodeError:
            cell = cell.decode("latin-1")
    if isinstance(cell, complex):
        raise TypeError(f"Complex data not supported: {name} holds {cell!r}")
    if isinstance(cell, _NESTED) or type(cell) is object:
        raise TypeError(
            f"{name} holds {shown(cell)}, an object of type {type(cell).__name__}; the argument must be a string or a "
            "number: make numbers, texts or several columns of it"
        )
    cell = cell.item() if isinstance(cell, np.generic) else cell
    whole = isinstance(cell, Real) and not isinstance(cell, bool) and cell == cell // 1
    text = str(int(cell)) if whole else str(cell)
    check_text(text, name)
    return text

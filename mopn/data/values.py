"""Values of any type as arrays, numbers, labels, and columns of numbers or texts: the same for every door of mopn.

docs/tables.md has the table of types and roles.
"""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mopn.data.rounding import INEXACT, nearest_equal
from mopn.solvers.tools.checks import shown

# -- arrays ------------------------------------------------------------------------------------------------------------


def to_host(values: Any) -> Any:
    """Return arrays of PyTorch and CuPy as arrays of NumPy; all else as it is."""
    library = type(values).__module__.partition(".")[0]
    if library == "torch" and hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    if library in ("cupy", "cupyx") and hasattr(values, "get"):
        return values.get()
    return values


def as_array(values: Any, name: str) -> np.ndarray:
    """Return values as an array; masked entries, sparse matrices and rows of several lengths are refused."""
    values = to_host(values)
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries, whose values are unknown; impute or drop them first")
    if sparse.issparse(values):
        raise TypeError(f"{name} must be dense, got a sparse matrix; convert it by {name}.toarray()")
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array: {error}") from None


def as_numbers(values: Any, name: str) -> np.ndarray:
    """Return values as bool, integers or floats, objects and strings as float64; no complex numbers or dates."""
    if values is None:
        raise TypeError(f"{name} must be an array of numbers, got None")
    values = as_array(values, name)
    if values.dtype.kind in "fiub":
        return values
    scalars = (value.dtype for value in values.flat if isinstance(value, np.generic))
    dtypes = set(scalars) if values.dtype.kind == "O" else {values.dtype}
    lossy = sorted(str(dtype) for dtype in dtypes if dtype.kind in "cmMV")
    if lossy:
        raise TypeError(f"{name} must hold real numbers, got dtype {', '.join(lossy)}")
    try:
        return np.array([_number(cell) for cell in values.ravel().tolist()], np.float64).reshape(values.shape)
    except (TypeError, ValueError, OverflowError) as error:
        advice = "targets are numbers" if name == "y" else "encode strings and categories as numbers first"
        raise TypeError(f"{name} must be numeric, got dtype {values.dtype}: {error}; {advice}") from None


def _number(cell: Any) -> float:
    return float("nan") if cell is None or is_missing(cell) else float(cell)


def finite_numbers(values: Any, name: str) -> np.ndarray:
    """Return finite real numbers as an array of float64, which is not copied if it is one already."""
    with np.errstate(over="ignore"):
        values = as_numbers(values, name).astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return values


def is_series(values: Any) -> bool:
    return type(values).__name__ == "Series" and hasattr(values, "dtype") and getattr(values, "ndim", 1) == 1


def is_missing(cell: Any) -> bool:
    """Whether a cell is NaN, NaT or NA, which are not equal to themselves."""
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):  # pandas' NA refuses to be a truth
        return type(cell).__name__ == "NAType"


# -- targets -----------------------------------------------------------------------------------------------------------


_TARGETS = "classifiers take classes, and regressors numbers"


def as_targets(y: Any, *, numeric: bool, advice: str = _TARGETS) -> np.ndarray:
    """Return numbers or labels in their own type; missing values are refused, and texts that are to be numbers.

    ``advice`` says what takes texts.
    """
    what = "number" if numeric else "label"
    if isinstance(y, str | bytes):
        raise ValueError(
            f"y must hold a {what} for each row, got the text {shown(y)}; give the column itself, such as "
            f"frame[{shown(y)}], and X without it"
        )
    if isinstance(y, set | Mapping):
        raise TypeError(f"y must hold a {what} for each row in their order, got {shown(y)}; give a list")
    if isinstance(y, list | tuple):  # before NumPy drops the ends of texts
        _check_texts(y, "y")
    y = as_array(y, "y")
    if not y.ndim:
        raise ValueError(f"y must hold a {what} for each row, got {shown(y[()])}")
    if y.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y has dtype {y.dtype}")
    if numeric:
        _refuse_texts(y, advice)
        numbers = as_numbers(y, "y")
        if np.isnan(numbers).any():
            raise ValueError("y contains NaN; drop these samples")
        if np.isinf(numbers).any():
            raise ValueError("y contains infinity; drop these samples")
        return numbers
    _check_labels(y, "y")
    return _native(y) if y.dtype.kind == "O" and y.ndim == 1 else y


def _refuse_texts(y: np.ndarray, advice: str) -> None:
    """Refuse targets that are texts, also if they are numbers."""
    cells = y.ravel().tolist() if y.dtype.kind in "OSUT" else []
    texts = [cell for cell in cells if isinstance(cell, str | bytes)]
    if not texts:
        return
    example = next((text for text in texts if not _is_number(text)), None)
    if example is None:
        raise TypeError(
            f"y holds numbers as texts, such as {shown(texts[0])}: make numbers of them, by pandas.to_numeric"
        )
    raise TypeError(f"y holds texts such as {shown(example)}: {advice}")


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _native(labels: np.ndarray) -> np.ndarray:
    """Return objects other than texts as an array of their own type, if NumPy has it."""
    cells = labels.tolist()
    kind = _kind_of(cells, "y")
    if kind == TEXTS:
        return labels
    has_type = kind not in (ZONED_DATES, TIMES) and not any(map(_is_period, cells))
    array = np.array(cells, {DATES: "M8[us]", DURATIONS: "m8[us]"}.get(kind)) if has_type else labels
    if array.dtype.kind == "O":
        raise ValueError(
            f"y holds labels of the type {type(cells[0]).__name__}, such as {shown(cells[0])}; give texts, integers, "
            "booleans or dates of NumPy"
        )
    return array


def _check_texts(cells: Iterable[Any], name: str) -> None:
    for cell in cells:
        if isinstance(cell, str | bytes):
            check_text(cell, name)


def _check_labels(labels: np.ndarray, name: str) -> None:
    """Refuse missing labels, and texts that NumPy would change."""
    kind = labels.dtype.kind
    if kind == "O":
        cells = labels.ravel().tolist()
        if any(cell is None or is_missing(cell) for cell in cells):
            raise ValueError(f"{name} has missing labels; drop these samples")
        _check_texts(cells, name)
    elif kind in "fcmM" and not np.isfinite(labels).all():
        missing = np.isnan(labels).any()
        raise ValueError(f"{name} has missing labels; drop these samples" if missing else f"{name} contains infinity")


def check_text(text: str | bytes, of: str) -> None:
    """Refuse a text that ends with NUL characters, which arrays and files drop."""
    if text[-1:] in ("\0", b"\0"):
        raise ValueError(f"{of} holds the text {text!r}, whose end NumPy drops; remove the NUL characters at the end")


def distinct_labels(y: Any, name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted distinct labels, and the index of each entry's label."""
    y = as_array(y, name)
    _check_labels(y, name)
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"{name} holds labels that cannot be sorted ({error}); give labels of a single type, none of them missing"
        ) from None
    return labels, codes.reshape(y.shape)


def label_codes(y: np.ndarray, classes: np.ndarray, name: str = "y") -> np.ndarray:
    """Return the index of each entry's label among sorted classes; equal values of other types are the same label."""
    try:
        labels, codes = distinct_labels(y, name)
        at = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        known = np.broadcast_to(classes[at] == labels, len(labels))  # a single False for types that never compare
    except TypeError:  # labels that cannot be compared with the classes
        at, known = np.zeros(len(labels), int), np.zeros(len(labels), bool)
    if not known.all():
        raise ValueError(f"{name} has the label {shown(labels[~known][0])}, which is not among the classes {classes}")
    return at[codes]


def level_codes(y: np.ndarray, levels: np.ndarray, name: str = "y") -> np.ndarray:
    """Return the index of the ascending level that each number equals up to rounding."""
    y = finite_numbers(y, name)
    at = nearest_equal(y, finite_numbers(levels, name))
    if (at < 0).any():
        raise ValueError(f"{name} has the level {shown(y[at < 0][0])}, which is not among the levels {levels}")
    return at


def category_order(values: Any) -> tuple[np.ndarray, bool] | None:
    """Return the categories of a column of pandas, polars or Arrow, and whether they have an order; else None."""
    dtype: Any = getattr(values, "dtype", getattr(values, "type", None))
    if hasattr(dtype, "value_type") and hasattr(dtype, "index_type"):  # of Arrow
        chunks = values.unify_dictionaries().chunks if hasattr(values, "chunks") else [values]
        return (np.asarray(chunks[0].dictionary) if chunks else np.zeros(0)), bool(dtype.ordered)
    if type(dtype).__name__ == "Enum":  # of polars
        return np.asarray(dtype.categories), True
    if type(dtype).__name__ == "Categorical":
        return np.asarray(values.unique().drop_nulls()), False
    if hasattr(dtype, "categories") and hasattr(dtype, "ordered"):
        return np.asarray(dtype.categories), bool(dtype.ordered)
    return None


# -- columns of tables -------------------------------------------------------------------------------------------------

NUMBERS, TEXTS, BOOLEANS, CATEGORIES = "numbers", "texts", "booleans", "categories"
DATES, ZONED_DATES = "dates without a time zone", "dates with a time zone"
DURATIONS, TIMES, NOTHING = "durations", "times of day", "no value"
NUMBER_KINDS = frozenset({NUMBERS, DATES, ZONED_DATES, DURATIONS, TIMES, NOTHING})

# Booleans as other programs write them.
TRUTHS = {text: bool(number) for number in (0, 1) for word in (str(bool(number)), str(number))
          for text in (word, word.lower(), word.upper())}  # fmt: skip
# Types of a cell that holds several values.
_NESTED = (list, tuple, dict, set, np.ndarray)
_DAY = np.timedelta64(1, "D")
_BELOW_MICROSECONDS = ("ns", "ps", "fs", "as")
_EPOCHS = {"M": np.datetime64(0, "us"), "m": np.timedelta64(0, "us")}


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
    rows = all(isinstance(value, (list, tuple, np.ndarray)) for value in values)
    if rows and len({len(value) for value in values}) == 1:
        array = np.empty((len(values), len(values[0])), object)
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                array[i, j] = value
        return array
    return _objects(values)


def _objects(values: Any) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


class ReadColumn(NamedTuple):
    """A column that was read: numbers, or NaN, or texts, or None; what they are; and values that lost digits."""

    values: np.ndarray
    kind: str
    exact: np.ndarray | None = None  # as they came, if some may be other numbers in floating point


def read_column(values: np.ndarray, of: str) -> ReadColumn:
    """Return a column of any type."""
    if values.ndim != 1:
        raise ValueError(f"{of} must have one value a row, got shape {values.shape}; make several columns of it")
    kind = values.dtype.kind
    if kind in "fiu":
        numbers = values.astype(np.float64, copy=False)
        return as_column(numbers, NUMBERS, of, values if _loses_digits(values, numbers) else None)
    if kind in "mM":
        exact = values if np.datetime_data(values.dtype)[0] in _BELOW_MICROSECONDS else None
        return as_column(_days(values, of), DATES if kind == "M" else DURATIONS, of, exact)
    cells = [None if cell is None or is_missing(cell) else cell for cell in values.tolist()]
    found = _kind_of([cell for cell in cells if cell is not None], of)
    if found in (TEXTS, BOOLEANS):
        return as_column(as_texts(cells, of), found, of)
    if found == NUMBERS:
        try:
            numbers = np.array([np.nan if cell is None else cell for cell in cells], float)
            return as_column(numbers, found, of, _objects(cells) if _loses_digits(cells, numbers) else None)
        except OverflowError as error:
            raise ValueError(f"{of} has a number that is too large for floating point: {error}") from None
    if found == TIMES:
        return as_column(np.array([np.nan if cell is None else _seconds(cell) for cell in cells]), found, of)
    plain = _objects([None if cell is None else _without_zone(cell) for cell in cells])
    return as_column(_days(plain, of, "m" if found == DURATIONS else "M"), found, of)


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


def as_column(values: np.ndarray, kind: str, of: str, exact: np.ndarray | None = None) -> ReadColumn:
    """Return a column of a kind, or ``NOTHING`` if all values are missing; infinity is refused."""
    is_number = values.dtype.kind == "f"
    if is_number and np.isinf(values).any():
        raise ValueError(f"{of} contains infinity; a number that is unknown is NaN")
    empty = np.isnan(values).all() if is_number else all(text is None for text in values)
    return ReadColumn(values, NOTHING if empty else kind, exact)


def as_texts(cells: Iterable[Any], of: str) -> np.ndarray:
    """Return the texts of categories, or None."""
    cells = list(cells)
    known = {cell: _text(cell, of) for cell in {cell for cell in cells if type(cell) is str}}  # each is read once
    texts = [
        known[cell] if type(cell) is str else None if cell is None or is_missing(cell) else _text(cell, of)
        for cell in cells
    ]
    return np.array(texts, object)


def _kind_of(present: Sequence[Any], of: str) -> str:
    if all(isinstance(cell, bool | np.bool_) for cell in present):
        return BOOLEANS if present else NUMBERS
    if all(isinstance(cell, (datetime.timedelta, np.timedelta64)) for cell in present):  # NumPy's are integers, too
        return DURATIONS
    if all(isinstance(cell, (Real, Decimal, np.bool_)) for cell in present):
        return NUMBERS
    if all(isinstance(cell, datetime.time) for cell in present):
        return TIMES
    if all(isinstance(cell, (datetime.date, np.datetime64)) or _is_period(cell) for cell in present):
        zoned = {getattr(cell, "tzinfo", None) is not None for cell in present}
        if len(zoned) == 2:
            raise ValueError(f"{of} holds dates with and without a time zone; give all of them one, or none")
        return ZONED_DATES if True in zoned else DATES
    return TEXTS


def _is_period(cell: Any) -> bool:
    return hasattr(cell, "to_timestamp") and hasattr(cell, "freq")


def _without_zone(cell: Any) -> Any:
    """Return a date in UTC, which NumPy reads; the start of a period."""
    if _is_period(cell):
        cell = cell.to_timestamp()
    if getattr(cell, "tzinfo", None) is None:
        return cell
    return cell.astimezone(datetime.UTC).replace(tzinfo=None)


def _seconds(time: datetime.time) -> float:
    return (time.hour * 60 + time.minute) * 60 + time.second + time.microsecond * 1e-6


def _days(values: np.ndarray, of: str, kind: str = "") -> np.ndarray:
    """Return dates as days since 1970, and durations as days."""
    kind = kind or values.dtype.kind
    try:
        exact = values.astype(f"{kind}8[us]")
    except (TypeError, ValueError) as error:
        raise TypeError(f"{of} has dates that NumPy does not read: {error}; give numbers") from None
    return np.where(np.isnat(exact), np.nan, (exact - _EPOCHS[kind]) / _DAY)


def as_given(values: np.ndarray, kind: str) -> np.ndarray:
    """Return numbers as the dates, durations or times that they were read from; NaN as NaT or None."""
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


def _text(cell: Any, of: str) -> str:
    """Return the text of a category; 3.0 is 3, as columns of integers become floats where one is missing."""
    if isinstance(cell, bytes):
        try:
            cell = cell.decode()
        except UnicodeDecodeError:
            cell = cell.decode("latin-1")
    if isinstance(cell, complex):
        raise TypeError(f"Complex data not supported: {of} holds {cell!r}")
    if isinstance(cell, _NESTED) or type(cell) is object:
        raise TypeError(
            f"{of} holds {shown(cell)}, an object of type {type(cell).__name__}; the argument must be a string or a "
            "number: make numbers, texts or several columns of it"
        )
    cell = cell.item() if isinstance(cell, np.generic) else cell
    whole = isinstance(cell, Real) and not isinstance(cell, bool) and cell == cell // 1
    text = str(int(cell)) if whole else str(cell)
    check_text(text, of)
    return text

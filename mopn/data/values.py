"""Values of any type as arrays of NumPy and as numbers: the same for every entry to mopn."""

from typing import Any

import numpy as np
from scipy import sparse


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


def check_text(text: str | bytes, name: str) -> None:
    """Refuse a text that ends with NUL characters, which arrays and files drop; ``name`` is its column's."""
    if text[-1:] in ("\0", b"\0"):
        raise ValueError(f"{name} holds the text {text!r}, whose end NumPy drops; remove the NUL characters at the end")

"""Input validation. Every message names the argument, the fault and a remedy.

The structure of sparse matrices is checked, too: compiled functions follow every index, and SciPy's ``check_format``
does not look at all formats, and may change the matrix.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from mopn.data.targets import distinct_labels, label_codes
from mopn.data.values import as_array, as_numbers, finite_numbers, to_host
from mopn.losses.losses import Loss
from mopn.solvers.tools.checks import check_count, check_flag, check_nonnegative, choice, shown

__all__ = [
    "LARGEST", "as_array", "as_numbers", "check_block_targets", "check_count", "check_factor_kernel", "check_flag",
    "check_input", "check_member", "check_nonnegative", "check_offset", "check_sample_weight", "check_start_size",
    "check_targets", "check_weighted_classes", "check_weights", "distinct_labels",
    "filled_targets", "finite_numbers", "is_start_size", "label_codes", "present_rows",
]  # fmt: skip

Member = TypeVar("Member")

# Largest modulus in an argument; the smallest largest modulus other than 0 is its reciprocal.
_LARGEST_INPUT = 1e50
# Largest loss, slope and weight: their fourth powers are finite.
LARGEST = 1e70
_FACTOR_KERNELS = ("anova", "all-subsets", "homogeneous")


def check_input(values: float | np.ndarray, name: str, limit: float = _LARGEST_INPUT) -> None:
    """Raise ``ValueError`` if the largest modulus in an argument makes products infinite, or 0 where it is not."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest and not 1.0 / limit <= largest <= limit:
        raise ValueError(
            f"{name} is too {'large' if largest > 1 else 'small'} for floating point: its largest modulus is "
            f"{largest:.3g}, and products with it would be infinite or 0; scale it, to 1 for example"
        )


def check_start_size(start: np.ndarray, name: str) -> None:
    """Raise ``ValueError`` if units or weights to start from are too large for any problem."""
    check_input(float(np.abs(start).max(initial=1.0)), name, LARGEST)


def is_start_size(start: np.ndarray) -> bool:
    """Whether parameters to start from are numbers, and not too large for any problem."""
    return bool(np.abs(start).max(initial=0.0) <= LARGEST)


def check_targets(y: Any, n: int, loss: Loss) -> tuple[np.ndarray, int, np.ndarray | None]:
    """Return the targets in the form of the loss, the number of outputs, and the classes (or None)."""
    y = as_array(y, "y")
    if y.ndim == 0 or len(y) != n:
        raise ValueError(f"y must have one row per sample: X has {n} rows, y has shape {y.shape}")
    if loss.targets != "labels":
        Y = _per_output(y, loss)
        return Y, Y.shape[1], None
    if y.ndim != 1:
        raise ValueError(
            f"loss={loss.name!r} is multi-class and takes labels of shape (n,), got y of shape {y.shape}; "
            "for several targets per sample use a loss per output, such as 'squared' or 'binary-logistic'"
        )
    classes, codes = distinct_labels(y)
    if len(classes) < 2:
        raise ValueError(f"y has one class only ({classes[0]}); classification needs at least 2")
    return codes, len(classes), classes


def check_block_targets(y: Any, loss: Loss, classes: np.ndarray | None, m: int) -> np.ndarray:
    """Return the targets of some samples in the form of the loss, given the classes or the number of outputs."""
    y = as_array(y, "y")
    if classes is not None:
        return label_codes(y, classes)
    Y = _per_output(y, loss)
    if Y.shape[1] != m:
        raise ValueError(f"y has {Y.shape[1]} outputs, and {m} in the first block")
    return Y


def _per_output(y: np.ndarray, loss: Loss) -> np.ndarray:
    """Return targets (n, m) as the loss takes them, with contiguous columns."""
    if y.ndim > 2 or 0 in y.shape:
        raise ValueError(f"y must have shape (n,) or (n, m) with m >= 1, got {y.shape}")
    try:
        Y = finite_numbers(y, "y").reshape(len(y), -1).copy("F")
    except TypeError as error:
        raise TypeError(f"loss={loss.name!r} takes numeric targets, and loss='logistic' labels: {error}") from None
    if loss.targets == "signs" and not np.isin(Y, (-1.0, 1.0)).all():
        raise ValueError(f"loss={loss.name!r} takes targets -1 and +1 only; convert 0 and 1 by 2 * y - 1")
    if loss.targets == "counts" and (Y < 0).any():
        raise ValueError(f"loss={loss.name!r} takes counts, numbers that are at least 0; y has {Y.min():.6g}")
    return Y


def check_sample_weight(weights: Any, n: int) -> np.ndarray | None:
    """Return the weights as floats, not all of them zero, or None if none were given."""
    weights = check_weights(weights, n)
    if weights is not None and not weights.any():
        raise ValueError("sample_weight is zero for all samples; at least one must be positive")
    return weights


def check_weighted_classes(y: Any, rows: np.ndarray) -> None:
    """Raise ``ValueError`` if the ``rows`` of positive weight have only one of several classes."""
    if len(rows) == len(y) or np.ndim(y) != 1:
        return
    if len(distinct_labels(y[rows])[0]) > 1 or len(distinct_labels(y)[0]) < 2:
        return
    raise ValueError(
        f"sample_weight is 0 for all samples outside the class {shown(y[rows][0])}; classification needs at least "
        "2 classes"
    )


def check_weights(weights: Any, n: int) -> np.ndarray | None:
    """Return weights (n,) as floats, all of them finite and at least 0, or None if none were given."""
    if weights is None:
        return None
    weights = as_numbers(weights, "sample_weight").astype(np.float64, copy=False)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight per sample, got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and >= 0")
    return weights


def check_offset(offset: Any, n: int, m: int) -> np.ndarray | None:
    """Return the offset broadcast to (n, m), or None if none was given."""
    if offset is None:
        return None
    offset = finite_numbers(offset, "offset")
    if offset.shape == (n,) and m == 1:
        offset = offset[:, None]
    if offset.shape not in ((n, m), (m,), (1, m)):
        raise ValueError(f"offset must have shape ({n}, {m}) or ({m},), got {offset.shape}")
    return np.broadcast_to(offset, (n, m))


def check_member(value: Any, argument: str, kind: type, members: Mapping[str, Member], reason: str) -> Member:
    """Return a member of a closed set, given by name or itself; other objects of the kind are refused."""
    if isinstance(value, str) and value in members:
        return members[value]
    for member in members.values():
        if value is member:
            return member
    names = choice(members)
    if isinstance(value, kind):
        raise TypeError(f"{argument} must be {names.takes}, by name: {reason}; got the object {value!r}")
    return members[names(value, argument)]


def check_factor_kernel(kernel: Any, degree: Any, theta: Any = None) -> tuple[str, int, np.ndarray | None]:
    """Return the name of a kernel of any degree, the degree, and the coefficients of the degrees up to it, if any."""
    kernel = choice(_FACTOR_KERNELS)(kernel, "kernel")
    degree = check_count(degree, "degree")
    if theta is None:
        return kernel, degree, None
    if kernel != "anova":
        raise ValueError(f"theta weighs the degrees of the kernel 'anova'; kernel={kernel!r} has none")
    theta = finite_numbers(theta, "theta")
    if theta.shape != (degree,):
        raise ValueError(f"theta must hold {degree} numbers, one per degree, got shape {theta.shape}")
    return kernel, degree, theta


def filled_targets(y: np.ndarray, sample_weight: np.ndarray | None, target: Any = None) -> np.ndarray:
    """Return y with a valid target in rows of weight 0: of the first row of positive weight, or ``target``."""
    if sample_weight is None or np.shape(sample_weight) != (len(y),):
        return y
    absent = np.asarray(sample_weight) == 0
    if not absent.any() or (absent.all() and target is None):
        return y
    if target is None:
        target = y[np.argmin(absent)]
    return np.where(np.expand_dims(absent, tuple(range(1, y.ndim))), target, y)


def present_rows(parts: Sequence[Any], y: Any, sample_weight: Any, offset: Any) -> tuple[Any, Any, Any, Any]:
    """Return the rows of positive weight of the parts of X, y, weights and offset; all rows if lengths differ."""
    y = as_array(y, "y")
    n = len(y) if y.ndim else 0
    if sample_weight is None or as_array(sample_weight, "sample_weight").shape != (n,):
        return parts, y, sample_weight, offset
    sample_weight = check_sample_weight(sample_weight, n)
    parts = [part if hasattr(part, "tocsr") else as_array(part, "X") for part in parts]
    if np.all(sample_weight) or any(part.shape[:1] != (n,) for part in parts):
        return parts, y, sample_weight, offset
    rows = np.flatnonzero(sample_weight)
    parts = [compressed(part).tocsr()[rows] if sparse.issparse(part) else part[rows] for part in parts]
    if offset is not None:
        offset = as_array(offset, "offset")
        offset = offset[rows] if offset.shape[:1] == (n,) else offset
    return parts, y[rows], sample_weight[rows], offset


def compressed(X: Any, name: str = "X") -> Any:
    """Return a sparse matrix in CSR or CSC, if its arrays fit each other and its shape; all else on the host."""
    X = to_host(X)
    if not sparse.issparse(X) or X.ndim != 2:
        return X
    if X.format not in ("csr", "csc"):
        _refuse_if_faulty(X, _fault_before_conversion(X), name)
        X = X.tocsr()
    n, d = X.shape
    _refuse_if_faulty(X, _fault_of_lines(X, n, d) if X.format == "csr" else _fault_of_lines(X, d, n), name)
    if X.indices.dtype.kind == "u":
        X = type(X)((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    return X


def _refuse_if_faulty(X: Any, fault: str | None, name: str) -> None:
    if fault:
        raise ValueError(
            f"{name} is not a valid {X.format.upper()} matrix of shape {X.shape}: {fault}; "
            "build it anew, for example by scipy.sparse.coo_array((data, (rows, columns)), shape)"
        )


def _fault_before_conversion(X: Any) -> str | None:
    """Return a fault that would crash SciPy's conversion to CSR."""
    n, d = X.shape
    if X.format == "coo":
        return (
            _fault_of_lengths(row=X.row, col=X.col, data=X.data)
            or _fault_of_indices("row", X.row, n)
            or _fault_of_indices("col", X.col, d)
        )
    if X.format == "bsr":
        rows, columns = X.blocksize
        return _fault_of_lines(X, n // rows, d // columns)
    if X.format == "dia":
        return _fault_of_lengths(offsets=X.offsets, data=X.data)
    if X.format == "lil":
        equal = [*map(len, X.rows)] == [*map(len, X.data)]
        return None if equal else "the lists in rows and data are not of equal lengths"
    return None


def _fault_of_lines(X: Any, count: int, length: int) -> str | None:
    """Return a fault of the arrays of ``count`` rows (CSR) or columns (CSC), each with ``length`` entries."""
    indptr, indices = X.indptr, X.indices
    for array, what in ((indptr, "indptr"), (indices, "indices")):
        if array.dtype.kind not in "iu":
            return f"{what} holds no integers but {array.dtype}"
    if X.data.dtype.kind not in "biufc":
        return f"data holds no numbers but {X.data.dtype}"
    if X.data.ndim != (3 if X.format == "bsr" else 1):
        return f"data has shape {X.data.shape}"
    if indptr.shape != (count + 1,):
        return f"indptr has shape {indptr.shape}, not {(count + 1,)}"
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return "indptr does not start at 0, or decreases somewhere"
    if indptr[-1] > len(indices):
        return f"indptr ends at {indptr[-1]}, but there are {len(indices)} indices"
    used = indices[: indptr[-1]]
    return _fault_of_lengths(indices=indices, data=X.data) or _fault_of_indices("indices", used, length)


def _fault_of_lengths(**arrays: np.ndarray) -> str | None:
    lengths = {name: len(array) for name, array in arrays.items()}
    return None if len(set(lengths.values())) == 1 else f"its arrays are not of equal lengths: {lengths}"


def _fault_of_indices(name: str, indices: np.ndarray, length: int) -> str | None:
    if not indices.size:
        return None
    least = indices.min()
    if least < 0:
        return f"{name} holds {least}"
    largest = indices.max()
    return f"{name} holds {largest}" if largest >= length else None


def check_start(start: Any, size: int) -> np.ndarray:
    """Return a copy of a flat point, or of an earlier result's point, to start from."""
    if hasattr(start, "predict"):
        raise TypeError(
            f"start must be an earlier result or its flat point x, got the model {shown(start)}; keep result.x instead"
        )
    x = finite_numbers(getattr(start, "x", start), "start").copy()
    if x.shape != (size,):
        raise ValueError(f"start must be a flat point of shape ({size},), got {x.shape}")
    check_input(x, "start")
    return x

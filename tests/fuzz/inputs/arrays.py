"""Arrays of other shapes, types and values."""

from collections.abc import Callable
from typing import Any

import numpy as np

ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "NaN": lambda a: np.full(a.shape, np.nan),
    "infinity": lambda a: np.full(a.shape, np.inf),
    "zeros": np.zeros_like,
    "huge": lambda a: np.full(a.shape, 1e200),
    "tiny": lambda a: np.full(a.shape, 1e-200),
    "a row less": lambda a: a[:-1],
    "a column less": lambda a: a[..., :-1],
    "flat": np.ravel,
    "transposed": np.transpose,
    "list": lambda a: a.tolist(),
    "float32": lambda a: a.astype(np.float32),
    "integers": lambda a: np.ones(a.shape, dtype=int),
    "complex": lambda a: a + 1j,
    "strings": lambda a: a.astype(str),
    "objects": lambda a: a.astype(object),
    "Fortran order": np.asfortranarray,
    "None": lambda a: None,
    "a string": lambda a: "nonsense",
    "empty": lambda a: np.zeros(0),
    "a number": lambda a: 1.0,
}

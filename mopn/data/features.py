"""Features of users and items, dense or sparse: the same checks and scales for problems and models."""

from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.validation import check_input, compressed, finite_numbers


def checked_features(features: Any, n: int, name: str) -> Any:
    """Return features (n, p) as an array or CSR matrix of float64.

    Raises
    ------
    TypeError
        If they are not real numbers.
    ValueError
        For NaN, infinity, another number of rows, or numbers too large or small.
    """
    if sparse.issparse(features):
        matrix = sparse.csr_array(compressed(features, name))
        data = finite_numbers(matrix.data, name)
        found = sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
        found.sum_duplicates()
    else:
        found = finite_numbers(features, name)
        data = found
    if found.ndim != 2 or found.shape[0] != n:
        raise ValueError(f"{name} must have shape ({n}, p), a row for each of the {n}, got {found.shape}")
    check_input(data, name)
    return found


def column_lengths(features: Any) -> np.ndarray:
    """Return the lengths (p,) of the columns; 1 for columns of zeros."""
    squares = features.multiply(features) if sparse.issparse(features) else features * features
    lengths = np.sqrt(np.asarray(squares.sum(axis=0)).ravel())
    lengths[lengths == 0.0] = 1.0
    return lengths

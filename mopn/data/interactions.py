"""Interactions of users and items, as sparse matrices that users give: the same checks for problems and models."""

from typing import Any

import numpy as np
from scipy import sparse

from mopn.data.validation import check_input, compressed


def checked_interactions(interactions: Any, name: str) -> sparse.csr_array:
    """Return interactions as CSR in float64 with sorted, distinct columns: duplicates are summed, zeros dropped.

    Raises
    ------
    TypeError
        If they are not a sparse matrix of real numbers.
    ValueError
        For NaN, infinity, negative numbers, no rows or columns, or arrays that do not fit each other.
    """
    if not sparse.issparse(interactions) or interactions.ndim != 2:
        shape = getattr(interactions, "shape", None)
        given = type(interactions).__name__ + ("" if shape is None else f" of shape {shape}")
        raise TypeError(
            f"{name} must be a SciPy sparse matrix of users and items, got {given}; "
            "build one by scipy.sparse.coo_array((counts, (users, items)), shape)"
        )
    matrix = compressed(interactions, name)
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {matrix.dtype}; give counts or weights")
    if 0 in matrix.shape:
        raise ValueError(f"{name} must have users and items, got shape {matrix.shape}")
    # A copy: sums of duplicates change a matrix in place.
    matrix = sparse.csr_array(matrix, copy=True).astype(np.float64)
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{name} contains NaN or infinity; drop these pairs")
    least = matrix.data.min(initial=0.0)
    if least < 0.0:
        raise ValueError(f"{name} must hold numbers >= 0, got {least:g}; leave out pairs of users who dislike an item")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    check_input(matrix.data, name)
    return matrix

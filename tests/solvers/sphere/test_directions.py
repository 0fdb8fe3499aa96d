"""Groups of unit vectors."""

import numpy as np

from mopn.solvers.sphere.directions import group_leaders


def test_group_leaders_are_taken_in_order():
    """Rows within the cosine of a leader belong to it, up to sign, and to the first that claims them."""
    angles = np.deg2rad([0.0, 8.0, 16.0, 180.0, 90.0])
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    cosine = np.cos(np.deg2rad(10.0))
    assert group_leaders(rows, np.arange(5), cosine).tolist() == [0, 0, 2, 0, 4]
    assert group_leaders(rows, np.array([1, 0, 2, 3, 4]), cosine).tolist() == [1, 1, 1, 1, 4]
    assert group_leaders(np.zeros((0, 2)), np.arange(0), cosine).tolist() == []
    # Not quite of length one: a leader leads itself all the same.
    assert group_leaders(0.5 * rows, np.arange(5), cosine).tolist() == [0, 1, 2, 3, 4]

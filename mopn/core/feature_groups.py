"""Groups of features that do not interact within a group: from lists of columns to a number for every feature."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mopn.data.validation import as_array
from mopn.solvers.tools.checks import shown


def feature_groups(interactions: Any, d: int, names: Sequence[Any] = ()) -> np.ndarray | None:
    """Return the number (d,) of each feature's group in lists of columns, -1 for one alone; None if all are."""
    listed = list(interactions) if _is_collection(interactions) else [interactions]
    if not all(map(_is_collection, listed)):
        raise TypeError(
            "interactions must hold groups of columns, such as [range(100), range(100, 300)]: pairs of different "
            f"groups interact; got {shown(interactions)}"
        )
    places = {name: j for j, name in enumerate(names) if isinstance(name, str)}
    groups = np.full(d, -1)
    for number, group in enumerate(listed):
        for column in group:
            j = places.get(column, column) if isinstance(column, str) else column
            if isinstance(j, (bool, np.bool_)) or not isinstance(j, (int, np.integer)) or not 0 <= j < d:
                known = "or names of columns" if places else "as the columns have no names"
                raise ValueError(
                    f"interactions must hold indices of columns from 0 to {d - 1}, {known}, got {column!r}"
                )
            if groups[j] != -1:
                raise ValueError(
                    f"interactions: the groups {groups[j]} and {number} overlap in the column {column!r}; give each "
                    "column in one group, or in none if it interacts with all others"
                )
            groups[j] = number
    sizes = np.bincount(groups[groups >= 0], minlength=len(listed))
    if not sizes.all():
        raise ValueError(f"interactions: the group {int(np.argmin(sizes))} is empty; leave it out")
    if sizes.max(initial=0) == d:
        raise ValueError("interactions: all columns are in one group, so no pair is left; give several groups")
    return check_groups(groups, d)


def check_groups(groups: Any, d: int) -> np.ndarray | None:
    """Return groups by number as ``feature_groups`` does: groups of several features are 0, 1, ... in their order."""
    groups = as_array(groups, "groups")
    if groups.shape != (d,) or groups.dtype.kind not in "iu" or (groups < -1).any():
        raise ValueError(
            f"groups must hold an integer of at least -1 for each of the {d} features, got {shown(groups)}"
        )
    numbers, which, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    several = (numbers >= 0) & (sizes > 1)
    if not several.any():
        return None
    return np.where(several, np.cumsum(several) - 1, -1)[which]


def _is_collection(value: Any) -> bool:
    return np.iterable(value) and not isinstance(value, str)

"""Warnings that point at the line of the user, whatever lies between."""

from __future__ import annotations

import sys
import warnings

# Packages whose lines no user wrote.
_INSIDE = frozenset({__name__.partition(".")[0], "sklearn", "joblib"})


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line of the stack that is neither of mopn nor of scikit-learn."""
    # Python 3.12 can skip files by their prefixes.
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)

"""The line of a user's program at which mopn was called, for warnings."""

from __future__ import annotations

import sys

__all__ = ["stacklevel_of_user"]

_PACKAGE = __name__.split(".", maxsplit=1)[0]


def stacklevel_of_user() -> int:
    """Return the ``stacklevel`` with which the caller's warning shows the first line outside the package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".", maxsplit=1)[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    return level

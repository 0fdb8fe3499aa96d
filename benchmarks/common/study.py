"""How the studies end: done, stopped, or for want of what the user can mend."""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks.common.datasets import MissingDataError
from benchmarks.common.store import StoreError

__all__ = ["exit_status"]


def exit_status(program: str, study: Callable[[], int]) -> int:
    """Run a study; return its exit status, 2 with a line that says what is missing, or 130 if it was stopped."""
    try:
        return study()
    except (MissingDataError, StoreError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130

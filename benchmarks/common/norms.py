"""The three norms of the paper, which studies compare."""

from __future__ import annotations

NORMS = ("l1", "l1/l2", "l1/linf")

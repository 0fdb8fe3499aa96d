"""How compiled loops use vector instructions: so many kernels at a time, and what the compiler may assume."""

from __future__ import annotations

__all__ = ["FAST", "IN_ORDER", "WIDTH"]

# Units whose kernels are computed at a time: a vector register of doubles.
WIDTH = 8
# Multiplications and additions may be fused, and zeros lose their sign; sums keep their order ...
IN_ORDER = {"contract", "nsz"}
# ... or not.
FAST = IN_ORDER | {"reassoc"}

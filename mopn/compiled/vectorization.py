"""Vector instructions in compiled loops: the number of kernels at a time, and what the compiler may assume."""

from __future__ import annotations

# Units whose kernels are computed at a time: a vector register of doubles.
WIDTH = 8
# Multiplications and additions may be fused, and the signs of zeros ignored; the order of sums is kept.
IN_ORDER = {"contract", "nsz"}
# The order of sums may change too.
FAST = IN_ORDER | {"reassoc"}

"""The exact maximum for p = 1 by enumerating sign vectors (appendix C of Blondel et al., NIPS 2017)."""

from __future__ import annotations

import math
import time

import numpy as np

from mopn.solvers.sphere.bounds import combination_error
from mopn.solvers.sphere.stack import DenseStack

# So many outputs have 2^19 vectors of signs, each with a matrix to decompose.
MAX_ENUMERATED = 20
# Entries of the matrices that are decomposed together.
_CHUNK = 1 << 21


def enumerate_signs(stack: DenseStack, max_time: float = math.inf) -> tuple[np.ndarray, float]:
    """Maximise sum_c |h' Gamma_c h| over unit h as the largest ||sum_c s_c Gamma_c||_2 over signs s.

    s and -s give the same norm, so 2^(m-1) matrices are decomposed; m is at most ``MAX_ENUMERATED``.
    """
    m, d = stack.shape
    if m > MAX_ENUMERATED:
        raise ValueError(
            f"the oracle 'enumerate' decomposes 2^(m-1) matrices and is refused above m = {MAX_ENUMERATED} outputs, "
            f"got m = {m}; use 'refine'"
        )
    best, best_signs, error = -1.0, np.ones(m), 2.0 * combination_error(stack)
    began = time.perf_counter()
    chunk = max(1, _CHUNK // d**2)
    for first in range(0, 2 ** (m - 1), chunk):
        codes = np.arange(first, min(first + chunk, 2 ** (m - 1)))
        # Bit c - 1 of the code is the sign of output c; output 0 keeps +1.
        bits = (codes[:, None] >> np.arange(m - 1)) & 1
        signs = np.hstack([np.ones((len(codes), 1)), 1.0 - 2.0 * bits])
        values = np.linalg.eigvalsh(stack.combine(signs))
        radius = np.maximum(-values[:, 0], values[:, -1])
        top = int(np.argmax(radius))
        if radius[top] > best:
            best, best_signs = float(radius[top]), signs[top]
        if codes[-1] + 1 < 2 ** (m - 1) and time.perf_counter() - began >= max_time:
            error = math.inf
            break
    values, vectors = np.linalg.eigh(stack.combine(best_signs[None])[0])
    h = vectors[:, -1] if values[-1] >= -values[0] else vectors[:, 0]
    return h, best + error

"""Coordinate descent for a small quadratic with a weighted l1 norm."""

from __future__ import annotations

import numpy as np

from mopn.compiled.jit import jit


@jit()
def minimize_l1(K, slopes, thresholds, z, rounds, tol):  # type: ignore[no-untyped-def]
    """Minimise <slopes, u> + u' K u / 2 + sum_s thresholds_s |z_s + u_s| over u; add u to z in place.

    K (k, k) is symmetric and positive semidefinite; coordinates with K_ss = 0 stay. ``slopes`` (k,) become
    slopes + K u. At most ``rounds`` passes are made; one that changes no coordinate by more than ``tol`` times the
    largest of z is the last.
    """
    for _ in range(rounds):
        moved = 0.0
        for s in range(len(z)):
            if K[s, s] == 0.0:
                continue
            target = z[s] - slopes[s] / K[s, s]
            new = np.sign(target) * max(abs(target) - thresholds[s] / K[s, s], 0.0)
            step = new - z[s]
            if step != 0.0:
                z[s] = new
                slopes += step * K[s]
                moved = max(moved, abs(step))
        if moved <= tol * np.abs(z).max():
            return

"""Norms proven by Cholesky factors."""

import numpy as np

from mopn.solvers.sphere.cholesky import norm_bound


def test_cholesky_bound_grows_when_the_value_is_too_low():
    rng = np.random.default_rng(1)
    for d in (1, 2, 30):
        A = rng.standard_normal((d, d))
        A = A + A.T
        exact = np.abs(np.linalg.eigvalsh(A)).max()
        for fraction in (1.0, 0.999, 0.5, 1e-3):
            bound = norm_bound(A, fraction * exact, 1e-8)
            assert exact <= bound <= np.linalg.norm(A) * (1 + 1e-10)
            if fraction == 1.0:
                assert bound <= exact * (1 + 1e-7)
        assert norm_bound(np.zeros((d, d)), 0.0, 1e-8) == 0.0

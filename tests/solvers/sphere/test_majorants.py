"""Majorants cover every form, and their sum is smaller than that of the moduli."""

import numpy as np
from stacks import draw_small, every_kind, unit_vectors

from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.majorants import majorants


@every_kind
def test_majorants_cover_every_form(kind):
    rng, gains = np.random.default_rng(18), []
    for _ in range(20):
        stack, _ = DenseStack(draw_small(kind, rng)).scaled()
        M, violation = majorants(stack)
        H = unit_vectors(rng, 200, stack.shape[1])
        covered = np.einsum("ki,ij,kj->k", H, M.sum(axis=0), H) + violation
        assert (np.abs(stack.forms(H)).sum(axis=1) <= covered).all()
        assert violation <= 1e-6
        plain, better = (np.linalg.eigvalsh(matrices.sum(axis=0))[-1] for matrices in (stack.moduli, M))
        assert better <= plain * (1 + 1e-12)
        gains.append(plain / better if better > 0 else 1.0)
    # Worth having: on stacks in no special position the sum is clearly smaller than that of the absolute values.
    assert np.median(gains) > 1.02 or kind != "gaussian"

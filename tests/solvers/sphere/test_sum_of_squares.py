"""The relaxation by sums of squares: a bound, its proof, and cuts."""

import numpy as np
import pytest
from stacks import best_of_many, draw_small, every_kind, gaussian, unit_vectors

from mopn.solvers.sphere import DenseStack
from mopn.solvers.sphere.allowance import Allowance
from mopn.solvers.sphere.sum_of_squares import Quartic, relax


def relaxed(A, value=0.0):
    """The bound of sums of squares on the whole sphere, and what proves it."""
    quartic = Quartic(DenseStack(A))
    return relax(quartic, quartic.whole(), (1 + 1e-5) * value**2, Allowance(5000 * quartic.step_work))


@every_kind
def test_sum_of_squares_bounds_every_value(kind):
    rng = np.random.default_rng(4)
    for _ in range(15):
        stack, _ = DenseStack(draw_small(kind, rng)).scaled()
        value = best_of_many(stack.matrices, 2, rng, starts=50)
        bound = np.sqrt(relaxed(stack.matrices, value).bound)
        assert bound >= value
        # Tight but for rounding, on forms as small as these.
        assert bound <= value * (1 + 1e-3) + 1e-7


def test_sum_of_squares_proof_can_be_checked():
    """The N it returns is symmetric, vanishes on every hh', and its eigenvalue is the bound."""
    rng = np.random.default_rng(5)
    A = draw_small("gaussian", rng)
    A = A / np.abs(A).max()
    d = A.shape[1]
    relaxation = relaxed(A)
    i, j = np.triu_indices(d)
    scale = np.where(i == j, 1.0, np.sqrt(2.0))
    H = unit_vectors(rng, 100, d)
    lifted = H[:, i] * H[:, j] * scale
    assert np.abs(np.einsum("ra,ab,rb->r", lifted, relaxation.N, lifted)).max() < 1e-12
    # To the last bit, as eigenvalues are those of one triangle.
    assert np.array_equal(relaxation.N, relaxation.N.T)
    vectors = A[:, i, j] * scale
    top = np.linalg.eigvalsh(vectors.T @ vectors + relaxation.N)[-1]
    assert relaxation.bound == pytest.approx(top, rel=1e-9)


def test_sum_of_squares_on_part_of_the_sphere():
    """With a cut, the bound holds where the cut is positive, and is below that of the whole sphere for some cut."""
    rng = np.random.default_rng(13)
    lower = 0
    for _ in range(10):
        A, (B,) = gaussian(rng, 3, 3), gaussian(rng, 1, 3)
        quartic = Quartic(DenseStack(A))
        whole = relax(quartic, quartic.whole(), best_of_many(A, 2, rng) ** 2, Allowance(3000 * quartic.step_work))
        part = whole.cut(quartic.lift.vectors(B[None])[0], quartic, whole.bound)
        part = relax(quartic, part, 0.0, Allowance(3000 * quartic.step_work))
        H = unit_vectors(rng, 20_000, 3)
        inside = np.einsum("ki,ij,kj->k", H, B, H) >= 0
        values = (np.einsum("ki,cij,kj->kc", H, A, H) ** 2).sum(axis=1)
        assert part.bound >= values[inside].max(initial=0.0)
        assert part.bound <= whole.bound
        lower += part.bound < 0.99 * whole.bound
    assert lower >= 2

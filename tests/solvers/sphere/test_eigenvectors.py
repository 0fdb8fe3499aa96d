"""Lanczos against dense eigenvectors, with matrices and without."""

from functools import partial

import numpy as np
import pytest
from networks import draw_forms
from stacks import STACKS, draw, spectral, symmetric

from mopn.solvers.sphere import DenseStack, dominant_eigenvectors, lanczos
from mopn.solvers.sphere.eigenvectors import krylov, lanczos_start


def low_rank(rng, m, d):
    """Ranks 0, 1, 2, ... side by side: the Krylov spaces end at different steps."""
    factors = [rng.standard_normal((d, min(c, d))) for c in range(m)]
    return np.stack([(F * rng.choice([-1.0, 1.0], size=F.shape[1])) @ F.T for F in factors])


@pytest.mark.parametrize("kind", [*STACKS, "low rank"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (5, 6), (4, 40)])
def test_lanczos_equals_eigh(kind, shape):
    m, d = shape
    for seed in range(3):
        rng = np.random.default_rng(seed)
        stack = symmetric(low_rank(rng, m, d)) if kind == "low rank" else draw(kind, seed, shape)[1]
        H = lanczos(partial(DenseStack(stack).products, np.eye(m)), lanczos_start(m, d), tol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0, rtol=1e-14)
        values = np.abs(np.einsum("cj,cjk,ck->c", H, stack, H))
        np.testing.assert_allclose(values, [spectral(matrix) for matrix in stack], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("d", [6, 30])
@pytest.mark.parametrize("dense", [True, False])
def test_dominant_eigenvectors_of_combinations(dense, d):
    """Row r of W asks for sum_c W_rc Gamma_c; also with more rows than outputs."""
    rng = np.random.default_rng(0)
    forms, X, G = draw_forms("homogeneous", "dense", 0, n=20, d=d, m=3)
    W, start = rng.standard_normal((7, 3)), rng.standard_normal((7, d))
    H = dominant_eigenvectors(forms.dense if dense else forms, W, start, tol=1e-12)
    for h, w in zip(H, W, strict=True):
        matrix = np.einsum("i,ij,ik->jk", G @ w, X, X)
        theta = h @ matrix @ h
        np.testing.assert_allclose(abs(theta), spectral(matrix), rtol=1e-10)
        np.testing.assert_allclose(matrix @ h, theta * h, rtol=0, atol=1e-7 * abs(theta))


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_lanczos_stops_at_a_small_residual(tol):
    """With a gap in the spectrum fewer steps than dimensions are enough."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((120, 120)))
    stack = ((Q * np.r_[-3.0, np.linspace(-1, 2, 119)]) @ Q.T)[None]
    h = lanczos(partial(DenseStack(symmetric(stack)).products, np.eye(1)), lanczos_start(1, 120), tol=tol)[0]
    theta = h @ stack[0] @ h
    assert np.linalg.norm(stack[0] @ h - theta * h) <= 1.01 * tol * abs(theta)
    assert abs(theta) >= 3.0 * (1 - tol)


@pytest.mark.parametrize("d", [6, 30])
def test_no_combination_has_no_dominant_eigenvector(d):
    stack = DenseStack(np.zeros((3, d, d)))
    assert dominant_eigenvectors(stack, np.zeros((0, 3)), np.zeros((0, d))).shape == (0, d)


def test_a_space_that_rounding_exhausts_goes_on():
    """The start has next to nothing of the largest eigenvector, and is otherwise a sum of two others."""
    values = np.repeat([3.0, 1.0, -1.0], [1, 20, 20])
    start = np.where(values > 2.0, 1e-15, np.random.default_rng(0).standard_normal(41))[None]
    *_, (Q, T, _) = krylov(lambda H: H * values, start, 12)
    assert np.linalg.eigvalsh(T[0])[-1] == pytest.approx(3.0, rel=1e-9)
    np.testing.assert_allclose(Q[0] @ Q[0].T, np.eye(12), atol=1e-12)

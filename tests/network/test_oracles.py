"""Maximisers on the unit sphere: every bound against attained values, every maximum against slow searches."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import mopn
from mopn import solvers
from mopn.core.designs import make_design
from mopn.core.kernels import KERNELS
from mopn.core.norms import NORMS, get_norm
from mopn.network import oracles
from mopn.network.gradient_forms import GradientForms
from mopn.oracles import METHODS, basis_oracle

sphere = solvers.sphere
DenseStack = sphere.DenseStack
enumerate_signs, lanczos, refine = sphere.enumerate_signs, sphere.lanczos, sphere.refine

NORM_NAMES = sorted(NORMS)
SHAPES = [(1, 1), (4, 1), (1, 4), (2, 2), (3, 5), (6, 3), (5, 8)]

every_norm = pytest.mark.parametrize("norm", NORM_NAMES)
every_p = pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
varied = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
shapes = st.sampled_from(SHAPES)


# Stacks Gamma (m, d, d) of many kinds


def gaussian(rng, m, d):
    A = rng.standard_normal((m, d, d))
    return A + A.transpose(0, 2, 1)


def positive(rng, m, d):
    A = rng.standard_normal((m, d, d + 1))
    return A @ A.transpose(0, 2, 1)


def rank_one(rng, m, d):
    x = rng.standard_normal((m, d))
    return rng.choice([-1.0, 1.0], size=(m, 1, 1)) * x[:, :, None] * x[:, None, :]


def duplicated(rng, m, d):
    """Copies of one matrix, some negated: the maxima of all outputs fall on one vector."""
    return rng.choice([-1.0, 1.0], size=(m, 1, 1)) * gaussian(rng, 1, d)


def sum_to_zero(rng, m, d):
    """As of a multi-class loss, whose gradients add up to zero over the classes."""
    stack = gaussian(rng, m, d)
    return stack - stack.mean(axis=0) if m > 1 else stack


def near_ties(rng, m, d):
    """Nearly equal outputs, each with nearly equal eigenvalues of both signs."""
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    signs = np.where(np.arange(d) % 2, -1.0, 1.0) * (1 + 1e-9 * rng.standard_normal((m, d)))
    return np.einsum("jk,ck,lk->cjl", Q, signs, Q)


def unequal(rng, m, d):
    """Outputs of very different sizes, one of them zero."""
    stack = gaussian(rng, m, d) * 10.0 ** rng.integers(-6, 7, size=(m, 1, 1))
    stack[0] *= m == 1
    return stack


STACKS = {
    "gaussian": gaussian,
    "positive": positive,
    "negative": lambda rng, m, d: -positive(rng, m, d),
    "rank one": rank_one,
    "zero": lambda rng, m, d: np.zeros((m, d, d)),
    "duplicated": duplicated,
    "sum to zero": sum_to_zero,
    "near ties": near_ties,
    "unequal": unequal,
    "identity": lambda rng, m, d: rng.standard_normal((m, 1, 1)) * np.eye(d),
    "diagonal": lambda rng, m, d: rng.integers(-2, 3, size=(m, d, 1)) * np.eye(d),
    "tiny": lambda rng, m, d: 1e-12 * gaussian(rng, m, d),
    "huge": lambda rng, m, d: 1e12 * gaussian(rng, m, d),
}
every_kind = pytest.mark.parametrize("kind", STACKS)


def draw(kind, seed, shape):
    rng = np.random.default_rng(seed)
    stack = STACKS[kind](rng, *shape)
    return rng, 0.5 * (stack + stack.transpose(0, 2, 1))


# References


def attained(stack, H, p):
    """||q(h)||_p / ||h||^2 in extended precision, for the rows of H: values that the maximum cannot be below."""
    stack, H = np.asarray(stack, dtype=np.longdouble), np.asarray(H, dtype=np.longdouble)
    return norms(np.einsum("kj,cjl,kl->kc", H, stack, H), p) / np.sum(H * H, axis=1)


def norms(Q, p):
    if p == 1:
        return np.abs(Q).sum(axis=1)
    return np.abs(Q).max(axis=1) if p == np.inf else np.sqrt(np.sum(Q * Q, axis=1))


def spectral(matrix):
    return float(np.abs(np.linalg.eigvalsh(matrix)).max())


def slow_maximum(stack):
    """The maximum for p = 1: over all signs, with both signs of the first output, one matrix at a time."""
    return max(
        spectral(sum(s * matrix for s, matrix in zip(signs, stack, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(stack))
    )


def good_vectors(rng, stack, p):
    """Vectors of large ||q(h)||_p: random ones, and the eigenvectors of matrices sum_c w_c Gamma_c of many w."""
    m, d = stack.shape[:2]
    W = [*np.eye(m), *rng.standard_normal((10, m))]
    if p == 1:
        signs = np.array(list(itertools.islice(itertools.product((1.0, -1.0), repeat=m), 64)))
        W += [*signs]
    H = [rng.standard_normal((20, d))]
    H += [np.linalg.eigh(np.einsum("c,cjk->jk", w, stack))[1].T for w in W]
    H = np.vstack(H)
    best = H[np.argsort(attained(stack, H, p))[-5:]]
    return np.vstack([H, *(climb(stack, h, p) for h in best)])


def climb(stack, h, p, steps=10):
    """A plain ascent from one vector: the points that it passes."""
    path = []
    for _ in range(steps):
        q = np.einsum("j,cjk,k->c", h, stack, h)
        w = np.sign(q) if p == 1 else q if p == 2 else q * (np.abs(q) == np.abs(q).max())
        values, vectors = np.linalg.eigh(np.einsum("c,cjk->jk", w, stack))
        h = vectors[:, np.argmax(np.abs(values))]
        path.append(h)
    return np.array(path)


# Bounds


@every_kind
@every_p
@varied
@given(seed=seeds, shape=shapes)
def test_no_attained_value_exceeds_the_bound(kind, p, seed, shape):
    """Without a tolerance: the bound is a proof, and the values are attained."""
    rng, stack = draw(kind, seed, shape)
    bound = DenseStack(stack).bound(p)
    assert np.isfinite(bound)
    assert attained(stack, good_vectors(rng, stack, p), p).max() <= bound


@every_kind
@every_p
@varied
@given(seed=seeds, shape=shapes)
def test_the_bound_is_never_looser_than_the_papers_factor(kind, p, seed, shape):
    """At most m^(1/p) times the maximum for p = inf (section 4), which is exact."""
    _, stack = draw(kind, seed, shape)
    largest = max(spectral(matrix) for matrix in stack)
    factor = 1.0 if p == np.inf else shape[0] ** (1 / p)
    assert DenseStack(stack).bound(p) <= factor * largest * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["duplicated", "identity", "diagonal", "positive"])
@varied
@given(seed=seeds, shape=shapes)
def test_the_bound_is_exact_for_p_1_where_the_moduli_add_up(kind, seed, shape):
    """For semidefinite, commuting or proportional matrices h' |Gamma| h = |h' Gamma h| at a common maximiser."""
    _, stack = draw(kind, seed, shape)
    if kind == "diagonal":
        stack = np.abs(stack)
    np.testing.assert_allclose(DenseStack(stack).bound(1.0), slow_maximum(stack), rtol=1e-13)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_bound_is_exact_for_p_2_on_an_orthonormal_basis(d):
    """Of the symmetric matrices, m = d (d + 1) / 2: then ||q(h)||_2 = ||h h'||_F = 1 for every unit h."""
    pairs = list(itertools.combinations_with_replacement(range(d), 2))
    basis = np.zeros((len(pairs), d, d))
    for c, (j, k) in enumerate(pairs):
        basis[c, j, k] = basis[c, k, j] = 1.0 if j == k else np.sqrt(0.5)
    rotation, _ = np.linalg.qr(np.random.default_rng(d).standard_normal((len(pairs),) * 2))
    for stack in (basis, np.einsum("ce,ejk->cjk", rotation, basis)):
        np.testing.assert_allclose(DenseStack(stack).bound(2.0), 1.0, rtol=1e-13)


@every_kind
@varied
@given(seed=seeds, shape=st.sampled_from([*SHAPES, (12, 2), (20, 3)]))
def test_bounds_are_ordered_like_the_norms(kind, seed, shape):
    """||q||_1 <= sqrt(m) ||q||_2: the bound for p = 1 must not be worse than what that for p = 2 gives."""
    _, stack = draw(kind, seed, shape)
    assert DenseStack(stack).bound(1.0) <= np.sqrt(shape[0]) * DenseStack(stack).bound(2.0) * (1 + 1e-12)


@every_kind
@every_p
@pytest.mark.parametrize("scale", [2.0**-40, 2.0**40])
def test_the_bound_scales_with_the_stack(kind, p, scale):
    _, stack = draw(kind, 0, (3, 5))
    np.testing.assert_allclose(DenseStack(scale * stack).bound(p), scale * DenseStack(stack).bound(p), rtol=1e-13)


@every_p
def test_the_bound_counts_the_errors_of_forming_the_matrices(p):
    """Errors of spectral norm e_c raise ||q||_p by up to ||e||_p, and do so for matrices proportional to e."""
    e = np.array([0.5, 0.25, 1.0])
    assert DenseStack(np.zeros((3, 4, 4)), error=e).bound(p) >= norms(e[None], p)[0]
    assert DenseStack(np.zeros((3, 4, 4)), error=e).bound(p) <= norms(e[None], p)[0] * (1 + 1e-14)
    stack = np.ones((3, 1, 1))
    np.testing.assert_allclose(DenseStack(stack, error=e).bound(p), norms((1 + e)[None], p)[0], rtol=0.05)
    assert DenseStack(stack, error=e).bound(p) >= norms((1 + e)[None], p)[0]


# Enumeration of signs


@every_kind
@pytest.mark.parametrize("chunk", [1, 3, 512])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=seeds, shape=shapes)
def test_enumeration_equals_a_slow_loop(kind, chunk, seed, shape):
    _, stack = draw(kind, seed, shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sphere.enumeration, "_CHUNK", chunk)
        h, bound = enumerate_signs(DenseStack(stack))
    expected, size = slow_maximum(stack), sum(spectral(matrix) for matrix in stack)
    np.testing.assert_allclose(attained(stack, h[None], 1)[0].astype(float), expected, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(bound, expected, rtol=0, atol=1e-13 * size)


@every_kind
@varied
@given(seed=seeds, shape=shapes)
def test_no_attained_value_exceeds_the_enumerated_bound(kind, seed, shape):
    rng, stack = draw(kind, seed, shape)
    h, bound = enumerate_signs(DenseStack(stack))
    assert attained(stack, np.vstack([h[None], good_vectors(rng, stack, 1)]), 1).max() <= bound


@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=seeds, shape=st.sampled_from([(2, 3), (4, 3), (6, 2)]), kind=st.sampled_from(["gaussian", "sum to zero"]))
def test_enumeration_equals_refinement_from_many_random_starts(seed, shape, kind):
    rng, stack = draw(kind, seed, shape)
    starts = rng.standard_normal((300, shape[1]))
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    H, values = refine(DenseStack(stack), starts, 1, tol=1e-14)
    _, bound = enumerate_signs(DenseStack(stack))
    assert attained(stack, H, 1).max() <= bound
    np.testing.assert_allclose(values.max(), bound, rtol=1e-9)


def test_enumeration_crosses_chunks_of_signs():
    """2^10 sign vectors are two chunks; the second holds those whose last sign is -1."""
    stack = np.ones((11, 2, 2)) * np.where(np.arange(11) == 10, -1.0, 1.0)[:, None, None]
    h, bound = enumerate_signs(DenseStack(stack))
    np.testing.assert_allclose(np.abs(h), np.sqrt(0.5), rtol=1e-14)
    np.testing.assert_allclose(bound, 22.0, rtol=1e-13)


@pytest.mark.parametrize("m", [sphere.MAX_ENUMERATED + 1, 26])
def test_enumeration_refuses_many_outputs(m):
    stack = np.ones((m, 1, 1))
    message = rf"refused above m = 20 outputs, got m = {m}; use method='refine'"
    with pytest.raises(ValueError, match=message):
        enumerate_signs(DenseStack(stack))
    with pytest.raises(ValueError, match=message):
        basis_oracle("l1/linf", "enumerate")(stack)


# Refinement


@every_p
@varied
@given(seed=seeds, m=st.sampled_from([1, 2, 5]))
def test_dual_vectors_attain_the_norm(p, seed, m):
    Q = np.random.default_rng(seed).standard_normal((6, m))
    Q[0] = 0.0
    Q[1] = np.round(Q[1])
    W = sphere.refinement.dual_vectors(Q, p)
    dual = {1.0: np.inf, 2.0: 2.0, np.inf: 1.0}[p]
    np.testing.assert_allclose(norms(W, dual), 1.0, rtol=1e-15)
    np.testing.assert_allclose(np.sum(W * Q, axis=1), norms(Q, p), rtol=1e-14, atol=0)


@every_kind
@every_p
@varied
@given(seed=seeds, shape=shapes)
def test_refinement_is_monotone(kind, p, seed, shape):
    """More ascents never lower a value, none falls below its start, and values are those of the vectors."""
    rng, stack = draw(kind, seed, shape)
    starts = rng.standard_normal((4, shape[1]))
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    before = DenseStack(stack).forms(starts)
    before = norms(before, p)
    for max_iter in (0, 1, 2, 5, 20):
        H, values = refine(DenseStack(stack), starts, p, tol=1e-15, max_iter=max_iter)
        assert (values >= before).all()
        np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0, rtol=1e-14)
        size = 1e-14 * np.abs(stack).sum(axis=(1, 2)).sum()
        np.testing.assert_allclose(values, attained(stack, H, p).astype(float), rtol=0, atol=size)
        before = values


@every_p
@pytest.mark.parametrize("kind", ["gaussian", "sum to zero", "near ties", "positive"])
def test_refinement_finds_the_maximum_in_the_plane(kind, p):
    """In two dimensions a fine grid of angles is a brute-force search."""
    angles = np.linspace(0, np.pi, 3001)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for seed in range(5):
        _, stack = draw(kind, seed, (3, 2))
        grid = attained(stack, circle, p).max()
        _, values = refine(DenseStack(stack), circle[::100], p, tol=1e-15, max_iter=1000)
        # The grid's spacing costs at most (pi / 6000)^2 of the spread of the eigenvalues.
        assert grid * (1 - 1e-9) <= values.max() <= grid + 1e-6 * np.abs(stack).sum()


# Extreme eigenvectors


def low_rank(rng, m, d):
    """Ranks 0, 1, 2, ... side by side: the Krylov spaces end at different steps."""
    factors = [rng.standard_normal((d, min(c, d))) for c in range(m)]
    return np.stack([(F * rng.choice([-1.0, 1.0], size=F.shape[1])) @ F.T for F in factors])


@pytest.mark.parametrize("kind", [*STACKS, "low rank"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (5, 6), (4, 40)])
def test_lanczos_equals_eigh(monkeypatch, kind, shape):
    monkeypatch.setitem(STACKS, "low rank", low_rank)
    for seed in range(3):
        _, stack = draw(kind, seed, shape)
        m, d = shape
        H = lanczos(DenseStack(stack), np.eye(m), sphere.eigenvectors.lanczos_start(m, d), tol=1e-10)
        np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0, rtol=1e-14)
        values = np.abs(np.einsum("cj,cjk,ck->c", H, stack, H))
        np.testing.assert_allclose(values, [spectral(matrix) for matrix in stack], rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("dense", [True, False])
def test_dominant_eigenvectors_of_combinations(dense):
    """Row r of W asks for sum_c W_rc Gamma_c; also with more rows than outputs."""
    rng = np.random.default_rng(0)
    forms, X, G = draw_forms("homogeneous", "dense", 0, n=20, d=6, m=3)
    W, start = rng.standard_normal((7, 3)), rng.standard_normal((7, 6))
    H = sphere.dominant_eigenvectors(forms.dense() if dense else forms, W, start, tol=1e-12)
    for h, w in zip(H, W, strict=True):
        matrix = np.einsum("i,ij,ik->jk", G @ w, X, X)
        theta = h @ matrix @ h
        np.testing.assert_allclose(abs(theta), spectral(matrix), rtol=1e-10)
        np.testing.assert_allclose(matrix @ h, theta * h, rtol=0, atol=1e-7 * abs(theta))


@pytest.mark.parametrize("max_steps", [1, 2, 5, 20])
@pytest.mark.parametrize("kind", STACKS)
def test_lanczos_never_falls_below_its_start(kind, max_steps):
    """The start lies in the Krylov space; and no vector exceeds the largest eigenvalue."""
    rng, stack = draw(kind, 1, (4, 30))
    start = rng.standard_normal((4, 30))
    H = lanczos(DenseStack(stack), np.eye(4), start, max_steps=max_steps)
    for matrix, h, h0 in zip(stack, H, start, strict=True):
        largest = spectral(matrix)
        assert abs(h @ matrix @ h) >= abs(h0 @ matrix @ h0) / (h0 @ h0) - 1e-13 * largest
        assert abs(h @ matrix @ h) <= largest * (1 + 1e-13)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_lanczos_stops_at_a_small_residual(tol):
    """With a gap in the spectrum fewer steps than dimensions are enough."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((120, 120)))
    stack = ((Q * np.r_[-3.0, np.linspace(-1, 2, 119)]) @ Q.T)[None]
    h = lanczos(
        DenseStack(0.5 * (stack + stack.transpose(0, 2, 1))),
        np.eye(1),
        sphere.eigenvectors.lanczos_start(1, 120),
        tol=tol,
    )[0]
    theta = h @ stack[0] @ h
    assert np.linalg.norm(stack[0] @ h - theta * h) <= 1.01 * tol * abs(theta)
    assert abs(theta) >= 3.0 * (1 - tol)


# Forms of a gradient, matrix-free


DATA = {
    "dense": lambda rng, n, d: rng.standard_normal((n, d)),
    "positive": lambda rng, n, d: rng.random((n, d)),
    "one-hot": lambda rng, n, d: np.eye(d)[rng.integers(d, size=n)],
    "two-hot": lambda rng, n, d: np.eye(d)[rng.integers(d, size=n)] + np.eye(d)[rng.integers(d, size=n)],
    "empty columns": lambda rng, n, d: rng.standard_normal((n, d)) * (np.arange(d) % 3 == 0),
    "zero": lambda rng, n, d: np.zeros((n, d)),
    "unequal": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.integers(-4, 5, size=d),
    # Half the samples take back what the others give: the rounding errors are larger than what is left.
    "cancelling": lambda rng, n, d: np.repeat(rng.standard_normal((n, d)), 2, axis=0)[:n],
}
every_data = pytest.mark.parametrize("data", DATA)
every_kernel = pytest.mark.parametrize("kernel", sorted(KERNELS))


def draw_forms(kernel, data, seed, n=10, d=4, m=3, *, sparsely=False, ones=0):
    """The forms, the explicit data and the gradient of a random problem."""
    rng = np.random.default_rng(seed)
    X, G = DATA[data](rng, n, d), rng.standard_normal((n, m))
    if data == "cancelling":
        G[1::2] = -G[: n - 1 : 2]
    design = make_design(sparse.csr_array(X) if sparsely else X, ones)
    return GradientForms(KERNELS[kernel], design, G), np.hstack([np.ones((n, ones)), X]), G


def attained_by_forms(kernel, X, G, H, p):
    """The same as ``attained``, from the data in extended precision; no matrix is formed."""
    X, G, H = (np.asarray(A, dtype=np.longdouble) for A in (X, G, H))
    P = np.einsum("ij,kj->ik", X, H)
    K = P * P if kernel == "homogeneous" else (P * P - np.einsum("ij,kj->ik", X * X, H * H)) / 2
    return norms(np.einsum("ik,ic->kc", K, G), p) / np.sum(H * H, axis=1)


@every_kernel
@every_data
@every_p
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=seeds,
    sparsely=st.booleans(),
    ones=st.integers(0, 2),
    sizes=st.sampled_from([(1, 1, 1), (10, 4, 3), (8, 9, 2)]),
)
def test_no_attained_value_exceeds_the_bounds_of_forms(kernel, data, p, seed, sparsely, ones, sizes):
    """Matrix-free, dense and enumerated: all three prove a bound for the data, not for the rounded matrices."""
    forms, X, G = draw_forms(kernel, data, seed, *sizes, sparsely=sparsely, ones=ones)
    dense = forms.dense()
    H = good_vectors(np.random.default_rng(seed), dense.matrices, p)
    largest = attained_by_forms(kernel, X, G, H, p).max()
    assert largest <= forms.bound(p)
    assert largest <= dense.bound(p)
    if p == 1:
        assert largest <= enumerate_signs(dense)[1]


@every_kernel
@every_data
@varied
@given(seed=seeds, sparsely=st.booleans())
def test_matrix_free_bound_exceeds_the_dense_exact_optimum(kernel, data, seed, sparsely):
    forms, _, _ = draw_forms(kernel, data, seed, sparsely=sparsely)
    stack = forms.dense().matrices
    assert forms.bound(np.inf) >= max(spectral(matrix) for matrix in stack) * (1 - 1e-14)
    assert forms.bound(1.0) >= slow_maximum(stack) * (1 - 1e-14)


@every_kernel
@every_data
@every_p
def test_matrix_free_bound_is_at_most_its_first_step(kernel, data, p):
    """The largest row sum of the matrix A of |x_i| and weights ||G_i||_p, plus the allowance for rounding."""
    for seed in range(5):
        forms, X, G = draw_forms(kernel, data, seed)
        A = majorant(kernel, X, G, p)
        assert spectral(A) * (1 - 1e-14) <= forms.collatz_bound(p)
        assert forms.bound(p) <= forms.collatz_bound(p)
        assert forms.collatz_bound(p) <= A.sum(axis=1).max() + 1e-11 * np.sum(norms(G, p)[:, None] * X**2)


@every_kernel
@every_p
@pytest.mark.parametrize("data", ["positive", "dense"])
def test_matrix_free_bound_is_close_to_the_perron_value(kernel, data, p):
    for seed in range(5):
        forms, X, G = draw_forms(kernel, data, seed, n=30, d=8)
        np.testing.assert_allclose(forms.collatz_bound(p), spectral(majorant(kernel, X, G, p)), rtol=1e-3)


def majorant(kernel, X, G, p):
    A = np.einsum("i,ij,ik->jk", norms(G, p), np.abs(X), np.abs(X))
    return A if kernel == "homogeneous" else 0.5 * (A - np.diag(np.diag(A)))


@every_kernel
@pytest.mark.parametrize("data", ["dense", "positive", "two-hot", "empty columns"])
@pytest.mark.parametrize("sparsely", [False, True])
def test_matrix_free_lanczos_and_refinement_equal_dense_ones(kernel, data, sparsely):
    for seed in range(3):
        forms, _, _ = draw_forms(kernel, data, seed, n=30, d=8, sparsely=sparsely)
        dense, start = forms.dense(), sphere.eigenvectors.lanczos_start(3, 8)
        size = 1e-9 * np.abs(dense.matrices).sum()
        free, full = (lanczos(stack, np.eye(3), start, tol=1e-12) for stack in (forms, dense))
        values = [np.abs(np.diag(dense.forms(H))) for H in (free, full)]
        np.testing.assert_allclose(*values, rtol=0, atol=size)
        for p in (1, 2, np.inf):
            refined, values = refine(forms, free, p, tol=1e-12)
            assert (values >= norms(forms.forms(free), p)).all()
            np.testing.assert_allclose(values, norms(dense.forms(refined), p), rtol=0, atol=size)


# The oracle


CHOICES = [
    (norm, method) for norm in NORM_NAMES for method in METHODS if method != "enumerate" or NORMS[norm].exponent == 1
]
every_choice = pytest.mark.parametrize(("norm", "method"), CHOICES)


def check_answer(answer, reference):
    """What every answer must satisfy; ``reference`` gives the values of vectors in extended precision."""
    H, values = answer.basis, answer.values
    np.testing.assert_allclose(np.linalg.norm(H, axis=1), 1.0, rtol=1e-13)
    assert H.shape[0] == len(values) >= 1
    assert (np.diff(values) <= 0).all()
    assert (np.abs(H @ H.T - np.diag(np.sum(H * H, axis=1))) < 0.98).all()
    assert values[0] <= answer.bound
    assert reference(H).max() <= answer.bound
    assert type(answer.certified) is bool
    assert answer.certified == (answer.bound <= values[0] * (1 + 1e-6))


@every_choice
@every_kind
@settings(max_examples=12, deadline=None, derandomize=True)
@given(seed=seeds, shape=shapes)
def test_answers_of_the_oracle(norm, method, kind, seed, shape):
    rng, stack = draw(kind, seed, shape)
    p = NORMS[norm].exponent
    answer = basis_oracle(norm, method)(stack)
    check_answer(answer, lambda H: attained(stack, H, p))
    assert basis_oracle(norm, method).bound(stack) == answer.bound
    size = np.abs(stack).sum()
    expected = attained(stack, answer.basis, p).astype(float)
    np.testing.assert_allclose(answer.values, expected, rtol=0, atol=1e-14 * size)
    assert attained(stack, good_vectors(rng, stack, p), p).max() <= answer.bound
    largest = max(spectral(matrix) for matrix in stack)
    # The paper's factor: the value is at least the l1 optimum, so at least m^(-1/p) times the bound.
    slack = 1e-6 if method == "power" else 1e-14
    assert answer.values[0] >= largest * (1 - slack)
    assert answer.values[0] * (1 + 2e-6) >= answer.bound * (1.0 if p == np.inf else shape[0] ** (-1 / p))
    if p == np.inf or shape[0] == 1:
        np.testing.assert_allclose(answer.values[0], largest, rtol=1e-6 if method == "power" else 1e-13)
        assert answer.certified or method == "power"
    if p == 1 and method in ("enumerate", "exact", "auto"):
        np.testing.assert_allclose(answer.values[0], slow_maximum(stack), rtol=1e-13)
        assert answer.certified


@pytest.mark.parametrize("norm", ["l1/l2", "l1/linf"])
@every_kind
@settings(max_examples=12, deadline=None, derandomize=True)
@given(seed=seeds, shape=shapes)
def test_refined_values_are_never_below_their_starts(norm, kind, seed, shape):
    _, stack = draw(kind, seed, shape)
    starts, refined = (basis_oracle(norm, method)(stack).values[0] for method in ("eigh", "refine"))
    assert refined >= starts * (1 - 1e-14)


@pytest.mark.parametrize("norm", ["l1/l2", "l1/linf"])
@pytest.mark.parametrize("kind", ["gaussian", "sum to zero"])
def test_refined_values_reach_a_plain_ascent_from_every_output(norm, kind):
    p, gained, ahead = NORMS[norm].exponent, [], []
    for seed in range(10):
        _, stack = draw(kind, seed, (5, 8))
        starts = [np.linalg.eigh(matrix) for matrix in stack]
        starts = [vectors[:, np.argmax(np.abs(values))] for values, vectors in starts]
        ends = np.vstack([climb(stack, h, p, steps=300)[-1] for h in starts])
        best = attained(stack, ends, p).max()
        found = basis_oracle(norm, "refine", tol=1e-12)(stack).values[0]
        assert found >= best * (1 - 1e-7)
        ahead.append(found / best)
        gained.append(best / attained(stack, np.array(starts), p).max())
    # And it was worth the while: the starts themselves are clearly worse.
    assert np.median(gained) > 1.02
    # More starts find more, where the maxima are many.
    assert max(ahead) > 1.01 or p == 2


@every_choice
@every_kernel
@pytest.mark.parametrize("dense_limit", [0, 500])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=seeds, data=st.sampled_from(sorted(DATA)), sparsely=st.booleans())
def test_answers_of_the_oracle_on_forms(norm, method, kernel, dense_limit, seed, data, sparsely):
    """Above the limit everything is matrix-free; what needs matrices says so."""
    forms, X, G = draw_forms(kernel, data, seed, n=12, d=5, sparsely=sparsely)
    p, oracle = NORMS[norm].exponent, basis_oracle(norm, method)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oracles, "DENSE_LIMIT", dense_limit)
        too_large = dense_limit == 0 and (method in ("eigh", "enumerate") or (method == "exact" and seed % 2 == 1))
        if too_large:
            patch.setattr(oracles, "CHOLESKY_LIMIT", 4)
            with pytest.raises(
                ValueError, match=rf"method='{method}' forms d x d matrices .* got d = 5; use method='power'"
            ):
                oracle(forms)
            return
        if dense_limit == 0 or method == "power":
            patch.delattr(GradientForms, "dense")
        answer = oracle(forms)
        assert (
            basis_oracle(norm, method).bound(forms, patience=0.0)
            == basis_oracle(norm, method)(forms, patience=0.0).bound
        )
    check_answer(answer, lambda H: attained_by_forms(kernel, X, G, H, p))
    size = 1e-14 * len(X) * np.sum(np.abs(G)) * np.sum(X**2)
    expected = attained_by_forms(kernel, X, G, answer.basis, p).astype(float)
    np.testing.assert_allclose(answer.values, expected, rtol=0, atol=size)
    largest = max(spectral(matrix) for matrix in forms.dense().matrices)
    assert answer.values[0] >= largest * (1 - 1e-6) - size


@every_choice
def test_the_oracle_is_deterministic_and_leaves_its_input_and_the_global_state_alone(norm, method):
    stack = gaussian(np.random.default_rng(0), 4, 6)
    stack.setflags(write=False)
    forms, _, _ = draw_forms("anova", "dense", 0)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for given_stack in (stack, forms):
        first, second = (basis_oracle(norm, method)(given_stack) for _ in range(2))
        np.testing.assert_array_equal(first.basis, second.basis)
        np.testing.assert_array_equal(first.values, second.values)
        assert first.bound == second.bound
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@every_choice
def test_the_order_of_the_samples_does_not_matter(norm, method):
    forms, X, G = draw_forms("homogeneous", "dense", 0, n=30)
    order = np.random.default_rng(1).permutation(30)
    other = GradientForms(forms.kernel, make_design(X[order]), G[order])
    first, second = (basis_oracle(norm, method)(each) for each in (forms, other))
    np.testing.assert_allclose(first.values, second.values, rtol=1e-10)
    np.testing.assert_allclose(first.bound, second.bound, rtol=1e-12)


@every_norm
def test_the_oracle_takes_names_norms_lists_and_stacks(norm):
    stack = gaussian(np.random.default_rng(0), 3, 4)
    answers = [
        basis_oracle(name, "refine")(each)
        for name in (norm, get_norm(norm))
        for each in (stack, stack.tolist(), DenseStack(stack))
    ]
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.values, answers[0].values)
        assert answer.bound == answers[0].bound


@every_norm
def test_the_oracle_uses_the_symmetric_part(norm):
    """Asymmetry of the size of rounding errors is accepted, and does not enter h' Gamma h."""
    rng = np.random.default_rng(0)
    stack = gaussian(rng, 3, 4)
    noise = 1e-10 * rng.standard_normal(stack.shape)
    answer = basis_oracle(norm)(stack + noise - noise.transpose(0, 2, 1))
    np.testing.assert_allclose(answer.values, basis_oracle(norm)(stack).values, rtol=1e-12)


BAD_STACKS = {
    "one matrix": (np.eye(3), "Gamma must have shape (m, d, d) with m, d >= 1, got (3, 3)"),
    "not square": (np.ones((2, 3, 4)), "Gamma must have shape (m, d, d) with m, d >= 1, got (2, 3, 4)"),
    "no outputs": (np.ones((0, 3, 3)), "Gamma must have shape (m, d, d) with m, d >= 1, got (0, 3, 3)"),
    "no features": (np.ones((2, 0, 0)), "Gamma must have shape (m, d, d) with m, d >= 1, got (2, 0, 0)"),
    "NaN": (np.full((1, 2, 2), np.nan), "Gamma contains NaN or infinity"),
    "inf": (np.full((1, 2, 2), np.inf), "Gamma contains NaN or infinity"),
    "asymmetric": (np.array([[[1.0, 2.0], [3.0, 4.0]]]), "Gamma must be symmetric in its last two axes; symmetrise"),
    "slightly asymmetric": (
        np.array([[[1.0, 1.0], [1.0 + 1e-6, 1.0]]]),
        "Gamma must be symmetric in its last two axes",
    ),
    "tiny and asymmetric": (1e-12 * np.array([[[1.0, 2.0], [3.0, 4.0]]]), "Gamma must be symmetric"),
}


@pytest.mark.parametrize("case", BAD_STACKS)
@every_norm
def test_the_oracle_says_what_is_wrong_with_a_stack(norm, case):
    stack, message = BAD_STACKS[case]
    with pytest.raises(ValueError) as raised:
        basis_oracle(norm)(stack)
    assert message in str(raised.value)


def test_basis_oracle_refuses_arguments():
    with pytest.raises(ValueError, match="norm must be one of 'l1', 'l1/l2', 'l1/linf', got 'l2'"):
        basis_oracle("l2")
    with pytest.raises(ValueError, match=r"method must be one of 'auto', 'power', .*, got 'best'"):
        basis_oracle("l1", "best")
    for norm in ("l1", "l1/l2"):
        with pytest.raises(ValueError, match=f"method='enumerate' is for the norm 'l1/linf' only, got norm='{norm}'"):
            basis_oracle(norm, "enumerate")
    for tol in (0, 1, -1e-6, np.nan, 2.0):
        with pytest.raises(ValueError, match=r"tol must lie in \(0, 1\), got"):
            basis_oracle("l1", tol=tol)


@pytest.mark.parametrize("method", ["power", "eigh", "auto"])
@pytest.mark.parametrize("scale", [1e-60, 1e-78, 1e-100, 1e-150])
def test_small_data_do_not_make_the_bound_zero(method, scale):
    """Products of fourth order underflow where those of second order, which are the problem's, do not."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (40, 3))
    unit = 2.0 ** round(math.log2(scale))
    problem, tiny = (mopn.NetworkProblem(c * X, X[:, 0] * X[:, 1] > 0, norm="l1", strength=c**2) for c in (1.0, unit))
    bound, small = (p.bound(p.residual(p.start()), method) for p in (problem, tiny))
    assert small == pytest.approx(unit**2 * bound, rel=1e-9)
    forms = tiny._forms(tiny.residual(tiny.start()))
    assert min(forms.gram_bound(2), forms.collatz_bound(2)) >= unit**2 * problem.bound(
        problem.residual(problem.start())
    )


def test_rows_far_smaller_than_others_keep_their_bounds():
    X, G = np.diag([1.0, 1e-60]), np.array([[0.0, 0.0], [1.0, -1.0]])
    forms = GradientForms(KERNELS["homogeneous"], make_design(X), G)
    assert min(forms.gram_bound(math.inf), forms.collatz_bound(math.inf)) >= 1e-120
    X[1, 1] = 1e-120
    forms = GradientForms(KERNELS["homogeneous"], make_design(X), G)
    assert forms.bound(math.inf) >= 1e-240
    assert GradientForms(KERNELS["homogeneous"], make_design(X), 0 * G).bound(2) == 0.0

"""Stacks Gamma (m, d, d) of symmetric matrices of many kinds, and slow references for max ||q(h)||_p on the sphere."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st
from properties import seeds, tried

from mopn.solvers.sphere import DenseStack, refine

SHAPES = [(1, 1), (4, 1), (1, 4), (2, 2), (3, 5), (6, 3), (5, 8)]

every_p = pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
varied = partial(tried, 30, seed=seeds)
shapes = st.sampled_from(SHAPES)


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


def decaying(rng, m, d, rate):
    """A stack whose principal directions, in no special position, fall by a rate from one to the next."""
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    sizes = rate ** np.arange(d)
    return Q @ symmetric(rng.standard_normal((m, d, d)) * sizes[:, None] * sizes) @ Q.T


def hostile(rng, m, d):
    """Stacks that compression finds hard, or that rounding does: slow decay, equal matrices, a tiny rest, near ties."""
    yield decaying(rng, m, d, 1.0)
    yield decaying(rng, m, d, 0.97)
    yield np.repeat(decaying(rng, 1, d, 0.8), m, axis=0)
    yield decaying(rng, m, d, 0.1)
    yield near_ties(rng, m, d)
    # The best vector lies among the last directions: many small outputs add up there.
    last = np.zeros((m, d, d))
    last[:, -1, -1] = 1.0
    last[0, 0, 0] = 0.999 * np.sqrt(m)
    yield last


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


def symmetric(stack):
    return 0.5 * (stack + stack.transpose(0, 2, 1))


def draw(kind, seed, shape):
    """Return the generator after the draw, and a stack of one kind and shape."""
    rng = np.random.default_rng(seed)
    return rng, symmetric(STACKS[kind](rng, *shape))


def draw_small(kind, rng):
    """Return a stack of one kind with up to 7 outputs and up to 5 features, both at random."""
    m, d = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    return symmetric(STACKS[kind](rng, m, d))


def unit_vectors(rng, k, d):
    H = rng.standard_normal((k, d))
    return H / np.linalg.norm(H, axis=1, keepdims=True)


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
    """The maximum for p = 1: over all signs, with both signs of the first output."""
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(stack))))
    return float(np.abs(np.linalg.eigvalsh(np.tensordot(signs, stack, axes=1))).max())


def best_of_many(stack, p, rng, starts=200):
    """A lower bound of the maximum: the best of many refined random starts."""
    return refine(DenseStack(stack), unit_vectors(rng, starts, stack.shape[1]), p)[1].max()


def good_vectors(rng, stack, p):
    """Vectors of large ||q(h)||_p: random ones, and the eigenvectors of matrices sum_c w_c Gamma_c of many w."""
    m, d = stack.shape[:2]
    W = [np.eye(m), rng.standard_normal((10, m))]
    if p == 1:
        W.append(np.array(list(itertools.islice(itertools.product((1.0, -1.0), repeat=m), 64))))
    _, vectors = np.linalg.eigh(np.tensordot(np.vstack(W), stack, axes=1))
    H = np.vstack([rng.standard_normal((20, d)), vectors.transpose(0, 2, 1).reshape(-1, d)])
    best = H[np.argsort(attained(stack, H, p))[-5:]]
    return np.vstack([H, *climb(stack, best, p)])


def climb(stack, H, p, steps=10):
    """Plain ascents from the rows of H (k, d): the points that they pass, a list of (k, d)."""
    path = []
    for _ in range(steps):
        Q = np.einsum("kj,cjl,kl->kc", H, stack, H)
        largest = np.abs(Q) == np.abs(Q).max(axis=1, keepdims=True)
        W = np.sign(Q) if p == 1 else Q if p == 2 else Q * largest
        values, vectors = np.linalg.eigh(np.tensordot(W, stack, axes=1))
        H = vectors[np.arange(len(H)), :, np.abs(values).argmax(axis=1)]
        path.append(H)
    return path

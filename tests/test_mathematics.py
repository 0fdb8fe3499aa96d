"""The companion of docs/mathematics.md: statements that no other test has."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest
from stacks import gaussian

import mopn
from mopn.losses.losses import LOSSES
from mopn.solvers.sphere import DenseStack, refine
from mopn.solvers.sphere.bounds import upper_bound
from mopn.solvers.sphere.branch_signs import majorants
from mopn.solvers.sphere.lifting import lifting
from mopn.solvers.sphere.search import RULES
from mopn.solvers.sphere.sum_of_squares import Quartic

RNG = np.random.default_rng


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_twice_the_diagonal_majorises_the_hessian(name):
    """Section 9: the statements behind the preconditioner of the output layer."""
    loss, m, rng = LOSSES[name], 5, RNG(0)
    y = rng.integers(0, m, 30) if loss.targets == "labels" else rng.choice((-1.0, 1.0), (30, m))
    y = np.maximum(y, 0.0) if loss.targets == "counts" else y
    hessian = loss.hessian(y, 2.0 * rng.standard_normal((30, m)))
    columns = [hessian.product(np.tile(e, (30, 1))) for e in np.eye(m)]
    for H, diagonal in zip(np.stack(columns, axis=2), hessian.diagonal, strict=True):
        assert np.linalg.eigvalsh(2.0 * np.diag(diagonal) - H)[0] >= -1e-12


def test_every_rule_of_a_plan_names_sections_of_its_proof():
    text = Path(__file__).parents[1].joinpath("docs", "mathematics.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^### (6\.\d+) ", text, re.MULTILINE))
    for rule in RULES:
        assert headings.issuperset(rule.section.split(", ")), rule.proof


def test_two_opposite_forms_are_bounded_exactly():
    """Section 6.3: gradients of two classes are such, and one rotated form vanishes."""
    A = gaussian(RNG(1), 1, 6)
    exact = math.sqrt(2.0) * np.abs(np.linalg.eigvalsh(A)).max()
    assert upper_bound(DenseStack(np.concatenate([A, -A])), 2) == pytest.approx(exact, rel=1e-11)


def test_the_family_is_one_such_form():
    """Section 6.3: X -> sum Gamma X Gamma has the symmetric part of T."""
    A, lift = gaussian(RNG(3), 4, 5), lifting(5)
    basis = lift.unfolded(np.eye(lift.dimension))
    S = lift.vectors(np.einsum("cij,ajk,ckl->ail", A, basis, A)).T
    T = Quartic(DenseStack(A)).matrix
    np.testing.assert_allclose(lift.symmetrised(S), lift.symmetrised(T), atol=1e-11 * np.abs(T).max())


def test_majorants_against_their_dual():
    """Section 6.2: sums of nuclear norms bound lambda_max of every sum of majorants from below; steps approach that."""
    rng = RNG(5)
    A = gaussian(rng, 4, 5)
    stack = DenseStack(A)
    plain, found = (float(np.linalg.eigvalsh(M.sum(axis=0))[-1]) for M in (stack.moduli, majorants(stack)[0]))
    X, lower = np.eye(5) / 5, []
    for _ in range(100):
        values, vectors = np.linalg.eigh(X)
        P = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        values, vectors = np.linalg.eigh(P @ A @ P)
        lower.append(float(np.abs(values).sum()))
        R = np.einsum("cij,cj,ckj->ik", vectors, np.abs(values), vectors)
        X = R / np.trace(R)
    assert np.all(np.diff(lower) >= -1e-10)
    assert max(lower) <= found < plain
    assert found - max(lower) <= 0.7 * (plain - max(lower))


def test_a_full_step_along_the_gradient_can_lose():
    """Section 7: the paper's step 1 for one indefinite form; block ascent does not."""
    gamma, h = np.diag([1.0, -0.9]), np.array([0.3, 0.954])
    h /= np.linalg.norm(h)
    step = gamma @ h / np.linalg.norm(gamma @ h)
    value = abs(h @ gamma @ h)
    assert value == pytest.approx(0.729, abs=5e-4)
    assert abs(step @ gamma @ step) == pytest.approx(0.693, abs=5e-4)
    assert refine(DenseStack(gamma[None]), h[None], 2)[1][0] == pytest.approx(1.0, rel=1e-12)


def test_what_a_loose_bound_costs():
    """Section 5.1: at a stationary point a bound that is too large by delta makes a gap of delta times the penalty."""
    rng, strength, delta = RNG(6), 0.5, 1e-4
    X = rng.uniform(-1, 1, (60, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.3)
    problem = mopn.NetworkProblem(X, y, norm="l1", strength=strength)
    result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full"), tol=1e-8)
    losses, G = LOSSES["logistic"].value_gradient(y, (X @ result.basis.T) ** 2 @ result.weights)
    penalty = strength * np.abs(result.weights).sum()
    assert losses.sum() + penalty == pytest.approx(result.fun, rel=1e-12)
    gap = losses.sum() + penalty + LOSSES["logistic"].conjugate(y, G / (1.0 + delta)).sum()
    assert gap == pytest.approx(delta * penalty, rel=1e-2)


@pytest.mark.parametrize("degree", [2, 3, 5])
def test_the_kernel_without_a_feature(degree):
    """Section 12.2: e_t = A^t - p x e_{t-1}, the derivative and the change, against the sums over all subsets."""
    rng = RNG(degree)
    p, x, j, u = rng.standard_normal(7), rng.standard_normal(7), 2, 0.7

    def anova(p, x, t):
        return math.fsum(math.prod(p[list(s)] * x[list(s)]) for s in itertools.combinations(range(len(p)), t))

    others, e = np.arange(7) != j, 1.0
    moved = p + u * np.eye(7)[j]
    for t in range(1, degree + 1):
        A = anova(p, x, t)
        assert anova(moved, x, t) == pytest.approx(A + u * x[j] * e, rel=1e-10, abs=1e-12)
        e = A - p[j] * x[j] * e
        assert e == pytest.approx(anova(p[others], x[others], t), rel=1e-9, abs=1e-11)

"""Certificates of two matrices: against minima over balls of matrices, exact minima, and networks that were changed."""

import numpy as np
import pytest
from mpmath import mp, mpf
from networks import LOSSES, data, every_kernel, every_norm
from properties import generators, tried
from reference import kernel_values, loss_of_sample, norm_of_rows, pulled_back, quadratic_outputs, sign_patterns
from scipy import sparse

import mopn
from mopn.core.kernels import KERNELS
from mopn.core.norms import NORMS
from mopn.data.losses_of_rows import Losses
from mopn.solvers import ConditionalGradient

K, D, M = 5, 4, 3


class Tensor:
    """What another library's arrays offer, and no more."""

    def __init__(self, values):
        self._values = np.array(values, dtype=np.float32)

    def __array__(self, dtype=None, copy=None):
        return self._values if dtype is None else self._values.astype(dtype)


def drawn(seed=0, columns=D, m=M):
    """Units of any length, and weights of which the first serves one output."""
    rng = np.random.default_rng(seed)
    H, V = 0.6 * rng.standard_normal((K, columns)), 0.4 * rng.standard_normal((K, m))
    V[0, 1:] = 0.0
    return H, V


def with_ones(X, columns):
    return np.hstack([np.ones((len(X), columns - X.shape[1])), X])


def outputs_of(H, V, X, kernel="homogeneous", linear=None):
    """Outputs of units with a number of columns, biases first, sample by sample; and of (W, b)."""
    X = with_ones(X, H.shape[1])
    outputs = kernel_values(kernel, H, X) @ V
    return outputs if linear is None else outputs + X[:, -linear[0].shape[1] :] @ linear[0].T + linear[1]


def loss_of(loss, y, outputs):
    return sum(loss_of_sample(loss, y[i], o) for i, o in enumerate(outputs))


def norm_of(H, V, name):
    return norm_of_rows(V * np.sum(H**2, axis=1, keepdims=True), name)


# -- what it says of a network ----------------------------------------------------------------------------------------


@every_kernel
@every_norm
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_norm_and_unit_are_those_of_the_network_as_it_is(loss, kernel, norm, biases):
    """The unit, added as it says, lowers the objective by the gain, and the norm does not grow."""
    X, y = data(loss)
    H, V = drawn(columns=D + biases * KERNELS[kernel].dummies)
    linear = np.full((M, D), 0.1), np.arange(M) / 10.0
    found = mopn.certify_network(H, V, linear, X=X, y=y, loss=loss, kernel=kernel, norm=norm)
    assert found.objective == pytest.approx(loss_of(loss, y, outputs_of(H, V, X, kernel, linear)), rel=1e-12)
    assert found.norm == pytest.approx(norm_of(H, V, norm), rel=1e-12)
    assert found.objective - found.gap <= found.lower
    assert found.restricted_gap <= found.gap
    assert found.relative_gap == found.gap / found.objective
    assert found.proof == "deterministic"
    more, weights = np.vstack([H, found.unit]), np.vstack([found.kept * V, found.unit_weights])
    new = loss_of(loss, y, outputs_of(more, weights, X, kernel, linear))
    assert found.gain > 1e-3 * found.objective
    assert new == pytest.approx(found.objective - found.gain, rel=1e-9)
    assert norm_of(more, weights, norm) <= found.norm * (1 + 1e-12)
    assert new >= found.lower


@every_kernel
def test_all_forms_of_the_same_network_are_equal(kernel):
    X, y = data("logistic")
    H, V = (A.astype(np.float32) for A in drawn(columns=D + KERNELS[kernel].dummies))
    b = np.float32([0.1, 0.2, -0.3])
    options = {"y": y, "kernel": kernel, "norm": "l1"}
    expected = mopn.certify_network(H, V, (None, b), X=X, **options)
    lengths = np.exp2(np.arange(K) - 2.0)[:, None]
    zeros = np.vstack([H, 0 * H[:1], 0 * H[:1] + 1]), np.vstack([V, np.ones((1, M)), 0 * V[:1]])
    for H_, V_, linear, X_ in (
        (Tensor(H), Tensor(V), (None, Tensor(b)), X),
        (H.tolist(), V.tolist(), [np.zeros((M, D)), b.tolist()], X.tolist()),
        (lengths * H, V / lengths**2, (None, b), sparse.csr_array(X)),
        (H, V, (None, b), with_ones(X, H.shape[1])),
        (*zeros, (None, b), mopn.RowBlocks([X[:25], X[25:]])),
    ):
        found = mopn.certify_network(H_, V_, linear, X=X_, **options)
        for name in ("objective", "lower", "gap", "restricted_gap", "norm", "strength", "gain"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-6), name


def test_sample_weights_and_an_offset():
    X, y = data("squared")
    H, V = drawn()
    weights, offset = np.arange(len(X)) % 3, np.arange(M) / 2.0
    found = mopn.certify_network(H, V, X=X, y=y, loss="squared", sample_weight=weights, offset=offset)
    rows = np.repeat(np.arange(len(X)), weights)
    repeated = mopn.certify_network(H, V, (None, offset), X=X[rows], y=y[rows], loss="squared")
    assert found.objective == pytest.approx(repeated.objective, rel=1e-12)
    assert found.strength == pytest.approx(repeated.strength, rel=1e-9)
    # Constants of its own may move within their length, an offset may not.
    assert found.lower >= repeated.lower


# -- what is best for its norm ----------------------------------------------------------------------------------------


def ball_optimum(fit, X, norm, radius, lengths=(0.0, 0.0), kernel="homogeneous", steps=1500):
    """Units and weights, W and b of the least loss in balls, by accelerated projected gradients over matrices.

    As in ``matrix_optimum`` the norm is the sum of the moduli of all eigenvalues of matrices Z_s.
    """
    S, m = sign_patterns(norm, fit.n_outputs), fit.n_outputs
    L = fit.smoothness * (fit.n_outputs * np.sum(X**2) ** 2 + np.sum(X**2) + len(X))
    point = [np.zeros((len(S), X.shape[1], X.shape[1])), np.zeros((m, X.shape[1])), np.zeros(m)]
    Y, t = point, 1.0
    for _ in range(steps):
        Z, W, b = Y
        G = fit.value_gradient(quadratic_outputs(X, np.tensordot(S.T, Z, 1), kernel) + X @ W.T + b)[1]
        slopes = np.tensordot(S, pulled_back(X, G, kernel), 1), G.T @ X, G.sum(axis=0)
        Z, W, b = (part - slope / L for part, slope in zip(Y, slopes, strict=True))
        values, vectors = np.linalg.eigh(Z)
        values = NORMS["l1"].project(values, radius)
        W, b = (part * min(1.0, r / max(np.linalg.norm(part), 1e-300)) for part, r in zip((W, b), lengths, strict=True))
        new = [(vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1), W, b]
        t, before = 0.5 * (1 + np.sqrt(1 + 4 * t * t)), t
        Y = [now + (before - 1) / t * (now - old) for now, old in zip(new, point, strict=True)]
        point = new
    H = vectors.transpose(0, 2, 1).reshape(-1, X.shape[1])
    V = (S[:, None, :] * values[:, :, None]).reshape(-1, m)
    return H, V, (point[1], point[2])


@pytest.mark.parametrize("norm", ["l1", "l1/linf"])
@pytest.mark.parametrize("lengths", [(0.0, 0.0), (0.3, 0.5)])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_best_network_of_a_norm_is_proven_to_be_so(loss, lengths, norm):
    """The lower bounds of all networks of its norm and lengths are below it, and its own is nearly reached."""
    X, y = data(loss, n=12, d=2, m=2)
    fit = Losses.of_data(loss, y, len(X))
    H, V, linear = ball_optimum(fit, X, norm, 0.8, lengths)
    options = {"X": X, "y": y, "loss": loss, "norm": norm, "oracle": "exact"}
    best = mopn.certify_network(H, V, linear, **options)
    assert best.norm == pytest.approx(0.8, rel=1e-12)
    assert best.relative_gap <= 1e-5
    assert best.gain <= best.gap
    for seed in range(5):
        H, V = drawn(seed, 2, 2)
        V *= 0.8 / norm_of(H, V, norm)
        rng = np.random.default_rng(seed)
        W, b = rng.standard_normal((2, 2)), rng.standard_normal(2)
        linear = lengths[0] * W / np.linalg.norm(W), lengths[1] * b / np.linalg.norm(b)
        found = mopn.certify_network(H, V, linear, **options)
        assert found.lower <= best.objective
        assert found.objective >= best.lower


@every_norm
def test_the_strength_of_a_solution_is_that_of_its_penalty(norm):
    X, y = data("logistic")
    problem = mopn.NetworkProblem(X, y, norm=norm, strength=0.5)
    solution = mopn.minimize(problem, ConditionalGradient(refit="full", oracle="exact"), tol=1e-6, max_iter=60)
    found = mopn.certify_network(3.0 * solution.basis, solution.weights / 9.0, X=X, y=y, norm=norm, oracle="exact")
    assert found.strength == pytest.approx(0.5, rel=1e-4)
    assert found.objective + 0.5 * found.norm == pytest.approx(solution.fun, rel=1e-12)
    assert found.relative_gap <= 1e-3


@pytest.mark.slow
@tried(20, rng=generators)
def test_no_network_that_is_not_larger_is_below_the_bound(rng):
    """Minimised in the ball by mopn, with W and b as an offset of half or all of their lengths."""
    loss, norm, kernel = map(rng.choice, (LOSSES, ["l1", "l1/l2", "l1/linf"], ["homogeneous", "anova"]))
    X, y = data(loss, n=15, d=3)
    H, V = drawn(int(rng.integers(99)), 3)
    linear = rng.standard_normal((M, 3)), rng.standard_normal(M)
    found = mopn.certify_network(H, V, linear, X=X, y=y, loss=loss, norm=norm, kernel=kernel)
    for share in (-0.5, 1.0):
        W, b = share * linear[0], share * linear[1]
        problem = mopn.NetworkProblem(X, y, loss, kernel, norm, radius=found.norm, offset=X @ W.T + b)
        assert mopn.minimize(problem, tol=1e-3, max_iter=20).fun >= found.lower


def exact_minimum(x, y, weights, radius, length):
    """Least sum of w_i (v x_i^2 + b - y_i)^2 / 2 over abs(v) <= radius and abs(b) <= length, at one of nine points."""
    square, total = [t * t for t in x], mp.fsum(weights)
    a, c = (mp.fsum(w * s**p for w, s in zip(weights, square, strict=True)) for p in (2, 1))
    e, f = (mp.fsum(w * s**p * t for w, s, t in zip(weights, square, y, strict=True)) for p in (1, 0))
    points = [(v, b) for v in (-radius, radius) for b in (-length, length)]
    points += [(v, (f - c * v) / total) for v in (-radius, radius)] + [((e - c * b) / a, b) for b in (-length, length)]
    if a * total != c * c:
        points.append(((e * total - c * f) / (a * total - c * c), (a * f - c * e) / (a * total - c * c)))
    inside = [(v, b) for v, b in points if abs(v) <= radius and abs(b) <= length]
    rows = [*zip(weights, square, y, strict=True)]
    return min(mp.fsum(w * (v * s + b - t) ** 2 for w, s, t in rows) / 2 for v, b in inside)


@tried(200, rng=generators)
def test_rounding_is_in_the_bounds(rng):
    """A single feature in extended precision, at sizes from 1e-30 to 1e30, at the minimum and next to it."""
    n, size, target = int(rng.integers(1, 5)), 10.0 ** rng.integers(-10, 11), 10.0 ** rng.integers(-10, 11)
    x, y = size * rng.standard_normal((n, 1)), target * rng.standard_normal(n)
    weights = 10.0 ** rng.uniform(-3, 3, n)
    h, v = 10.0 ** rng.integers(-5, 6) * rng.standard_normal(2), target / size**2 * rng.standard_normal(2)
    b = target * float(rng.choice([0.0, 1.0])) * float(rng.standard_normal())
    v /= h**2
    if rng.random() < 0.5:
        # Units that cancel: outputs are smaller than their terms.
        v[1] = -v[0] * (h[0] / h[1]) ** 2 * (1.0 + 1e-9 * rng.standard_normal())
    if rng.random() < 0.3:
        y = (x[:, 0] ** 2) * (v @ h**2) + b
    found = mopn.certify_network(h[:, None], v[:, None], (None, [b]), X=x, y=y, loss="squared", sample_weight=weights)
    with mp.workdps(60):
        x, y, weights, h, v = ([mpf(float(t)) for t in A.ravel()] for A in (x, y, weights, h, v))
        radius = mp.fsum(abs(t) * s * s for t, s in zip(v, h, strict=True))
        minimum = exact_minimum(x, y, weights, radius, abs(mpf(b)))
        slope = mp.fsum(t * s * s for t, s in zip(v, h, strict=True))
        objective = mp.fsum(w * (slope * s * s + mpf(b) - t) ** 2 for w, s, t in zip(weights, x, y, strict=True)) / 2
        assert mpf(found.lower) <= minimum
        assert objective - minimum <= mpf(found.gap)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"V": np.ones((M, K))}, r"H must be \(k, d\) and V \(k, m\).*\(5, 4\) and \(3, 5\).*transpose"),
        ({"V": np.ones((K, 4))}, r"V must be \(k, m\); it has 4 columns, and y the 3 labels \[0, 1, 2\]"),
        ({"V": np.ones((K, 2)), "loss": "squared"}, "V must be .* 2 columns, and y 1 targets"),
        ({"H": np.ones((K, 7))}, r"H must have 4 columns, one for each feature of X, or 5 with biases first, got 7"),
        ({"H": np.ones((K, 5)), "kernel": "anova"}, "or 6 with biases first, got 5"),
        ({"H": np.full((K, D), np.nan)}, "H contains NaN or infinity"),
        ({"V": np.full((K, M), np.inf)}, "V contains NaN or infinity"),
        ({"H": np.zeros((K, D))}, "H and V have norm 0"),
        ({"H": np.full((K, D), 1e80)}, "H is too large"),
        ({"linear": (np.zeros((M, D + 1)), None)}, r"linear: W must have shape \(3, 4\), got \(3, 5\)"),
        ({"linear": (None, np.zeros(2))}, r"linear: b must have shape \(3,\), got \(2,\)"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changes, message):
    X, y = data("logistic")
    H, V = drawn()
    with pytest.raises(ValueError, match=message):
        mopn.certify_network(**{"H": H, "V": V, "X": X, "y": y} | changes)

"""Small network problems, networks at random, and gradient forms with their data."""

import numpy as np
import pytest
from scipy import sparse
from stacks import norms

import mopn
from mopn.core.kernels import KERNELS
from mopn.core.norms import NORMS
from mopn.data.designs import make_design
from mopn.data.losses_of_rows import Losses
from mopn.data.rows import ArrayRows
from mopn.network.gradient_forms import GradientForms

LOSSES = ("logistic", "smoothed-hinge", "squared-hinge", "squared", "binary-logistic", "binary-squared-hinge")

# Norms of weights of both signs; of nonnegative ones see test_nonnegative.py.
TWO_SIDED = sorted(name for name, norm in NORMS.items() if not norm.nonnegative)

every_norm = pytest.mark.parametrize("norm", TWO_SIDED)
every_kernel = pytest.mark.parametrize("kernel", sorted(KERNELS))
every_form = pytest.mark.parametrize("form", ["strength", "radius"])


def data(loss, n=40, d=4, m=3, seed=0):
    """Samples (n, d) and targets that the loss takes, of a quadratic function of them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    scores = np.einsum("ni,cij,nj->nc", X, rng.standard_normal((m, d, d)), X)
    if loss in ("logistic", "smoothed-hinge", "squared-hinge"):
        return X, scores.argmax(axis=1)
    return X, np.sign(scores) if loss.startswith("binary") else scores


def problem_of(norm, form="strength", value=1.0, loss="logistic", kernel="homogeneous", n=60, d=4):
    """Three classes that a network of one unit an output tells apart."""
    X, y = data("logistic", n, d)
    y = np.arange(n) % 3 if len(set(y)) < 3 else y
    return mopn.NetworkProblem(X, y, loss=loss, kernel=kernel, norm=norm, augment=True, **{form: value})


def wide_problem(norm="l1", m=2, n=60, d=600, sparse_data=True, kernel="anova", **form):
    """Too many features for a stack of shape (m, d, d)."""
    rng = np.random.default_rng(0)
    of_entries = sparse.random_array((n, d), density=0.05, random_state=rng, format="csr") if sparse_data else None
    X = rng.uniform(-1, 1, (n, d)) if of_entries is None else of_entries
    options = {"norm": norm, "kernel": kernel, "augment": True} | (form or {"strength": 1.0})
    return mopn.NetworkProblem(X, np.arange(n) % m, **options)


def random_network(problem, seed=1, k=5):
    """Units of any length; the first serves one output."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((k, problem.losses.n_outputs))
    weights[0, 1:] = 0.0
    return problem.start((rng.standard_normal((k, problem.design.shape[1])), weights))


def forms_of(problem, network):
    """The forms of the loss gradient at a network."""
    return GradientForms(problem.kernel, problem.rows, problem.output_gradient(network).G)


def rows_of(design, fit=None, size=None):
    """The rows of a design, with losses of no interest where none are given."""
    n = design.shape[0]
    return ArrayRows(design, Losses.of_data("squared", np.zeros(n), n) if fit is None else fit, size)


DATA = {
    "dense": lambda rng, n, d: rng.standard_normal((n, d)),
    "positive": lambda rng, n, d: rng.random((n, d)),
    "one-hot": lambda rng, n, d: np.eye(d)[rng.integers(d, size=n)],
    "two-hot": lambda rng, n, d: np.eye(d)[rng.integers(d, size=n)] + np.eye(d)[rng.integers(d, size=n)],
    "empty columns": lambda rng, n, d: rng.standard_normal((n, d)) * (np.arange(d) % 3 == 0),
    "zero": lambda rng, n, d: np.zeros((n, d)),
    "unequal": lambda rng, n, d: rng.standard_normal((n, d)) * 10.0 ** rng.integers(-4, 5, size=d),
    # Half the samples cancel the others: the rounding errors are larger than the remainder.
    "cancelling": lambda rng, n, d: np.repeat(rng.standard_normal((n, d)), 2, axis=0)[:n],
}


def draw_forms(kernel, data, seed, n=10, d=4, m=3, *, sparsely=False, ones=0):
    """The forms, the explicit data and the gradient of a random problem."""
    rng = np.random.default_rng(seed)
    X, G = DATA[data](rng, n, d), rng.standard_normal((n, m))
    if data == "cancelling":
        G[1::2] = -G[: n - 1 : 2]
    design = make_design(sparse.csr_array(X) if sparsely else X, ones)
    return GradientForms(KERNELS[kernel], rows_of(design), G), np.hstack([np.ones((n, ones)), X]), G


def attained_by_forms(kernel, X, G, H, p):
    """||q(h)||_p / ||h||^2 from the data in extended precision; no matrix is formed."""
    X, G, H = (np.asarray(A, dtype=np.longdouble) for A in (X, G, H))
    P = np.einsum("ij,kj->ik", X, H)
    K = P * P if kernel == "homogeneous" else (P * P - np.einsum("ij,kj->ik", X * X, H * H)) / 2
    return norms(np.einsum("ik,ic->kc", K, G), p) / np.sum(H * H, axis=1)

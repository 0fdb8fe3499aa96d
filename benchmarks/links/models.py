"""The models of Table 3 of Blondel et al. (NIPS 2016): their problems, and the scores of all pairs of nodes."""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

import mopn
from benchmarks.links.data import Graph
from mopn.core.factor_kernels import make_factor_kernel
from mopn.data.designs import make_design


@dataclass(frozen=True)
class Model:
    """A row of the table: a kind of model and its degree, with the paper's figures by graph."""

    kind: str
    degree: int
    paper: dict[str, float]

    @property
    def name(self) -> str:
        """Short name, for the command line and the file."""
        return f"{self.kind}-{self.degree}" if self.kind in SEVERAL else self.kind


SEVERAL = ("hofm", "augmented", "simplex", "polynomial", "lifted")
# The paper's columns: NIPS, Enzyme, GD, MovieLens 100K. Enzyme and GD are other graphs than ours in their places.
PAPER_SETS = ("nips", "ion-channels", "gene-disease", "movielens")
_PAPER = {
    ("hofm", 2): (0.856, 0.880, 0.717, 0.778),
    ("hofm", 3): (0.875, 0.888, 0.717, 0.786),
    ("hofm", 4): (0.874, 0.887, 0.717, 0.786),
    ("hofm", 5): (0.874, 0.887, 0.717, 0.786),
    ("augmented", 2): (0.858, 0.876, 0.704, 0.778),
    ("augmented", 3): (0.874, 0.887, 0.704, 0.787),
    ("augmented", 4): (0.836, 0.824, 0.663, 0.779),
    ("augmented", 5): (0.824, 0.795, 0.600, 0.621),
    ("simplex", 2): (0.716, 0.865, 0.721, 0.701),
    ("simplex", 3): (0.777, 0.870, 0.721, 0.709),
    ("simplex", 4): (0.758, 0.870, 0.721, 0.709),
    ("simplex", 5): (0.722, 0.869, 0.721, 0.709),
    ("all-subsets", 2): (0.730, 0.840, 0.721, 0.714),
    ("polynomial", 2): (0.725, 0.879, 0.721, 0.761),
    ("polynomial", 3): (0.789, 0.853, 0.719, 0.696),
    ("polynomial", 4): (0.782, 0.873, 0.717, 0.708),
    ("polynomial", 5): (0.543, 0.524, 0.648, 0.501),
    ("bilinear", 2): (0.855, 0.694, 0.611, 0.718),
}
_PAPER |= {("lifted", m): _PAPER["polynomial", m] for m in range(2, 6)}
MODELS = [Model(kind, degree, dict(zip(PAPER_SETS, row, strict=True))) for (kind, degree), row in _PAPER.items()]
BY_NAME = {model.name: model for model in MODELS}


def make_problem(model: Model, graph: Graph, pairs: np.ndarray, y: np.ndarray, beta: float, k: int, seed: int) -> Any:
    """Return the problem of a model; ``beta`` is the paper's, who averages the losses, so beta times n is mopn's."""
    strength = beta * len(y)
    common = {"beta": strength, "fit_intercept": True, "rng": seed}
    A, B = graph.rows(pairs)
    if model.kind == "bilinear":
        return mopn.LiftedProblem((A, B), y, rank=k, **common)
    X = sparse.hstack([A, B], format="csr")
    if model.kind == "lifted":
        return mopn.LiftedProblem(X, y, degree=model.degree, rank=k, augment=True, **common)
    options: dict[str, dict[str, Any]] = {
        "hofm": {"fit_lower": "explicit", "fit_linear": True, "alpha": strength},
        "augmented": {"fit_lower": "augment"},
        "simplex": {"fit_lower": "shared"},
        "all-subsets": {"kernel": "all-subsets"},
        "polynomial": {"kernel": "homogeneous", "fit_lower": "augment"},
    }
    return mopn.FactorizationProblem(
        X, y, degree=model.degree, n_components=k, penalty="frobenius", **common, **options[model.kind]
    )


def tables(model: Model, result: mopn.Result, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of the nodes A (n_A, q) and one of the nodes B (n_B, q), whose product is all pairs' outputs.

    No pair's row is ever formed: A^t(a, b) = sum_u A^u(a) A^{t-u}(b) for a and b one after the other, and all-subsets
    S(a, b) = S(a) S(b). A product of m sums <u, a> + <v, b> multiplies out to 2^m products, a power to m + 1.
    """
    parts = [(np.full((graph.shape[0], 1), float(result.intercept[0])), np.ones((graph.shape[1], 1)))]
    parts += _PARTS.get(model.kind, _anova)(model, result, graph)
    left, right = zip(*parts, strict=True)
    return np.hstack(left), np.hstack(right)


_Parts = list[tuple[np.ndarray, np.ndarray]]


def _bilinear(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    U, V = result.U
    return [(graph.A @ U.T, graph.B @ V.T)]


def _polynomial(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    d, P, m = graph.A.shape[1], result.P[0], model.degree
    of_A, of_B = P[:, 0] + graph.A @ P[:, 1 : 1 + d].T, graph.B @ P[:, 1 + d :].T
    return [(math.comb(m, u) * of_A**u, of_B ** (m - u)) for u in range(m + 1)]


def _lifted(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    d = graph.A.shape[1]
    of_A = [U[:, 0] + graph.A @ U[:, 1 : 1 + d].T for U in result.U]
    of_B = [graph.B @ U[:, 1 + d :].T for U in result.U]
    parts = []
    for taken in product((True, False), repeat=model.degree):
        left = [of_A[t] for t in range(model.degree) if taken[t]]
        right = [of_B[t] for t in range(model.degree) if not taken[t]]
        parts.append((_product(left, of_A[0].shape), _product(right, of_B[0].shape)))
    return parts


def _product(factors: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    return np.prod(factors, axis=0) if factors else np.ones(shape)


def _all_subsets(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    d, kernel, P = graph.A.shape[1], make_factor_kernel("all-subsets", 1), result.P[0]
    return [(kernel.features(make_design(graph.A), P[:, :d]), kernel.features(make_design(graph.B), P[:, d:]))]


_PARTS = {"bilinear": _bilinear, "polynomial": _polynomial, "lifted": _lifted, "all-subsets": _all_subsets}


def _anova(model: Model, result: mopn.Result, graph: Graph) -> _Parts:
    """HOFM and its shared variants: the dummies count as features of A."""
    dummies = model.degree - 1 if model.kind == "augmented" else 0
    A, B, m = make_design(graph.A, dummies), make_design(graph.B), model.degree
    parts: _Parts = []
    for order, P in enumerate(result.P):
        of_A, of_B = _degrees(A, P[:, : A.shape[1]], m - order), _degrees(B, P[:, A.shape[1] :], m - order)
        theta = result.theta if model.kind == "simplex" else np.eye(m - order)[-1]
        parts += [(weight * of_A[u], of_B[t - u]) for t, weight in enumerate(theta, 1) if weight for u in range(t + 1)]
    if model.kind == "hofm":
        of_A, of_B = graph.A @ result.w[: A.shape[1]], graph.B @ result.w[A.shape[1] :]
        parts += [(of_A[:, None], np.ones((len(of_B), 1))), (np.ones((len(of_A), 1)), of_B[:, None])]
    return parts


def _degrees(design: Any, P: np.ndarray, m: int) -> list[np.ndarray]:
    """Return A^0, ..., A^m of all rows (n, k)."""
    P, kernels = np.ascontiguousarray(P), [make_factor_kernel("anova", t) for t in range(1, m + 1)]
    return [np.ones((design.shape[0], len(P))), *(kernel.features(design, P) for kernel in kernels)]


def pair_scores(left: np.ndarray, right: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return the outputs of some pairs."""
    return np.einsum("pq,pq->p", left[pairs[:, 0]], right[pairs[:, 1]])

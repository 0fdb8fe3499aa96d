"""Problems of more features than rows, in the span of their rows: the same minima, proven for all units."""

import numpy as np
import pytest
from mpmath import mp, mpf
from networks import LOSSES, data
from scipy import sparse

import mopn
from mopn import estimators
from mopn.core.norms import NORMS
from mopn.network import row_span
from mopn.network.row_span import RowSpan
from mopn.solvers import ConditionalGradient

N, D = 6, 9
rng = np.random.default_rng(0)
ROWS = rng.standard_normal((N, D))
# Rows whose span is hard to find, or whose lengths are far apart.
HARD = {
    "plain": ROWS,
    "dependent": np.vstack([ROWS[:3], ROWS[:3] @ np.diag(np.ones(D)) - 2.0 * ROWS[[1, 2, 0]]]),
    "nearly dependent": ROWS[0] + 1e-9 * ROWS,
    "repeated": ROWS[[0, 0, 0, 1, 1, 2]],
    "one direction": np.outer(10.0 ** np.arange(N), ROWS[0]),
    "long and short rows": ROWS * 10.0 ** np.array([40.0, -60, 30, -30, 0, 8])[:, None],
    "large and small features": ROWS * 10.0 ** np.linspace(-12, 12, D),
    "a row of zeros": np.where(np.arange(N)[:, None] == 2, 0.0, ROWS),
}


def sloppy(kind):
    """Return a function that finds spans with errors far above rounding."""

    def find(X):
        Q, R = np.linalg.qr(X.T)
        R = R.T
        noise = np.random.default_rng(1)
        if kind == "longer":
            Q, R = 1.001 * Q, R / 1.001
        elif kind == "shorter":
            Q, R = 0.999 * Q, R / 0.999
        elif kind == "turned":
            Q = Q + 1e-4 * noise.standard_normal(Q.shape)
        else:
            R = R * (1.0 + 1e-3 * noise.standard_normal(R.shape))
        return RowSpan.measured(X, Q, np.ascontiguousarray(R))

    return find


def problem_of(X=None, loss="logistic", norm="l1", **options):
    own, y = data(loss, N, D)
    y = np.arange(N) % 3 if loss == "logistic" else y
    form = {} if "radius" in options else {"strength": 0.1}
    return mopn.NetworkProblem(own if X is None else X, y, loss=loss, norm=norm, **form | options)


def solved(problem, tol=1e-5):
    return mopn.minimize(problem, ConditionalGradient(refit="full", oracle="exact"), tol=tol, max_iter=200)


@pytest.mark.parametrize("name", HARD)
def test_the_error_covers_projections_and_lengths(name):
    X = HARD[name]
    span = row_span.row_span(X)
    assert span.error < 1e-11
    with mp.workdps(40):
        Q, R, Z = (mp.matrix(array.tolist()) for array in (span.Q, span.R, X))
        lengths = [mp.norm(R[i, :]) for i in range(N)]
        # Units along the rows, along what the span lacks of them, and at random.
        units = [*X, *(X - span.R @ span.Q.T), *rng.standard_normal((5, D)), *span.Q.T]
        for h in units:
            size = float(np.abs(h).max())
            if size == 0.0:
                continue
            h = h / size
            exact = mp.matrix(h.tolist())
            g = Q.T * exact
            length = mp.norm(exact)
            assert mp.norm(g) <= length * (1 + mpf(span.error))
            for i in range(N):
                assert abs(mp.fdot(Z[i, :], exact) - mp.fdot(R[i, :], g)) <= mpf(span.error) * lengths[i] * length
        for g in [*np.eye(N), *rng.standard_normal((5, N))]:
            exact = mp.matrix(g.tolist())
            h = mp.matrix(span.outside(g[None], 0)[0].tolist())
            length = mp.norm(exact)
            assert abs(mp.norm(h) - length) <= mpf(span.error) * length
            for i in range(N):
                assert abs(mp.fdot(Z[i, :], h) - mp.fdot(R[i, :], exact)) <= mpf(span.error) * lengths[i] * length


FORMS = {
    "strength": {},
    "ridge": {"ridge": 0.05},
    "ridge alone": {"ridge": 0.05, "strength": 0.0},
    "radius": {"radius": 2.0},
    "alpha": {"alpha": 0.3, "loss": "squared"},
    "weights and offset": {
        "sample_weight": np.array([3.0, 0.0, 1e-3, 1.0, 2.0, 50.0]),
        "offset": np.array([0.5, -1.0, 0.2]),
        "augment": True,
    },
    "centered": {"center": True, "augment": True, "scale": "features", "ridge": 0.02},
}


@pytest.mark.parametrize("kind", ["longer", "shorter", "turned", "lengthened rows"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("norm", sorted(NORMS))
def test_bounds_hold_for_all_units_whatever_the_error(norm, form, kind, monkeypatch):
    given = problem_of(norm=norm, **FORMS[form])
    monkeypatch.setattr(row_span, "row_span", sloppy(kind))
    inner = given.in_row_span()
    assert inner.rows.n_features == N < D
    best = given.start(solved(given) if given.regularizer.active else None)
    found = solved(inner) if given.regularizer.active else None
    # The lower bound, at the minimum and at a point away from it.
    for network in (inner.start(found), inner.start(best_parts(best))):
        measured = inner.measure(network, "exact")
        assert measured.lower <= given.output_gradient(best).value * (1 + 1e-12)
        assert measured.restricted_lower <= measured.fun * (1 + 1e-12)
        mapped = given.network(*inner.parts(network))
        at = given.output_gradient(mapped)
        assert at.value <= measured.fun + measured.rounding + at.rounding


def best_parts(network):
    return network.basis, network.weights, network.linear


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("norm", sorted(NORMS))
def test_minima_are_the_same(name, norm):
    scale = "features" if name.startswith("large") else "data"
    given = problem_of(HARD[name], norm=norm, scale=scale, augment=True, center=name != "one direction", ridge=0.01)
    inner = given.in_row_span()
    assert inner is not given
    one, other = solved(given, 1e-4), solved(inner, 1e-4)
    assert other.lower <= one.fun
    assert one.lower <= other.fun
    assert other.fun == pytest.approx(one.fun, rel=2e-4)
    # A result is for the features: the same network in either problem.
    assert given.output_gradient(given.start(other)).value == pytest.approx(other.fun, rel=1e-8)
    assert inner.measure(inner.start(one), "exact").fun <= one.fun * (1 + 1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_starts_models_and_duals_are_for_the_features(loss):
    given = problem_of(loss=loss, augment=True, center=True, scale="features", alpha=0.5)
    inner = given.in_row_span()
    result = solved(inner, 1e-6)
    assert result.basis.shape[1] == given.design.shape[1] == 1 + D
    assert result.linear.shape[1] == 1 + D
    np.testing.assert_allclose(np.linalg.norm(result.basis, axis=1), 1.0, rtol=1e-14)
    model = mopn.Model.from_result(inner, result)
    for problem in (given, inner):
        assert mopn.certify(problem, model).fun == pytest.approx(result.fun, rel=1e-9)
        assert mopn.certify(problem, result).relative_gap <= 1e-5
        parts = problem.start_of(model)
        assert parts.basis.shape[1] == 1 + D
        assert problem.output_gradient(problem.start(parts)).value == pytest.approx(result.fun, rel=1e-9)
    np.testing.assert_allclose(result.dual.point(given), result.dual.point(inner), atol=1e-9)
    Z = given.design.matrix()
    gammas = np.einsum("ic,ij,ik->cjk", result.dual.point(given), Z, Z)
    assert np.abs(np.linalg.eigvalsh(gammas)).max() <= result.dual.bound * (1 + 1e-9)
    assert np.isfinite(inner.model_rounding(result))


def test_units_outside_of_the_span_cost_what_they_cost():
    inner = problem_of(ridge=0.1, alpha=0.2).in_row_span()
    given = inner.in_given_coordinates()
    network = np.eye(D), np.ones((D, 3)), np.ones((3, 1 + D))
    measured = mopn.certify(inner, *network[:2], linear=network[2])
    assert measured.fun == pytest.approx(given.measure(given.start(network)).fun, rel=1e-12)
    assert inner.measure(inner.start(network)).fun < 0.9 * measured.fun
    assert measured.lower <= solved(given).fun


@pytest.mark.parametrize(
    ("form", "is_used"),
    [
        (np.asarray, True),
        (np.float32, True),
        (sparse.csr_array, True),
        (lambda X: sparse.csr_array(np.eye(N, D)), True),
        (lambda X: np.vstack([X[1:], 1e-150 * X[:1]]), False),
        (lambda X: X[:, :N], False),
        (lambda X: mopn.RowBlocks(X, size=4), False),
    ],
)
def test_where_the_span_is_used(form, is_used):
    problem = problem_of(form(ROWS))
    assert (problem.in_row_span().span is not None) == is_used
    assert problem_of(ROWS, kernel="anova").in_row_span().span is None


@pytest.mark.parametrize("cls", [estimators.MultiOutputPNClassifier, estimators.MultiOutputPNRegressor])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_array])
def test_wide_fits_are_proven(cls, form):
    X = np.random.default_rng(0).standard_normal((30, 200))
    y = X[:, 0] * X[:, 1]
    y = y if cls is estimators.MultiOutputPNRegressor else y > 0
    X = form(X)
    model = cls(norm="l1", tol=1e-3).fit(X, y)
    problem = model.problem(X, y)
    assert problem.rows.n_features == 30
    assert mopn.certify(problem.in_given_coordinates(), model).fun == pytest.approx(model.objective_, rel=1e-6)
    assert model.relative_gap_ <= 2e-3
    again = cls(norm="l1", tol=1e-3, warm_start=True)
    again.__dict__.update(model.__dict__ | {"warm_start": True})
    assert again.fit(X, y).n_refit_iter_ <= model.n_refit_iter_ / 2

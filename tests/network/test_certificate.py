"""Whole fits that are proven, certificates of any model, the gap with the units as they are, and the dual point."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from mpmath import mp, mpf
from networks import LOSSES, data, every_form, every_kernel, every_norm, problem_of, random_network, wide_problem
from reference import kernel_values
from sklearn.datasets import load_iris

import mopn
import mopn.network.problem
from mopn.data.rows import SumOfLosses
from mopn.estimators import MultiOutputPNClassifier
from mopn.solvers import FISTA, ConditionalGradient, InteriorPoint, Status


@every_form
@every_norm
def test_wide_fits_are_proven(norm, form):
    problem = wide_problem(norm, m=2, **{form: 0.2})
    result = mopn.minimize(problem, ConditionalGradient(refit="full"), tol=1e-4, max_iter=60)
    assert result.success, result
    assert result.gap_is_proven


def test_what_is_not_proven_is_called_estimated():
    problem = wide_problem("l1/l2", m=4, strength=0.2)
    result = mopn.minimize(problem, ConditionalGradient(refit="full", oracle="refine"), tol=1e-3, max_iter=60)
    assert result.status == Status.ESTIMATED
    assert not result.success
    assert result.gap > 1e-3 * result.fun


@pytest.mark.parametrize("norm", ["l1/l2", "l1/linf"])
@pytest.mark.parametrize("method", ["power", "eigh"])
@pytest.mark.parametrize("prove", [False, True])
def test_no_run_ends_by_the_estimate_of_a_search_that_misses_units(norm, method, prove):
    """A thorough search of the last network's gradient finds none that gains more than the tolerance."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((30, 6)), rng.integers(0, 4, 30)
    problem = mopn.NetworkProblem(X, y, norm=norm, strength=mopn.Ratio(0.3))
    result = mopn.minimize(problem, ConditionalGradient("full", oracle=method, prove=prove), tol=1e-2, max_iter=20)
    at = problem.output_gradient(problem.start(result))
    found = at.value - problem.lower(at, problem.lmo(at, "refine").values[0])
    assert result.status == Status.ESTIMATED
    assert found <= 1.01e-2 * result.fun
    assert result.estimated_gap >= 0.99 * found


@pytest.mark.parametrize(("center", "d"), [(1e2, 2), (1e3, 2), (1e4, 2), (1e3, 4)])
def test_a_run_that_stalls_far_from_the_origin_is_near_the_minimum(center, d):
    """Outputs are differences of much larger terms, so that units of small weights matter."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((40, d))
    X, y = center + Z, Z[:, 0] * Z[:, 1]
    i, j = np.triu_indices(d)
    Q, _ = np.linalg.qr((X / center)[:, i] * (X / center)[:, j])
    least = 0.5 * np.sum((y - Q @ (Q.T @ y)) ** 2)
    problem = mopn.NetworkProblem(X, y, loss="squared", norm="l1", strength=mopn.Ratio(1e-15))
    result = mopn.minimize(problem, ConditionalGradient("full"), tol=1e-4, max_iter=60)
    assert result.status == Status.STALLED
    assert result.fun <= 1.001 * least


def test_the_allowance_for_rounding_has_no_unit_of_its_own_for_the_squared_loss():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (20, 3)), rng.standard_normal(20)
    gaps = []
    for c in (1.0, 2.0**-40):
        problem = mopn.NetworkProblem(X, c * y, loss="squared", norm="l1", strength=100.0 * c)
        measured = mopn.certify(problem, np.zeros((0, 3)), np.zeros((0, 1)))
        gaps.append(measured.gap / measured.fun)
    # Zero is the minimiser, so that the gap is the budget.
    assert gaps[0] < 1e-12
    assert gaps[1] == gaps[0]


@every_norm
@every_form
def test_certify_any_model(norm, form):
    problem = problem_of(norm, form, value=1.5)
    best = mopn.minimize(problem, ConditionalGradient(refit="full", oracle="exact"), tol=1e-4, max_iter=60)
    assert best.success, best
    assert best.gap_is_proven
    measure = mopn.certify(problem, best.basis, best.weights, "exact")
    assert measure.fun == pytest.approx(best.fun, rel=1e-12)
    assert measure.gap <= 3e-3 * measure.fun
    # A model found by something else, with units of other lengths.
    rng = np.random.default_rng(6)
    basis, weights = 0.5 * rng.standard_normal((4, 5)), 0.1 * rng.standard_normal((4, 3))
    other = mopn.certify(problem, basis, weights)
    assert other.fun - other.gap <= best.fun <= other.fun


def test_certify_refuses_what_it_cannot_certify():
    ball = problem_of("l1", "radius", value=1.0)
    with pytest.raises(ValueError, match="outside the ball of radius 1"):
        mopn.certify(ball, np.ones((1, 5)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="strength=0 no certificate"):
        mopn.certify(problem_of("l1", "strength", value=0.0), np.ones((1, 5)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="basis must have 5 columns"):
        mopn.certify(ball, np.ones((1, 4)), np.ones((1, 3)))


@pytest.mark.parametrize("loss", ["squared", "poisson"])
@pytest.mark.parametrize(("size", "offset", "alpha"), [(1e6, 0.0, None), (1.0, 9.0, None), (1.0, 0.0, 1e-20)])
def test_rounded_outputs_count_where_the_gradient_at_them_is_zero(loss, size, offset, alpha):
    """Targets are those that the rounded outputs fit best: the exact objective is of second order in their errors."""
    rng = np.random.default_rng(0)
    X, H = rng.standard_normal((12, 3)), rng.standard_normal((4, 3))
    basis = np.vstack([H, H + 1e-7 * rng.standard_normal(H.shape)])
    basis /= np.linalg.norm(basis, axis=1, keepdims=True)
    weights = np.vstack([np.full((4, 1), size), np.full((4, 1), -size)])
    linear = None if alpha is None else rng.standard_normal((1, 4))
    options = {"loss": loss, "norm": "l1", "strength": 1e-30, "alpha": alpha, "offset": np.full((12, 1), offset)}
    outputs = mopn.NetworkProblem(X, np.ones(12), **options).start((basis, weights, linear)).outputs + offset
    y = outputs if loss == "squared" else np.exp(outputs)
    measured = mopn.certify(mopn.NetworkProblem(X, y, **options), basis, weights, linear=linear)
    with mp.workdps(60):
        X, H, V = (mp.matrix(array.tolist()) for array in (X, basis, weights))
        exact = mpf(1e-30) * mp.fsum(mp.fabs(v) * mp.fsum(h * h for h in H[r, :]) for r, v in enumerate(V))
        if linear is not None:
            exact += mp.fsum(mpf(alpha) * (1 if j else mpf(0.01)) * mpf(w) ** 2 / 2 for j, w in enumerate(linear[0]))
        O = X * H.T  # noqa: E741
        O = O.apply(lambda o: o * o) * V  # noqa: E741
        for i in range(12):
            o, target = O[i] + mpf(offset), mpf(float(y[i, 0]))
            if linear is not None:
                o += mpf(linear[0, 0]) + mp.fdot(X[i, :], map(mpf, linear[0, 1:]))
            exact += (o - target) ** 2 / 2 if loss == "squared" else mp.exp(o) - target * (1 + o - mp.log(target))
        assert exact <= mpf(measured.fun) + mpf(measured.rounding)
        assert measured.restricted_gap >= measured.rounding


@every_form
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bound", [0.05, 0.4, 2.5, 40.0])
def test_the_best_scale_of_the_dual_point_is_found_in_few_evaluations(loss, form, bound, monkeypatch):
    problem = mopn.NetworkProblem(*data(loss), loss=loss, **{form: 2.0})
    at, asked, conjugates = problem.output_gradient(random_network(problem)), [], SumOfLosses.conjugates_and_sizes
    scales = np.linspace(0.0, min(at.dual.max_scale, 4.0), 5001)[:-1]
    penalties = 2.0 * scales * bound if form == "radius" else np.where(scales * bound <= 2.0, 0.0, np.inf)
    best = np.max(-conjugates(problem.losses, at.G, scales)[0] - penalties)
    monkeypatch.setattr(SumOfLosses, "conjugates_and_sizes", lambda *a: asked.extend(a[2]) or conjugates(*a))
    assert problem.lower(at, bound) >= best - 1e-5 * abs(best) - 1e-8
    assert len(asked) <= 25


# -- the gap with the units as they are, against minima over their weights that another solver finds -------------------


TOL = 1e-9


def make_problem(norm, form, kernel, loss="logistic", alpha=None):
    X, y = data(loss)
    return mopn.NetworkProblem(X, y, loss=loss, kernel=kernel, norm=norm, augment=True, alpha=alpha, **{form: 1.0})


def check(problem, network, best):
    """The gaps of a network lie in their order, above its distance to the best weights of its units."""
    measured = problem.measure(network)
    assert measured.fun - best.fun <= measured.restricted_gap <= measured.gap
    # No network whatever lies below the whole gap, and none of these units below the restricted one.
    assert best.fun - best.gap >= measured.fun - measured.gap


def check_refitted(problem, network):
    """At the best weights only other units help."""
    measured = problem.measure(network)
    # Weights within TOL of the minimum have a gradient, and so a dual point, within about its root.
    assert measured.restricted_gap <= 1e-4 * measured.fun
    assert measured.gap > 0.05 * measured.fun


@every_form
@every_kernel
@every_norm
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_it_bounds_the_distance_to_the_best_weights(norm, kernel, form, loss):
    problem, y = make_problem(norm, form, kernel, loss), data(loss)[1]
    network = random_network(problem, k=2)
    X = np.hstack([np.ones((40, problem.kernel.dummies)), data("logistic")[0]])
    features = kernel_values(kernel, network.basis, X)
    layer = mopn.OutputLayerProblem(features, y, loss=loss, norm=norm, **{form: 1.0})
    best = mopn.minimize(layer, InteriorPoint(prove=True), tol=TOL)
    assert best.success
    for share in (0.0, 0.01, 0.5, 1.0):
        check(problem, network.with_weights(share * network.weights), best)
        check(problem, network.with_weights((1.0 - share) * best.weights + share * network.weights), best)
    check_refitted(problem, network.with_weights(best.weights))


@every_form
@every_norm
def test_the_linear_term_belongs_to_the_weights(norm, form):
    problem = make_problem(norm, form, "homogeneous", alpha=0.5)
    network = random_network(problem, k=2)
    best = mopn.minimize(problem.output_layer(network), FISTA(), tol=1e-7, max_iter=20_000)
    assert best.success
    refitted = network.with_layer(best)
    for share in (0.0, 0.1, 1.0):
        check(problem, refitted.with_linear(share * best.linear), best)
        check(problem, network.with_linear(share * best.linear), best)
    check_refitted(problem, refitted)


def test_without_units_nothing_can_be_gained_by_weights_and_without_a_regulariser_all():
    problem = make_problem("l1/l2", "strength", "homogeneous")
    measured = problem.measure(problem.start())
    assert measured.restricted_gap <= 1e-9 * measured.fun
    assert measured.gap > 0.5 * measured.fun
    free = problem.with_strength(0.0)
    assert free.measure(random_network(free)).restricted_gap == np.inf


@pytest.mark.parametrize("refit", ["none", "output", "full"])
def test_runs_report_both_gaps(refit):
    problem = make_problem("l1", "strength", "homogeneous")
    solver = ConditionalGradient(refit=refit, max_units=None if refit == "none" else 2)
    seen = []
    result = mopn.minimize(problem, solver, max_iter=5, callback=lambda **now: seen.extend(now.values()))
    network = problem.start(result)
    assert result.restricted_gap == pytest.approx(problem.measure(network).restricted_gap, rel=1e-6, abs=1e-9)
    assert np.all(result.trace["restricted_gap"] <= result.trace["gap"])
    for row, gap in zip(seen, result.trace["restricted_gap"], strict=True):
        assert row.restricted_gap == gap
        assert gap == pytest.approx(problem.measure(problem.start(row)).restricted_gap, rel=1e-6, abs=1e-9)
    if refit == "output":
        # Refits end at a hundredth of the gap.
        assert result.restricted_gap <= 0.01 * result.gap < 0.1 * result.fun


def test_past_the_time_limit_no_bound_is_proven_twice(monkeypatch):
    problem, proven = make_problem("l1", "strength", "homogeneous"), []
    restricted_lower = mopn.NetworkProblem.restricted_lower
    monkeypatch.setattr(mopn.NetworkProblem, "restricted_lower", lambda *a: proven.append(a) or restricted_lower(*a))
    result = mopn.minimize(problem, start=random_network(problem), max_time=0.0)
    assert (result.status, len(proven)) == (Status.MAX_TIME, 1)
    assert result.restricted_gap == result.trace["restricted_gap"][0] < np.inf


# -- the dual point, checked by plain NumPy: the gradient, the dual norm, the conjugate and the bound ------------------


IRIS, KINDS = load_iris(return_X_y=True)
IRIS = (IRIS - IRIS.mean(axis=0)) / 3
order = np.random.default_rng(0).permutation(len(KINDS))
IRIS, KINDS = IRIS[order], KINDS[order]
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, len(KINDS))
STORAGES = {
    "dense": (IRIS, KINDS, WEIGHTS),
    "csr": (sp.csr_matrix(IRIS), KINDS, WEIGHTS),
    "blocks": (mopn.RowBlocks([IRIS[:60], IRIS[60:]], KINDS, sample_weight=WEIGHTS), None, None),
}
SIZES = {"strength": 2.0, "radius": 4.0}


def iris_problem(size="strength", storage="dense", **options):
    options = {"norm": "l1", size: SIZES[size]} | options
    data, labels, weights = STORAGES[storage]
    return mopn.NetworkProblem(data, labels, sample_weight=weights, **options)


def conjugate(D, T):
    """Return F* of the weighted multi-class logistic loss: negative entropies of D / w + T, probabilities."""
    q = np.maximum(D / WEIGHTS[:, None] + T, 0.0)
    np.testing.assert_allclose(q.sum(axis=1), 1.0, atol=1e-9)
    return float(WEIGHTS @ np.sum(q * np.log(np.where(q > 0, q, 1.0)), axis=1))


def dual_norm(Z, D):
    return max(np.abs(np.linalg.eigvalsh(Z.T * column @ Z)).max() for column in D.T)


@pytest.mark.parametrize(
    ("size", "storage", "options"),
    [
        ("strength", "dense", {}),
        ("strength", "blocks", {"alpha": 0.5}),
        ("radius", "csr", {"augment": True}),
        ("radius", "blocks", {}),
    ],
)
def test_the_dual_point_proves_the_bound_again(size, storage, options):
    problem = iris_problem(size, storage, **options)
    result = mopn.minimize(problem, ConditionalGradient("full"), tol=1e-2, max_iter=10)
    certificate = mopn.certify(problem, result.basis, result.weights, linear=result.linear)
    T, ones = np.eye(3)[KINDS], np.ones((len(KINDS), 1))
    for dual, lower in ((result.dual, result.lower), (certificate.dual, certificate.lower)):
        D = dual.point(problem)
        Z = np.hstack([ones, IRIS]) if "augment" in options else IRIS
        ridge = 0.0
        if "alpha" in options:
            alphas = np.array([0.005, *[0.5] * 4])
            ridge = float(((D.T @ np.hstack([ones, IRIS])) ** 2 / (2 * alphas)).sum())
        norm = dual_norm(Z, D)
        assert dual.lower == lower
        assert norm <= dual.bound <= norm * (1 + 1e-9)
        if size == "strength":
            assert dual.bound <= 2.0 * (1 + 1e-12)
        of_ball = 4.0 * dual.bound if size == "radius" else 0.0
        assert -conjugate(D, T) - of_ball - ridge == pytest.approx(lower, rel=1e-9, abs=1e-9)


def test_the_dual_point_is_of_the_network_it_names_and_is_small():
    problem = iris_problem()
    result = mopn.minimize(problem, tol=1e-4)
    dual = pickle.loads(pickle.dumps(result.dual))
    O = (IRIS @ dual.basis.T) ** 2 @ dual.weights  # noqa: E741
    P = np.exp(O - O.max(axis=1, keepdims=True))
    G = WEIGHTS[:, None] * (P / P.sum(axis=1, keepdims=True) - np.eye(3)[KINDS])
    np.testing.assert_allclose(dual.point(problem), dual.scale * G, atol=1e-12)
    assert dual == result.dual
    assert not result.dual.basis.flags.writeable
    assert len(pickle.dumps(dual)) < 100 * (7 + len(dual.basis) * 7)
    assert mopn.certify(problem, result.basis, result.weights) == mopn.certify(problem, result.basis, result.weights)


def test_a_dual_point_is_of_a_bound_and_a_problem():
    dual = mopn.minimize(iris_problem(), max_iter=1).dual
    with pytest.raises(ValueError, match="problem must be of 4 features and 3 outputs as the dual point, got 3 and 3"):
        dual.point(mopn.NetworkProblem(IRIS[:, :3], KINDS, norm="l1", strength=1.0))
    unbounded = iris_problem(strength=0.0)
    assert mopn.minimize(unbounded, ConditionalGradient(max_units=2), tol=0, max_iter=2).dual is None
    layer = mopn.OutputLayerProblem(IRIS**2, KINDS, norm="l1", strength=1.0)
    assert mopn.minimize(layer).dual is None


def test_estimators_have_the_dual_point_of_their_fit():
    model = MultiOutputPNClassifier(norm="l1", strength=2.0, ridge=0.0).fit(IRIS, KINDS)
    problem = mopn.NetworkProblem(IRIS, KINDS, norm="l1", strength=2.0, augment=True, center=True, scale="features")
    assert model.dual_.lower == pytest.approx(model.objective_ - model.gap_, rel=1e-9)
    Z = np.hstack([np.ones((len(KINDS), 1)), problem.design.matrix()[:, 1:]])
    assert dual_norm(Z, model.dual_.point(problem)) <= model.dual_.bound

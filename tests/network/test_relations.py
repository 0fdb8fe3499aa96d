"""Networks on relation blocks against networks on the plain matrix."""

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.data.relation_design import RelationDesign
from mopn.network.two_layers import RelationLayers, two_layers
from mopn.oracles import basis_oracle

RNG = np.random.default_rng(0)
N, K, M = 200, 5, 3
TABLES = [sparse.random(12, 6, 0.5, format="csr", random_state=1), RNG.standard_normal((5, 4)), sparse.eye_array(4)]
ROWS = np.column_stack([RNG.integers(0, table.shape[0], N) for table in TABLES])
RELATED = mopn.RelationBlocks(TABLES, ROWS)
PLAIN = RELATED.tocsr()
D = PLAIN.shape[1]
LABELS = RNG.integers(0, M, N)
WEIGHTS = RNG.uniform(0.5, 2.0, N)
OPTIONS = {
    "anova": {"kernel": "anova"},
    "anova, dummies, linear term": {"kernel": "anova", "augment": True, "alpha": 0.5},
    "anova, scaled": {"kernel": "anova", "alpha": 0.5, "scale": "features"},
    "anova, large features scaled": {"kernel": "anova", "scale": "large"},
    "homogeneous": {"kernel": "homogeneous"},
    "homogeneous, dummy, linear term": {"kernel": "homogeneous", "augment": True, "alpha": 0.5, "scale": "data"},
}


def problems(strength=1.0, **options):
    given = {"strength": strength, "sample_weight": WEIGHTS} | options
    return tuple(mopn.NetworkProblem(X, LABELS, **given) for X in (RELATED, PLAIN))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_sums_over_the_samples(options):
    related, plain = problems(**options)
    d, alpha = plain.rows.shape[1], options.get("alpha")
    H, V, G = (RNG.standard_normal(shape) for shape in ((K, d), (K, M), (N, M)))
    W = np.zeros((M, 0)) if alpha is None else RNG.standard_normal((M, 1 + D))
    layers, expected = (two_layers(problem.rows, problem.kernel) for problem in (related, plain))
    assert isinstance(layers, RelationLayers)
    np.testing.assert_allclose(layers.value(H, V, W), expected.value(H, V, W), rtol=1e-13)
    pairs = [*zip(layers.value_gradient(H, V, W), expected.value_gradient(H, V, W), strict=True)]
    pairs += [(layers.forms(G, H), expected.forms(G, H)), (layers.products(G, V, H), expected.products(G, V, H))]
    for found, right in pairs:
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11 * np.abs(right).max(initial=0.0))


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
def test_the_constant_of_one_output(kernel):
    """Coefficients of one output lie in memory as loops read them, so these may not write there."""
    y, options = 5.0 + PLAIN.toarray()[:, 0], {"loss": "squared", "kernel": kernel, "strength": 1.0, "alpha": 1.0}
    related, plain = (mopn.NetworkProblem(X, y, **options) for X in (RELATED, PLAIN))
    H, V, W = RNG.standard_normal((K, D)), RNG.standard_normal((K, 1)), RNG.standard_normal((1, 1 + D))
    given = W.copy()
    layers, expected = (two_layers(problem.rows, problem.kernel) for problem in (related, plain))
    assert layers.value(H, V, W) == pytest.approx(expected.value(H, V, W), rel=1e-12)
    for found, right in zip(layers.value_gradient(H, V, W), expected.value_gradient(H, V, W), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11 * np.abs(right).max())
    np.testing.assert_array_equal(W, given)
    fits = [mopn.minimize(problem, mopn.solvers.ConditionalGradient("full"), tol=1e-6) for problem in (related, plain)]
    assert fits[0].fun == pytest.approx(fits[1].fun, rel=1e-5)
    assert all(fit.success for fit in fits)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_fits_and_their_proofs(options):
    # Refits have another metric, so they agree where they are fits to the end.
    refit = mopn.solvers.FullRefit(polish_tol=1e-10, polish_iter=5000)
    found, expected = (
        mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit=refit, max_units=2), tol=1e-9, max_iter=3)
        for problem in problems(strength=20.0, **options)
    )
    assert found.fun == pytest.approx(expected.fun, rel=1e-9)
    assert found.gap_is_proven
    # How tight a gap is depends on the clock; each is a bound for the other network, too.
    for one, other in ((found, expected), (expected, found)):
        assert one.fun - one.gap <= other.fun * (1.0 + 1e-12)


@pytest.mark.parametrize("kernel", ["anova", "homogeneous"])
def test_bounds(kernel):
    """The matrices Gamma, and bounds that do not form them."""
    oracle = basis_oracle("l1/l2", method="exact")
    stacks = []
    for problem in problems(kernel=kernel):
        at = problem.output_gradient(problem.start())
        forms = at.forms(problem.kernel)
        stacks.append((forms.dense().matrices, forms.collatz_bound(2), forms.gram_bound(2), problem.bound(at, oracle)))
    for found, expected in zip(*stacks, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_fits_do_not_form_the_plain_matrix(monkeypatch):
    monkeypatch.setattr(RelationDesign, "matrix", lambda self: pytest.fail("formed"))
    for options in OPTIONS.values():
        related, _ = problems(**options)
        result = mopn.minimize(related, mopn.solvers.ConditionalGradient(max_units=2), tol=1e-3, max_iter=3)
        mopn.Model.from_result(related, result).outputs(RELATED[:7])


def test_predictions():
    related, _ = problems(kernel="anova", alpha=0.5, scale="large")
    result = mopn.minimize(related, mopn.solvers.ConditionalGradient(max_units=3), tol=1e-3)
    model = mopn.Model.from_result(related, result)
    np.testing.assert_allclose(model.outputs(RELATED), model.outputs(PLAIN), rtol=1e-11, atol=1e-11)
    with pytest.raises(ValueError, match="X has 10 features, but the model was trained with 14"):
        model.outputs(mopn.RelationBlocks(TABLES[:2], ROWS[:, :2]))


def test_means_are_not_subtracted():
    with pytest.raises(ValueError, match="takes no RelationBlocks"):
        mopn.NetworkProblem(RELATED, LABELS, augment=True, center=True, strength=1.0)

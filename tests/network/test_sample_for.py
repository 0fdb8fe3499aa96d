"""Models of many rows, fitted to a sample of them and then to all."""

import numpy as np
import pytest
from scipy import sparse

import mopn
from mopn.solvers import ConditionalGradient, FullRefit, Status

N, D = 40_000, 4
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.0, 1.0, (N, D))
Y = np.argmax(np.stack([X[:, 0] * X[:, 1], X[:, 2] ** 2 - 0.2, X[:, 3]], axis=1), axis=1)
FILL = ConditionalGradient(refit=FullRefit(polish_tol=1e-3), max_units=4, schedule="fill")
FORMS = {
    "dense": lambda X, y: mopn.NetworkProblem(X, y, strength=40.0, augment=True),
    "sparse": lambda X, y: mopn.NetworkProblem(sparse.csr_array(X), y, strength=40.0, augment=True),
    "linear": lambda X, y: mopn.NetworkProblem(X, y, strength=40.0, augment=True, alpha=1.0),
    "centered": lambda X, y: mopn.NetworkProblem(X, y, strength=40.0, augment=True, center=True, scale="features"),
    "blocks": lambda X, y: mopn.NetworkProblem(mopn.RowBlocks(np.array_split(X, 7)), y, strength=40.0, augment=True),
}
every_form = pytest.mark.parametrize("form", FORMS)


@every_form
def test_a_sample_estimates_the_objective_of_all_rows(form):
    problem = FORMS[form](X, Y)
    sample = problem.sample_for(4, 0)
    # Rows of blocks are drawn one by one.
    assert sample.rows.shape[0] == pytest.approx(10_000, rel=0.05 if form == "blocks" else 0)
    assert sample.losses.total_weight == pytest.approx(N, rel=1e-12)
    units = RNG.standard_normal((3, problem.rows.shape[1])), 0.1 * RNG.standard_normal((3, 3))
    whole, part = (p.output_gradient(p.start(units)).value for p in (problem, sample))
    # Four deviations of a mean of 10,000 losses, of which a deviation is about the mean.
    assert part == pytest.approx(whole, rel=0.04)
    assert part != whole


@pytest.mark.parametrize(("n", "k", "expected"), [(N, 4, 10_000), (N, 12, 10_000), (N, 13, None), (N - 1, 4, None)])
def test_samples_have_a_hundred_rows_for_every_parameter(n, k, expected):
    """Ten thousand at least; and no sample is taken of more than a quarter."""
    sample = mopn.NetworkProblem(X[:n], Y[:n], strength=40.0, augment=True).sample_for(k, 0)
    rows = None if sample is None else sample.rows.shape[0]
    assert rows == expected


def test_few_rows_of_most_of_the_weight_are_all_there():
    """A sample would have two or three of ten heavy rows, and a model fitted to these is poor."""
    heavy = mopn.NetworkProblem(X, Y, strength=40.0, sample_weight=np.where(np.arange(N) < 10, 1e3, 1e-6))
    assert heavy.sample_for(4, 0) is None
    units = heavy.start((np.ones((1, D)), np.ones((1, 3))))
    assert heavy.sample_fractions(units) == []
    # Rows without weight are no rows.
    weights = np.where(np.arange(2 * N) < N, 2.0, 0.0)
    half = mopn.NetworkProblem(np.vstack([X, X]), np.append(Y, Y), strength=40.0, sample_weight=weights, augment=True)
    assert half.rows.effective_size == N
    sample, expected = (p.sample_for(4, 0) for p in (half, FORMS["dense"](X, Y)))
    np.testing.assert_array_equal(sample.design.matrix(), expected.design.matrix())


@pytest.mark.slow
@every_form
def test_a_model_of_a_sample_is_as_good_as_one_of_all_rows(form):
    problem, direct = FORMS[form](X, Y), FORMS[form](X, Y)
    direct.sample_for = lambda n_units, seed: None
    result, whole = mopn.minimize(problem, FILL, tol=1e-3), mopn.minimize(direct, FILL, tol=1e-3)
    assert result.fun <= whole.fun * (1 + 1e-2)
    assert problem.passes < 0.7 * direct.passes
    # The objective and the bound are for all rows.
    assert problem.output_gradient(problem.start(result)).value == pytest.approx(result.fun, rel=1e-12)
    assert result.lower <= whole.fun


@pytest.mark.slow
def test_a_sample_serves_models_alone():
    """No proofs to a tolerance, and no starts that a user gives."""
    asked = []
    problem = FORMS["dense"](X[:N], Y)
    problem.sample_for = lambda n_units, seed: asked.append(n_units)
    first = mopn.minimize(problem, FILL, tol=1e-2)
    assert asked == [4]
    mopn.minimize(problem, FILL, start=first, tol=1e-2)
    mopn.minimize(problem, ConditionalGradient(refit="full", max_units=4), tol=1e-1)
    mopn.minimize(problem, ConditionalGradient(refit="output", max_units=2, schedule="fill"), tol=1e-1)
    assert asked == [4]


def test_a_quarter_of_many_rows_tells_where_to_start():
    options = {"strength": 80.0, "augment": True, "norm": "l1"}
    rare = np.where(np.arange(N) == 5, 3, Y)[:8000]
    problem, cold = (mopn.NetworkProblem(X[:8000], rare, **options) for _ in range(2))
    assert problem.sample_to_start(0).rows.shape[0] == 2000
    assert mopn.NetworkProblem(X[:7999], rare[:7999], **options).sample_to_start(0) is None
    assert mopn.NetworkProblem(X[:8000], rare, strength=8.0).sample_to_start(0) is None
    cold.sample_to_start = lambda seed: None
    solver = ConditionalGradient(refit="full", max_units=60, schedule="fill")
    result, expected = (mopn.minimize(p, solver, tol=1e-2) for p in (problem, cold))
    assert result.success
    assert max(result.lower, expected.lower) <= min(result.fun, expected.fun)
    assert result.trace["fun"][0] < 0.5 * expected.trace["fun"][0]


def test_an_interrupt_while_the_sample_is_fitted_keeps_its_model(monkeypatch):
    problem = FORMS["dense"](X, Y)
    of_sample = problem.sample_for(4, 0)

    class Interrupted(type(of_sample)):
        rounds = 0

        def output_gradient(self, network):
            self.rounds += 1
            if self.rounds == 3:
                raise KeyboardInterrupt
            return super().output_gradient(network)

    of_sample.__class__ = Interrupted
    problem.sample_for = lambda n_units, seed: of_sample
    result = mopn.minimize(problem, FILL, tol=1e-3)
    empty = problem.output_gradient(problem.start()).value
    assert result.status == Status.INTERRUPTED
    assert len(result.basis)
    assert result.fun < 0.9 * empty
    assert result.fun - result.lower == pytest.approx(result.gap)


@pytest.mark.slow
def test_a_run_of_a_sample_is_the_same_again():
    first, second = (mopn.minimize(FORMS["dense"](X, Y), FILL, tol=1e-3, rng=3) for _ in range(2))
    np.testing.assert_array_equal(first.basis, second.basis)

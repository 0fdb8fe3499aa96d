"""The choice of strength and size of ordinal factorization machines."""

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from mopn.estimators import OrdinalFMRegressor, OrdinalFMRegressorCV

RNG = np.random.default_rng(0)
USERS, ITEMS = np.repeat(np.arange(8), 15), RNG.integers(0, 6, 120)
X = np.column_stack([np.eye(8)[USERS], np.eye(6)[ITEMS]])
Y = np.clip(3 + (USERS % 3 == 0) + np.where(USERS % 2 == ITEMS % 2, 1, -1), 1, 5)
OPTIONS = {"strengths": (0.05, 1.0, 500.0), "max_units": (4, 2)}


def test_the_best_strength_is_fitted_to_all_samples():
    found = OrdinalFMRegressorCV(**OPTIONS).fit(X, Y)
    means = np.average(found.scores_, axis=0, weights=found.fold_weights_)
    assert found.strength_ == found.strengths_[np.argmax(means)] < 500.0
    assert found.max_units_ in (2, 4)
    single = OrdinalFMRegressor(strength=found.strength_, max_units=found.max_units_).fit(X, Y)
    np.testing.assert_array_equal(found.predict(X), single.predict(X))
    new = np.column_stack([np.zeros((2, 8)), np.eye(6)[:2]])
    np.testing.assert_array_equal(found.fold_in(new, [5, 2]).basis, single.fold_in(new, [5, 2]).basis)


def test_a_number_of_folds_is_shuffled_and_a_splitter_is_not():
    """The rows are sorted by user: folds in their order hold out whole users, who are then known by nothing."""
    shuffled, again = (OrdinalFMRegressorCV(**OPTIONS, cv=4).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(shuffled.scores_, again.scores_)
    in_order = OrdinalFMRegressorCV(**OPTIONS, cv=KFold(4)).fit(X, Y)
    assert shuffled.scores_.max(axis=1).mean() > in_order.scores_.max(axis=1).mean()


def test_shares_in_place_of_strengths():
    found = OrdinalFMRegressorCV(shares=(0.1, 0.01), strengths=None, max_units=2).fit(X, Y)
    assert found.strengths_[1] == pytest.approx(0.1 * found.strengths_[0])


@parametrize_with_checks(
    [OrdinalFMRegressorCV(strengths=(20.0, 10.0), max_units=1, tol=1.0, alpha=10.0, cv=2)],
    expected_failed_checks=lambda _: {
        "check_regressors_no_decision_function": "regressors are not to have predict_proba"
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

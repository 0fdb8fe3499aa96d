"""Factorization machines whose products are of columns of different groups alone, given by index or by name."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import mopn
from mopn import estimators

NAMES = ["user 1", "user 2", "age", "item 1", "item 2"]
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (80, 5))
# A product within each group and one between them.
SCORES = X[:, 0] * X[:, 1] + X[:, 3] * X[:, 4] + 2.0 * X[:, 0] * X[:, 3] + X[:, 2] * X[:, 4]
Y = {
    "MultiOutputFMClassifier": np.digitize(SCORES, [-0.3, 0.3]),
    "MultiOutputFMRegressor": SCORES,
    "OrdinalFMRegressor": np.digitize(SCORES, [-0.3, 0.3]),
}
GROUPS = [[0, 1], [3, 4]]
NAMED = [["user 1", "user 2"], ["item 1", "item 2"]]
every_estimator = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * name.startswith("Ordinal")) for name in Y]
)


def make(name, **options):
    return getattr(estimators, name)(max_units=3, strength=mopn.Ratio(0.3), random_state=0, **options)


@every_estimator
def test_no_products_within_groups(name):
    y = Y[name]
    fitted = make(name, interactions=GROUPS).fit(X, y)
    inside, across = [(0, 1), (3, 4)], [(0, 3), (2, 4), (0, 2)]
    assert not mopn.explain.interaction_weights(fitted, inside).any()
    assert mopn.explain.interaction_weights(fitted, across).any(axis=-1).all()
    free = make(name).fit(X, y)
    assert mopn.explain.interaction_weights(free, inside).any()
    # A network of these pairs is one of all pairs.
    assert fitted.objective_ >= free.objective_ - free.gap_
    same = make(name, interactions=GROUPS).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(same.objective_, fitted.objective_, rtol=1e-2)
    again = clone(fitted).set_params(warm_start=True).fit(X, y).fit(X, y)
    assert again.objective_ <= fitted.objective_ * (1 + 1e-3)
    assert not mopn.explain.interaction_weights(again, inside).any()


@every_estimator
def test_names_of_columns_mean_their_indices(name):
    y, frame = Y[name], pd.DataFrame(X, columns=NAMES)
    expected = make(name, interactions=GROUPS).fit(X, y).model_
    np.testing.assert_array_equal(expected.groups, [0, 0, -1, 1, 1])
    blocks = mopn.RowBlocks([lambda: frame[:50], lambda: frame[50:]])
    for data in (frame, blocks):
        found = make(name, interactions=NAMED).fit(data, y).model_
        np.testing.assert_array_equal(found.groups, expected.groups)
        np.testing.assert_allclose(found.outputs(X), expected.outputs(X), atol=0.05 * np.abs(expected.outputs(X)).max())


def test_a_search_keeps_the_groups():
    search = estimators.PathCV(make("MultiOutputFMRegressor", interactions=NAMED), max_units=3, strengths=(1.0,), cv=2)
    found = search.fit(pd.DataFrame(X, columns=NAMES), SCORES)
    np.testing.assert_array_equal(found.model_.groups, [0, 0, -1, 1, 1])


def test_a_folded_in_feature_is_in_no_group():
    levels = Y["OrdinalFMRegressor"]
    model = make("OrdinalFMRegressor", interactions=GROUPS).fit(X, levels).fold_in(X[:5], levels[:5])
    np.testing.assert_array_equal(model.groups, [0, 0, -1, 1, 1, -1])


def test_errors():
    with pytest.raises(ValueError, match="the groups 0 and 1 overlap in the column 'age'"):
        make("MultiOutputFMRegressor", interactions=[["age"], ["age"]]).fit(pd.DataFrame(X, columns=NAMES), SCORES)
    with pytest.raises(ValueError, match="as the columns have no names"):
        make("MultiOutputFMRegressor", interactions=NAMED).fit(X, SCORES)
    for name in ("MultiOutputPNRegressor", "OrdinalPNRegressor"):
        with pytest.raises(ValueError, match="interactions are for factorization machines"):
            make(name, interactions=GROUPS).fit(X, Y["OrdinalFMRegressor"])

"""Malformed sparse X and y are refused at the fit and at a prediction, before scikit-learn converts them."""

import numpy as np
import pytest
from scipy import sparse

from mopn import estimators

X = sparse.random_array((40, 4), density=0.5, format="csr", random_state=np.random.default_rng(0))
LABELS = np.arange(40) % 3
ESTIMATORS = [
    (estimators.MultiOutputPNClassifier(max_units=2), LABELS),
    (estimators.PathCV(estimators.MultiOutputPNClassifier(), max_units=2, strengths=(1.0, 0.1), cv=2), LABELS),
    (estimators.OrdinalPNRegressor(max_units=1), LABELS),
    (estimators.FactorizationMachineRegressor(max_iter=1), LABELS),
]


def malformed(form):
    """X with an index outside."""
    wrong = X.asformat(form, copy=True)
    indices = wrong.coords[1] if form == "coo" else wrong.indices
    indices[0] = 10**6
    return wrong


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS)
def test_x(estimator, y):
    estimator.fit(X, y)
    for form in ("csr", "csc", "coo"):
        for call in (lambda X: estimator.fit(X, y), estimator.predict):
            with pytest.raises(ValueError, match=f"X is not a valid {form.upper()} matrix"):
                call(malformed(form))


def test_y():
    indicators = sparse.csr_array(np.eye(3)[LABELS])
    indicators.indices[-1] = -(10**6)
    with pytest.raises(ValueError, match="y is not a valid CSR matrix"):
        estimators.MultiOutputPNClassifier(loss="binary-logistic").fit(X, indicators)

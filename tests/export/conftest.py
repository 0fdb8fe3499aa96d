"""A model of real data."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def digits_model():
    """A fitted model of scikit-learn's digits, with strings as labels, and 1,000 rows."""
    from sklearn.datasets import load_digits

    from mopn.estimators import MultiOutputPNClassifier

    X, y = load_digits(return_X_y=True)
    labels = np.array([f"digit {c}" for c in range(10)])[y]
    return MultiOutputPNClassifier(max_units=20).fit(X, labels).model_, X[:1000]

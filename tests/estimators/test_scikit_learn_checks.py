"""scikit-learn's own checks: of one estimator of each kind, and of all others in the slow tier."""

import pytest
import sklearn
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from mopn import Ratio, estimators

NETWORK = {"max_units": 5, "tol": 0.5}
# A check fits up to twenty times.
TINY = {"max_units": 3, "tol": 0.5, "refit": "output", "strength": Ratio(0.1)}
TINY_SINGLE = {"random_state": 0, "max_iter": 30, "n_components": 2, "beta": 1.0, "tol": 1e-2}
CLASSIFIER = estimators.MultiOutputPNClassifier(tol=0.5, refit="output")
SEARCH = {"strengths": (Ratio(0.1), Ratio(0.01)), "cv": 2}
ORDINAL = {"max_units": 1, "tol": 1.0, "alpha": 10.0}
# An ordinal regressor predicts expectations, and has the probabilities behind them.
FAILED = {"check_regressors_no_decision_function": "regressors are not to have predict_proba"}
# For two classes the checks of scikit-learn 1.6 give repeated rows and weighted ones different labels.
WEIGHTS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the check's labels depend on the order of the rows"
    for kind in ("dense", "sparse")
}


def expected_failed(estimator):
    classes = get_tags(estimator).classifier_tags
    if sklearn.__version__.startswith("1.6.") and classes and not classes.multi_class:
        return WEIGHTS
    return FAILED if "Ordinal" in repr(estimator) else {}


# Data around 100, which some checks use, are what coordinate descent is slow on; it says so.
slow_data = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# Targets of regressions, which some checks give ordinal regressors, too.
many_levels = pytest.mark.filterwarnings("ignore:y has .* levels")


@slow_data
@many_levels
@parametrize_with_checks(
    [
        estimators.MultiOutputPNClassifier(**TINY),
        estimators.MultiOutputPNRegressor(max_units=4, refit="none", norm="l1/linf", strength=0.1),
        estimators.OrdinalFMRegressor(strength=20.0, **ORDINAL),
        estimators.FactorizationMachineRegressor(**TINY_SINGLE),
        estimators.PolynomialNetworkClassifier(**TINY_SINGLE),
        estimators.TableClassifier(curves=1, max_units=5, tol=0.5),
        estimators.TableEncoder(curves=1),
        estimators.PathCV(estimators.MultiOutputFMRegressor(**TINY), max_units=3, strengths=(Ratio(0.1),), cv=2),
    ],
    expected_failed_checks=expected_failed,
)
@pytest.mark.filterwarnings("ignore:.*predictions are the same")
def test_one_estimator_of_each_kind(estimator, check):
    check(estimator)


@pytest.mark.slow
@slow_data
@many_levels
@pytest.mark.filterwarnings("ignore:.*predictions are the same")  # of noise
@parametrize_with_checks(
    [
        estimators.MultiOutputFMClassifier(**NETWORK),
        estimators.MultiOutputPNRegressor(**NETWORK),
        estimators.MultiOutputFMRegressor(**NETWORK),
        estimators.MultiOutputFMClassifier(max_units=6, tol=0.5, norm="l1", loss="squared-hinge"),
        estimators.OrdinalPNRegressor(strength=20.0, **ORDINAL),
        estimators.TableClassifier(strength=Ratio(0.1), curves=1, max_units=5, tol=0.05),
        estimators.TableRegressor(strength=Ratio(0.1), curves=1, max_units=5, tol=0.1),
        estimators.TableRegressor(curves=1, max_units=5, tol=0.1),
        estimators.PathCV(CLASSIFIER, max_units=(2, 3), **SEARCH),
        estimators.PathCV(estimators.OrdinalFMRegressor(tol=1.0, alpha=10.0), max_units=1, **SEARCH),
        estimators.PolynomialNetworkRegressor(**TINY_SINGLE),
        estimators.FactorizationMachineClassifier(**TINY_SINGLE),
        estimators.FactorizationMachineRegressor(solver="lbfgs", **TINY_SINGLE),
        estimators.FactorizationMachineClassifier(loss="logistic", init_lambdas="fit", **TINY_SINGLE),
    ],
    expected_failed_checks=expected_failed,
)
def test_all_others(estimator, check):
    check(estimator)

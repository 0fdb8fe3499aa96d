"""scikit-learn estimators: multi-output polynomial networks (PN) and factorization machines (FM), trained convexly.

The estimators validate and encode the data: a ``NetworkProblem`` defines the objective, ``ConditionalGradient``
minimises it, and a ``Model`` predicts. Estimators of one output use ``FactorizationProblem`` and ``LiftedProblem``.
This package needs scikit-learn (``pip install scikit-learn``).
"""

from mopn.solvers.tools.signals import signals_later

with signals_later():
    try:
        from sklearn.utils.validation import validate_data  # noqa: F401  (new in 1.6)
    except ImportError as error:
        raise ImportError("mopn.estimators needs scikit-learn >= 1.6: pip install 'scikit-learn>=1.6'") from error

    from mopn.estimators.classifiers import MultiOutputFMClassifier, MultiOutputPNClassifier
    from mopn.estimators.fm import FactorizationMachineClassifier, FactorizationMachineRegressor
    from mopn.estimators.implicit import ImplicitFactorization
    from mopn.estimators.ordinal import OrdinalFMRegressor, OrdinalPNRegressor
    from mopn.estimators.path_cv import PathCV
    from mopn.estimators.pn import PolynomialNetworkClassifier, PolynomialNetworkRegressor
    from mopn.estimators.regressors import MultiOutputFMRegressor, MultiOutputPNRegressor
    from mopn.estimators.table_encoder import TableEncoder
    from mopn.estimators.tables import TableClassifier, TableRegressor

__all__ = [
    "FactorizationMachineClassifier", "FactorizationMachineRegressor", "ImplicitFactorization",
    "MultiOutputFMClassifier", "MultiOutputFMRegressor", "MultiOutputPNClassifier", "MultiOutputPNRegressor",
    "OrdinalFMRegressor", "OrdinalPNRegressor", "PathCV", "PolynomialNetworkClassifier", "PolynomialNetworkRegressor",
    "TableClassifier", "TableEncoder", "TableRegressor",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

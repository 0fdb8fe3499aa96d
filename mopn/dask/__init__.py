"""Networks on dask arrays: the blocks of rows stay on the workers, and every pass sums terms over them.

This package needs Dask and scikit-learn: ``pip install "dask[array]" distributed scikit-learn``.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        "mopn.dask needs dask with its arrays and distributed: pip install 'dask[array]' distributed"
    ) from error

from mopn.dask.estimators import (
    DaskMultiOutputFMClassifier,
    DaskMultiOutputFMRegressor,
    DaskMultiOutputPNClassifier,
    DaskMultiOutputPNRegressor,
    DaskOrdinalFMRegressor,
    DaskOrdinalPNRegressor,
    DaskTableClassifier,
    DaskTableRegressor,
)
from mopn.dask.problem import DaskNetworkProblem

__all__ = [
    "DaskMultiOutputFMClassifier",
    "DaskMultiOutputFMRegressor",
    "DaskMultiOutputPNClassifier",
    "DaskMultiOutputPNRegressor",
    "DaskNetworkProblem",
    "DaskOrdinalFMRegressor",
    "DaskOrdinalPNRegressor",
    "DaskTableClassifier",
    "DaskTableRegressor",
]

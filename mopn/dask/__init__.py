"""Fits and predictions on dask arrays and DataFrames: the workers hold the rows, and passes sum terms over them.

This package needs Dask and scikit-learn: ``pip install "dask[array,dataframe]" distributed scikit-learn narwhals``.
"""

from mopn.solvers.tools.signals import signals_later

with signals_later():
    try:
        import dask.array  # noqa: F401
        import distributed  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "mopn.dask needs dask and distributed: pip install 'dask[array,dataframe]' distributed"
        ) from error

    from mopn.dask.fitting import fit, predict

__all__ = ["fit", "predict"]


def __dir__() -> list[str]:
    return __all__

"""Plots of runs and of models. They need matplotlib, the extra ``plot``; without it they raise ``ImportError``."""

from mopn.plotting.convergence import plot_convergence
from mopn.plotting.drift import plot_drift
from mopn.plotting.networks import plot_interactions, plot_unit
from mopn.plotting.tables import plot_effect, plot_model, plot_pair

__all__ = [
    "plot_convergence", "plot_drift", "plot_effect", "plot_interactions", "plot_model", "plot_pair", "plot_unit",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

"""Plots (the extra ``plot``): how runs converge, and what a model has learnt."""

from mopn.plotting.convergence import plot_convergence
from mopn.plotting.networks import plot_contributions, plot_interactions, plot_unit
from mopn.plotting.tables import plot_effect, plot_pair, plot_strengths

__all__ = [
    "plot_contributions",
    "plot_convergence",
    "plot_effect",
    "plot_interactions",
    "plot_pair",
    "plot_strengths",
    "plot_unit",
]

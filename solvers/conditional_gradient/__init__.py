"""Conditional gradient over infinitely many units: Algorithm 1 of Blondel et al. (NIPS 2017); two baselines.

``algorithm`` is the loop. ``proofs`` sets the budget of the bound on all units in each round, ``schedule`` decides how
many units enter and leave, and when the model is full; ``steps`` and ``refits`` are the corrections of the weights.
"""

from mopn.solvers.conditional_gradient.algorithm import ConditionalGradient, RefitName, make_corrective_step
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveRun, CorrectiveStep
from mopn.solvers.conditional_gradient.refits import FullRefit, OutputRefit, Precision
from mopn.solvers.conditional_gradient.steps import PlainStep, line_search

__all__ = [
    "ConditionalGradient",
    "CorrectiveRun",
    "CorrectiveStep",
    "FullRefit",
    "OutputRefit",
    "PlainStep",
    "Precision",
    "RefitName",
    "line_search",
    "make_corrective_step",
]

"""Conditional gradient over infinitely many units: Algorithm 1 of Blondel et al. (NIPS 2017), and GECO.

``algorithm`` is the loop. What a round does beside it stands apart: ``proofs`` decides what to pay for the bound on all
units, ``schedule`` how many units enter and when there are enough, ``steps`` and ``refits`` are the corrections.
"""

from mopn.solvers.conditional_gradient.algorithm import ConditionalGradient, make_correction
from mopn.solvers.conditional_gradient.geco import GECO
from mopn.solvers.conditional_gradient.refits import FullRefit, OutputRefit
from mopn.solvers.conditional_gradient.steps import PlainStep, line_search

__all__ = ["GECO", "ConditionalGradient", "FullRefit", "OutputRefit", "PlainStep", "line_search", "make_correction"]

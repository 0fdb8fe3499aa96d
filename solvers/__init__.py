"""The ground floor of mopn: the driver, the algorithms and the maximisers on the unit sphere.

Nothing here knows a polynomial, a class label or a data set, and nothing imports from the rest of mopn.
"""

from mopn.solvers.conditional_gradient import GECO, ConditionalGradient, FullRefit, OutputRefit, PlainStep
from mopn.solvers.coordinate_descent import CoordinateDescent
from mopn.solvers.driver import minimize
from mopn.solvers.fista import FISTA
from mopn.solvers.interface import Effort, Monitor, Problem, Solver
from mopn.solvers.interior_point import InteriorPoint
from mopn.solvers.lbfgs import LBFGS
from mopn.solvers.result import Result, Status, Trace
from mopn.solvers.sgd import SGD, AdaGrad

__all__ = [
    "FISTA",
    "GECO",
    "LBFGS",
    "SGD",
    "AdaGrad",
    "ConditionalGradient",
    "CoordinateDescent",
    "Effort",
    "FullRefit",
    "InteriorPoint",
    "Monitor",
    "OutputRefit",
    "PlainStep",
    "Problem",
    "Result",
    "Solver",
    "Status",
    "Trace",
    "minimize",
]

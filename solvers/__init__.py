"""The driver, the algorithms and the maximisers on the unit sphere: the lowest layer of mopn.

This package imports nothing from the rest of mopn; polynomials, class labels and data sets do not occur in it.
"""

from mopn.solvers.alternating import AlternatingLeastSquares
from mopn.solvers.conditional_gradient import ConditionalGradient, FullRefit, OutputRefit, PlainStep
from mopn.solvers.coordinate_descent import CoordinateDescent
from mopn.solvers.driver import minimize
from mopn.solvers.fista import FISTA
from mopn.solvers.interface import Solver
from mopn.solvers.interior_point import InteriorPoint
from mopn.solvers.lbfgs import LBFGS
from mopn.solvers.result import Result, Status
from mopn.solvers.result import Trace as Trace
from mopn.solvers.sgd import SGD, AdaGrad

__all__ = [
    "FISTA", "LBFGS", "SGD", "AdaGrad", "AlternatingLeastSquares", "ConditionalGradient", "CoordinateDescent",
    "FullRefit", "InteriorPoint", "OutputRefit", "PlainStep", "Result", "Solver", "Status", "minimize",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

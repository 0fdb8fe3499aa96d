"""Multi-output polynomial networks and factorization machines by convex optimization, with a proven optimality gap."""

from mopn import oracles, solvers
from mopn.certificate import certify
from mopn.model import Model, load
from mopn.problems import JointProblem, NetworkProblem, OutputLayerProblem, UnitBallProblem
from mopn.regularization_path import Path, path
from mopn.solvers import Result, Status, Trace, minimize

__version__ = "0.1.0"

__all__ = [
    "JointProblem",
    "Model",
    "NetworkProblem",
    "OutputLayerProblem",
    "Path",
    "Result",
    "Status",
    "Trace",
    "UnitBallProblem",
    "certify",
    "load",
    "minimize",
    "oracles",
    "path",
    "solvers",
]

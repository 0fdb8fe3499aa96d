"""Problems: what is minimised. Solvers reach them only through the oracles that they list."""

from mopn.problems.joint import JointProblem
from mopn.problems.network import NetworkProblem
from mopn.problems.output_layer import OutputLayerProblem
from mopn.problems.unit_ball import UnitBallProblem

__all__ = ["JointProblem", "NetworkProblem", "OutputLayerProblem", "UnitBallProblem"]

"""What keeps which protocol, for mypy: nothing here is run.

A problem lists names of oracles, and mypy cannot see that these names stand for protocols: so every pair is assigned
here once.
"""

# ruff: noqa: F841 (the assignments are the checks)

from abc import ABC

import fakes

from mopn.factorization.direct import FactorizationProblem
from mopn.factorization.lifted import LiftedProblem
from mopn.network import oracles, segment
from mopn.network.joint import JointProblem
from mopn.network.output_gradient import OutputGradient
from mopn.network.output_layer import OutputLayerProblem
from mopn.network.point import Network
from mopn.network.problem import NetworkProblem
from mopn.network.unit_ball import UnitBallProblem
from mopn.solvers import (
    FISTA,
    LBFGS,
    SGD,
    AdaGrad,
    ConditionalGradient,
    CoordinateDescent,
    FullRefit,
    InteriorPoint,
    OutputRefit,
    PlainStep,
    Solver,
)
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep
from mopn.solvers.driver import RunMonitor
from mopn.solvers.interface import (
    Atomic,
    Atoms,
    AtOutputs,
    Blockwise,
    Composite,
    Corrective,
    CorrectivePoint,
    Monitor,
    Segment,
    Smooth,
    WithBarrier,
    WithPasses,
)


def network_problem(
    problem: NetworkProblem, point: Network, at: OutputGradient, atoms: oracles.BasisAtoms, way: segment.NetworkSegment
) -> None:
    atomic: Atomic = problem
    corrective: Corrective = problem
    a_point: CorrectivePoint = point
    at_outputs: AtOutputs = at
    some_atoms: Atoms = atoms
    a_segment: Segment = way


def refits(layer: OutputLayerProblem, joint: JointProblem, unit_ball: UnitBallProblem) -> None:
    composite: Composite = layer
    smooth: Smooth = layer
    barrier: WithBarrier = layer
    of_both_layers: Smooth = joint
    of_both_layers_in_the_papers_form: Composite = unit_ball


def stochastic(problem: FactorizationProblem) -> None:
    with_passes: WithPasses = problem
    steps: Solver[WithPasses] = SGD()
    adaptive_steps: Solver[WithPasses] = AdaGrad()


def factorization(direct: FactorizationProblem, lifted: LiftedProblem) -> None:
    smooth: Smooth = direct
    blocks: Blockwise = direct
    lifted_smooth: Smooth = lifted
    lifted_blocks: Blockwise = lifted


def solvers() -> None:
    smooth: Solver[Smooth] = LBFGS()
    composite: Solver[Composite] = FISTA()
    barrier: Solver[WithBarrier] = InteriorPoint()
    # A problem with a barrier has all that FISTA asks for.
    composite_too: Solver[WithBarrier] = FISTA()
    blocks: Solver[Blockwise] = CoordinateDescent()
    atomic: Solver[Atomic] = ConditionalGradient(refit="none")
    corrective: Solver[Corrective] = ConditionalGradient()


def corrections() -> None:
    steps: CorrectiveStep = PlainStep(direction="away")
    output: CorrectiveStep = OutputRefit(solver=InteriorPoint())
    full: CorrectiveStep = FullRefit(solver=FISTA())


class OwnProblem(Smooth, Composite, ABC):
    """Data of a user's problem: of the class, of the object, and a property."""

    oracles = frozenset({"gradient", "composite"})
    curvature: float

    def __init__(self) -> None:
        self.curvature = 1.0

    @property
    def bounds(self) -> None:
        return None


def own(problem: OwnProblem) -> None:
    smooth: Smooth = problem
    composite: Composite = problem


def driver(monitor: RunMonitor) -> None:
    a_monitor: Monitor = monitor


def fake(
    steps: fakes.LowRankSteps,
    problem: fakes.LowRankProblem,
    point: fakes.LowRank,
    layer: fakes.LayerOfLowRank,
    factors: fakes.FactorsOfLowRank,
    monitor: fakes.FakeMonitor,
) -> None:
    """Tests of solvers prove nothing on a problem that does not keep the protocols."""
    atomic: Atomic = steps
    corrective: Corrective = problem
    corrective_point: CorrectivePoint = point
    composite: Composite = layer
    smooth: Smooth = factors
    composite_too: Composite = factors
    a_monitor: Monitor = monitor

"""The smooth joint refit: gradients, points that are networks, and fewer units of the same outputs."""

import numpy as np
import pytest
from networks import data, every_form, every_kernel, every_norm, problem_of, random_network

import mopn
from mopn.solvers import FISTA, LBFGS
from mopn.solvers.interface import Form


@every_form
@every_norm
@every_kernel
def test_smooth_joint_gradient(norm, form, kernel):
    problem = problem_of(norm, form, kernel=kernel, n=20)
    joint = problem.joint(random_network(problem))
    x = joint.start() * np.random.default_rng(2).uniform(0.8, 1.2, joint.start().size)
    gradient = joint.value_gradient(x).gradient
    for j, e in enumerate(np.eye(len(x))):
        difference = (joint.value_gradient(x + 1e-6 * e).value - joint.value_gradient(x - 1e-6 * e).value) / 2e-6
        assert gradient[j] == pytest.approx(difference, rel=1e-5, abs=1e-6)


@every_form
@every_norm
def test_joint_point_is_the_network(norm, form):
    """Outputs are equal and the objective is not larger after mapping to a point and back."""
    problem = problem_of(norm, form, value=3.0)
    network = random_network(problem)
    joint = problem.joint(network)
    views = joint.unpack(joint.start())
    again = problem.network(views["basis"], views["weights"])
    fun = problem.output_gradient(network).value
    assert np.linalg.norm(views["basis"], axis=1) == pytest.approx(1.0, rel=1e-12)
    assert problem.norm.value(views["weights"]) <= problem.norm.value(network.weights) * (1 + 1e-12) or form == "radius"
    if form == "strength":
        assert again.outputs == pytest.approx(network.outputs, rel=1e-9, abs=1e-9)
        assert joint.value_gradient(joint.start()).value == pytest.approx(fun, rel=1e-12)
        assert problem.output_gradient(again).value <= fun * (1 + 1e-12)
    else:
        assert problem.norm.value(again.weights) <= 3.0 * (1 + 1e-9)


@every_form
@every_norm
def test_joint_refit_improves_and_stays_feasible(norm, form):
    problem = problem_of(norm, form, value=2.0)
    network = random_network(problem)
    for solver, oracle in ((LBFGS(), "gradient"), (FISTA(), "composite")):
        joint = problem.joint(network, Form(oracle))
        before = joint.measure(joint.start()).fun
        result = mopn.minimize(joint, solver, tol=1e-8, max_iter=300)
        after = problem.network(result.basis, result.weights)
        assert problem.output_gradient(after).value <= result.fun * (1 + 1e-9)
        assert result.fun < before
        if form == "radius":
            assert problem.norm.value(result.weights) <= 2.0 * (1 + 1e-9)


def test_recompression_keeps_outputs_and_limits_units():
    problem = problem_of("l1", d=3)
    rng = np.random.default_rng(3)
    network = problem.start((rng.standard_normal((30, 4)), rng.standard_normal((30, 3))))
    joint = problem.joint(network)
    views = joint.unpack(joint.start())
    assert len(views["basis"]) <= 4 * 3
    again = problem.network(views["basis"], views["weights"])
    assert again.outputs == pytest.approx(network.outputs, rel=1e-9, abs=1e-9)
    W = np.einsum("rc,ri,rj->cij", network.weights, network.basis, network.basis)
    nuclear = np.abs(np.linalg.eigvalsh(W)).sum()
    assert np.abs(views["weights"]).sum() == pytest.approx(nuclear, rel=1e-9)


@every_norm
@every_kernel
def test_gradient_of_the_smooth_part(norm, kernel):
    X, y = data("logistic", n=15)
    problem = mopn.NetworkProblem(X, y, kernel=kernel, norm=norm, strength=1.0, augment=True)
    rng = np.random.default_rng(0)
    joint = problem.joint(
        problem.start((rng.standard_normal((3, problem.design.shape[1])), rng.standard_normal((3, 3)))),
        Form("composite"),
    )
    x = 0.3 * rng.standard_normal(3 * (problem.design.shape[1] + 3))
    gradient = joint.smooth(x).gradient
    step = 1e-6
    for j, e in enumerate(np.eye(len(x))):
        numeric = (joint.smooth_value(x + step * e) - joint.smooth_value(x - step * e)) / (2 * step)
        assert gradient[j] == pytest.approx(numeric, rel=1e-6, abs=1e-7)

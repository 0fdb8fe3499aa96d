"""The race on the sphere: relaxations as others solve them, and the program on small problems."""

import numpy as np
import pytest

from benchmarks.certificates.sphere_relaxations import by_low_rank, by_program, relaxation
from mopn.solvers.sphere import DenseStack, maximise

# A biquadratic form for each p, and sums of squares.
CASES = [(1, 3, 6), (2, 2, 6), (2, 4, 3)]


def example(p, m, d):
    stack, _ = DenseStack(np.random.default_rng(0).standard_normal((m, d, d))).scaled()
    return stack, *relaxation(stack, p)


@pytest.mark.parametrize(("p", "m", "d"), CASES)
@pytest.mark.parametrize("solver", ["clarabel", "scs", "low-rank"])
def test_bounds_are_those_of_the_maximum(p, m, d, solver):
    stack, form, power = example(p, m, d)
    if solver == "low-rank":
        *_, bound = by_low_rank(form, 20.0)
    else:
        pytest.importorskip("cvxpy")
        pytest.importorskip(solver)
        (bound,) = by_program(form, solver, 20.0)
    # The bound of the relaxation for p = 1 is not tight.
    found = maximise(stack.matrices, p)
    assert found.value <= bound ** (1 / power) <= (1.05 if p == 1 else 1.001) * found.bound

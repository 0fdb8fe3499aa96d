"""Loss gradients of finished fits, as stacks of matrices for the race on the sphere.

Logistic loss, [1, x], the samples of the study of proofs: fits at a fifth of the smallest strength whose solution is
zero, to a gap of 1e-2, under the norm whose oracle maximises ||q(h)||_p, l1/l2 for p = 2 and l1/linf for p = 1.
"""

from pathlib import Path

import numpy as np

import mopn
from benchmarks.certificates.__main__ import samples
from benchmarks.certificates.oracles import gradient_stack

_NORMS = {1: "l1/linf", 2: "l1/l2"}
_FRACTION, _GAP = 0.2, 1e-2


def keep_gradient(path: Path, name: str, p: int, folder: str) -> None:
    """Write the matrices (m, d, d) of a set's fit to a file, unless it is there."""
    if path.exists():
        return
    X, y = samples(name, folder)
    problem = mopn.NetworkProblem(X, y, norm=_NORMS[p], strength=mopn.Ratio(_FRACTION), augment=True)
    result = mopn.minimize(problem, mopn.solvers.ConditionalGradient(refit="full"), tol=_GAP)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, gradient_stack(problem, problem.start(result)).matrices)

"""Maximisers of ||q(h)||_p on the unit sphere, q_c(h) = h' Gamma_c h, for a stack of symmetric matrices Gamma_c.

Pure linear algebra: p = inf, 2, 1 are the dual norms of l1, l1/l2 and l1/linf (Table 1 of Blondel et al., NIPS 2017).
"""

from mopn.solvers.sphere.branch_signs import MAX_ENUMERATED, enumerate_signs
from mopn.solvers.sphere.eigenvectors import dominant_eigenvectors, lanczos
from mopn.solvers.sphere.maximum import Maximum, maximise
from mopn.solvers.sphere.refinement import refine
from mopn.solvers.sphere.stack import DenseStack, Stack, power_of_two

__all__ = [
    "MAX_ENUMERATED", "DenseStack", "Maximum", "Stack", "dominant_eigenvectors", "enumerate_signs", "lanczos",
    "maximise", "power_of_two", "refine",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__

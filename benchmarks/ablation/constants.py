"""The constants that the study changes: all that steer a fit, by the value that stands for going without, or by halves.

Those of the policy and of the oracles are listed with what switches them off. All other numbers of the rooms that a fit
passes through are found in the sources; EXEMPT says of the rest why no row would tell anything.
"""

import ast
import importlib
import math
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Constant:
    """A constant of a module.

    Attributes
    ----------
    module : str
    name : str
    off : float or None
        The value that makes it do nothing; None where there is none, and half of it is tried.
    doubled : float or None
        Twice as much, in the sense of the constant; None for twice its value.
    """

    module: str
    name: str
    off: float | None = None
    doubled: float | None = None

    @property
    def key(self) -> str:
        """A short name for tables."""
        return f"{self.module.rsplit('.', 1)[1]}.{self.name.lstrip('_')}"

    @property
    def variants(self) -> tuple[str, str]:
        """Names of the variants: "off" or "halved", and "doubled"."""
        return "halved" if self.off is None else "off", "doubled"

    def value(self, kind: str) -> Any:
        """Return the value of a variant."""
        now = getattr(importlib.import_module(self.module), self.name)
        value = {"off": self.off, "halved": now / 2, "doubled": 2 * now if self.doubled is None else self.doubled}[kind]
        assert value is not None
        return int(value) if isinstance(now, int) and math.isfinite(value) else value


_POLICY = "mopn.solvers.conditional_gradient"
CONSTANTS = (
    Constant(f"{_POLICY}.proofs", "ROUND_WORK", 0.0),
    Constant(f"{_POLICY}.proofs", "_WELL_BELOW", 0.0, 1.0),
    Constant(f"{_POLICY}.proofs", "_LOOSEST", 0.01),
    Constant(f"{_POLICY}.proofs", "_TIGHTEST", 8.0),
    Constant(f"{_POLICY}.proofs", "_FALL_BEFORE_BOUND", 0.0),
    Constant(f"{_POLICY}.proofs", "_TIME_OF_BOUNDS", 0.0),
    Constant(f"{_POLICY}.schedule", "_LEAST_UNITS_PER_ROUND", 1),
    Constant(f"{_POLICY}.schedule", "_GROWTH", 0.0),
    Constant(f"{_POLICY}.schedule", "_FILL_FRACTION", 1.0),
    Constant(f"{_POLICY}.schedule", "_MOST_TRIED", 10**9),
    Constant(f"{_POLICY}.schedule", "_LEFT_BY_POLISH", 0.0, 1.0),
    Constant(f"{_POLICY}.refits", "_LAYER_TOL", 1.0),
    Constant(f"{_POLICY}.refits", "_NEAR_TOL_MULTIPLE", 0.0),
    Constant(f"{_POLICY}.refits", "_FALL_FACTOR", 1.0, 0.35),
    Constant(f"{_POLICY}.refits", "_JOINT_TOL", 1e-9),
    Constant("mopn.solvers.sphere.search", "_AUTO_WORK", 0.0),
    Constant("mopn.solvers.sphere.refinement", "_SAME_START", 1.0, 0.96),
    Constant("mopn.solvers.sphere.dense_search", "MAX_WORK", 2e8),
    Constant("mopn.solvers.sphere.dense_search", "ROUGH_TOL", 0.0),
    Constant("mopn.solvers.sphere.dense_search", "REFINED_STARTS", 1),
    Constant("mopn.solvers.sphere.dense_search", "REFINEMENT_STEPS", 1),
    Constant("mopn.network.oracles", "_RELATIVE_TOL_OF_VALUES", 1e-9),
    Constant("mopn.solvers.sphere.nested", "_MAX_LOSS", 1.0),
    Constant("mopn.solvers.sphere.nested", "_RELAXATION_EXCESS", 1.0),
    Constant("mopn.solvers.sphere.refinement", "_GRAM_STARTS", 1),
    Constant("mopn.solvers.sphere.refinement", "_RANDOM_WORK", 0.0),
    Constant("mopn.solvers.sphere.refinement", "_RITZ_STARTS", 1),
)


# The rooms that the fits of the study pass through.
ROOMS = ("mopn.solvers", "mopn.network", "mopn.core", "mopn.data")
# Numbers of these rooms without a row, and why.
EXEMPT = {
    "a term of a proof, or what floating point takes for zero or for equal": [
        "barriers.MAX_ROOT_STEPS", "barriers.ZERO_LENGTH", "bounds.EIGEN_ERROR", "branch_signs.LEAST_EIGENVALUE",
        "cones.CORNER_DIGITS", "cones.MAX_CONDITION", "cones.NARROW", "eigenvectors.ROUNDED_LENGTH", "gap.DUAL_ERROR",
        "gap.TERM_ERROR", "interior_point.NOISE", "interior_point.RIDGE", "nested.RELATIVE_MARGIN",
        "oracles.CERTIFIED_TOL", "precision.NOISE", "precision.NULL", "regularizers.RADIUS_TOL",
        "regularizers.RATIO_ROUNDING", "stack.NEGLIGIBLE_SIZE", "steps.NEGLIGIBLE_DECREASE", "steps.NOISE",
    ],
    "memory and blocks: they change the time of large data, and results by rounding": [
        "blas_threads.LARGE_OPERATIONS", "branch_signs.NODES_AT_A_TIME", "designs.CACHE_ENTRIES", "chunked_rows.RUN",
        "refinement.PAIRS_AT_A_TIME", "eigenvectors.MAX_KRYLOV_ENTRIES", "branch_signs.CHUNK_ENTRIES",
        "factor_kernels.MAX_UNROLLED_DEGREE", "cones.AT_A_TIME", "lbfgs.MAX_PAIR_BYTES", "probable.AT_A_TIME",
        "rows.BRANCHES_A_THREAD", "rows.ROWS_PER_FEATURE", "rows.MOST_SPARSE_BLOCKS",
        "rows.LEAST_SPARSE_ROWS", "rows.TYPICAL_COLUMNS",
    ],
    "limits of input, printing, and a baseline": [
        "checks.MOST_CHARACTERS", "chunked_rows.CHECKED_TARGETS", "driver.SECONDS_BETWEEN_LINES", "driver.WIDTH",
        "branch_signs.MAX_ENUMERATED", "magnitudes.LARGEST_SINGLE", "validation.LARGEST", "validation.LARGEST_INPUT",
    ],
    "definitions: other values are another problem, or another promise": [
        "budgets.FAILURE", "feature_scaling.SQUARED_LENGTH", "checks.SEED_COUNT", "linear_term.RIDGE_OF_CONSTANTS",
    ],
}  # fmt: skip
# Parts whose numbers no fit of the study uses: the check of a loss of one's own.
_APART = ("mopn.data.loss_checks",)


@cache
def found() -> tuple[Constant, ...]:
    """Return the other constants of these rooms, that are numbers and not exempt."""
    listed = {constant.key for constant in CONSTANTS}.union(*EXEMPT.values())
    constants = (Constant(module, name) for room in ROOMS for module, name in numbers_of(room))
    return tuple(c for c in constants if c.key not in listed and c.module not in _APART)


def numbers_of(package: str) -> list[tuple[str, str]]:
    """Return the module and the name of every number that a module of a package defines at its top, in capitals."""
    modules = [
        module.name for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    ]
    return [(module, name) for module in sorted(modules) for name in _numbers(module)]


def _numbers(name: str) -> list[str]:
    module = importlib.import_module(name)
    assert module.__file__ is not None
    names = [
        target.id
        for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and any(isinstance(part, ast.Constant) for part in ast.walk(node.value))
        for target in ast.walk(node)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store) and target.id.lstrip("_").isupper()
    ]
    return [name for name in names if type(getattr(module, name)) in (int, float)]


@contextmanager
def changed(constant: Constant | None, kind: str) -> Iterator[None]:
    """Give a constant the value of a variant for the time of a block, in all modules; None leaves all as they are."""
    if constant is None:
        yield
        return
    own, name, new = importlib.import_module(constant.module), constant.name, constant.value(kind)
    value = getattr(own, name)
    users = [] if name.startswith("_") else [m for m in sys.modules.values() if m.__name__.startswith("mopn.")]
    modules = [own, *(module for module in users if vars(module).get(name) is value)]
    try:
        for module in modules:
            setattr(module, name, new)
        yield
    finally:
        for module in modules:
            setattr(module, name, value)

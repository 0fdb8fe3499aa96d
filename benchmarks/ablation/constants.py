"""The constants that the study changes, and the value that stands for going without each."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["CONSTANTS", "Constant", "changed"]


@dataclass(frozen=True)
class Constant:
    """A constant of a module.

    Attributes
    ----------
    module : str
    name : str
    off : float
        The value that makes it do nothing.
    doubled : float or None
        Twice as much, in the sense of what the constant means; None for twice its value.
    """

    module: str
    name: str
    off: float
    doubled: float | None = None

    @property
    def key(self) -> str:
        """A short name for tables."""
        return f"{self.module.rsplit('.', 1)[1]}.{self.name.lstrip('_')}"

    def value(self, kind: str) -> Any:
        """Return the value of a variant, "off" or "doubled"."""
        now = getattr(importlib.import_module(self.module), self.name)
        value = self.off if kind == "off" else 2 * now if self.doubled is None else self.doubled
        return int(value) if isinstance(now, int) and math.isfinite(value) else value


_POLICY = "mopn.solvers.conditional_gradient"
CONSTANTS = (
    Constant(f"{_POLICY}.proofs", "_ROUND_WORK", 0.0),
    Constant(f"{_POLICY}.proofs", "_ROUND_NODES", 0),
    Constant(f"{_POLICY}.proofs", "_WELL_BELOW", 0.0, 1.0),
    Constant(f"{_POLICY}.proofs", "_LOOSEST", 0.01),
    Constant(f"{_POLICY}.proofs", "_TIGHTEST", 8.0),
    Constant(f"{_POLICY}.proofs", "_FALLEN", 0.0),
    Constant(f"{_POLICY}.proofs", "_OVERHEAD", 0.0),
    Constant(f"{_POLICY}.schedule", "_MIN_UNITS", 1),
    Constant(f"{_POLICY}.schedule", "_GROWTH", 0.0),
    Constant(f"{_POLICY}.schedule", "_FILL_FRACTION", 1.0),
    Constant(f"{_POLICY}.schedule", "_MAX_TRIED", 10**9),
    Constant(f"{_POLICY}.schedule", "_LEFT_BY_POLISH", 0.0, 1.0),
    Constant(f"{_POLICY}.refits", "_LOOSENESS", 1.0),
    Constant(f"{_POLICY}.refits", "_NEAR", 0.0),
    Constant(f"{_POLICY}.refits", "_FALL", 1.0, 0.35),
    Constant(f"{_POLICY}.refits", "_JOINT_TOL", 1e-9),
    Constant("mopn.network.oracles", "_AUTO_EXACT", 0),
    Constant("mopn.network.oracles", "_AUTO_WORK", 0.0),
    Constant("mopn.network.search", "_SAME_DIRECTION", 1.0, 0.96),
    Constant("mopn.network.dense_oracle", "_ALL_DIRECTIONS", 0),
    Constant("mopn.network.dense_oracle", "_WORK", 2e8),
    Constant("mopn.network.dense_oracle", "_ROUGH", 0.0),
    Constant("mopn.network.dense_oracle", "_REFINED", 1),
    Constant("mopn.network.dense_oracle", "_STEPS", 1),
    Constant("mopn.network.matrix_free_oracle", "_FINER", 1e-9),
    Constant("mopn.network.matrix_free_oracle", "_ROUGH", 1e-9),
    Constant("mopn.network.matrix_free_oracle", "_REFINED", 1),
    Constant("mopn.solvers.sphere.nested", "_WORTH", 1.0),
    Constant("mopn.solvers.sphere.nested", "_SHARE", 1.0),
    Constant("mopn.solvers.sphere.starts", "_GRAM_STARTS", 1),
    Constant("mopn.solvers.sphere.starts", "_RANDOM_WORK", 0.0),
    Constant("mopn.solvers.sphere.starts", "_RITZ_STARTS", 1),
)


@contextmanager
def changed(constant: Constant | None, kind: str) -> Iterator[None]:
    """Give a constant the value of a variant for the time of a block; None leaves all as they are."""
    if constant is None:
        yield
        return
    module = importlib.import_module(constant.module)
    value = getattr(module, constant.name)
    setattr(module, constant.name, constant.value(kind))
    try:
        yield
    finally:
        setattr(module, constant.name, value)

"""What must be true of every call that returns, and fingerprints of what the caller owns."""

import os
import signal
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from tests.fuzz.trial import NotFiniteError, WrongError


@dataclass(frozen=True)
class Found:
    """What a call found: numbers, which must be finite, the objective, its gap, and what was made (a result, say)."""

    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    fun: float | None = None
    gap: float | None = None
    made: Any = None


def require(condition: Any, text: str) -> None:
    """Raise ``WrongError`` unless a condition holds."""
    if not condition:
        raise WrongError(text)


def check_found(found: Found) -> None:
    """Check that all numbers are finite, and that the gap is one."""
    for name, value in found.numbers.items():
        if value.dtype.kind in "fc" and not np.isfinite(value).all():
            raise NotFiniteError(f"{name} holds NaN or infinity")
    if found.fun is not None and not np.isfinite(found.fun):
        raise NotFiniteError(f"the objective is {found.fun}")
    if found.gap is not None:
        require(found.gap >= 0, f"the gap is {found.gap}")


def surroundings() -> dict[str, Any]:
    """Return what belongs to the process and not to a call."""
    return {
        "np.random": fingerprint(list(np.random.get_state())),  # noqa: NPY002
        "np.errstate": np.geterr(),
        "the folder": os.getcwd(),
        "sys.path": list(sys.path),
        "the handler of SIGINT": signal.getsignal(signal.SIGINT),
    }


def fingerprint(value: Any) -> Any:
    """Return what changes if the caller's arrays are written to."""
    if isinstance(value, np.ndarray):
        content = value.tobytes() if value.dtype != object else repr(value.tolist())
        return value.shape, value.strides, str(value.dtype), content
    if sparse.issparse(value):
        return {name: fingerprint(part) for name, part in vars(value).items() if isinstance(part, np.ndarray)}
    if isinstance(value, dict):
        return {name: fingerprint(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [fingerprint(part) for part in value]
    if hasattr(value, "to_numpy"):
        return repr(value), fingerprint(np.asarray(value))
    return None

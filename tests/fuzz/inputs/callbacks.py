"""Callbacks that raise, stop, write, have another signature, or are none."""

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.fuzz.checks import require
from tests.fuzz.trial import pick


def raised(error: BaseException) -> bool:
    """Whether a callback of this module raised an exception."""
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_filename == __file__ for frame, _ in frames)


def odd_callback(rng: np.random.Generator, value: Any = None) -> tuple[str, Any]:
    """Return a callback and what is odd about it."""
    name = pick(rng, sorted(_CALLBACKS))
    return name, _CALLBACKS[name](rng)


def _raiser(kind: type[BaseException]) -> Callable[[np.random.Generator], Any]:
    def make(rng: np.random.Generator) -> Any:
        left = int(rng.integers(3))

        def callback(intermediate_result: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise kind("raised by the callback")

        return callback

    return make


def writer(rng: np.random.Generator) -> Any:
    """Return a callback that writes a number into all arrays that it is handed out, as far as it can."""
    value = pick(rng, (np.nan, 1e6, 0.0))

    def callback(intermediate_result: Any) -> None:
        for part in dict(intermediate_result).values():
            for array in part if isinstance(part, list) else [part]:
                if isinstance(array, np.ndarray) and array.flags.writeable:
                    array.fill(value)

    return callback


def eraser(rng: np.random.Generator) -> Any:
    """Return a callback that empties the results that it is handed out."""

    def callback(intermediate_result: Any) -> None:
        intermediate_result.clear()

    return callback


def _keeper(rng: np.random.Generator) -> Any:
    """Keep all results, and check that those kept do not change."""
    kept: list[tuple[Any, np.ndarray]] = []

    def callback(intermediate_result: Any) -> None:
        for array, copy in kept:
            require(np.array_equal(array, copy), "a result that was kept has changed")
        kept.append((intermediate_result.x, intermediate_result.x.copy()))

    return callback


def _positional(first: Any, second: Any) -> None:
    """Take two arguments, of other names."""


def _generator(intermediate_result: Any) -> Any:
    yield intermediate_result


_RAISED = (
    ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError, FloatingPointError, MemoryError, StopIteration,
    GeneratorExit, KeyboardInterrupt, SystemExit, np.linalg.LinAlgError, RuntimeWarning,
)  # fmt: skip
_CALLBACKS: dict[str, Callable[[np.random.Generator], Any]] = {
    **{f"raises {kind.__name__}": _raiser(kind) for kind in _RAISED},
    "writes": writer,
    "erases": eraser,
    "keeps": _keeper,
    "takes other arguments": lambda rng: _positional,
    "takes none": lambda rng: lambda: None,
    "takes any": lambda rng: lambda *args, **kwargs: "a value",
    "is a generator": lambda rng: _generator,
    "is a class": lambda rng: dict,
    "is a string": lambda rng: "callback",
    "is a number": lambda rng: 3,
    "is a list": lambda rng: [print],
    "is True": lambda rng: True,
}

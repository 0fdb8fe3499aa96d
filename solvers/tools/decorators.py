"""Decorators: ``door`` of public functions, and ``cached_property``; and warnings at the line of the user.

Within a call of a door NumPy neither warns nor raises, whatever the caller set by ``np.errstate`` or ``np.seterr``:
mopn looks for infinite and NaN values itself. Callbacks and scores of the user see the caller's setting; losses, norms
and oracles of the user see mopn's.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import FunctionType
from typing import Any, Generic, TypeVar, cast, overload

import numpy as np

# Packages whose lines no user wrote.
_INSIDE = frozenset({__name__.partition(".")[0], "sklearn", "joblib"})
_Value = TypeVar("_Value")
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

# For those who look for a parameter where there is none.
THREADS = "the number of threads is OMP_NUM_THREADS, a variable of the environment"
# How NumPy treats floating-point errors outside the call that this thread is in; None outside of all calls.
_OUTSIDE: ContextVar[Any] = ContextVar("outside", default=None)


def door(function: F) -> F:
    """Return a public function whose floating-point errors are ignored, and whose wrong arguments it names."""

    @wraps(function)
    def enter(*arguments: Any, **options: Any) -> Any:
        try:
            if _OUTSIDE.get() is not None:
                return function(*arguments, **options)
            token = _OUTSIDE.set(np.geterr())
            try:
                with np.errstate(all="ignore"):
                    return function(*arguments, **options)
            finally:
                _OUTSIDE.reset(token)
        except TypeError as error:
            # Python names the function whose arguments it could not bind.
            if not str(error).startswith(f"{function.__qualname__}() "):
                raise
            text = _said_again(error, function, arguments)
        raise TypeError(text)

    return cast("F", enter)


def _said_again(error: TypeError, function: Any, arguments: tuple[Any, ...]) -> str:
    """Return the message about wrong arguments, with the class of the object that was called, and how to call it."""
    name, signature = function.__name__, inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    called = name
    if arguments and parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
        owner = arguments[0] if isinstance(arguments[0], type) else type(arguments[0])
        called = f"{owner.__name__}.{name}"
        name = owner.__name__ if name == "__init__" else name
    text = str(error).replace(function.__qualname__, called, 1)
    if any(name in text for name in ("'n_jobs'", "'n_threads'")):
        return f"{text}; {THREADS}"
    usage = str(signature.replace(parameters=parameters, return_annotation=signature.empty))
    return f"{text}; call it as {name}{usage}"


def doors(cls: C, special: tuple[str, ...] = ("__init__", "__call__")) -> C:
    """Make doors of the public methods that a class defines, and of special ones."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_") and name not in special:
            continue
        if isinstance(value, FunctionType):
            setattr(cls, name, door(value))
        elif isinstance(value, classmethod):
            setattr(cls, name, classmethod(door(value.__func__)))
    return cls


@contextmanager
def callers_state() -> Iterator[None]:
    """Treat floating-point errors as outside of mopn, while a function of the user is called."""
    outside = _OUTSIDE.get()
    if outside is None:
        yield
        return
    token = _OUTSIDE.set(None)
    try:
        with np.errstate(**outside):
            yield
    finally:
        _OUTSIDE.reset(token)


class cached_property(Generic[_Value]):
    """An attribute that a method computes at first use, without a lock: of several threads the first sets it.

    With the lock of ``functools.cached_property``, up to Python 3.11, a process forked meanwhile would wait forever.
    """

    def __init__(self, method: Callable[[Any], _Value]) -> None:
        self._method, self.__doc__ = method, method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[_Value]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        # Found in the object itself from now on.
        return vars(instance).setdefault(self._name, self._method(instance))


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line of the stack that is neither of mopn nor of scikit-learn."""
    # Python 3.12 can skip files by their prefixes.
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)

"""Floating-point errors are ignored by ``quiet``; attributes are computed once; warnings name the line of the user.

Public functions that compute are ``quiet``: NumPy neither warns nor raises, whatever the caller set by ``np.errstate``
or ``np.seterr``, as mopn looks for infinite and NaN values itself. Callbacks and scores of the user see the caller's
setting; losses, norms and oracles of the user see mopn's.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, overload

import numpy as np

# Packages whose lines no user wrote; contextlib calls the functions that ``quiet`` decorates.
_INSIDE = frozenset({__name__.partition(".")[0], "sklearn", "joblib", "contextlib"})
_Value = TypeVar("_Value")

# How NumPy treats floating-point errors outside the call that this thread is in; None outside of all calls.
_OUTSIDE: ContextVar[Any] = ContextVar("outside", default=None)


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore floating-point errors of NumPy; ``@quiet()`` does so in each call of a function."""
    if _OUTSIDE.get():  # another call of mopn ignores them already
        yield
        return
    token = _OUTSIDE.set(np.geterr())
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _OUTSIDE.reset(token)


@contextmanager
def callers_state() -> Iterator[None]:
    """Treat floating-point errors as outside of mopn, while a function of the user is called."""
    outside = _outside()
    token = _OUTSIDE.set(None)
    try:
        with np.errstate(**outside):
            yield
    finally:
        _OUTSIDE.reset(token)


def _outside() -> Any:
    """Return the settings of the caller of mopn."""
    return _OUTSIDE.get() or np.geterr()


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

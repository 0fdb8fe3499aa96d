"""Methods that only some parameters of an estimator have."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, TypeVar, cast

from mopn.solvers.tools.door import door

__all__ = ["available_if"]

F = TypeVar("F", bound=Callable[..., Any])


def available_if(check: Callable[[Any], object]) -> Callable[[F], F]:
    """Return a decorator of a method that an estimator has if ``check(estimator)`` raises no ``AttributeError``.

    Users get the error of the check, which says what to do; that of scikit-learn's decorator of this name only denies
    that there is such a method.
    """

    def decorate(method: F) -> F:
        return cast("F", _Method(door(method), check))

    return decorate


class _Method:
    def __init__(self, method: Callable[..., Any], check: Callable[[Any], object]) -> None:
        self.method, self.check = method, check
        # Tools that find examples read the class, where this stands for the method.
        update_wrapper(cast("Any", self), method)

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self.method
        self.check(estimator)
        return MethodType(self.method, estimator)

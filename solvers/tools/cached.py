"""Attributes computed at first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Value = TypeVar("_Value")


class cached_property(Generic[_Value]):
    """An attribute that a method computes at first use, without a lock: of several threads the first sets it.

    With that of ``functools.cached_property``, up to Python 3.11, a process forked meanwhile would wait forever.
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

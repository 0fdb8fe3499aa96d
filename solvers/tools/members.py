"""Data of interfaces: members that a subclass may have as attributes of an object or a class, or as properties."""

from typing import TYPE_CHECKING, Any

__all__ = ["data_member"]

if TYPE_CHECKING:
    # For types it is read-only, which attributes and properties both satisfy.
    from builtins import property as data_member
else:

    class data_member:
        """A property that an attribute of the object hides; a subclass could not assign to a property it inherits."""

        def __init__(self, default: Any) -> None:
            self.default = default
            self.__doc__ = default.__doc__

        def __get__(self, instance: Any, owner: type) -> Any:
            if instance is None:  # else a dataclass would take it for the default of a field
                raise AttributeError(f"objects of {owner.__name__} have {self.default.__name__}, the class has not")
            return self.default(instance)

"""Help of estimators: parameters are shown with the class, and methods of scikit-learn have one line each."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from mopn.solvers.tools.door import doors

__all__ = ["ShortHelp"]


class ShortRequest:
    """A method such as ``set_fit_request`` of scikit-learn with one line of help in place of forty."""

    def __init__(self, request: Any) -> None:
        self.request = request

    def __get__(self, instance: Any, owner: type) -> Any:
        method = self.request.__get__(instance, owner)
        method.__doc__ = "Choose the arguments that meta-estimators pass on; see scikit-learn, metadata routing."
        return method


@doors
class ShortHelp(BaseEstimator):
    """Base of all estimators, with their parameters in the docstring of the class, before "See Also"."""

    # The section of ``__init__``, which classes share.
    _parameters: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        """Shorten the help."""
        super().__init_subclass__(**options)
        for name in [name for name in vars(cls) if name.startswith("set_") and name.endswith("_request")]:
            setattr(cls, name, ShortRequest(vars(cls)[name]))
        init = vars(cls).get("__init__")
        if init is not None and "Parameters\n" in (init.__doc__ or ""):
            text = inspect.cleandoc(init.__doc__).removeprefix("Set the parameters.\n\n")
            cls._parameters = text.replace("Set the parameters: those", "The parameters are those", 1)
            init.__doc__ = "Set the parameters."
        head, see_also, rest = inspect.cleandoc(cls.__doc__ or "").partition("See Also\n")
        if see_also and cls._parameters:
            cls.__doc__ = f"{head}{cls._parameters}\n\n{see_also}{rest}"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, with ``deep`` those of estimators among them as well."""
        params: dict[str, Any] = super().get_params(deep)
        return params

    def set_params(self, **params: Any) -> Self:
        """Set some parameters, in estimators among them as ``estimator__tol=0.1``."""
        super().set_params(**params)
        return self

    def get_metadata_routing(self) -> Any:
        """Return which arguments of ``fit`` meta-estimators pass on; see scikit-learn, metadata routing."""
        return super().get_metadata_routing()

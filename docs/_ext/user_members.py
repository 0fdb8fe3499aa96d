"""Which members of problems are not on their pages: what solvers ask for, which the protocols of solvers say."""

from __future__ import annotations

from importlib import import_module

from mopn.solvers import interface

__all__ = ["inner_members"]

_ASKED_BY_SOLVERS = {
    name for kind in vars(interface).values() if interface.Problem in getattr(kind, "__mro__", ()) for name in dir(kind)
}
# Members of the protocols that users call, too.
_USERS = {"default_solver", "joint", "measure", "oracles", "output_layer", "start"}
# What serves other parts of mopn.
_INNER = {
    *(
        "dual_rounding",
        "dummies",
        "from_parts",
        "gains_by_single",
        "gradient_at_zero",
        "model_rounding",
        "passes_over_part",
    ),
    "regularizer",
    *("restricted_dual", "several", "split", "mean_squared_length", "strength_units", "views", "with_random_units"),
}


def inner_members(module: str, name: str) -> list[str]:
    """Return the members of a class that are not for users: some of a problem's, none of any other."""
    kind = getattr(import_module(module), name)
    if interface.Problem not in kind.__mro__ or kind.__module__ == interface.__name__:
        return []
    return sorted(member for member in dir(kind) if member in (_ASKED_BY_SOLVERS | _INNER) - _USERS)

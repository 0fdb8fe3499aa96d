"""Members of problems and models that are not on their pages: they serve solvers and other parts of mopn."""

from __future__ import annotations

from importlib import import_module

from mopn.models.base import Predictor
from mopn.solvers import interface

__all__ = ["inner_members"]

_ASKED_BY_SOLVERS = {
    name for kind in vars(interface).values() if interface.Problem in getattr(kind, "__mro__", ()) for name in dir(kind)
}
# Members of the protocols that users call, too.
_USERS = {"default_solver", "joint", "measure", "oracles", "output_layer", "start"}
# Members of models that serve exports, explanations and plots.
_INNER_OF_MODELS = {
    "answers_of",
    "cells",
    "degrees",
    "design",
    "formula",
    "outputs_of_design",
    "predictions_of",
    "probabilities_of",
    "theta_of",
}
# Members of problems that serve other parts of mopn.
_INNER = {
    *(
        "depends_on_difference",
        "offers_better_duals",
        "dual_rounding",
        "dummies",
        "from_parts",
        "gains_by_single",
        "gradient_at_zero",
        "model_rounding",
        "passes_over_part",
    ),
    "regularizer",
    *("given_linear_term", "given_rows", "in_given_coordinates", "in_row_span", "inside", "linear_term", "measure_of"),
    *("n_inputs", "parts", "rows", "span", "user_X"),
    *("restricted_dual", "several", "split", "mean_squared_length", "strength_units", "views", "with_random_units"),
}


def inner_members(module: str, name: str) -> list[str]:
    """Return the members of a class that are not for users: some of problems and of models, none of other classes."""
    kind = getattr(import_module(module), name)
    if issubclass(kind, Predictor):
        return sorted(_INNER_OF_MODELS & {*dir(kind)})
    if interface.Problem not in kind.__mro__ or kind.__module__ == interface.__name__:
        return []
    return sorted(member for member in dir(kind) if member in (_ASKED_BY_SOLVERS | _INNER) - _USERS)

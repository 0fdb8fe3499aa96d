"""SHAP values in exports: for degree 2 they are slopes halfway to the background, in closed form.

With the mean mu and the covariance S of a background, those of an output f(x) = c + <w, x> + x'Ax are

    phi(x) = (x - mu) * grad f((x + mu) / 2) - diag(A S),

which is the formula of :class:`mopn.models.explanations.games.QuadraticGame`, as grad f(x) = w + 2 A x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.models.explanations.games import ColumnGame, QuadraticGame
from mopn.models.formula import Formula

__all__ = ["ShapExport", "shap_export"]


@dataclass(frozen=True)
class ShapExport:
    """What the SHAP values of a model are computed from.

    Attributes
    ----------
    formula : Formula
        The outputs, with squares of forms as their only units.
    mean : ndarray of shape (d,)
        Of the background.
    spread : ndarray of shape (m, d)
        The diagonals of A S.
    base : ndarray of shape (m,)
        The mean outputs of the background, to which the values are added.
    owners : ndarray of shape (d,) or None
        Of tables, the column of every feature, for which values are sums.
    """

    formula: Formula
    mean: np.ndarray
    spread: np.ndarray
    base: np.ndarray
    owners: np.ndarray | None


def shap_export(model: Any, background: Any) -> ShapExport:
    """Return what the SHAP values of a model are computed from, for a background (N, d).

    Raises
    ------
    TypeError
        If the degree is above 2, as values are then sums over the rows of the background.
    """
    game, owners = model._game(model._background(background, None)), None
    if isinstance(game, ColumnGame):
        owners, game = game.owners, game.game
    if not isinstance(game, QuadraticGame):
        raise TypeError("SHAP values in exports are for models of degree 1 and 2 alone; this one has a higher degree")
    base = np.atleast_1d(model.base_values(background))
    return ShapExport(game.outputs.formula(), game.background.mean, game.spread, base, owners)

"""What fields of features, such as user and item, and pairs of these add to the output of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mopn.data.values import to_host
from mopn.explain.games import ColumnGame, QuadraticGame
from mopn.explain.higher_games import background_rows, model_game
from mopn.models.base import Fitted, fitted_model
from mopn.models.formula import dense_rows
from mopn.solvers.tools.decorators import door


class Contribution(NamedTuple):
    """A field or a pair of fields, and what it adds to one output, or to all outputs (m,)."""

    fields: tuple[str, ...]
    value: Any


class Contributions(list[Contribution]):
    """The contributions, in order of decreasing modulus, or length (m,); with ``base`` they add up to the output.

    Attributes
    ----------
    base : float or ndarray of shape (m,)
        The mean output of the background.
    """

    def __init__(self, items: Sequence[Contribution], base: Any) -> None:
        super().__init__(sorted(items, key=lambda item: -float(np.linalg.norm(item.value))))
        self.base = base


@door
def contributions(model: Fitted, x: Any, background: Any, fields: Mapping[str, Any]) -> Contributions:
    """Return what each field, and each pair of fields, adds to the outputs of one row.

    A field is a set of features, such as the one-hot columns of all users. Contributions are exact SHAP interaction
    values with fields as players: the fields' own effects, and both halves of the effects of pairs. They explain a
    single recommendation by the biases of user and item and by how the two fit.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
        Of degree 2 at most.
    x : array-like or sparse matrix of shape (1, d), or a row of a table
    background : array-like or sparse matrix of shape (N, d)
        Rows for comparison, such as the training data.
    fields : mapping of name to indices of features, or of columns of a table
        Every feature belongs to exactly one field.

    Returns
    -------
    Contributions
        The values are numbers for one output, else arrays (m,), of outputs before any link.

    Raises
    ------
    ValueError
        For degrees above 2, several rows, or fields that overlap or leave features out.

    Examples
    --------
    A user (first two features) and an item (the others), whose contributions are all in the pair:

    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.array([[1.0, -1.0, 1.0, -1.0]]), np.array([[2.0]]), kernel="anova", target="vector")
    >>> X = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    >>> found = mopn.explain.contributions(model, X[:1], X, {"user": [0, 1], "item": [2, 3]})
    >>> [(item.fields, item.value) for item in found]
    [(('user', 'item'), 2.0), (('user',), 0.0), (('item',), 0.0)]
    """
    machine: Any = fitted_model(model)
    design = machine._design(x, "x")
    if design.shape[0] != 1:
        raise ValueError(f"x must be a single row, of shape (1, {machine.n_features}), got {design.shape[0]} rows")
    names, indices = _checked_fields(fields, machine.n_features)
    game = model_game(machine, background_rows(machine, background, design))
    if not isinstance(game, QuadraticGame | ColumnGame):
        raise ValueError(
            f"fields are switched together in models of degree 2; this one has the kernel {machine.kernel!r} and "
            f"degree {getattr(machine, 'degree', 2)}: use shap_values, whose players are features"
        )
    Phi = game.between(dense_rows(design)[0], indices)
    items = [Contribution((name,), _value(Phi[:, g, g])) for g, name in enumerate(names)]
    for g, h in zip(*np.triu_indices(len(names), 1), strict=True):
        items.append(Contribution((names[g], names[h]), _value(2.0 * Phi[:, g, h])))
    return Contributions(items, _value(machine.outputs(to_host(background)).mean(axis=0)))


def _value(values: np.ndarray) -> float | np.ndarray:
    """Return the values (m,), or the number if there is one output."""
    return values if len(values) > 1 else float(values[0])


def _checked_fields(fields: Any, d: int) -> tuple[list[str], list[np.ndarray]]:
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields must be a mapping from names to indices of features, got {type(fields).__name__}")
    if not all(np.iterable(field) for field in fields.values()):
        raise TypeError("fields must hold sequences of indices of features, such as range(10, 20)")
    indices = [np.asarray(list(field)) for field in fields.values()]
    everything = np.concatenate([np.zeros(0, dtype=int), *indices])
    if everything.dtype.kind not in "iu" or not np.array_equal(np.sort(everything), np.arange(d)):
        raise ValueError(f"fields must hold each of the {d} features once, by index; got {everything.size} in all")
    return [str(name) for name in fields], indices

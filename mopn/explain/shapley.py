"""SHAP values of models and fitted estimators, and contributions of fields of features, such as user and item."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mopn.data.designs import Design
from mopn.data.values import to_host
from mopn.explain.games import ColumnGame, Game, QuadraticGame
from mopn.explain.higher_games import background_rows, model_game
from mopn.models.base import Fitted, fitted_model
from mopn.models.formula import dense_rows
from mopn.solvers.tools.decorators import quiet
from mopn.solvers.tools.signals import signals_later


@quiet()
def shap_values(model: Fitted, X: Any, background: Any = None) -> np.ndarray:
    """Return the exact SHAP values of the outputs: the contribution of each feature of a row.

    They are Shapley values of the game in which features outside the coalition take the values of a background row,
    averaged over the background ("interventional"). The values of a row add up to its output minus the mean output of
    the background. Outputs are before any link, as by :meth:`mopn.Model.outputs`: log-odds, not probabilities.

    Nothing is sampled. Degree 2 needs the mean and the covariance of the background alone; the values of an output
    take about two products with the units. Higher degrees take a sum over the background's rows: give a few.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    X : array-like or sparse matrix of shape (n, d)
    background : array-like or sparse matrix of shape (N, d), optional
        Rows for comparison, such as the training data; default X itself. A row of zeros explains one-hot data by the
        categories that are present.

    Returns
    -------
    ndarray of shape (n, d, m), or (n, d) of a single output

    Raises
    ------
    ValueError
        If X has not as many columns as the training data, or a single row would be compared with itself.

    See Also
    --------
    contributions : One row by fields, such as user, item and user x item.

    Notes
    -----
    For f(x) = c + <w, x> + x'Ax and a background of mean mu and covariance S,
    phi = (x - mu) * (w + A (x + mu)) - diag(A S). The game: Lundberg and Lee (NIPS 2017). Higher degrees: Owen's
    diagonal formula (Management Science, 1972). docs/mathematics.md derives both.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.array([[1.0, 1.0]]), np.array([[0.5]]), kernel="homogeneous", target="vector")
    >>> mopn.explain.shap_values(model, [[1.0, 2.0]], background=[[0.0, 0.0]])  # (x_1 + x_2)^2 / 2
    array([[1.5, 3. ]])
    """
    design, game = _explained(model, X, background)
    return _outputs_last(game.values(design))


@quiet()
def shap_interaction_values(model: Fitted, X: Any, background: Any = None) -> np.ndarray:
    """Return the exact SHAP interaction values of the outputs.

    Entry (i, j) is half of the joint effect of the features i and j, beyond the effect of each alone; (i, i) is the
    rest of feature i. Rows add up to the SHAP values. Degrees above 2 take 2 d times the work of the SHAP values.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    X : array-like or sparse matrix of shape (n, d)
        A few rows: the result is large.
    background : array-like or sparse matrix of shape (N, d), optional
        As for :func:`shap_values`.

    Returns
    -------
    ndarray of shape (n, d, d, m), or (n, d, d) of a single output

    Raises
    ------
    ValueError
        As :func:`shap_values`.

    Notes
    -----
    Degree 2: Phi_ij = A_ij ((x_i - mu_i) (x_j - mu_j) + S_ij) for i != j, in the terms of :func:`shap_values`. The
    definition: Lundberg et al. (Nature Machine Intelligence, 2020).

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.array([[1.0, 1.0]]), np.array([[0.5]]), kernel="homogeneous", target="vector")
    >>> mopn.explain.shap_interaction_values(model, [[1.0, 2.0]], background=[[0.0, 0.0]])
    array([[[0.5, 1. ],
            [1. , 2. ]]])
    """
    design, game = _explained(model, X, background)
    return _outputs_last(game.interactions(design))


@quiet()
def feature_importances(model: Fitted, X: Any, background: Any = None) -> np.ndarray:
    """Return the mean absolute SHAP value of every feature over the rows of X, (d, m), or (d,) of a single output.

    Parameters
    ----------
    model, X, background
        As for :func:`shap_values`, and so are the errors.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.array([[1.0, 1.0]]), np.array([[0.5]]), kernel="homogeneous", target="vector")
    >>> mopn.explain.feature_importances(model, [[1.0, 2.0]], background=[[0.0, 0.0]])
    array([1.5, 3. ])
    """
    return np.abs(shap_values(model, X, background)).mean(axis=0)


@quiet()
def to_shap(model: Fitted, X: Any, background: Any = None) -> Any:
    """Return the SHAP values as a ``shap.Explanation``, for the plots of the package shap.

    Parameters
    ----------
    model, X, background
        As for :func:`shap_values`.

    Returns
    -------
    shap.Explanation
        With values (n, d, m), or (n, d) of a single output, base values (the mean outputs of the background), data, and
        names of the features: from the training data, or else the columns of X if it is a DataFrame.

    Raises
    ------
    ImportError
        If shap is missing.
    ValueError
        As :func:`shap_values`.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.array([[1.0, 1.0]]), np.array([[0.5]]), kernel="homogeneous", target="vector")
    >>> mopn.explain.to_shap(model, [[1.0, 2.0]], [[0.0, 0.0]]).values  # doctest: +SKIP
    array([[1.5, 3. ]])
    """
    try:
        with signals_later():
            from shap import Explanation
    except ImportError:
        raise ImportError("explanations as objects of shap need it: pip install shap") from None
    machine = fitted_model(model)
    values = shap_values(machine, X, background)
    base = machine.outputs(to_host(X if background is None else background)).mean(axis=0)
    class_per_output = machine.classes is not None and len(machine.classes) == len(base)
    names = getattr(X, "columns", None) if machine.feature_names is None else machine.feature_names
    return Explanation(
        values,
        base_values=np.broadcast_to(base, values.shape[:1] + values.shape[2:]),
        data=machine.cells(to_host(X)),
        feature_names=None if names is None else list(map(str, names)),
        output_names=list(map(str, machine.classes)) if class_per_output else None,
    )


def _explained(model: Fitted, X: Any, background: Any) -> tuple[Design, Game]:
    """Return the rows, and the games of the outputs against the background."""
    machine = fitted_model(model)
    design = machine.design(to_host(X))
    rows = background_rows(machine, to_host(background), design)
    return design, model_game(machine, rows)


def _outputs_last(values: np.ndarray) -> np.ndarray:
    """Return values (m, ...) with the outputs as the last axis, or without it if there is one output."""
    return np.moveaxis(values, 0, -1) if len(values) > 1 else values[0]


class Contribution(NamedTuple):
    """A field or a pair of fields, and its contribution to one output, or to all outputs (m,)."""

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


@quiet()
def contributions(model: Fitted, x: Any, background: Any, fields: Mapping[str, Any]) -> Contributions:
    """Return the contributions of each field, and of each pair of fields, to the outputs of one row.

    A field is a set of features, such as the one-hot columns of all users. Contributions are exact SHAP interaction
    values with fields as players: the fields' own effects, and both halves of the effects of pairs. They explain a
    single recommendation by the biases of user and item and by how the two fit.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
        A model of degree 2 at most.
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
    design = machine.design(x, "x")
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
    items = [Contribution((name,), _array_or_number(Phi[:, g, g])) for g, name in enumerate(names)]
    for g, h in zip(*np.triu_indices(len(names), 1), strict=True):
        items.append(Contribution((names[g], names[h]), _array_or_number(2.0 * Phi[:, g, h])))
    base = machine.outputs(to_host(background)).mean(axis=0)
    return Contributions(items, _array_or_number(base))


def _array_or_number(values: np.ndarray) -> float | np.ndarray:
    """Return the values (m,), or the number if there is one output."""
    return values if len(values) > 1 else float(values[0])


def _checked_fields(fields: Any, d: int) -> tuple[list[str], list[np.ndarray]]:
    """Return the names of the fields and the indices of their features; each feature must be in one field."""
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields must be a mapping from names to indices of features, got {type(fields).__name__}")
    if not all(np.iterable(field) for field in fields.values()):
        raise TypeError("fields must hold sequences of indices of features, such as range(10, 20)")
    indices = [np.asarray(list(field)) for field in fields.values()]
    all_indices = np.concatenate([np.zeros(0, dtype=int), *indices])
    if all_indices.dtype.kind not in "iu" or not np.array_equal(np.sort(all_indices), np.arange(d)):
        raise ValueError(f"fields must hold each of the {d} features once, by index; got {all_indices.size} in all")
    return [str(name) for name in fields], indices

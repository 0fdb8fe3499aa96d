"""SHAP values of models and fitted estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.data.designs import Design
from mopn.data.values import to_host
from mopn.explain.games import Game
from mopn.explain.higher_games import background_rows, model_game
from mopn.models.base import Fitted, fitted_model
from mopn.solvers.tools.decorators import door


@door
def shap_values(model: Fitted, X: Any, background: Any = None) -> np.ndarray:
    """Return the exact SHAP values of the outputs: what each feature of a row adds to the output.

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
        If the number of columns is not that of the training data, or a single row would be compared with itself.

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


@door
def shap_interaction_values(model: Fitted, X: Any, background: Any = None) -> np.ndarray:
    """Return the exact SHAP interaction values of the outputs.

    Entry (i, j) is half of what the features i and j add together, beyond what each adds alone; (i, i) is the rest of
    feature i. Rows add up to the SHAP values. Degrees above 2 take 2 d times the work of those.

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


@door
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


@door
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
        from shap import Explanation
    except ImportError:
        raise ImportError("explanations as objects of shap need it: pip install shap") from None
    machine = fitted_model(model)
    values = shap_values(machine, X, background)
    base = machine.outputs(to_host(X if background is None else background)).mean(axis=0)
    labelled = machine.classes is not None and len(machine.classes) == len(base)
    names = getattr(X, "columns", None) if machine.feature_names is None else machine.feature_names
    return Explanation(
        values,
        base_values=np.broadcast_to(base, values.shape[:1] + values.shape[2:]),
        data=machine._cells(to_host(X)),
        feature_names=None if names is None else list(map(str, names)),
        output_names=list(map(str, machine.classes)) if labelled else None,
    )


def _explained(model: Fitted, X: Any, background: Any) -> tuple[Design, Game]:
    """Return the rows, and the games of the outputs against the background."""
    machine = fitted_model(model)
    design = machine._design(to_host(X))
    return design, model_game(machine, background_rows(machine, to_host(background), design))


def _outputs_last(values: np.ndarray) -> np.ndarray:
    """Return values (m, ...) with the outputs as the last axis, or without it if there is one output."""
    return np.moveaxis(values, 0, -1) if len(values) > 1 else values[0]

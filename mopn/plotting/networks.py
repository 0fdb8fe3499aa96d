"""Interactions of features in a network, contributions to a row, and units."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mopn.explain.interactions import Interaction, strongest_interactions
from mopn.explain.shapley import Contribution
from mopn.models.base import Fitted, check_scale, fitted_model
from mopn.models.multi_output import Model
from mopn.models.table import TableModel
from mopn.plotting.drawing import bars, checked_labels, colors, output_names, plot_weights, subplots
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import quiet


@quiet()
def plot_interactions(
    interactions: Sequence[Interaction | Contribution] | Fitted, outputs: Sequence[Any] | None = None, ax: Any = None
) -> Any:
    """Plot interactions of features, or contributions of fields to a row: bars, or a heat map of several outputs.

    Parameters
    ----------
    interactions : Interactions, Contributions, or a model or fitted estimator
        From :func:`mopn.explain.strongest_interactions`, by default called with the model alone, or from
        :func:`mopn.explain.contributions`.
    outputs : sequence of m labels, optional
        Names of the outputs; default the classes of a model, or numbers.
    ax : matplotlib Axes, optional
        Where to draw; default new axes.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If there are no interactions, or the outputs are not one per weight.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> model = mopn.Model(np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]), np.eye(2), kernel="anova")
    >>> ax = plot_interactions(mopn.explain.strongest_interactions(model), outputs=["low", "high"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['0 × 2', '1 × 2']
    """
    if isinstance(interactions, Fitted):
        model = fitted_model(interactions)
        outputs = output_names(model, outputs)
        interactions = strongest_interactions(model)
    caption = "weight"
    labels = []
    values = []
    for item in interactions:
        if isinstance(item, Contribution):
            caption = "contribution to the output"
            labels.append(" × ".join(item.fields))
            values.append(item.value)
        else:
            labels.append(" × ".join(item.names))
            values.append(item.weight)
    return plot_weights(labels, values, caption, outputs, ax)


@quiet()
def plot_unit(
    model: Fitted,
    unit: int = 0,
    *,
    scale: Any = None,
    shape: tuple[int, int] | None = None,
    axes: Any = None,
) -> Any:
    """Plot a unit h_r, as an image or its ten largest coefficients, next to its weights v_r in the outputs.

    Only relative signs of h_r have a meaning: h_r and -h_r are one unit.

    Parameters
    ----------
    model : Model or fitted estimator
    unit : int, default 0
        Its number r; coefficients of dummies are left out.
    scale : array-like of shape (d,), optional
        Typical sizes of the features, such as ``X.std(axis=0)``: the coefficients of X / scale are drawn. Default
        ``model.feature_scales``, by which the fit divided them.
    shape : (height, width), optional
        Features are pixels, row by row: the unit is drawn as an image.
    axes : pair of matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    pair of matplotlib Axes
        The axes of the unit and of its weights.

    Raises
    ------
    TypeError
        If it is neither a ``Model`` nor an estimator with one.
    ValueError
        If there is no such unit, or shape or scale do not fit the features.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> model = mopn.Model(np.array([[1.0, -2.0]]), np.array([[0.5, -0.5]]))
    >>> unit, weights = plot_unit(model, 0)
    >>> [label.get_text() for label in unit.get_yticklabels()]
    ['1', '0']
    """
    machine: Any = fitted_model(model)
    if isinstance(machine, TableModel):
        raise TypeError(
            "model is one of a table, whose units are sums of curves of its columns: use plot_effect and plot_pair; "
            "plot_unit(model.model) draws the coefficients of the features that columns have become"
        )
    if not isinstance(machine, Model):
        raise TypeError(
            "model must be a mopn.Model, or an estimator of networks; models of one output have no units h_r"
        )
    k = len(machine.basis)
    d = machine.n_features
    if not k:
        raise ValueError("model has no units to draw: its outputs are constant, or linear; fit with a smaller strength")
    if isinstance(unit, bool) or not isinstance(unit, (int, np.integer)) or not 0 <= unit < k:
        raise ValueError(f"unit must be an integer from 0 to {k - 1}, got {shown(unit)}")
    dummies = machine.basis.shape[1] - d
    h = machine.basis[unit, dummies:]
    v = machine.weights[unit]
    if scale is None:
        scale = machine.feature_scales
    if scale is not None:
        h = h * check_scale(scale, d)
    if shape is not None and (len(shape) != 2 or shape[0] * shape[1] != d):
        raise ValueError(f"shape must be (height, width) of {d} pixels in all, got {shown(shape)}")
    labels = checked_labels(machine.feature_names, d, "feature_names")
    outputs = checked_labels(output_names(machine, None), len(v), "outputs")

    left, right = subplots(1, 2, figsize=(7.2, 3.4)) if axes is None else axes
    if shape is None:
        largest = np.argsort(-np.abs(h), kind="stable")[:10]
        bars(left, [labels[j] for j in largest], h[largest])
        left.set_xlabel("coefficient" if scale is None else "coefficient of the scaled feature")
    else:
        left.imshow(h.reshape(shape), **colors(h))
        left.set_xticks([])
        left.set_yticks([])
    left.set_title(f"unit {unit}")
    bars(right, outputs, v)
    right.set_title("weights in the outputs")
    return left, right

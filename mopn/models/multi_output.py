"""The fitted network: outputs and predictions. It needs NumPy and SciPy only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.core.kernels import get_kernel
from mopn.data.designs import AugmentedDesign, Design, rows_at_once
from mopn.data.validation import check_flag, finite_numbers
from mopn.models.base import Predictor, check_names, check_scale, common_offset
from mopn.models.formula import Formula, kernel_formula


@dataclass(frozen=True, eq=False, repr=False)
class Model(Predictor):
    """A multi-output polynomial network or factorization machine.

    Attributes
    ----------
    basis : ndarray of shape (k, d) or (k, dummies + d)
        Units H; with ``augment`` the leading columns belong to the dummies.
    weights : ndarray of shape (k, m)
        Output weights V.
    kernel : {"homogeneous", "anova"}
    link : {"softmax", "logistic", "log"} or None, default None
        The map from outputs to probabilities, of the classes or that each output is positive; or, ``"log"``, to means,
        which are predicted in place of outputs. Without a link there are no probabilities.
    augment : bool
        Whether dummies, columns of ones, are put in front of X.
    offset : ndarray of shape (m,) or float
        Added to the outputs.
    classes : ndarray of shape (m,) or None
        Labels, if the model predicts labels: one per output, or two for the signs of a single output. For ordered
        levels of shape (m + 1,), ascending.
    target : {"outputs", "vector", "labels", "indicator", "ordinal"}
        Predictions: the outputs (n, m); a single output as (n,); labels (n,); whether each output is positive, as 0 and
        1 (n, m); or the expected level (n,), if output c is for a level of at most classes[c]. Default ``"labels"`` if
        there are classes, else ``"outputs"``.
    linear : ndarray of shape (m, 1 + d), optional
        Coefficients W of a linear term, constants first.
    feature_names : ndarray of shape (d,), optional
        Names of the features in explanations, files and exports, such as the columns of a DataFrame. Give
        others by ``dataclasses.replace(model, feature_names=names)``.
    feature_scales : ndarray of shape (d,), optional
        Divisors of the features in the fit, 0 for constant ones; plots of units use them.
    output_names : ndarray of shape (m,), optional
        Names of outputs that are no classes, in plots: of a Series, or of the columns of a DataFrame.

    Raises
    ------
    ValueError
        If shapes do not fit together or a name is unknown.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.array([[1.0, 0.0]]), np.array([[2.0]]), target="vector")
    >>> model.predict([[3.0, 5.0]])
    array([18.])
    """

    basis: np.ndarray
    weights: np.ndarray
    kernel: str = "homogeneous"
    link: str | None = None
    augment: bool = False
    offset: np.ndarray | float = 0.0
    classes: np.ndarray | None = None
    target: str | None = None
    linear: np.ndarray | None = None
    feature_names: np.ndarray | None = None
    feature_scales: np.ndarray | None = None
    output_names: np.ndarray | None = None

    def __post_init__(self) -> None:
        basis = finite_numbers(self.basis, "basis")
        weights = finite_numbers(self.weights, "weights")
        if basis.ndim != 2 or weights.ndim != 2 or len(basis) != len(weights):
            raise ValueError(f"basis must be (k, d) and weights (k, m), got shapes {basis.shape} and {weights.shape}")
        offset = finite_numbers(self.offset, "offset")
        linear = None if self.linear is None else finite_numbers(self.linear, "linear")
        kernel = get_kernel(self.kernel).name
        augment = check_flag(self.augment, "augment")
        self._set(basis=basis, weights=weights, linear=linear, kernel=kernel, augment=augment)
        if self.n_features < 1:
            raise ValueError(f"basis of shape {basis.shape} has no columns besides the dummies")
        m = weights.shape[1]
        if m < 1:
            raise ValueError(f"weights of shape {weights.shape} have no output; they need at least 1 column")
        if offset.shape not in ((), (m,)):
            raise ValueError(f"offset must be a number or of shape ({m},), got shape {offset.shape}")
        self._set(offset=offset if offset.ndim else float(offset))
        if linear is not None and linear.shape != (m, 1 + self.n_features):
            raise ValueError(f"linear must have shape {(m, 1 + self.n_features)}, got {linear.shape}")
        if self.feature_scales is not None:
            self._set(feature_scales=check_scale(self.feature_scales, self.n_features, "feature_scales"))
        self._set(output_names=check_names(self.output_names, m, "output_names"))
        self._check_target(m)

    @classmethod
    def from_result(cls, problem: Any, result: Any, *, classes: Any = None, target: str | None = None) -> Model:
        """Return the model of a solved ``NetworkProblem``, for the user's X and y; a constant offset is kept.

        Parameters
        ----------
        problem : NetworkProblem
        result : Result, or anything with ``basis``, ``weights`` and, if the network has one, ``linear``
        classes : array-like of shape (m,), optional
            Labels in place of the problem's; two of them for a single output.
        target : str, optional
            The kind of predictions; see :class:`Model`.

        Returns
        -------
        Model
            It shares no array with the result.

        Raises
        ------
        ValueError
            If the problem's offset differs between samples.
        """
        offset: Any = common_offset(problem.losses.offset)
        offset = 0.0 if offset is None else offset
        basis, weights, linear = problem.user_X.network(result.basis, result.weights, getattr(result, "linear", None))
        if problem.user_y is not None:
            weights, linear = problem.user_y.network(weights, linear)
            offset = problem.user_y.offset(offset)
        return cls(
            basis=basis,
            weights=weights,
            linear=linear,
            kernel=problem.kernel.name,
            link=problem.losses.loss.link,
            augment=problem.augment,
            offset=offset,
            classes=problem.classes if classes is None else np.asarray(classes),
            target=target,
            feature_scales=problem.user_X.feature_scales,
        )

    @property
    def n_features(self) -> int:
        """Number of columns that X must have."""
        return self.basis.shape[1] - self._dummies

    @property
    def _dummies(self) -> int:
        return get_kernel(self.kernel).dummies if self.augment else 0

    def formula(self) -> Formula:
        units = kernel_formula(self.kernel, np.array([0.0, 1.0]), self.basis, self._dummies, self.weights)
        W = np.zeros((self.weights.shape[1], 1 + self.n_features)) if self.linear is None else self.linear
        return Formula(units.constant + W[:, 0] + self.offset, W[:, 1:], units.squares, units.terms)

    def outputs_of_design(self, design: Design) -> np.ndarray:
        """Return K(X, H) V + [1, X] W' + offset, shape (n, m)."""
        kernel = get_kernel(self.kernel)
        if self.augment:
            design = AugmentedDesign(design, kernel.dummies)
        out = np.empty((design.shape[0], self.weights.shape[1]))
        # No array of shape (n, k) is formed.
        for rows, block in design.blocks(rows_at_once(sum(self.weights.shape))):
            np.matmul(kernel.features(block, self.basis), self.weights, out=out[rows])
            if self.linear is not None:
                out[rows] += AugmentedDesign(block.without_dummies, 1).project(self.linear)
        out += self.offset
        return out

"""The fitted model of one output and any degree: outputs and predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from mopn.data.designs import Design, rows_at_once
from mopn.data.validation import check_count, check_factor_kernel, finite_numbers
from mopn.models.base import Predictor, common_offset
from mopn.models.formula import Formula, kernel_formula, pairs, products
from mopn.models.multi_output import Model
from mopn.solvers.tools.checks import choice

_FORMS = ("direct", "lifted")
# Bounds the memory that the degree in a file can ask for; far above the degrees that can be fitted.
_MAX_DEGREE = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class FactorizationModel(Predictor):
    """A factorization machine or polynomial network of one output.

    Attributes
    ----------
    factors : ndarray
        Direct: P (orders, k, dummies + d), of degrees ``degree``, ``degree - 1``, ... Lifted: U (degree, r, dummies +
        d).
    degree : int
    form : {"direct", "lifted"}
        sum_s lambda_s K(p_s, x), or sum_s prod_t <u_s^t, x>.
    kernel : {"anova", "all-subsets", "homogeneous"}
    lams : ndarray of shape (k,) or None
        lambda, for the direct form.
    theta : ndarray of shape (degree,) or None
        Weights of the degrees of the ANOVA kernel, if the direct form has some.
    w : ndarray of shape (d,) or None
        Linear term.
    intercept : float
    dummies : int
        Number of dummies, columns of ones, in front of X; the linear term has no coefficients for them.
    link : {"logistic", "log"} or None, default None
        The map from outputs to probabilities that they are positive, or to means, which are then predicted.
    classes : ndarray of shape (2,) or None
        Labels, if the model predicts labels: the second one for positive outputs.
    target : {"vector", "labels", "outputs"}
        Predictions: by default labels if there are classes, else numbers (n,).
    feature_names : ndarray of shape (d,), optional
        Names of the features; see :class:`mopn.Model`.

    Raises
    ------
    ValueError
        If shapes do not fit together or a name is unknown.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.FactorizationModel(factors=np.array([[[1.0, 1.0, 2.0]]]), degree=2, lams=np.ones(1))
    >>> model.predict([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    array([5., 2.])
    """

    factors: np.ndarray
    degree: int
    form: str = "direct"
    kernel: str = "anova"
    lams: np.ndarray | None = None
    theta: np.ndarray | None = None
    w: np.ndarray | None = None
    intercept: np.ndarray | float = 0.0
    dummies: int = 0
    link: str | None = None
    classes: np.ndarray | None = None
    target: str | None = None
    feature_names: np.ndarray | None = None

    def __post_init__(self) -> None:
        choice(_FORMS)(self.form, "form")
        degree = check_count(self.degree, "degree")
        dummies = check_count(self.dummies, "dummies", least=0)
        if degree > _MAX_DEGREE:
            raise ValueError(f"degree must be at most {_MAX_DEGREE}, got {degree}")
        factors = finite_numbers(self.factors, "factors")
        intercept = finite_numbers(self.intercept, "intercept")
        if intercept.ndim:
            raise ValueError(f"intercept must be a number, got shape {intercept.shape}")
        self._set(degree=degree, dummies=dummies, factors=factors, intercept=float(intercept))
        for name in ("lams", "theta", "w"):
            value = getattr(self, name)
            if value is not None:
                self._set(**{name: finite_numbers(value, name)})
        check_factor_kernel(self.kernel, degree, self.theta)
        self._check_form()
        if self.n_features < 1:
            raise ValueError(f"factors of shape {self.factors.shape} have no columns besides the dummies")
        if self.w is not None and self.w.shape != (self.n_features,):
            raise ValueError(f"w must have shape ({self.n_features},), got {self.w.shape}")
        if self.target is None and self.classes is None:
            self._set(target="vector")
        self._check_target(1)

    def _check_form(self) -> None:
        if self.factors.ndim != 3:
            raise ValueError(f"factors must have three axes, got shape {self.factors.shape}")
        orders, k = self.factors.shape[:2]
        if self.form == "lifted":
            if orders != self.degree:
                raise ValueError(f"a lifted model of degree {self.degree} has as many factors, got {orders}")
            if self.kernel == "all-subsets" or (self.kernel == "anova" and self.degree != 2):
                raise ValueError(f"kernel={self.kernel!r} of degree {self.degree} has no lifted form")
            return
        if self.lams is None or self.lams.shape != (k,):
            raise ValueError(f"lams must hold one number per unit, {k} in all, got {self.lams!r}")
        most = self.degree if self.theta is None else 1
        if not 1 <= orders <= most:
            raise ValueError(f"factors must hold the units of one degree at least and {most} at most, got {orders}")

    @classmethod
    def from_result(cls, problem: Any, result: Any, *, classes: Any = None) -> FactorizationModel:
        """Return the model of a solved ``FactorizationProblem`` or ``LiftedProblem`` of a single X.

        Parameters
        ----------
        problem : FactorizationProblem or LiftedProblem
        result : Result
        classes : array-like of shape (2,), optional
            Labels of negative and positive outputs.

        Returns
        -------
        FactorizationModel
            It shares no array with the result.

        Raises
        ------
        ValueError
            If the problem's offset differs between samples, or each factor has its own X.
        """
        offset = common_offset(problem.losses.offset)
        lifted = "U" in result
        if lifted and not isinstance(result["U"], np.ndarray):
            raise ValueError("each factor of this problem has its own X; a model has a single X")
        theta = result.get("theta", None if lifted else problem.theta)
        shift = 0.0 if offset is None else float(offset[0])
        return cls(
            factors=np.array(result["U"] if lifted else result["P"]),
            degree=problem.degree,
            form="lifted" if lifted else "direct",
            kernel=problem.kernel_name,
            lams=None if lifted else np.array(result["lams"]),
            theta=None if theta is None else np.array(theta, dtype=np.float64),
            w=np.array(result["w"]) if "w" in result else None,
            intercept=float(result["intercept"][0]) + shift if "intercept" in result else shift,
            dummies=problem.dummies,
            link=problem.losses.loss.link,
            classes=None if classes is None else np.asarray(classes),
        )

    @classmethod
    def from_outputs(cls, model: Model, combination: Any) -> FactorizationModel:
        """Return a combination of the outputs of a multi-output model as a model of one output.

        Parameters
        ----------
        model : Model
        combination : array-like of shape (m,)
            The coefficients of the outputs in the sum.

        Returns
        -------
        FactorizationModel
            A model of degree 2, with the units as P, their combined weights as lambda, and the combined linear term.

        Raises
        ------
        ValueError
            If the combination does not hold one finite number per output.
        """
        m = model.weights.shape[1]
        combination = finite_numbers(combination, "combination")
        if combination.shape != (m,):
            raise ValueError(f"combination must hold {m} finite numbers, one per output, got {combination!r}")
        linear = None if model.linear is None else combination @ model.linear
        constant = 0.0 if linear is None else float(linear[0])
        return cls(
            factors=model.basis[None],
            degree=2,
            kernel=model.kernel,
            lams=model.weights @ combination,
            w=None if linear is None else linear[1:],
            intercept=float(np.broadcast_to(model.offset, (m,)) @ combination) + constant,
            dummies=model.basis.shape[1] - model.n_features,
            feature_names=model.feature_names,
        )

    @property
    def n_features(self) -> int:
        """Number of columns that X must have."""
        return self.factors.shape[2] - self.dummies

    def outputs_of_design(self, design: Design) -> np.ndarray:
        formula = self.formula()
        out = np.empty((design.shape[0], 1))
        for rows, block in design.blocks(rows_at_once(formula.entries)):
            out[rows] = formula.outputs(block)
        return out

    def formula(self) -> Formula:
        lams = self.lams if self.form == "direct" else None
        weights = np.ones((self.factors.shape[1], 1)) if lams is None else lams[:, None]
        if self.form == "direct":
            formulas = []
            for degree, P in zip(self.degrees(), self.factors, strict=True):
                formulas.append(kernel_formula(self.kernel, self.theta_of(degree), P, self.dummies, weights))
            units = reduce(add, formulas)
        elif self.kernel == "anova":
            P, R = self.factors
            units = pairs(P, R, self.dummies, weights)
        else:
            units = products(self.factors, self.dummies, weights)
        linear = units.linear if self.w is None else units.linear + self.w
        return Formula(units.constant + self.intercept, linear, units.squares, units.terms)

    def theta_of(self, degree: int) -> np.ndarray:
        """Return the weights (degree,) of the degrees of the ANOVA kernel."""
        if self.theta is not None:
            return self.theta
        return (np.arange(1, degree + 1) == degree).astype(float)

    def degrees(self) -> range:
        """Return the degree of each of the factors."""
        return range(self.degree, self.degree - len(self.factors), -1)

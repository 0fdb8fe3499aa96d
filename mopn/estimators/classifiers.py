"""Multi-class and multi-label classifiers."""

from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from mopn.core.norms import NormName
from mopn.core.regularizers import Ratio
from mopn.data.feature_scaling import ScaleName
from mopn.estimators.base import Scored
from mopn.estimators.encodings import LabelEncoding, takes_indicators
from mopn.estimators.fit_policy import FitPolicy
from mopn.estimators.fold_in import NetworkFoldIn
from mopn.estimators.network_estimator import NetworkEstimator
from mopn.estimators.parameters import MAX_UNITS
from mopn.losses.losses import LOSSES, Loss, LossName
from mopn.network.oracles import BasisOracle, OracleName
from mopn.solvers.conditional_gradient import RefitName
from mopn.solvers.conditional_gradient.corrective_step import CorrectiveStep

# Links to probabilities.
_LINKS = ("softmax", "logistic")


def _known_loss(loss: Any) -> Loss | None:
    if isinstance(loss, str):
        return LOSSES.get(loss)
    return loss if isinstance(loss, Loss) else None


def _has_probabilities(classifier: Any) -> bool:
    """Return True; without ``predict_proba``, raise an ``AttributeError`` that says why."""
    loss = _known_loss(classifier.loss)
    if loss is None or loss.link not in _LINKS:
        models = " or ".join(repr(name) for name in LOSSES if LOSSES[name].link in _LINKS)
        raise AttributeError(
            f"loss={classifier.loss!r} is not a probability model; for predict_proba use loss={models}, or a Loss that "
            "declares a link"
        )
    return True


class ClassifierMethods(Scored, ClassifierMixin):
    """Predictions of the classifiers that have a network."""

    classes_: np.ndarray
    """Sorted labels, or the numbers of the columns of an indicator matrix y."""

    loss: LossName | Loss
    class_weight: Any
    model_: Any
    _checked: Any
    _numeric_y = False

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs for X as for ``predict``; predictions follow from the largest one, or from signs.

        They are (n, m), a column per class or column of an indicator matrix; for two classes (n,), positive for
        ``classes_[1]``.
        """
        X = self._checked(X)
        outputs = self.model_.outputs(X)
        if self.model_.target == "labels" and len(self.classes_) == 2:
            return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs[:, 0]
        return outputs

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities, for the losses "logistic" and "binary-logistic" and losses that declare a link.

        Parameters
        ----------
        X : as for ``predict``

        Returns
        -------
        ndarray of shape (n, c) or (n, m)
            The probability of each of the c classes, or of a 1 in each column of an indicator matrix. Probabilities of
            one-against-rest losses are normalised to add up to 1.
        """
        X = self._checked(X)
        return self.model_.predict_proba(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        loss = _known_loss(self.loss)
        tags.classifier_tags.multi_label = loss is None or takes_indicators(loss)
        return tags

    def _encoding(self) -> LabelEncoding:
        return LabelEncoding(self.loss, self.class_weight)


class Classifier(ClassifierMethods, NetworkEstimator):
    """Base of the classifiers."""

    _policy = FitPolicy(single_precision=True)

    def __init__(
        self,
        *,
        loss: LossName | Loss = "logistic",
        norm: NormName = "l1",
        strength: float | Ratio = Ratio(0.001),
        max_units: int | Literal["auto"] | None = "auto",
        refit: RefitName | CorrectiveStep = "full",
        oracle: OracleName | BasisOracle = "auto",
        fit_intercept: bool = True,
        scale: ScaleName | None = "features",
        alpha: float | None = None,
        ridge: float = 0.03,
        tol: float = 5e-3,
        max_time: float | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            loss=loss,
            norm=norm,
            strength=strength,
            max_units=max_units,
            refit=refit,
            oracle=oracle,
            fit_intercept=fit_intercept,
            scale=scale,
            alpha=alpha,
            ridge=ridge,
            tol=tol,
            max_time=max_time,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight


class MultiOutputPNClassifier(Classifier):
    r"""Multi-class and multi-label classifier: one polynomial network for all classes.

    The outputs are :math:`b + \sum_r \langle h_r, z\rangle^2 v_r` with :math:`z = [1, x]`, where the constants b of
    least loss give the frequencies of the classes. Units :math:`h_r` and weights
    :math:`v_r` minimise a convex problem over all networks of any size, and the distance to its minimum is bounded
    (``gap_``).

    Parameters
    ----------
    loss : str or Loss, default "logistic"
        Multi-class: "logistic", "smoothed-hinge", "squared-hinge". One against the rest: "binary-logistic",
        "binary-squared-hinge", "squared". For an indicator matrix y, "logistic" and "squared-hinge" mean their
        binary forms.
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1"
        Norm of the output weights, which makes most units zero. With "l1" every output has its own units, and the
        certificate is tight; "nonnegative-l1" is the same with weights >= 0. With the others outputs share units, which
        suits many outputs.
    strength : float or Ratio, default Ratio(0.001)
        Strength of the penalty; larger means fewer units. A :class:`mopn.Ratio` is relative to the smallest
        strength whose solution is zero; a number multiplies the norm, next to the sum of the losses.
    max_units : int, None or "auto", default "auto"
        Limit on the units. A number asks for the best network of this size; with None units are added until the gap is
        at most ``tol``. "auto" is 200 or, under "l1" and "nonnegative-l1", 10 for each output if that is more. With a
        number, a fit under "l1" is proven as far as a short time allows; under another norm, up to 5e7 rows times
        features times outputs.
    refit : {"full", "output", "none"} or one of FullRefit, OutputRefit, PlainStep, default "full"
        Correction after new units: refit units and output weights together (not convex, but smaller and better
        networks sooner), refit the output weights (convex), or take a conditional gradient step. An object sets its
        own tolerances.
    oracle : str or oracle, default "auto"
        Method of :func:`mopn.oracles.basis_oracle`, or an oracle, which finds and bounds units. ``"exact"`` proves
        more than ``"auto"``, and may take long with many features.
    fit_intercept : bool, default True
        Give the units a constant and linear terms, by a dummy column of ones in front of X, and subtract the mean
        of X, so that the penalty does not depend on the origin. Sparse X stays sparse.
    scale : {"features", "data", "large"} or None, default "features"
        Divide every feature by its deviation, or X by one number, so that the mean squared length of a sample is 4 and
        the penalty does not depend on the units of X. "large", for one-hot rows, divides the features that many rows
        share (:class:`mopn.NetworkProblem`). The fitted model is for X as given.
    alpha : float or None, default None
        Strength of the penalty :math:`\frac{\alpha}{2} (\|W\|^2 + \|b\|^2 / 100)` of a linear term W with constants
        b, which shrinks every coefficient separately. None for no such term.
    ridge : float, default 0.03
        Strength of the ridge on the outputs as functions, for rows of a mean squared length of 4; see
        :class:`mopn.NetworkProblem`. Larger means smoother outputs of more units, and proofs that cost less. It
        does not depend on the units of X. The losses are added up, so that it weighs less the more rows there are.
    tol : float, default 0.005
        Relative tolerance of the objective: a fit stops at a relative gap of ``tol`` or, with ``max_units``, when
        ten iterations of the last refit together decrease it by less. With 0 only the limits stop a fit.
    max_time : float or None, default None
        Largest number of seconds for ``fit``; default no limit.
    class_weight : dict, "balanced" or None, default None
        Factors of the sample weights, by label; "balanced" gives all classes the same total. For labels only.
    warm_start : bool, default False
        Start from the network of the previous fit.
    random_state : int, RandomState or None, default None
        Seed of the validation split.
    verbose : int, default 0
        Print every ``verbose``-th round as a row of a table; 0 prints nothing.

    See Also
    --------
    MultiOutputFMClassifier : Products of distinct features only, for sparse and categorical data.

    Examples
    --------
    The exclusive or of two signs, which no linear classifier represents:

    >>> import numpy as np
    >>> from mopn.estimators import MultiOutputPNClassifier
    >>> X = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    >>> y = np.array(["same", "different", "different", "same"])
    >>> classifier = MultiOutputPNClassifier(strength=0.1).fit(X, y)
    >>> classifier.predict([[0.5, 0.8], [-0.5, 0.8]])
    array(['same', 'different'], dtype='<U9')
    >>> classifier.gap_ <= classifier.tol * classifier.objective_
    True
    """

    _kernel = "homogeneous"
    _rules = Classifier._rules | {"max_units": MAX_UNITS.or_auto()}


class MultiOutputFMClassifier(NetworkFoldIn, Classifier):
    r"""Multi-class and multi-label classifier: a factorization machine whose classes share their units.

    The outputs are :math:`b + \sum_r v_r \sum_{i<j} h_{ri} z_i h_{rj} z_j` with :math:`z = [1, 1, x]`: a constant, a
    linear term and the products of distinct features, around the frequencies of the classes, which b gives. Units
    :math:`h_r` and weights :math:`v_r` minimise a convex problem over all networks of any size, and the distance to its
    minimum is bounded (``gap_``).

    Parameters
    ----------
    loss : str or Loss, default "logistic"
        Multi-class: "logistic", "smoothed-hinge", "squared-hinge". One against the rest: "binary-logistic",
        "binary-squared-hinge", "squared". For an indicator matrix y, "logistic" and "squared-hinge" mean their
        binary forms.
    norm : {"l1", "l1/l2", "l1/linf", "nonnegative-l1"}, default "l1/l2"
        Norm of the output weights, which makes most units zero. With "l1/l2" and "l1/linf" outputs share units.
        With "l1" and "nonnegative-l1" (weights >= 0) each has its own: for wide one-hot rows far more, and
        without a tight bound.
    strength : float or Ratio, default Ratio(0.001)
        Strength of the penalty; larger means fewer units. A :class:`mopn.Ratio` is relative to the smallest
        strength whose solution is zero; a number multiplies the norm, next to the sum of the losses.
    max_units : int or None, default 50
        Limit on the units. A number asks for the best network of this size; with None units are added until the gap is
        at most ``tol``. With a number, a fit under "l1" is proven as far as a short time allows; under another norm, up
        to 5e7 rows times features times outputs.
    refit : {"full", "output", "none"} or one of FullRefit, OutputRefit, PlainStep, default "full"
        Correction after new units: refit units and output weights together (not convex, but smaller and better
        networks sooner), refit the output weights (convex), or take a conditional gradient step. An object sets its
        own tolerances.
    oracle : str or oracle, default "auto"
        Method of :func:`mopn.oracles.basis_oracle`, or an oracle, which finds and bounds units. ``"exact"`` proves
        more than ``"auto"``, and may take long with many features.
    fit_intercept : bool, default True
        Give the units a constant and linear terms, by two dummy columns of ones in front of X, which stays sparse.
    scale : {"features", "data", "large"} or None, default "features"
        Divide every feature by its deviation, or X by one number, so that the mean squared length of a sample is 4 and
        the penalty does not depend on the units of X. "large", for one-hot rows, divides the features that many rows
        share (:class:`mopn.NetworkProblem`). The fitted model is for X as given.
    alpha : float or None, default None
        Strength of the penalty :math:`\frac{\alpha}{2} (\|W\|^2 + \|b\|^2 / 100)` of a linear term W with constants
        b, which shrinks every coefficient separately. None for no such term.
    ridge : float, default 0.0
        Strength of the ridge on the outputs as functions (:class:`mopn.NetworkProblem`): larger means smoother
        outputs of more units. ``fold_in`` takes models without it.
    tol : float, default 0.005
        Relative tolerance of the objective: a fit stops at a relative gap of ``tol`` or, with ``max_units``, when
        ten iterations of the last refit together decrease it by less. With 0 only the limits stop a fit.
    max_time : float or None, default None
        Largest number of seconds for ``fit``; default no limit.
    class_weight : dict, "balanced" or None, default None
        Factors of the sample weights, by label; "balanced" gives all classes the same total. For labels only.
    warm_start : bool, default False
        Start from the network of the previous fit.
    random_state : int, RandomState or None, default None
        Seed of the validation split.
    verbose : int, default 0
        Print every ``verbose``-th round as a row of a table; 0 prints nothing.

    See Also
    --------
    MultiOutputPNClassifier : The features' squares as well.

    Examples
    --------
    >>> import numpy as np
    >>> from mopn.estimators import MultiOutputFMClassifier
    >>> X = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
    >>> Y = np.array([[1, 0], [0, 0], [0, 1], [1, 1]])
    >>> MultiOutputFMClassifier(strength=0.1).fit(X, Y).predict(X).tolist()  # two labels a sample
    [[1, 0], [0, 0], [0, 1], [1, 1]]
    """

    _kernel = "anova"

    def __init__(
        self,
        *,
        loss: LossName | Loss = "logistic",
        norm: NormName = "l1/l2",
        strength: float | Ratio = Ratio(0.001),
        max_units: int | None = 50,
        refit: RefitName | CorrectiveStep = "full",
        oracle: OracleName | BasisOracle = "auto",
        fit_intercept: bool = True,
        scale: ScaleName | None = "features",
        alpha: float | None = None,
        ridge: float = 0.0,
        tol: float = 5e-3,
        max_time: float | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            loss=loss,
            norm=norm,
            strength=strength,
            max_units=max_units,
            refit=refit,
            oracle=oracle,
            fit_intercept=fit_intercept,
            scale=scale,
            alpha=alpha,
            ridge=ridge,
            tol=tol,
            max_time=max_time,
            class_weight=class_weight,
            warm_start=warm_start,
            random_state=random_state,
            verbose=verbose,
        )

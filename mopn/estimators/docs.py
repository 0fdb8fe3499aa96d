"""The sections that the docstrings of the estimators share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

__all__ = ["documented", "filled"]

_PARAMETERS = """loss : {losses}
    norm : {{"l1", "l1/l2", "l1/linf"}}, default "l1/l2"
        The norm Omega of the output weights, which makes most units zero: l1 gives every output its own units, the
        others share units between the outputs.
    strength : float or None, default 1.0
        Strength of the penalty ``strength * Omega``; larger means fewer units. The losses are added up over the
        samples, not averaged, so it plays the role of 1 / C in ``LogisticRegression``. None if ``radius`` is given.
    radius : float, optional
        The constraint ``Omega <= radius``, the paper's form, in place of the penalty.
    max_units : int or None, default 50
        Largest number of units; the fit also ends when twice as many have been tried. None leaves it to ``tol``.
    refit : {{"full", "output", "none"}}, default "full"
        What follows new units. "full" refits units and output weights together, which is not convex, but gives smaller
        and better networks sooner: a round adds all units that there is room for. "output" refits the output weights,
        a convex problem, and adds about a tenth of the units a round. "none" takes a plain conditional gradient step.
    augment : bool, default {augment}
        Put 1-features in front of X (one for PN, two for FM), which give the model linear and constant terms.
    alpha : float or None, default {alpha}
        Strength of the penalty ``alpha / 2 * ||W||^2`` of a linear term beside the units, which shrinks every
        coefficient by itself; its constants pay a hundredth. None for no such term.
    tol : float, default {tol}
        Stop when the gap is at most ``tol`` times the objective; 0 leaves it to the limits.
    max_iter : int or None, default 1000
        Largest number of rounds, if nothing else ends the fit before.
    max_time : float, optional
        Largest number of seconds for the solver.
    validation_fraction : float, default 0.0
        Fraction of the samples to hold out (stratified for labels). The network is scored on them as by ``score``
        after every round, and the best one is kept: this chooses the number of units, of which a round then adds 5 at
        most.
    n_iter_no_change : int, default 10
        With ``validation_fraction``: stop after so many rounds without a better score.
    {class_weight}warm_start : bool, default False
        Start from the previous fit's network.
    verbose : int, default 0
        Print a table with every ``verbose``-th round.
    callback : callable, optional
        Called after every round as ``callback(intermediate_result=Result)``; ``StopIteration`` stops the fit.
    random_state : int, RandomState or None, default None
        Seed of the validation split; nothing else is random."""

_ATTRIBUTES = """{classes}model_ : Model
        The model on its own, which ``save`` writes.
    basis_ : ndarray of shape (k, dummies + d)
        Units H, of length 1; the leading columns belong to the 1-features.
    weights_ : ndarray of shape (k, m)
        Output weights V; m counts {outputs}.
    linear_ : ndarray of shape (m, 1 + d) or None
        Coefficients W of the linear term, constants first, if ``alpha`` gives one.
    objective_, gap_ : float
        The objective, and an upper bound of its distance to the minimum over all networks of any size.
    certified_ : bool
        Whether the gap is finite and proven.
    status_ : Status
        Why the solver stopped; ``status_.message`` is a sentence.
    n_iter_ : int
        Rounds done, at least 1.
    trace_ : Trace
        A row a round: time, objective, gap, number of units.
    validation_scores_ : ndarray or None
        The score at every row of the trace, if ``validation_fraction`` is positive.
    n_features_in_ : int
        Number of features d.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, if all are strings."""

_REFERENCE = """Blondel, Niculae, Otsuka and Ueda: Multi-output Polynomial Networks and Factorization Machines.
    NIPS 2017. Algorithm 1 solves problem (2), with a penalty in place of the constraint unless ``radius`` is given."""

_KINDS = {
    "classifier": {
        "losses": """str or Loss, default "logistic"
        For several classes at once "logistic", "smoothed-hinge", "squared-hinge"; for each class against the rest
        "binary-logistic", "binary-squared-hinge", "squared". If y is an indicator matrix, "logistic" and
        "squared-hinge" mean their binary forms.""",
        "class_weight": """class_weight : dict, "balanced" or None, default None
        Factors of the sample weights, by label; "balanced" makes all classes weigh the same. For labels only.
    """,
        "classes": """classes_ : ndarray of shape (m,)
        Sorted labels, or the numbers of the columns of an indicator matrix y.
    """,
        "alpha": "None",
        "tol": "1e-3",
        "augment": "True",
        "outputs": "classes or columns of y; it is 1 for two classes with a loss for each class",
    },
    "regressor": {
        "losses": """str or Loss, default "squared"
        "squared", or an object of your own.""",
        "class_weight": "",
        "classes": "",
        "alpha": "None",
        "tol": "1e-3",
        "augment": "True",
        "outputs": "columns of y",
    },
    "ordinal": {
        "losses": """str or Loss, default "binary-logistic"
        "binary-logistic", or an object of your own with probabilities.""",
        "class_weight": "",
        "classes": """levels_ : ndarray of shape (m + 1,)
        The sorted distinct values of y.
    """,
        "alpha": "0.7",
        "tol": "5e-3",
        "augment": "False",
        "outputs": "levels but one",
    },
}

# What the classifiers with cross-validation lack, and what they have instead.
_WITHOUT = (
    *("strength", "radius", "max_time", "validation_fraction", "n_iter_no_change", "warm_start", "callback"),
    *("random_state", "validation_scores_"),
)
_CV_PARAMETERS = """strengths : int or array-like of shape (q,), default 20
        How many strengths, in geometric series from the smallest whose solution is zero down to ``ratio`` times it; or
        the strengths themselves. The losses are added up over the samples, so a fold's training part, which is smaller
        than all samples, feels a strength more.
    ratio : float, default 1e-3
        The smallest strength over the largest, if ``strengths`` is a number.
    cv : int, splitter or iterable, default 5
        Folds, as for ``sklearn.model_selection.cross_val_score``; stratified for labels.
    n_jobs : int or None, default None
        Folds at a time, each in a process of its own (joblib); joblib then shares the threads of the linear algebra
        between them.
    """
_CV_ATTRIBUTES = """strength_ : float
        The strength of the best mean score; of equal ones the largest.
    strengths_ : ndarray of shape (q,)
        All strengths, descending.
    scores_ : ndarray of shape (folds, q)
        Accuracy on the held-out part of every fold; samples and classes weigh what they weigh in the objective.
    """
_Class = TypeVar("_Class", bound=type)


def documented(kind: str, *, cross_validated: bool = False) -> Callable[[_Class], _Class]:
    """Return a class decorator that fills ``{parameters}``, ``{attributes}`` and ``{reference}`` in."""
    parts = {
        "parameters": _PARAMETERS.format(**_KINDS[kind]),
        "attributes": _ATTRIBUTES.format(**_KINDS[kind]),
        "reference": _REFERENCE,
    }
    if cross_validated:
        parts["parameters"] = _CV_PARAMETERS + _without(parts["parameters"])
        parts["attributes"] = _CV_ATTRIBUTES + _without(parts["attributes"])

    return filled(**parts)


def filled(**parts: str) -> Callable[[_Class], _Class]:
    """Return a class decorator that fills sections into the docstring."""

    def fill(cls: _Class) -> _Class:
        for name, text in parts.items():
            cls.__doc__ = (cls.__doc__ or "").replace("{" + name + "}", text)
        return cls

    return fill


def _without(section: str) -> str:
    """Drop the entries that the classifiers with cross-validation lack."""
    entries = re.split(r"\n    (?=\w)", section)
    return "\n    ".join(entry for entry in entries if entry.split(" : ")[0] not in _WITHOUT)

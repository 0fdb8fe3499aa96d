"""The sections that the docstrings of the estimators share, with the defaults of each signature."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

__all__ = [
    "BINARY_CLASSIFIER",
    "CLASSIFIER",
    "CROSS_VALIDATED",
    "FACTORIZATION_MACHINE",
    "FACTORIZATION_MACHINE_CROSS_VALIDATED",
    "FOLDS",
    "NETWORK",
    "ORDINAL",
    "POLYNOMIAL_NETWORK",
    "REGRESSOR",
    "SINGLE_OUTPUT",
    "SINGLE_OUTPUT_CROSS_VALIDATED",
    "SINGLE_OUTPUT_REGRESSOR",
    "VALIDATED",
    "Prose",
    "documented",
]

_Class = TypeVar("_Class", bound=type)


class Prose(NamedTuple):
    """Entries of parameters, without their defaults, and of attributes, as numpydoc has them; and a reference."""

    parameters: str = ""
    attributes: str = ""
    reference: str = ""


def documented(*parts: Prose) -> Callable[[_Class], _Class]:
    """Return a class decorator that puts the sections Parameters, Attributes and References into the docstring.

    The parameters are those of ``__init__``, in its order and with its defaults. Where several parts have an entry of
    one name, or a reference, the first of them counts.
    """
    parameters = _entries(*(part.parameters for part in parts))
    attributes = _entries(*(part.attributes for part in parts))
    reference = next((part.reference.strip("\n") for part in parts if part.reference), None)

    def document(cls: _Class) -> _Class:
        signature = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
        own = [_with_default(parameters[p.name], p.default) for p in signature if p.name != "self"]
        if cls.__doc__ is None:  # python -OO
            return cls
        doc = _insert(inspect.cleandoc(cls.__doc__), "See Also", _section("Parameters", own))
        doc = _insert(doc, "See Also", _section("Attributes", list(attributes.values())))
        cls.__doc__ = _insert(doc, "Examples", _section("References", [reference])) if reference else doc
        return cls

    return document


def _entries(*texts: str) -> dict[str, str]:
    """Return the entries by name; the first ones count, in the order of the last text, others come first."""
    parsed = []
    for text in texts:
        entries = re.split(r"\n(?=\w)", text.strip("\n")) if text else []
        parsed.append({entry.split(" : ")[0]: entry for entry in entries})
    merged: dict[str, str] = {}
    for entries_of_text in reversed(parsed):
        new = {name: entry for name, entry in entries_of_text.items() if name not in merged}
        merged = new | merged | entries_of_text
    return merged


def _with_default(entry: str, default: Any) -> str:
    """Return the entry of a parameter with its default in the first line."""
    first, *rest = entry.split("\n")
    kind = first.split(" : ")[1]
    if default is None and "None" not in kind:
        first += ", optional"
    else:
        first += f", default {json.dumps(default) if isinstance(default, str) else repr(default)}"
    return "\n".join([first, *rest])


def _section(title: str, entries: list[str]) -> str:
    return "\n".join([title, "-" * len(title), *entries])


def _insert(doc: str, before: str, section: str) -> str:
    """Insert a section before another one of a class docstring."""
    head, tail = re.split(rf"(?=^{before}\n---)", doc, maxsplit=1, flags=re.MULTILINE)
    return f"{head}{section}\n\n{tail}"


# -- several outputs ---------------------------------------------------------------------------------------------------

NETWORK = Prose(
    parameters="""
norm : {"l1", "l1/l2", "l1/linf"}
    The norm Omega of the output weights, which makes most units zero. With "l1" every output has its own units; with
    the others the outputs share units.
strength : float or None
    Strength of the penalty ``strength * Omega``; larger means fewer units. The losses are added up over the
    samples, not averaged, so it corresponds to 1 / C in ``LogisticRegression``. None for ``share``, or if ``radius`` is
    given.
radius : float
    The constraint ``Omega <= radius``, the paper's form, instead of the penalty.
share : float
    The strength as a share, in (0, 1), of the largest one of use, above which the network is empty. Unlike ``strength``
    it need not change with the number of samples, with the number of outputs or with the units of X and y.
max_units : int or None
    Largest number of units. A number asks for the best network of this size: with refits, units are added as early as
    possible until it is reached, or twice as many have been tried, and a long refit follows (``schedule="fill"`` of
    :class:`mopn.solvers.ConditionalGradient`). None asks for a proof: units are added until the gap is at most ``tol``
    (``schedule="grow"``).
refit : {"full", "output", "none"} or one of FullRefit, OutputRefit, PlainStep
    The correction after new units. "full" refits units and output weights together: this is not convex, but gives
    smaller and better networks sooner. "output" refits the output weights, a convex problem. "none" takes a plain
    conditional gradient step. The objects of ``mopn.solvers`` set further options, such as
    ``FullRefit(precision="single")``; they also set the accuracy of the refits, for which names use ``tol``.
oracle : str or oracle
    How units are found and what is proven of those that were not: a method of :func:`mopn.oracles.basis_oracle`, or an
    oracle that it returned. ``"exact"`` proves more than ``"auto"`` and may take long with many features;
    ``"lanczos"`` serves very many features, with bounds that hold with a probability near 1.
augment : bool
    Put dummies, columns of ones, in front of X (one for PN, two for FM): they give the model linear and constant
    terms.
center : bool or None
    Whether the problem is solved for X minus its mean, so that the penalty does not depend on the origin of the
    features; the model is for X itself. Sparse X stays sparse. For polynomial networks with ``augment`` only: None is
    True for these, and False for other models.
scale : {"features", "data"} or None
    Whether the problem is solved for features that are divided by numbers of their own, so that they have equal
    deviations, or for X divided by one number, or for X as it is. With the first two the mean squared length of a
    sample is 4, and the penalty does not depend on the units of X.
alpha : float or None
    Strength of the penalty ``alpha / 2 * (||W||^2 + ||b||^2 / 100)`` of a linear term W with constants b, which shrinks
    every coefficient separately. None for no such term.
tol : float
    Stop when the gap is at most ``tol`` times the objective; with 0 only the limits stop the fit. With ``max_units``
    and ``refit="full"`` the last refit ends when ten iterations decrease the objective by less than ``5 * tol``,
    relative (ordinal estimators: ``tol / 1000``): predictions seldom change after that.
max_iter : int or None
    Largest number of rounds.
max_time : float
    Largest number of seconds for the solver.
n_threads : int or None
    Number of threads of linear algebra during a fit; None for one, and all that the process is set to for products so
    large that more pay.
validation_fraction : float
    Fraction of the samples to hold out (stratified for labels). After every round ``score`` is evaluated on them, and
    the best network is kept. This chooses the number of units; with ``refit="full"`` a round then adds at most 5.
n_iter_no_change : int
    With ``validation_fraction`` or ``X_val``: stop after this number of rounds without a better score.
warm_start : bool
    Start from the network of the previous fit.
verbose : int or "bar"
    Print every ``verbose``-th round as a row of a table; 0 prints nothing. ``"bar"`` shows a progress bar of tqdm.
callback : callable
    Called after every round as ``callback(intermediate_result=Result)``; ``StopIteration`` stops the fit.
random_state : int, RandomState or None
    Seed of the validation split; nothing else is random.
""",
    attributes="""
loss_ : Loss
    The loss of the outputs, with its parameters.
model_ : Model
    The model for predictions, which ``save`` writes.
strength_ : float or None
    Strength of the penalty, for the centered and scaled X; None with ``radius``.
basis_ : ndarray of shape (k, dummies + d)
    Units H for X as it is given, of length 1; the leading columns belong to the dummies.
weights_ : ndarray of shape (k, m)
    Output weights V.
linear_ : ndarray of shape (m, 1 + d) or None
    Coefficients of the linear term, constants first; None if ``alpha`` is None.
objective_, gap_ : float
    The objective, and an upper bound of its distance to the minimum over all networks of any size.
restricted_gap_ : float
    An upper bound of the distance to the minimum over the weights alone (and the linear term), with the units as they
    are; at most ``gap_``. It falls with the root of this distance: a few per cent of the objective may mean a
    thousandth. If it is nearly as large as ``gap_``, lower ``tol``: refits stopped early. The rest of ``gap_`` no
    weights can close, only other or more units: raise ``max_units``, or give None for as many as a proof takes, or a
    larger ``strength`` or ``share``, which needs fewer. With many features the bound itself may be loose. A small
    network with a large gap may still predict well.
relative_gap_ : float
    ``gap_`` as a share of the objective: 0.01 is proven to be at most 1 % above the minimum. This number says how good
    the certificate is.
estimated_gap_ : float
    What ``gap_`` would be if the best unit found in the last search is the best one there is: no proof. Where it is far
    below ``gap_``, the bound is loose and another ``oracle`` may prove more; where both are large, the fit may gain
    from more units.
certified_ : bool
    Whether the gaps are finite and proven. It says nothing of their size, nor that the network is optimal: see
    ``relative_gap_``.
proof_ : str
    What the gaps rest on: ``"deterministic"``, or ``"probability 1 - 1e-09"`` over the random numbers of the oracle, or
    ``"none"`` if no gap is known.
status_ : Status
    Why the solver stopped; ``status_.message`` is a sentence.
n_iter_ : int
    Number of rounds in which units entered, at least 1: often a single one with ``max_units``.
n_refit_iter_ : int
    Number of iterations of all refits: most of the work of a fit.
trace_ : Trace
    A row per round: time, objective, both gaps, number of units.
n_features_in_ : int
    Number of features d.
feature_names_in_ : ndarray of shape (d,)
    Names of the features, if all are strings.
""",
    reference="""
Blondel, Niculae, Otsuka and Ueda: Multi-output Polynomial Networks and Factorization Machines.
NIPS 2017. Algorithm 1 solves problem (2), with a penalty in place of the constraint unless ``radius`` is given.
""",
)
VALIDATED = Prose(
    attributes="""
validation_scores_ : ndarray or None
    The score at every row of the trace, if ``validation_fraction`` is positive or ``fit`` had ``X_val``.
""",
)
CLASSIFIER = Prose(
    parameters="""
loss : str or Loss
    Multi-class: "logistic", "smoothed-hinge", "squared-hinge". One against the rest: "binary-logistic",
    "binary-squared-hinge", "squared". If y is an indicator matrix, "logistic" and "squared-hinge" mean their binary
    forms.
class_weight : dict, "balanced" or None
    Factors of the sample weights, by label; with "balanced" all classes have the same total weight. For labels only.
""",
    attributes="""
classes_ : ndarray of shape (m,)
    Sorted labels, or the numbers of the columns of an indicator matrix y.
weights_ : ndarray of shape (k, m)
    Output weights V; m is the number of classes or columns of y, or 1 for two classes with a loss per output.
""",
)
REGRESSOR = Prose(
    parameters="""
loss : str or Loss
    "squared"; "huber" (:class:`mopn.Huber`), for outliers; "quantile" (:class:`mopn.Quantile`), by default the
    median; "poisson" (:class:`mopn.Poisson`), for counts y >= 0, whose means are predicted; or a :class:`mopn.Loss`
    object for numbers or counts. Named losses take their parameters in the unit of y.
""",
    attributes="""
weights_ : ndarray of shape (k, m)
    Output weights V; m is the number of columns of y.
""",
)
ORDINAL = Prose(
    parameters="""
loss : str or Loss
    "binary-logistic", or a :class:`mopn.Loss` per output with the link "logistic".
""",
    attributes="""
levels_ : ndarray of shape (m + 1,)
    The sorted distinct values of y.
weights_ : ndarray of shape (k, m)
    Output weights V; m is the number of levels minus 1.
""",
    reference="""
Blondel, Niculae, Otsuka and Ueda: Multi-output Polynomial Networks and Factorization Machines.
NIPS 2017. Algorithm 1 solves problem (2), with a penalty in place of the constraint unless ``radius`` is given.
Ordinal regression is in section 6.5.
""",
)
CROSS_VALIDATED = Prose(
    parameters="""
shares : array-like of shape (q,)
    Strengths to choose from, as shares, in (0, 1), of the largest one of use, above which the network is empty.
strengths : array-like of shape (q,)
    The strengths themselves, in place of ``shares``. They are for all samples: as the losses are added up over the
    samples, each is multiplied by a fold's part of their weight.
max_units : int or sequence of int
    Largest numbers of units to choose from. Strengths are scored with the largest of them; then the networks of the
    best strength are cut down to the units of largest weights and refitted, number by number.
""",
    attributes="""
strength_ : float
    The strength of the best mean score, the largest if several are equal. Means are over the folds, weighted by
    ``fold_weights_``.
scores_ : ndarray of shape (folds, q)
    The score on the held-out part of every fold: accuracy, or R^2 of ordered levels, with the weights of the objective.
max_units_ : int
    The smallest of ``sizes_`` whose mean score is within one standard error of the best one.
sizes_ : ndarray of shape (u,)
    The numbers of ``max_units``, descending.
""",
)

FOLDS = Prose(
    parameters="""
cv : int, splitter or iterable
    Folds, as for ``sklearn.model_selection.cross_val_score``; stratified for labels, shuffled for numbers and ordered
    levels. A pair of index arrays, ``[(train, test)]``, is an evaluation set of your own.
n_jobs : int or None
    Number of folds in parallel, each in its own process (joblib); joblib then divides the threads of the linear
    algebra among them.
""",
    attributes="""
strengths_ : ndarray of shape (q,)
    All strengths, descending.
size_scores_ : ndarray of shape (folds, u)
    The scores of the fits of ``strength_``, cut down to these sizes.
fold_weights_ : ndarray of shape (folds,)
    Weight of the held-out samples of every fold.
""",
)

# -- one output --------------------------------------------------------------------------------------------------------

SINGLE_OUTPUT = Prose(
    parameters="""
tol : float
    Stop when ten iterations together decrease the objective by less than ``tol``, relative; with 0 only the limits
    stop the fit.
fit_intercept : bool
    Fit a constant, without a penalty.
warm_start : bool
    Start from the fitted attributes, of an earlier fit or set by the user; missing ones have the default start.
max_iter : int
    Largest number of iterations: epochs of "cd", "adagrad" and "sgd", steps of "lbfgs".
max_time : float
    Largest number of seconds for the solver.
n_threads : int or None
    Number of threads of linear algebra during a fit; None for one, and all that the process is set to for products so
    large that more pay.
verbose : int or "bar"
    Print every ``verbose``-th iteration as a row of a table; 0 prints nothing. ``"bar"`` shows a progress bar of tqdm.
callback : callable
    Called after every iteration as ``callback(intermediate_result=Result)``; ``StopIteration`` stops the fit.
random_state : int, RandomState or None
    Seed of the random start (entries from N(0, 0.01)), of random signs and of the order of samples.
""",
    attributes="""
loss_ : Loss
    The loss, with its parameters.
intercept_ : float
    The constant; 0 if there is none.
model_ : FactorizationModel
    The model for predictions, which ``save`` writes.
objective_ : float
    The objective.
status_ : Status
    Why the solver stopped; ``status_.message`` is a sentence.
n_iter_ : int
    Number of iterations, at least 1.
trace_ : Trace
    A row per iteration: time, objective.
n_features_in_ : int
    Number of features d.
feature_names_in_ : ndarray of shape (d,)
    Names of the features, if all are strings.
""",
)
SINGLE_OUTPUT_REGRESSOR = Prose(
    parameters="""
loss : {"squared", "huber", "quantile", "poisson"}, Loss or None
    Half the squared error, by default; :class:`mopn.Huber`, for outliers; :class:`mopn.Quantile`, by default the
    median; :class:`mopn.Poisson`, for counts y >= 0, with another solver than "cd"; or a :class:`mopn.Loss` object for
    numbers or counts. Named losses take their parameters in the unit of y.
""",
)
BINARY_CLASSIFIER = Prose(
    parameters="""
loss : {"squared_hinge", "logistic", "squared"} or None
    Loss of labels -1 and 1; None means "squared_hinge".
""",
    attributes="""
classes_ : ndarray of shape (2,)
    Sorted labels; positive outputs mean the second one.
""",
)
FACTORIZATION_MACHINE = Prose(
    parameters="""
degree : int
    The largest number m of features in a product.
n_components : int
    Number k of units, for each degree if there are several.
alpha : float
    Strength of ``alpha / 2 * ||w||^2``. The losses are added up over the samples, not averaged.
beta : float
    Strength of ``beta * sum_s |lambda_s| ||p_s||^2``.
fit_lower : {"explicit", "augment", "shared", None}
    Degrees 2 to m - 1: with their own units; by dummies, columns of ones in front of X; by the same units with weights
    theta on the simplex; or not in the model.
fit_linear : bool
    Fit a linear term ``<w, x>``.
kernel : {"anova", "all-subsets"}
    Products of ``degree`` distinct features, or of any number of them.
solver : {"cd", "lbfgs", "adagrad", "sgd"} or Solver
    Coordinate descent; L-BFGS; AdaGrad; stochastic gradient descent; or one of ``mopn.solvers`` with other options,
    such as ``CoordinateDescent(n_threads=2)``.
init_lambdas : {"ones", "random_signs", "fit"}
    lambda: fixed to 1, to random signs, or fitted.
""",
    attributes="""
P_ : ndarray of shape (n_orders, k, dummies + d)
    Units; ``P_[0]`` are those of degree m, then m - 1, ... if "explicit".
lams_ : ndarray of shape (k,)
    lambda.
w_ : ndarray of shape (d,)
    The linear term, if it is fitted.
theta_ : ndarray of shape (m,)
    Weights of the degrees, if "shared".
""",
    reference="""
Blondel, Fujino, Ueda and Ishihata: Higher-Order Factorization Machines. NIPS 2016.
""",
)
POLYNOMIAL_NETWORK = Prose(
    parameters="""
degree : int
    The degree m of the polynomial.
n_components : int
    Number r of products.
beta : float
    Strength of ``beta / 2 * sum_t ||U^t||^2``. The losses are added up over the samples, not averaged.
fit_lower : {"augment", None}
    Lower degrees by a dummy, a column of ones in front of X; or no lower degrees.
solver : {"cd", "lbfgs"} or Solver
    Coordinate descent; L-BFGS; or one of ``mopn.solvers`` with other options.
""",
    attributes="""
U_ : ndarray of shape (m, r, d) or (m, r, 1 + d)
    Factors.
""",
    reference="""
Blondel, Ishihata, Fujino and Ueda: Polynomial Networks and Factorization Machines. ICML 2016.
""",
)
SINGLE_OUTPUT_CROSS_VALIDATED = Prose(
    parameters="""
strengths : array-like of shape (q,)
    Values of ``beta`` to choose from. They are for all samples: as the losses are added up over the samples, each is
    multiplied by a fold's part of their weight.
n_components : int or sequence of int
    Numbers of units to choose from. Strengths are scored with the largest of them; then the fits of the best strength
    are cut down to the largest units and fitted again, number by number.
scoring : str, callable or None
    The score of scikit-learn, the larger the better, such as "roc_auc" or "neg_mean_absolute_error". None for accuracy,
    or R^2 of regressors, which ``score`` returns in any case.
""",
    attributes="""
strength_ : float
    The ``beta`` of the best mean score, the largest if several are equal. Means are over the folds, weighted by
    ``fold_weights_``.
scores_ : ndarray of shape (folds, q)
    The score on the held-out part of every fold, with its sample weights.
n_components_ : int
    The smallest of ``sizes_`` whose mean score is within one standard error of the best one.
sizes_ : ndarray of shape (u,)
    The numbers of ``n_components``, descending.
""",
)
FACTORIZATION_MACHINE_CROSS_VALIDATED = Prose(
    parameters="""
alpha : float or sequence of float
    Strengths of ``alpha / 2 * ||w||^2`` to choose from, each with all of ``strengths``, and like them for all samples.
""",
    attributes="""
alpha_ : float
    The ``alpha`` of the best mean score.
alphas_ : ndarray of shape (a,)
    All values of ``alpha``, descending.
scores_ : ndarray of shape (folds, a, q)
    The score on the held-out part of every fold, with its sample weights.
""",
)

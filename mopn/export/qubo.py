"""Outputs of degree 2 on features that are 0 or 1, as QUBO problems in dimod's convention."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mopn.data.values import to_host
from mopn.models.base import Fitted, feature_groups, fitted_model
from mopn.models.quadratic import Quadratic, is_quadratic
from mopn.solvers.tools.checks import check_positive, shown
from mopn.solvers.tools.decorators import quiet

# Excess of the default penalty over its bound, relative to the bound and to the largest weight: far above rounding.
_PENALTY_MARGIN = 1e-3


class Qubo(NamedTuple):
    """A quadratic function of x in {0, 1}^d, to be minimised: sum_ij weights[i, j] x_i x_j + offset.

    The form of ``dimod.BinaryQuadraticModel.to_qubo``; ``from_qubo(*qubo)`` takes it.

    Attributes
    ----------
    weights : dict of (int, int) to float
        The keys are indices of features: (i, i) for all of them, as x_i^2 = x_i, and (i, j) with i < j where the weight
        is not 0.
    offset : float
    """

    weights: dict[tuple[int, int], float]
    offset: float

    def matrix(self) -> np.ndarray:
        """Return the upper triangular Q (d, d) of the function x'Qx + offset."""
        Q = np.zeros((self._n_features, self._n_features))
        Q[tuple(np.array(list(self.weights)).T)] = list(self.weights.values())
        return Q

    @property
    def _n_features(self) -> int:
        return sum(i == j for i, j in self.weights)

    def __repr__(self) -> str:
        d = self._n_features
        return f"Qubo(features={d}, products={len(self.weights) - d}, offset={self.offset:g})"


@quiet()
def to_qubo(
    model: Fitted, X: Any = None, *, output: int | None = None, one_hot: Any = (), penalty: float | None = None
) -> Qubo:
    """Return an output as a function of features that are 0 or 1, in dimod's convention, to be minimised.

    For solvers of quadratic unconstrained binary optimisation (QUBO): simulated annealing, tabu search, quantum
    annealers. The function is the output of :meth:`mopn.Model.outputs`, before any link. Links increase with it, so it
    has the minimum of the mean, or of the probability, of the second class if there are two.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    X : array-like or sparse matrix of shape (n, d), optional
        Rows, such as the training data, whose features are checked to be 0 or 1.
    output : int, optional
        The number of the output, of models of several.
    one_hot : sequence of tuples, optional
        Groups of features, by index or name, in which exactly one is to be 1, such as indicators of the values of a
        setting. Each adds penalty * (1 - sum of its features)^2.
    penalty : float, optional
        Default: for each group a bound of the gain of breaking a constraint, and a thousandth of it and of the largest
        weight, so that all minimisers provably satisfy all constraints. If groups share features, the bound is the
        range of the function, and some x must satisfy them all.

    Returns
    -------
    Qubo
        A tuple of ``weights``, a dictionary {(i, j): weight}, and ``offset``; ``matrix()`` is upper triangular.

    Raises
    ------
    TypeError
        For a model of a table, whose features are not 0 and 1.
    ValueError
        For degrees above 2, features of X that are not 0 or 1, invalid groups, several outputs without ``output``,
        or the outputs of a softmax, which have no meaning alone.

    Notes
    -----
    With all weights Q (symmetric off the diagonal), x_i = 1 changes the function by at most
    u_i = Q_ii + sum_j max(Q_ij, 0) and at least l_i = Q_ii + sum_j min(Q_ij, 0). The bound for groups that share no
    feature is the larger of min_i u_i and max_i -l_i over the group, or 0.

    To maximise, fit the model to -y; or take ``mopn.FactorizationModel.from_outputs(model, [-1.0])``.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> model = mopn.Model(np.array([[1.0, -2.0]]), np.array([[0.5]]), target="vector")  # (x_0 - 2 x_1)^2 / 2
    >>> qubo = mopn.export.to_qubo(model)  # for dimod: BinaryQuadraticModel.from_qubo(*qubo)
    >>> qubo.weights
    {(0, 0): 0.5, (1, 1): 2.0, (0, 1): -2.0}
    >>> mopn.export.to_qubo(model, one_hot=[(0, 1)], penalty=3.0).matrix()
    array([[-2.5,  4. ],
           [ 0. , -1. ]])
    """
    machine = fitted_model(model)
    if machine.encoding is not None:
        raise TypeError(
            "the features of a table's columns are curves and centered indicators, not 0 and 1: for to_qubo fit an "
            "estimator of networks, such as MultiOutputPNRegressor, to one column of 0 and 1 for every level"
        )
    if machine.link == "softmax":
        m = machine.weights.shape[1]
        signs = [1, -1, *np.zeros(m - 2, int).tolist()]
        raise ValueError(
            f"model: its classes have {m} outputs, and to_qubo takes one; give "
            f"mopn.FactorizationModel.from_outputs(model, {signs}), for the log-odds of the first class against the "
            "second"
        )
    if X is not None:
        _check_binary(machine, X)
    formula = machine.formula()
    if not is_quadratic(formula):
        raise ValueError(
            "a QUBO is of degree 2, but the model has products of three features or more: fit one with degree=2"
        )
    given = feature_groups(one_hot, machine.feature_names, machine.n_features, "one_hot")
    groups = [np.sort(group) for group in given]
    output = _check_output(output, len(formula.constant))
    if penalty is not None:
        if not groups:
            raise ValueError("penalty is for the constraints in one_hot, but there are none; leave it out")
        penalty = check_positive(penalty, "penalty")
    offset, Q = _triangular(Quadratic.of(formula), output)
    penalties = _sufficient_penalties(Q, groups) if penalty is None else np.full(len(groups), penalty)
    for group, weight in zip(groups, penalties, strict=True):
        # (1 - sum of x)^2 = 1 - sum_i x_i + 2 sum_{i<j} x_i x_j
        Q[group, group] -= weight
        i, j = np.triu_indices(len(group), 1)
        Q[group[i], group[j]] += 2.0 * weight
        offset += weight
    if not (np.isfinite(Q).all() and np.isfinite(offset)):
        raise ValueError("the weights overflow, as the numbers of the model or the penalty are too large")
    weights = {(i, i): value for i, value in enumerate(Q.diagonal().tolist())}
    pairs = np.transpose(np.nonzero(np.triu(Q, 1))).tolist()
    return Qubo(weights | {(i, j): float(Q[i, j]) for i, j in pairs}, float(offset))


def _check_output(output: Any, m: int) -> int:
    """Return the number of one of m outputs, by default of the only one."""
    if output is None and m == 1:
        return 0
    if isinstance(output, bool) or not isinstance(output, (int, np.integer)) or not 0 <= output < m:
        raise ValueError(f"output must be an integer from 0 to {m - 1}, got {output!r}")
    return int(output)


def _check_binary(model: Any, X: Any) -> None:
    """Check that all features of some rows are 0 or 1."""
    entries = sparse.coo_array(model.design(to_host(X)).matrix())
    wrong = np.flatnonzero((entries.data != 0) & (entries.data != 1))  # zeros may be stored
    if len(wrong):
        column = int(entries.coords[1][wrong[0]])
        names = model.feature_names
        feature = f"{column}" if names is None else f"{column} ({str(names[column])!r})"
        raise ValueError(
            f"a QUBO is for features that are 0 or 1, but feature {feature} of X is {shown(entries.data[wrong[0]])}: "
            "fit the model to indicators, one column of 0 and 1 for every level or range of values"
        )


def _triangular(outputs: Quadratic, c: int) -> tuple[float, np.ndarray]:
    """Return the output c at 0, and the upper triangular Q (d, d) of all its other terms, as x_i^2 = x_i."""
    one = np.eye(len(outputs.constant))[c]
    A = outputs.matrix(one)
    slope = outputs.slopes(outputs.biases[:, None], one)[0]
    offset = outputs.constant[c] + outputs.biases.prod(axis=0) @ outputs.weights[:, c]
    return float(offset), np.triu(2.0 * A, 1) + np.diag(slope + A.diagonal())


def _sufficient_penalties(Q: np.ndarray, groups: list[np.ndarray]) -> list[float]:
    """Return a penalty for every group with which all minimisers satisfy the constraints, if any x does.

    x_i = 1 adds between ``least`` and ``most`` to the function. If no x_i of a group is 1, setting one costs at most
    the smallest ``most``. If s > 1 are 1, then s - 1 of them gain at most s - 1 times the largest ``-least``, while the
    penalty counts (s - 1)^2 times. So with a larger penalty than both a step towards the constraint improves each x.
    If groups share features, a step for one may break another: there the penalty exceeds the range of the function.
    """
    S = np.triu(Q, 1) + np.triu(Q, 1).T
    most = Q.diagonal() + np.maximum(S, 0.0).sum(axis=1)
    least = Q.diagonal() + np.minimum(S, 0.0).sum(axis=1)
    members = [i for group in groups for i in group]
    if len(set(members)) < len(members):
        bounds = [float(np.abs(Q).sum()) for _ in groups]
    else:
        bounds = [max(0.0, float(most[group].min()), float(-least[group].min())) for group in groups]
    margin = _PENALTY_MARGIN * float(np.abs(Q).max()) or 1.0
    return [(1.0 + _PENALTY_MARGIN) * bound + margin for bound in bounds]

"""Certified flips: how many categories or binary features of a row may change while the predicted class provably stays.

The margin of two classes is quadratic, so that a set of flips changes it by a number for each flip and one for each
pair; docs/mathematics.md, section 15. Radii of changes of numbers: :mod:`mopn.explain.robustness`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from mopn.data.designs import Design
from mopn.data.values import to_host
from mopn.explain.margins import OutputMargins
from mopn.explain.robustness import RowOutputs, contests, meetings
from mopn.models.base import Fitted, feature_groups, feature_indices, fitted_model
from mopn.models.formula import dense_rows
from mopn.solvers.tools.blas_threads import limited_threads
from mopn.solvers.tools.checks import check_flag, shown
from mopn.solvers.tools.decorators import door
from mopn.tables.columns import CategoryColumn
from mopn.tables.encoding import TableEncoding
from mopn.tables.reading import Table

# Coefficients, sums of them, their bounds, and predictions elsewhere err as much as terms of OutputMargins, at most.
_ERRORS = 4.0
# Entries that the proof for a row and a pair of classes reads, at most; about as many nanoseconds.
_WORK = 4_000_000


class Flips(NamedTuple):
    """How many columns of each row may change, proven, and how many change its class; see :func:`certified_flips`.

    No change of ``proven`` columns or fewer changes the prediction; a change of ``found`` columns does, inf if none is
    known. Both are exact where ``found`` is ``proven + 1``, or inf while all columns are proven.
    """

    proven: np.ndarray
    found: np.ndarray
    attack: Any = None


@door
def certified_flips(model: Fitted, X: Any, *, one_hot: Any = (), fixed: Any = (), return_attack: bool = False) -> Flips:
    """Return how many categories, or features of 0 and 1, may change while the predicted class provably stays.

    Of a model of tables, columns of categories change, each to any category of the training data, or to missing if
    values were missing there; columns of numbers stay. Of a model of features, each is 0 or 1 and may flip, and of a
    group of one-hot features another one becomes the 1. A change of a column, or group, counts as one, whatever it
    becomes.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    X : array-like or sparse matrix of shape (n, d), or a table
    one_hot : sequence of tuples, optional
        Of a model of features, groups of these, by index or name, with exactly one 1 in each.
    fixed : sequence of int or str, optional
        Features, or columns of a table, that do not change; such features may hold any numbers.
    return_attack : bool, default False
        Whether to return rows of other classes as well.

    Returns
    -------
    Flips
        A tuple: ``proven``, the number of columns that may change, whichever they are; ``found``, the number of columns
        of a change to another class, inf if none is known; ``attack``, rows after that change, an array (n, d) or a
        dictionary of the columns of a table. For m labels that are predicted separately, all have another axis, of
        length m, after the rows.

    Raises
    ------
    TypeError
        If the model predicts no classes, or has outputs of a degree above 2.
    ValueError
        As :meth:`mopn.Model.outputs`; for invalid groups or names, features that are not 0 or 1, and if there
        is nothing that can change.

    Notes
    -----
    Flips gain a number each, and one for each pair. Half of a pair's gain is given to either flip, so that the best
    of these sums bound the gain of r flips; branch and bound closes the rest, in a few milliseconds a row and class.
    Rounding errors count against the flips. A row and a pair of classes take a matrix over all options of the columns.
    docs/mathematics.md, section 15. The question, and relaxations of it: Liu et al. (SIGIR 2020), *Certifiable
    Robustness to Discrete Adversarial Perturbations for Factorization Machines*.

    Examples
    --------
    >>> import numpy as np, mopn
    >>> votes = mopn.Model(np.ones((1, 5)), np.ones((1, 1)), offset=-6.0, classes=np.array(["no", "yes"]))
    >>> votes.predict([[1, 1, 1, 1, 1]])  # 25 - 6 > 0; of two votes it is 4 - 6
    array(['yes'], dtype='<U3')
    >>> proven, found, attack = mopn.explain.certified_flips(votes, [[1, 1, 1, 1, 1]], return_attack=True)
    >>> proven, found, votes.predict(attack)
    (array([2]), array([3.]), array(['no'], dtype='<U3'))
    """
    from mopn.compiled.flips import attack_flips, prove_flips  # needs numba, which loading and predicting do not

    given = fitted_model(model)
    X = to_host(X)
    check_flag(return_attack, "return_attack")
    machine = given if given.encoding is None else given.model
    predictions = contests(machine, "certified_flips")
    options: Options = (FeatureOptions if given.encoding is None else TableOptions).of(given, X, one_hot, fixed)
    found = []
    with limited_threads(), np.errstate(all="ignore"):
        margins = OutputMargins(machine, np.ones(machine.n_features), reduced=False)
        rows = RowOutputs.of(machine, margins, options.design)
        for contest in predictions:
            search = _FlipSearch(margins, rows, contest, options)
            search.run(attack_flips, [], [search.found, search.picks])
            search.run(prove_flips, [_WORK], [search.proven, search.found, search.picks])
            reached = np.where(search.found <= len(options.current.T), search.found, np.inf)
            found.append(Flips(search.proven, reached, options.changed(search.picks) if return_attack else None))
    if given.target == "labels":
        return found[0]
    proven, counts, attacks = zip(*found, strict=True)
    return Flips(np.stack(proven, axis=1), np.stack(counts, axis=1), _stacked(attacks) if return_attack else None)


@dataclass(frozen=True)
class Options(ABC):
    """The options of the columns of rows: column j is one of ``starts[j]``, ..., ``starts[j + 1] - 1``.

    ``design`` has the rows, ``current`` (n, C) their options, ``features`` (T, d) the features of every option, and
    ``allowed`` (T,) says whether a column may change to it.
    """

    design: Design
    features: sparse.csr_array
    starts: np.ndarray
    allowed: np.ndarray
    current: np.ndarray

    @abstractmethod
    def changed(self, picks: np.ndarray) -> Any:
        """Return the rows after changes to the options ``picks`` (n, C), -1 where there is none."""


class FeatureOptions(Options):
    """Features that are 0 or 1: each a column of its own, or one of a group with exactly one 1."""

    @classmethod
    def of(cls, model: Any, X: Any, one_hot: Any, fixed: Any) -> Options:
        d, names = model.n_features, model.feature_names
        groups = feature_groups(one_hot, names, d, "one_hot")
        still = _fixed(fixed, names, d)
        members = [*chain(*groups), *still]
        if len(set(members)) < len(members):
            raise ValueError("a feature is in two groups of one_hot, or in one and in fixed; give each once")
        lone = np.setdiff1d(np.arange(d), members)
        if not groups and not len(lone):
            raise ValueError("fixed holds all features, so that none can change")
        model.outputs(X)  # refuses rows whose outputs overflow
        design = model._design(X)
        entries = sparse.csc_array(design.matrix())
        starts = np.cumsum([0, *map(len, groups), *[2] * len(lone)])
        at = np.array([*chain(*groups)], np.intp)
        rows = np.append(np.arange(len(at)), len(at) + 2 * np.arange(len(lone)) + 1)
        features = sparse.csr_array((np.ones(len(rows)), (rows, np.append(at, lone))), shape=(int(starts[-1]), d))
        hot = [_hot(entries[:, list(group)].toarray(), group) for group in groups]
        codes = np.column_stack([*hot, _binary(entries[:, lone].toarray(), lone)])
        return cls(design, features, starts, np.ones(starts[-1], bool), starts[:-1] + codes)

    def changed(self, picks: np.ndarray) -> np.ndarray:
        i, j = np.nonzero(picks >= 0)
        after, before = (sparse.csr_array(self.features[at[i, j]]) for at in (picks, self.current))
        which = sparse.csr_array((np.ones(len(i)), (i, np.arange(len(i)))), shape=(len(picks), len(i)))
        return dense_rows(self.design) + (which @ (after - before)).toarray()


@dataclass(frozen=True)
class TableOptions(Options):
    """Columns of categories, which may become any category of the training data, or missing if some were."""

    encoding: TableEncoding
    table: Table
    columns: Sequence[int]
    categories: Sequence[CategoryColumn]

    @classmethod
    def of(cls, model: Any, X: Any, one_hot: Any, fixed: Any) -> Options:
        """Return the options of all columns of categories but the fixed ones; numbers stay."""
        encoding = model.encoding
        if not np.iterable(one_hot) or list(one_hot):
            raise ValueError("one_hot is for models of features: all categories of a table can change as they are")
        still = _fixed(fixed, encoding.columns, len(encoding.columns))
        of = dict(zip(encoding.category_columns, encoding.categories, strict=True))
        of = {j: column for j, column in of.items() if j not in still and len(column.means)}
        if not of:
            raise ValueError("no column of several categories can change: the table has none outside fixed")
        Z = encoding.encode(X)
        model.model.outputs(Z)  # refuses rows whose outputs overflow
        table = encoding.arranged(X)
        categories = list(of.values())
        starts = np.cumsum([0, *(len(column.table) for column in categories)])
        features = sparse.lil_array((starts[-1], encoding.n_features))
        for (j, column), first in zip(of.items(), starts, strict=False):
            features[first : first + len(column.table), np.flatnonzero(encoding.owners == j)] = column.table
        # The last option is a category that is unknown.
        codes = [
            np.where(c < 0, column.count, c) for column, c in ((x, x.codes(table.columns[j])) for j, x in of.items())
        ]
        allowed = np.ones(starts[-1], bool)
        allowed[starts[1:] - 1] = False
        current = starts[:-1] + np.column_stack(codes)
        return cls(
            model.model._design(Z), features.tocsr(), starts, allowed, current, encoding, table, list(of), categories
        )

    def changed(self, picks: np.ndarray) -> dict[str, np.ndarray]:
        columns = [column.copy() for column in self.table.columns]
        for j, column, first, options in zip(self.columns, self.categories, self.starts, picks.T, strict=False):
            texts = np.array([*column.categories, *column.rare[:1], *[None] * column.missing], object)
            columns[j][options >= 0] = texts[options[options >= 0] - first]
        return self.encoding.as_given(replace(self.table, columns=tuple(columns)))


class _FlipSearch:
    """The flips that one prediction withstands, and those that change it, over all pairs of a winner and a loser."""

    def __init__(self, margins: OutputMargins, rows: RowOutputs, contest: np.ndarray, options: Options) -> None:
        n, C = options.current.shape
        self.options = options
        self.meetings = list(meetings(margins, rows, contest))
        self.features = options.features / margins.unit
        self.proven = np.full(n, C)
        self.found = np.full(n, C + 1)
        self.picks = np.full((n, C), -1)
        # Flips are no longer than this, each by twice the longest option.
        lengths = 2.0 * np.arange(C + 1) * abs(self.features).sum(axis=1).max()
        self.powers = _ERRORS * np.stack([np.ones(C + 1), lengths, lengths**2])

    def run(self, search: Callable[..., None], limits: list[int], state: list[np.ndarray]) -> None:
        """Run a compiled search on all pairs of classes; it changes the state (n, ...) of the rows."""
        options, D = self.options, self.features
        for meeting in self.meetings:
            P = D @ (D @ meeting.matrix).T
            for rows, slopes, margins, errors in meeting:
                parts = [part[rows] for part in state]
                current = options.current[rows]
                lines = np.ascontiguousarray(slopes @ D.T)
                game = P, lines, options.starts, options.allowed, current, margins, errors @ self.powers
                search(*game, *limits, *parts)
                for whole, part in zip(state, parts, strict=True):
                    whole[rows] = part


def _fixed(fixed: Any, names: Any, d: int) -> tuple[int, ...]:
    """Return the indices of what does not change."""
    given = list(fixed) if np.iterable(fixed) and not isinstance(fixed, str) else fixed
    wanted = f"fixed must be distinct indices below {d}, or names"
    return () if isinstance(given, list) and not given else feature_indices(given, names, d, wanted)


def _binary(values: np.ndarray, features: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return values (n, c) of features as integers, if they are 0 or 1."""
    wrong = np.argwhere((values != 0) & (values != 1))
    if len(wrong):
        i, j = wrong[0]
        raise ValueError(
            f"features that flip must be 0 or 1, but feature {features[j]} of row {i} of X is {shown(values[i, j])}: "
            "name those that hold other numbers in fixed"
        )
    return values.astype(np.intp)


def _hot(values: np.ndarray, group: Sequence[int]) -> np.ndarray:
    """Return which feature (n,) of a group is 1, if exactly one is."""
    bits = _binary(values, group)
    wrong = np.flatnonzero(bits.sum(axis=1) != 1)
    if len(wrong):
        raise ValueError(
            f"exactly one feature of a group of one_hot must be 1, but of the group that begins with {group[0]} "
            f"{bits[wrong[0]].sum()} are in row {wrong[0]} of X"
        )
    return bits.argmax(axis=1)


def _stacked(attacks: Sequence[Any]) -> Any:
    """Return the attacks on each prediction, with another axis behind the rows."""
    if isinstance(attacks[0], dict):
        return {name: np.stack([attack[name] for attack in attacks], axis=1) for name in attacks[0]}
    return np.stack(attacks, axis=1)

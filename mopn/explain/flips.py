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
from mopn.solvers.tools.decorators import quiet
from mopn.tables.columns import CategoryColumn
from mopn.tables.encoding import TableEncoding
from mopn.tables.reading import Table

# Rounding errors in units of OutputMargins.errors, which bounds each of four: in coefficients, in sums of coefficients,
# in bounds of these sums, and in predictions at other rows.
_ERROR_SOURCES = 4.0
# Largest number of entries that the proof for a row and a pair of classes reads; an entry takes about a nanosecond.
MAX_ENTRIES_READ = 4_000_000


class Flips(NamedTuple):
    """How many columns of each row may change, proven, and how many change its class; see :func:`certified_flips`.

    No change of ``proven`` columns or fewer changes the prediction; a change of ``found`` columns does, inf if none is
    known. Both are exact where ``found`` is ``proven + 1``, or inf while all columns are proven.
    """

    proven: np.ndarray
    found: np.ndarray
    attack: Any = None


@quiet()
def certified_flips(model: Fitted, X: Any, *, one_hot: Any = (), fixed: Any = (), return_attack: bool = False) -> Flips:
    """Return how many categories, or features of 0 and 1, may change while the predicted class provably stays.

    In a model of tables, columns of categories change: to any category of the training data, or to missing if values
    were missing there. Columns of numbers stay. In a model of features, each feature is 0 or 1 and may flip; in a
    group of one-hot features, another one becomes the 1. A change of a column, or group, counts as one, whatever it
    becomes.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    X : array-like or sparse matrix of shape (n, d), or a table
    one_hot : sequence of tuples, optional
        For models of features: groups of features, by index or name, with exactly one 1 in each.
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
    kind: type[Options] = FeatureOptions if given.encoding is None else TableOptions
    options = kind.of(given, X, one_hot, fixed)
    n_columns = options.current.shape[1]
    found = []
    with limited_threads():
        margins = OutputMargins(machine, np.ones(machine.n_features), reduced=False)
        rows = RowOutputs.of(machine, margins, options.design)
        for contest in predictions:
            search = _FlipSearch(margins, rows, contest, options)
            search.run(attack_flips, [], [search.found, search.picks])
            search.run(prove_flips, [MAX_ENTRIES_READ], [search.proven, search.found, search.picks])
            reached = np.where(search.found <= n_columns, search.found, np.inf)
            attack = options.changed(search.picks) if return_attack else None
            found.append(Flips(search.proven, reached, attack))

    if given.target == "labels":
        return found[0]
    proven = np.stack([flips.proven for flips in found], axis=1)
    reached = np.stack([flips.found for flips in found], axis=1)
    attacks = _stacked([flips.attack for flips in found]) if return_attack else None
    return Flips(proven, reached, attacks)


@dataclass(frozen=True)
class Options(ABC):
    """The options of the columns of rows: column j is one of ``starts[j]``, ..., ``starts[j + 1] - 1``.

    ``design`` holds the rows, ``current`` (n, C) their options, ``features`` (T, d) the features of every option, and
    ``allowed`` (T,) whether a column may change to it.
    """

    design: Design
    features: sparse.csr_array
    starts: np.ndarray
    allowed: np.ndarray
    current: np.ndarray

    @classmethod
    @abstractmethod
    def of(cls, model: Any, X: Any, one_hot: Any, fixed: Any) -> "Options":
        """Return the options of the rows of X in a model, after checks of all arguments."""

    @abstractmethod
    def changed(self, picks: np.ndarray) -> Any:
        """Return the rows after changes to the options ``picks`` (n, C), -1 where there is none."""


class FeatureOptions(Options):
    """Features that are 0 or 1: each is a column, or belongs to a group with exactly one 1, which is a column.

    The columns are the groups, then the lone features, whose options are 0 and 1.
    """

    @classmethod
    def of(cls, model: Any, X: Any, one_hot: Any, fixed: Any) -> Options:
        d, names = model.n_features, model.feature_names
        groups = feature_groups(one_hot, names, d, "one_hot")
        in_groups = [*chain(*groups)]
        taken = [*in_groups, *_fixed_indices(fixed, names, d)]
        if len(set(taken)) < len(taken):
            raise ValueError("a feature is in two groups of one_hot, or in one and in fixed; give each once")
        lone = np.setdiff1d(np.arange(d), taken)
        if not groups and not len(lone):
            raise ValueError("fixed holds all features, so that none can change")
        model.outputs(X)  # refuses rows whose outputs overflow
        design = model.design(X)
        options_per_column = [len(group) for group in groups] + [2 for _ in lone]
        starts = np.cumsum([0, *options_per_column])
        n_options = int(starts[-1])

        # Each option of a group is one of its features; the second option of a lone feature is its 1.
        options_of_groups = np.arange(len(in_groups))
        options_of_ones = len(in_groups) + 2 * np.arange(len(lone)) + 1
        rows = np.append(options_of_groups, options_of_ones)
        columns = np.append(np.array(in_groups, np.intp), lone)
        features = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_options, d))

        entries = sparse.csc_array(design.matrix())
        hot = [_hot_member(entries[:, list(group)].toarray(), group) for group in groups]
        codes = np.column_stack([*hot, _checked_bits(entries[:, lone].toarray(), lone)])
        return cls(design, features, starts, np.ones(n_options, bool), starts[:-1] + codes)

    def changed(self, picks: np.ndarray) -> np.ndarray:
        rows, columns = np.nonzero(picks >= 0)
        after = sparse.csr_array(self.features[picks[rows, columns]])
        before = sparse.csr_array(self.features[self.current[rows, columns]])
        count = len(rows)
        sums_by_row = sparse.csr_array((np.ones(count), (rows, np.arange(count))), shape=(len(picks), count))
        return dense_rows(self.design) + (sums_by_row @ (after - before)).toarray()


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
        still = _fixed_indices(fixed, encoding.columns, len(encoding.columns))
        columns = []
        categories = []
        for j, column in zip(encoding.category_columns, encoding.categories, strict=True):
            if j not in still and len(column.means):
                columns.append(j)
                categories.append(column)
        if not columns:
            raise ValueError("no column of several categories can change: the table has none outside fixed")
        Z = encoding.encode(X)
        model.model.outputs(Z)  # refuses rows whose outputs overflow
        design = model.model.design(Z)

        starts = np.cumsum([0, *(len(column.table) for column in categories)])
        features = sparse.lil_array((starts[-1], encoding.n_features))
        for j, column, first in zip(columns, categories, starts, strict=False):
            features[first : first + len(column.table), np.flatnonzero(encoding.owners == j)] = column.table

        # The last option of a column stands for unknown categories: no column may change to it.
        allowed = np.ones(starts[-1], bool)
        allowed[starts[1:] - 1] = False
        table = encoding.arranged(X)
        codes = []
        for j, column in zip(columns, categories, strict=True):
            known = column.codes(table.columns[j])
            codes.append(np.where(known < 0, column.count, known))
        current = starts[:-1] + np.column_stack(codes)
        return cls(design, features.tocsr(), starts, allowed, current, encoding, table, columns, categories)

    def changed(self, picks: np.ndarray) -> dict[str, np.ndarray]:
        columns = [column.copy() for column in self.table.columns]
        for j, column, first, options in zip(self.columns, self.categories, self.starts, picks.T, strict=False):
            texts: list[str | None] = [*column.categories, *column.rare[:1]]
            if column.missing:
                texts.append(None)
            changes = options >= 0
            columns[j][changes] = np.array(texts, object)[options[changes] - first]
        return self.encoding.as_given(replace(self.table, columns=tuple(columns)))


class _FlipSearch:
    """The flips that one prediction withstands, and flips that change it, over all pairs of a winner and a loser."""

    def __init__(self, margins: OutputMargins, rows: RowOutputs, contest: np.ndarray, options: Options) -> None:
        n, C = options.current.shape
        self.options = options
        self.meetings = list(meetings(margins, rows, contest))
        self.features = options.features / margins.unit
        self.proven = np.full(n, C)
        self.found = np.full(n, C + 1)
        self.picks = np.full((n, C), -1)
        # Each flip moves a row by at most twice the length of the longest option.
        lengths = 2.0 * np.arange(C + 1) * abs(self.features).sum(axis=1).max()
        self.error_powers = _ERROR_SOURCES * np.stack([np.ones(C + 1), lengths, lengths**2])

    def run(self, search: Callable[..., None], limits: list[int], state: list[np.ndarray]) -> None:
        """Run a compiled search on all pairs of classes; it changes the state (n, ...) of the rows."""
        options, D = self.options, self.features
        for meeting in self.meetings:
            P = D @ (D @ meeting.matrix).T
            for rows, slopes, margins, errors in meeting:
                parts = [part[rows] for part in state]
                current = options.current[rows]
                lines = np.ascontiguousarray(slopes @ D.T)
                arguments = [P, lines, options.starts, options.allowed, current, margins, errors @ self.error_powers]
                search(*(arguments + limits + parts))
                for whole, part in zip(state, parts, strict=True):
                    whole[rows] = part


def _fixed_indices(fixed: Any, names: Any, d: int) -> tuple[int, ...]:
    """Return the indices of fixed features or columns."""
    given = list(fixed) if np.iterable(fixed) and not isinstance(fixed, str) else fixed
    if given == []:
        return ()
    return feature_indices(given, names, d, f"fixed must be distinct indices below {d}, or names")


def _checked_bits(values: np.ndarray, features: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return values (n, c) of features as integers, if they are 0 or 1."""
    wrong = np.argwhere((values != 0) & (values != 1))
    if len(wrong):
        i, j = wrong[0]
        raise ValueError(
            f"features that flip must be 0 or 1, but feature {features[j]} of row {i} of X is {shown(values[i, j])}: "
            "name those that hold other numbers in fixed"
        )
    return values.astype(np.intp)


def _hot_member(values: np.ndarray, group: Sequence[int]) -> np.ndarray:
    """Return which feature (n,) of a group is 1, if exactly one is."""
    bits = _checked_bits(values, group)
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

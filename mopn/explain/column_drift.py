"""Drift: how rows and predictions differ from the training data of a model of tables, column by column.

A model holds the shares of the training data up to the knots of its encoding, of every category, and of its answers. So
the model file is enough, without the training data.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mopn.data.cells import CATEGORIES, NOTHING, as_given
from mopn.data.rounding import nearest_equal
from mopn.data.values import to_host
from mopn.explain.column_effects import Effects, effects
from mopn.models.base import Fitted
from mopn.models.table import TableModel
from mopn.solvers.tools.checks import shown
from mopn.solvers.tools.decorators import quiet
from mopn.solvers.tools.signals import signals_later
from mopn.tables.answers import ANSWER_ROUNDING, rounded_answers
from mopn.tables.columns import CategoryColumn
from mopn.tables.distribution import SHARE_ROUNDING, TrainingDistribution, category_shares
from mopn.tables.encoding import TableEncoding
from mopn.tables.report import Report
from mopn.tables.texts import numbers_of

# Classes of numbers in the PSI: the usual number, tenths of the training data.
_PSI_CLASSES = 10
# Categories with a class of their own in the PSI, the most frequent ones; the others share one.
_PSI_CATEGORIES = 20
# Rows that are added to each class of the PSI, which would be infinite for an empty class (Jeffreys).
_PSI_ADDED_ROWS = 0.5
# Digits of shifts that are shown after the point.
_SHIFT_DIGITS = 3
# The share of samples without drift that stay below the noise.
_NOISE_LEVEL = 0.99
# Pairs of samples without drift that are drawn: the noise is right to some 5 %.
_NOISE_DRAWS = 500


@dataclass(frozen=True, eq=False)
class ColumnDrift:
    """The drift of a column, or of a prediction; shares are of the rows unless said otherwise.

    Attributes
    ----------
    column, kind : str
        The name of the column, and the kind of its entries in the training data, such as "numbers". Predictions are
        named "P(yes)", after the class, or "prediction of price", after the target.
    missing_before, missing : float
        Share of missing values, in the training data and now.
    new : float
        Share of rows with a value that the training data did not have: an unknown category, or a word among numbers.
    new_values : dict of str to int
        These values and the rows that have each, the most frequent first.
    beyond : float
        Share of rows outside the range of the training data; columns of numbers alone.
    range : tuple of two values, or None
        This range, as dates if the column holds dates.
    distance : float
        Columns of numbers: the Kolmogorov-Smirnov distance of the values that are not missing, the largest difference
        of the shares up to a number, taken at the knots of the encoding. Columns of categories: half of the sum of all
        differences of shares (total variation), in which new and rare categories are one. NaN without values.
    psi : float
        Population stability index, the sum of (q - p) log(q / p) over ten ranges of numbers, or the twenty most
        frequent categories, and the missing values; half a row is added to each.
    distance_noise, psi_noise : float
        The distance and the index below which 99 % of samples without drift stay, for these numbers of rows.
    shift : float or ndarray of shape (m,)
        The mean of the column's effect (:func:`mopn.explain.effects`) over the rows, minus that over the training
        data: how far the drift of this column moves the outputs on average. Rows with new values are left out. Of a
        prediction: its own mean, minus its mean over the training data.
    values : ndarray or list of str
        Knots of a column of numbers, or the categories, for :func:`mopn.plotting.plot_drift`.
    shares_before, shares : ndarray
        The shares of the values up to each knot, or of each category.
    """

    column: str
    kind: str
    missing_before: float
    missing: float
    new: float
    new_values: dict[str, int]
    beyond: float
    range: tuple[Any, Any] | None
    distance: float
    distance_noise: float
    psi: float
    psi_noise: float
    shift: Any
    values: Any = field(repr=False)
    shares_before: np.ndarray = field(repr=False)
    shares: np.ndarray = field(repr=False)

    @property
    def stands_out(self) -> bool:
        """Whether the distance or the index is above its noise."""
        return self.distance > self.distance_noise or self.psi > self.psi_noise


class Drift:
    """The drift of all columns and predictions, from :func:`drift`; ``print`` and notebooks show it as a table.

    Attributes
    ----------
    columns : tuple of ColumnDrift
        The columns, the largest excess of the PSI over its noise first.
    predictions : tuple of ColumnDrift
        The probability of each class, of two classes the second's alone, or each predicted number; in the same order.
        None where the model does not hold their distributions.
    n_rows, n_training_rows : int
        Number of rows now, and of the training data.
    outputs : tuple of str
        Names of the outputs that ``shift`` has, or ("",) for a single one.
    """

    def __init__(
        self,
        columns: tuple[ColumnDrift, ...],
        predictions: tuple[ColumnDrift, ...],
        n_rows: int,
        n_training_rows: int,
        outputs: tuple[str, ...],
    ) -> None:
        self.columns = columns
        self.predictions = predictions
        self.n_rows = n_rows
        self.n_training_rows = n_training_rows
        self.outputs = outputs

    def __getitem__(self, column: str) -> ColumnDrift:
        """Return the drift of a column, or of a prediction, by its name."""
        every = *self.columns, *self.predictions
        for found in every:
            if found.column == column:
                return found
        raise KeyError(f"no column {column!r}; the columns are {shown([each.column for each in every])}")

    def __repr__(self) -> str:
        return str(self._report())

    def _repr_html_(self) -> str:
        return self._report()._repr_html_()

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each column, and for each prediction.

        The shift of a prediction is in the column "shift of prediction".

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            with signals_later():
                import pandas
        except ImportError as error:
            raise ImportError("Drift.to_frame needs pandas: pip install pandas") from error
        rows = []
        for column in (*self.columns, *self.predictions):
            low, high = column.range or (None, None)
            row = {
                "column": column.column,
                "kind": column.kind,
                "stands_out": column.stands_out,
                "missing_before": column.missing_before,
                "missing": column.missing,
                "new": column.new,
                "new_values": len(column.new_values),
                "beyond": column.beyond,
                "least_before": low,
                "largest_before": high,
                "distance": column.distance,
                "distance_noise": column.distance_noise,
                "psi": column.psi,
                "psi_noise": column.psi_noise,
            }
            if column in self.predictions:
                row["shift of prediction"] = column.shift
            else:
                for name, shift in zip(self.outputs, np.atleast_1d(column.shift).tolist(), strict=True):
                    row[f"shift of {name}" if name else "shift"] = shift
            rows.append(row)
        return pandas.DataFrame(rows)

    def _report(self) -> Report:
        counts = f"{_count(self.columns)} columns"
        if self.predictions:
            counts += f" and {_count(self.predictions)} predictions"
        caption = (
            f"{self.n_rows:,} rows against {self.n_training_rows:,} of the training data: {counts} stand out (*) from "
            "noise (in brackets)"
        )
        header = "column", "type", "missing", "new", "beyond", "distance", "PSI", "shift", "look at"
        return Report(caption, tuple(self._line(column) for column in (*self.columns, *self.predictions)), header)

    def _line(self, column: ColumnDrift) -> tuple[str, ...]:
        """Return the cells of a column in the report."""
        missing = ""
        if column.missing or column.missing_before:
            missing = f"{column.missing_before:.1%} to {column.missing:.1%}"
        distance = ""
        if not np.isnan(column.distance):
            distance = f"{column.distance:.3f} ({column.distance_noise:.3f})"
        return (
            f"* {column.column}" if column.stands_out else f"  {column.column}",
            column.kind,
            missing,
            _percent(column.new),
            _percent(column.beyond),
            distance,
            f"{column.psi:.3f} ({column.psi_noise:.3f})",
            self._shift(column),
            _advice(column),
        )

    def _shift(self, column: ColumnDrift) -> str:
        """Return the shift of a prediction, or of the output that moves most, with its name."""
        if column in self.predictions:
            return f"{column.shift:+.{_SHIFT_DIGITS}g}"
        shifts = np.atleast_1d(column.shift)
        # Two classes have opposite shifts; then the second one is named.
        largest = len(shifts) - 1 - int(np.abs(shifts[::-1]).round(_SHIFT_DIGITS).argmax())
        if abs(shifts[largest]) < 0.5 * 10.0**-_SHIFT_DIGITS:
            return ""
        return f"{shifts[largest]:+.{_SHIFT_DIGITS}f} {self.outputs[largest]}".rstrip()


def _count(columns: tuple[ColumnDrift, ...]) -> str:
    return f"{sum(column.stands_out for column in columns)} of {len(columns)}"


def _percent(share: float) -> str:
    return f"{share:.1%}" if share else ""


def _advice(column: ColumnDrift) -> str:
    """Return advice about a column, in words."""
    parts = []
    if column.new_values:
        count = len(column.new_values)
        noun = "new value" if count == 1 else "new values"
        parts.append(f"{count:,} {noun}, such as {shown(next(iter(column.new_values)))}")
    if column.beyond and column.range is not None:
        low, high = (f"{end:.4g}" if isinstance(end, float) else str(end) for end in column.range)
        parts.append(f"trained on {low} to {high}")
    return "; ".join(parts)


@quiet()
def drift(model: Fitted, X: Any) -> Drift:
    """Compare rows, and the predictions for them, with the training data of a model of tables.

    The training data need not be at hand. The model holds the number of training rows, the shares of missing values and
    of categories, and the shares of numbers and of its own predictions up to each knot.
    :func:`mopn.plotting.plot_drift` draws the result.

    Parameters
    ----------
    model : TableModel or fitted estimator of tables
    X : DataFrame, array-like of shape (n, c), or dict
        Rows as for ``predict``. Words in a column of numbers are counted as new values.

    Returns
    -------
    Drift
        Its ``columns`` and ``predictions`` are sorted, the largest excess of the PSI over its noise first.

    Raises
    ------
    TypeError
        If it is not a model of tables.
    ValueError
        If X has no rows, lacks columns, or has dates in place of numbers or the other way round; and if the model was
        saved before model files held distributions.

    Notes
    -----
    With at most 33 different values of a column, the distance is SciPy's two-sample statistic, ``ks_2samp``. With more
    it is never larger, and smaller by at most the share of the training data between two knots, some 3 % (1.6 % with
    16 curves). The noise is the 99 % quantile over 500 pairs of samples, drawn from the shares of the training data
    with a fixed seed. It takes rows as independent, and weights of training rows as 1: batches of rows that belong
    together, such as one day, vary more. One column in a hundred stands out by chance in each of both measures.

    The ``shift`` of a column is the part of the change of the outputs that it explains alone. Predictions for training
    rows come from a model that has seen their labels: if it overfits, they are more extreme than for new rows, and
    predictions stand out without drift. Models of earlier files, and networks that were changed after ``fit``, have no
    distribution of predictions.

    Examples
    --------
    >>> import mopn, numpy as np
    >>> from mopn.estimators import TableRegressor
    >>> table = {"size": np.linspace(0, 3, 60), "color": ["red", "blue"] * 30}
    >>> model = TableRegressor(strength=mopn.Ratio(0.01)).fit(table, np.sin(table["size"]))
    >>> found = mopn.explain.drift(model, {"size": np.linspace(2, 4, 60), "color": ["red"] * 45 + ["green"] * 15})
    >>> [column.column for column in found.columns if column.stands_out]
    ['color', 'size']
    >>> found["size"].beyond, found["color"].new_values
    (0.5, {'green': 15})
    >>> found["prediction"].stands_out
    True
    """
    background = effects(model)
    machine = background.model
    encoding = machine.encoding
    training = encoding.training
    if training is None:
        raise ValueError(
            "model was saved before model files held the distributions of the training data; fit and save it again"
        )
    X = to_host(X)
    given = encoding.ordered(X)
    arranged = encoding.arranged(given, training=True)
    found = []
    for place, j in enumerate(encoding.number_columns):
        before = _NumbersBefore.of_column(encoding, training, place)
        found.append(_drift_of_column(background, before, j, given.columns[j], arranged.columns[j]))
    for place, j in enumerate(encoding.category_columns):
        categories = _Categories(encoding.categories[place], training.n, arranged.columns[j])
        found.append(categories.drift(background, j))
    outputs = _names_of_outputs(machine, background)
    predictions = _drift_of_predictions(machine, X, training.n, outputs)
    order = {name: i for i, name in enumerate(encoding.columns)}
    found.sort(key=lambda column: (column.psi_noise - column.psi, order[column.column]))
    predictions.sort(key=lambda column: column.psi_noise - column.psi)
    return Drift(tuple(found), tuple(predictions), given.n, training.n, outputs)


def _names_of_outputs(model: TableModel, background: Effects) -> tuple[str, ...]:
    """Return the names of the outputs; a single one needs none, but for the second of two classes."""
    count = int(np.size(background.constant))
    classes = model.classes
    if classes is not None and count == len(classes):
        return tuple(map(str, classes))
    if classes is not None and count == 1 and len(classes) == 2:
        return (str(classes[1]),)
    names = model.model.output_names
    if names is not None and len(names) == count:
        return tuple(map(str, names))
    return ("",) if count == 1 else tuple(f"output {c}" for c in range(count))


@dataclass(frozen=True)
class _NumbersBefore:
    """The distribution of a column of numbers, or of a prediction, in the training data."""

    name: str
    kind: str
    knots: np.ndarray
    below: np.ndarray  # (q,), the share of the numbers that are less than each knot
    up_to: np.ndarray  # (q,), the share of the numbers that are at most each knot
    missing: float
    n: int

    @classmethod
    def of_column(cls, encoding: TableEncoding, training: TrainingDistribution, place: int) -> Self:
        """Return the numbers of a column of an encoding."""
        return cls(
            name=encoding.columns[encoding.number_columns[place]],
            kind=encoding.number_kinds[place],
            knots=encoding.numbers.parts[place][0],
            below=training.below[place],
            up_to=training.up_to[place],
            missing=float(training.missing[place]),
            n=training.n,
        )

    def drift(self, numbers: np.ndarray, words: dict[str, int], n: int, shift: Any) -> ColumnDrift:
        """Return the drift to ascending numbers and words among n rows; the other rows have no value."""
        below, up_to = (np.searchsorted(numbers, self.knots, side) / max(len(numbers), 1) for side in ("left", "right"))
        before = _cells(self.below, self.up_to)
        now = _cells(below, up_to)
        present_before = round(self.n * (1.0 - self.missing))
        present = len(numbers)
        distance = noise = np.nan
        if present and present_before:
            distance = float(_largest_difference(before, now))
            noise = _noise(_largest_difference, before, present_before, present)

        new = sum(words.values())
        classes = _classes(before)
        shares_before = np.append(_sums(before, classes) * (1.0 - self.missing), [self.missing, 0.0])
        counts = np.append(_sums(now, classes) * present, [n - present - new, new])
        psi, psi_noise = _psi_and_noise(shares_before, self.n, counts)
        low, high = as_given(self.knots[[0, -1]], self.kind).tolist()
        beyond = np.count_nonzero(numbers < self.knots[0]) + np.count_nonzero(numbers > self.knots[-1])
        return ColumnDrift(
            column=self.name,
            kind=self.kind,
            missing_before=self.missing,
            missing=(n - present - new) / n,
            new=new / n,
            new_values=words,
            beyond=float(beyond / n),
            range=(low, high) if present_before else None,
            distance=distance,
            distance_noise=noise,
            psi=psi,
            psi_noise=psi_noise,
            shift=shift,
            values=self.knots,
            shares_before=self.up_to,
            shares=up_to,
        )


def _drift_of_column(
    background: Effects, before: _NumbersBefore, j: int, given: np.ndarray, numbers: np.ndarray
) -> ColumnDrift:
    """Return the drift of a column of numbers, as given and as numbers."""
    words = _words(given, numbers) if before.kind != NOTHING else _present(given)
    present = _snapped(numbers[~np.isnan(numbers)], before.knots)
    values = np.append(present, np.full(len(numbers) - len(present) - sum(words.values()), np.nan))
    shift = _mean_effect(background, j, values) - before.missing * _mean_effect(background, j, [np.nan])
    return before.drift(present, words, len(numbers), shift)


def _drift_of_predictions(model: TableModel, X: Any, n_before: int, outputs: tuple[str, ...]) -> list[ColumnDrift]:
    """Return the drift of the answers of a model; none where it does not hold their distributions."""
    before = model.answers
    if before is None:
        return []
    answers = model.model.answers_of(model.model.outputs(model.encoding.encode(X, training=True)))
    form = "P({})" if model.has_probabilities else "prediction of {}"
    names = outputs[-answers.shape[1] :]
    found = []
    for j, name in enumerate(names):
        of_answer = _NumbersBefore(
            name=form.format(name) if name else "prediction",
            kind="predictions",
            knots=before.knots[j],
            below=before.below[j],
            up_to=before.up_to[j],
            missing=0.0,
            n=n_before,
        )
        shift = float(answers[:, j].mean() - before.means[j])
        numbers = _snapped(rounded_answers(answers[:, j]), before.knots[j], ANSWER_ROUNDING)
        found.append(of_answer.drift(numbers, {}, len(answers), shift))
    return found


def _snapped(numbers: np.ndarray, knots: np.ndarray, *rounding: float) -> np.ndarray:
    """Return numbers in ascending order, the knots in place of numbers that equal them up to rounding."""
    equal = nearest_equal(numbers, knots, *rounding)
    return np.sort(np.where(equal >= 0, knots[equal], numbers))


class _Categories:
    """A column of categories: its shares in the training data, and now."""

    def __init__(self, column: CategoryColumn, n_before: int, texts: np.ndarray) -> None:
        self.column = column
        self.n_before = n_before
        self.texts = texts
        self.codes = column.codes(texts)

    def drift(self, background: Effects, j: int) -> ColumnDrift:
        """Return the drift of the column."""
        column = self.column
        frequent = len(column.categories)
        shares_of_codes = category_shares(column)
        missing_before = float(shares_of_codes[-1]) if column.missing else 0.0
        rare_before = float(shares_of_codes[frequent]) if column.rare else 0.0

        n = len(self.texts)
        is_missing = np.array([text is None for text in self.texts], bool)
        is_new = (self.codes < 0) & ~is_missing
        is_known = ~is_missing & ~is_new
        counts = np.bincount(self.codes[is_known], minlength=frequent + 1)[: frequent + 1].astype(float)
        # New categories are unknown to the encoding as rare ones are nearly: with both together, samples of the same
        # distribution have the same shares on average, however many categories occur once.
        counts[frequent] += np.count_nonzero(is_new)
        present = counts.sum()
        before = np.append(shares_of_codes[:frequent], rare_before)
        present_before = round(self.n_before * before.sum())
        distance = noise = np.nan
        if present and present_before:
            shares = before / before.sum()
            distance = float(_total_variation(shares, counts / present))
            noise = _noise(_total_variation, shares, present_before, int(present))

        largest = np.argsort(-before[:frequent], kind="stable")[:_PSI_CATEGORIES]
        rest = np.setdiff1d(np.arange(frequent), largest)
        classes: list[np.ndarray] = [*largest[:, None], rest, np.array([frequent])]
        psi_before = np.append([before[k].sum() for k in classes], missing_before)
        psi_counts = np.append([counts[k].sum() for k in classes], np.count_nonzero(is_missing))
        psi, psi_noise = _psi_and_noise(psi_before, self.n_before, psi_counts)
        names = [*column.categories, "rare or new"]
        return ColumnDrift(
            column=background.model.encoding.columns[j],
            kind=CATEGORIES,
            missing_before=missing_before,
            missing=float(is_missing.mean()),
            new=float(is_new.mean()),
            new_values=dict(Counter(self.texts[is_new]).most_common()),
            beyond=0.0,
            range=None,
            distance=distance,
            distance_noise=noise,
            psi=psi,
            psi_noise=psi_noise,
            shift=_mean_effect(background, j, self.texts[~is_new]),
            values=names,
            shares_before=before,
            shares=counts / n,
        )


def _words(given: np.ndarray, numbers: np.ndarray) -> dict[str, int]:
    """Return the texts of a column that are no numbers and no signs of missing ones, and the rows of each."""
    if given.dtype.kind == "f":
        return {}
    counts = Counter(text for text in given[np.isnan(numbers)] if text is not None)
    return {text: rows for text, rows in counts.most_common() if numbers_of([text]) is None}


def _present(given: np.ndarray) -> dict[str, int]:
    """Return the values that are not missing, as texts, and the rows of each."""
    cells = given[~np.isnan(given)].tolist() if given.dtype.kind == "f" else given.tolist()
    return dict(Counter(str(cell) for cell in cells if cell is not None).most_common())


def _cells(below: np.ndarray, up_to: np.ndarray) -> np.ndarray:
    """Return the shares (2 q + 1,) before the first of q knots, at it, between it and the next, and so on."""
    ends = np.append(np.column_stack([below, up_to]).ravel(), 1.0)
    return np.diff(ends, prepend=0.0).clip(0.0)


def _classes(shares: np.ndarray) -> np.ndarray:
    """Return the class (k,) of each cell: its tenth of the training data, and its neighbour's if it is empty there."""
    ranks = np.cumsum(shares) - 0.5 * shares
    tenths = np.minimum(np.floor(_PSI_CLASSES * ranks), _PSI_CLASSES - 1).astype(np.intp)
    is_empty = shares <= SHARE_ROUNDING
    tenths[is_empty] = 0
    tenths = np.maximum.accumulate(tenths)
    tenths[np.cumsum(~is_empty) == 0] = tenths[np.argmin(is_empty)]
    return tenths


def _sums(shares: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the sums of shares by class, without classes that have no cell."""
    _, dense = np.unique(classes, return_inverse=True)
    return np.bincount(dense, shares)


def _largest_difference(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the Kolmogorov-Smirnov distances (...,) of shares of cells (..., k)."""
    return np.abs(np.cumsum(p - q, axis=-1)).max(axis=-1)


def _total_variation(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return 0.5 * np.abs(p - q).sum(axis=-1)


def _smoothed(counts: np.ndarray) -> np.ndarray:
    """Return the shares of counts (..., k), half a row being added to each."""
    more = counts + _PSI_ADDED_ROWS
    return more / more.sum(axis=-1, keepdims=True)


def _index(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the population stability indices (...,) of positive shares (..., k)."""
    return ((q - p) * np.log(q / p)).sum(axis=-1)


def _psi_and_noise(shares_before: np.ndarray, n_before: int, counts: np.ndarray) -> tuple[float, float]:
    """Return the index of counts (k,) against shares of n_before rows, and its noise.

    Classes without a row on either side are left out.
    """
    held = (shares_before > 0.0) | (counts > 0.0)
    shares_before = shares_before[held]
    counts = counts[held]

    def psi_of(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return _index(_smoothed(p * n_before), _smoothed(q * n))

    n = round(counts.sum())
    return float(psi_of(shares_before, counts / n)), _noise(psi_of, shares_before, n_before, n)


def _noise(distance: Any, shares: np.ndarray, n_before: int, n: int) -> float:
    """Return the quantile of a distance between two samples, of n_before and of n rows, with the same shares."""
    rng = np.random.default_rng(0)
    p = shares / shares.sum()
    before = rng.multinomial(n_before, p, _NOISE_DRAWS) / n_before
    now = rng.multinomial(n, p, _NOISE_DRAWS) / n
    return float(np.quantile(distance(before, now), _NOISE_LEVEL))


def _mean_effect(background: Effects, j: int, values: Any) -> Any:
    """Return the mean of the effect of a column over some values, by output; 0 without values."""
    if not len(values):
        return np.zeros(np.shape(background.constant))[()]
    return np.mean(background.main(j, values), axis=0)

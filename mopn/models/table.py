"""The model of a table: an encoding of its columns, and the network of their features. NumPy and SciPy suffice."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mopn.data.designs import Design, make_design
from mopn.models.base import Predictor
from mopn.models.formula import Formula
from mopn.models.multi_output import Model
from mopn.solvers.tools.checks import shown
from mopn.tables.answers import AnswerDistribution
from mopn.tables.encoding import TableEncoding
from mopn.tables.fields import answer_fields, to_fields


@dataclass(frozen=True, eq=False, repr=False)
class TableModel(Predictor):
    """A polynomial network of the features of a table: of frames, arrays or dictionaries of columns.

    Explanations are by columns: a column's Shapley value is the sum over its features, as polynomials of degree
    2 have no products of three players.

    Attributes
    ----------
    model : Model
        The network of the features.
    encoding : TableEncoding
        The features of the columns.
    answers : AnswerDistribution or None
        The distributions of probabilities or predicted numbers on the training data, for :func:`mopn.explain.drift`.

    Examples
    --------
    >>> import mopn
    >>> from mopn.estimators import TableClassifier
    >>> table = {"size": [1.0, 2.0, None, 4.0] * 10, "color": ["red", "red", "blue", "blue"] * 10}
    >>> model = TableClassifier().fit(table, ["a", "b", "b", "b"] * 10).model_
    >>> model.predict({"size": 1.0, "color": "red"})
    array(['a'], dtype='<U1')
    """

    model: Model
    encoding: TableEncoding
    answers: AnswerDistribution | None = None

    def __post_init__(self) -> None:
        if self.model.n_features != self.encoding.n_features:
            raise ValueError(
                f"encoding has {self.encoding.n_features} features, but model was trained with {self.model.n_features}"
            )
        if self.answers is not None:
            expected = self.model.answers_of(np.zeros((1, self.model.weights.shape[1]))).shape[1]
            if len(self.answers.knots) != expected:
                raise ValueError(f"answers must be of {expected} answers of the model, got {len(self.answers.knots)}")

    @property
    def link(self) -> str | None:  # type: ignore[override]
        """The link of the network."""
        return self.model.link

    @property
    def classes(self) -> np.ndarray | None:  # type: ignore[override]
        """The classes of the network."""
        return self.model.classes

    @property
    def target(self) -> str | None:  # type: ignore[override]
        """The kind of predictions of the network."""
        return self.model.target

    @property
    def feature_names(self) -> np.ndarray | None:  # type: ignore[override]
        """The names of the columns."""
        return np.array(self.encoding.columns, np.str_)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.encoding.columns)

    def design(self, X: Any, name: str = "X") -> Design:
        return make_design(self.encoding.encode(X, name))

    def cells(self, X: Any) -> np.ndarray:
        columns = self.encoding.arranged(X).columns
        if self.encoding.category_columns:
            return np.column_stack([column.astype(object) for column in columns])
        return np.column_stack(columns)

    def outputs_of_design(self, design: Design) -> np.ndarray:
        return self.model.outputs_of_design(design)

    def formula(self) -> Formula:
        return self.model.formula()

    def _entries(self) -> dict[str, str]:
        encoding = self.encoding
        counts = f"{len(encoding.number_columns)} of numbers, {len(encoding.category_columns)} of categories"
        entries = {} if encoding.training is None else {"rows": f"{encoding.training.n:,}"}
        entries["columns"] = f"{self.n_features} ({counts})"
        if self.classes is not None:
            entries["classes"] = shown(self.classes.tolist())
        return entries | {name: text for name, text in self.model._entries().items() if name not in entries}

    def _fields(self) -> dict[str, Any]:
        fields = self.model._fields() | to_fields(self.encoding) | answer_fields(self.answers)
        if np.array_equal(fields["feature_names"], self.encoding.feature_names):
            fields["feature_names"] = None  # the encoding has them
        return fields

"""The encoding of a table as ONNX: columns of numbers and of texts become the features of a network.

A function of a number is a sum of ramps: f(t_0) + sum_j r_j (f(t_{j+1}) - f(t_j)), where r_j is the part of the segment
from t_j to t_{j+1} that lies below the number. A product with the changes of all functions adds them up, a column each.
"""

from __future__ import annotations

import numpy as np

from mopn.export.onnx_nodes import Graph
from mopn.solvers.tools.decorators import warn_caller
from mopn.tables.columns import CategoryColumn, NumberColumns
from mopn.tables.encoding import TableEncoding

# The domain of the operator that finds texts.
ML = "ai.onnx.ml"
_LAST = np.array([2])


def encode_columns(graph: Graph, encoding: TableEncoding) -> str:
    """Add the inputs and the features (n, d) of a table.

    If all columns are numbers, the input is ``X`` (n, c). If not, every column is an input (n, 1) of its name: of
    numbers, NaN where they are missing, or of texts, empty where they are missing. Numbers are read in float64 where
    the dtype of the graph would lose digits of a column.
    """
    read = encoding.input_type(graph.dtype)
    encoding = encoding.rounded(read)
    if not encoding.categories:
        X = graph.input("X", read, len(encoding.columns))
        return graph("Concat", *_of_numbers(graph, X, encoding.numbers, read), axis=1)
    kinds = [object if j in encoding.category_columns else read for j in range(len(encoding.columns))]
    inputs = [graph.input(name, kind, 1) for name, kind in zip(encoding.columns, kinds, strict=True)]
    parts = []
    if encoding.number_columns:
        numbers = graph("Concat", *(inputs[j] for j in encoding.number_columns), axis=1)
        parts += _of_numbers(graph, numbers, encoding.numbers, read)
    for j, column in zip(encoding.category_columns, encoding.categories, strict=True):
        if len(column.means):
            parts.append(_of_categories(graph, inputs[j], column))
        if column.missing and "" in column.known:
            warn_caller(
                f"column {encoding.columns[j]!r} has the text '' and missing values, and ONNX one text for both: a "
                "missing value counts as ''"
            )
    return graph("Concat", *parts, axis=1)


def _of_numbers(graph: Graph, X: str, numbers: NumberColumns, read: type) -> list[str]:
    """Add the functions of numbers, and the indicators of missing ones."""
    missing = graph("IsNaN", X)
    parts = []
    if numbers.widths.any():
        parts.append(_functions(graph, X, missing, numbers, read))
    if numbers.missing.any():
        indicators = graph("Gather", missing, np.flatnonzero(numbers.missing), axis=1)
        parts.append(graph.cast(indicators))
    return parts


def _functions(graph: Graph, X: str, missing: str, numbers: NumberColumns, read: type) -> str:
    """Add the functions, by arrays (c, n, knots) and (c, n, functions); they are 0 where a number is missing."""
    slopes, changes = numbers.segments
    knots = np.where(np.isfinite(numbers.knots), numbers.knots, 0.0)
    zero, one = graph.real(np.zeros(1), read), graph.real(np.ones(1), read)
    present = graph("Sub", _by_columns(graph, graph("Where", missing, zero, X)), graph.real(knots[:, None], read))
    ramps = graph("Mul", present, graph.real(slopes.reshape(knots.shape)[:, None], read))
    ramps = graph.cast(graph("Max", graph("Min", ramps, one), zero))
    sums = graph("MatMul", ramps, changes.reshape(numbers.functions.shape))
    values = graph("Add", sums, numbers.functions[:, :1])
    values = graph("Where", _by_columns(graph, missing), np.zeros(1), values)
    rows = graph("Reshape", graph("Transpose", values, perm=[1, 0, 2]), np.array([0, numbers.used.size]))
    return graph("Gather", rows, np.flatnonzero(numbers.used), axis=1)


def _by_columns(graph: Graph, X: str) -> str:
    """Add an array (c, n, 1) of an array (n, c)."""
    return graph("Unsqueeze", graph("Transpose", X, perm=[1, 0]), _LAST)


def _of_categories(graph: Graph, texts: str, column: CategoryColumn) -> str:
    """Add the indicators of categories, or their means where a text is unknown."""
    known = [text for text in column.known if text is not None]
    keys = known if "" in known else [*known, ""]
    numbers = column.codes([*known, None])[: len(keys)].tolist()
    codes = graph("LabelEncoder", texts, keys_strings=keys, values_int64s=numbers, default_int64=-1, domain=ML)
    indicators = graph.cast(graph("Equal", codes, np.arange(column.count - len(column.means), column.count)))
    return graph("Where", graph("Less", codes, np.array([0])), column.means, indicators)

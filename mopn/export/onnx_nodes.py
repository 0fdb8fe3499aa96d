"""ONNX graphs while they are written: inputs, nodes, constants and outputs; and the encoding of a table as nodes.

A function of a number is a sum of ramps: f(t_0) + sum_j r_j (f(t_{j+1}) - f(t_j)), where r_j is the part of the segment
from t_j to t_{j+1} that lies below the number. A product with the changes of all functions sums them, one column each.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mopn.models.formula import as_real
from mopn.solvers.tools.checks import choice
from mopn.solvers.tools.decorators import warn_caller
from mopn.solvers.tools.signals import signals_later
from mopn.tables.columns import CategoryColumn, NumberColumns
from mopn.tables.encoding import TableEncoding

# The domain of the operator that finds texts.
ML = "ai.onnx.ml"
# The last axis of arrays (c, n, 1), as an input of operators.
_LAST_AXIS = np.array([2])
_OUTPUTS = ("prediction", "probabilities", "outputs")
_DTYPES = {"float32": np.float32, "float64": np.float64}


class Graph:
    """The inputs, nodes, constants and outputs of a graph; a call adds a node."""

    def __init__(self, dtype: str) -> None:
        try:
            with signals_later():
                import onnx
        except ImportError as error:
            raise ImportError("to_onnx needs the package onnx: pip install onnx") from error
        self.onnx = onnx
        self.dtype = _DTYPES[choice(_DTYPES)(dtype, "dtype")]
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[str] = []
        self.domains = {""}
        # An empty name stands for no input.
        self._taken = {"", *_OUTPUTS}

    def __call__(self, operator: str, *inputs: str | np.ndarray, domain: str = "", **attributes: Any) -> str:
        """Add a node, whose inputs are other nodes and constant arrays, and return its name."""
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        name = self._free_name(f"{operator}_{len(self.nodes)}")
        outputs = [name]
        if operator == "TopK":
            outputs.append(self._free_name(f"{name}_indices"))
        self._add_node(operator, names, outputs, name=name, domain=domain, **attributes)
        self.domains.add(domain)
        return name

    def cast(self, node: str, dtype: type | None = None) -> str:
        """Add the values of a node in another dtype, by default the dtype of the graph."""
        return self("Cast", node, to=self._code(dtype or self.dtype))

    def input(self, name: str, dtype: type, width: int) -> str:
        """Add an input (n, width) and return its name, which must be free."""
        self._taken.add(name)
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, self._code(dtype), ["n", width]))
        return name

    def input_names(self, names: Sequence[str]) -> list[str]:
        """Return names for inputs: the given ones, with underscores after a name that the graph cannot have.

        No column takes the name of another. Warns of the changes.
        """
        barred = set(self._taken)
        self._taken |= set(names)
        found = [self._free_name(name) if name in barred else name for name in names]
        changed = [f"{name!r} is {new!r}" for name, new in zip(names, found, strict=True) if name != new]
        if changed:
            warn_caller(
                f"model: inputs of the graph have other names than their columns: {', '.join(changed)}, as a graph has "
                "each name once, outputs included, and no empty one; give inputs by these names, or rename the columns"
            )
        return found

    def output(self, name: str, node: str) -> None:
        """Name a node as an output of the graph."""
        self._add_node("Identity", [node], [name], name=name)
        self.outputs.append(name)

    def proto(self) -> Any:
        """Return the graph as ONNX stores it."""
        outputs = [self.onnx.helper.make_empty_tensor_value_info(name) for name in self.outputs]
        return self.onnx.helper.make_graph(self.nodes, "mopn", self.inputs, outputs, self.constants)

    def store(self, values: np.ndarray) -> str:
        """Add a constant array, and return its name."""
        name = self._free_name(f"constant_{len(self.constants)}")
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def real(self, values: np.ndarray, dtype: type) -> str:
        """Add a constant array of real numbers in a dtype, and return its name."""
        return self.store(as_real(values, dtype))

    def _constant(self, values: np.ndarray) -> str:
        """Add a constant array, real numbers in the dtype of the graph, and return its name."""
        return self.real(values, self.dtype) if values.dtype == np.float64 else self.store(values)

    def _add_node(self, *arguments: Any, **options: Any) -> None:
        self.nodes.append(self.onnx.helper.make_node(*arguments, **options))

    def _free_name(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _code(self, dtype: type) -> int:
        """Return the number of a dtype in ONNX; objects are strings."""
        return self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def encode_columns(graph: Graph, encoding: TableEncoding) -> str:
    """Add the inputs and the features (n, d) of a table.

    If all columns are numbers, the input is ``X`` (n, c), else every column is an input (n, 1) of its name: NaN or an
    empty text where it is missing. Numbers are read in float64 where the dtype of the graph would lose digits of a
    column.
    """
    read = encoding.input_type(graph.dtype)
    encoding = encoding.rounded(read)
    if not encoding.categories:
        X = graph.input("X", read, len(encoding.columns))
        return graph("Concat", *_number_features(graph, X, encoding.numbers, read), axis=1)
    kinds = [object if j in encoding.category_columns else read for j in range(len(encoding.columns))]
    names = graph.input_names(encoding.columns)
    inputs = [graph.input(name, kind, 1) for name, kind in zip(names, kinds, strict=True)]
    parts = []
    if encoding.number_columns:
        numbers = graph("Concat", *(inputs[j] for j in encoding.number_columns), axis=1)
        parts += _number_features(graph, numbers, encoding.numbers, read)
    for j, column in zip(encoding.category_columns, encoding.categories, strict=True):
        if len(column.means):
            parts.append(_category_features(graph, inputs[j], column))
        if column.missing and "" in column.known:
            warn_caller(
                f"column {encoding.columns[j]!r} has the text '' and missing values, and ONNX one text for both: a "
                "missing value counts as ''"
            )
    return graph("Concat", *parts, axis=1)


def _number_features(graph: Graph, X: str, numbers: NumberColumns, read: type) -> list[str]:
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
    zero = graph.real(np.zeros(1), read)
    one = graph.real(np.ones(1), read)
    present = _by_columns(graph, graph("Where", missing, zero, X))
    distances = graph("Sub", present, graph.real(knots[:, None], read))
    ramps = graph("Mul", distances, graph.real(slopes.reshape(knots.shape)[:, None], read))
    ramps = graph.cast(graph("Max", graph("Min", ramps, one), zero))
    sums = graph("MatMul", ramps, changes.reshape(numbers.functions.shape))
    values = graph("Add", sums, numbers.functions[:, :1])
    values = graph("Where", _by_columns(graph, missing), np.zeros(1), values)
    rows = graph("Reshape", graph("Transpose", values, perm=[1, 0, 2]), np.array([0, numbers.used.size]))
    return graph("Gather", rows, np.flatnonzero(numbers.used), axis=1)


def _by_columns(graph: Graph, X: str) -> str:
    """Add an array (n, c) as an array (c, n, 1)."""
    return graph("Unsqueeze", graph("Transpose", X, perm=[1, 0]), _LAST_AXIS)


def _category_features(graph: Graph, texts: str, column: CategoryColumn) -> str:
    """Add the indicators of categories, or their means where a text is unknown."""
    known = [text for text in column.known if text is not None]
    keys = known if "" in known else [*known, ""]
    numbers = column.codes([*known, None])[: len(keys)].tolist()
    codes = graph("LabelEncoder", texts, keys_strings=keys, values_int64s=numbers, default_int64=-1, domain=ML)
    with_indicator = np.arange(column.count - len(column.means), column.count)
    indicators = graph.cast(graph("Equal", codes, with_indicator))
    return graph("Where", graph("Less", codes, np.array([0])), column.means, indicators)

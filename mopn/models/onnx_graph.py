"""Models as ONNX graphs of plain operators, in float32 or float64.

The outputs of a graph are what the methods of the model return: ``prediction``, ``probabilities`` if the model has
them, and ``outputs`` if they are not the prediction. Labels are gathered from a constant, so that strings need no
operator of their own, and nothing is a list of dictionaries. The names of the features are in the metadata.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from mopn.models.files import plain_labels
from mopn.models.formula import AnovaTerm, Formula, Products, Subsets, Term, as_real
from mopn.solvers.tools.checks import choice

if TYPE_CHECKING:
    import onnx

__all__ = ["make_onnx", "onnx_labels"]

# The version of the operators: since 18 axes are inputs everywhere. onnxruntime has it since 1.14.
OPSET = 18
# The version of the file format that came with it.
_FORMAT = 8
_DTYPES = {"float32": np.float32, "float64": np.float64}
_ONE = np.array([1])


def make_onnx(model: Any, dtype: str) -> onnx.ModelProto:
    """Return the graph of a model; see ``Predictor.to_onnx``."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs the package onnx: pip install mopn[onnx]") from error
    graph = _Graph(choice(_DTYPES)(dtype, "dtype"))
    formula = model._formula()
    outputs = _outputs(graph, formula)
    single = len(formula.constant) == 1
    probabilities = _probabilities(graph, model, outputs, single) if model.has_probabilities else None
    graph.output("prediction", _prediction(graph, model, outputs, single, probabilities))
    if probabilities is not None:
        graph.output("probabilities", probabilities)
    if model.target not in ("outputs", "vector") or model.predicts_means:
        graph.output("outputs", outputs)
    made = onnx.helper.make_model(
        graph.proto(formula.linear.shape[1]),
        producer_name="mopn",
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=_FORMAT,
    )
    if model.feature_names is not None:
        onnx.helper.set_model_props(made, {"feature_names": json.dumps(model.feature_names.tolist())})
    return onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True)


class _Graph:
    """The nodes and constants of a graph whose input is called X; a call adds a node."""

    def __init__(self, dtype: str) -> None:
        self.dtype = _DTYPES[dtype]
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[str] = []

    def __call__(self, operator: str, *inputs: str | np.ndarray, **attributes: Any) -> str:
        """Add a node, whose inputs are other nodes and constant arrays, and return its name."""
        from onnx import helper

        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        name = f"{operator}_{len(self.nodes)}"
        outputs = [name, f"{name}_indices"] if operator == "TopK" else [name]
        self.nodes.append(helper.make_node(operator, names, outputs, name=name, **attributes))
        return name

    def output(self, name: str, node: str) -> None:
        """Make a node an output of the graph."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [node], [name], name=name))
        self.outputs.append(name)

    def proto(self, d: int) -> Any:
        """Return the graph of d features; types and shapes of its outputs are inferred."""
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        X = helper.make_tensor_value_info("X", kind, ["n", d])
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        return helper.make_graph(self.nodes, "mopn", [X], outputs, self.constants)

    def store(self, values: np.ndarray) -> str:
        """Add a constant and return its name."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def _constant(self, values: np.ndarray) -> str:
        """Add a constant, in the dtype of the graph if it is real."""
        return self.store(as_real(values, self.dtype) if values.dtype == np.float64 else values)


def _outputs(graph: _Graph, formula: Formula) -> str:
    """Add the outputs (n, m)."""
    parts = [graph("MatMul", _features(graph, term), term.weights) for term in formula.terms]
    if formula.squares.any():
        parts.append(graph("MatMul", graph("Mul", "X", "X"), formula.squares.T))
    if formula.linear.any() or not parts:
        parts.append(graph("MatMul", "X", formula.linear.T))
    return graph("Add", graph("Sum", *parts), formula.constant)


def _features(graph: _Graph, term: Term) -> str:
    """Add the values (n, k) of the units of a term."""
    if isinstance(term, Products):
        return _product(graph, term)
    if isinstance(term, Subsets):
        return graph("ReduceProd", graph("Add", _entries(graph, term.factors), np.ones(1)), _ONE, keepdims=0)
    assert isinstance(term, AnovaTerm)
    return _anova(graph, term)


def _product(graph: _Graph, term: Products) -> str:
    factors = [graph("Add", graph("MatMul", "X", U.T), bias) for U, bias in zip(term.factors, term.biases, strict=True)]
    product = factors[0]
    for factor in factors[1:]:
        product = graph("Mul", product, factor)
    if term.power == 2:
        return graph("Mul", product, product)
    return product if term.power == 1 else graph("Pow", product, np.array(term.power, dtype=np.int64))


def _anova(graph: _Graph, term: AnovaTerm) -> str:
    """Algorithm 1 by degrees: A^t of the entries before j is a cumulative sum of z_j A^{t-1} of those before j."""
    z = before = _entries(graph, term.factors)
    parts = []
    for t, (start, theta) in enumerate(zip(term.start, term.theta, strict=True)):
        if t == 0:
            continue
        if theta:
            whole = graph("Add", graph("ReduceSum", before, _ONE, keepdims=0), start)
            parts.append(graph("Mul", whole, np.array(theta)))
        if t < len(term.theta) - 1:
            before = graph("Mul", z, graph("Add", graph("CumSum", before, np.array(1), exclusive=1), start))
    return graph("Sum", *parts)


def _entries(graph: _Graph, factors: np.ndarray) -> str:
    """Add z (n, d, k), the products of every entry with the parameters of its feature."""
    return graph("Mul", graph("Unsqueeze", "X", np.array([2])), factors.T)


def _probabilities(graph: _Graph, model: Any, outputs: str, single: bool) -> str:
    """Add what ``predict_proba`` returns."""
    if model.target == "ordinal":
        return _levels(graph, _link(graph, model.link, outputs), len(model.classes))
    if model.target != "labels" or model.link == "softmax":
        return _link(graph, model.link, outputs)
    if single:
        return _link(graph, model.link, graph("Concat", graph("Neg", outputs), outputs, axis=1))
    # Probabilities of one against the rest that add up to 1: a softmax of log(1 / (1 + exp(-o))), without underflow.
    small = graph("Log", graph("Add", graph("Exp", graph("Neg", graph("Abs", outputs))), np.ones(1)))
    return graph("Softmax", graph("Sub", graph("Min", outputs, np.zeros(1)), small), axis=1)


def _link(graph: _Graph, link: str, outputs: str) -> str:
    return graph("Softmax", outputs, axis=1) if link == "softmax" else graph("Sigmoid", outputs)


def _levels(graph: _Graph, cumulative: str, count: int) -> str:
    """Add the probabilities of levels: the differences of the sorted ones of y <= r_c, and of 0 and 1."""
    ordered = graph("TopK", cumulative, np.array([count - 1]), axis=1, largest=0)
    differences = np.eye(count - 1, count) - np.eye(count - 1, count, 1)
    return graph("Add", graph("MatMul", ordered, differences), np.eye(count)[-1])


def _prediction(graph: _Graph, model: Any, outputs: str, single: bool, probabilities: str | None) -> str:
    """Add what ``predict`` returns."""
    if model.target == "labels":
        classes = graph.store(onnx_labels(model.classes))
        if single:
            positive = graph("Greater", graph("Squeeze", outputs, _ONE), np.zeros(()))
            return graph("Gather", classes, graph("Cast", positive, to=_type_code(np.int64)))
        return graph("Gather", classes, graph("ArgMax", outputs, axis=1, keepdims=0))
    if model.target == "ordinal":
        if probabilities is None:
            raise TypeError("the model of ordered levels has no link, so it predicts nothing; set link='logistic'")
        return graph("MatMul", probabilities, model.classes.astype(np.float64))
    if model.target == "indicator":
        return graph("Cast", graph("Greater", outputs, np.zeros(())), to=_type_code(np.int64))
    if model.predicts_means:
        outputs = graph("Exp", outputs)
    return graph("Squeeze", outputs, _ONE) if model.target == "vector" else outputs


def onnx_labels(classes: np.ndarray) -> np.ndarray:
    """Return labels as an array that ONNX has a type for, strings as objects.

    Raises
    ------
    TypeError
        If there is no such type.
    """
    labels = plain_labels(classes)
    assert labels is not None
    if labels.dtype.kind in "iu" and np.can_cast(labels.dtype, np.int64):
        return labels.astype(np.int64)
    if labels.dtype.kind == "U":
        return labels.astype(object)
    if labels.dtype.kind in "bf":
        return labels
    raise TypeError(f"ONNX has no labels of dtype {labels.dtype}; use strings or integers of at most 64 bits")


def _type_code(dtype: type) -> int:
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

"""Models as ONNX graphs of plain operators, in float32 or float64.

The outputs of a graph equal the results of the model's methods: ``prediction``, ``probabilities`` if the model has
them, and ``outputs`` if they are not the prediction. Labels are gathered from a constant, so that strings need no
operator of their own, and nothing is a list of dictionaries. The names of the features are in the metadata.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from mopn.export.comparison import warn_of_lost_digits
from mopn.export.onnx_nodes import ML, Graph, encode_columns
from mopn.export.texts import check_texts
from mopn.models.base import Fitted, fitted_model
from mopn.models.files import plain_labels
from mopn.models.formula import AnovaTerm, Formula, Products, Subsets, UnitTerm
from mopn.solvers.tools.decorators import quiet

if TYPE_CHECKING:
    import onnx

# Versions of the operators by domain. From 18 on, axes are inputs everywhere; onnxruntime has it since 1.14.
_OPSETS = {"": 18, ML: 3}
# Version of the file format that came with operator set 18.
_FILE_FORMAT = 8
# The axis of features and outputs, as an input of operators.
_AXIS_ONE = np.array([1])


@quiet()
def to_onnx(model: Fitted, *, dtype: str = "float32", X: Any = None) -> onnx.ModelProto:
    """Return the model as an ONNX graph of plain operators, for onnxruntime and other engines.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    dtype : {"float32", "float64"}, default "float32"
        The type of the input ``X`` (n, d), of the arithmetic and of the outputs. Numbers of a table are float64 even in
        a graph of float32 where float32 would lose digits of a column, such as milliseconds since 1970.
    X : array-like, sparse matrix or table of n rows, optional
        Rows such as the training data: predictions of 256 of them are compared; by default of rows that are drawn, see
        Warns.

    Returns
    -------
    onnx.ModelProto
        The graph, of operator set 18; ``onnx.save(graph, path)`` stores it. Its outputs are ``prediction``, as by
        ``predict``; ``probabilities``, as by ``predict_proba``, if the model has them; and ``outputs``, as by
        :meth:`mopn.Model.outputs`, if these are not the prediction. The metadata hold the names of the features, if
        they have names, as ``feature_names``, a JSON list.

        A model of a table takes one input ``X`` (n, c), NaN where a number is missing, if all columns are numbers.
        Otherwise each column is an input (n, 1) of its name, in their order: numbers, or texts of categories, empty
        where they are missing. The names ``prediction``, ``probabilities``, ``outputs`` and the empty one get
        underscores at their end, with a warning. Dates are days since 1970. An unknown text counts as the mean of the
        known ones.

    Raises
    ------
    ImportError
        If the package onnx is not installed.
    TypeError
        For labels that ONNX has no type for, such as dates.
    ValueError
        For another dtype, numbers beyond it, or texts that UTF-8 cannot hold.

    Warns
    -----
    UserWarning
        If the dtype changes predicted numbers by more than 0.1 % of their range, or probabilities by more than 0.01,
        computed as in the graph, with levels and links. Without X rows are drawn from the encoding of a table, or
        around the center of the features with the scales of the fit, or have two features of size 1 if it had none.
        If an input has another name than its column. And if a column has both the empty text and missing values, which
        are one text in a graph.

    Notes
    -----
    X is dense. A graph does not check its input: NaN, infinity and overflow give NaN. Outputs agree with the model to
    about 1e-4 of the largest in float32, 1e-11 in float64. The ANOVA kernel of degree 3 and above and the all-subsets
    kernel form an array (n, d, k).

    Examples
    --------
    >>> import numpy as np, mopn
    >>> model = mopn.Model(np.eye(2), np.eye(2), classes=np.array(["cat", "dog"]))
    >>> [output.name for output in mopn.export.to_onnx(model).graph.output]  # doctest: +SKIP
    ['prediction', 'outputs']
    """
    graph = Graph(dtype)
    machine = fitted_model(model)
    check_texts(machine)
    formula = machine.formula()
    if machine.encoding is None:
        features = graph.input("X", graph.dtype, machine.n_features)
    else:
        features = encode_columns(graph, machine.encoding)
    outputs = _outputs(graph, formula, features)
    has_one_output = len(formula.constant) == 1
    probabilities = _probabilities(graph, machine, outputs, has_one_output) if machine.has_probabilities else None
    graph.output("prediction", _prediction(graph, machine, outputs, has_one_output, probabilities))
    if probabilities is not None:
        graph.output("probabilities", probabilities)
    if machine.target not in ("outputs", "vector") or machine.predicts_means:
        graph.output("outputs", outputs)
    warn_of_lost_digits(machine, graph.dtype, X)
    return _onnx_model(graph, machine.feature_names)


def _onnx_model(graph: Graph, feature_names: np.ndarray | None) -> onnx.ModelProto:
    """Return the model of a graph, with the versions of its operators and the shapes of its nodes."""
    helper = graph.onnx.helper
    opsets = [helper.make_opsetid(domain, _OPSETS[domain]) for domain in sorted(graph.domains)]
    made = helper.make_model(graph.proto(), producer_name="mopn", opset_imports=opsets, ir_version=_FILE_FORMAT)
    if feature_names is not None:
        helper.set_model_props(made, {"feature_names": json.dumps(feature_names.tolist())})
    return graph.onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True)


def _outputs(graph: Graph, formula: Formula, X: str) -> str:
    """Add the outputs (n, m) of features X (n, d)."""
    parts = [graph("MatMul", _features(graph, term, X), term.weights) for term in formula.terms]
    if formula.squares.any():
        parts.append(graph("MatMul", graph("Mul", X, X), formula.squares.T))
    if formula.linear.any() or not parts:
        parts.append(graph("MatMul", X, formula.linear.T))
    return graph("Add", graph("Sum", *parts), formula.constant)


def _features(graph: Graph, term: UnitTerm, X: str) -> str:
    """Add the values (n, k) of the units of a term."""
    if isinstance(term, Products):
        return _product(graph, term, X)
    # z (n, d, k) holds the products of every entry with the parameters of its feature.
    z = graph("Mul", graph("Unsqueeze", X, np.array([2])), term.factors.T)
    if isinstance(term, Subsets):
        return graph("ReduceProd", graph("Add", z, np.ones(1)), _AXIS_ONE, keepdims=0)
    assert isinstance(term, AnovaTerm)
    return _anova(graph, term, z)


def _product(graph: Graph, term: Products, X: str) -> str:
    """Add the powers of products of linear forms (n, k)."""
    factors = [graph("Add", graph("MatMul", X, U.T), bias) for U, bias in zip(term.factors, term.biases, strict=True)]
    product = factors[0]
    for factor in factors[1:]:
        product = graph("Mul", product, factor)
    if term.power == 1:
        return product
    if term.power == 2:
        return graph("Mul", product, product)
    return graph("Pow", product, np.array(term.power, dtype=np.int64))


def _anova(graph: Graph, term: AnovaTerm, z: str) -> str:
    """Add the features by Algorithm 1, one degree after the other.

    A^t of the entries up to j is the cumulative sum of z_j A^{t-1} of the entries before j.
    """
    parts = []
    before = z
    for t, (start, theta) in enumerate(zip(term.start[1:], term.theta[1:], strict=True), 1):
        if theta:
            whole = graph("Add", graph("ReduceSum", before, _AXIS_ONE, keepdims=0), start)
            parts.append(graph("Mul", whole, np.array(theta)))
        if t < len(term.theta) - 1:
            before = graph("Mul", z, graph("Add", graph("CumSum", before, np.array(1), exclusive=1), start))
    return graph("Sum", *parts)


def _probabilities(graph: Graph, model: Any, outputs: str, has_one_output: bool) -> str:
    """Add the probabilities of the classes, levels or indicators."""
    if model.target == "ordinal":
        return _levels(graph, _link(graph, model.link, outputs), len(model.classes))
    if model.target != "labels" or model.link == "softmax":
        return _link(graph, model.link, outputs)
    if has_one_output:
        return _link(graph, model.link, graph("Concat", graph("Neg", outputs), outputs, axis=1))
    # One against the rest: the softmax of log(1 / (1 + exp(-o))) adds up to 1, and does not underflow.
    small = graph("Log", graph("Add", graph("Exp", graph("Neg", graph("Abs", outputs))), np.ones(1)))
    return graph("Softmax", graph("Sub", graph("Min", outputs, np.zeros(1)), small), axis=1)


def _link(graph: Graph, link: str, outputs: str) -> str:
    """Add the link of outputs."""
    return graph("Softmax", outputs, axis=1) if link == "softmax" else graph("Sigmoid", outputs)


def _levels(graph: Graph, cumulative: str, count: int) -> str:
    """Add the probabilities of levels: differences of the sorted cumulative ones, with 0 before and 1 after them."""
    ordered = graph("TopK", cumulative, np.array([count - 1]), axis=1, largest=0)
    differences = np.eye(count - 1, count) - np.eye(count - 1, count, 1)
    return graph("Add", graph("MatMul", ordered, differences), np.eye(count)[-1])


def _prediction(graph: Graph, model: Any, outputs: str, has_one_output: bool, probabilities: str | None) -> str:
    """Add the predictions: labels, expected levels, indicators, means or numbers."""
    if model.target == "labels":
        classes = graph.store(_labels(model.classes))
        if has_one_output:
            positive = graph("Greater", graph("Squeeze", outputs, _AXIS_ONE), np.zeros(()))
            return graph("Gather", classes, graph.cast(positive, np.int64))
        return graph("Gather", classes, graph("ArgMax", outputs, axis=1, keepdims=0))
    if model.target == "ordinal":
        if probabilities is None:
            raise TypeError("the model of ordered levels has no link, so it predicts nothing; set link='logistic'")
        return graph("MatMul", probabilities, model.classes.astype(np.float64))
    if model.target == "indicator":
        return graph.cast(graph("Greater", outputs, np.zeros(())), np.int64)
    if model.predicts_means:
        outputs = graph("Exp", outputs)
    return graph("Squeeze", outputs, _AXIS_ONE) if model.target == "vector" else outputs


def _labels(classes: np.ndarray) -> np.ndarray:
    """Return labels as an array that ONNX has a type for, strings as objects; ``TypeError`` if there is none."""
    labels = plain_labels(classes)
    assert labels is not None
    if labels.dtype.kind in "iu" and np.can_cast(labels.dtype, np.int64):
        return labels.astype(np.int64)
    if labels.dtype.kind == "U":
        return labels.astype(object)
    if labels.dtype.kind in "bf":
        return labels
    raise TypeError(f"ONNX has no labels of dtype {labels.dtype}; use strings or integers of at most 64 bits")

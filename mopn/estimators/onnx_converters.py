"""Converters for skl2onnx, so that pipelines that end with an estimator of this package become one ONNX graph."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mopn.estimators.table_encoder import TableEncoder
from mopn.models.exports.onnx_graph import make_encoder_onnx, onnx_labels

__all__ = ["register_skl2onnx"]


def register_skl2onnx() -> None:
    """Register a converter for every estimator of :mod:`mopn.estimators` with skl2onnx; call it once before converting.

    A classifier has the outputs ``label`` and ``probabilities``, the latter with the outputs of the model if its loss
    is not a probability model; a regressor has ``variable``, of shape (n, 1) or (n, m), and one of ordered levels also
    ``probabilities``. They are tensors: there is no ZipMap. Numbers have the type of the input; integers become
    float32.

    Estimators of tables have one input of all columns if these are numbers; if not, an input for each column, in their
    order: of texts for levels, the empty text where one is missing.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError("register_skl2onnx needs the package skl2onnx: pip install skl2onnx") from error
    from mopn import estimators

    for name in estimators.__all__:
        kind, options = getattr(estimators, name), {"zipmap": [False]}
        update_registered_converter(kind, f"Mopn{name}", _set_types, _convert, parser=_parse, options=options)


def _parse(scope: Any, estimator: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Declare the operator of an estimator and its outputs."""
    from skl2onnx import get_model_alias
    from skl2onnx.common.data_types import FloatTensorType

    operator = scope.declare_local_operator(get_model_alias(type(estimator)), estimator)
    operator.inputs = inputs
    for name in _names(estimator):
        operator.outputs.append(scope.declare_local_variable(name, FloatTensorType()))
    return operator.outputs


def _names(estimator: Any) -> list[str]:
    """Return the names of the outputs."""
    if isinstance(estimator, TableEncoder):
        return ["features"]
    if hasattr(estimator, "classes_"):
        return ["label", "probabilities"]
    return ["variable", "probabilities"] if estimator.model_.target == "ordinal" else ["variable"]


def _set_types(operator: Any) -> None:
    """Set the types of the outputs."""
    from skl2onnx.common import data_types

    number = data_types.DoubleTensorType if _dtype(operator) == "float64" else data_types.FloatTensorType
    for variable in operator.outputs:
        variable.type = number([None, None])
    target = _target(operator)
    if target == "indicator":
        operator.outputs[0].type = data_types.Int64TensorType([None, None])
    elif target == "labels":
        ((_, label),) = data_types.guess_data_type(onnx_labels(operator.raw_operator.model_.classes))
        operator.outputs[0].type = type(label)([None])


def _target(operator: Any) -> str | None:
    """Return what the model predicts, None of an encoder."""
    estimator = operator.raw_operator
    return None if isinstance(estimator, TableEncoder) else estimator.model_.target


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of the model, after a cast of its inputs."""
    from skl2onnx.helpers import add_onnx_graph
    from skl2onnx.proto import onnx_proto

    graph, outputs = _graph(operator), list(operator.outputs)
    wanted = [value.type.tensor_type.elem_type for value in graph.graph.input]
    inputs = [_cast(scope, container, *pair) for pair in zip(operator.inputs, wanted, strict=True)]
    if _target(operator) in ("vector", "ordinal"):
        # Regressors of one output have columns in skl2onnx.
        row, shape = scope.get_unique_variable_name("row"), scope.get_unique_variable_name("shape")
        container.add_initializer(shape, onnx_proto.TensorProto.INT64, [2], [-1, 1])
        name = scope.get_unique_operator_name("Reshape")
        container.add_node("Reshape", [row, shape], outputs[0].full_name, name=name)
        outputs[0] = SimpleNamespace(onnx_name=row)
    add_onnx_graph(scope, SimpleNamespace(inputs=inputs, outputs=outputs), container, graph)


def _graph(operator: Any) -> Any:
    """Return the graph of a fitted estimator."""
    estimator, dtype = operator.raw_operator, _dtype(operator)
    encoder = isinstance(estimator, TableEncoder)
    graph = make_encoder_onnx(estimator.encoding_, dtype) if encoder else estimator.model_.to_onnx(dtype=dtype)
    names = [value.name for value in graph.graph.input]
    if len(names) != len(operator.inputs):
        raise ValueError(
            f"{type(estimator).__name__} has the inputs {names}, got {len(operator.inputs)}: give skl2onnx an "
            "initial type for each of them, in this order, or use to_onnx of the model alone"
        )
    return graph


def _cast(scope: Any, container: Any, variable: Any, kind: int) -> SimpleNamespace:
    """Add a cast of an input; texts are texts already."""
    from skl2onnx.common.data_types import StringTensorType

    if isinstance(variable.type, StringTensorType):
        return SimpleNamespace(onnx_name=variable.onnx_name)
    name = scope.get_unique_variable_name("cast")
    container.add_node("Cast", variable.full_name, name, to=kind, name=scope.get_unique_operator_name("Cast"))
    return SimpleNamespace(onnx_name=name)


def _dtype(operator: Any) -> str:
    from skl2onnx.common.data_types import DoubleTensorType

    return "float64" if any(isinstance(variable.type, DoubleTensorType) for variable in operator.inputs) else "float32"

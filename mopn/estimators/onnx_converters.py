"""Converters for skl2onnx, so that pipelines that end with an estimator of this package become one ONNX graph."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mopn.models.onnx_graph import onnx_labels

__all__ = ["register_skl2onnx"]

# Numbers have the type of the input; integers become float32.
_DTYPES = {"DoubleTensorType": "float64"}


def register_skl2onnx() -> None:
    """Register a converter for every estimator of :mod:`mopn.estimators` with skl2onnx; call it once before converting.

    A classifier has the outputs ``label`` and ``probabilities``, the latter with the outputs of the model if its loss
    is not a probability model; a regressor has ``variable``, of shape (n, 1) or (n, m), and one of ordered levels also
    ``probabilities``. They are tensors: there is no ZipMap.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError("register_skl2onnx needs the package skl2onnx: pip install mopn[onnx]") from error
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
    names = ["label", "probabilities"] if hasattr(estimator, "classes_") else ["variable"]
    if estimator.model_.target == "ordinal":
        names.append("probabilities")
    for name in names:
        operator.outputs.append(scope.declare_local_variable(name, FloatTensorType()))
    return operator.outputs


def _set_types(operator: Any) -> None:
    """Set the types of the outputs."""
    from skl2onnx.common import data_types

    model = operator.raw_operator.model_
    number = data_types.DoubleTensorType if _dtype(operator) == "float64" else data_types.FloatTensorType
    for variable in operator.outputs:
        variable.type = number([None, None])
    if model.target == "indicator":
        operator.outputs[0].type = data_types.Int64TensorType([None, None])
    elif model.target == "labels":
        ((_, label),) = data_types.guess_data_type(onnx_labels(model.classes))
        operator.outputs[0].type = type(label)([None])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of the model, after a cast of its input."""
    from skl2onnx.helpers import add_onnx_graph
    from skl2onnx.proto import onnx_proto

    model, dtype, types = operator.raw_operator.model_, _dtype(operator), onnx_proto.TensorProto
    inputs, outputs = [SimpleNamespace(onnx_name=scope.get_unique_variable_name("numbers"))], list(operator.outputs)
    container.add_node(
        "Cast",
        operator.inputs[0].full_name,
        inputs[0].onnx_name,
        to=types.DOUBLE if dtype == "float64" else types.FLOAT,
        name=scope.get_unique_operator_name("Cast"),
    )
    if model.target in ("vector", "ordinal"):
        # Regressors of one output have columns in skl2onnx.
        row, shape = scope.get_unique_variable_name("row"), scope.get_unique_variable_name("shape")
        container.add_initializer(shape, types.INT64, [2], [-1, 1])
        name = scope.get_unique_operator_name("Reshape")
        container.add_node("Reshape", [row, shape], outputs[0].full_name, name=name)
        outputs[0] = SimpleNamespace(onnx_name=row)
    add_onnx_graph(scope, SimpleNamespace(inputs=inputs, outputs=outputs), container, model.to_onnx(dtype=dtype))


def _dtype(operator: Any) -> str:
    return _DTYPES.get(type(operator.inputs[0].type).__name__, "float32")

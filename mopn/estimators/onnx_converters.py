"""Converters for skl2onnx, so that pipelines that end with an estimator of this package become one ONNX graph."""

from types import SimpleNamespace
from typing import Any

from mopn.estimators.table_encoder import TableEncoder
from mopn.export import to_onnx
from mopn.export.onnx_graph import make_encoder_onnx, onnx_labels
from mopn.solvers.tools.decorators import warn_caller


def register_skl2onnx() -> None:
    """Register a converter for every estimator of :mod:`mopn.estimators` with skl2onnx; call it once before converting.

    A classifier has the outputs ``label`` and ``probabilities``, the latter with scores if its loss is not a
    probability model, or by the option ``raw_scores``: those of ``decision_function``, of two classes (-s, s). A
    regressor has ``variable``, of shape (n, 1) or (n, m), and one of ordered levels also ``probabilities``. They are
    tensors: there is no ZipMap. Numbers have the type of the input; integers become float32.

    Estimators of tables have one input of all columns if these are numbers; if not, an input for each column, in their
    order: of texts for categories, the empty text for a missing one, or of booleans and integers. Where float32 would
    lose digits of a column, its initial type should be ``DoubleTensorType`` or ``Int64TensorType``.

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
        kind, options = getattr(estimators, name), {"zipmap": [False], "raw_scores": [True, False]}
        update_registered_converter(kind, f"Mopn{name}", _set_types, _convert, parser=_parse, options=options)


def _parse(scope: Any, estimator: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    from skl2onnx import get_model_alias
    from skl2onnx.common.data_types import FloatTensorType

    operator = scope.declare_local_operator(get_model_alias(type(estimator)), estimator)
    operator.inputs = inputs
    for name in _names(estimator):
        operator.outputs.append(scope.declare_local_variable(name, FloatTensorType()))
    return operator.outputs


def _names(estimator: Any) -> list[str]:
    if isinstance(estimator, TableEncoder):
        return ["features"]
    if hasattr(estimator, "classes_"):
        return ["label", "probabilities"]
    return ["variable", "probabilities"] if estimator.model_.target == "ordinal" else ["variable"]


def _set_types(operator: Any) -> None:
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
    estimator = operator.raw_operator
    return None if isinstance(estimator, TableEncoder) else estimator.model_.target


def _convert(scope: Any, operator: Any, container: Any) -> None:
    from skl2onnx.helpers import add_onnx_graph
    from skl2onnx.proto import onnx_proto

    graph, outputs = _graph(operator), list(operator.outputs)
    inputs = [_cast(scope, container, *pair) for pair in zip(operator.inputs, graph.graph.input, strict=True)]
    if _target(operator) in ("vector", "ordinal"):
        # Regressors of one output have columns in skl2onnx.
        row, shape = scope.get_unique_variable_name("row"), scope.get_unique_variable_name("shape")
        container.add_initializer(shape, onnx_proto.TensorProto.INT64, [2], [-1, 1])
        _add(scope, container, "Reshape", [row, shape], outputs[0].full_name)
        outputs[0] = SimpleNamespace(onnx_name=row)
    if _target(operator) == "labels" and _gives_scores(scope, operator, container):
        del graph.graph.output[1:-1]  # the last ones are the model's
        if len(operator.raw_operator.classes_) == 2:
            outputs[1] = _of_two(scope, container, outputs[1], len(operator.raw_operator.model_._formula().constant))
    add_onnx_graph(scope, SimpleNamespace(inputs=inputs, outputs=outputs), container, graph)


def _add(scope: Any, container: Any, operator: str, inputs: list[str], output: str, **attributes: Any) -> None:
    container.add_node(operator, inputs, output, name=scope.get_unique_operator_name(operator), **attributes)


def _of_two(scope: Any, container: Any, variable: Any, m: int) -> SimpleNamespace:
    """Add the scores (-s, s) of two classes by a product of the m outputs, and return these."""
    outputs, signs = scope.get_unique_variable_name("outputs"), scope.get_unique_variable_name("signs")
    container.add_initializer(
        signs, variable.type.to_onnx_type().tensor_type.elem_type, [m, 2], [1, -1, -1, 1][-2 * m :]
    )
    _add(scope, container, "MatMul", [outputs, signs], variable.full_name)
    return SimpleNamespace(onnx_name=outputs)


def _gives_scores(scope: Any, operator: Any, container: Any) -> bool:
    """Return whether the second output of a classifier are scores: asked for, or all that it has."""
    estimator, others = operator.raw_operator, [other.raw_operator for other in scope.operators.values()]
    inner = [part.estimator for other in others for part in getattr(other, "calibrated_classifiers_", ())]
    asked = [estimator, *(other for other in others if other is not estimator and _last(other) is estimator)]
    options = [container.get_options(one, {"raw_scores": None}, fail=False) or {} for one in asked]
    found = [option.get("raw_scores") for option in options]
    if estimator.model_.has_probabilities:
        return True in found or any(_last(one) is estimator for one in inner)
    if False in found:
        raise ValueError(
            f"skl2onnx asks {type(estimator).__name__} within another estimator for probabilities, which its loss does "
            "not give; take loss='logistic'"
        )
    return True


def _last(estimator: Any) -> Any:
    while not type(estimator).__module__.startswith("mopn."):
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            break
    return estimator


def _graph(operator: Any) -> Any:
    estimator, dtype = operator.raw_operator, _dtype(operator)
    encoder = isinstance(estimator, TableEncoder)
    graph = make_encoder_onnx(estimator.encoding_, dtype) if encoder else to_onnx(estimator.model_, dtype=dtype)
    names = [value.name for value in graph.graph.input]
    if len(names) != len(operator.inputs):
        raise ValueError(
            f"{type(estimator).__name__} has the inputs {names}, got {len(operator.inputs)}: give skl2onnx an "
            "initial type for each of them, in this order, or use to_onnx of the model alone"
        )
    return graph


def _cast(scope: Any, container: Any, variable: Any, value: Any) -> SimpleNamespace:
    """Add a cast of an input to the type that an input of the graph has."""
    from skl2onnx.common import data_types
    from skl2onnx.proto import onnx_proto

    kind, given = value.type.tensor_type.elem_type, type(variable.type)
    name = scope.get_unique_variable_name("cast")
    cast = SimpleNamespace(onnx_name=name)
    of_texts, is_text = kind == onnx_proto.TensorProto.STRING, given is data_types.StringTensorType
    whole = (data_types.BooleanTensorType, data_types.Int64TensorType, data_types.Int32TensorType)
    if of_texts != is_text and (is_text or given not in whole):
        raise ValueError(
            f"the input {value.name!r} is of {'texts' if of_texts else 'numbers'}, but its initial type is "
            f"{given.__name__}; give skl2onnx {'StringTensorType' if of_texts else 'FloatTensorType'}"
        )
    if of_texts and is_text:
        return SimpleNamespace(onnx_name=variable.onnx_name)
    if of_texts and given is data_types.BooleanTensorType:
        texts = [scope.get_unique_variable_name(text) for text in ("true", "false")]
        for at, text in zip(texts, (b"True", b"False"), strict=True):
            container.add_initializer(at, kind, [], [text])
        _add(scope, container, "Where", [variable.full_name, *texts], name)
        return cast
    if kind == onnx_proto.TensorProto.DOUBLE and given is data_types.FloatTensorType:
        warn_caller(
            f"the input {value.name!r} has numbers that differ by less than float32 shows; give skl2onnx "
            "DoubleTensorType as its initial type"
        )
    _add(scope, container, "Cast", [variable.full_name], name, to=kind)
    return cast


def _dtype(operator: Any) -> str:
    from skl2onnx.common.data_types import DoubleTensorType

    return "float64" if any(isinstance(variable.type, DoubleTensorType) for variable in operator.inputs) else "float32"

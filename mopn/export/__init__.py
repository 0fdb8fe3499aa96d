"""Models and fitted estimators for other programs: C, ONNX and QUBO problems, in floats and in integers."""

from mopn.export.c_header import to_c
from mopn.export.onnx_graph import to_onnx
from mopn.export.qubo import to_qubo

__all__ = ["to_c", "to_onnx", "to_qubo"]


def __dir__() -> list[str]:
    return __all__

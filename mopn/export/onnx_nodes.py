"""ONNX graphs while they are written: inputs, nodes, constants and outputs, each with a name of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.models.formula import as_real
from mopn.solvers.tools.checks import choice

__all__ = ["Graph", "type_code"]

_OUTPUTS = ("prediction", "probabilities", "outputs", "features")
_DTYPES = {"float32": np.float32, "float64": np.float64}


class Graph:
    """The inputs, nodes, constants and outputs of a graph; a call adds a node."""

    def __init__(self, dtype: str) -> None:
        self.dtype = _DTYPES[choice(_DTYPES)(dtype, "dtype")]
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[str] = []
        self.domains = {""}
        # A name that is empty stands for no input.
        self._taken = {"", *_OUTPUTS}

    def __call__(self, operator: str, *inputs: str | np.ndarray, domain: str = "", **attributes: Any) -> str:
        """Add a node, whose inputs are other nodes and constant arrays, and return its name."""
        from onnx import helper

        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        name = self._own(f"{operator}_{len(self.nodes)}")
        outputs = [name, self._own(f"{name}_indices")] if operator == "TopK" else [name]
        self.nodes.append(helper.make_node(operator, names, outputs, name=name, domain=domain, **attributes))
        self.domains.add(domain)
        return name

    def input(self, name: str, dtype: type, width: int) -> str:
        """Add an input (n, width) and return its name, with underscores at its end if the graph has this name."""
        from onnx import helper

        name = self._own(name)
        self.inputs.append(helper.make_tensor_value_info(name, type_code(dtype), ["n", width]))
        return name

    def _own(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def output(self, name: str, node: str) -> None:
        """Make a node an output of the graph."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [node], [name], name=name))
        self.outputs.append(name)

    def proto(self) -> Any:
        """Return the graph; types and shapes of its outputs are inferred."""
        from onnx import helper

        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        return helper.make_graph(self.nodes, "mopn", self.inputs, outputs, self.constants)

    def store(self, values: np.ndarray) -> str:
        """Add a constant and return its name."""
        from onnx import numpy_helper

        name = self._own(f"constant_{len(self.constants)}")
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def real(self, values: np.ndarray, dtype: type) -> str:
        """Add a constant of a dtype and return its name."""
        return self.store(as_real(values, dtype))

    def _constant(self, values: np.ndarray) -> str:
        """Add a constant, in the dtype of the graph if it is real."""
        return self.real(values, self.dtype) if values.dtype == np.float64 else self.store(values)


def type_code(dtype: type) -> int:
    """Return the number of a dtype in ONNX; objects are strings."""
    from onnx import helper

    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

"""ONNX graphs while they are written: inputs, nodes, constants and outputs, each with a name of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from mopn.models.formula import as_real
from mopn.solvers.tools.checks import choice

_OUTPUTS = ("prediction", "probabilities", "outputs", "features")
_DTYPES = {"float32": np.float32, "float64": np.float64}


class Graph:
    """The inputs, nodes, constants and outputs of a graph; a call adds a node."""

    def __init__(self, dtype: str) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError("to_onnx needs the package onnx: pip install onnx") from error
        self.onnx, self.dtype = onnx, _DTYPES[choice(_DTYPES)(dtype, "dtype")]
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[str] = []
        self.domains = {""}
        # A name that is empty stands for no input.
        self._taken = {"", *_OUTPUTS}

    def __call__(self, operator: str, *inputs: str | np.ndarray, domain: str = "", **attributes: Any) -> str:
        """Add a node, whose inputs are other nodes and constant arrays, and return its name."""
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        name = self._own(f"{operator}_{len(self.nodes)}")
        outputs = [name, self._own(f"{name}_indices")] if operator == "TopK" else [name]
        self._node(operator, names, outputs, name=name, domain=domain, **attributes)
        self.domains.add(domain)
        return name

    def cast(self, node: str, dtype: type | None = None) -> str:
        """Add the values of a node in another dtype, by default the graph's."""
        return self("Cast", node, to=self._code(dtype or self.dtype))

    def input(self, name: str, dtype: type, width: int) -> str:
        """Add an input (n, width) and return its name, with underscores at its end if the graph has this name."""
        name = self._own(name)
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, self._code(dtype), ["n", width]))
        return name

    def output(self, name: str, node: str) -> None:
        """Make a node an output of the graph."""
        self._node("Identity", [node], [name], name=name)
        self.outputs.append(name)

    def proto(self) -> Any:
        """Return the graph; types and shapes of its outputs are inferred."""
        outputs = [self.onnx.helper.make_empty_tensor_value_info(name) for name in self.outputs]
        return self.onnx.helper.make_graph(self.nodes, "mopn", self.inputs, outputs, self.constants)

    def store(self, values: np.ndarray) -> str:
        """Add a constant and return its name."""
        name = self._own(f"constant_{len(self.constants)}")
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def real(self, values: np.ndarray, dtype: type) -> str:
        """Add a constant of a dtype and return its name."""
        return self.store(as_real(values, dtype))

    def _constant(self, values: np.ndarray) -> str:
        """Add a constant, in the dtype of the graph if it is real."""
        return self.real(values, self.dtype) if values.dtype == np.float64 else self.store(values)

    def _node(self, *arguments: Any, **options: Any) -> None:
        self.nodes.append(self.onnx.helper.make_node(*arguments, **options))

    def _own(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _code(self, dtype: type) -> int:
        """Return the number of a dtype in ONNX; objects are strings."""
        return self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))

"""Exported models, run: graphs by onnxruntime with one thread, and headers compiled by the system's ``cc``."""

import ctypes
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mopn.export import to_c, to_onnx


def onnx_session(model: Any, dtype: str) -> Any:
    """Return a session of onnxruntime that holds the graph of a model."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    graph = to_onnx(model, dtype=dtype).SerializeToString()
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def session_outputs(session: Any, given: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the outputs (n, m) of a session."""
    names = [output.name for output in session.get_outputs()]
    outputs = session.run(["outputs" if "outputs" in names else "prediction"], given)[0]
    return outputs.reshape(len(outputs), -1)


def compiled(model: Any, m: int, dtype: str, folder: Path) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function from rows (n, d) to outputs (n, m) that a header is, after its self-test."""
    to_c(model, folder / "model.h", dtype=dtype)
    real = "double" if dtype == "float64" else "float"
    (folder / "rows.c").write_text(
        f'#include "model.h"\nint self_test(void) {{ return model_self_test(); }}\n'
        f"void output_rows(const {real} *x, int n, {real} *out) {{\n"
        f"    for (int i = 0; i < n; i++, x += {model.n_features}, out += {m}) model_outputs(x, out);\n}}\n"
    )
    # A library is loaded once under its name.
    library = folder / f"rows{len(list(folder.iterdir()))}.so"
    command = ["cc", "-std=c99", "-O2", "-w", "-shared", "-fPIC", "-o", str(library), "rows.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    functions = ctypes.CDLL(str(library))
    if functions.self_test():
        raise ValueError("the self-test of the header failed")

    def outputs(X: np.ndarray) -> np.ndarray:
        X, out = np.ascontiguousarray(X, dtype), np.zeros((len(X), m), dtype)
        functions.output_rows(ctypes.c_void_p(X.ctypes.data), len(X), ctypes.c_void_p(out.ctypes.data))
        return out

    return outputs

"""Headers of C, compiled: the functions for many rows that the other programs time and compare."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Header", "compile_header"]

_NUMBER = itertools.count()


@dataclass(frozen=True)
class Header:
    """A compiled header.

    Attributes
    ----------
    library : CDLL
    bytes : int
        Code and constants of the prediction alone, compiled for size.
    dtype : dtype
        That of the features.
    """

    library: Any
    bytes: int
    dtype: np.dtype

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the indices of the labels of rows."""
        return self._call("predict_rows", X, np.zeros(len(X), np.int32))

    def outputs(self, X: np.ndarray, m: int) -> np.ndarray:
        """Return the outputs of rows, for a header of mopn."""
        return self._call("output_rows", X, np.zeros((len(X), m), self.dtype))

    def _call(self, name: str, X: np.ndarray, out: np.ndarray) -> np.ndarray:
        X = np.ascontiguousarray(X, self.dtype)
        self.library[name](ctypes.c_void_p(X.ctypes.data), len(X), ctypes.c_void_p(out.ctypes.data))
        return out


def compile_header(
    header: Path, dtype: str, d: int, predict: str = "", outputs: str = "", m: int = 0, include: str = "."
) -> Header:
    """Compile a header with the system's ``cc``."""
    real = {"float32": "float", "float64": "double", "int16": "int16_t"}[dtype]
    head = f'#include <stdint.h>\n#include "{header.name}"\n'
    text, folder = head, header.parent
    if predict:
        text += _loop("predict_rows", real, "int", d, f"out[i] = {predict};")
        (folder / "size.c").write_text(f"{head}int classify(const {real} *x) {{ return {predict}; }}\n")
    if outputs:
        text += _loop("output_rows", real, real, d, f"{outputs}; out += {m};")
    (folder / "rows.c").write_text(text)
    # A library is loaded once under its name.
    library = folder / f"rows{next(_NUMBER)}.so"
    _run(folder, "cc", "-O2", "-shared", "-fPIC", f"-I{include}", "-o", str(library), "rows.c", "-lm")
    return Header(ctypes.CDLL(str(library)), _size(folder, include) if predict else 0, np.dtype(dtype))


def _loop(name: str, real: str, kind: str, d: int, step: str) -> str:
    """Return a function of C that does a step for each row x."""
    return (
        f"void {name}(const {real} *x, int n, {kind} *out) {{\n"
        f"    for (int i = 0; i < n; i++, x += {d}) {{ {step} }}\n"
        "}\n"
    )


def _size(folder: Path, include: str) -> int:
    _run(folder, "cc", "-Os", f"-I{include}", "-c", "-o", "size.o", "size.c")
    text, data = _run(folder, "size", "size.o").splitlines()[1].split()[:2]
    return int(text) + int(data)


def _run(folder: Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout

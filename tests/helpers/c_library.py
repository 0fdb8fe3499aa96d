"""Headers of C as libraries of functions."""

import ctypes
import shutil
import subprocess

import numpy as np

COMPILER = shutil.which("cc")
REALS = {"float32": ("float", np.float32), "float64": ("double", np.float64)}


def compiled(folder, text, *command):
    """Compile a library of a text."""
    (folder / "library.c").write_text(text)
    command = command or (COMPILER, "-std=c99")
    flags = ["-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC"]
    flags += ["-o", "library.so", "library.c", "-lm"]
    done = subprocess.run([*command, *flags], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "library.so"))


def call(function, x, shape, dtype):
    """Return the output of a function for a row."""
    out = np.full(shape, -7, dtype)
    function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    return out


def c_rows(model, columns, real):
    """Rows as a program of C has them: NAN where they are missing, and the index of a category's text in the header."""
    rows = np.array([[0.0 if isinstance(v, str) else v for v in values] for values in columns.values()], real).T.copy()
    for j, column in zip(model.encoding.category_columns, model.encoding.categories, strict=True):
        texts = [*column.categories, *column.rare]
        numbers = {text: i for i, text in enumerate(texts)} | {None: len(texts)}
        rows[:, j] = [numbers.get(text, len(texts) + 1) for text in columns[model.encoding.columns[j]]]
    return rows

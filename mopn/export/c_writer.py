"""Headers of C while they are written: constant arrays, functions, and the prefix of their names."""

import hashlib
import os
import re
import unicodedata
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from mopn.models.files import plain_labels
from mopn.models.formula import as_real

# Numbers in a line.
_WIDTH = 8
_IDENTIFIER = re.compile("[A-Za-z][A-Za-z0-9_]*")


class CWriter:
    """The parts of a header: ``name`` is the prefix of all names, ``flash`` the bytes of constants without texts.

    ``real`` is the type of outputs, and ``row`` declares the argument x.
    """

    def __init__(self, name: str, real: str, row: str) -> None:
        self.name, self.upper, self.real, self.row = name, name.upper(), real, row
        # Of functions and of numbers.
        self.suffix = "f" if real == "float" else ""
        self.kind: type = np.float32 if real == "float" else np.float64
        self.flash = 0
        self.parts: list[str] = []

    def constant(self, label: str, values: np.ndarray) -> str:
        """Declare an array of real numbers, and return its name."""
        numbers = as_real(values.ravel(), self.kind)
        self.flash += numbers.nbytes
        return self.array(self.real, label, ["NAN" if x != x else f"{x!s}{self.suffix}" for x in numbers])

    def array(self, kind: str, label: str, entries: list[str], place: str = "") -> str:
        """Declare an array of one entry or more, in a ``place`` of memory if there is one, and return its name."""
        lines = [", ".join(entries[i : i + _WIDTH]) for i in range(0, len(entries), _WIDTH)]
        head = f"static const {kind} {self.name}_{label}[] {place}".rstrip()
        self.parts.append(f"{head} = {{\n    " + ",\n    ".join(lines) + "};\n")
        return f"{self.name}_{label}"

    def enum(self, names: Sequence[str]) -> None:
        """Define 0, 1, ... as constants of such names."""
        self.parts.append("enum {\n    " + ",\n    ".join(names) + "\n};\n")

    def stream(self, label: str, values: np.ndarray) -> str:
        """Declare parameters that are read one after the other, ``*label++``, and return the line of the pointer."""
        return f"    const {self.real} *{label} = {self.constant(label, values)};\n"

    def function(self, kind: str, name: str, arguments: str, body: str) -> None:
        self.parts.append(f"static inline {kind} {self.name}_{name}({arguments}) {{\n{body}}}\n")

    def local_outputs(self, m: int) -> str:
        """Return the lines that set ``out[m]``."""
        return f"    {self.real} out[{m}];\n    {self.name}_outputs(x, out);\n"

    def predict_classes(self, model: Any, m: int) -> None:
        """Define ``predict`` of labels or of indicators."""
        if model.target == "labels":
            self.parts.append(f"/* Returns the index of the label in {self.labels(model.classes)}. */")
            body = "    return out[0] > 0;\n"
            if m > 1:
                body = f"    for (int c = 1; c < {m}; c++) if (out[c] > out[best]) best = c;\n"
                body = f"    int best = 0;\n{body}    return best;\n"
            self.function("int", "predict", self.row, self.local_outputs(m) + body)
        elif model.target == "indicator":
            self.parts.append(f"/* Sets labels[{m}] to 1 for positive outputs and 0 for others. */")
            body = f"    for (int c = 0; c < {m}; c++) labels[c] = out[c] > 0;\n"
            self.function("void", "predict", f"{self.row}, int *labels", self.local_outputs(m) + body)

    def guarded(self, comment: str, includes: Sequence[str]) -> str:
        """Return the header: a comment, includes and parts, with a guard by its text, so that none hides another."""
        body = "\n".join(self.parts)
        guard = f"mopn_{self.name}_{hashlib.sha256((comment + body).encode()).hexdigest()[:16]}_h"
        files = "".join(f"#include <{file}>\n" for file in includes)
        head = f"/* {comment} */\n#ifndef {guard}\n#define {guard}\n\n{files}"
        return f"{head}\n{body}\n#endif /* {guard} */\n"

    def strings(self, label: str, strings: Sequence[str | bytes]) -> str:
        return self.array("char *const", label, list(map(_literal, strings)))

    def feature_names(self, names: np.ndarray | None) -> None:
        if names is not None:
            self.parts.append("/* The names of x[0], x[1], ... */")
            self.strings("features", names.tolist())

    def labels(self, classes: np.ndarray) -> str:
        """Declare the labels, numbers as such and all others as strings, and return the name of the array."""
        labels = plain_labels(classes)
        assert labels is not None
        if labels.dtype.kind in "biu":
            kind = "unsigned long long" if labels.dtype == np.uint64 else "long long"
            return self.array(kind, "classes", [_integer(int(label)) for label in labels])
        if labels.dtype.kind == "f":
            return self.array("double", "classes", [repr(float(label)) for label in labels])
        return self.strings("classes", labels.tolist() if labels.dtype.kind == "S" else list(map(str, labels)))


def header_prefix(name: str | None, path: str | os.PathLike[str]) -> str:
    """Return the prefix of the names in a header, by default of the file's name; ``ValueError`` if not of C."""
    if name is None:
        stem = PurePath(os.fsdecode(path)).stem
        plain = unicodedata.normalize("NFKD", stem)
        letters = ("" if unicodedata.combining(c) else c if c.isascii() else f"u{ord(c):x}" for c in plain)
        words = re.sub("[^A-Za-z0-9_]+", "_", "".join(letters)).strip("_") or "model"
        return words if _IDENTIFIER.fullmatch(words) else f"model_{words}"
    if not (isinstance(name, str) and _IDENTIFIER.fullmatch(name)):
        raise ValueError(f"name must be an identifier of C, the prefix of all names in the header, got {name!r}")
    return name


def _integer(label: int) -> str:
    """Return a constant of C, whose smallest integer is no literal."""
    if label == np.iinfo(np.int64).min:
        return f"({label + 1} - 1)"
    return f"{label}ULL" if label > np.iinfo(np.int64).max else str(label)


def _literal(text: str | bytes) -> str:
    """Return a literal of C; characters but plain ones as octal numbers."""
    plain, content = set(range(32, 127)) - set(b'"\\?'), text.encode() if isinstance(text, str) else text
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in content) + '"'

"""Headers of C while they are written: constant arrays, functions, names, and the encoding of a table's rows.

Every column has a line in the function ``encode``. Knots are numbers of the type of the columns: rounding changes the
part of a segment below a number in the last digits only.
"""

import hashlib
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
from scipy import sparse

from mopn.models.files import plain_labels
from mopn.models.formula import as_real
from mopn.tables.encoding import TableEncoding

# Entries of arrays in a line.
_ENTRIES_PER_LINE = 8
# Names in C that do not begin with an underscore.
_IDENTIFIER = re.compile("[A-Za-z][A-Za-z0-9_]*")


class CWriter:
    """The parts of a header: ``name`` is the prefix of all names, ``flash`` the bytes of constants without texts.

    ``real`` is the type of outputs, and ``row`` declares the argument x. ``suffix`` ends numbers and functions of this
    type.
    """

    def __init__(self, name: str, real: str, row: str) -> None:
        self.name = name
        self.upper = name.upper()
        self.real = real
        self.row = row
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
        starts = range(0, len(entries), _ENTRIES_PER_LINE)
        lines = [", ".join(entries[i : i + _ENTRIES_PER_LINE]) for i in starts]
        head = f"static const {kind} {self.name}_{label}[] {place}".rstrip()
        self.parts.append(f"{head} = {{\n    " + ",\n    ".join(lines) + "};\n")
        return f"{self.name}_{label}"

    def enum(self, names: Sequence[str]) -> None:
        """Define 0, 1, ... as constants of such names."""
        self.parts.append("enum {\n    " + ",\n    ".join(names) + "\n};\n")

    def stream(self, label: str, values: np.ndarray) -> str:
        """Declare parameters that are read one by one, ``*label++``, and return the line that declares the pointer."""
        return f"    const {self.real} *{label} = {self.constant(label, values)};\n"

    def function(self, kind: str, name: str, arguments: str, body: str) -> None:
        self.parts.append(f"static inline {kind} {self.name}_{name}({arguments}) {{\n{body}}}\n")

    def local_outputs(self, m: int) -> str:
        """Return the lines that set ``out[m]``."""
        return f"    {self.real} out[{m}];\n    {self.name}_outputs(x, out);\n"

    def predict_classes(self, model: Any, m: int) -> None:
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
        if labels.dtype.kind == "S":
            return self.strings("classes", labels.tolist())
        return self.strings("classes", list(map(str, labels)))


def header_prefix(name: str | None, path: str | os.PathLike[str]) -> str:
    """Return the prefix of the names in a header, by default from the file's name; ``ValueError`` if C refuses it."""
    if name is None:
        plain = unicodedata.normalize("NFKD", PurePath(os.fsdecode(path)).stem)
        ascii_letters = "".join(map(_in_ascii, plain))
        words = re.sub("[^A-Za-z0-9_]+", "_", ascii_letters).strip("_") or "model"
        return words if _IDENTIFIER.fullmatch(words) else f"model_{words}"
    if not (isinstance(name, str) and _IDENTIFIER.fullmatch(name)):
        raise ValueError(f"name must be an identifier of C, the prefix of all names in the header, got {name!r}")
    return name


def _in_ascii(character: str) -> str:
    """Return a decomposed character in letters of an identifier, without its marks."""
    if unicodedata.combining(character):
        return ""
    return character if character.isascii() else f"u{ord(character):x}"


def _integer(label: int) -> str:
    """Return an integer as a constant expression of C."""
    if label == np.iinfo(np.int64).min:
        return f"({label + 1} - 1)"  # no literal stands for the smallest one
    return f"{label}ULL" if label > np.iinfo(np.int64).max else str(label)


def _literal(text: str | bytes) -> str:
    """Return a text as a literal of C, with all but plain characters as octal numbers."""
    plain = set(range(32, 127)) - set(b'"\\?')
    content = text.encode() if isinstance(text, str) else text
    characters = [chr(byte) if byte in plain else f"\\{byte:03o}" for byte in content]
    return '"' + "".join(characters) + '"'


def write_encoding(header: CWriter, encoding: TableEncoding) -> TableEncoding:
    """Define the columns and ``encode``; ``ValueError`` if a column has too many digits for the type."""
    lost = [encoding.columns[j] for j in encoding.needing_doubles(header.kind)]
    if lost:
        raise ValueError(
            f"dtype: float32 loses digits of the column {lost[0]!r}, as of times and large numbers; take "
            "dtype='float64', or subtract from the column its mean in training"
        )
    encoding = encoding.rounded(header.kind)
    columns = encoding.columns
    identifiers = _Identifiers(header)
    header.parts.append("/* The names of x[0], x[1], ..., their indices. NAN is missing, dates are days since 1970. */")
    header.strings("columns", columns)
    header.enum([identifiers.take(column) for column in columns])
    lines = _number_lines(header, encoding)
    with_indicators = np.array(encoding.number_columns)[encoding.numbers.missing]
    lines += [f"*z++ = x[{j}] != x[{j}] ? 1 : 0;" for j in with_indicators]
    lines += _category_lines(header, encoding, identifiers)
    header.parts.append(f"/* Sets z[{encoding.n_features}] to the features of x[{len(columns)}]. */")
    body = "".join(f"    {line}\n" for line in lines)
    header.function("void", "encode", f"const {header.real} *x, {header.real} *z", body)
    return encoding


def test_rows(encoding: TableEncoding, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (4, c) as C reads them, at knots, beyond, missing and unknown, and their features (4, d)."""
    rows = np.empty((4, len(encoding.columns)))
    codes = []
    for j, (knots, _) in zip(encoding.number_columns, encoding.numbers.parts, strict=True):
        between = np.interp(0.6 * (len(knots) - 1), np.arange(len(knots)), knots)
        rows[:, j] = np.array([between, knots[0] - 1.0, knots[-1] + 1.0, np.nan], dtype)
    for j, column in zip(encoding.category_columns, encoding.categories, strict=True):
        texts = [*column.categories, *column.rare]
        rows[:, j] = [0, len(texts) - 1, len(texts) + 1, len(texts)]
        codes.append(np.array([*column.codes([texts[0], texts[-1]]), -1, *column.codes([None])]))
    features = encoding.features(rows[:, list(encoding.number_columns)], codes)
    if sparse.issparse(features):
        features = features.toarray()
    return rows, features


# -- numbers -----------------------------------------------------------------------------------------------------------


def _number_lines(header: CWriter, encoding: TableEncoding) -> list[str]:
    """Define the functions of numbers, and return the lines that compute them."""
    lines = []
    for j, (knots, functions) in zip(encoding.number_columns, encoding.numbers.parts, strict=True):
        if functions.size:
            with np.errstate(over="ignore"):
                slopes = np.nan_to_num(1.0 / np.diff(knots))  # a tiny segment becomes a step
            arrays = {"knots": knots, "slopes": slopes, "values": functions.T}
            names = ", ".join(header.constant(f"{name}_{j}", values) for name, values in arrays.items())
            q, w = functions.shape
            lines.append(f"z = {header.name}_number(x[{j}], {q}, {w}, {names}, z);")
    if lines:
        _define_number(header)
    return lines


def _define_number(header: CWriter) -> None:
    real = header.real
    header.parts.append("/* Sets z[w] to the functions of a number, by their values at q knots, and returns z + w. */")
    header.function(
        f"{real} *",
        "number",
        f"{real} x, int q, int w, const {real} *knots, const {real} *slopes, const {real} *values, {real} *z",
        "    int s = 0;\n"
        "    while (s < q - 2 && x >= knots[s + 1]) s++;\n"
        f"    const {real} ramp = (x - knots[s]) * slopes[s];\n"
        f"    const {real} part = ramp < 0 ? 0 : ramp > 1 ? 1 : ({real})ramp;\n"
        "    for (int k = 0; k < w; k++, values += q)\n"
        "        z[k] = x == x ? values[s] + part * (values[s + 1] - values[s]) : 0;\n"
        "    return z + w;\n",
    )


# -- categories --------------------------------------------------------------------------------------------------------


class _Identifiers:
    """Identifiers of C made from texts; none is given twice."""

    def __init__(self, header: CWriter) -> None:
        self.prefix = header.upper
        self.taken: Counter[str] = Counter()

    def take(self, *texts: str) -> str:
        """Return an identifier for texts, with a number at its end if it was given before."""
        words = [_capitals(text) for text in texts]
        base = "_".join([self.prefix, *filter(None, words)])
        name = base
        while name in self.taken:
            self.taken[base] += 1
            name = f"{base}_{self.taken[base]}"
        self.taken[name] = 1
        return name


def _capitals(text: str) -> str:
    """Return the letters and digits of a text in capitals, joined by underscores."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub("[^A-Z0-9]+", "_", plain.upper()).strip("_")


def _category_lines(header: CWriter, encoding: TableEncoding, identifiers: _Identifiers) -> list[str]:
    """Define the numbers and the texts of categories, and return the lines that compute their features."""
    lines = []
    for j, column in zip(encoding.category_columns, encoding.categories, strict=True):
        texts = [*column.categories, *column.rare]
        name = encoding.columns[j]
        others = [identifiers.take(name, other) for other in ("missing", "unknown")]  # taken first, so without a number
        names = [identifiers.take(name, text) for text in texts]
        header.parts.append(
            f"/* What x[{j}] may be: the index of its text in {header.name}_categories_{j}, or one of the last two. */"
        )
        header.enum([*names, *others])
        header.strings(f"categories_{j}", texts)
        w = len(column.means)
        if w:
            means = header.constant(f"means_{j}", column.means)
            missing = int(column.codes([None])[0])
            counts = f"{len(column.categories)}, {len(texts)}, {missing}, {column.count - w}, {w}"
            lines.append(f"z = {header.name}_category(x[{j}], {counts}, {means}, z);")
    if lines:
        _define_category(header)
    return lines


def _define_category(header: CWriter) -> None:
    real = header.real
    header.parts.append("/* Sets z[w] to the features of a category, the means if it is unknown, and returns z + w. */")
    header.function(
        f"{real} *",
        "category",
        f"{real} x, int frequent, int missing, int of_missing, int first, int w, const {real} *means, {real} *z",
        f"    const {real} end = ({real})missing;\n"
        "    int feature = -1;\n"
        "    if (x != x || (x >= end && x <= end)) feature = of_missing;\n"
        "    else if (x >= 0 && x < end) feature = (int)x < frequent ? (int)x : frequent;\n"
        f"    for (int k = 0; k < w; k++) z[k] = feature < 0 ? means[k] : ({real})(k == feature - first);\n"
        "    return z + w;\n",
    )

"""The encoding of a table in C: rows of numbers, and of numbers for categories, become the features of a network.

Every column has a line in the function ``encode``. Knots are numbers of the type of the columns: rounding changes the
part of a segment below a number in the last digits only.
"""

import re
import unicodedata
from collections import Counter

import numpy as np
from scipy import sparse

from mopn.export.c_writer import CWriter
from mopn.tables.encoding import TableEncoding


def write_encoding(header: CWriter, encoding: TableEncoding) -> TableEncoding:
    """Define the columns and ``encode``; ``ValueError`` if a column has too many digits for the type."""
    lost = [encoding.columns[j] for j in encoding.needing_doubles(header.kind)]
    if lost:
        raise ValueError(
            f"dtype: float32 loses digits of the column {lost[0]!r}, as of times and large numbers; take "
            "dtype='float64', or subtract from the column its mean in training"
        )
    encoding = encoding.rounded(header.kind)
    identifiers, columns = _Identifiers(header), encoding.columns
    header.parts.append("/* The names of x[0], x[1], ..., their indices. NAN is missing, dates are days since 1970. */")
    header.strings("columns", columns)
    header.enum([identifiers.take(column) for column in columns])
    lines = _number_lines(header, encoding)
    lines += [f"*z++ = x[{j}] != x[{j}] ? 1 : 0;" for j in np.array(encoding.number_columns)[encoding.numbers.missing]]
    lines += _category_lines(header, encoding, identifiers)
    header.parts.append(f"/* Sets z[{encoding.n_features}] to the features of x[{len(columns)}]. */")
    body = "".join(f"    {line}\n" for line in lines)
    header.function("void", "encode", f"const {header.real} *x, {header.real} *z", body)
    return encoding


def test_rows(encoding: TableEncoding, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (4, c) as C reads them, at knots, beyond, missing and unknown, and their features (4, d)."""
    rows, codes = np.empty((4, len(encoding.columns))), []
    for j, (knots, _) in zip(encoding.number_columns, encoding.numbers.parts, strict=True):
        between = np.interp(0.6 * (len(knots) - 1), np.arange(len(knots)), knots)
        rows[:, j] = np.array([between, knots[0] - 1.0, knots[-1] + 1.0, np.nan], dtype)
    for j, column in zip(encoding.category_columns, encoding.categories, strict=True):
        texts = [*column.categories, *column.rare]
        rows[:, j] = [0, len(texts) - 1, len(texts) + 1, len(texts)]
        codes.append(np.array([*column.codes([texts[0], texts[-1]]), -1, *column.codes([None])]))
    features = encoding.features(rows[:, list(encoding.number_columns)], codes)
    return rows, features.toarray() if sparse.issparse(features) else features


# -- numbers -----------------------------------------------------------------------------------------------------------


def _number_lines(header: CWriter, encoding: TableEncoding) -> list[str]:
    """Define the functions of numbers, and return the lines that compute them."""
    lines = []
    for j, (t, f) in zip(encoding.number_columns, encoding.numbers.parts, strict=True):
        if f.size:
            with np.errstate(over="ignore"):
                slopes = np.nan_to_num(1.0 / np.diff(t))  # of tiny lengths: steps
            arrays = [header.constant(f"knots_{j}", t)]
            arrays += [header.constant(f"slopes_{j}", slopes), header.constant(f"values_{j}", f.T)]
            lines.append(f"z = {header.name}_number(x[{j}], {f.shape[0]}, {f.shape[1]}, {', '.join(arrays)}, z);")
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
    """Identifiers of C that are made of texts, each of them once."""

    def __init__(self, header: CWriter) -> None:
        self.prefix = header.upper
        self.taken: Counter[str] = Counter()

    def take(self, *texts: str) -> str:
        """Return an identifier for texts, with a number at its end if another has it."""
        ascii_texts = (unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode() for text in texts)
        words = [re.sub("[^A-Z0-9]+", "_", text.upper()).strip("_") for text in ascii_texts]
        base = name = "_".join([self.prefix, *filter(None, words)])
        while name in self.taken:
            self.taken[base] += 1
            name = f"{base}_{self.taken[base]}"
        self.taken[name] = 1
        return name


def _category_lines(header: CWriter, encoding: TableEncoding, identifiers: _Identifiers) -> list[str]:
    """Define the numbers and the texts of categories, and return the lines that compute their features."""
    lines = []
    for j, column in zip(encoding.category_columns, encoding.categories, strict=True):
        texts = [*column.categories, *column.rare]
        others = [identifiers.take(encoding.columns[j], other) for other in ("missing", "unknown")]
        names = [identifiers.take(encoding.columns[j], text) for text in texts]
        header.parts.append(
            f"/* What x[{j}] may be: the index of its text in {header.name}_categories_{j}, or one of the last two. */"
        )
        header.enum([*names, *others])
        header.strings(f"categories_{j}", texts)
        if w := len(column.means):
            means, missing = header.constant(f"means_{j}", column.means), int(column.codes([None])[0])
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

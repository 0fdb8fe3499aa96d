"""SHAP values in C, from the parameters of the outputs: a second function of a header."""

from __future__ import annotations

import numpy as np

from mopn.models.exports.c_writer import CWriter
from mopn.models.exports.shap_export import ShapExport
from mopn.models.formula import Formula

__all__ = ["write_shap"]


def write_shap(
    writer: CWriter, formula: Formula, shap: ShapExport, scales: np.ndarray | None, prepared: str, columns: int
) -> None:
    """Define the SHAP values, of a header that has the outputs.

    Parameters
    ----------
    writer : CWriter
    formula : Formula
        As the outputs are written.
    shap : ShapExport
    scales : ndarray of shape (d,) or None
        What features are multiplied by before parameters multiply them.
    prepared : str
        The lines that do so.
    columns : int
        Of a row.
    """
    m, d = formula.linear.shape
    mean = writer.constant("mean", shap.mean if scales is None else shap.mean * scales)
    spread = writer.constant("spread", shap.spread)
    writer.parts.append("/* What the SHAP values of each output are added to. */")
    writer.constant("base_values", shap.base)
    body = prepared
    for term in formula.terms:
        body += _halfway(writer, len(term.weights), d, mean)
    to, add = "j", "="
    if shap.owners is not None:
        owners = writer.array("int", "owners", [str(column) for column in shap.owners])
        body += f"    for (int i = 0; i < {columns * m}; i++) phi[i] = 0;\n"
        to, add = f"{owners}[j]", "+="
    body += f"    for (int j = 0; j < {d}; j++) for (int c = 0; c < {m}; c++) {{\n{_slope(writer, formula, mean)}"
    body += f"        phi[{to} * {m} + c] {add} slope * (x[j] - {mean}[j]) - {spread}[c * {d} + j];\n    }}\n"
    writer.parts.append(
        f"/* Sets phi[{columns} * {m}] to the SHAP values of x[{columns}]: by features, then outputs. */"
    )
    writer.function("void", "shap_values", f"const {writer.real} *x, {writer.real} *phi", body)


def _halfway(writer: CWriter, k: int, d: int, mean: str) -> str:
    """Return the lines of twice the units' forms, half way from the mean to x."""
    term = f"{_entry(writer, 'u0', 's', d, 'j')} * (x[j] + {mean}[j])"
    return (
        f"    {writer.real} halfway[{k}];\n"
        f"    for (int s = 0; s < {k}; s++) {{\n"
        f"        halfway[s] = 2 * {writer.name}_b0[s];\n"
        f"        for (int j = 0; j < {d}; j++) halfway[s] += {term};\n"
        "    }\n"
    )


def _slope(writer: CWriter, formula: Formula, mean: str) -> str:
    """Return the lines of the slope of the output c along the feature j."""
    m, d = formula.linear.shape
    parts = []
    if formula.linear.any() or not formula.terms:
        parts.append(_entry(writer, "linear", "c", d, "j"))
    if formula.squares.any():
        parts.append(f"{_entry(writer, 'squares', 'c', d, 'j')} * (x[j] + {mean}[j])")
    lines = f"        {writer.real} slope = {' + '.join(parts) or '0'};\n"
    for term in formula.terms:
        unit = f"{_entry(writer, 'u0', 's', d, 'j')} * {_entry(writer, 'v0', 's', m, 'c')}"
        lines += f"        for (int s = 0; s < {len(term.weights)}; s++) slope += halfway[s] * {unit};\n"
    return lines


def _entry(writer: CWriter, label: str, row: str, length: int, column: str) -> str:
    """Return an entry of parameters that are stored in rows."""
    entry = f"{writer.name}_{label}[{row} * {length} + {column}]"
    return f"{entry} * {writer.name}_{label}_scale[{row}]" if writer.dtype == "int16" else entry

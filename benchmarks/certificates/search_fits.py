"""Kinds of the search that fit, or certify, the same data twice: in other storages, with weights, in C."""

import ctypes
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import clone

import mopn
from mopn import estimators

Rng = np.random.Generator
_BOUNDS, _OUTPUTS = 1e-6, 1e-8


def duplicated(rng: Rng, X: np.ndarray) -> Any:
    """Return a CSR matrix with several entries for each number, in any order, that add up to it but for rounding."""
    rows, columns = np.indices(X.shape).reshape(2, -1)
    extra = rng.standard_normal(X.size)
    parts = np.concatenate([X.ravel() - extra, extra])
    order = np.argsort(np.tile(rows, 2)[(mixed := rng.permutation(2 * X.size))], kind="stable")
    ends = 2 * X.shape[1] * np.arange(len(X) + 1)
    return sparse.csr_array((parts[mixed][order], np.tile(columns, 2)[mixed][order], ends), shape=X.shape)


def storages(rng: Rng, X: np.ndarray, *, relations: bool) -> dict[str, Callable[[], Any]]:
    """Return what makes other storages of X."""
    half, left = len(X) // 2, max(1, X.shape[1] // 2)
    kinds: dict[str, Callable[[], Any]] = {
        "csr": lambda: sparse.csr_array(X),
        "csc": lambda: sparse.csc_array(X),
        "lil": lambda: sparse.lil_array(X),
        "duplicates": lambda: duplicated(rng, X),
        "columns": lambda: np.asfortranarray(X),
        "strided": lambda: np.repeat(X, 2, axis=1)[:, ::2],
        "reversed": lambda: X[::-1].copy()[::-1],
        "float32": lambda: X.astype(np.float32),
        "big-endian": lambda: X.astype(">f8"),
        "frame": lambda: pd.DataFrame(X),
        "blocks": lambda: mopn.RowBlocks(X, size=half),
        "mixed blocks": lambda: mopn.RowBlocks([sparse.csr_array(X[:half]), sparse.csr_array(X[half:])]),
    }
    if relations:
        order = rng.permutation(len(X))
        tables, rows = [X[order, :left], X[:, left:]], np.column_stack([np.argsort(order), np.arange(len(X))])
        kinds["relations"] = lambda: mopn.RelationBlocks(tables, rows)
    return kinds


def storage_violations(rng: Rng) -> Iterator[str]:
    """Yield storages of the same X with another certificate, or other outputs, of the same network."""
    n, d, m = int(rng.integers(4, 12)), int(rng.integers(2, 6)), int(rng.integers(1, 3))
    X = np.rint(8.0 * rng.standard_normal((n, d))) / 8.0 * (rng.random((n, d)) > 0.3)
    kernel, augment = str(rng.choice(["homogeneous", "anova"])), bool(rng.random() < 0.5)
    alpha = 0.3 if rng.random() < 0.5 else None
    options: dict[str, Any] = {
        "kernel": kernel,
        "augment": augment,
        "alpha": alpha,
        "center": augment and kernel == "homogeneous" and bool(rng.random() < 0.5),
        "scale": rng.choice([None, "features", "data", "large"]),
        "norm": str(rng.choice(["l1", "l1/l2", "nonnegative-l1"])),
        "loss": "squared",
        "strength": 0.5,
    }
    dummies = (1 if kernel == "homogeneous" else 2) * augment
    H, V = rng.standard_normal((3, dummies + d)), np.abs(rng.standard_normal((3, m)))
    W, y = (rng.standard_normal((m, 1 + d)) if alpha else None), rng.standard_normal((n, m))
    model = mopn.Model(H, V, kernel=kernel, augment=augment, linear=W, target="outputs")
    first, outputs = mopn.certify(mopn.NetworkProblem(X, y, **options), H, V, linear=W), model.outputs(X)
    for name, make in storages(rng, X, relations=not options["center"]).items():
        stored = make()
        measured = mopn.certify(mopn.NetworkProblem(stored, y, **options), H, V, linear=W)
        in_blocks = isinstance(stored, mopn.RowBlocks)
        # Blocks know no steps to better dual points.
        is_worse = in_blocks and measured.lower <= first.lower + _BOUNDS * abs(first.lower)
        is_same = np.isclose(measured.lower, first.lower, _BOUNDS, 0.0)
        if not (np.isclose(measured.fun, first.fun, _BOUNDS, 0.0) and (is_same or is_worse)):
            yield f"{name} {options}: {measured}, dense {first}"
        if not in_blocks and not np.allclose(model.outputs(stored), outputs, _OUTPUTS, _OUTPUTS):
            yield f"{name} {options}: outputs"


def draw_table(rng: Rng, n: int) -> pd.DataFrame:
    """Draw a table of odd columns: numbers of any size, near ones, missing ones, dates, categories, constants."""
    kinds: dict[str, Callable[[], Any]] = {
        "numbers": lambda: rng.standard_normal(n) * 10.0 ** rng.uniform(-8, 8),
        "near": lambda: 1e6 * (1.0 + 10.0 ** rng.uniform(-12, -9) * rng.standard_normal(n)),
        "whole": lambda: rng.integers(0, 4, n).astype(float),
        "categories": lambda: rng.choice(["a", "b", "c"], n),
        "truth": lambda: rng.choice([True, False], n),
        "missing": lambda: np.where(rng.random(n) < 0.3, np.nan, rng.standard_normal(n)),
        "tiny": lambda: 1e-300 * rng.standard_normal(n),
        "dates": lambda: pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D"),
    }
    chosen = rng.choice(list(kinds), int(rng.integers(1, 4)), replace=False)
    return pd.DataFrame({str(kind): kinds[kind]() for kind in chosen} | {"z": rng.standard_normal(n)})


def draw_fit(rng: Rng, n: int) -> tuple[Any, Any, np.ndarray]:
    """Draw an estimator and its data."""
    X = rng.standard_normal((n, int(rng.integers(2, 5))))
    X = np.rint(X) if rng.random() < 0.5 else X
    y = X[:, 0] * X[:, -1] + 0.3 * rng.standard_normal(n)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    options: dict[str, Any] = {"strength": mopn.Ratio(float(10 ** rng.uniform(-2, -0.5))), "max_units": 4}
    networks = (
        "MultiOutputPNClassifier",
        "MultiOutputFMClassifier",
        "MultiOutputPNRegressor",
        "MultiOutputFMRegressor",
    )
    name = str(rng.choice([*networks, "OrdinalFMRegressor", "TableClassifier", "TableRegressor"]))
    if name in networks:
        options["norm"] = str(rng.choice(["l1", "l1/l2", "nonnegative-l1"]))
    data = draw_table(rng, n) if name.startswith("Table") else X
    return getattr(estimators, name)(**options), data, labels if "Regressor" not in name or "Ordinal" in name else y


def rows_of(X: Any, rows: np.ndarray) -> Any:
    """Return rows of an array or a frame."""
    return X.iloc[rows].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[rows]


def predicted(estimator: Any, X: Any) -> np.ndarray:
    """Return probabilities, or else predictions."""
    method = "predict_proba" if hasattr(estimator, "predict_proba") else "predict"
    return np.asarray(getattr(estimator, method)(X), float)


def repetition_violations(rng: Rng) -> Iterator[str]:
    """Yield estimators that are not the same, to the last bit, for repeated rows, and for rows in another order."""
    n = int(rng.integers(20, 60))
    estimator, X, y = draw_fit(rng, n)
    weights = rng.integers(0 if rng.random() < 0.5 else 1, 4, n).astype(float)
    repeated, order = np.repeat(np.arange(n), weights.astype(int)), rng.permutation(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            first = predicted(clone(estimator).fit(X, y, sample_weight=weights), X)
        except ValueError:
            return  # Weights of 0 have left one class, or a column without numbers.
        others = {
            "repetition": clone(estimator).fit(rows_of(X, repeated), y[repeated]),
            "order": clone(estimator).fit(rows_of(X, order), y[order], sample_weight=weights[order]),
        }
    for name, other in others.items():
        if not np.array_equal(predicted(other, X), first):
            yield f"{name}: {estimator} n={n}, off by {np.abs(predicted(other, X) - first).max():.3g}"


def export_violations(rng: Rng) -> Iterator[str]:
    """Yield tables whose model has other outputs in C; without a compiler there are none."""
    n = int(rng.integers(30, 80))
    X = draw_table(rng, n).select_dtypes("number")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimators.TableRegressor(strength=mopn.Ratio(0.01), max_units=4).fit(X, X["z"].to_numpy() ** 2).model_
    rows = pd.DataFrame({name: X[name].to_numpy()[rng.permutation(n)] for name in X})
    expected = np.asarray(model.outputs(rows)).reshape(n, -1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mopn.export.to_c(model, folder / "model.h", dtype="float64")
        source = '#include "model.h"\nvoid outputs(const double *x, double *out) { model_outputs(x, out); }\n'
        (folder / "model.c").write_text(source, encoding="utf-8")
        command = ["cc", "-std=c99", "-O1", "-shared", "-fPIC", "-o", "model.so", "model.c", "-lm"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        except FileNotFoundError:
            return
        library, found = ctypes.CDLL(str(folder / "model.so")), np.zeros_like(expected)
        for x, out in zip(np.ascontiguousarray(rows.to_numpy(float)), found, strict=True):
            library.outputs(x.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p))
    if not np.allclose(found, expected, 0.0, 1e-9 * np.abs(expected).max()):
        yield f"C of {list(X)}: off by {np.abs(found - expected).max():.3g} of {np.abs(expected).max():.3g}"

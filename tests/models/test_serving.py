"""Loading and predicting need NumPy and SciPy alone."""

import json
import subprocess
import sys

import numpy as np
import pytest
from fitted_models import KINDS, TABLE_ROWS, TABLES

X = np.random.default_rng(0).uniform(-1, 1, (5, 4))
OTHERS = ("numba", "llvmlite", "sklearn", "threadpoolctl", "onnx", "joblib", "pandas", "narwhals", "matplotlib")
PROGRAM = """
import json
import sys
from pathlib import Path
others, blocked = {others!r}, {blocked!r}
if blocked:
    sys.modules.update(dict.fromkeys(others))
import numpy as np
from scipy import sparse
import mopn
for path in sorted(Path.cwd().glob("*.X.npy")):
    name, rows = path.name.removesuffix(".X.npy"), np.load(path)
    expected = np.load(name + ".y.npy")
    model = mopn.load(name + ".npz")
    for storage in (np.array, sparse.csr_array, sparse.csc_array):
        predicted = model.predict(storage(rows))
        assert predicted.shape == expected.shape, name
        assert (predicted == expected).all() if expected.dtype.kind in "Ub" else np.allclose(predicted, expected)
        if model.has_probabilities:
            model.predict_proba(storage(rows))
    print(name)
row = json.loads(Path("row.json").read_text())
row["day"] = np.datetime64(row["day"])
assert np.allclose(mopn.load("table.npz").outputs(row), np.load("table.npy"))
report = mopn.explain.drift(mopn.load("table.npz"), row)
assert report.n_rows == 1
assert str(report)
found = [name for name in others if sys.modules.get(name)]
assert not found, found
if blocked:
    try:
        import mopn.estimators
    except ImportError as error:
        assert "pip install 'scikit-learn>=1.6'" in str(error), error
    else:
        raise AssertionError("imported without scikit-learn")
"""


@pytest.mark.parametrize("blocked", [False, True], ids=["not imported", "not installed"])
def test_loading_and_predicting_need_numpy_and_scipy_alone(tmp_path, blocked):
    for name, model in KINDS.items():
        rows = X[:, : model.n_features]
        model.save(tmp_path / f"{name}.npz")
        np.save(tmp_path / f"{name}.X.npy", rows)
        labels = model.predict(rows)
        np.save(tmp_path / f"{name}.y.npy", labels.astype(str) if labels.dtype == object else labels)
    row = {column: cells[0] for column, cells in TABLE_ROWS.items()} | {"day": "2020-02-08"}
    TABLES["categories"].save(tmp_path / "table.npz")
    np.save(tmp_path / "table.npy", TABLES["categories"].outputs(row | {"day": np.datetime64(row["day"])}))
    (tmp_path / "row.json").write_text(json.dumps(row))
    program = PROGRAM.format(others=OTHERS, blocked=blocked)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(KINDS)

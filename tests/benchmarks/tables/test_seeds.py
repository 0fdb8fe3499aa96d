"""The study of seeds: what is measured, of which fits."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.common.tables import load_table
from benchmarks.tables import seeds


def test_spread_is_relative_to_the_means():
    values = np.array([[1.0, -3.0], [3.0, -5.0]])
    assert seeds.spread(values) == pytest.approx(1 / np.sqrt((2**2 + 4**2) / 2))
    assert seeds.spread(np.ones((3, 4, 2))) == 0


def test_curves_are_partial_dependences():
    X = load_table("diabetes", "nowhere").X
    X["x0"] = pd.Categorical(np.where(X["x1"] > 0, "a", "b"))
    X.loc[::7, "x2"] = np.nan

    def outputs(table):
        return ((table["x0"] == "a") * 2.0 + table["x2"].fillna(5.0) ** 2).to_numpy()[:, None]

    values = {name: seeds._values(X[name]) for name in X}
    curves = seeds._curves(outputs, X, np.arange(40))
    assert curves.shape == (sum(map(len, values.values())), 1)
    assert set(values["x0"]) == {"a", "b"}
    expected = np.where(values["x0"] == "a", 1.0, -1.0)
    np.testing.assert_allclose(curves[:2, 0], expected, atol=1e-12)
    at = sum(len(values[name]) for name in ("x0", "x1"))
    squares = values["x2"] ** 2
    np.testing.assert_allclose(curves[at : at + len(squares), 0], squares - squares.mean(), atol=1e-12)

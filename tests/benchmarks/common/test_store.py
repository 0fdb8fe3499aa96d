"""The file that a long run appends to."""

import pytest

from benchmarks.common.store import Store, StoreError


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "new" / "fits.csv", ["name", "split", "curve"], ["name", "split"])


def test_an_absent_file_is_an_empty_store(store):
    assert store.rows() == []
    assert store.keys() == set()


def test_rows_come_back_as_text(store):
    store.append({"name": "a", "split": 1, "curve": "0.5 0.6"})
    store.append({"name": "b, c", "split": 2, "curve": ""})
    again = Store(store.path, store.columns, store.key)
    assert again.rows()[1] == {"name": "b, c", "split": "2", "curve": ""}
    assert again.keys() == {("a", "1"), ("b, c", "2")}
    assert {again.key_of({"name": "a", "split": 1})} < again.keys()


@pytest.mark.parametrize("rest", ["b", "b,2", "b,2,0.5 0.", 'b,2,"0.5'])
def test_a_truncated_last_line_is_done_again(store, rest):
    store.append({"name": "a", "split": 1, "curve": "0.5"})
    with open(store.path, "a") as file:
        file.write(rest)
    again = Store(store.path, store.columns, store.key)
    assert again.keys() == {("a", "1")}
    again.append({"name": "b", "split": 2, "curve": "0.7"})
    assert store.path.read_text() == "name,split,curve\na,1,0.5\nb,2,0.7\n"


def test_a_truncated_header_is_written_again(store):
    store.path.parent.mkdir()
    store.path.write_text("name,sp")
    store.append({"name": "a", "split": 1, "curve": ""})
    assert store.path.read_text() == "name,split,curve\na,1,\n"


def test_a_file_with_other_columns_is_refused_and_kept(store):
    store.path.parent.mkdir()
    store.path.write_text("x,y\n1,2\n")
    with pytest.raises(StoreError, match="other columns"):
        Store(store.path, store.columns, store.key)
    assert store.path.read_text() == "x,y\n1,2\n"

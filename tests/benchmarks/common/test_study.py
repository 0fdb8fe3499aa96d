"""The runner of the studies, and the file that it appends to."""

import time

import pytest

from benchmarks.common.sources import MissingDataError
from benchmarks.common.store import Store, StoreError
from benchmarks.common.study import fill, make_parser, run


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "new" / "squares.csv", ["n", "square"], ["n"])


def square(n):
    if n < 0:
        raise ValueError(f"deliberate: {n}")
    return {"n": n, "square": n * n}


def test_rows_come_back_as_text(store):
    store.append({"n": 1, "square": "b, c"})
    store.append({"n": 2, "square": ""})
    again = Store(store.path, store.columns, store.key)
    assert again.rows() == [{"n": "1", "square": "b, c"}, {"n": "2", "square": ""}]
    assert again.keys() == {("1",), ("2",)}


@pytest.mark.parametrize("rest", ["2", "2,", '2,"4'])
def test_a_truncated_last_line_is_done_again(store, rest):
    store.append(square(1))
    with open(store.path, "a") as file:
        file.write(rest)
    again = Store(store.path, store.columns, store.key)
    assert again.keys() == {("1",)}
    again.append(square(2))
    assert store.path.read_text() == "n,square\n1,1\n2,4\n"


def test_a_file_with_other_columns_is_refused_and_kept(store):
    store.path.parent.mkdir()
    store.path.write_text("x,y\n1,2\n")
    with pytest.raises(StoreError, match="other columns"):
        Store(store.path, store.columns, store.key)
    assert store.path.read_text() == "x,y\n1,2\n"


def test_only_missing_rows_are_made(store, capsys):
    store.append(square(2))
    made = []
    assert fill(store, [1, 2, 3], lambda n: {"n": n}, lambda n: made.append(n) or square(n), "{n} to {square}") == 0
    assert made == [1, 3]
    assert [row["square"] for row in store.rows()] == ["4", "1", "9"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "squares.csv: 3 rows, 1 of them done already"
    assert printed[-1].endswith("3 to 9")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_row_stops_no_other_and_is_tried_again(store, capsys, jobs):
    assert fill(store, [-1, 2, -3, 4], lambda n: {"n": n}, square, jobs=jobs) == 2
    assert [row["n"] for row in store.rows()] == ["2", "4"]
    assert "deliberate: -3" in capsys.readouterr().err
    assert fill(store, [-1, 2], lambda n: {"n": n}, abs_square) == 0
    assert {row["n"] for row in store.rows()} == {"2", "4", "-1"}


def abs_square(n):
    return {"n": n, "square": n * n}


def end(error):
    raise error


def test_the_exit_status_says_how_a_program_ended(capsys):
    parser = make_parser("some", "Text.")
    assert run(parser, lambda options: None, []) == 0
    assert run(parser, lambda options: 3, []) == 1
    assert run(parser, lambda options: end(MissingDataError("no such file")), []) == 2
    assert capsys.readouterr().err == "python -m benchmarks.some: no such file\n"
    assert run(parser, lambda options: end(KeyboardInterrupt()), []) == 130


@pytest.mark.parametrize(("arguments", "clock"), [([], time.perf_counter), (["--processor"], time.process_time)])
def test_times_are_of_the_clock_or_of_the_processor(arguments, clock):
    read = []
    usual = time.perf_counter
    run(make_parser("some", "Text."), lambda options: read.append(time.perf_counter), arguments)
    assert read == [clock]
    run(make_parser("some", "Text."), lambda options: end(KeyboardInterrupt()), arguments)
    assert time.perf_counter is usual

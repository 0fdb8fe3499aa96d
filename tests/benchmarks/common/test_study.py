"""The runner of the studies."""

import time

import pytest

from benchmarks.common.sources import MissingDataError
from benchmarks.common.store import Store
from benchmarks.common.study import add_restart_options, fill, make_parser, out_folder, run


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "squares.csv", ["n", "square"], ["n"])


def square(n):
    if n < 0:
        raise ValueError(f"deliberate: {n}")
    return {"n": n, "square": n * n}


def test_only_missing_rows_are_made(store, capsys):
    store.append(square(2))
    made = []
    assert fill(store, [1, 2, 3], lambda n: {"n": n}, lambda n: made.append(n) or square(n), "{n} to {square}") == 0
    assert made == [1, 3]
    assert [row["square"] for row in store.rows()] == ["4", "1", "9"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "squares.csv: 3 rows, 1 of them done already"
    assert printed[-1].endswith("3 to 9")


def test_a_row_is_in_the_file_before_the_next_is_made(store):
    lengths = []
    fill(store, [1, 2, 3], lambda n: {"n": n}, lambda n: lengths.append(len(store.rows())) or square(n))
    assert lengths == [0, 1, 2]


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


def test_results_go_where_the_options_say(tmp_path):
    parser = make_parser("some", "Text.", sets=("a", "b"), results="some")
    assert parser.parse_args([]).sets == ["a", "b"]
    assert str(out_folder(parser.parse_args([]))) == "results/some"
    add_restart_options(parser, "small")
    assert str(out_folder(parser.parse_args(["--quick"]))) == "results/some-quick"
    assert out_folder(parser.parse_args(["--quick", "--out", str(tmp_path)])) == tmp_path


@pytest.mark.parametrize(("arguments", "clock"), [([], time.perf_counter), (["--processor"], time.process_time)])
def test_times_are_of_the_clock_or_of_the_processor(arguments, clock):
    read = []
    usual = time.perf_counter
    run(make_parser("some", "Text."), lambda options: read.append(time.perf_counter), arguments)
    assert read == [clock]
    run(make_parser("some", "Text."), lambda options: end(KeyboardInterrupt()), arguments)
    assert time.perf_counter is usual

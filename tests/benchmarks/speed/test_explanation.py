"""What explanations cost, on a few rows."""

from benchmarks.speed.explanation import main


def test_every_shape_is_timed_with_one_output_and_with_all(capsys):
    assert main(["--repeats", "1", "--rows", "20"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(row[0], row[2]) for row in rows[::2]] == [
        (name, "1") for name in ("digits", "letter", "usps") for _ in "ab"
    ]
    assert all(float(row[-1]) >= 0 for row in rows)

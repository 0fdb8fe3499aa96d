"""Figure 5, on small synthetic data."""

from benchmarks.multiclass import refits


def test_refits_of_both_layers_are_better_with_few_units(folder, tmp_path, capsys):
    refits.main(["--data", str(folder), "--out", str(tmp_path), "--sets", "vowel", "--max-units", "5"])
    row = capsys.readouterr().out.split("time s\n")[-1].splitlines()[3].split()
    assert (row[1], row[6]) == ("5", "5")
    assert float(row[7]) < float(row[2])
    assert (tmp_path / "refits.png").stat().st_size > 10_000

"""The study of growth: its rows, the stages of its methods, and its report on them."""

import numpy as np
import pytest

from benchmarks.scaling import growth
from benchmarks.scaling.stages import KINDS, class_scores, make_rows


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_one_function_of_the_rows_but_for_noise(kind):
    """A tenth of the labels is random, a fifth of which are right by chance."""
    for seed in (1, 2):
        X, y = make_rows(kind, 20_000, 6, seed)
        assert X.shape == (20_000, 6)
        assert np.mean(np.argmax(class_scores(kind, X), axis=1) == y) == pytest.approx(0.92, abs=0.01)
        assert np.bincount(y, minlength=5).min() > 500


def test_the_report_tells_when_the_best_is_reached_and_how_that_grows(capsys):
    def row(method, n, seconds, accuracies):
        return dict(kind="squares", method=method, n=n, d="20", seconds=seconds, accuracies=accuracies, memory="7")

    growth._report([
        row("mopn", "1000", "1 2", "0.8 0.9"), row("mopn", "10000", "20 30", "0.9 0.9"),
        row("sgd", "1000", "3 4", "0.7 0.898"), row("sgd", "10000", "3 4", "0.7 0.8"),
    ])  # fmt: skip
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line[5] for line in lines] == ["2.0", "20.0", "4.0", "-"]
    assert [line[-1] for line in lines] == ["-", "1.00", "-", "-"]

"""The study of local minima: fits of several functions, and those to samples of several sizes."""

import pytest

from benchmarks.common.processes import run_program


@pytest.mark.slow
@pytest.mark.parametrize("first", ["a sample", "all rows"])
def test_every_draw_is_of_another_function(first):
    found = run_program("scaling", "--cell", "starts", "squares", 3000, 2, first, 3)
    assert {len(values) for values in found.values()} == {3}
    assert len(set(found["fun"])) == 3
    # Five classes, of which two units tell some apart.
    assert min(found["accuracy"]) > 0.3


@pytest.mark.slow
def test_samples_of_any_size_are_followed_by_all_rows():
    """Objectives are those of all rows: refits end near the same ones, after few rows for a parameter, too."""
    whole, sampled = (run_program("scaling", "--cell", "sizes", "squares", 5, size) for size in ("all", 25))
    assert sampled["fun"] == pytest.approx(whole["fun"], rel=0.05)

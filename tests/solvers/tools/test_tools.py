"""Attributes computed at first use."""

import math
from itertools import product
from threading import Barrier, Event, Thread

import numpy as np
import pytest

from mopn.solvers.interface import Measure
from mopn.solvers.numerics.precision import proven_lower, proven_upper
from mopn.solvers.tools.checks import make_generator
from mopn.solvers.tools.decorators import cached_property


class Lazy:
    def __init__(self, compute):
        self.compute = compute

    @cached_property
    def value(self):
        """The computed value."""
        return self.compute()


def test_the_value_is_computed_once():
    values = [1, 2]
    lazy = Lazy(lambda: values.pop())
    assert (lazy.value, lazy.value) == (2, 2)
    assert values == [1]
    assert Lazy.value.__doc__ == "The computed value."


def test_an_error_is_not_kept():
    values = [1]
    lazy = Lazy(lambda: 1 / values.pop(0) if len(values) > 1 else values[0])
    values.insert(0, 0)
    with pytest.raises(ZeroDivisionError):
        _ = lazy.value
    assert lazy.value == 1


def test_no_lock_is_held_while_a_thread_computes():
    """A process forked meanwhile would find the lock taken for ever."""
    computing, go_on, done = Event(), Event(), Event()

    def compute():
        computing.set()
        assert go_on.wait(60)

    def read_another():
        _ = Lazy(int).value
        done.set()

    first = Thread(target=lambda: Lazy(compute).value, daemon=True)
    first.start()
    assert computing.wait(60)
    # Of another object, then in a thread of its own, so that a lock is a failure and not a test that never ends.
    Thread(target=read_another, daemon=True).start()
    free = done.wait(10)
    go_on.set()
    first.join()
    assert free


def test_threads_that_meet_take_the_same_value():
    meeting, found = Barrier(2), []
    lazy = Lazy(lambda: (meeting.wait(60), object()))
    threads = [Thread(target=lambda: found.append(lazy.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]


def test_generators_are_kept_and_seeds_make_new_ones():
    rng = np.random.default_rng(0)
    assert make_generator(rng) is rng
    assert make_generator(7).random() == make_generator(7).random() == np.random.default_rng(7).random()
    assert make_generator(None).random() != make_generator(None).random()


@pytest.mark.parametrize(("rng", "error"), [(-1, ValueError), (0.5, TypeError), ("seed", TypeError), (True, TypeError)])
def test_what_is_no_generator_is_refused_by_name(rng, error):
    with pytest.raises(error, match="order must be a numpy Generator, a seed"):
        make_generator(rng, "order")


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("as_given", [np.array, list, lambda values: np.array(values)[:, None]])
def test_nan_becomes_the_bound_that_says_nothing(as_given):
    given = as_given([1.0, NAN, -INF, INF])
    shape = np.shape(given)
    np.testing.assert_array_equal(proven_upper(given), np.reshape([1.0, INF, -INF, INF], shape))
    np.testing.assert_array_equal(proven_lower(given), np.reshape([1.0, -INF, -INF, INF], shape))
    assert (proven_upper(NAN), proven_lower(NAN), proven_upper(2.0), proven_lower(2.0)) == (INF, -INF, 2.0, 2.0)


@pytest.mark.parametrize("values", list(product([3.0, NAN], [1.0, NAN], [1e-9, NAN], [2.0, NAN])))
def test_gaps_are_known_only_if_all_that_they_are_made_of_is(values):
    fun, lower, rounding, restricted = values
    measure = Measure(fun, lower, rounding, restricted)
    assert math.isfinite(measure.gap) == (not any(map(math.isnan, values[:3])))
    assert measure.restricted_gap <= measure.gap
    assert not math.isnan(measure.restricted_gap)
    assert (measure.proof == "none") == math.isinf(measure.gap)

"""Attributes computed at first use."""

from threading import Barrier, Event, Thread

import pytest

from mopn.solvers.tools.cached import cached_property


class Lazy:
    def __init__(self, compute):
        self.compute = compute

    @cached_property
    def value(self):
        """What is computed."""
        return self.compute()


def test_the_value_is_computed_once():
    values = [1, 2]
    lazy = Lazy(lambda: values.pop())
    assert (lazy.value, lazy.value) == (2, 2)
    assert values == [1]
    assert Lazy.value.__doc__ == "What is computed."


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

"""A caller's settings of its process, floating-point errors above all, neither reach a call nor are changed by one."""

import threading

import numpy as np
import pytest

import mopn
from mopn.estimators import MultiOutputPNClassifier, TableClassifier
from mopn.solvers import ConditionalGradient
from mopn.solvers.tools.blas_threads import in_threads
from mopn.solvers.tools.decorators import callers_state, door
from tests.fuzz.checks import surroundings
from tests.fuzz.interfaces import interfaces

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] > 0
# Cases of about the same work; the table of calls takes too long for every collection.
PARTS = 15
RAISE = dict.fromkeys(("divide", "over", "under", "invalid"), "raise")


def found(interface):
    """Return the findings of the first valid call of a few, or its error."""
    for seed in range(1, 6):
        arguments = interface.draw(np.random.default_rng(seed))
        for options in arguments.values():
            if "max_time" in options:
                options["max_time"] = None  # compiling takes time
        try:
            return interface.run(arguments)
        except interface.refusals as error:
            refused = error
    return refused


@pytest.fixture(scope="module")
def calls():
    return interfaces()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(PARTS))
def test_no_call_depends_on_the_callers_floating_point_state(calls, part):
    for interface in calls[part::PARTS]:
        expected = found(interface)
        around = surroundings()
        with np.errstate(**RAISE):
            other = found(interface)
            assert np.geterr() == RAISE
        assert surroundings() == around
        assert type(other) is type(expected), (interface.name, other)
        check_same(other, expected)


def check_same(other, expected):
    if isinstance(expected, Exception):
        assert str(other) == str(expected)
        return
    assert other.numbers.keys() == expected.numbers.keys()
    for name, value in expected.numbers.items():
        if not name.endswith("_time"):
            np.testing.assert_array_equal(other.numbers[name], value)


def test_harmless_underflow_ends_no_fit():
    """Probabilities of far rows underflow."""
    far = X * 1e3
    with np.errstate(**RAISE):
        table = TableClassifier(strength=mopn.Ratio(0.1)).fit(far, Y)
        model = MultiOutputPNClassifier(strength=1e-3, scale=None, tol=0.1, max_units=3).fit(far, Y)
        assert np.isfinite(model.predict_proba(1e2 * far)).all()
        assert np.isfinite(table.predict_proba(far)).all()


def test_the_state_is_as_before_after_an_error():
    with np.errstate(**RAISE):
        with pytest.raises(ValueError, match="NaN"):
            MultiOutputPNClassifier().fit([[np.nan], [1.0]], [0, 1])
        with pytest.raises(TypeError, match="call it as fit"):
            MultiOutputPNClassifier().fit()
        assert np.geterr() == RAISE


def test_callbacks_and_scores_see_the_callers_state_and_the_fit_does_not():
    problem, seen = mopn.NetworkProblem(X, Y, strength=0.5, augment=True), []

    def look(*_, **__):
        seen.append(np.geterr())
        np.seterr(all="print")  # is for the callback alone
        return 0.0

    with np.errstate(**RAISE):
        run = mopn.minimize(problem, ConditionalGradient(), callback=look, max_iter=2)
        mopn.path(problem, 2, score=look)
        assert np.geterr() == RAISE
    assert len(seen) >= 4
    assert all(state == RAISE for state in seen)
    plain = mopn.minimize(problem, ConditionalGradient(), max_iter=2)
    assert plain.fun == run.fun


def test_threads_within_a_call_and_calls_within_threads_have_mopns_state(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    ignored = dict.fromkeys(RAISE, "ignore")

    @door
    def states():
        return [np.geterr(), *in_threads(lambda _: np.geterr(), [0, 1, 2])]

    @door
    def within_a_callback():
        with callers_state():
            return [np.geterr(), *states()]

    with np.errstate(**RAISE):
        assert states() == [ignored] * 4
        assert within_a_callback() == [RAISE, *[ignored] * 4]
        of_thread = []
        thread = threading.Thread(target=lambda: of_thread.extend(states()))
        thread.start()
        thread.join()
    assert of_thread == [ignored] * 4

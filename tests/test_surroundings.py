"""A caller's settings of its process, floating-point errors above all, neither reach a call nor are changed by one."""

import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fitted_models import KINDS
from table_models import network, table

import mopn
from mopn.estimators import MultiOutputPNClassifier, TableClassifier
from mopn.solvers import ConditionalGradient
from mopn.solvers.tools.blas_threads import in_threads
from mopn.solvers.tools.decorators import callers_state, quiet
from tests.fuzz.checks import surroundings
from tests.fuzz.interfaces import interfaces

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] > 0
ROWS = RNG.normal(size=(4, 4))
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


def header(model, X):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.h"
        mopn.export.to_c(model, path)
        return path.read_text(encoding="utf-8")


# What users call of a model and rows; further calls are in the table of interfaces.
CALLS = {
    "outputs": lambda model, X: model.outputs(X),
    "predict": lambda model, X: model.predict(X),
    "predict_proba": lambda model, X: model.predict_proba(X),
    "shap_values": lambda model, X: mopn.explain.shap_values(model, X, X),
    "shap_interaction_values": lambda model, X: mopn.explain.shap_interaction_values(model, X, X),
    "feature_importances": lambda model, X: mopn.explain.feature_importances(model, X, X),
    "strongest_interactions": lambda model, X: mopn.explain.strongest_interactions(model, 2),
    "interaction_weights": lambda model, X: mopn.explain.interaction_weights(model, [(0, 1)]),
    "certified_radius": lambda model, X: mopn.explain.certified_radius(model, X),
    "certified_flips": lambda model, X: mopn.explain.certified_flips(model, np.sign(X) > 0).proven,
    "to_c": header,
    "to_qubo": lambda model, X: mopn.export.to_qubo(model, output=0),
    "Ranker": lambda model, X: mopn.ranking.Ranker(model, X).scores(X[:1] * 0),
}
SIZES = (1e-300, 1e-160, 1.0, 1e150)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["labels", "levels", "multi-label", "direct", "lifted pairs"])
def test_no_state_reaches_a_call_whose_numbers_underflow_or_overflow(call, kind):
    for size in SIZES:
        for of_rows in SIZES:
            model, rows = KINDS[kind], of_rows * ROWS
            name = "basis" if isinstance(model, mopn.Model) else "factors"
            check_states(CALLS[call], replace(model, **{name: size * getattr(model, name)}), rows)


CALLS_OF_TABLES = {
    "shap_values": lambda model, X: mopn.explain.shap_values(model, X),
    "effects": lambda model, X: [size.deviation for size in mopn.explain.effects(model, X).sizes()],
    "main effect": lambda model, X: mopn.explain.effects(model, X).main("size"),
    "pair": lambda model, X: mopn.explain.effects(model, X).pair("size", "age"),
    "repr": lambda model, X: repr(mopn.explain.effects(model, X)),
    "predict": lambda model, X: model.predict(X),
}


@pytest.mark.parametrize("call", CALLS_OF_TABLES)
def test_no_state_reaches_a_call_of_tables_whose_numbers_underflow_or_overflow(call):
    for size in SIZES:
        rows = table(20, 1)
        rows = rows | {"size": size * rows["size"], "age": size * rows["age"]}
        model = network(rows)
        for of_units in (1e-170, 1.0, 1e150):
            units = replace(model.model, basis=of_units * model.model.basis)
            check_states(CALLS_OF_TABLES[call], replace(model, model=units), rows)


def check_states(call, *arguments):
    """Check that a call ends in the same way whether errors are ignored, raise or warn."""
    expected, *others = [outcome(call, arguments, state) for state in ("ignore", "raise", "warn")]
    for other in others:
        np.testing.assert_equal(other, expected)


def outcome(call, arguments, state):
    """Return what a call returns, or its error, with NumPy in a state."""
    with np.errstate(all=state):
        try:
            return call(*arguments)
        except (TypeError, ValueError) as error:
            return str(error)


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

    @quiet()
    def states():
        return [np.geterr(), *in_threads(lambda _: np.geterr(), [0, 1, 2])]

    @quiet()
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

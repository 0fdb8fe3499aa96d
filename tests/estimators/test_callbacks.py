"""scikit-learn's callbacks: the tasks of a fit, the estimators that callbacks get, and fits that they end."""

import inspect
import pickle

import numpy as np
import pytest
from estimator_names import OF_SAMPLES
from sklearn.base import clone

import mopn
import mopn.estimators
from mopn.solvers import Status

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks since 1.9")

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 4))
LABELS = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.4 * RNG.standard_normal(60) > 0).astype(int)
WEIGHT = RNG.uniform(0.5, 2.0, 60)
KINDS = [getattr(mopn.estimators, name) for name in OF_SAMPLES if name != "TableEncoder"]
SINGLE = [kind for kind in KINDS if kind is not mopn.estimators.PathCV]
# The last point is not the best one where steps are long.
STOPPED = [
    # A fit of a table that chooses the strength starts at a full network.
    *((kind, {"strength": 1.0} if kind.__name__.startswith("Table") else {}) for kind in SINGLE),
    (mopn.estimators.FactorizationMachineRegressor, {"solver": mopn.solvers.SGD(step=0.3)}),
]
# Fits of several iterations.
OPTIONS = {
    "tol": 0.0,
    "max_iter": 4,
    "max_units": 4,
    "refit": "output",
    "n_components": 2,
    "random_state": 0,
    "curves": 1,
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def small(kind, **options):
    """Return an estimator whose fits are short."""
    if kind is mopn.estimators.PathCV:
        own = {"strengths": (4.0, 1.0, 0.25), "max_units": 6, "cv": 2}
        return kind(small(mopn.estimators.MultiOutputPNClassifier), **(own | options))
    known = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in OPTIONS.items() if name in known} | options)


class Recorder:
    """Records the tasks as they begin and end; it asks to stop where a function of the context says so."""

    def __init__(self, stop=lambda context: False):
        self.stop, self.events, self.ended = stop, [], {}

    def setup(self, estimator, context):
        self.events.append(("setup", path_of(context)))

    def teardown(self, estimator, context):
        self.events.append(("teardown", path_of(context)))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", path_of(context)))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        path = path_of(context)
        self.events.append(("end", path))
        self.ended[path] = X, y, metadata, fitted_estimator
        return self.stop(context)


class Propagated(Recorder):
    """A recorder that passes to estimators within others."""

    max_propagation_depth = None


def path_of(context):
    above = () if context.parent is None else path_of(context.parent)
    return (*above, (context.task_name, context.task_id))


def iterations_of(recorder):
    """Return what ended with an iteration that led to a point, in order."""
    found = (end for path, end in recorder.ended.items() if path[-1][0] == "iteration")
    return [end for end in found if end[-1] is not None]


def check_nested(events):
    """Check that tasks begin once within the task above, and end before it."""
    (first, root), *tasks, last = events
    assert (first, last) == ("setup", ("teardown", root))
    under_way, seen = [], set()
    for event, path in tasks:
        if event == "begin":
            assert path not in seen
            assert path[:-1] == (under_way[-1] if under_way else ())
            under_way.append(path)
            seen.add(path)
        else:
            assert path == under_way.pop()
    assert not under_way
    assert root in seen


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_are_nested_and_change_nothing(kind):
    recorder, plain = Recorder(), small(kind).fit(X, LABELS, WEIGHT)
    watched = small(kind).set_callbacks(recorder).fit(X, LABELS, WEIGHT)
    check_nested(recorder.events)
    np.testing.assert_array_equal(watched.predict(X), plain.predict(X))
    given, y, metadata, fitted = recorder.ended[(("fit", 0),)]
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(y, LABELS)
    np.testing.assert_array_equal(metadata["sample_weight"], WEIGHT)
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_estimators_with_callbacks_are_cloned_and_pickled(kind):
    estimator = small(kind)
    names = set(estimator.get_params())
    estimator.set_callbacks(callback.ScoringMonitor(scoring="r2")).fit(X, LABELS)
    assert set(estimator.get_params()) == names
    assert "_callback_fit_ctx" not in vars(estimator)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.predict(X), estimator.predict(X))
    np.testing.assert_array_equal(clone(estimator).fit(X, LABELS).predict(X), estimator.predict(X))


@pytest.mark.parametrize("kind", [kind for kind in SINGLE if "max_iter" in kind().get_params()])
def test_an_estimator_of_an_iteration_is_that_of_a_fit_with_so_many(kind):
    # The choice of strengths depends on the number of iterations.
    recorder, given = Recorder(), {name: 1.0 for name in ("alpha", "beta") if name in kind().get_params()}
    small(kind, **given).set_callbacks(recorder).fit(X, LABELS)
    found = iterations_of(recorder)
    assert len(found) >= 2
    for index, (*_, fitted) in enumerate(found):
        shorter = small(kind, max_iter=index + 1, **given).fit(X, LABELS)
        np.testing.assert_allclose(fitted.predict(X), shorter.predict(X), rtol=1e-9)


@pytest.mark.parametrize(("kind", "options"), STOPPED)
def test_a_callback_ends_a_fit_with_the_best_point_so_far(kind, options):
    recorder = Recorder(lambda context: context.task_id == 2)
    stopped = small(kind, **options).set_callbacks(recorder).fit(X, LABELS)
    assert stopped.status_ == Status.STOPPED
    check_nested(recorder.events)
    *_, (*_, fitted) = iterations_of(recorder)
    assert len(iterations_of(recorder)) == stopped.n_iter_ == 3
    np.testing.assert_array_equal(stopped.predict(X), fitted.predict(X))


def test_folds_and_candidates_are_tasks():
    recorder = Propagated()
    small(mopn.estimators.PathCV).set_callbacks(recorder).fit(X, LABELS)
    check_nested(recorder.events)
    names = [path[1:] for path in recorder.ended]
    for fold in range(2):
        for index in range(3):
            assert (("fold", fold), ("candidate", index)) in names
    training, _, _, fitted = recorder.ended[("fit", 0), ("fold", 0), ("candidate", 0)]
    assert fitted.predict(training).shape == (len(training),)
    # The last fit is one task of both estimators, and its iterations are below.
    iterations = [name for name in names if len(name) == 2 and name[0] == ("fit", 4)]
    assert iterations[0] == (("fit", 4), ("iteration", 0))


def test_candidates_that_a_callback_leaves_out_are_not_chosen():
    recorder = Recorder(lambda context: (context.task_name, context.task_id) == ("candidate", 1))
    stopped = small(mopn.estimators.PathCV).set_callbacks(recorder).fit(X, LABELS)
    fewer = small(mopn.estimators.PathCV, strengths=(4.0, 1.0)).fit(X, LABELS)
    scores = stopped.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(scores[:2], fewer.cv_results_["mean_test_score"])
    assert scores[2] == -np.inf
    np.testing.assert_array_equal(stopped.predict(X), fewer.predict(X))


def test_a_callback_that_stops_all_ends_the_last_fit():
    stopped = small(mopn.estimators.PathCV).set_callbacks(Propagated(lambda context: True)).fit(X, LABELS)
    assert (stopped.best_estimator_.status_, stopped.best_estimator_.n_iter_) == (Status.STOPPED, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_a_callback_is_raised_after_its_teardown(kind):
    def fail(context):
        raise RuntimeError("no such luck")

    recorder = Recorder(fail)
    with pytest.raises(RuntimeError, match="no such luck"):
        small(kind).set_callbacks(recorder).fit(X, LABELS)
    assert [event for event, _ in recorder.events if event in ("end", "teardown")] == ["end", "teardown"]


@pytest.mark.parametrize("kind", SINGLE)
def test_every_iteration_is_scored(kind):
    name, recorder = "neg_mean_squared_error", Recorder()
    monitor = callback.ScoringMonitor(scoring=name)
    fitted = small(kind).set_callbacks(monitor, recorder).fit(X, LABELS, WEIGHT)
    errors = [
        np.average((one.predict(X) - LABELS) ** 2, weights=WEIGHT)
        for one in (fitted, *(end[-1] for end in iterations_of(recorder)))
    ]
    np.testing.assert_allclose([-row[name] for row in monitor.get_logs().data], errors)


def test_blocks_of_rows_are_not_given_to_callbacks():
    recorder = Recorder()
    blocks = mopn.RowBlocks([X[:30], X[30:]], LABELS)
    small(mopn.estimators.MultiOutputPNClassifier).set_callbacks(recorder).fit(blocks)
    for given, y, metadata, _ in recorder.ended.values():
        assert given is y is metadata is None
    assert recorder.ended[(("fit", 0),)][-1].predict(X).shape == (60,)


@pytest.mark.slow
def test_callbacks_reach_folds_in_other_processes():
    scores = []
    for n_jobs in (1, 2):
        monitor = callback.ScoringMonitor(scoring="accuracy")
        small(mopn.estimators.PathCV, n_jobs=n_jobs).set_callbacks(monitor).fit(X, LABELS)
        scores.append([(row["task_id_path"], row["accuracy"]) for row in monitor.get_logs().data])
    assert scores[0] == scores[1]

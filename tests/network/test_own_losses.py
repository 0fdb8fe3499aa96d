"""Losses of one's own are safe: no gap below the true distance, whatever is wrong, and no inherited fact."""

import numpy as np
import pytest
from own_losses import (
    OWN_LOSSES,
    REGRESSION_LOSSES,
    Huber,
    HuberWithHessian,
    LogCosh,
    OfParent,
    SoftLabels,
    Sparsemax,
    data,
)
from reference import matrix_optimum

import mopn
from mopn.losses.losses import LOSSES, get_loss
from mopn.solvers import FISTA, LBFGS, SGD, ConditionalGradient, CoordinateDescent, InteriorPoint, OutputRefit

every_loss = pytest.mark.parametrize("loss", [*OWN_LOSSES, *REGRESSION_LOSSES], ids=repr)


@every_loss
@pytest.mark.parametrize("form", ["strength", "radius"])
@pytest.mark.slow
def test_no_gap_is_below_the_true_distance(loss, form):
    """The reference is over matrices under a penalty, else the best of all solvers."""
    X, y = data(loss)
    problem = mopn.NetworkProblem(X, y, loss=loss, norm="l1", **{form: 0.5 if form == "strength" else 2.0})
    solvers = [ConditionalGradient(refit=refit) for refit in ("none", "output", "full")]
    solvers.append(ConditionalGradient(refit=OutputRefit(solver=FISTA())))
    runs = [mopn.minimize(problem, solver, tol=1e-4, max_iter=30) for solver in solvers]
    least = min(run.fun for run in runs)
    if form == "strength":
        least = min(least, matrix_optimum(problem.losses, X, "l1", 0.5, iterations=500))
    # What rounding allows in the sums of the least value.
    allowed = len(X) * 3 * np.finfo(float).eps * least
    for run in runs:
        lower = np.asarray(run.trace["fun"]) - np.asarray(run.trace["gap"])
        assert lower.max() <= least + allowed
        assert run.fun - run.gap <= least + allowed
        measured = mopn.certify(problem, run.basis, 0.9 * run.weights)
        assert measured.fun - measured.gap <= least + allowed
    # And the gaps say something.
    assert runs[2].gap <= 1e-3 * runs[2].fun


@every_loss
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf", "squared-l2"])
def test_no_gap_of_a_layer_is_below_the_true_distance(loss, norm):
    X, y = data(loss, seed=1)
    problem = mopn.OutputLayerProblem(np.abs(X), y, loss=loss, norm=norm, strength=0.5)
    solvers = [LBFGS()] if norm == "squared-l2" else [FISTA(), InteriorPoint()] if loss.has_hessian else [FISTA()]
    runs = [mopn.minimize(problem, solver, tol=1e-6, max_iter=2000) for solver in solvers]
    runs.append(mopn.minimize(problem, FISTA(), tol=0, max_iter=2000))
    least = min(run.fun for run in runs)
    allowed = len(X) * 3 * np.finfo(float).eps * least
    for run in runs:
        lower = np.asarray(run.trace["fun"]) - np.asarray(run.trace["gap"])
        assert lower.max() <= least + allowed
        assert run.gap <= 1e-5 * run.fun


# Built-in losses are not inherited


@pytest.mark.parametrize("parent", [type(loss) for loss in LOSSES.values()])
def test_a_built_in_loss_is_kept_not_inherited(parent):
    """Its conjugate and its compiled derivative follow from its own values alone."""
    body = {"value_gradient": Huber.value_gradient}
    for attributes in ({}, body, {"targets": "numbers"}):
        own = type("Own", (parent,), attributes)()
        with pytest.raises(TypeError, match=r"^the loss 'Own' must be a subclass of mopn\.Loss, not of \w+"):
            get_loss(own)


def test_compiled_loops_are_for_built_in_losses():
    X, y = data(Huber())
    problem = mopn.FactorizationProblem(X, y, loss=Huber(), n_components=2, beta=0.1)
    for solver in (CoordinateDescent(), SGD(step=0.01)):
        with pytest.raises(TypeError, match="the loss 'Huber' declares no code"):
            mopn.minimize(problem, solver, max_iter=2)
    assert mopn.minimize(problem, LBFGS(), max_iter=50).fun > 0


def test_an_interior_point_method_names_what_it_lacks():
    X, y = data(Huber())
    with pytest.raises(TypeError, match=r"'barrier'.*the loss 'Huber' has no hessian"):
        mopn.minimize(mopn.OutputLayerProblem(X, y, loss=Huber(), strength=1.0), InteriorPoint())


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "'Bare' must declare targets"),
        ({"targets": "ranks"}, "'Bare' must declare targets.*got 'ranks'"),
        ({"targets": "numbers", "link": "probit"}, "link of the loss 'Bare' must be one of.*'logistic'.*got 'probit'"),
        ({"targets": "numbers", "code": 17}, "the loss 'Bare' must leave out code.*got 17"),
    ],
)
def test_declarations_are_checked(attributes, message):
    body = {name: vars(Huber)[name] for name in ("smoothness", "value_gradient", "conjugate")}
    with pytest.raises(TypeError, match=message):
        get_loss(type("Bare", (mopn.Loss,), body | attributes)())


def test_signs_are_asked_for_by_declaration():
    class Odd(Huber):
        name, targets = "odd", "signs"

    class Binary(Huber):
        name = "binary-in-name-only"

    X, y = data(Huber())
    mopn.NetworkProblem(X, y, loss=Binary(), strength=1.0)
    with pytest.raises(ValueError, match="takes targets -1 and \\+1 only"):
        mopn.NetworkProblem(X, y, loss=Odd(), strength=1.0)


def test_a_model_of_a_loss_of_ones_own_is_made_saved_and_predicts(tmp_path):
    X, y = data(LogCosh())
    network = mopn.NetworkProblem(X, y, loss=LogCosh(), strength=0.5)
    machine = mopn.FactorizationProblem(X, y, loss=LogCosh(), n_components=2)
    solved = mopn.minimize(network, ConditionalGradient(), tol=1e-2), mopn.minimize(machine, LBFGS(), max_iter=20)
    for model in (mopn.Model.from_result(network, solved[0]), mopn.FactorizationModel.from_result(machine, solved[1])):
        model.save(tmp_path / "model.npz")
        again = mopn.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.link is None
        with pytest.raises(TypeError, match="no link"):
            again.predict_proba(X)


def test_a_declared_link_gives_probabilities(tmp_path):
    X, y = data(SoftLabels())
    problem = mopn.NetworkProblem(X, y, loss=SoftLabels(), strength=0.5)
    model = mopn.Model.from_result(problem, mopn.minimize(problem, ConditionalGradient(), tol=1e-2))
    model.save(tmp_path / "model.npz")
    P = mopn.load(tmp_path / "model.npz").predict_proba(X)
    np.testing.assert_allclose(P, 1 / (1 + np.exp(-model.outputs(X))), rtol=1e-12)


def test_classifiers_take_losses_of_ones_own():
    estimators = pytest.importorskip("mopn.estimators")

    class Own(OfParent):
        parent, targets, link = LOSSES["logistic"], "labels", "softmax"

    X, y = data(Sparsemax())
    classifier = estimators.MultiOutputPNClassifier(loss=Own(), strength=0.5, max_units=4).fit(X, y)
    plain = estimators.MultiOutputPNClassifier(strength=0.5, max_units=4).fit(X, y)
    assert classifier.objective_ == pytest.approx(plain.objective_, rel=1e-2)
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    sparse = estimators.MultiOutputPNClassifier(loss=Sparsemax(), strength=0.5, max_units=4).fit(X, y)
    assert not hasattr(sparse, "predict_proba")
    assert sparse.score(X, y) > 0.5


def test_large_counts_and_large_data_do_not_overflow():
    """Outputs of the first trial steps are in the hundreds of thousands."""
    rng = np.random.default_rng(0)
    X = 100.0 * rng.uniform(-1, 1, (40, 3))
    y = rng.poisson(1e4 * np.exp(1e-4 * X[:, 0] * X[:, 1])).astype(float)
    problem = mopn.NetworkProblem(X, y, loss="poisson", norm="l1/l2", strength=1.0, offset=[np.log(y.mean())])
    for refit in ("none", "output", "full"):
        run = mopn.minimize(problem, ConditionalGradient(refit=refit), tol=1e-3, max_iter=8)
        assert np.isfinite(run.fun)
        assert np.isfinite(run.gap)
        assert run.fun <= run.trace["fun"][0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mopn.Huber(0.0), "delta must be a finite number > 0, got 0.0"),
        (lambda: mopn.Huber(np.inf), "delta must be a finite number > 0"),
        (lambda: mopn.Quantile(1.0), "level must be a number between 0 and 1"),
        (lambda: mopn.Quantile(width=-1.0), "width must be a finite number > 0"),
        (lambda: mopn.Quantile("a"), "level must be a number between 0 and 1"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


# -- where the dual side is wrong, and no check of a few rows looks ----------------------------------------------------


N, THRESHOLD = 60, 200.0
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (N, 3))
PLAIN = rng.standard_normal((N, 1))
OUTLIER = np.where(np.arange(N)[:, None] == 31, 1e6, PLAIN)


class Own(HuberWithHessian):
    """A loss of one's own; the methods of its dual side are replaced."""

    threshold = THRESHOLD


def beyond(change):
    """A conjugate that is wrong for slopes beyond a tenth of the threshold, where the check draws none."""

    def conjugate(self, y, G):
        large = np.abs(G).max(axis=1) > 0.1 * self.threshold
        with np.errstate(invalid="ignore"):
            return np.where(large, change(Own.conjugate(self, y, G)), Own.conjugate(self, y, G))

    return {"conjugate": conjugate}


FAULTS = {
    "right": {},
    "scales without limit": {"max_scale": lambda self, y, G: np.inf},
    "scales that are NaN": {"max_scale": lambda self, y, G: np.nan},
    "dual points outside": {"dual_point": lambda self, y, G: 4.0 * G},
    "conjugate too small": beyond(lambda values: values - 1e9),
    "conjugate by a factor": beyond(lambda values: 3.0 * values),
    "conjugate of minus infinity": beyond(lambda values: np.full_like(values, -np.inf)),
    "conjugate of NaN": beyond(lambda values: np.full_like(values, np.nan)),
    "conjugate of 0": beyond(lambda values: 0.0 * values),
}
every_fault = pytest.mark.parametrize("fault", FAULTS)


def own(fault, **attributes):
    return type("Mine", (Own,), FAULTS[fault] | attributes)()


MAKERS = {
    "rows": lambda loss, y, **options: mopn.NetworkProblem(X, y, loss=loss, norm="l1", **options),
    "blocks": lambda loss, y, **options: mopn.NetworkProblem(
        mopn.RowBlocks([X[:20], X[20:]], y), loss=loss, norm="l1", **options
    ),
}
in_rows = MAKERS["rows"]
SITUATIONS = {
    "an outlier": lambda make, loss, **options: make(loss, OUTLIER, **options),
    "an offset": lambda make, loss, **options: make(loss, PLAIN, offset=np.full(1, 1e6), **options),
    # The same object was passed with targets without outliers before.
    "a second use": lambda make, loss, **options: [make(loss, y, **options) for y in (PLAIN, OUTLIER)][-1],
}


def bounds_below(problem, right, units):
    """See that no lower bound is above the objective of any network of the right loss."""

    def objective(k, weight):
        measured = mopn.certify(right, units[:k], np.full((k, 1), weight))
        return measured.fun + measured.rounding

    of_units = {k: min(objective(k, weight) for weight in (0.0, 1.0, 1e3)) for k in (0, 1)}
    for k, weight in ((0, 0.0), (1, 1.0), (1, 1e3)):
        measured = mopn.certify(problem, units[:k], np.full((k, 1), weight))
        assert measured.lower <= min(of_units.values())
        assert measured.restricted_lower <= of_units[k]
    result = mopn.minimize(problem, ConditionalGradient(refit="none"), tol=1e-3, max_iter=3)
    assert result.lower <= min(*of_units.values(), mopn.certify(right, result.basis, result.weights).fun * (1 + 1e-12))
    return result


@every_fault
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
@pytest.mark.parametrize("ratio", [5.0, 0.5, None])
def test_bounds_are_safe_whatever_the_dual_side_says(ratio, situation, make, fault):
    """At multiples of the strength whose solution is zero, and in a ball."""
    right = situation(make, mopn.Huber(THRESHOLD), radius=2e3)
    form = {"radius": 2e3} if ratio is None else {"strength": ratio * right.strength_max()}
    try:
        problem = situation(make, own(fault), **form)
    except ValueError:
        # The check looks at some rows of every block.
        assert fault.startswith("conjugate")
        return
    result = bounds_below(problem, situation(make, mopn.Huber(THRESHOLD), **form), np.eye(3))
    if fault == "right" and ratio == 5.0:
        assert result.gap <= 1e-9 * result.fun


@every_fault
def test_bounds_are_those_of_the_loss_as_it_is_then(fault):
    """A threshold that is lowered between the gradient and the bound, and before both."""
    loss = own(fault, threshold=1e12)
    problem = in_rows(loss, OUTLIER, strength=1.0)
    at = problem.output_gradient(problem.start())
    loss.threshold = THRESHOLD
    assert problem.lower(at, 0.1) == -np.inf
    right = in_rows(mopn.Huber(THRESHOLD), OUTLIER, strength=1.0)
    strength = 5.0 * right.strength_max()
    bounds_below(problem.with_strength(strength), right.with_strength(strength), np.eye(3))


@every_fault
@pytest.mark.parametrize("solver", [FISTA(), InteriorPoint()], ids=lambda solver: type(solver).__name__)
def test_bounds_of_layers_are_safe(solver, fault):
    """Gradients that Newton's method predicts too."""
    options = {"norm": "l1", "strength": 50.0}
    right = mopn.minimize(mopn.OutputLayerProblem(X, OUTLIER, loss=mopn.Huber(THRESHOLD), **options), tol=1e-9)
    layer = mopn.OutputLayerProblem(X, OUTLIER, loss=own(fault), **options)
    result = mopn.minimize(layer, solver, tol=1e-6, max_iter=200)
    assert result.lower <= right.fun * (1 + 1e-12)
    if fault in ("right", "conjugate too small", "scales without limit"):
        assert result.gap <= 1e-3 * result.fun


def test_bounds_of_own_norms_are_safe():
    for fault in FAULTS:
        arguments = {"X": X, "y": OUTLIER[:, 0]}
        ours = mopn.certify_network(np.eye(3)[:1], [[1e3]], loss=own(fault), **arguments)
        right = mopn.certify_network(np.eye(3)[:1], [[1e3]], loss=mopn.Huber(THRESHOLD), **arguments)
        assert ours.lower <= right.objective


def test_a_built_in_object_with_a_method_of_its_own_is_not_trusted():
    loss = mopn.Huber(THRESHOLD)
    loss.max_scale = lambda y, G: np.inf
    problem = in_rows(loss, OUTLIER, strength=1.0)
    right = in_rows(mopn.Huber(THRESHOLD), OUTLIER, strength=5.0 * problem.strength_max())
    bounds_below(problem.with_strength(right.strength), right, np.eye(3))

"""Losses of one's own are safe: no gap below the true distance, no inherited fact about another loss."""

import numpy as np
import pytest
from gaps import check_gaps
from own_losses import OWN_LOSSES, REGRESSION_LOSSES, Huber, LogCosh, OfParent, SoftLabels, Sparsemax, data

import mopn
from mopn.losses.losses import LOSSES, get_loss
from mopn.solvers import FISTA, LBFGS, SGD, ConditionalGradient, CoordinateDescent, InteriorPoint

every_own = pytest.mark.parametrize("loss", OWN_LOSSES, ids=lambda loss: loss.name)


# Gaps


@pytest.mark.covering(1)
@pytest.mark.parametrize("loss", [*OWN_LOSSES, *REGRESSION_LOSSES], ids=repr)
@pytest.mark.parametrize("form", ["strength", "radius"])
@pytest.mark.slow
def test_no_gap_is_below_the_true_distance(loss, form):
    X, y = data(loss)
    problem = mopn.NetworkProblem(X, y, loss=loss, norm="l1", **{form: 0.5 if form == "strength" else 2.0})
    check_gaps(problem, X, form)


@every_own
@pytest.mark.parametrize("norm", ["l1", "l1/l2", "l1/linf"])
def test_no_gap_of_a_layer_is_below_the_true_distance(loss, norm):
    X, y = data(loss, seed=1)
    problem = mopn.OutputLayerProblem(np.abs(X), y, loss=loss, norm=norm, strength=0.5)
    solvers = [FISTA(), InteriorPoint()] if loss.has_hessian else [FISTA()]
    runs = [mopn.minimize(problem, solver, tol=1e-6, max_iter=2000) for solver in solvers]
    runs.append(mopn.minimize(problem, FISTA(), tol=0, max_iter=2000))
    least = min(run.fun for run in runs)
    allowed = len(X) * 3 * np.finfo(float).eps * least
    for run in runs:
        lower = np.asarray(run.trace["fun"]) - np.asarray(run.trace["gap"])
        assert lower.max() <= least + allowed
        assert run.gap <= 1e-5 * run.fun


@every_own
def test_no_gap_of_a_smooth_layer_is_below_the_true_distance(loss):
    X, y = data(loss, seed=2)
    problem = mopn.OutputLayerProblem(np.abs(X), y, loss=loss, norm="squared-l2", strength=0.5)
    run = mopn.minimize(problem, LBFGS(), tol=1e-8, max_iter=500)
    least = min(run.fun, mopn.minimize(problem, FISTA(), tol=0, max_iter=500).fun)
    assert run.success
    assert run.fun - run.gap <= least * (1 + len(X) * 3 * np.finfo(float).eps)


# Built-in losses are not inherited


@pytest.mark.parametrize("parent", [type(loss) for loss in LOSSES.values()])
def test_a_built_in_loss_is_kept_not_inherited(parent):
    """Its conjugate and its compiled derivative are those of its own values alone."""
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


# Models


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

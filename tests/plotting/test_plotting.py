"""Plots show the trace's columns, and nothing else."""

import matplotlib as mpl
import numpy as np
import pytest
from fitted_models import factors

import mopn
from mopn.estimators import MultiOutputFMClassifier
from mopn.plotting import plot_convergence, plot_interactions, plot_unit

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _figures():
    yield
    plt.close("all")


X = np.random.default_rng(0).uniform(-1, 1, (40, 3))


def run(max_iter, strength=0.5):
    problem = mopn.NetworkProblem(X, X[:, 0] * X[:, 1] > 0, strength=strength)
    return mopn.minimize(problem, mopn.solvers.ConditionalGradient(), tol=0, max_iter=max_iter)


@pytest.fixture
def results():
    return [run(3), run(5)]


@pytest.mark.parametrize("x", ["time", "n_iter", "nit"])
@pytest.mark.parametrize("y", ["gap", "relative_gap", "fun", "n_units"])
def test_lines_are_the_columns(results, x, y):
    ax = plot_convergence({"a": results[0], "b": results[1]}, x=x, y=y)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    for line, result in zip(ax.get_lines(), results, strict=True):
        trace = result.trace
        expected = trace["gap"] / trace["fun"] if y == "relative_gap" else trace[y]
        np.testing.assert_array_equal(line.get_xdata(), trace["time" if x == "time" else "nit"])
        np.testing.assert_array_equal(line.get_ydata(), expected)
    assert ax.get_yscale() == ("log" if "gap" in y else "linear")
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_one_result_a_list_given_axes_and_styles(results):
    ax = plt.figure().add_subplot()
    assert plot_convergence(results[0], ax=ax, marker="", linewidth=3) is ax
    (line,) = ax.get_lines()
    assert (line.get_marker(), line.get_linewidth()) == ("", 3)
    assert ax.get_legend() is None
    assert len(plot_convergence(results).get_lines()) == 2


@pytest.mark.parametrize(("seconds", "scale"), [((0.1, 0.9), "linear"), ((0.1, 1.1), "log"), ((0.0, 9.0), "linear")])
def test_times_of_different_orders_have_a_logarithmic_axis(seconds, scale):
    traces = [mopn.solvers.Trace() for _ in seconds]
    for trace, time in zip(traces, seconds, strict=True):
        trace.append(nit=0, time=time, fun=1.0, gap=0.1)
    runs = [mopn.Result(trace=trace) for trace in traces]
    assert plot_convergence(runs).get_xscale() == scale
    assert plot_convergence(runs, x="nit").get_xscale() == "linear"


def test_infinite_gaps_are_left_out():
    assert np.isnan(plot_convergence(run(2, strength=0.0)).get_lines()[0].get_ydata()).all()


@pytest.mark.parametrize(
    ("results", "options", "error", "message"),
    [
        (None, {"y": "speed"}, ValueError, r"y must be .* trace \(nit, time, .*\), or .*'suboptimality', got 'speed'"),
        (None, {"x": np.ones(2)}, TypeError, "x must be the name of a column of the trace, got array"),
        *(
            (results, {}, TypeError, "results must be a Result, a fitted estimator, or a sequence or mapping")
            for results in ([None], 1.0, np.eye(3), {"a": "b"})
        ),
    ],
)
def test_what_cannot_be_drawn(results, options, error, message):
    with pytest.raises(error, match=message):
        plot_convergence(run(3) if results is None else results, **options)


def network(**fields):
    """Three features, two units, two outputs: +2 x_0 x_2 in the first, and x_1 x_2 in the second."""
    return mopn.Model(np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 1.0]]), np.eye(2), kernel="anova", **fields)


def labels(ticks):
    return [label.get_text() for label in ticks]


def test_interactions_of_all_outputs_are_a_heat_map():
    found = mopn.explain.strongest_interactions(network(feature_names=["a", "b", "c"]))
    ax = plot_interactions(found, outputs=["x", "y"])
    (image,) = ax.get_images()
    np.testing.assert_array_equal(image.get_array(), [[2.0, 0.0], [0.0, -1.0]])
    assert (image.norm.vmin, image.norm.vmax) == (-2.0, 2.0)
    assert labels(ax.get_yticklabels()) == ["a × c", "b × c"]
    assert labels(ax.get_xticklabels()) == ["x", "y"]


def test_interactions_of_an_output_are_bars():
    ax = plt.figure().add_subplot()
    second = mopn.FactorizationModel.from_outputs(network(), [0.0, 1.0])
    assert plot_interactions(mopn.explain.strongest_interactions(second), ax=ax) is ax
    assert [bar.get_width() for bar in ax.patches] == [-1.0]
    assert labels(ax.get_yticklabels()) == ["1 × 2"]


@pytest.mark.parametrize("output", [None, 1])
def test_contributions_are_drawn_in_their_order(output):
    model = network()
    if output is not None:
        model = mopn.FactorizationModel.from_outputs(model, np.eye(2)[output])
    found = mopn.explain.contributions(model, [[1.0, 2.0, 3.0]], np.zeros((1, 3)), {"user": [0, 1], "item": [2]})
    ax = plot_interactions(found)
    assert labels(ax.get_yticklabels()) == [" × ".join(item.fields) for item in found]
    drawn = ax.get_images()[0].get_array() if output is None else [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(drawn, [item.value for item in found])


def test_a_unit_is_its_largest_coefficients_or_an_image():
    model = network(classes=np.array(["x", "y"]), feature_names=["a", "b", "c"])
    left, right = plot_unit(model, 0)
    assert labels(left.get_yticklabels()) == ["c", "a", "b"]
    assert [bar.get_width() for bar in left.patches] == [2.0, 1.0, 0.0]
    assert labels(right.get_yticklabels()) == ["x", "y"]
    assert [bar.get_width() for bar in right.patches] == [1.0, 0.0]
    axes = plt.figure().subplots(1, 2)
    assert plot_unit(model, 1, shape=(3, 1), scale=[1.0, 3.0, 2.0], axes=axes)[0] is axes[0]
    np.testing.assert_array_equal(axes[0].get_images()[0].get_array(), [[0.0], [-3.0], [2.0]])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"unit": 2}, ValueError, "unit must be the number of one of 2 units"),
        ({"unit": 0.0}, ValueError, "unit must be the number"),
        ({"shape": (2, 2)}, ValueError, "shape must be .* of 3 pixels"),
        ({"scale": [1.0]}, ValueError, "scale must hold one number per feature, 3"),
        ({"model": 3}, TypeError, "model must be a Model, a FactorizationModel or a fitted estimator, got int"),
        ({"model": factors(degree=2)}, TypeError, "model must be a mopn.Model, or an estimator of networks"),
    ],
)
def test_a_unit_that_cannot_be_drawn(options, error, message):
    with pytest.raises(error, match=message):
        plot_unit(**({"model": network()} | options))


def test_an_estimator_is_drawn_with_its_names_and_the_scales_of_its_fit():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (60, 3)) * [1.0, 1e3, 1.0]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    y = np.array(["no", "yes", "maybe"])[(X[:, 0] * X[:, 1] > 0) + (X[:, 2] > 0).astype(int)]
    classifier = MultiOutputFMClassifier(max_units=1).fit(frame, y)
    unit, weights = plot_unit(classifier)
    # The problem is solved for X divided by its root mean squares, up to a factor.
    h = classifier.model_.basis[0, 2:] * np.sqrt(np.mean(X**2, axis=0)) * np.sqrt(3 / 4)
    drawn = {label.get_text(): bar.get_width() for label, bar in zip(unit.get_yticklabels(), unit.patches, strict=True)}
    np.testing.assert_allclose([drawn[name] for name in "abc"], h, rtol=1e-10)
    assert [label.get_text() for label in weights.get_yticklabels()] == ["maybe", "no", "yes"]
    ax = plot_interactions(classifier)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["maybe", "no", "yes"]
    assert {label.get_text() for label in ax.get_yticklabels()} == {"a × b", "a × c", "b × c"}


def test_nothing_to_plot():
    with pytest.raises(ValueError, match="there is nothing to plot"):
        plot_interactions([])
    with pytest.raises(ValueError, match="outputs must hold 2 labels"):
        plot_interactions(mopn.explain.strongest_interactions(network()), outputs=["x"])


def test_suboptimality_is_above_the_best_proven_bound(results):
    bound = max(np.max(result.trace["fun"] - result.trace["gap"]) for result in results)
    least = min(np.min(result.trace["fun"]) for result in results)
    ax = plot_convergence(results, "n_iter", "suboptimality")
    assert ax.get_yscale() == "log"
    lines = ax.get_lines()
    assert [line.get_ydata() for line in lines[2:]] == [[(least - bound) / bound] * 2]
    for line, result in zip(lines[:2], results, strict=True):
        above = (result.trace["fun"] - bound) / bound
        np.testing.assert_array_equal(line.get_xdata(), result.trace["nit"])
        np.testing.assert_array_equal(line.get_ydata(), np.where(above > 0, above, np.nan))


def test_suboptimality_needs_a_bound():
    problem = mopn.FactorizationProblem(X, X[:, 0] * X[:, 1], n_components=2)
    result = mopn.minimize(problem, mopn.solvers.LBFGS(), max_iter=5, tol=0)
    with pytest.raises(ValueError, match="no run has proven a lower bound of the minimum; take y='fun'"):
        plot_convergence(result, y="suboptimality")

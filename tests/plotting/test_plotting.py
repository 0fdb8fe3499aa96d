"""Plots show the trace's columns, weights of units and interactions, and effects of columns, and nothing else."""

from dataclasses import replace
from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from fitted_models import factors
from matplotlib.collections import QuadMesh
from odd_names import NAMES
from table_models import network as table_network
from table_models import table

import mopn
from mopn.estimators import MultiOutputFMClassifier, TableRegressor
from mopn.explain import drift
from mopn.explain.shapley import Contribution
from mopn.plotting import plot_convergence, plot_drift, plot_effect, plot_interactions, plot_model, plot_pair, plot_unit

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _figures():
    yield
    plt.close("all")


def texts(labels):
    return [label.get_text() for label in labels]


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
    assert texts(ax.get_legend().get_texts()) == ["a", "b"]
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


def test_interactions_of_all_outputs_are_a_heat_map():
    found = mopn.explain.strongest_interactions(network(feature_names=["a", "b", "c"]))
    ax = plot_interactions(found, outputs=["x", "y"])
    (image,) = ax.get_images()
    np.testing.assert_array_equal(image.get_array(), [[2.0, 0.0], [0.0, -1.0]])
    assert (image.norm.vmin, image.norm.vmax) == (-2.0, 2.0)
    assert texts(ax.get_yticklabels()) == ["a × c", "b × c"]
    assert texts(ax.get_xticklabels()) == ["x", "y"]


def test_interactions_of_an_output_are_bars():
    ax = plt.figure().add_subplot()
    second = mopn.FactorizationModel.from_outputs(network(), [0.0, 1.0])
    assert plot_interactions(mopn.explain.strongest_interactions(second), ax=ax) is ax
    assert [bar.get_width() for bar in ax.patches] == [-1.0]
    assert texts(ax.get_yticklabels()) == ["1 × 2"]


@pytest.mark.parametrize("output", [None, 1])
def test_contributions_are_drawn_in_their_order(output):
    model = network()
    if output is not None:
        model = mopn.FactorizationModel.from_outputs(model, np.eye(2)[output])
    found = mopn.explain.contributions(model, [[1.0, 2.0, 3.0]], np.zeros((1, 3)), {"user": [0, 1], "item": [2]})
    ax = plot_interactions(found)
    assert texts(ax.get_yticklabels()) == [" × ".join(item.fields) for item in found]
    drawn = ax.get_images()[0].get_array() if output is None else [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(drawn, [item.value for item in found])


def test_a_unit_is_its_largest_coefficients_or_an_image():
    model = network(classes=np.array(["x", "y"]), feature_names=["a", "b", "c"])
    left, right = plot_unit(model, 0)
    assert texts(left.get_yticklabels()) == ["c", "a", "b"]
    assert [bar.get_width() for bar in left.patches] == [2.0, 1.0, 0.0]
    assert texts(right.get_yticklabels()) == ["x", "y"]
    assert [bar.get_width() for bar in right.patches] == [1.0, 0.0]
    axes = plt.figure().subplots(1, 2)
    assert plot_unit(model, 1, shape=(3, 1), scale=[1.0, 3.0, 2.0], axes=axes)[0] is axes[0]
    np.testing.assert_array_equal(axes[0].get_images()[0].get_array(), [[0.0], [-3.0], [2.0]])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"unit": 2}, ValueError, "unit must be an integer from 0 to 1"),
        ({"unit": 0.0}, ValueError, "unit must be an integer from 0 to 1, got 0.0"),
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
    assert texts(weights.get_yticklabels()) == ["maybe", "no", "yes"]
    ax = plot_interactions(classifier)
    assert texts(ax.get_xticklabels()) == ["maybe", "no", "yes"]
    assert set(texts(ax.get_yticklabels())) == {"a × b", "a × c", "b × c"}


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


# -- of tables: effects of columns, as mopn.explain.effects has them, over the values in the background ----------------


TABLE = table(30, 0)
LINKED = {"classes": np.array(["a", "b", "c"]), "link": "softmax"}
THREE = table_network(TABLE, **LINKED)
ONE = table_network(TABLE, outputs=1, target="vector")
TWO = table_network(TABLE, outputs=2, link="softmax", classes=np.array(["no", "yes"]))
SIGN = table_network(TABLE, outputs=1, link="logistic", classes=np.array(["no", "yes"]))


def frequent(values):
    return [str(value) for _, value in sorted(((-np.sum(values == v), list(values).index(v)), v) for v in set(values))]


def test_curves_of_numbers_above_their_histogram():
    axes = plt.figure().subplots(2)
    axes[0].plot([0.0], [0.0])  # earlier curves stay
    top, bottom = plot_effect(THREE, "age", TABLE, axes=axes)
    found = mopn.explain.effects(THREE, TABLE)
    curves = top.get_lines()[1:4]
    for c, curve in enumerate(curves):
        x, y = curve.get_data()
        np.testing.assert_allclose(y, found.main("age", x)[:, c])
        assert (x[0], x[-1]) == (np.nanmin(TABLE["age"]), np.nanmax(TABLE["age"]))
    dotted = [line.get_ydata()[0] for line in top.get_lines() if line.get_linestyle() == ":" and len(line.get_ydata())]
    np.testing.assert_allclose(dotted, found.main("age", [None])[0])
    missing = np.isnan(TABLE["age"]).sum()
    assert texts(top.get_legend().get_texts()) == ["a", "b", "c", f"missing\n({missing / 30:.0%} of rows)"]
    assert sum(bar.get_height() for bar in bottom.patches) == 30 - missing
    assert (top.get_ylabel(), bottom.get_xlabel()) == ("effect on the output [log-probability]", "age")


@pytest.mark.parametrize("model", [TWO, SIGN], ids=["two outputs", "one output"])
def test_of_two_classes_the_second_is_drawn(model):
    """Its probabilities are for rows in which all other effects are 0: by the link of the constant and a curve."""
    top, _ = plot_effect(model, "size", TABLE, scale="probability")
    (curve,) = top.get_lines()
    x, y = curve.get_data()
    found = mopn.explain.effects(model, TABLE)
    total = np.reshape(found.constant + found.main("size", x), (len(x), -1))
    log_odds = total[:, -1] - (total[:, 0] if model is TWO else 0.0)
    np.testing.assert_allclose(y, 1.0 / (1.0 + np.exp(-log_odds)))
    assert top.get_ylabel() == "probability of yes"
    assert top.get_legend() is None


def test_bars_of_the_most_frequent_categories():
    colors = [f"shade {i}" for i in range(21) for _ in range(2 if i else 3)]
    many, axes = table(len(colors), 0) | {"color": colors}, plt.figure().subplots(2)
    model = table_network(many, **LINKED)
    top, bottom = plot_effect(model, "color", many, axes=axes)
    assert [top, bottom] == list(axes)
    categories = frequent(colors)[:20]
    assert texts(bottom.get_xticklabels()) == categories
    assert bottom.get_xlabel() == "color (20 of 21)"
    np.testing.assert_array_equal([bar.get_height() for bar in bottom.patches], [colors.count(v) for v in categories])
    heights = np.reshape([bar.get_height() for bar in top.patches], (3, 20))
    np.testing.assert_allclose(heights, mopn.explain.effects(model, many).main("color", categories).T)
    assert texts(top.get_legend().get_texts()) == ["a", "b", "c"]


def test_beyond_the_training_data_the_ground_is_grey():
    wide = TABLE | {"size": 2.0 * TABLE["size"]}
    for background, count in ((TABLE, 0), (wide, 2)):
        top, _ = plot_effect(ONE, "size", background)
        assert len(top.patches) == count


DAYS = np.datetime64("2024-01-01") + np.arange(30)


@pytest.mark.parametrize("days", [DAYS, DAYS.tolist()], ids=["NumPy", "Python"])
def test_days_are_dates(days):
    model = table_network(dated := TABLE | {"day": days})
    _, bottom = plot_effect(model, "day", dated)
    bottom.figure.canvas.draw()
    assert "2024-Jan" in bottom.xaxis.get_major_formatter().get_offset()
    ax = plot_pair(model, "size", "day", dated)
    ax.figure.canvas.draw()
    assert "2024-Jan" in ax.yaxis.get_major_formatter().get_offset()


def test_a_pair_of_numbers_is_a_map():
    ax = plot_pair(THREE, "size", "age", TABLE, output="b")
    (mesh,) = (item for item in ax.collections if isinstance(item, QuadMesh))
    corners = mesh.get_coordinates().reshape(-1, 2)
    expected = mopn.explain.effects(THREE, TABLE).pair("size", "age", *corners.T)[:, 1]
    np.testing.assert_allclose(mesh.get_array().ravel(), expected)
    (points,) = (item for item in ax.collections if item is not mesh)
    assert len(points.get_offsets()) == np.isfinite(TABLE["age"]).sum()
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("size", "age", "size × age, output of b")


@pytest.mark.parametrize("columns", [("color", "age"), ("age", "color")])
def test_a_pair_of_numbers_and_categories_is_a_curve_for_each_category(columns):
    ax = plot_pair(ONE, *columns, TABLE)
    found, categories = mopn.explain.effects(ONE, TABLE), frequent(TABLE["color"])
    assert texts(ax.get_legend().get_texts()) == categories
    for category, line in zip(categories, ax.get_lines()[:3], strict=True):
        x, y = line.get_data()
        np.testing.assert_allclose(y, found.pair("age", "color", x, [category] * len(x)))
    assert (ax.get_xlabel(), ax.get_title()) == ("age", "age × color")


def test_a_pair_of_categories_is_a_table_of_the_output_in_which_it_varies_most():
    both = TABLE | {"kind": ["new", "old", None] * 10}
    model = table_network(both, **LINKED)
    found = mopn.explain.effects(model, both)
    c = np.argmax(np.std(found.pair("kind", "color"), axis=0))
    ax = plot_pair(model, "kind", "color", both)
    (image,) = ax.get_images()
    colors, kinds = frequent(TABLE["color"]), ("new", "old", None)
    expected = [[found.pair("kind", "color", [kind], [color])[0, c] for kind in kinds] for color in colors]
    np.testing.assert_allclose(image.get_array(), expected)
    assert texts(ax.get_yticklabels()) == colors
    assert [float(text.get_text()) for text in ax.texts] == [float(f"{v:.2g}") for v in np.ravel(expected)]
    assert (ax.get_ylabel(), ax.get_title()) == ("color", f"kind × color, output of {'abc'[c]}")
    assert "missing" in texts(plot_effect(model, "kind", both)[1].get_xticklabels())


@pytest.mark.parametrize("model", [THREE, ONE, TWO], ids=["three", "one", "two"])
def test_a_model_is_the_sizes_of_its_effects_and_the_largest_of_them(model):
    sizes = mopn.explain.effects(model, TABLE).sizes()
    first, *others = plot_model(model, TABLE)
    assert texts(first.get_yticklabels()) == [" × ".join(item.columns) for item in sizes]
    drawn = first.get_images()[0].get_array() if model is THREE else [bar.get_width() for bar in first.patches]
    expected = [item.deviation if model is THREE else np.atleast_1d(item.deviation)[-1] for item in sizes]
    np.testing.assert_allclose(drawn, expected)
    assert len(others) == len(sizes)
    for ax, size in zip(others, sizes, strict=False):
        assert all(column in ax.get_title() for column in size.columns)
        length = np.linalg.norm(np.atleast_1d(size.deviation)[-1 if model is TWO else slice(None)])
        assert ax.get_title().endswith(f": {length:.3g}")
    mains = [ax.get_ylim() for ax, size in zip(others, sizes, strict=False) if len(size.columns) == 1]
    assert len(set(mains)) <= 1


@pytest.mark.parametrize("with_rows", [True, False])
def test_a_page_says_what_it_leaves_out(with_rows):
    """Numbers outside the central 99 %, and all categories but six; a column of few values is drawn as it is."""
    rng = np.random.default_rng(0)
    heavy = rng.standard_cauchy(2000)
    cities = np.array([f"city {i}" for i in range(20)])[rng.integers(0, 20, 2000)]
    columns = {"heavy": heavy, "city": cities, "few": rng.integers(0, 3, 2000) * 1.0}
    model = table_network(columns, outputs=1)
    background = columns if with_rows else None
    found = mopn.explain.effects(model, background)
    first, *axes = plot_model(model, background)
    (label,) = first.figure.texts
    assert "central 99%" in label.get_text()
    drawn = {size.columns: ax for size, ax in zip(found.sizes(), axes, strict=False)}
    x = drawn["heavy",].get_lines()[0].get_xdata()
    values = found.background.columns[0]  # without rows, typical values that the encoding knows
    np.testing.assert_allclose([x[0], x[-1]], np.quantile(values, [0.005, 0.995]), rtol=0.1)
    assert drawn["few",].get_lines()[0].get_xdata()[[0, -1]].tolist() == [0.0, 2.0]
    assert drawn["city",].get_xlabel() == "6 of 20 categories"
    legends = [ax.get_legend() for columns, ax in drawn.items() if "city" in columns and ax.get_legend()]
    assert {legend.get_title().get_text() for legend in legends} == {"city (6 of 20)"}


def test_a_page_that_leaves_out_nothing_says_nothing():
    columns = {"few": np.tile([0.0, 1.0, 2.0], 30), "city": ["a", "b", "c", "d", "e", "f"] * 15}
    first, *axes = plot_model(table_network(columns, outputs=1), columns)
    assert not first.figure.texts
    assert "categories" not in [ax.get_xlabel() for ax in axes]


@pytest.mark.parametrize(
    ("link", "unit"),
    [("softmax", " [log-probability]"), ("logistic", " [log-odds]"), ("log", " [log of the mean]"), (None, "")],
)
def test_axes_name_the_unit_of_the_outputs(link, unit):
    fields = {"classes": np.array(["a", "b", "c"]), "target": "labels"} if link in ("softmax", "logistic") else {}
    model = table_network(TABLE, link=link, **fields)
    first, *axes = plot_model(model)
    labels = {ax.get_ylabel() for ax in (*axes, plot_effect(model, "size")[0])}
    assert any(label.startswith("effect on the output") and label.endswith(unit) for label in labels)
    assert any(ax.get_ylabel() == f"standard deviation of the effect{unit}" for ax in first.figure.axes)


def test_targets_name_the_outputs():
    """A Series, and the columns of a frame; one of the wrong length is refused."""
    frame = pytest.importorskip("pandas").DataFrame({"price": TABLE["size"], "weight": TABLE["size"] ** 2})
    for y, names in ((frame["price"], ["price"]), (frame, ["price", "weight"]), (frame.to_numpy(), None)):
        model = TableRegressor(strength=mopn.Ratio(0.1), max_units=2).fit(TABLE, y).model_
        assert (names is None) == (model.model.output_names is None)
        top, _ = plot_effect(model, "size")
        if names == ["price"]:
            assert top.get_ylabel() == "effect on the output price"
        elif names is not None:
            assert texts(top.get_legend().get_texts()) == names
    with pytest.raises(ValueError, match="output_names must be a sequence of 2 names, got 1 names"):
        replace(model.model, output_names=["price"])


def test_without_rows_the_distributions_are_those_of_the_encoding():
    """Shares of categories, in percent; and as many effects as with rows, of about their sizes."""
    _, bottom = plot_effect(THREE, "color")
    share = dict(zip(texts(bottom.get_xticklabels()), [bar.get_height() for bar in bottom.patches], strict=True))
    assert share == pytest.approx({color: 100 * np.mean(TABLE["color"] == color) for color in share}, abs=0.1)
    assert bottom.get_ylabel() == "% of rows"
    ax = plot_pair(THREE, "size", "age")
    assert not [item for item in ax.collections if not isinstance(item, QuadMesh)][:-1]
    assert len(plot_model(THREE)) == 1 + len(mopn.explain.effects(THREE, TABLE).sizes())


@pytest.mark.parametrize(
    ("names", "angle"),
    [("abc", 0), ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 0), (["not recommended", "recommended", "priority"], 45)],
)
def test_names_of_outputs_do_not_overlap(names, angle):
    found = [Contribution(("a", "column with a name"), np.arange(len(names))) for _ in range(9)]
    ax = plot_interactions(found, outputs=names)
    ax.figure.canvas.draw()
    labels = ax.get_xticklabels()
    assert {label.get_rotation() for label in labels} == {angle}
    extents = [label.get_window_extent() for label in labels]
    assert angle or all(left.x1 < right.x0 for left, right in pairwise(extents))


def test_interactions_of_tables_are_pairs_of_columns():
    """Weights of products of features, by differences: their lengths over the features of both columns."""
    A = np.zeros((4, 4, 3))
    machine, owners = THREE.model, THREE.encoding.owners
    H = machine.basis[:, 1:]
    for i, j in np.ndindex(len(owners), len(owners)):
        A[owners[i], owners[j]] += (2.0 * (H[:, i] * H[:, j]) @ machine.weights) ** 2
    lengths = np.sqrt(A)
    found = mopn.explain.strongest_interactions(THREE, 2)
    pairs = [("size", "color"), ("size", "age"), ("color", "age")]
    sizes = {pair: lengths[tuple(list(TABLE).index(name) for name in pair)] for pair in pairs}
    order = sorted(pairs, key=lambda pair: -np.linalg.norm(sizes[pair]))
    assert [item.names for item in found] == order[:2]
    for item in found:
        np.testing.assert_allclose(item.weight, sizes[item.names])
    assert found.exact
    assert found.bound == pytest.approx(np.linalg.norm(sizes[order[2]]))
    ax = plot_interactions(THREE)
    assert texts(ax.get_yticklabels()) == [" × ".join(pair) for pair in order]
    assert texts(ax.get_xticklabels()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: plot_effect(ONE, "weight", TABLE), ValueError, "column must be the name or the index"),
        (lambda: plot_effect(ONE, "size", TABLE, scale="odds"), ValueError, "scale must be"),
        (lambda: plot_effect(ONE, "size", TABLE, scale="probability"), TypeError, "numbers predicts no probabilities"),
        (lambda: plot_effect(ONE, "age", TABLE | {"age": [None] * 30}), ValueError, "column 'age' of X has no value"),
        (lambda: plot_pair(ONE, "age", "size", TABLE | {"age": [None] * 30}), ValueError, "no row of X has a value of"),
        (lambda: plot_pair(ONE, "age", "color", TABLE | {"age": [None] * 30}), ValueError, "column 'age' of X has no"),
        (lambda: plot_pair(THREE, "size", "age", TABLE, output="d"), ValueError, "output must be one of .* got 'd'"),
        (lambda: plot_pair(ONE, "size", "size", TABLE), ValueError, "a and b must be two columns"),
        (lambda: plot_unit(ONE), TypeError, "use plot_effect and plot_pair"),
        (
            lambda: mopn.explain.interaction_weights(ONE, [(0, 1)]),
            TypeError,
            "products of columns of a table have no weights",
        ),
        (lambda: mopn.explain.strongest_interactions(ONE, degree=3), ValueError, "leave out degree and scale"),
    ],
)
def test_what_of_tables_is_refused(draw, error, message):
    with pytest.raises(error, match=message):
        draw()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph .* missing from (current )?font")
@pytest.mark.parametrize("names", [NAMES[part::5] for part in range(5)], ids=range(5))
def test_names_are_drawn_as_they_are(names):
    """No formula, and no label that legends leave out."""
    categories = np.array([*names, "b"])[np.arange(30) % (len(names) + 1)]
    columns = {name: TABLE["size"] for name in names} | {"other": categories, "third": TABLE["color"]}
    model = table_network(columns, outputs=len(names), classes=np.array(names), link="softmax")
    drawn = [plot_effect(model, names[0], columns)[0], plot_pair(model, names[1], "other", columns)]
    drawn += [plot_effect(model, "other", columns)[1], plot_pair(model, "other", "third", columns)]
    drawn += [plot_unit(model.model)[0], plot_model(model, columns)[0]]
    strengths = np.arange(float(len(names)))
    drawn.append(plot_interactions([Contribution((name,), strengths) for name in names], outputs=names))
    for axes in drawn:
        axes.figure.canvas.draw()
        shown = [text for text in axes.figure.findobj(mpl.text.Text) if text.get_text()]
        assert all(
            text._preprocess_math(text.get_text())[1] is False for text in shown if "mathdefault" not in str(text)
        )
    legend = [text.replace(r"\$", "$").strip() for text in texts(drawn[0].get_legend().get_texts())]
    assert legend[: len(names)] == [name.strip() for name in names]


@pytest.mark.parametrize("moved", ["number", "category", "date", "missing"])
def test_a_page_of_drift_shows_the_report(moved):
    """Bars and marks are the indices and their noises; the first column is the one that moved."""
    rng = np.random.default_rng(0)

    def rows(n):
        days = np.datetime64("2024-01-01") + rng.integers(0, 60, n)
        return {
            "number": rng.standard_normal(n),
            "missing": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.standard_normal(n)),
            "category": rng.choice(list("abcdefghijklm"), n),
            "date": days,
        }

    model = table_network(rows(300), outputs=1)
    later = rows(200)
    later[moved] = {
        "number": later["number"] + 1.0,
        "missing": np.full(200, np.nan),
        "category": np.full(200, "new $name"),
        "date": later["date"] + 40,
    }[moved]
    found = drift(model, later)
    indices, *columns = plot_drift(found)
    assert [bar.get_width() for bar in indices.patches] == [column.psi for column in found.columns]
    np.testing.assert_array_equal(indices.get_lines()[0].get_xdata(), [column.psi_noise for column in found.columns])
    assert [ax.get_title() for ax in columns] == [column.column for column in found.columns]
    assert columns[0].get_title() == moved
    drawn = dict(zip([column.column for column in found.columns], columns, strict=True))
    highest = max(bar.get_height() for bar in drawn["category"].patches)
    both = np.append(found["category"].shares, found["category"].shares_before)
    assert highest == pytest.approx(100.0 * both.max())
    assert drawn["category"].get_xlabel().startswith("8 of ")
    before, now = drawn["number"].get_lines()
    np.testing.assert_allclose(before.get_ydata(), 100.0 * found["number"].shares_before)
    np.testing.assert_allclose(now.get_ydata(), 100.0 * found["number"].shares)
    if moved == "category":  # a name that is no formula
        columns[0].figure.canvas.draw()


def test_a_page_of_drift_takes_a_report():
    with pytest.raises(TypeError, match="found must be a report"):
        plot_drift([1.0])

"""Plots of tables show effects of columns, as mopn.explain.effects has them, over the values in the background."""

from dataclasses import replace
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from odd_names import NAMES
from table_models import network, table

import mopn
from mopn.estimators import TableRegressor
from mopn.explain.shapley import Contribution
from mopn.plotting import plot_effect, plot_interactions, plot_model, plot_pair, plot_unit

mpl.use("Agg")
import matplotlib.pyplot as plt

X = table(30, 0)
LABELS = {"classes": np.array(["a", "b", "c"]), "link": "softmax"}
THREE = network(X, **LABELS)
ONE = network(X, outputs=1, target="vector")
TWO = network(X, outputs=2, link="softmax", classes=np.array(["no", "yes"]))
SIGN = network(X, outputs=1, link="logistic", classes=np.array(["no", "yes"]))


@pytest.fixture(autouse=True)
def _figures():
    yield
    plt.close("all")


def texts(labels):
    return [label.get_text() for label in labels]


def frequent(values):
    return [str(value) for _, value in sorted(((-np.sum(values == v), list(values).index(v)), v) for v in set(values))]


def test_curves_of_numbers_above_their_histogram():
    axes = plt.figure().subplots(2)
    axes[0].plot([0.0], [0.0])  # what was there before stays
    top, bottom = plot_effect(THREE, "age", X, axes=axes)
    found = mopn.explain.effects(THREE, X)
    curves = top.get_lines()[1:4]
    for c, curve in enumerate(curves):
        x, y = curve.get_data()
        np.testing.assert_allclose(y, found.main("age", x)[:, c])
        assert (x[0], x[-1]) == (np.nanmin(X["age"]), np.nanmax(X["age"]))
    dotted = [line.get_ydata()[0] for line in top.get_lines() if line.get_linestyle() == ":" and len(line.get_ydata())]
    np.testing.assert_allclose(dotted, found.main("age", [None])[0])
    missing = np.isnan(X["age"]).sum()
    assert texts(top.get_legend().get_texts()) == ["a", "b", "c", f"missing\n({missing / 30:.0%} of rows)"]
    assert sum(bar.get_height() for bar in bottom.patches) == 30 - missing
    assert (top.get_ylabel(), bottom.get_xlabel()) == ("effect on the output", "age")


@pytest.mark.parametrize("model", [TWO, SIGN], ids=["two outputs", "one output"])
def test_of_two_classes_the_second_is_drawn(model):
    """Its probabilities are those of rows in which all other effects are 0: by the link of the constant and a curve."""
    top, _ = plot_effect(model, "size", X, scale="probability")
    (curve,) = top.get_lines()
    x, y = curve.get_data()
    found = mopn.explain.effects(model, X)
    total = np.reshape(found.constant + found.main("size", x), (len(x), -1))
    log_odds = total[:, -1] - (total[:, 0] if model is TWO else 0.0)
    np.testing.assert_allclose(y, 1.0 / (1.0 + np.exp(-log_odds)))
    assert top.get_ylabel() == "probability of yes"
    assert top.get_legend() is None


def test_bars_of_the_most_frequent_categories():
    colors = [f"shade {i}" for i in range(21) for _ in range(2 if i else 3)]
    many, axes = table(len(colors), 0) | {"color": colors}, plt.figure().subplots(2)
    model = network(many, **LABELS)
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
    wide = X | {"size": 2.0 * X["size"]}
    for background, count in ((X, 0), (wide, 2)):
        top, _ = plot_effect(ONE, "size", background)
        assert len(top.patches) == count


DAYS = np.datetime64("2024-01-01") + np.arange(30)


@pytest.mark.parametrize("days", [DAYS, DAYS.tolist()], ids=["NumPy", "Python"])
def test_days_are_dates(days):
    model = network(dated := X | {"day": days})
    _, bottom = plot_effect(model, "day", dated)
    bottom.figure.canvas.draw()
    assert "2024-Jan" in bottom.xaxis.get_major_formatter().get_offset()
    ax = plot_pair(model, "size", "day", dated)
    ax.figure.canvas.draw()
    assert "2024-Jan" in ax.yaxis.get_major_formatter().get_offset()


def test_a_pair_of_numbers_is_a_map():
    ax = plot_pair(THREE, "size", "age", X, output="b")
    (mesh,) = (item for item in ax.collections if isinstance(item, QuadMesh))
    corners = mesh.get_coordinates().reshape(-1, 2)
    expected = mopn.explain.effects(THREE, X).pair("size", "age", *corners.T)[:, 1]
    np.testing.assert_allclose(mesh.get_array().ravel(), expected)
    (points,) = (item for item in ax.collections if item is not mesh)
    assert len(points.get_offsets()) == np.isfinite(X["age"]).sum()
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("size", "age", "size × age, output of b")


@pytest.mark.parametrize("columns", [("color", "age"), ("age", "color")])
def test_a_pair_of_numbers_and_categories_is_a_curve_for_each_category(columns):
    ax = plot_pair(ONE, *columns, X)
    found, categories = mopn.explain.effects(ONE, X), frequent(X["color"])
    assert texts(ax.get_legend().get_texts()) == categories
    for category, line in zip(categories, ax.get_lines()[:3], strict=True):
        x, y = line.get_data()
        np.testing.assert_allclose(y, found.pair("age", "color", x, [category] * len(x)))
    assert (ax.get_xlabel(), ax.get_title()) == ("age", "age × color")


def test_a_pair_of_categories_is_a_table_of_the_output_in_which_it_varies_most():
    both = X | {"kind": ["new", "old", None] * 10}
    model = network(both, **LABELS)
    found = mopn.explain.effects(model, both)
    c = np.argmax(np.std(found.pair("kind", "color"), axis=0))
    ax = plot_pair(model, "kind", "color", both)
    (image,) = ax.get_images()
    colors, kinds = frequent(X["color"]), ("new", "old", None)
    expected = [[found.pair("kind", "color", [kind], [color])[0, c] for kind in kinds] for color in colors]
    np.testing.assert_allclose(image.get_array(), expected)
    assert texts(ax.get_yticklabels()) == colors
    assert [float(text.get_text()) for text in ax.texts] == [float(f"{v:.2g}") for v in np.ravel(expected)]
    assert (ax.get_ylabel(), ax.get_title()) == ("color", f"kind × color, output of {'abc'[c]}")
    assert "missing" in texts(plot_effect(model, "kind", both)[1].get_xticklabels())


@pytest.mark.parametrize("model", [THREE, ONE, TWO], ids=["three", "one", "two"])
def test_a_model_is_the_sizes_of_its_effects_and_the_largest_of_them(model):
    sizes = mopn.explain.effects(model, X).sizes()
    first, *others = plot_model(model, X)
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


def test_targets_name_the_outputs():
    """A Series, and the columns of a frame; one of the wrong length is refused."""
    frame = pytest.importorskip("pandas").DataFrame({"price": X["size"], "weight": X["size"] ** 2})
    for y, names in ((frame["price"], ["price"]), (frame, ["price", "weight"]), (frame.to_numpy(), None)):
        model = TableRegressor(strength=mopn.Ratio(0.1), max_units=2).fit(X, y).model_
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
    assert share == pytest.approx({color: 100 * np.mean(X["color"] == color) for color in share}, abs=0.1)
    assert bottom.get_ylabel() == "% of rows"
    ax = plot_pair(THREE, "size", "age")
    assert not [item for item in ax.collections if not isinstance(item, QuadMesh)][:-1]
    assert len(plot_model(THREE)) == 1 + len(mopn.explain.effects(THREE, X).sizes())


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
    network, owners = THREE.model, THREE.encoding.owners
    H = network.basis[:, 1:]
    for i, j in np.ndindex(len(owners), len(owners)):
        A[owners[i], owners[j]] += (2.0 * (H[:, i] * H[:, j]) @ network.weights) ** 2
    lengths = np.sqrt(A)
    found = mopn.explain.strongest_interactions(THREE, 2)
    pairs = [("size", "color"), ("size", "age"), ("color", "age")]
    sizes = {pair: lengths[tuple(list(X).index(name) for name in pair)] for pair in pairs}
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
        (lambda: plot_effect(ONE, "weight", X), ValueError, "column must be the name or the index"),
        (lambda: plot_effect(ONE, "size", X, scale="odds"), ValueError, "scale must be"),
        (lambda: plot_effect(ONE, "size", X, scale="probability"), TypeError, "numbers predicts no probabilities"),
        (lambda: plot_effect(ONE, "age", X | {"age": [None] * 30}), ValueError, "column 'age' of X has no value"),
        (lambda: plot_pair(ONE, "age", "size", X | {"age": [None] * 30}), ValueError, "no row of X has a value of"),
        (lambda: plot_pair(ONE, "age", "color", X | {"age": [None] * 30}), ValueError, "column 'age' of X has no"),
        (lambda: plot_pair(THREE, "size", "age", X, output="d"), ValueError, "output must be one of .* got 'd'"),
        (lambda: plot_pair(ONE, "size", "size", X), ValueError, "a and b must be two columns"),
        (lambda: plot_unit(ONE), TypeError, "use plot_effect and plot_pair"),
        (
            lambda: mopn.explain.interaction_weights(ONE, [(0, 1)]),
            TypeError,
            "products of columns of a table have no weights",
        ),
        (lambda: mopn.explain.strongest_interactions(ONE, degree=3), ValueError, "leave out degree and scale"),
    ],
)
def test_what_is_refused(draw, error, message):
    with pytest.raises(error, match=message):
        draw()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@pytest.mark.parametrize("names", [NAMES[part::5] for part in range(5)], ids=range(5))
def test_names_are_drawn_as_they_are(names):
    """No formula, and no label that legends leave out."""
    categories = np.array([*names, "b"])[np.arange(30) % (len(names) + 1)]
    columns = {name: X["size"] for name in names} | {"other": categories, "third": X["color"]}
    model = network(columns, outputs=len(names), classes=np.array(names), link="softmax")
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

"""Certified flips, against all rows that flips can reach, in floating point and in rational arithmetic."""

import itertools

import numpy as np
import pytest
from fitted_models import KINDS, LINKED, NUMBERS, network, random_model, rational, table
from hypothesis import strategies as st
from properties import generators, tried
from scipy import sparse

import mopn
from mopn.estimators import MultiOutputPNClassifier, TableClassifier
from mopn.explain import certified_flips
from mopn.explain import flips as flips_module

LABELS = np.array(["a", "b", "c"])
KERNELS = ["homogeneous", "anova"]


def all_rows(x, groups, fixed):
    """Every row that flips of x can reach, and the number of flips to each."""
    lone = [(j,) for j in range(len(x)) if j not in {*itertools.chain(*groups), *fixed}]
    columns = [[np.eye(len(g))[i] for i in range(len(g))] for g in groups] + [[np.zeros(1), np.ones(1)]] * len(lone)
    rows, counts = [], []
    for values in itertools.product(*columns):
        z, count = x.copy(), 0
        for group, value in zip([*groups, *lone], values, strict=True):
            count += bool((z[list(group)] != value).any())
            z[list(group)] = value
        rows.append(z)
        counts.append(count)
    return np.array(rows), np.array(counts)


def least(counts):
    return min([*counts.tolist(), np.inf])


def fewest(model, x, groups=(), fixed=()):
    """The least number of flips that changes the prediction of a row, by trying all; inf if none does."""
    rows, counts = all_rows(x, groups, fixed)
    return least(counts[model.predict(rows) != model.predict(x[None])])


def binary_rows(rng, n, d, groups=(), fixed=()):
    X = rng.integers(0, 2, (n, d)).astype(float)
    for group in groups:
        X[:, group] = np.eye(len(group))[rng.integers(0, len(group), n)]
    X[:, list(fixed)] = rng.standard_normal((n, len(fixed)))
    return X


# -- against all rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@tried(10, rng=generators, m=st.integers(1, 4), k=st.integers(0, 6), grouped=st.booleans(), still=st.booleans())
def test_answers_are_exact_for_few_columns(kernel, rng, m, k, grouped, still):
    groups, fixed = [(0, 3), (1, 4, 5), (6,)] if grouped else [], [2] if still else []
    model, X = random_model(rng, 8, m, k, kernel=kernel), binary_rows(rng, 5, 8, groups, fixed)
    found = certified_flips(model, X, one_hot=groups, fixed=fixed, return_attack=True)
    expected = [fewest(model, x, groups, fixed) for x in X]
    columns = 8 - len(fixed) - (3 if grouped else 0)
    np.testing.assert_array_equal(found.found, expected)
    np.testing.assert_array_equal(found.proven, np.minimum(found.found - 1, columns))
    for x, z, count in zip(X, found.attack, found.found, strict=True):
        rows, counts = all_rows(x, groups, fixed)
        (at,) = np.flatnonzero((rows == z).all(axis=1))
        assert counts[at] == (count if np.isfinite(count) else 0)
        assert (model.predict(z[None]) != model.predict(x[None])).item() == np.isfinite(count)


MODELS = {
    "augmented": network(classes=LABELS, augment=True),
    "one output": network(1, classes=np.array([False, True]), kernel="anova", offset=0.5),
    "two outputs": KINDS["two outputs"],
    "lifted": mopn.FactorizationModel(
        np.random.default_rng(3).standard_normal((2, 3, 4)), 2, form="lifted", intercept=0.3, classes=LABELS[:2]
    ),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_kind_of_model(model):
    X = np.array(list(itertools.product([0.0, 1.0], repeat=model.n_features)))
    flips = certified_flips(model, X)
    np.testing.assert_array_equal(flips.found, [fewest(model, x) for x in X])
    np.testing.assert_array_equal(flips.proven, flips.found - 1)


def test_labels_that_are_predicted_apart():
    model = network(3, d=5, target="indicator", augment=True)
    X = binary_rows(np.random.default_rng(0), 6, 5)
    flips = certified_flips(model, X, return_attack=True)
    assert flips.proven.shape == flips.found.shape == (6, 3)
    for c in range(3):
        single = mopn.Model(model.basis, model.weights[:, [c]], augment=True, classes=np.array([0, 1]))
        np.testing.assert_array_equal(flips.found[:, c], certified_flips(single, X).found)
        changed = model.predict(flips.attack[:, c])[:, c] != model.predict(X)[:, c]
        np.testing.assert_array_equal(changed, np.isfinite(flips.found[:, c]))


def test_a_certificate_without_much_work_holds(monkeypatch):
    """Bounds alone, and attacks alone, around the exact answer."""
    rng = np.random.default_rng(0)
    model, X = random_model(rng, 10, k=6), binary_rows(rng, 20, 10)
    exact = certified_flips(model, X)
    monkeypatch.setattr(flips_module, "MAX_ENTRIES_READ", 0)
    rough = certified_flips(model, X, return_attack=True)
    assert (rough.proven <= exact.proven).all()
    assert (rough.found >= exact.found).all()
    assert (rough.proven < exact.proven).any()
    changed = model.predict(rough.attack) != model.predict(X)
    np.testing.assert_array_equal(changed, np.isfinite(rough.found))


def test_many_features():
    """More than all rows can be tried of: random flips, no more of them than are proven, change nothing."""
    rng = np.random.default_rng(1)
    model, X = random_model(rng, 60, k=3), binary_rows(rng, 10, 60)
    flips = certified_flips(model, X, return_attack=True)
    assert (np.abs(flips.attack - X).sum(axis=1) == flips.found).all()
    assert flips.proven.max() >= 2
    for x, proven in zip(X, flips.proven, strict=True):
        which = np.argsort(rng.random((2000, 60)), axis=1)[:, :proven]
        flipped = np.where((np.arange(60)[None, :, None] == which[:, None]).any(axis=2), 1 - x, x)
        assert (model.predict(flipped) == model.predict(x[None])).all()


# -- rounding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
@tried(40, rng=generators, digits=st.integers(-140, 140), near=st.integers(0, 3))
def test_the_winner_in_rational_arithmetic(kernel, rng, digits, near):
    """Outputs of all sizes, units that cancel, and margins that a few flips leave at 0 but for rounding."""
    d = 5
    H, V = rng.standard_normal((3, d)), rng.standard_normal((3, 3)) * 10.0**digits
    H, V = np.vstack([H, H * (1 + 1e-9)]), np.vstack([V, -V]) * 10.0 ** rng.integers(0, 8)
    linear = rng.standard_normal((3, 1 + d)) * 10.0**digits
    x = rng.integers(0, 2, d).astype(float)
    flipped = np.where(np.arange(d) < near, 1 - x, x)
    for _ in range(2):  # the winner there ties with the second, up to rounding
        model = mopn.Model(H, V, kernel, linear=linear, classes=np.arange(3))
        second, first = np.argsort(model.outputs(flipped[None])[0])[-2:]
        linear[second, 0] += np.ptp(model.outputs(flipped[None])[0, [second, first]]) if near else 0.0
    (proven,), (found,), (attack,) = certified_flips(model, x[None], return_attack=True)

    def winner(z):
        squares = (rational(H) @ rational(z)) ** 2
        K = squares if kernel == "homogeneous" else (squares - rational(H) ** 2 @ rational(z) ** 2) / 2
        outputs = K @ rational(V) + rational(linear) @ rational(np.r_[1.0, z])
        return max(range(3), key=outputs.__getitem__)

    expected = model.predict(x[None])[0]
    rows, counts = all_rows(x, (), ())
    for z, count in zip(rows, counts, strict=True):
        if 0 < count <= proven:
            assert winner(z) == model.predict(z[None])[0] == expected
    if np.isfinite(found):
        assert np.abs(attack - x).sum() == found > proven
        assert winner(attack) == model.predict(attack[None])[0] != expected


def test_ties_prove_nothing_and_constants_never_change():
    model = mopn.Model(np.eye(2), np.eye(2), classes=LABELS[:2])
    assert (certified_flips(model, [[1.0, 1.0], [0.0, 0.0]]).proven == 0).all()
    for offset, proven in (([0.0, 0.0], 0), ([0.0, 1.0], 3)):
        constant = mopn.Model(np.ones((2, 3)), np.zeros((2, 2)), offset=np.array(offset), classes=LABELS[:2])
        flips = certified_flips(constant, np.eye(3), return_attack=True)
        assert (flips.proven == proven).all()
        assert np.isinf(flips.found).all()
        np.testing.assert_array_equal(flips.attack, np.eye(3))


def test_coefficients_that_overflow_prove_nothing():
    model = mopn.Model(np.ones((2, 3)), np.full((2, 1), 1.7e308), offset=1.0, classes=LABELS[:2])
    flips = certified_flips(model, np.zeros((1, 3)))
    assert (flips.proven == 0).all()
    assert np.isinf(flips.found).all()
    with pytest.raises(ValueError, match="row 0 of X overflow"):
        certified_flips(model, np.ones((1, 3)))


# -- tables ------------------------------------------------------------------------------------------------------------


def mixed_table(rng, n=1500):
    """Two columns of categories, one with missing values and a rare category, one of a single one, and numbers."""
    colors = np.array(["red", "green", "blue", None], object)[rng.integers(0, 4, n)]
    colors[0] = "seldom"
    shapes = np.array(["round", "square"], object)[rng.integers(0, 2, n)]
    sizes = np.array(["s", "m", "l"], object)[rng.integers(0, 3, n)]
    return {
        "weight": rng.standard_normal(n),
        "color": colors,
        "shape": shapes,
        "unit": np.full(n, "kg", object),
        "size": sizes,
    }


@pytest.fixture(scope="module")
def of_table():
    rng = np.random.default_rng(0)
    X = mixed_table(rng)
    weight = {"red": 1.0, "green": -1.0, "blue": 0.5, None: -0.5, "seldom": 0.0}
    score = X["weight"] * (X["shape"] == "round") + np.array([weight[c] for c in X["color"]]) * (X["size"] != "m")
    return TableClassifier(max_units=8, strength=mopn.Ratio(0.01)).fit(X, np.digitize(score, [-0.5, 0.5])), X


OPTIONS = {"color": ["red", "green", "blue", None, "seldom"], "shape": ["round", "square"], "size": ["s", "m", "l"]}


@pytest.mark.parametrize("fixed", [[], ["shape", "weight"], [1]])
def test_tables_against_all_rows(of_table, fixed):
    classifier, X = of_table
    rows = {name: values[:40] for name, values in X.items()}
    flips = certified_flips(classifier, rows, fixed=fixed, return_attack=True)
    free = [name for i, name in enumerate(X) if name in OPTIONS and name not in fixed and i not in fixed]
    assert classifier.model_.encoding.categories[0].rare == ("seldom",)
    combinations = list(itertools.product(*(OPTIONS[name] for name in free)))
    choices = {
        name: np.array(values, object) for name, values in zip(free, zip(*combinations, strict=True), strict=True)
    }
    for i, label in enumerate(classifier.predict(rows)):
        around = {name: np.repeat(values[[i]], len(combinations)) for name, values in rows.items()} | choices
        counts = sum((choices[name] != rows[name][i]).astype(int) for name in free)
        expected = least(counts[classifier.predict(around) != label])
        assert flips.found[i] == expected
        assert flips.proven[i] == min(expected - 1, len(free))
        changed = sum(flips.attack[name][i] != rows[name][i] for name in OPTIONS)
        assert changed == (expected if np.isfinite(expected) else 0)
    after = classifier.predict(flips.attack) != classifier.predict(rows)
    np.testing.assert_array_equal(after, np.isfinite(flips.found))
    np.testing.assert_array_equal(flips.attack["weight"], rows["weight"])


def test_rows_of_categories_that_are_unknown(of_table):
    """They may change to any that is known; the row is as it is predicted, at the means."""
    classifier, X = of_table
    row = {name: values[:1] for name, values in X.items()} | {"color": np.array(["pink"], object)}
    with pytest.warns(UserWarning, match="'pink'"):
        flips, before = certified_flips(classifier, row, fixed=["shape", "size"]), classifier.predict(row)
    others = {name: np.repeat(values, 4) for name, values in row.items()} | {"color": OPTIONS["color"][:4]}
    assert (flips.found[0] == 1) == (classifier.predict(others) != before).any()
    assert flips.proven[0] == (0 if flips.found[0] == 1 else 1)


def test_many_categories_are_sparse(of_table):
    rng = np.random.default_rng(0)
    X = {"user": rng.integers(0, 300, 3000).astype(str).astype(object), "shop": rng.integers(0, 5, 3000).astype(str)}
    y = (np.array([int(u) % 3 for u in X["user"]]) + (X["shop"] == "1")) > 1
    classifier = TableClassifier(max_units=2, strength=mopn.Ratio(0.01), categorical_features=["user", "shop"]).fit(
        X, y
    )
    rows = {name: values[:20] for name, values in X.items()}
    flips = certified_flips(classifier, rows, return_attack=True)
    assert (flips.found == flips.proven + 1).all()
    assert (classifier.predict(flips.attack) != classifier.predict(rows)).all()


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_every_storage_and_names_of_features():
    rng = np.random.default_rng(0)
    X, y = binary_rows(rng, 60, 6, [(0, 1, 2)]), rng.integers(0, 2, 60)
    pandas = pytest.importorskip("pandas")
    names = ["red", "green", "blue", "wet", "old", "far"]
    model = MultiOutputPNClassifier(max_units=4).fit(pandas.DataFrame(X, columns=names), y)
    expected = certified_flips(model.model_, X, one_hot=[(0, 1, 2)], fixed=[5], return_attack=True)
    frame, colors = pandas.DataFrame(X, columns=names), ("red", "green", "blue")
    for rows in (frame, sparse.csr_array(X), X.astype(int)):
        with np.errstate(all="raise"):
            of = model if rows is frame else model.model_
            flips = certified_flips(of, rows, one_hot=[colors], fixed=["far"], return_attack=True)
        for a, b in zip(flips, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_models_without_flips_say_why():
    X = np.ones((2, 4))
    with pytest.raises(TypeError, match="certified_flips needs a model that predicts classes"):
        certified_flips(KINDS["mean"], X)
    with pytest.raises(TypeError, match="certified_flips needs outputs of degree 2 at most"):
        certified_flips(KINDS["direct"], X)
    with pytest.raises(ValueError, match="no column of several categories"):
        certified_flips(table(NUMBERS, **LINKED), NUMBERS)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"X": [[1, 2, 0, 0]]}, ValueError, r"feature 1 of row 0 of X is 2.0.* in fixed"),
        ({"one_hot": [(0, 1)]}, ValueError, "begins with 0 0 are in row 2"),
        ({"one_hot": [(0, 1)], "fixed": [1]}, ValueError, "in two groups of one_hot"),
        ({"one_hot": [(0, 9)]}, ValueError, "one_hot must be tuples"),
        ({"fixed": ["wet"]}, ValueError, "fixed must be"),
        ({"fixed": None}, ValueError, "fixed must be"),
        ({"fixed": range(4)}, ValueError, "fixed holds all features"),
        ({"return_attack": 1}, TypeError, "return_attack must be True or False"),
    ],
)
def test_bad_arguments_are_named(options, error, message):
    with pytest.raises(error, match=message):
        certified_flips(MODELS["augmented"], **{"X": np.eye(4)} | options)


def test_bad_arguments_of_tables_are_named(of_table):
    with pytest.raises(ValueError, match="one_hot is for models of features"):
        certified_flips(*of_table, one_hot=[(0, 1)])
    with pytest.raises(ValueError, match="fixed must be"):
        certified_flips(*of_table, fixed=["colour"])

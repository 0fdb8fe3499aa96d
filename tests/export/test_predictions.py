"""Exports say how far predictions change, levels, scales and links included; and name parts they cannot write."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from c_library import COMPILER, REALS, call, compiled
from fitted_models import factors, network

import mopn
from mopn.export import to_c, to_onnx
from mopn.export.comparison import predicted_numbers
from mopn.export.quantization import quantize
from mopn.models.table import TableModel
from mopn.tables.learning import learn_encoding
from mopn.tables.reading import read_table

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 4)).astype(np.float32).astype(float)
LEVELS = np.array([1.0, 2.0, 4.0])
MODELS = {
    "a number": network(1, target="vector"),
    "a factorization machine": factors(degree=2, w=np.arange(4.0)),
    "targets of other scales": network(2, linear=np.outer([1.0, 1e-6], np.ones(5))),
    "means": network(1, link="log", target="vector"),
    "classes": network(3, link="softmax", classes=np.array(["a", "b", "c"])),
    "outputs of classes": network(3, classes=np.array(["a", "b", "c"])),
    "ordered levels": network(2, link="logistic", target="ordinal", classes=LEVELS),
}
MODELS["targets of other scales"] = replace(
    MODELS["targets of other scales"], weights=MODELS["targets of other scales"].weights * [1.0, 1e-6]
)
# What to add to outputs, or to levels, so that float32 loses most of their digits.
LEVEL = 1e8


def at_level(kind, level):
    model = MODELS[kind]
    if kind == "ordered levels":
        return replace(model, classes=LEVELS + level)
    if kind == "a factorization machine":
        return replace(model, intercept=level)
    if kind == "targets of other scales":
        return replace(model, offset=level * np.array([1.0, 1e-6]))
    # Means are exponentials, which are too large for doubles here.
    return replace(model, offset=20.0 if kind == "means" and level else level)


def predictions_of(form, model, dtype, folder):
    """Return the answers that callers of an export get for rows of X: probabilities or numbers."""
    width = predicted_numbers(model, model.outputs(X)).shape[1]
    probabilities = model.has_probabilities and model.target != "ordinal"
    if form == "ONNX":
        runtime = pytest.importorskip("onnxruntime")
        graph = to_onnx(model, dtype=dtype, X=X).SerializeToString()
        session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        name = "probabilities" if probabilities else "outputs" if model.target == "labels" else "prediction"
        return session.run([name], {"X": X.astype(dtype)})[0].reshape(len(X), width)
    if COMPILER is None:
        pytest.skip("no C compiler")
    to_c(model, folder / "model.h", dtype=dtype, X=X)
    real, kind = REALS[dtype]
    function = "probabilities" if probabilities else "outputs"
    body = f"model_{function}(x, out);"
    if model.target in ("vector", "ordinal"):
        body = "*out = model_predict(x);"
    library = compiled(folder, f'#include "model.h"\nvoid predictions(const {real} *x, {real} *out) {{ {body} }}\n')
    return np.array([call(library.predictions, x, width, kind) for x in X.astype(kind)])


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize("level", [0.0, LEVEL])
@pytest.mark.parametrize("form", ["C", "ONNX"])
@pytest.mark.parametrize("kind", MODELS)
def test_the_figure_of_the_warning_is_of_predictions(tmp_path, kind, form, level, dtype):
    model = at_level(kind, level)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = predictions_of(form, model, dtype, tmp_path).astype(float)
    exact = predicted_numbers(model, model.outputs(X))
    ranges = np.ptp(exact, axis=0)
    if model.target == "labels":
        ranges[:] = 1.0 if model.has_probabilities else ranges.max()
    change = (np.abs(found - exact) / ranges).max()
    if not level or dtype == "float64" or kind == "means":
        assert not said
        assert change < 1e-3
        return
    (warning,) = said
    text = str(warning.message)
    assert warning.filename == __file__
    assert f"in float32 the {'probabilities' if kind == 'classes' else 'predictions'} of 200 rows of X" in text
    assert change > 0.05
    if "more than 10 times" in text:
        assert change > 10
    else:
        told = float(text.split("up to ")[1].split("%")[0]) / 100
        assert told / 3 < change < 3 * told
    assert ("subtract from the levels in y" if kind == "ordered levels" else "fit y without its level") in text


# -- integers ----------------------------------------------------------------------------------------------------------

BITS = (RNG.random((500, 20)) < 0.2).astype(float)
REAL = RNG.standard_normal((500, 20))


@pytest.mark.parametrize("level", [LEVEL, -1e12, 1e-8])
@pytest.mark.parametrize("kind", ["a number", "a factorization machine", "targets of other scales", "classes"])
def test_levels_cost_integers_no_digits(kind, level):
    plain, moved = (quantize(at_level(kind, at), X, "int16") for at in (0.0, level))
    size = np.ptp(plain.outputs(X), axis=0)
    errors = [
        (np.abs(integers.outputs(X) - integers.model.outputs(X)).max(axis=0) / size).max()
        for integers in (plain, moved)
    ]
    # The model's own outputs are doubles, whose steps at 1e12 are 1e-4.
    rounding = abs(level) * np.finfo(float).eps / size.min()
    assert errors[1] <= 2.0 * errors[0] + 4.0 * rounding
    assert (np.abs(moved.outputs(X) - moved.model.outputs(X)) <= moved.bounds(X)).all()
    assert moved.levels.shape == moved.exponents.shape == size.shape
    if kind == "classes":
        assert len(set(moved.levels)) == len(set(moved.exponents)) == 1


@pytest.mark.parametrize("rows", [BITS, REAL, np.rint(1000 * REAL)], ids=["bits", "real", "whole"])
@pytest.mark.parametrize("kernel", ["homogeneous", "anova"])
def test_int16_has_a_small_part_of_the_error_of_int8(kernel, rows):
    for augment in (False, True):
        model = network(3, d=20, k=10, kernel=kernel, augment=augment, classes=np.arange(3))
        scaled = replace(model, basis=model.basis / rows.std())
        errors = [quantize(scaled, rows, dtype).agreement.error for dtype in ("int8", "int16")]
        assert errors[1] < errors[0] / 30


@pytest.mark.parametrize("target", ["labels", "vector"])
def test_lost_classes_are_said_when_the_header_is_written(tmp_path, target):
    """A weight that is a thousandth of others, which cancel, has no step of int8; it has some of int16."""
    linear = np.array([[0.0, 1000.0, -1000.0, 1.0]])
    options = {"classes": np.array(["no", "yes"])} if target == "labels" else {}
    model = network(1, d=3, k=0, linear=linear, target=target, **options)
    same = RNG.integers(0, 9, 100).astype(float)
    rows = np.column_stack([same, same, RNG.choice([-3.0, -2.0, 2.0, 3.0], 100)])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for dtype in ("int16", "int8"):
            integers = to_c(model, tmp_path / f"{dtype}.h", arithmetic="integer", dtype=dtype, X=rows)
            head = (tmp_path / f"{dtype}.h").read_text().partition("*/")[0]
            assert " ".join(str(integers.agreement).split()) in " ".join(head.split())
    (warning,) = said
    assert warning.filename == __file__
    assert "in integers with parameters of int8" in str(warning.message)
    assert ("change class" if target == "labels" else "of their range") in str(warning.message)
    assert "take dtype='int16'" in str(warning.message)


def test_rows_beyond_the_ranges_are_told_apart():
    integers = quantize(MODELS["outputs of classes"], X, "int8")
    inside, beyond = X[:30], 3.0 * X[:20]
    both = integers.agree(np.vstack([inside, beyond]))
    clamped = integers.inputs.clamped(beyond)
    assert not integers.agreement.clamped
    assert both.clamped == clamped.sum() > 0
    within = integers.agree(np.vstack([inside, beyond[~clamped]]))
    assert (both.inner_bound, both.inner_error) == (within.bound, within.error)
    assert both.bound > 2 * both.inner_bound
    assert f"{both.clamped} rows have features beyond the ranges" in str(both)
    assert "spread" in str(within)
    assert "beyond" not in str(within)
    assert integers.c_inputs(X).dtype == integers.inputs.dtype


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_headers_tell_the_scales_of_outputs(tmp_path, dtype):
    model = replace(MODELS["targets of other scales"], offset=np.array([LEVEL, 0.0]))
    integers = to_c(model, tmp_path / "model.h", arithmetic="integer", dtype=dtype, X=X)
    library = compiled(
        tmp_path,
        '#include "model.h"\n#include <math.h>\n'
        "void outputs(const model_input *x, double *out) {\n"
        "    static const double levels[] = MODEL_LEVELS;\n    static const int exponents[] = MODEL_EXPONENTS;\n"
        "    int32_t found[MODEL_OUTPUTS];\n    model_outputs(x, found);\n"
        "    for (int c = 0; c < MODEL_OUTPUTS; c++) out[c] = ldexp(found[c], -exponents[c]) + levels[c];\n}\n",
    )
    found = [call(library.outputs, x, 2, float) for x in integers.c_inputs(X)]
    assert np.array_equal(found, integers.outputs(X))


# -- names -------------------------------------------------------------------------------------------------------------


def table_of(columns, texts=("a", "b"), classes=("x", "y")):
    """Return a model of a table with columns of numbers, the last one of texts, and rows of it."""
    rows = {name: RNG.standard_normal(60).tolist() for name in columns[:-1]}
    rows[columns[-1]] = RNG.choice(np.array(texts, object), 60).tolist()
    encoding = learn_encoding(read_table(rows), curves=3, smoothness=1.0)
    features = network(2, d=encoding.n_features, augment=True, classes=np.array(classes), link="softmax")
    return TableModel(features, encoding), rows


@pytest.mark.parametrize(
    ("columns", "inputs"),
    [
        (["a", "X", "Gather_5", "constant_0"], ["a", "X", "Gather_5", "constant_0"]),
        (["prediction", "probabilities", "outputs"], ["prediction_", "probabilities_", "outputs_"]),
        (["outputs", "outputs_", "b"], ["outputs__", "outputs_", "b"]),
        (["", "_", "prediction_"], ["__", "_", "prediction_"]),
    ],
)
def test_inputs_keep_their_names_or_it_is_said(columns, inputs):
    runtime = pytest.importorskip("onnxruntime")
    model, rows = table_of(columns)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        graph = to_onnx(model, dtype="float64")
    assert [value.name for value in graph.graph.input] == inputs
    changed = [(a, b) for a, b in zip(columns, inputs, strict=True) if a != b]
    assert len(said) == bool(changed)
    for a, b in changed:
        assert f"{a!r} is {b!r}" in str(said[0].message)
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    cells = [np.array(rows[name], object if name == columns[-1] else float)[:, None] for name in columns]
    (found,) = session.run(["outputs"], dict(zip(inputs, cells, strict=True)))
    np.testing.assert_allclose(found, model.outputs(rows), rtol=1e-9)


BAD = "caf\udce9"
UNDECODED = {
    "class": lambda: network(1, classes=np.array([BAD, "tea"])),
    "feature name": lambda: network(1, classes=np.array(["a", "b"]), feature_names=[BAD, "b", "c", "d"]),
    "column": lambda: table_of(["a", BAD])[0],
    "category of column 't'": lambda: table_of(["a", "t"], (BAD, "b"))[0],
}


@pytest.mark.parametrize("write", ["to_c", "integers", "to_onnx"])
@pytest.mark.parametrize("what", UNDECODED)
def test_bytes_that_were_not_decoded_are_named(tmp_path, what, write):
    model = UNDECODED[what]()
    if write == "integers" and model.encoding is not None:
        pytest.skip("tables have no integers")
    if write == "to_onnx":
        pytest.importorskip("onnx")
    exports = {
        "to_c": lambda: to_c(model, tmp_path / "model.h"),
        "integers": lambda: to_c(model, tmp_path / "model.h", arithmetic="integer", X=X),
        "to_onnx": lambda: to_onnx(model),
    }
    with pytest.raises(ValueError, match="UTF-8 cannot hold") as error:
        exports[write]()
    assert f"the {what} {BAD!r} has a character" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_bytes_that_were_not_decoded_are_shown_escaped(tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    model, rows = table_of([BAD, "t"], (BAD, "b"), (BAD, "tea"))
    figure = mopn.plotting.plot_effect(model, "t", rows)[0].figure
    figure.savefig(tmp_path / "effect.svg")
    plt.close(figure)
    for thing in (model.encoding, mopn.explain.effects(model, rows)):
        for text in (repr(thing), thing._repr_html_()):
            assert text.encode().decode() == text

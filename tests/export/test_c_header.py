"""Headers of C, compiled with every warning as an error, against the models."""

import ctypes
import re
import shutil

import numpy as np
import pytest
from c_library import COMPILER, REALS, c_rows, call, compiled
from fitted_models import KINDS, NUMBER_ROWS, TABLE_ROWS, TABLES, factors, network, quietly
from numpy.testing import assert_allclose

from mopn.export import to_c

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

X = np.random.default_rng(0).uniform(-1, 1, (50, 4))
TOLERANCES = {"float32": 1e-4, "float64": 1e-11}
NAMES = {kind: re.sub("[^a-z]", "_", kind) for kind in KINDS}
every_kind = pytest.mark.parametrize("kind", KINDS)


def source(model, name, real):
    """Functions of a library that call the functions of a header."""
    lines = [
        f'#include "{name}.h"',
        f"int test_{name}(void) {{ return {name}_self_test(); }}",
        f"void outputs_{name}(const {real} *x, {real} *out) {{ {name}_outputs(x, out); }}",
    ]
    if model.has_probabilities:
        lines.append(f"void probabilities_{name}(const {real} *x, {real} *p) {{ {name}_probabilities(x, p); }}")
    if model.target == "indicator":
        lines.append(f"void predict_{name}(const {real} *x, int *labels) {{ {name}_predict(x, labels); }}")
    elif model.target == "outputs" and model.predicts_means:
        lines.append(f"void predict_{name}(const {real} *x, {real} *means) {{ {name}_predict(x, means); }}")
    elif model.target != "outputs":
        kind = "int" if model.target == "labels" else real
        lines.append(f"{kind} predict_{name}(const {real} *x) {{ return {name}_predict(x); }}")
    if model.target == "labels":
        kind = {"O": "const char *", "U": "const char *", "f": "double "}.get(model.classes.dtype.kind, "long long ")
        lines.append(f"{kind}class_{name}(int i) {{ return {name}_classes[i]; }}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module", params=REALS)
def library(request, tmp_path_factory):
    """The headers of all models in one library, and their dtype."""
    folder, dtype = tmp_path_factory.mktemp("headers"), request.param
    for kind, name in NAMES.items():
        to_c(KINDS[kind], folder / f"{name}.h", name=name, dtype=dtype)
    text = "".join(source(KINDS[kind], name, REALS[dtype][0]) for kind, name in NAMES.items())
    return compiled(folder, text), dtype


def rows_of(model, dtype):
    return X[:, : model.n_features].astype(REALS[dtype][1])


@every_kind
def test_functions_return_what_the_methods_return(library, kind):
    """Predictions follow from the functions' own outputs, as rounding may decide between classes nearly as likely."""
    functions, dtype = library
    model, name, real = KINDS[kind], NAMES[kind], REALS[dtype][1]
    rows, close = rows_of(model, dtype), {"rtol": TOLERANCES[dtype], "atol": TOLERANCES[dtype]}
    assert functions[f"test_{name}"]() == 0

    def of_rows(function, width, kind=real):
        return np.array([call(functions[f"{function}_{name}"], x, width, kind) for x in rows])

    expected = model.outputs(rows)
    m = expected.shape[1]
    outputs = of_rows("outputs", m)
    assert_allclose(outputs, expected, **close)
    if model.has_probabilities:
        probabilities = model.predict_proba(rows)
        assert_allclose(of_rows("probabilities", probabilities.shape[1]), probabilities, **close)
    if model.target == "outputs":
        assert hasattr(functions, f"predict_{name}") == model.predicts_means
        if model.predicts_means:
            assert_allclose(of_rows("predict", m), model.predict(rows), rtol=TOLERANCES[dtype])
    elif model.target == "indicator":
        assert np.array_equal(of_rows("predict", m, np.int32), outputs > 0)
    else:
        predict = functions[f"predict_{name}"]
        if model.target != "labels":
            predict.restype = np.ctypeslib.as_ctypes_type(real)
        found = np.array([predict(ctypes.c_void_p(x.ctypes.data)) for x in rows])
        if model.target == "labels":
            assert np.array_equal(found, outputs.argmax(axis=1) if m > 1 else outputs[:, 0] > 0)
            check_labels(functions[f"class_{name}"], model.classes)
        else:
            assert_allclose(found, model.predict(rows), **close)


def check_labels(get, classes):
    strings = classes.dtype.kind in "OU"
    get.restype = {"f": ctypes.c_double}.get(classes.dtype.kind, ctypes.c_char_p if strings else ctypes.c_longlong)
    expected = [label.encode() if strings else label for label in classes.tolist()]
    assert [get(i) for i in range(len(classes))] == expected


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        (np.array(["2020-01-01", "1066-10-14"], dtype="M8[D]"), ['"2020-01-01"', '"1066-10-14"']),
        (np.array([b"a\xff", b"b"]), ['"a\\377"', '"b"']),
        (np.array([2**64 - 1, 0], dtype=np.uint64), ["18446744073709551615ULL", "0"]),
    ],
    ids=["dates", "bytes", "unsigned"],
)
def test_labels_of_other_types(tmp_path, labels, texts):
    to_c(network(2, classes=labels), tmp_path / "model.h")
    text = (tmp_path / "model.h").read_text()
    assert re.search(r"model_classes\[\] = \{\s+(.*)\};", text)[1].split(", ") == texts


OF_NETWORK, OF_ENCODING = ("constant", "v0", "u0", "b0", "squares"), ("values_0", "values_2", "knots_2", "means_6")


@pytest.mark.parametrize("array", [*OF_NETWORK, *OF_ENCODING])
def test_the_self_test_finds_a_parameter_that_has_changed(tmp_path, array):
    to_c((KINDS["labels"] if array in OF_NETWORK else TABLES["categories"]), tmp_path / "model.h")
    text = (tmp_path / "model.h").read_text()
    changed, count = re.subn(rf"(model_{array}\[\] = {{\s+-?)", r"\g<1>1", text)
    assert count == 1
    (tmp_path / "model.h").write_text(changed)
    assert compiled(tmp_path, '#include "model.h"\nint test(void) { return model_self_test(); }\n').test() > 0


@pytest.mark.parametrize("model", [KINDS["levels"], TABLES["categories"]], ids=["features", "columns"])
def test_a_header_is_also_one_of_c_plus_plus(tmp_path, model):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no compiler of C++")
    to_c(model, tmp_path / "model.h")
    text = '#include "model.h"\nextern "C" int test(void) { return model_self_test(); }\n'
    assert compiled(tmp_path, text, compiler, "-x", "c++").test() == 0


def test_headers_need_no_allocation_and_share_a_program(tmp_path):
    for name in ("one", "two"):
        to_c(KINDS["fourth"], tmp_path / f"{name}.h", name=name)
    text = (tmp_path / "one.h").read_text()
    assert set(re.findall("#include (.*)", text)) == {"<math.h>"}
    assert "alloc" not in text
    both = '#include "one.h"\n#include "two.h"\n#include "one.h"\n'
    library = compiled(tmp_path, f"{both}int test(void) {{ return one_self_test() + two_self_test(); }}\n")
    assert library.test() == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_of_extreme_outputs(tmp_path, dtype):
    """One class against the rest, whose probabilities all underflow, and classes whose exponentials overflow."""
    for link, offset in (("logistic", [-2000.0, -2001.0]), ("softmax", [2001.0, 2000.0])):
        model = network(2, k=0, link=link, classes=np.array([0, 1]), offset=np.array(offset))
        (tmp_path / link).mkdir()
        to_c(model, tmp_path / link / f"{link}.h", dtype=dtype, name=link)
        library = compiled(tmp_path / link, source(model, link, REALS[dtype][0]))
        row = rows_of(model, dtype)[0]
        assert_allclose(call(library[f"probabilities_{link}"], row, 2, row.dtype), model.predict_proba(X)[0], rtol=1e-4)


@pytest.mark.parametrize("name", ["", "1st", "a-b", "ä", 5])
def test_names_are_identifiers(tmp_path, name):
    with pytest.raises(ValueError, match="name must be an identifier of C"):
        to_c(network(), tmp_path / "model.h", name=name)


def test_a_header_says_its_size(tmp_path):
    """The bytes of all constants, without the self-test and names."""
    for dtype, size in (("float32", 4), ("float64", 8)):
        to_c(network(2, d=4, k=5), tmp_path / "model.h", dtype=dtype)
        numbers = 2 + 5 * 4 + 5 + 5 * 2  # constants, forms, their biases, and weights
        assert f"Flash: {numbers * size:,} bytes of constants" in (tmp_path / "model.h").read_text()


def test_what_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="dtype must be one of 'float32', 'float64', got 'int16'"):
        to_c(network(), tmp_path / "model.h", dtype="int16")
    with pytest.raises(ValueError, match="numbers beyond float32; use dtype='float64'"):
        to_c(factors(degree=2, intercept=1e300), tmp_path / "model.h")
    with pytest.raises(TypeError, match="ordered levels has no link"):
        to_c(network(2, target="ordinal", classes=np.arange(3.0)), tmp_path / "model.h")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-3), ("float64", 1e-6)])
def test_a_fitted_model_of_digits(tmp_path, digits_model, dtype, tolerance):
    model, X = digits_model
    to_c(model, tmp_path / "model.h", dtype=dtype)
    functions, real = compiled(tmp_path, source(model, "model", REALS[dtype][0])), REALS[dtype][1]
    assert functions.test_model() == 0
    rows = X.astype(real)
    for method, expected in (("outputs", model.outputs(X)), ("probabilities", model.predict_proba(X))):
        found = [call(functions[f"{method}_model"], x, 10, real) for x in rows]
        assert_allclose(found, expected, atol=tolerance)


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", REALS)
@pytest.mark.parametrize(("kind", "columns"), [("numbers", NUMBER_ROWS), ("categories", TABLE_ROWS)])
def test_rows_of_a_table(tmp_path, kind, columns, dtype):
    model, tolerance, (name, real) = TABLES[kind], TOLERANCES[dtype], REALS[dtype]
    to_c(model, tmp_path / "model.h", dtype=dtype)
    encode = f"void encode(const {name} *x, {name} *z) {{ model_encode(x, z); }}\n"
    library = compiled(tmp_path, source(model, "model", name) + encode)
    assert library.test_model() == 0
    rows = c_rows(model, columns, real)
    Z = quietly(model.encoding.encode, columns)
    assert_allclose([call(library.encode, x, Z.shape[1], real) for x in rows], Z, atol=tolerance)
    # Sums of the squares of many features, with random signs.
    outputs = quietly(model.outputs, columns)
    found = np.array([call(library.outputs_model, x, 3, real) for x in rows])
    assert_allclose(found, outputs, atol=tolerance * np.abs(outputs).max())
    assert [library.predict_model(ctypes.c_void_p(x.ctypes.data)) for x in rows] == found.argmax(axis=1).tolist()


def test_columns_and_categories_have_names(tmp_path):
    """Identifiers of their own, though texts are alike, and have characters that no identifier has."""
    to_c(TABLES["categories"], tmp_path / "model.h")
    numbers = "MODEL_CITY, MODEL_CITY_BERN, MODEL_CITY_SAO_PAULO, MODEL_CITY_SAO_PAULO_2, MODEL_CITY_2, MODEL_CITY_A"
    library = compiled(
        tmp_path,
        '#include "model.h"\n'
        f"static const int numbers[] = {{{numbers}, MODEL_CITY_UNKNOWN - MODEL_CITY_MISSING}};\n"
        "int number(int i) { return numbers[i]; }\n"
        "const char *column(int j) { return model_columns[j]; }\n"
        "const char *city(int i) { return model_categories_6[i]; }\n",
    )
    library.column.restype = library.city.restype = ctypes.c_char_p
    j, *found = (library.number(i) for i in range(7))
    assert [library.column(i).decode() for i in range(11)] == list(TABLE_ROWS)
    assert library.column(j) == b"city"
    texts = [library.city(i).decode() for i in found[:-1]]
    assert texts[0] == "Bern"
    assert set(texts[1:3]) == {"S\u00e3o Paulo", "s\u00e3o paulo"}
    assert texts[3] in ("\u6771\u4eac", "\u5317\u4eac")
    assert texts[4] == 'a "*/" ??/'
    assert found[-1] == 1

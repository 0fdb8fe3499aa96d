"""Headers in integers: compiled C against the simulation bit for bit, and both against the model within the bound."""

import ctypes
import re
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from c_library import COMPILER, compiled
from fitted_models import KINDS, SECOND, TABLES, network
from hypothesis import given, settings
from hypothesis import strategies as st

import mopn
from mopn.export import to_c
from mopn.export.quantization import quantize

# Cross compilers, where they are: no library, only the functions of the compiler itself.
CROSS = {
    "cortex-m0": ("arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb"),
    "cortex-m4": ("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
    "avr": ("avr-gcc", "-mmcu=atmega328p"),
}
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")

DEGREE_TWO = [kind for kind in SECOND if KINDS[kind].target != "ordinal" and not KINDS[kind].predicts_means]
DTYPES = ("int8", "int16")


def rows(kind, d, n=200, seed=0):
    """Rows of whole numbers, of real ones, of both, and of such as hardly vary or differ in size by far."""
    rng = np.random.default_rng(seed)
    whole, real, odd = rng.integers(0, 17, (n, d)).astype(float), rng.standard_normal((n, d)), np.arange(d) % 2 > 0
    if kind == "sizes":
        return np.where(odd, rng.integers(0, 3, (n, d)), rng.integers(-4095, 4096, (n, d))).astype(float)
    made = {"whole": whole, "signed": whole - 8.0, "real": real, "mixed": np.where(odd, whole, real)}
    return (made | {"offset": 1013.0 + real})[kind]


ROWS = ("whole", "signed", "real", "mixed", "offset", "sizes")


def library(folder, model, *command):
    """The functions of a header in a library."""
    predict = {
        "labels": "int predict(const model_input *x) { return model_predict(x); }\n",
        "indicator": "void predict(const model_input *x, int *labels) { model_predict(x, labels); }\n",
    }
    text = (
        '#include "model.h"\n'
        "void outputs(const model_input *x, int32_t *out) { model_outputs(x, out); }\n"
        "int check(const model_input *x) { return model_check(x); }\n"
        "int test(void) { return model_self_test(); }\n"
    )
    return compiled(folder, text + predict.get(model.target, ""), *command)


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def c_outputs(functions, integers, X, m):
    """Outputs in C of rows as the header says that they are given."""
    given = integers.c_inputs(X)
    out = np.full((len(X), m), 7, np.int32)
    for row, values in zip(given, out, strict=True):
        functions.outputs(pointer(row), pointer(values))
    return out


@needs_compiler
@pytest.mark.filterwarnings("ignore:arithmetic. in integers with parameters of int8")
@pytest.mark.parametrize("data", ROWS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", DEGREE_TWO)
def test_c_computes_the_simulation_bit_for_bit(tmp_path, kind, dtype, data):
    """Also for rows out of the ranges, which it names, and which make no sum leave 32 bits."""
    model = KINDS[kind]
    X = rows(data, model.n_features)
    integers = to_c(model, tmp_path / "model.h", arithmetic="integer", dtype=dtype, X=X)
    functions, m = library(tmp_path, model), model.outputs(X[:1]).shape[1]
    assert functions.test() == 0
    beyond = np.vstack([rows(data, model.n_features, 20, 1), 3.0 * X[:10], -50.0 * X[:10], np.full_like(X[:1], 1e9)])
    for block in (X, beyond):
        assert np.array_equal(c_outputs(functions, integers, block, m), integers.integer_outputs(block))
        given = integers.c_inputs(block)
        if model.target == "labels":
            found = [model.classes[functions.predict(pointer(row))] for row in given]
            assert found == integers.predict(block).tolist()
        elif model.target == "indicator":
            labels = np.zeros(m, np.int32)
            for row, expected in zip(given, integers.predict(block), strict=True):
                functions.predict(pointer(row), pointer(labels))
                assert labels.tolist() == expected.tolist()
    given = integers.c_inputs(X)
    assert [functions.check(pointer(row)) for row in given] == [0] * len(X)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", DEGREE_TWO)
def test_outputs_are_within_their_bounds(kind, dtype):
    model = KINDS[kind]
    for data in ROWS:
        X = rows(data, model.n_features)
        integers = quantize(model, X, dtype)
        for block in (X, rows(data, model.n_features, 50, 1), 2.0 * X):
            assert np.all(np.abs(integers.outputs(block) - model.outputs(block)) <= integers.bounds(block))
        spread = np.abs(model.outputs(X)).max()
        assert integers.agreement.error <= (0.1 if dtype == "int8" else 0.01) * spread
        assert integers.agreement.error <= integers.agreement.bound


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", DEGREE_TWO)
def test_what_overflows_proves_nothing(kind, dtype):
    """Rows far out of the ranges: an error or a change of class is found nowhere that the bound excludes it."""
    model = KINDS[kind]
    X = rows("real", model.n_features)
    integers = quantize(model, X, dtype)
    for size in 10.0 ** np.arange(0, 151, 10):
        far = size * X[:20]
        bounds, agreement = integers.bounds(far), integers.agree(far)
        assert (np.abs(integers.outputs(far) - model.outputs(far)) <= bounds).all()
        assert agreement.error <= agreement.bound
        assert agreement.changed is None or agreement.changed <= agreement.may_change


def test_bounds_of_denormal_ranges():
    """Ranges of noise in the denormals, and rows of ordinary size: units leave float64 on the way to the bound."""
    rng = np.random.default_rng(0)
    noise = 1e-150 * rng.standard_normal((50, 3))
    model = mopn.Model(1e-150 * rng.standard_normal((2, 3)), rng.standard_normal((2, 2)), classes=np.arange(2))
    far, integers = 1e6 * rng.standard_normal((5, 3)), quantize(model, noise, "int8")
    agreement = integers.agree(far)
    assert np.isinf(integers.bounds(far)).all()
    assert agreement.may_change == 5


@pytest.mark.parametrize("kernel", ["homogeneous", "anova"])
def test_features_may_have_any_units(kernel):
    """Integers of a large range next to integers of a small one, or to real numbers, lose no digits of parameters."""
    model, X = network(d=6, k=8, kernel=kernel), rows("whole", 6)
    expected = quantize(model, X, "int8").agreement.relative
    for units in (np.array([1.0, 256.0, 1.0, 256.0, 1.0, 1.0]), np.array([1.0, 64.0, 1e-3, 1e3, 1.1, 256.0])):
        changed = replace(model, basis=model.basis / units)
        assert quantize(changed, X * units, "int8").agreement.relative <= 5.0 * expected


def plain_outputs(integers, row):
    """The outputs of one row of inputs, in Python's integers; no sum on the way may leave 32 bits."""

    def held(value):
        assert -(2**31) <= value < 2**31
        return value

    inputs, forms, k = integers.inputs, integers.forms, len(integers.V)
    t = [min(max(i << int(a), inputs.lowest), inputs.highest) for i, a in zip(row, inputs.shifts, strict=True)]
    y = t + ([v * v >> inputs.square_shift for v in t] if inputs.with_squares else [])
    sums = []
    for start, parameters in zip(forms.start.tolist(), forms.U.tolist(), strict=True):
        total = held(start)
        for u, value in zip(parameters, y, strict=True):
            total = held(total + held(u * value))
        sums.append(total)
    out = integers.constant.tolist()
    for s, weights in enumerate(integers.V.tolist()):
        size = min(abs(sums[s]) >> int(integers.shifts[s]), 65535)
        assert size * size < 2**32
        feature = min(size * size >> int(integers.square_shifts[s]), integers.top)
        products = [held(w * feature) for w in weights]
        parts = [towards_zero(product, int(integers.product_shifts[s])) for product in products]
        out = [held(o + part) for o, part in zip(out, parts, strict=True)]
    for c, total in enumerate(sums[k:]):
        shift = int(integers.shifts[k + c])
        part = towards_zero(total, shift) if shift >= 0 else held(total << -shift)
        out[c] = held(out[c] + part)
    return out


def towards_zero(value, shift):
    """Return value / 2^shift, rounded towards 0."""
    return value >> shift if value >= 0 else -(-value >> shift)


@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(["homogeneous", "anova"]),
    dtype=st.sampled_from(DTYPES),
    data=st.sampled_from(ROWS),
    scale=st.sampled_from([1e-150, 1e-9, 1.0, 1e9, 1e150]),
    linear=st.booleans(),
    level=st.sampled_from([0.0, 1e8, 1e12]),
)
@settings(max_examples=60, deadline=None)
def test_no_row_makes_a_sum_leave_32_bits(seed, kernel, dtype, data, scale, linear, level):
    """Whatever the scales, and outputs are within their bounds, computed in fractions."""
    rng = np.random.default_rng(seed)
    d, k, m = rng.integers(1, 7), rng.integers(0, 5), rng.integers(1, 4)
    X = rows(data, d, 30, seed) * scale
    H, V = rng.standard_normal((k, d)) / scale, rng.standard_normal((k, m)) * 10.0 ** rng.integers(-3, 4, (k, 1))
    W = np.hstack([rng.standard_normal((m, 1)), rng.standard_normal((m, d)) / scale]) if linear else None
    model = mopn.Model(H, V, kernel=kernel, linear=W, offset=level * rng.standard_normal(m))
    integers = quantize(model, X, dtype)
    ends = np.iinfo(integers.inputs.dtype)
    worst = rng.choice([ends.min, ends.max], (20, d))
    for row in np.vstack([worst, integers.inputs.integers(X[:5])]):
        assert plain_outputs(integers, row.tolist()) == integers.outputs_of_inputs(row[None])[0].tolist()
    bounds, found = integers.bounds(X[:5]), integers.outputs(X[:5])
    for i, x in enumerate(X[:5]):
        for c, exact in enumerate(fraction_outputs(model, x)):
            assert abs(Fraction(found[i, c]) - exact) <= Fraction(bounds[i, c])


def fraction_outputs(model, x):
    """The outputs of a network without dummies, exactly."""
    x = [Fraction(v) for v in x]
    d, out = len(x), [Fraction(0)] * model.weights.shape[1]
    for h, weights in zip(model.basis, model.weights, strict=True):
        z = [Fraction(a) * b for a, b in zip(h, x, strict=True)]
        value = sum(z) ** 2
        if model.kernel == "anova":
            value = (value - sum(a * a for a in z)) / 2
        out = [o + Fraction(v) * value for o, v in zip(out, weights, strict=True)]
    if model.linear is not None:
        ones = [Fraction(1), *x]
        out = [
            o + sum(Fraction(w) * ones[j] for j, w in enumerate(row)) for o, row in zip(out, model.linear, strict=True)
        ]
    assert d == model.n_features
    return [o + Fraction(level) for o, level in zip(out, np.broadcast_to(model.offset, len(out)), strict=True)]


def test_classes_that_may_change_are_counted():
    """Rows whose two largest outputs are equal may change, and rows far from that may not."""
    model = network(2, d=2, k=0, linear=np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), classes=np.array(["a", "b"]))
    far, ties = np.array([[16.0, 0.0], [0.0, 16.0]]), np.array([[7.0, 7.0], [3.0, 3.0], [0.0, 0.0]])
    integers = quantize(model, np.vstack([far, ties]), "int8")
    assert integers.agreement.may_change == 3
    assert integers.agree(far).may_change == integers.agree(far).changed == 0
    signs = replace(model, classes=None, target="indicator")
    assert quantize(signs, far - 8.0, "int8").agreement.may_change == 0
    assert quantize(signs, far, "int8").agreement.may_change == 2
    assert quantize(replace(signs, target="outputs"), far, "int8").agreement.may_change is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_changed_classes_are_among_those_that_may_change(dtype):
    rng = np.random.default_rng(0)
    model = network(4, d=6, k=8, classes=np.arange(4))
    X = rng.integers(0, 5, (2000, 6)).astype(float)
    integers = quantize(model, X, dtype)
    found = integers.agreement
    assert found.changed == np.sum(integers.predict(X) != model.predict(X))
    assert 0 < found.may_change < len(X)
    assert found.changed <= found.may_change
    assert str(found.may_change) in repr(integers)


@needs_compiler
def test_the_header_has_no_floats_and_no_division(tmp_path):
    to_c(KINDS["two outputs"], tmp_path / "model.h", arithmetic="integer", X=rows("mixed", 4))
    text = (tmp_path / "model.h").read_text()
    code = re.sub(r"/\*(.|\n)*?\*/|#include.*", "", text)
    assert re.findall("#include (.*)", text) == ["<avr/pgmspace.h>", "<stdint.h>"][::-1]
    assert not re.search(r"float|double|[/%]|\d\.\d", code)
    functions = library(tmp_path, KINDS["two outputs"], COMPILER, "-std=c99", "-ffreestanding", "-nostdlib")
    assert functions.test() == 0


@pytest.mark.parametrize("level", ["-Os", "-O3"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", CROSS)
def test_cross_compilers_need_no_library(tmp_path, target, dtype, level):
    if shutil.which(CROSS[target][0]) is None:
        pytest.skip(f"no {CROSS[target][0]}")
    to_c(KINDS["two classes"], tmp_path / "model.h", arithmetic="integer", dtype=dtype, X=rows("mixed", 4))
    (tmp_path / "main.c").write_text(
        '#include "model.h"\nstatic model_input x[4];\n'
        "int main(void) { return model_self_test() + model_predict(x); }\n"
    )
    flags = f"-std=c99 {level} -Wall -Wextra -pedantic -Werror -nostdlib main.c -lgcc -o main".split()
    flags += ["-Wl,--entry=main"] if target != "avr" else ["-nodefaultlibs"]
    done = subprocess.run([*CROSS[target], *flags], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", CROSS)
@pytest.mark.parametrize("kind", ["two classes", "one against the rest"])
def test_flash_of_the_comment(tmp_path, kind, target):
    """Constants as they are, and about as much code, in one function."""
    if shutil.which(CROSS[target][0]) is None:
        pytest.skip(f"no {CROSS[target][0]}")
    to_c(KINDS[kind], tmp_path / "model.h", arithmetic="integer", X=rows("sizes", 4))
    text = '#include "model.h"\nint f(const model_input *x) { return model_predict(x); }\n'
    (tmp_path / "size.c").write_text(text)
    subprocess.run([*CROSS[target], "-std=c99", "-Os", "-c", "size.c"], cwd=tmp_path, check=True)
    size = CROSS[target][0].replace("gcc", "size")
    printed = subprocess.run([size, "size.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    code, constants, about = int(printed.splitlines()[1].split()[0]), *costs(tmp_path / "model.h", target)
    assert constants + 0.3 * about < code < constants + 1.5 * about


def costs(path, target):
    """Bytes of constants and of code that a header's comment names."""
    text = " ".join(path.read_text().split())
    constants, arm, avr = re.search(r"Flash: ([\d,]+) bytes .* about ([\d.]+) kB on a Cortex-M, (\d) kB", text).groups()
    return int(constants.replace(",", "")), 1000.0 * float(avr if target == "avr" else arm)


REFUSED = [
    *(
        (kind, {}, "arithmetic='integer' is for models of degree 1 and 2 alone")
        for kind in ("direct", "fourth", "all subsets", "fifth power", "lifted")
    ),
    *((kind, {}, "predictions of this model are exponentials") for kind in ("levels", "means", "mean")),
    (TABLES["numbers"], {}, "a model of a table has columns"),
    ("several", {"dtype": "float32"}, "dtype must be one of 'int8', 'int16', got 'float32'"),
    ("several", {"X": None}, "needs X, rows from which ranges are taken"),
    ("several", {"X": np.zeros((0, 4))}, "X is empty"),
    ("several", {"X": np.ones((2, 2))}, "X has 2 features"),
    ("several", {"X": np.full((2, 4), np.nan)}, "NaN"),
    ("several", {"name": "1st"}, "name must be an identifier of C"),
    (
        mopn.Model(np.full((1, 4), 1e160), np.ones((1, 2)), kernel="anova", classes=np.arange(2)),
        {"X": 1e-155 * rows("whole", 4)},
        "squares of the model's parameters are beyond float64",
    ),
    (
        network(d=40_000),
        {"X": np.zeros((2, 40_000)), "dtype": "int16"},
        "32 bits cannot hold the sums of 40000 features",
    ),
    ("several", {"arithmetic": "fixed"}, "arithmetic must be one of 'float', 'integer', got 'fixed'"),
]


@pytest.mark.parametrize(("model", "options", "message"), REFUSED)
def test_what_has_no_integers(tmp_path, model, options, message):
    model, options = KINDS[model] if isinstance(model, str) else model, {"arithmetic": "integer"} | options
    with pytest.raises((TypeError, ValueError), match=message):
        to_c(model, tmp_path / "model.h", **{"X": rows("whole", 4)} | options)
    assert not list(tmp_path.iterdir())


@needs_compiler
def test_a_fitted_model_of_digits(tmp_path, digits_model):
    """No class of 1,000 rows changes, and neither does any for features in other units."""
    model, X = digits_model
    thirds = replace(model, basis=model.basis * np.append(np.ones(model.basis.shape[1] - 64), np.full(64, 3.0)))
    for folder, rows_of, fitted in ((tmp_path / "a", X, model), (tmp_path / "b", X / 3.0, thirds)):
        folder.mkdir()
        integers = to_c(fitted, folder / "model.h", arithmetic="integer", X=rows_of)
        assert np.mean(integers.predict(rows_of) != fitted.predict(rows_of)) <= 0.002
        found = c_outputs(library(folder, fitted), integers, rows_of, 10)
        assert np.array_equal(found, integers.integer_outputs(rows_of))

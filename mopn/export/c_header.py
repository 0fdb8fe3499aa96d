"""Models as one C99 header: constant arrays and functions over them, without allocation and without other libraries.

Parameters are read in the order in which they are stored, so no index is computed.
"""

import os
from typing import Any

import numpy as np

from mopn.data.designs import make_design
from mopn.data.values import to_host
from mopn.export.c_integer import IntegerHeader
from mopn.export.c_writer import CWriter, header_prefix, test_rows, write_encoding
from mopn.export.comparison import warn_of_changed_classes, warn_of_lost_digits
from mopn.export.integers import IntegerModel
from mopn.export.quantization import quantize
from mopn.export.texts import check_texts
from mopn.models.base import Fitted, fitted_model
from mopn.models.files import replacement
from mopn.models.formula import AnovaTerm, Formula, Products, Subsets, UnitTerm
from mopn.solvers.tools.checks import choice
from mopn.solvers.tools.decorators import quiet

_REALS = {"float32": "float", "float64": "double"}

# Largest rounding error of an output in the self-test, relative to the sum of the moduli of its terms.
_SELF_TEST_TOLERANCES = {"float": 1e-5, "double": 1e-12}


class _Header(CWriter):
    """The functions of a model; a model of a table encodes its rows first."""

    def text(self, model: Any) -> str:
        """Return the header of a model."""
        formula = model.formula()
        m, d = formula.linear.shape
        if model.encoding is None:
            self.feature_names(model.feature_names)
            rows = np.cos(np.arange(d))[None]
            features = rows
        else:
            encoding = write_encoding(self, model.encoding)
            rows, features = test_rows(encoding, self.kind)
        self._define_outputs(formula, model.n_features, encoded=model.encoding is not None)
        if model.has_probabilities:
            self._define_probabilities(model, m)
        self._define_predict(model, m)
        flash = self.flash
        self._define_self_test(formula, rows, features)
        units = sum(len(term.weights) for term in formula.terms)
        inputs = f"{d} features" if model.encoding is None else f"{model.n_features} columns, {d} features"
        comment = (
            f"A model of {inputs}, {m} outputs and {units} units, written by mopn.\n"
            f"   Flash: {flash:,} bytes of constants, and code; names and the self-test take more if they are used.\n"
            f"   {self.name}_self_test() returns 0 if the functions below compute what they should."
        )
        return self.guarded(comment, ["math.h"])

    def _define_outputs(self, formula: Formula, columns: int, *, encoded: bool) -> None:
        m, d = formula.linear.shape
        constant = self.constant("constant", formula.constant)
        body = f"    for (int c = 0; c < {m}; c++) out[c] = 0;\n"
        if encoded:
            body += f"    {self.real} x[{d}];\n    {self.name}_encode(columns, x);\n"
        if formula.linear.any() or not formula.terms:
            body += self._sums("linear", formula.linear, "x[j]")
        if formula.squares.any():
            body += self._sums("squares", formula.squares, "x[j] * x[j]")
        for number, term in enumerate(formula.terms):
            body += self._term(term, number, d)
        # The constant comes last: a large level costs digits in each sum that contains it.
        body += f"    for (int c = 0; c < {m}; c++) out[c] += {constant}[c];\n"
        row = "columns" if encoded else "x"
        self.parts.append(f"/* Sets out[{m}] to the outputs of {row}[{columns}]. */")
        self.function("void", "outputs", f"const {self.real} *{row}, {self.real} *out", body)

    def _sums(self, label: str, rows: np.ndarray, value: str) -> str:
        """Return the lines that add the products of parameters (m, d) and values of x to the outputs."""
        m, d = rows.shape
        return (
            f"{self.stream(label, rows)}"
            f"    for (int c = 0; c < {m}; c++) {{\n"
            f"        {self.real} sum = 0;\n"
            f"        for (int j = 0; j < {d}; j++) sum += *{label}++ * {value};\n"
            "        out[c] += sum;\n"
            "    }\n"
        )

    def _term(self, term: UnitTerm, number: int, d: int) -> str:
        """Return the lines that add the units of a term to the outputs."""
        k, m = term.weights.shape
        pointer = self.stream(f"v{number}", term.weights)
        lines, feature = self._feature(term, number, d)
        return (
            f"{pointer}{lines}"
            f"    for (int s = 0; s < {k}; s++) {{\n"
            f"        {self.real} feature = 1;\n"
            f"{feature}"
            f"        for (int c = 0; c < {m}; c++) out[c] += feature * *v{number}++;\n"
            "    }\n"
        )

    def _feature(self, term: UnitTerm, number: int, d: int) -> tuple[str, str]:
        """Return the pointers to the parameters of units, and the lines that compute ``feature`` of one of them."""
        if isinstance(term, Products):
            return self._product(term, number, d)
        assert isinstance(term, (AnovaTerm, Subsets))
        pointer = self.stream(f"p{number}", term.factors)
        each = f"        for (int j = 0; j < {d}; j++) "
        z = f"*p{number}++ * x[j]"
        if isinstance(term, Subsets):
            return pointer, f"{each}feature *= 1 + {z};\n"
        degree = len(term.theta) - 1
        theta = self.constant(f"theta{number}", term.theta)
        pointer += self.stream(f"start{number}", term.start.T)
        return pointer, (
            f"        {self.real} degrees[{degree + 1}];\n"
            f"        for (int t = 0; t <= {degree}; t++) degrees[t] = *start{number}++;\n"
            f"{each}{{\n"
            f"            const {self.real} z = {z};\n"
            f"            for (int t = {degree}; t > 0; t--) degrees[t] += degrees[t - 1] * z;\n"
            "        }\n"
            "        feature = 0;\n"
            f"        for (int t = 1; t <= {degree}; t++) feature += {theta}[t] * degrees[t];\n"
        )

    def _product(self, term: Products, number: int, d: int) -> tuple[str, str]:
        """Return the same for products of linear forms."""
        pointers = self.stream(f"u{number}", term.factors.swapaxes(0, 1))
        pointers += self.stream(f"b{number}", term.biases.T)
        return pointers, (
            f"        for (int t = 0; t < {len(term.factors)}; t++) {{\n"
            f"            {self.real} sum = 0;\n"
            f"            for (int j = 0; j < {d}; j++) sum += *u{number}++ * x[j];\n"
            f"            sum += *b{number}++;\n"
            f"            for (int i = 0; i < {term.power}; i++) feature *= sum;\n"
            "        }\n"
        )

    # -- predictions --------------------------------------------------------------------------------------------------

    def _define_probabilities(self, model: Any, m: int) -> None:
        count = m
        body = f"    {self.name}_outputs(x, p);\n"
        if model.link == "softmax":
            body += self._softmax(m)
        elif model.target == "labels" and m > 1:
            body += self._log_probabilities(m) + self._softmax(m)
        elif model.target == "labels":
            count = 2
            body += "    p[1] = p[0];\n    p[0] = -p[0];\n" + self._logistic(2)
        else:
            body += self._logistic(m)
        if model.target == "ordinal":
            count = m + 1
            body += self._level_probabilities(m)
        self.parts.append(f"/* Sets p[{count}] to the probabilities for x. */")
        self.function("void", "probabilities", f"{self.row}, {self.real} *p", body)

    def _softmax(self, m: int) -> str:
        """Return the lines that replace the outputs in p by their softmax."""
        return (
            f"    {self.real} highest = p[0], sum = 0;\n"
            f"    for (int c = 1; c < {m}; c++) if (p[c] > highest) highest = p[c];\n"
            f"    for (int c = 0; c < {m}; c++) sum += p[c] = exp{self.suffix}(p[c] - highest);\n"
            f"    for (int c = 0; c < {m}; c++) p[c] /= sum;\n"
        )

    def _logistic(self, m: int) -> str:
        """Return the line that replaces the outputs in p by their logistic functions."""
        return f"    for (int c = 0; c < {m}; c++) p[c] = 1 / (1 + exp{self.suffix}(-p[c]));\n"

    def _log_probabilities(self, m: int) -> str:
        """Return the line of log(1 / (1 + exp(-o))), whose softmax gives probabilities that add up to 1."""
        small = f"log1p{self.suffix}(exp{self.suffix}(p[c] < 0 ? p[c] : -p[c]))"
        return f"    for (int c = 0; c < {m}; c++) p[c] = (p[c] < 0 ? p[c] : 0) - {small};\n"

    def _level_probabilities(self, m: int) -> str:
        """Return the lines that sort the probabilities of y <= r_c and take differences."""
        return (
            f"    for (int c = 1; c < {m}; c++) {{\n"
            f"        const {self.real} moved = p[c];\n"
            "        int to = c;\n"
            "        for (; to > 0 && p[to - 1] > moved; to--) p[to] = p[to - 1];\n"
            "        p[to] = moved;\n"
            "    }\n"
            f"    p[{m}] = 1;\n"
            f"    for (int c = {m}; c > 0; c--) p[c] -= p[c - 1];\n"
        )

    def _define_predict(self, model: Any, m: int) -> None:
        if model.target == "outputs" and model.predicts_means:
            self.parts.append(f"/* Sets means[{m}] to the exponentials of outputs. */")
            body = f"    {self.name}_outputs(x, means);\n"
            body += f"    for (int c = 0; c < {m}; c++) means[c] = exp{self.suffix}(means[c]);\n"
            self.function("void", "predict", f"{self.row}, {self.real} *means", body)
        elif model.target == "vector":
            value = "out[0]"
            words = "the output"
            if model.predicts_means:
                value = f"exp{self.suffix}({value})"
                words = f"the exponential of {words}"
            self.parts.append(f"/* Returns {words}. */")
            self.function(self.real, "predict", self.row, self.local_outputs(m) + f"    return {value};\n")
        elif model.target == "ordinal":
            if not model.has_probabilities:
                raise TypeError("the model of ordered levels has no link, so it predicts nothing; set link='logistic'")
            levels = self.constant("levels", model.classes.astype(np.float64))
            self.parts.append("/* Returns the expected level. */")
            body = (
                f"    {self.real} p[{m + 1}], level = 0;\n"
                f"    {self.name}_probabilities(x, p);\n"
                f"    for (int c = 0; c < {m + 1}; c++) level += p[c] * {levels}[c];\n"
                "    return level;\n"
            )
            self.function(self.real, "predict", self.row, body)
        self.predict_classes(model, m)

    def _define_self_test(self, formula: Formula, rows: np.ndarray, features: np.ndarray) -> None:
        """Define the test of some rows (r, c), whose features are (r, d)."""
        count, columns = rows.shape
        m = len(formula.constant)
        x = self.constant("test_x", rows)
        expected = self.constant("test_outputs", formula.outputs(make_design(features)))
        magnitudes = formula.mapped(np.abs).outputs(make_design(np.abs(features)))
        tolerances = self.constant("test_tolerances", _SELF_TEST_TOLERANCES[self.real] * magnitudes)
        self.parts.append("/* Returns 0, or else the number of the first output of test_x that is wrong. */")
        self.function(
            "int",
            "self_test",
            "void",
            f"    for (int i = 0; i < {count * m}; i++) {{\n"
            f"        {self.real} out[{m}];\n"
            f"        {self.name}_outputs({x} + i / {m} * {columns}, out);\n"
            f"        const {self.real} error = out[i % {m}] - {expected}[i];\n"
            f"        if (!(error <= {tolerances}[i] && -error <= {tolerances}[i])) return i + 1;\n"
            "    }\n"
            "    return 0;\n",
        )


@quiet()
def to_c(
    model: Fitted,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    dtype: str | None = None,
    arithmetic: str = "float",
    X: Any = None,
) -> IntegerModel | None:
    """Write the model as a C99 header that needs no memory but the stack and no library but ``math.h``.

    Parameters
    ----------
    model : Model, FactorizationModel, TableModel or fitted estimator
    path : str or path
        Name of the file; an existing file is replaced.
    name : str, optional
        The prefix of all names in the header, ``model`` below; by default from the name of the file: ``left_hand``
        for "left-hand.h". A compiler refuses two headers with the same prefix in a program.
    dtype : {"float32", "float64", "int16", "int8"}, optional
        With floats the type of parameters, features, arithmetic and outputs: "float32", the default, for ``float``, or
        "float64" for ``double``. With integers the type of the parameters: "int8", the default, or "int16".
    arithmetic : {"float", "integer"}, default "float"
        With "integer" the header has no float and no division, and includes only ``stdint.h``; for degrees 1 and 2.
    X : array-like or sparse matrix of shape (n, d), optional
        Rows such as the training data. Integers take ranges from them. With floats, predictions of 256 of them are
        compared; by default of rows that are drawn, see Warns.

    Returns
    -------
    IntegerModel or None
        For integers the model that the header computes, bit for bit, with its ``agreement`` with floats; print it.

    Raises
    ------
    OSError
        If no file can be written in this folder.
    TypeError
        With integers for a model of a table, a higher degree, or predictions that need exponentials.
    ValueError
        For a name that C does not take, another dtype, numbers whose digits it does not hold, or texts that UTF-8
        cannot hold. With integers if 32 bits cannot hold the sums, or without X.

    Warns
    -----
    UserWarning
        If floats change predicted numbers by more than 0.1 % of their range, or probabilities by more than 0.01; see
        :func:`to_onnx` for the rows. If integers change numbers of X by more than 1 % of their range, or more than 1 %
        of the classes.

    Notes
    -----
    The functions: ``model_outputs(x, out)``, ``model_probabilities(x, p)`` if the model has them, ``model_predict``
    unless the outputs are the prediction, and ``model_self_test()``, which returns 0 if the outputs of a row in the
    header are as here. Labels are an index in ``model_classes``. The comments give the lengths of arrays; x holds all
    features, zeros too, in the order of ``model_features``, if they have names. Nothing is checked: NaN gives NaN.

    For a model of a table x holds its columns, ``model_columns``: numbers, ``NAN`` where they are missing, dates as
    days since 1970, and categories as constants such as ``MODEL_CITY_ROME``, ``MODEL_CITY_MISSING`` or
    ``MODEL_CITY_UNKNOWN``, indices of texts in ``model_categories_j`` for column j. ``model_encode(x, z)`` computes the
    features, and the other functions call it.

    In integers x is of the type ``model_input``. Features of whole numbers stay; any other feature j is the nearest
    integer to ``x[j] * 2 ** model_bits[j]``, minus ``model_zero[j]``. Numbers out of the range of all of X are clamped
    to it, and ``model_check(x)`` returns 0 if there are none. ``IntegerModel.c_inputs`` returns x of rows. Output c is
    ``out[c] * 2 ** -exponents[c] + levels[c]``, of arrays that ``MODEL_EXPONENTS`` and ``MODEL_LEVELS`` initialise, so
    that the level of y costs no digits; there are no probabilities. On an AVR parameters stay in flash.
    docs/mathematics.md derives the bound.

    Examples
    --------
    >>> import numpy as np, mopn, tempfile
    >>> X = np.random.default_rng(0).integers(-128, 128, (100, 2))
    >>> H, V = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> model = mopn.Model(H, V, classes=np.array(["unlike", "alike"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     integers = mopn.export.to_c(model, f"{folder}/model.h", arithmetic="integer", X=X)
    >>> integers.predict([[9, 7], [-100, -90], [100, -20]]).tolist()
    ['alike', 'alike', 'unlike']
    """
    in_integers = choice(("float", "integer"))(arithmetic, "arithmetic") == "integer"
    if X is None and in_integers:
        raise ValueError("arithmetic='integer' needs X, rows from which ranges are taken, such as the training data")
    machine = fitted_model(model)
    name = header_prefix(name, path)
    check_texts(machine)
    integers = None
    if in_integers:
        integers = quantize(machine, to_host(X), "int8" if dtype is None else dtype)
        text = IntegerHeader(name).text(integers)
        warn_of_changed_classes(integers.agreement.change, integers.dtype)
    else:
        real = _REALS[choice(_REALS)("float32" if dtype is None else dtype, "dtype")]
        header = _Header(name, real, f"const {real} *x")
        text = header.text(machine)
        warn_of_lost_digits(machine, header.kind, X)
    with replacement(path) as file:
        file.write(text.encode())
    return integers

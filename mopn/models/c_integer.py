"""Models in integers as C99 headers: for processors without floats, in flash, without any library.

Features are read one after the other, each with the parameters that multiply it, so that zeros cost nothing and no copy
of a row is made. Nothing that C leaves to the compiler is used: only numbers that are not negative are shifted.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mopn.models.c_writer import CWriter, check_name
from mopn.models.integers import IntegerModel, quantize
from mopn.models.replacement import replacement

__all__ = ["write_integer_c"]

# Products up to this need no more than the int of an AVR.
_INT16 = np.iinfo(np.int16).max
_SIZES = {"int8": 1, "int16": 2, "uint8": 1}


def write_integer_c(model: Any, path: str | os.PathLike[str], name: str, dtype: str, X: Any) -> IntegerModel:
    """Write the header of a model in integers and return it; see ``Fitted.to_c``."""
    check_name(name)
    integers = quantize(model, X, dtype)
    text = _IntegerHeader(name).text(integers)
    with replacement(path) as file:
        file.write(text.encode())
    return integers


class _IntegerHeader(CWriter):
    """The functions of a model in integers."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "float32")
        self.flash, self.upper = 0, name.upper()

    def text(self, integers: IntegerModel) -> str:
        """Return the header."""
        model, inputs = integers.model, integers.inputs
        self.feature_names(model.feature_names)
        self._inputs(integers)
        self._check(integers)
        self._outputs(integers)
        self._prediction(model, integers.V.shape[1])
        self._self_test(integers)
        d, (k, m) = len(inputs.bits), integers.V.shape
        guard = self.guard
        head = (
            f"/* A model of {d} features, {m} outputs and {k} units in integers alone, written by mopn.\n"
            f"   {_wrapped(str(integers.agreement))}.\n"
            f"   Outputs are integers times 2^{-integers.exponent}. No row can make a sum leave 32 bits.\n"
            f"   {self._cost(integers)}\n"
            f"   {self.name}_self_test() returns 0 if the functions below compute what they should. */\n"
            f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n{self._memory(integers.dtype)}"
        )
        return "\n".join([head, *self.parts, f"#endif /* {guard} */\n"])

    def _memory(self, dtype: str) -> str:
        """Return the macros for constants in flash, which an AVR reads by instructions of their own."""
        flash, number, long, byte = (f"{self.upper}_{word}" for word in ("FLASH", "PARAMETER", "LONG", "BYTE"))
        read = {"int8": "(int8_t)pgm_read_byte", "int16": "(int16_t)pgm_read_word"}[dtype]
        return (
            "/* Constants stay in flash. */\n"
            f"#ifdef __AVR__\n#include <avr/pgmspace.h>\n#define {flash} PROGMEM\n"
            f"#define {number}(p) ({read}(p))\n"
            f"#define {long}(p) ((int32_t)pgm_read_dword(p))\n#define {byte}(p) (pgm_read_byte(p))\n"
            f"#else\n#define {flash}\n#define {number}(p) (*(p))\n#define {long}(p) (*(p))\n"
            f"#define {byte}(p) (*(p))\n#endif\n"
        )

    def _stored(self, kind: str, label: str, values: np.ndarray) -> str:
        """Declare an array in flash and return its name."""
        self.flash += values.size * int(kind.strip("uint_")) // 8
        return self.array(kind, label, [str(int(i)) for i in values.ravel()], f"{self.upper}_FLASH")

    def _inputs(self, integers: IntegerModel) -> None:
        """Define the type of the inputs and say what they are."""
        inputs = integers.inputs
        if inputs.bits.any() or inputs.zero.any():
            self.parts.append("/* x[j] is the nearest integer to 2^bits[j] times feature j, minus zero[j]. */")
            self.array("int16_t", "bits", [str(i) for i in inputs.bits])
            self.array("int32_t", "zero", [str(i) for i in inputs.zero])
        else:
            self.parts.append("/* x[j] is feature j, which is a whole number. */")
        self.parts.append(f"typedef {inputs.dtype}_t {self.name}_input;\n")
        self.feature = "x[j]"
        if inputs.shifts.any():
            shifts = self._stored("uint8_t", "input_shifts", inputs.shifts)
            self.feature = f"(int32_t)x[j] * ((int32_t)1 << {self.upper}_BYTE({shifts} + j))"

    def _check(self, integers: IntegerModel) -> None:
        inputs = integers.inputs
        self.parts.append("/* Returns 0, or else the number of the first feature that is out of range and clamped to it. */")
        self.function(
            "int",
            "check",
            f"const {self.name}_input *x",
            f"    for (int j = 0; j < {len(inputs.bits)}; j++) {{\n"
            f"        const int32_t t = {self.feature};\n"
            f"        if (t < {inputs.lowest} || t > {inputs.highest}) return j + 1;\n"
            "    }\n"
            "    return 0;\n",
        )

    def _outputs(self, integers: IntegerModel) -> None:
        inputs, forms, (k, m) = integers.inputs, integers.forms, integers.V.shape
        d, linear, number = len(inputs.bits), len(forms.U) - k, f"{self.upper}_PARAMETER"
        # By features: the parameters of all forms, and those of the feature's square.
        stream = forms.U[:, :d].T
        if inputs.with_squares:
            stream = np.hstack([stream, forms.U[k:, d:].T])
        kind = f"{integers.dtype}_t"
        u = self._stored(kind, "u", stream)
        # Of a copy compilers make a call of memcpy, which is a library's.
        start = self._stored("int32_t", "minus_start", -forms.start)
        constant = self._stored("int32_t", "minus_constant", -integers.constant)
        wide = "" if np.abs(forms.U).max() * max(inputs.highest, -inputs.lowest) <= _INT16 else "(int32_t)"
        body = (
            f"    const {kind} *u = {u};\n"
            f"    int32_t sums[{k + linear}];\n"
            f"    for (int s = 0; s < {k + linear}; s++) sums[s] = -{self.upper}_LONG({start} + s);\n"
            f"    for (int c = 0; c < {m}; c++) out[c] = -{self.upper}_LONG({constant} + c);\n"
            f"    for (int j = 0; j < {d}; j++) {{\n"
            f"        const int32_t given = {self.feature};\n"
            f"        const int16_t t = (int16_t)(given < {inputs.lowest} ? {inputs.lowest} : "
            f"given > {inputs.highest} ? {inputs.highest} : given);\n"
            f"        if (t == 0) {{ u += {stream.shape[1]}; continue; }}\n"
            f"        for (int s = 0; s < {k + linear}; s++, u++) sums[s] += {wide}{number}(u) * t;\n"
        )
        if inputs.with_squares:
            body += (
                f"        const int32_t square = (int32_t)t * t >> {inputs.square_shift};\n"
                f"        for (int c = {k}; c < {k + m}; c++, u++) sums[c] += {number}(u) * square;\n"
            )
        body += "    }\n"
        if k:
            v = self._stored(kind, "v", integers.V)
            shifts = self._stored("uint8_t", "shifts", integers.shifts[:k])
            square_shifts = self._stored("uint8_t", "square_shifts", integers.square_shifts)
            body += (
                f"    const {kind} *v = {v};\n"
                f"    for (int s = 0; s < {k}; s++) {{\n"
                f"        const uint32_t size = (uint32_t)(sums[s] < 0 ? -sums[s] : sums[s]) "
                f">> {self.upper}_BYTE({shifts} + s);\n"
                f"        const uint32_t square = size * size >> {self.upper}_BYTE({square_shifts} + s);\n"
                f"        const int32_t feature = (int32_t)(square < {integers.top} ? square : {integers.top});\n"
                f"        for (int c = 0; c < {m}; c++, v++) out[c] += {number}(v) * feature;\n"
                "    }\n"
            )
        if linear:
            shifts = self._stored("uint8_t", "linear_shifts", integers.shifts[k:])
            body += (
                f"    for (int c = 0; c < {m}; c++) {{\n"
                f"        const int32_t sum = sums[{k} + c], shift = {self.upper}_BYTE({shifts} + c);\n"
                "        out[c] += sum < 0 ? -(-sum >> shift) : sum >> shift;\n"
                "    }\n"
            )
        self.parts.append(f"/* Sets out[{m}] to the outputs of x[{d}], in steps of 2^{-integers.exponent}. */")
        self.function("void", "outputs", f"const {self.name}_input *x, int32_t *out", body)

    def _prediction(self, model: Any, m: int) -> None:
        argument = f"const {self.name}_input *x"
        local = f"    int32_t out[{m}];\n    {self.name}_outputs(x, out);\n"
        if model.target == "labels":
            self.parts.append(f"/* Returns the index of the label in {self.labels(model.classes)}. */")
            self.function("int", "predict", argument, local + self.largest(m))
        elif model.target == "indicator":
            self.parts.append(f"/* Sets labels[{m}] to 1 for positive outputs and 0 for others. */")
            body = local + f"    for (int c = 0; c < {m}; c++) labels[c] = out[c] > 0;\n"
            self.function("void", "predict", f"{argument}, int *labels", body)

    def _self_test(self, integers: IntegerModel) -> None:
        """Define the test of a row with features of the whole range."""
        inputs, m = integers.inputs, integers.V.shape[1]
        d = len(inputs.bits)
        spread = (1.0 + np.cos(np.arange(d))) / 2.0
        ends = [v >> inputs.shifts for v in (inputs.lowest, inputs.highest)]
        row = np.rint(ends[0] + spread * (ends[1] - ends[0])).astype(np.int64)[None]
        x = self.array(f"{self.name}_input", "test_x", [str(i) for i in row[0]])
        expected = self.array("int32_t", "test_outputs", [str(i) for i in integers._integer_outputs(row)[0]])
        self.parts.append("/* Returns 0, or else the number of the first output of test_x that is wrong. */")
        self.function(
            "int",
            "self_test",
            "void",
            f"    int32_t out[{m}];\n"
            f"    {self.name}_outputs({x}, out);\n"
            f"    for (int c = 0; c < {m}; c++) if (out[c] != {expected}[c]) return c + 1;\n"
            "    return 0;\n",
        )

    def _cost(self, integers: IntegerModel) -> str:
        return ""


def _wrapped(text: str) -> str:
    return text

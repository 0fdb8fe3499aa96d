"""Models in integers as C99 headers: for processors without floats, in flash, without any library.

Features are read one after the other, each with the parameters that multiply it. So zeros cost nothing, and no row is
copied. Nothing is used that C leaves to the compiler: only nonnegative numbers are shifted.
"""

from textwrap import wrap
from typing import NamedTuple

import numpy as np

from mopn.export.c_writer import CWriter
from mopn.export.integers import LARGEST_SIZE, IntegerModel

# The largest product that an AVR computes in an int.
_MAX_INT16 = np.iinfo(np.int16).max


class _Cycles(NamedTuple):
    """Cycles of a product of a parameter and a feature, of a later product, of the rest of a unit, and of a shift."""

    product: int
    later_product: int
    unit: int
    shift: int


# Compared with the counts of emulators by ``python -m benchmarks.devices --parts costs``. Cycles of shifts are counted
# in the instructions of a Cortex-M and of an AVR, with its loop over bits.
_CYCLES = {
    "M0": _Cycles(16, 17, 53, 8),
    "M4": _Cycles(12, 13, 35, 5),
    "AVR, narrow": _Cycles(48, 126, 233, 80),
    "AVR, wide": _Cycles(90, 115, 362, 80),
}
# Bytes of the stack apart from sums and outputs, from the same command.
_STACK_BYTES = 40


class IntegerHeader(CWriter):
    """The functions of a model in integers."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "int32_t", f"const {name}_input *x")

    def text(self, integers: IntegerModel) -> str:
        """Return the header of a model in integers."""
        model = integers.model
        d = len(integers.inputs.bits)
        k, m = integers.V.shape
        self.parts.append(self._flash_macros(integers.dtype))
        self.feature_names(model.feature_names)
        self._define_inputs(integers)
        self._define_scales(integers)
        self._define_check(integers)
        self._define_outputs(integers)
        self.predict_classes(model, m)
        self._define_self_test(integers)
        comment = (
            f"A model of {d} features, {m} outputs and {k} units in integers alone, written by mopn.\n"
            f"With parameters of {integers.dtype}, {integers.agreement}.\n"
            f"{self._scales(integers)} No row can make a sum leave 32 bits.\n"
            f"{self._cost(integers)}\n"
            f"{self.name}_self_test() returns 0 if the functions below compute what they should."
        )
        lines = [line for part in comment.split("\n") for line in wrap(part, 110)]
        return self.guarded("\n   ".join(lines), ["stdint.h"])

    def _scales(self, integers: IntegerModel) -> str:
        """Return the sentence that says how integers become outputs."""
        exponents = integers.exponents.tolist()
        levels = integers.levels.tolist()
        if len(set(exponents)) == len(set(levels)) == 1:
            level = f", plus the level {levels[0]!r}" if levels[0] else ""
            return f"Outputs are integers times 2^{-exponents[0]}{level}."
        return (
            f"Output c is its integer times 2^-exponents[c], plus levels[c]: {self.upper}_EXPONENTS and "
            f"{self.upper}_LEVELS initialise these arrays."
        )

    def _define_scales(self, integers: IntegerModel) -> None:
        """Define the scales of outputs as macros, which cost nothing and bring in no floats unless they are used."""
        exponents = ", ".join(map(str, integers.exponents.tolist()))
        levels = ", ".join(f"{level:.17g}" for level in integers.levels.tolist())
        self.parts.append(
            "/* Output c is out[c] times 2^-exponents[c], plus levels[c], of arrays of int and double. */\n"
            f"#define {self.upper}_EXPONENTS {{{exponents}}}\n#define {self.upper}_LEVELS {{{levels}}}\n"
        )

    def _flash_macros(self, dtype: str) -> str:
        """Return the macros for constants in flash, which an AVR reads by special instructions."""
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
        """Declare an array of integers in flash, and return its name."""
        self.flash += values.size * int(kind.strip("uint_")) // 8
        return self.array(kind, label, [str(int(i)) for i in values.ravel()], f"{self.upper}_FLASH")

    def _define_inputs(self, integers: IntegerModel) -> None:
        """Define the number, the scales and the type of the inputs, with comments."""
        inputs = integers.inputs
        m = integers.V.shape[1]
        self.parts.append(f"#define {self.upper}_FEATURES {len(inputs.bits)}\n#define {self.upper}_OUTPUTS {m}\n")
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

    def _define_check(self, integers: IntegerModel) -> None:
        inputs = integers.inputs
        self.parts.append("/* Returns 0, or the number of the first feature that is out of range and clamped to it. */")
        self.function(
            "int",
            "check",
            self.row,
            f"    for (int j = 0; j < {len(inputs.bits)}; j++) {{\n"
            f"        const int32_t t = {self.feature};\n"
            f"        if (t < {inputs.lowest} || t > {inputs.highest}) return j + 1;\n"
            "    }\n"
            "    return 0;\n",
        )

    def _define_outputs(self, integers: IntegerModel) -> None:
        k, m = integers.V.shape
        forms = len(integers.forms.U)
        # Compilers turn a plain copy into a call of memcpy, which needs a library; so negative numbers are stored.
        start = self._stored("int32_t", "minus_start", -integers.forms.start)
        constant = self._stored("int32_t", "minus_constant", -integers.constant)
        body = (
            f"    int32_t sums[{forms}];\n"
            f"    for (int s = 0; s < {forms}; s++) sums[s] = -{self.upper}_LONG({start} + s);\n"
            f"    for (int c = 0; c < {m}; c++) out[c] = -{self.upper}_LONG({constant} + c);\n"
            f"{self._sums(integers)}"
        )
        if k:
            body += self._units(integers)
        if forms > k:
            body += self._linear(integers)
        d = len(integers.inputs.bits)
        self.parts.append(f"/* Sets out[{m}] to the outputs of x[{d}], as integers. */")
        self.function("void", "outputs", f"{self.row}, int32_t *out", body)

    def _linear(self, integers: IntegerModel) -> str:
        """Return the loop that adds linear forms to the outputs, shifted to the right or to the left."""
        k, m = integers.V.shape
        byte = f"{self.upper}_BYTE"
        shifts = integers.shifts[k:]
        right = self._stored("uint8_t", "linear_shifts", np.maximum(shifts, 0))
        left = ""
        if (shifts < 0).any():
            left_shifts = self._stored("uint8_t", "left_shifts", np.maximum(-shifts, 0))
            left = f" * ((int32_t)1 << {byte}({left_shifts} + c))"
        return (
            f"    for (int c = 0; c < {m}; c++) {{\n"
            f"        const int32_t sum = sums[{k} + c], shift = {byte}({right} + c);\n"
            f"        out[c] += (sum < 0 ? -(-sum >> shift) : sum >> shift){left};\n"
            "    }\n"
        )

    def _sums(self, integers: IntegerModel) -> str:
        """Return the loop over the features, which adds them to the sums of all forms."""
        inputs = integers.inputs
        U = integers.forms.U
        k, m = integers.V.shape
        d = len(inputs.bits)
        low = inputs.lowest
        high = inputs.highest
        number = f"{self.upper}_PARAMETER"
        # By features: the parameters of all forms, then the parameters of the feature's square in linear forms.
        stream = U.T
        if inputs.with_squares:
            stream = np.hstack([U[:, :d].T, U[k:, d:].T])
        u = self._stored(f"{integers.dtype}_t", "u", stream)
        wide = "" if self._has_narrow_products(integers) else "(int32_t)"
        lines = (
            f"    const {integers.dtype}_t *u = {u};\n"
            f"    for (int j = 0; j < {d}; j++) {{\n"
            f"        const int32_t given = {self.feature};\n"
            f"        const int16_t t = (int16_t)(given < {low} ? {low} : given > {high} ? {high} : given);\n"
            f"        if (t == 0) {{ u += {stream.shape[1]}; continue; }}\n"
            f"        for (int s = 0; s < {len(U)}; s++, u++) sums[s] += {wide}{number}(u) * t;\n"
        )
        if inputs.with_squares:
            lines += (
                f"        const int32_t square = (int32_t)t * t >> {inputs.square_shift};\n"
                f"        for (int c = {k}; c < {k + m}; c++, u++) sums[c] += {number}(u) * square;\n"
            )
        return lines + "    }\n"

    def _units(self, integers: IntegerModel) -> str:
        """Return the loop over the units, which adds them times their weights to the outputs."""
        k, m = integers.V.shape
        v = self._stored(f"{integers.dtype}_t", "v", integers.V)
        shifts = self._stored("uint8_t", "shifts", integers.shifts[:k])
        square_shifts = self._stored("uint8_t", "square_shifts", integers.square_shifts)
        product = f"{self.upper}_PARAMETER(v) * feature"
        each = f"        for (int c = 0; c < {m}; c++, v++) out[c] += {product};\n"
        if integers.product_shifts.any():
            product_shifts = self._stored("uint8_t", "product_shifts", integers.product_shifts)
            each = (
                f"        const int32_t shift = {self.upper}_BYTE({product_shifts} + s);\n"
                f"        for (int c = 0; c < {m}; c++, v++) {{\n"
                f"            const int32_t product = {product};\n"
                "            out[c] += product < 0 ? -(-product >> shift) : product >> shift;\n"
                "        }\n"
            )
        size = f"(uint32_t)(sums[s] < 0 ? -sums[s] : sums[s]) >> {self.upper}_BYTE({shifts} + s)"
        sizes = f"        const uint32_t size = {size};\n"
        largest = integers.forms.largest(*integers.inputs.ends)[:k]
        if (largest >> integers.shifts[:k]).max() > LARGEST_SIZE:
            sizes = f"        uint32_t size = {size};\n        if (size > {LARGEST_SIZE}) size = {LARGEST_SIZE};\n"
        return (
            f"    const {integers.dtype}_t *v = {v};\n"
            f"    for (int s = 0; s < {k}; s++) {{\n"
            f"{sizes}"
            f"        const uint32_t square = size * size >> {self.upper}_BYTE({square_shifts} + s);\n"
            f"        const int32_t feature = (int32_t)(square < {integers.top} ? square : {integers.top});\n"
            f"{each}"
            "    }\n"
        )

    def _define_self_test(self, integers: IntegerModel) -> None:
        inputs = integers.inputs
        m = integers.V.shape[1]
        d = len(inputs.bits)
        lowest = inputs.lowest >> inputs.shifts
        highest = inputs.highest >> inputs.shifts
        places = (1.0 + np.cos(np.arange(d))) / 2.0
        row = np.rint(lowest + places * (highest - lowest)).astype(np.int64)[None]
        x = self.array(f"{self.name}_input", "test_x", [str(i) for i in row[0]])
        expected = self.array("int32_t", "test_outputs", [str(i) for i in integers.outputs_of_inputs(row)[0]])
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

    @staticmethod
    def _has_narrow_products(integers: IntegerModel) -> bool:
        """Return whether products of parameters and features have 16 bits."""
        inputs = integers.inputs
        return bool(np.abs(integers.forms.U).max() * max(inputs.highest, -inputs.lowest) <= _MAX_INT16)

    def _cost(self, integers: IntegerModel) -> str:
        """Return estimates of memory and time, before a compiler has seen the header."""
        k, m = integers.V.shape
        d = len(integers.inputs.bits)
        forms = len(integers.forms.U)
        later_products = k * m
        if integers.inputs.with_squares:
            later_products += d * m
        shifts = k * m if integers.product_shifts.any() else 0
        totals = []
        for board in ("M0", "M4", "AVR, narrow" if self._has_narrow_products(integers) else "AVR, wide"):
            cycles = _CYCLES[board]
            total = d * forms * cycles.product + later_products * cycles.later_product + k * cycles.unit
            total += shifts * cycles.shift
            totals.append(f"{round(total, -2):,}")
        m0, m4, avr = totals
        stack = 4 * (forms + m) + _STACK_BYTES
        return (
            f"Flash: {self.flash:,} bytes of constants, and code of about 0.3 kB on a Cortex-M, 1 kB on an AVR. "
            f"Stack: about {stack} bytes. Cycles of a row without zeros, to a sixth, compiled for "
            f"size: {m0} on a Cortex-M0, {m4} on a Cortex-M4, {avr} on an AVR."
        )

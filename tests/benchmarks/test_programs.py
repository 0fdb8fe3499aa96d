"""All programs: their descriptions of themselves, and the documents' descriptions of them."""

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import benchmarks

ROOT = Path(benchmarks.__file__).parents[1]


@pytest.fixture(scope="module")
def programs():
    """The modules of the programs by name."""
    modules = [module.name for module in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")]
    return {name.removesuffix(".__main__"): name for name in modules if hasattr(import_module(name), "main")}


def test_every_study_is_a_program_with_results(programs):
    studies = {path.name for path in (ROOT / "benchmarks").iterdir() if (path / "__init__.py").is_file()} - {"common"}
    assert {f"benchmarks.{name}" for name in studies} <= set(programs)
    index = (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+)/RESULTS\.md\)", index)) == studies
    assert all((ROOT / "benchmarks" / name / "RESULTS.md").is_file() for name in studies)


def test_help_needs_no_data_and_names_the_program(programs, capsys):
    for program, module in programs.items():
        with pytest.raises(SystemExit) as end:
            import_module(module).main(["--help"])
        assert end.value.code == 0, program
        assert capsys.readouterr().out.startswith(f"usage: python -m {program} ")


def test_studies_report_nothing_and_name_the_data_that_they_lack(tmp_path, capsys):
    for study in ("alternatives", "links", "multiclass", "recommender", "tables"):
        main, folders = import_module(f"benchmarks.{study}.__main__").main, ["--data", str(tmp_path / "none")]
        assert main(["--out", str(tmp_path / study), "--report"]) == 0
        assert "no results yet" in capsys.readouterr().out, study
        assert main([*folders, "--out", str(tmp_path / study)]) == 2, study
        assert re.search("no data folder|a package that is missing", capsys.readouterr().err), study


def test_commands_in_the_documents_are_programs(programs):
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/**/*.md")]
    documents += ROOT.glob("benchmarks/**/*.py")
    named = {name for path in documents for name in re.findall(r"-m (benchmarks\.[\w.]+\w)", path.read_text("utf-8"))}
    assert named == set(programs)

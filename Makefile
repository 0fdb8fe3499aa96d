# Two commands set everything up: `make demo` and `make test`. Both need only Python (>= 3.10) and make.
PYTHON ?= python3
VENV ?= .venv
HERE := $(CURDIR)
BIN := $(VENV)/bin

# Type checks run on the installed wheel: it has the layout that users import (solvers/ becomes mopn.solvers).
.PHONY: demo test docs fuzz clean

demo: $(VENV)/.demo
	OMP_NUM_THREADS=1 $(BIN)/python examples/digits.py --out demo-output

test: $(VENV)/.test
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	rm -rf build $(VENV)/wheel && $(BIN)/python -m pip install --quiet --no-deps --target $(VENV)/wheel .
	rm -rf build
	cd $(VENV)/wheel && $(HERE)/$(BIN)/python -m mypy -p mopn --config-file $(HERE)/pyproject.toml
	cd $(VENV)/wheel && $(HERE)/$(BIN)/python -m mypy --config-file $(HERE)/pyproject.toml $(HERE)/tests/conformance.py
	cd $(VENV)/wheel && $(HERE)/$(BIN)/python -m mypy --strict --follow-imports=silent $(HERE)/tests/user_script.py
	$(BIN)/python -m pytest -n auto

# Generated calls of every public interface: make fuzz FUZZ="--calls 2000 --seed 1"; tests/fuzz/__init__.py has more.
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz $(FUZZ)

# The site, in docs/_build/html. Nothing is fetched but packages; a warning is an error.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[sklearn,plot]"
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[test]"
	touch $@ $(VENV)/.demo

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) demo-output docs/_build docs/api/generated docs/api/backreferences docs/gallery docs/pages

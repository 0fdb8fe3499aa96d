# Two commands set everything up: `make demo` and `make test`. Both need only Python (>= 3.11) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# The tasks are in noxfile.py; here they share an environment.
NOX := OMP_NUM_THREADS=1 PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m nox
HERE := $(NOX) --no-venv --no-install

.PHONY: demo test test-all docs fuzz clean

demo: $(VENV)/.demo
	OMP_NUM_THREADS=1 $(BIN)/python examples/digits.py --out demo-output

test: $(VENV)/.test
	$(HERE) -s checks tests

# All that one environment can tell of a release: the distributions, the site, and the slow tests, too.
test-all: $(VENV)/.site
	$(NOX) -s build
	$(HERE) -s checks docs
	$(HERE) -s tests -- --all

docs: $(VENV)/.site
	$(HERE) -s docs

# Generated calls of every public interface: make fuzz FUZZ="--calls 2000 --seed 1"
fuzz: $(VENV)/.test
	$(HERE) -s fuzz -- $(FUZZ)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[sklearn,plot]"
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e ".[test]" "nox>=2025.2.9"
	touch $@ $(VENV)/.demo

# What docs/live.md runs in a browser. Without it the site is built all the same, and says so there.
$(VENV)/.site: docs/pyodide.txt $(VENV)/.test
	-$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r docs/pyodide.txt
	touch $@

clean:
	rm -rf build dist serving/build serving/*.egg-info $(VENV) .nox demo-output docs/_build docs/api/generated docs/api/backreferences docs/gallery docs/pages

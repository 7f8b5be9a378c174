# make demo and make test do all the set-up; they need Python, a C compiler and pip.
PYTHON ?= python3
VENV = .venv
BIN = $(VENV)/bin
DEBUG = build/debug
DEMO = build/demo

.PHONY: demo test test-release test-debug docs types build debug clean

demo: build
	@mkdir -p $(DEMO)
	$(BIN)/python -m fastmc train --loss topk -k 5 --trace $(DEMO)/trace.csv data/stdlib.train.svm.bz2 $(DEMO)/stdlib.model
	$(BIN)/python -m fastmc predict -k 5 data/stdlib.test.svm.bz2 $(DEMO)/stdlib.model $(DEMO)/predictions.txt
	@echo "model: $(DEMO)/stdlib.model, trace: $(DEMO)/trace.csv, predictions: $(DEMO)/predictions.txt"

test: test-release test-debug

test-release: build $(VENV)/test-installed
	$(BIN)/pytest

# The same tests on a build with bounds checks.
test-debug: debug $(VENV)/test-installed
	PYTHONPATH=$(CURDIR)/$(DEBUG)/lib $(BIN)/pytest

# The site, in build/docs; a warning is an error. Read afresh, as pages show what commands print.
docs: build $(VENV)/docs-installed
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs build/docs

types: $(VENV)/types-installed
	$(BIN)/mypy

build: $(VENV)/installed
	$(BIN)/python setup.py --quiet build_ext --inplace --parallel 2

debug: $(VENV)/installed
	FASTMC_DEBUG=1 $(BIN)/python setup.py --quiet build --build-lib $(DEBUG)/lib --build-temp $(DEBUG)/temp --parallel 2

# Installs the package as a link to this folder; `build` compiles, and only what changed.
$(VENV)/installed: pyproject.toml setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip "setuptools>=77" "Cython>=3.1,<4"
	FASTMC_NO_EXTENSIONS=1 $(BIN)/pip install --quiet --no-build-isolation --editable . 2>$(VENV)/install.log || (cat $(VENV)/install.log; exit 1)
	@touch $@

# What the extra of that name in pyproject.toml asks for.
$(VENV)/%-installed: $(VENV)/installed
	FASTMC_NO_EXTENSIONS=1 $(BIN)/pip install --quiet --no-build-isolation --editable ".[$*]" 2>$(VENV)/install.log || (cat $(VENV)/install.log; exit 1)
	@touch $@

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache fastmc/*.so

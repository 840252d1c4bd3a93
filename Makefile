# The commands of the README. All that is needed is Python >= 3.11 and make.
#   make demo    denoise the example in the box, and draw it before and after
#   make view    open the viewer in the browser
#   make test    ruff, mypy --strict and the whole test suite
#   make lint    ruff and mypy alone
#   make docs    the documentation, into site/; a broken link is an error
#   make dist    wheel and sdist, into dist/
#   make audit   compare the pinned versions with known vulnerabilities (needs a network)
#   make clean   remove what these commands made

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# More options for `pip install torch`, such as the index of its CPU-only builds (pytorch.org has
# it under "Get Started"), which are ten times smaller than the CUDA builds Linux gets by default.
TORCH_OPTIONS ?=

PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo view test lint docs dist audit clean
.DELETE_ON_ERROR:

demo: $(VENV)/installed
	$(BIN)/pointmend demo --out demo-output

view: $(VENV)/installed-for-viewing
	$(BIN)/pointmend view

test: lint
	$(BIN)/python -m pytest

lint: $(VENV)/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/installed-for-tests
	$(BIN)/mkdocs build --strict

# The build tools are those of constraints.txt, not what is newest today.
dist: $(VENV)/installed-for-tests
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	ls -l dist

audit: $(VENV)/installed
	$(PIP) -e '.[audit]'
	$(BIN)/pip-audit --no-deps --disable-pip -r constraints.txt

clean:
	rm -rf $(VENV) demo-output build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; try: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# torch comes first and alone: asked for by name and version, it is the build that was chosen,
# and the rest finds it in place.
$(VENV)/torch: $(VENV)/made constraints.txt
	@echo "installing torch; this takes a few minutes the first time"
	$(PIP) $(TORCH_OPTIONS) "$$(grep '^torch==' constraints.txt)"
	@touch $@

$(VENV)/installed: $(VENV)/torch pyproject.toml
	$(PIP) -e .
	@touch $@

$(VENV)/installed-for-viewing: $(VENV)/installed
	$(PIP) -e '.[view]'
	@touch $@

$(VENV)/installed-for-tests: $(VENV)/installed
	$(PIP) -e '.[test]'
	@touch $@

# All set-up on a fresh machine with only Python (3.11 or newer) and make. See README.md.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-letta lint types docs clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --constraint constraints.txt --editable '.[simulator,mem0,a-mem,graphiti,letta,memora,dev]'
	touch $@

demo: setup
	$(BIN)/memorydojo demo

test: setup
	$(BIN)/python -m pytest

# Sets up Letta's real server (once, 900 MB) and runs the tests of its adapter against it.
test-letta: setup
	MEMORYDOJO_TEST_LETTA=1 $(BIN)/python -m pytest -k "real or summed_up or starts_and_stops" tests/adapters tests/cli/test_letta.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

docs: setup
	$(BIN)/python docs/check.py

clean:
	rm -rf .venv build dist *.egg-info

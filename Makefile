# All set-up on a fresh machine with only Python (3.11 or newer) and make. See README.md.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test browser lint types docs clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --constraint constraints.txt --editable '.[simulator,mem0,memora,dev]'
	touch $@

demo: setup
	$(BIN)/memorydojo demo

test: setup
	$(BIN)/python -m pytest

# The tests of the viewer need a Chromium and are skipped without one. Debian and its kin; root or sudo.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  command -v $$name >/dev/null && exit 0; \
	done; \
	sudo=$$(command -v sudo || true); \
	$$sudo apt-get update -qq && $$sudo apt-get install -y -qq --no-install-recommends chromium

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

docs: setup
	$(BIN)/python docs/check.py

clean:
	rm -rf .venv build dist *.egg-info

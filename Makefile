# All set-up on a fresh machine with only Python (3.11 or newer) and make. See README.md.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-letta browser lint types docs site clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --constraint constraints.txt --editable '.[simulator,mem0,a-mem,graphiti,letta,memora,figures,parquet,inspect,dask,docs,dev]'
	touch $@

demo: setup
	$(BIN)/memorydojo demo

# Two at a time; the tests of one class or module stay together, since they share what is slow to make.
test: setup
	$(BIN)/python -m pytest -n 2 --dist loadscope

# Sets up Letta's real server (once, 900 MB) and runs the tests of its adapter against it, with a server for each worker.
test-letta: setup
	$(BIN)/memorydojo letta set-up
	MEMORYDOJO_TEST_LETTA=1 $(BIN)/python -m pytest -n 2 --dist loadscope -m letta_server tests/adapters tests/cli/test_letta.py

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

# Links, commands and code of the pages; then the whole site, strictly, with the notebooks executed.
docs: setup
	$(BIN)/python docs/check.py
	$(MAKE) site

# The documentation site, in site/: open site/index.html, or `.venv/bin/mkdocs serve`. SITE says where else to build it.
SITE ?= site
site: setup
	NO_MKDOCS_2_WARNING=1 MEMORYDOJO_EXECUTE_NOTEBOOKS=true $(BIN)/mkdocs build --strict --quiet --site-dir $(SITE)

clean:
	rm -rf .venv build dist site *.egg-info

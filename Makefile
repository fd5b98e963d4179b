# make demo    set up, then show what ELMo does
# make test    set up, then every check and every test
# make check   the checks alone: lint, types, import layers
# make wheel   the sdist and the wheel in dist/, tried in clean environments without a compiler
# make extras  each extra alone in a clean environment (many minutes), or some: make extras EXTRAS='ko zst'
# make docs    the documentation in site/, with warnings as errors
# make docs-serve  the documentation at http://127.0.0.1:8000, built anew after each change
# make notebooks   the tutorials as notebooks, executed, with the time of each
# make sanitize    the tests of the C functions under AddressSanitizer and UndefinedBehaviorSanitizer (needs gcc)
# make aarch64     the tests of the C functions on emulated ARM processors (needs gcc-aarch64-linux-gnu and qemu-user)
# make cross       whether the C functions compile for Windows, macOS and Linux on ARM
# Only Python (3.11 or newer), pip and make are needed; everything goes into .venv.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check wheel extras docs docs-serve notebooks sanitize aarch64 cross clean

demo: .venv/light
	$(BIN)/python examples/demo.py

test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

wheel: .venv/installed
	$(BIN)/python tests/install/wheel.py dist

extras: .venv/installed
	$(BIN)/python tests/install/extras.py $(EXTRAS)

# What would be shown is about the successor of mkdocs.
docs docs-serve: export NO_MKDOCS_2_WARNING := 1

docs: .venv/docs
	$(BIN)/mkdocs build --strict

docs-serve: .venv/docs
	$(BIN)/mkdocs serve

notebooks: .venv/installed
	$(BIN)/python tools/notebooks.py --run docs/tutorials/[1-9]*.md

sanitize: .venv/installed
	PYTHON=$(BIN)/python tests/sanitize.sh

aarch64: .venv/installed
	$(BIN)/python -m pytest -m emulated tests/kernels

cross: .venv/installed
	$(BIN)/python -m pytest tests/kernels/test_cross_compile.py

# Without torch, which neither the demo nor the documentation needs.
.venv/light: pyproject.toml setup.py constraints.txt $(wildcard src/pyelmo/kernels/cpu/*.[ch])
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/docs: .venv/light
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

.venv/installed: pyproject.toml setup.py constraints.txt $(wildcard src/pyelmo/kernels/cpu/*.[ch])
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf .venv build dist

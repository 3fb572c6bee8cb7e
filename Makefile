# Everything here starts from a clean clone: the first call builds .venv, later calls reuse it.
.DEFAULT_GOAL := help
.PHONY: help run test lint types audit faults bench memory speed clean

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# The first interpreter that is new enough and can make environments.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# Real rows for the tests of the data loaders; without the folder those tests skip and say so.
SAMPLE_ROWS := $(abspath $(wildcard ../shared/data))
PACKAGES := harness methods tasks sequences reports
ARGS ?=

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(INSTALLED) ## Run SynthSelf on the science sequence and print its table
	$(BIN)/cl-bench run --method synthself --sequence science $(ARGS)

test: $(INSTALLED) ## Run every test
	$(if $(SAMPLE_ROWS),CL_BENCH_SAMPLE_ROWS="$${CL_BENCH_SAMPLE_ROWS-$(SAMPLE_ROWS)}") $(BIN)/python -m pytest -n auto --maxprocesses 4 $(ARGS)

faults: $(INSTALLED) ## Let every write of a run fail in every way
	CL_BENCH_EVERY_FAULT=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 tests/faults/test_writes.py $(ARGS)

lint: $(INSTALLED) ## Check style
	$(BIN)/python -m ruff check .

types: $(INSTALLED) ## Check types, strictly
	@# The folders are mapped to cl_bench.* at build time; type checkers need the same tree as links.
	@mkdir -p .typecheck/cl_bench
	@for p in $(PACKAGES); do ln -sfn ../../$$p .typecheck/cl_bench/$$p; done
	@for f in __init__.py py.typed; do ln -sfn ../../harness/_root/$$f .typecheck/cl_bench/$$f; done
	MYPYPATH=.typecheck $(BIN)/python -m mypy -p cl_bench
	MYPYPATH=.typecheck $(BIN)/python -m mypy tests examples
	MYPYPATH=.typecheck:benchmarks $(BIN)/python -m mypy benchmarks

audit: $(INSTALLED) ## Look the dependencies up among known vulnerabilities, where their list can be reached
	@.ci/audit $(BIN)/python

bench: $(INSTALLED) ## Measure the main job: wall time, memory, imports, --help
	$(BIN)/python benchmarks/main_job.py $(ARGS)

memory: $(INSTALLED) ## Measure the peak memory of a training step at a vocabulary of 151,936, beside trl's
	$(BIN)/python benchmarks/vocabulary_memory.py $(ARGS)

speed: $(INSTALLED) ## Measure an on-policy training step, in pairs with trl's trainers
	$(BIN)/python benchmarks/on_policy_speed.py $(ARGS)

clean: ## Remove the environment and everything that tools left behind
	rm -rf $(VENV) .typecheck build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache

$(INSTALLED): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "cl-bench needs Python 3.11 or newer with venv and ensurepip;" \
		"none was found as python3, python3.13, python3.12 or python3.11. Name one: make PYTHON=/path/to/python" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

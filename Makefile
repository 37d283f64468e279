# All commands for people and CI. The virtual environment .venv is created on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.brimline-installed
RUN_STAMP := $(VENV)/.brimline-runs
# A corpus of transcripts with their known figures. Without one, the steps that need it do nothing.
DIR ?= $(patsubst %/truth.json,%,$(wildcard ../shared/corpus/truth.json))

# With this variable each test worker would compile every module again: 10 s of CPU time each.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup page run test check quick lint style web types tests coverage corpus formulas formulas-check frameworks catalogue catalogue-check reference fixtures bench newest trust wheels clean

help:  ## List these targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

COMPILED := $(wildcard src/brimline/agents/transcripts/*.[ch] src/brimline/hooks/client/*.[ch])

INSTALLED := pyproject.toml constraints.txt scripts/setup.py hatch_build.py $(COMPILED)

$(STAMP): $(INSTALLED)
	@$(PYTHON) scripts/setup.py $(VENV) --dev
	@touch $@ $(RUN_STAMP)

$(RUN_STAMP): $(INSTALLED)
	@$(PYTHON) scripts/setup.py $(VENV)
	@touch $@

setup: $(STAMP)  ## Create the virtual environment, with all that the tests need

page: setup  ## Build the dashboard if its sources changed
	@$(BIN)/python scripts/page.py

run: $(RUN_STAMP)  ## Start the daemon and print a link to the dashboard; Ctrl-C stops it
	@$(BIN)/python scripts/page.py
	@echo "brimline is $(abspath $(BIN))/brimline"
	@$(BIN)/brimline serve

check: style  ## Lint, format, types and the quick tests: required for every change
	@$(MAKE) --no-print-directory -j 3 web types quick

lint: style web

style: setup page
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/hook_tables.py --check

web: setup page
	$(BIN)/python scripts/page.py --check

types: setup
	$(NICE) $(BIN)/pyright --project pyproject.toml

NO_QUICK_TESTS := --ignore=tests/real_sdks --ignore=tests/web  # importing the SDKs takes 4 s

quick: setup
	$(BIN)/python -m pytest -q -n 3 --timeout=60 -m "not slow and not clients" $(NO_QUICK_TESTS) --hypothesis-profile=quick

# The types are checked in the time that the tests leave, because they wait for panes and clients.
test: style  ## Everything that CI runs
	@$(MAKE) --no-print-directory -j 2 web types tests NICE="nice -n 19"
	@$(MAKE) --no-print-directory -j 2 corpus formulas-check

tests: setup web
	$(BIN)/python scripts/cover.py

coverage: setup page  ## Run the quick tests, and check the coverage of all modules
	$(BIN)/python scripts/cover.py --all

corpus: setup  ## Compare with a corpus of transcripts: make corpus DIR=...
	$(BIN)/python scripts/corpus.py $(DIR)
	$(if $(DIR),BRIMLINE_CORPUS=$(DIR) $(BIN)/python -m pytest -q tests/server/test_surfaces.py -k corpus)

formulas: setup  ## Generate the tables of "Which formula?": make formulas DIR=...
	$(BIN)/python scripts/formulas.py $(DIR)

formulas-check: setup
	$(BIN)/python scripts/formulas.py --check $(DIR)

frameworks: setup  ## Test LangGraph, LlamaIndex, CrewAI and Strands in an environment of their own
	CI=true $(BIN)/python -m pytest -q -n 0 -m "long and clients" tests/real_sdks/test_agent_frameworks.py tests/real_sdks/test_integration_guide.py

catalogue: setup  ## Generate the model catalogue, and the registries of the pinned clients
	$(BIN)/python scripts/registries.py
	$(BIN)/python scripts/catalogue.py

catalogue-check: setup
	$(BIN)/python scripts/catalogue.py --check
	$(BIN)/python scripts/registries.py --check

reference: setup  ## Generate the reference pages and the dashboard's API types
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/page.py --types

fixtures: setup  ## Record the fixtures and the demo with the real clients
	$(BIN)/python scripts/fixtures.py
	$(BIN)/python scripts/demo.py

wheels: setup  ## Build the wheels and source archives of a release into dist/
	$(BIN)/python scripts/wheels.py

bench: setup  ## Run the benchmarks
	$(BIN)/python bench/report.py
	$(BIN)/python bench/run.py
	$(BIN)/python bench/hook.py
	$(BIN)/python bench/starts.py
	$(BIN)/python bench/store.py
	$(BIN)/python bench/load.py
	$(BIN)/python bench/redact.py
	$(BIN)/python bench/explain.py
	$(BIN)/python bench/observe.py
	$(BIN)/python bench/estimate.py
	$(BIN)/python bench/fleet.py
	$(BIN)/python bench/uplink.py

newest: setup  ## Measure and test the newest version of every client: make newest CLIENT=codex
	$(BIN)/python scripts/newest.py $(CLIENT)

trust: setup  ## Run the long tests, or one of them: make trust ROW=kills
	$(if $(DIR),BRIMLINE_CORPUS=$(DIR)) $(BIN)/python scripts/trust.py $(ROW)

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .coverage*

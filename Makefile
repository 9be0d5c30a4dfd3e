# Everything runs in .venv, which is made when it is first needed.
# Threads: one, so that figures repeat and several runs can share a machine.
export OMP_NUM_THREADS := 1
SHELL := bash
BIN := .venv/bin
READY := .venv/.ready
.DEFAULT_GOAL := help
.PHONY: help setup demo shipped paper-small results test check format golden clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv and install the package with its tools

# torch comes first and pinned, so that all machines test the same one.
$(READY): pyproject.toml
	python3.11 -m venv .venv || python3 -m venv .venv
	$(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	touch $@

demo: $(READY) ## beam search against joint descent on a dozen sentences
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo.sh runs/demo

shipped: $(READY) ## train the models that ship, from CORPUS=FOLDER, and measure them
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/shipped.sh "$(CORPUS)" runs/shipped

paper-small: $(READY) ## redo the paper's tables and figures at toy scale
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/paper_small.sh runs/paper-small

results: $(READY) ## write docs/results.md anew from experiments/results and experiments/notes.md
	REFRESH_GOLDEN=1 $(BIN)/python -m pytest tests/contract/test_results_page.py -k "as_made or figures_say"

test: $(READY) ## run all tests
	$(BIN)/python -m pytest

check: $(READY) ## format, lint, types, then all tests with the import contract
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python -m pytest

format: $(READY) ## format the code, mend what the linter can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

golden: $(READY) ## write the agreed help texts and docs/commands.md anew
	REFRESH_GOLDEN=1 $(BIN)/python -m pytest tests/e2e/test_cli_frame.py -k "as_agreed or as_generated"

clean: ## remove caches and the demonstration, but not .venv
	rm -rf runs/demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

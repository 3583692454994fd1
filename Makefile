# One command runs the product (make demo), one proves it (make test). Both set up what they need first.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EVERYTHING := --editable '.[agent,langchain,postgres]' --group dev

.PHONY: help setup demo test check lint types long benchmarks generate adapters clean

help: ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

setup: $(READY) ## Make .venv with everything: the agent, the test tools, the libraries that are adapted

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "resweep needs Python 3.11 or later; none was found. Install it, or say: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (a minute or two, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python $(EVERYTHING) \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check $(EVERYTHING)
	@touch $(READY)

demo: $(READY) ## See the whole loop on a real corpus, on this machine
	@$(BIN)/resweep demo $(ARGS)

test: $(READY) check ## Everything that must hold before a change lands
	$(BIN)/python -m pytest $(ARGS)

check: lint types ## Lint, format and types

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

long: $(READY) ## The tests that take minutes
	$(BIN)/python -m pytest -m long $(ARGS)

generate: $(READY) ## Write what is generated: docs/metrics.md, docs/alerts.md, the dashboard
	$(BIN)/python -m resweep_exporters.metrics_page > docs/metrics.md
	$(BIN)/python .ci/write_alerts_page.py
	$(BIN)/python rules/dashboards/generate.py

adapters: ## Make .venvs/NAME with each library that is adapted, for the tests against them
	PYTHON="$(PYTHON)" .ci/adapter_venvs

clean: ## Remove what setup and the demo made
	rm -rf $(VENV) .venvs .demo dist build

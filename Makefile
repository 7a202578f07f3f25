# Everything starts here; each target sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo setup test lint bench campaign docs clean

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: ## yurt at work on this machine, in a minute: no cluster, no root, nothing of yours touched
	@bash tools/demo.sh "$(PYTHON)" "$(VENV)"

setup: $(STAMP) ## virtual environment with yurt and its tools

$(STAMP): pyproject.toml tools/venv.sh
	@bash tools/venv.sh "$(PYTHON)" "$(VENV)"
	@touch $(STAMP)

test: $(STAMP) ## lint and all tests, on real Slurm clusters (ONLY="tests/cli …" SLOW=1 WORKERS=4)
	@ONLY="$(ONLY)" SLOW="$(SLOW)" WORKERS="$(WORKERS)" $(BIN)/python -m tools.test

lint: $(STAMP) ## ruff, mypy --strict, layers and purity, shellcheck
	@$(BIN)/python -m tools.packages shellcheck
	@$(BIN)/python -m tools.lint

bench: $(STAMP) ## measure: ratios and figures beside their budgets (ONLY="sweep ps")
	@$(BIN)/python -m tools.packages
	@$(BIN)/python -m benchmarks $(ONLY)

campaign: $(STAMP) ## hundreds of submissions under drawn faults, counted by what they ran (SEED= RUNS= ONLY=)
	@$(BIN)/python -m tools.packages
	@$(BIN)/python -m tests.campaign $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) $(if $(ONLY),--only $(ONLY))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.chains $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.sweeps $(if $(SEED),--seed $(SEED)))

docs: $(STAMP) ## write docs/reference and the pictures anew from the code
	@$(BIN)/python -m tools.reference
	@$(BIN)/python -m tools.architecture
	@$(BIN)/python -m tools.picture

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .venv-demo .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# Each target installs what it needs. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo setup test lint bench campaign docs clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: ## run a one-minute demo on this machine; needs no cluster and no root
	@bash tools/demo.sh "$(PYTHON)" "$(VENV)"

setup: $(STAMP) ## create .venv with yurt and its development tools

$(STAMP): pyproject.toml tools/venv.sh
	@bash tools/venv.sh "$(PYTHON)" "$(VENV)"
	@touch $(STAMP)

test: $(STAMP) ## lint and run all tests, on real Slurm clusters (CHANGED=1 ONLY="tests/cli …" AGAIN=5 SEED= SLOW=1 WORKERS=4)
	@ONLY="$(ONLY)" SLOW="$(SLOW)" WORKERS="$(WORKERS)" CHANGED="$(CHANGED)" SEED="$(SEED)" \
	  AGAIN="$(AGAIN)" LOAD="$(LOAD)" QUOTA="$(QUOTA)" $(BIN)/python -m tools.test

lint: $(STAMP) ## run ruff, mypy, import-linter and shellcheck
	@$(BIN)/python -m tools.packages shellcheck
	@$(BIN)/python -m tools.lint

bench: $(STAMP) ## run the benchmarks and compare them with their budgets (ONLY="sweep ps")
	@$(BIN)/python -m tools.packages
	@$(BIN)/python -m benchmarks $(ONLY)

campaign: $(STAMP) ## submit hundreds of runs under random faults; check that each starts once (SEED= RUNS= ONLY=)
	@$(BIN)/python -m tools.packages
	@$(BIN)/python -m tests.campaign $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) $(if $(ONLY),--only $(ONLY))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.chains $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.sweeps $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.uploads $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.dev_nodes $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.backups $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.homes $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.races $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.watch $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.where $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.features $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,$(BIN)/python -m tests.campaign.hostile $(if $(SEED),--seed $(SEED)))
	@$(if $(ONLY),:,for version in 24.11 26.05; do for name in "" .chains .sweeps .races; do \
	  echo "Slurm $$version"; $(BIN)/python -m tests.campaign$$name --slurm $$version $(if $(SEED),--seed $(SEED)) || exit 1; done; done)

docs: $(STAMP) ## regenerate docs/reference and the pictures from the code
	@$(BIN)/python -m tools.reference
	@$(BIN)/python -m tools.architecture
	@$(BIN)/python -m tools.picture

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .venv-demo .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

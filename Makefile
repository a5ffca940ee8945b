# Deskhand. `make up` is all a newcomer needs; `make help` lists the rest.
SHELL := /bin/bash
PY := .venv/bin/python
.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-13s %s\n", $$1, $$2}'

.PHONY: setup
setup: ## Install everything into .venv and node_modules, and exit
	@scripts/setup

.PHONY: setup-test
setup-test: ## The same, with what tests and checks need
	@scripts/setup --test

.PHONY: setup-office
setup-office: ## The same, with LibreOffice and Chromium for x11 desktops (task set desk-office)
	@scripts/setup --office

.PHONY: up
up: setup ## Start everything and print the URL and the login (ARGS="--port 8800 --slots 4")
	@$(PY) manage.py up $(ARGS)

.PHONY: join
join: setup ## Make this machine a host of another installation and start it (SERVER=... ROLES=env; reads the token)
	@$(PY) manage.py join --server "$(SERVER)" --roles "$(or $(ROLES),env)"
	@$(PY) manage.py host $(ARGS)

.PHONY: host
host: setup ## Start this joined host again (ARGS="--slots 4")
	@$(PY) manage.py host $(ARGS)

.PHONY: doctor
doctor: setup ## Say what this machine can do and what is missing
	@$(PY) manage.py doctor

.PHONY: guest-image
guest-image: ## Build the desktop image of virtual machines (ARGS="debian-office", "--fresh", "--help")
	@scripts/setup --vm
	@PYTHONPATH=scripts $(PY) -m guest_image $(ARGS)

.PHONY: osworld-env
osworld-env: setup ## Install OSWorld's own environment .venv-osworld (LEVEL=lite, office or full)
	@$(PY) scripts/setup_osworld.py $(LEVEL)

.PHONY: sglang-env
sglang-env: setup ## Install SGLang's own environment .venv-sglang (NVIDIA GPUs; ARGS="--without-gpu")
	@$(PY) scripts/setup_sglang.py $(ARGS)

.PHONY: model-smollm2
model-smollm2: setup ## Put SmolLM2-135M-Instruct into the data folder, to train real weights on two cores
	@$(PY) scripts/fetch_smollm2.py $(ARGS)

.PHONY: test
test: setup-test ## Checks, then the tests on PostgreSQL and on SQLite (ARGS go to pytest)
	@scripts/test $(ARGS)

.PHONY: test-slow
test-slow: setup-test ## The tests that take minutes, those in containers and in virtual machines
	@$(MAKE) --no-print-directory guest-image ARGS=--if-changed || echo "tests on the guest image are skipped"
	@$(PY) -m pytest -m '(slow or vm) and not postgres' $(ARGS)
	@DESKHAND_TEST_DB=postgres $(PY) -m pytest -m 'slow and postgres' $(ARGS)

.PHONY: test-containers
test-containers: setup-test ## Build, start, upgrade, hurt and stop the containers of docker-compose.yml (needs Docker)
	@$(PY) -m pytest -m slow tests/benchmarks/test_containers.py $(ARGS)

.PHONY: test-gpu
test-gpu: setup-test ## The tests of a machine with NVIDIA GPUs
	@$(PY) -m pytest -m gpu $(ARGS)

.PHONY: check
check: setup-test ## Lint, import directions and types
	@scripts/check

.PHONY: format
format: setup-test ## Format Python and templates
	@$(PY) -m ruff check --fix . && $(PY) -m ruff format .
	@git ls-files 'templates/*.html' | xargs -r .venv/bin/djade --target-version 5.2
	@git ls-files 'templates/*.html' | xargs -r .venv/bin/djhtml --tabwidth 2

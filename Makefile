# Every target sets up what it needs; a fresh clone needs only Python >= 3.11, make and a package index.
# The two commands for newcomers: `make demo` and `make test`.

PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { command -v $$p; break; }; done)
BIN := .venv/bin
JOBS ?= auto
N ?= 100
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install

.DEFAULT_GOAL := help
.PHONY: help demo test test-real soak fuzz check format lock wire bench hostile clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/python: requirements/build.lock
	@test -n "$(PYTHON)" || { echo "mindie-ha needs Python 3.11 or newer with venv: install one and run make again" >&2; exit 2; }
	@echo "setting up .venv with $(PYTHON)" >&2
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) --require-hashes -r requirements/build.lock
	@touch $@

.venv/run: .venv/python requirements/run.lock pyproject.toml
	@echo "installing what mindie-ha needs to run (about half a minute)" >&2
	@$(PIP) --require-hashes -r requirements/run.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev: .venv/run requirements/dev.lock
	@echo "installing the tools for tests and checks (about a minute)" >&2
	@$(PIP) --require-hashes -r requirements/dev.lock
	@touch $@

demo: .venv/run ## run one recovery on the embedded cluster and tell its story
	@$(BIN)/mindie-ha demo

test: .venv/dev ## run the tests
	@$(BIN)/pytest -n $(JOBS) --dist loadfile

test-real: .venv/dev ## run the tests that need a real control plane (Debian's apt builds it once, about 4 minutes)
	@$(BIN)/python -m tools.control_plane build >/dev/null
	@$(BIN)/pytest tests/real -m real -n 2 --dist loadfile --durations=5

soak: .venv/dev ## play N random histories with crashes on virtual time, a quarter more with training jobs, and judge them (N=100)
	@$(BIN)/python -m tools.soak --seeds $(N)
	@$(BIN)/python -m tools.soak --theme training --seeds $$(( ($(N) + 3) / 4 ))

fuzz: .venv/dev ## throw 10,000 hostile inputs at every parser of fault reports
	@$(BIN)/pytest tests/intake -n $(JOBS) --hypothesis-profile=fuzz -m hypothesis --timeout 3600

check: .venv/dev ## lint, types, layers, sizes, manifests, docs
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/deptry . 
	@$(BIN)/codespell mindie_ha tests tools docs manifests README.md CHANGELOG.md CONTRIBUTING.md
	@$(BIN)/yamllint --strict manifests mindie_ha
	@$(BIN)/python -m tools.check && $(BIN)/python -m tools.docs --check

format: .venv/dev ## format the code and fix what can be fixed
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

wire: .venv/dev ## generate mindie_ha/wire again from its .proto files
	@$(BIN)/python -m tools.generate_wire

hostile: .venv/dev ## let clients that mean harm at a real controller; memory and delays
	@$(BIN)/python -m tools.hostile

bench: .venv/dev ## measure event-to-action times on the embedded cluster
	@$(BIN)/python -m tools.bench

lock: .venv/python ## resolve the locked dependencies again (needs uv)
	@command -v uv >/dev/null || $(PIP) uv
	@for want in "build requirements/build.in" "run pyproject.toml" "dev pyproject.toml --extra dev"; do set -- $$want; name=$$1; shift; \
		PATH="$(BIN):$$PATH" uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 "$$@" -o requirements/$$name.lock || exit 1; done

clean: ## remove what the targets made
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

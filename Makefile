.POSIX:
.SUFFIXES:
.PHONY: help render check test lint bench bench-softtaint image lock clean env env-dev

# The Python to make the environment with, by name or path.  Left empty: the first of these that is new enough.
PYTHON ?=
PYTHONS = python3 python3.14 python3.13 python3.12 python3.11 python

# More arguments for pytest, the benchmarks or the lock: make test ARGS="-k limits"
ARGS ?=

# What the image is called, and what builds it: the first of these that works.
IMAGE ?= kubevirt-policy-softtaint
BUILDER ?= podman buildah docker

BIN = .venv/bin
# Wheels with the locked hashes only: building an sdist would fetch its build tools without a hash.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED = $(INSTALL) --require-hashes --only-binary :all:
UV = uv==0.13.8
COMPILE = .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--custom-compile-command 'make lock' $${PIP_INDEX_URL:+--default-index "$$PIP_INDEX_URL"} $(ARGS)

# Sets $python, or says what is missing and stops.
FIND_PYTHON = python=; asked='$(PYTHON)'; \
	if [ -n "$$asked" ]; then set -- "$$asked"; else set -- $(PYTHONS); fi; \
	for candidate in "$$@"; do \
	    if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        python=$$candidate; break; \
	    fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "Python 3.11 or newer with its venv module is needed; looked for: $$*." >&2; \
	    echo "Install one (Debian and Ubuntu: python3 and python3-venv), or name it: make render PYTHON=/path/to/python3.12" >&2; \
	    exit 1; \
	fi

help: ## lists what make can do here
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1	\2/p' Makefile | expand -t 24

render: env ## makes the environment and renders policies/ into overlays/
	$(BIN)/kubevirt-policy render

check: env ## says whether overlays/ is what policies/ renders
	$(BIN)/kubevirt-policy check

test: lint ## makes the environment, then lints, checks types and import directions and runs every test
	$(BIN)/python -m pytest -n auto --dist loadgroup $(ARGS)

lint: env-dev ## all of test but the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: env-dev ## measures speed and memory on fleets of 1 to 10,000 clusters
	$(BIN)/python benchmarks/run.py $(ARGS)

bench-softtaint: env-dev ## measures the soft-tainter on a real API server with 100 to 5,000 nodes
	$(BIN)/python benchmarks/softtaint.py $(ARGS)

image: ## builds the soft-tainter's image with podman, buildah or docker; IMAGE=name:tag
	@for builder in $(BUILDER); do \
	    if $$builder info >/dev/null 2>&1; then \
	        set -x; exec $$builder build --file Containerfile --tag '$(IMAGE)' .; \
	    fi; \
	done; \
	echo "No image was built: none of $(BUILDER) works here.  Install podman, buildah or docker, and start its daemon." >&2; \
	exit 1

lock: ## resolves the locked versions anew after a change in pyproject.toml; ARGS=--upgrade for the newest ones
	@$(FIND_PYTHON); set -x; \
	"$$python" -m venv .venv-lock; \
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check $(UV); \
	$(COMPILE) --extra build --extra cluster --group dev --output-file requirements-dev.txt pyproject.toml; \
	$(COMPILE) --group install --constraints requirements-dev.txt --output-file requirements.txt pyproject.toml; \
	$(COMPILE) --group softtaint --constraints requirements-dev.txt --output-file requirements-softtaint.txt

clean: ## removes the environment, builds and caches
	rm -rf .venv .venv-lock .venv-bench build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find renderer tests -name __pycache__ -prune -exec rm -rf {} +

# The environment is made anew when what it was made from changes: the locks, the place of the checkout (an environment
# cannot be moved), or the PYTHON asked for.  As long as nothing changed, the network is not touched.
env:
	@asked='$(PYTHON)'; \
	made_from=`pwd -P; cat requirements.txt requirements-dev.txt | cksum`; \
	python=`cat .venv/python 2>/dev/null || :`; \
	if [ "$$made_from" != "`cat .venv/made-from 2>/dev/null`" ] || ! $(BIN)/python -c '' 2>/dev/null \
	    || [ "$${asked:-$$python}" != "$$python" ]; then \
	    $(FIND_PYTHON); \
	    echo "Making .venv with `"$$python" --version`; this takes a moment, once." >&2; \
	    rm -rf .venv; \
	    "$$python" -m venv .venv; \
	    $(LOCKED) -r requirements.txt; \
	    echo "$$python" > .venv/python; \
	    echo "$$made_from" > .venv/made-from; \
	fi
	@made_from=`cksum < pyproject.toml`; \
	if [ "$$made_from" != "`cat .venv/project 2>/dev/null`" ]; then \
	    $(INSTALL) --no-build-isolation --no-deps --editable .; \
	    broken=`$(BIN)/python -m pip check --disable-pip-version-check` \
	        || { echo "$$broken"; echo "The locks do not fit pyproject.toml any more: run make lock." >&2; exit 1; }; \
	    echo "$$made_from" > .venv/project; \
	fi

env-dev: env
	@if [ ! -f .venv/dev ]; then \
	    echo "Adding to .venv what the tests need." >&2; \
	    $(LOCKED) -r requirements-dev.txt; \
	    touch .venv/dev; \
	fi

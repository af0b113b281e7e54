# Each command sets up what it needs, once: see .ci/setup.
VENV   := .venv
READY  := $(VENV)/.ready
PYTHON := $(VENV)/bin/python
# Test processes, as many as the usual cores; 0 runs the tests in the process itself, where a debugger can stop. One more
# would fill the tenth of the time in which a test waits, and take more than that to collect all tests once more.
JOBS   ?= 2
# A file is one process's, which makes what its tests share once; where all cases are run, files are too long for that.
DIST   := loadfile --no-loadscope-reorder
# What pyright checks: the package, and what calls it in examples and documents. mypy checks the tests and benchmarks too;
# pyright takes a minute more for them, before a release: make pyright READ=
READ   := typings typings/gpusort examples docs web
# More arguments for pytest: make test ARGS='-k bitonic'
ARGS   ?=

VERSION = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Bytecode is kept: tests start hundreds of processes, each of which would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=
# And what is printed is buffered, as it is for users.
export PYTHONUNBUFFERED :=

.PHONY: ready demo test test-all check ruff mypy pyright bench bench-peers throughput pictures compare sweep ptx docs web page platforms \
	coverage mutate clean

# What all of the others need.
ready: $(READY)

demo: $(READY)
	@$(PYTHON) -m gpusort demo

test: $(READY)
	$(PYTHON) -m pytest -n $(JOBS) --dist $(DIST) --durations=10 --benchmark-disable \
		--junitxml build/tests.xml $(ARGS)

# Every combination of dtypes, orders, sizes and targets, where `make test` takes a choice of them: before a release, on a
# machine with a GPU and many cores, with JOBS as many.
test-all: ARGS += --whole
test-all: DIST := worksteal
test-all: test

# Side by side, and all of them whatever one says.
check: $(READY)
	@$(MAKE) --no-print-directory --keep-going --jobs ruff mypy pyright

ruff: $(READY)
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check

# As the Python that is here: the stubs of its NumPy may be for no older one.
mypy: $(READY)
	$(PYTHON) -m mypy --python-version $(VERSION)

pyright: $(READY)
	$(PYTHON) -m pyright --pythonversion $(VERSION) $(READ)

# A few minutes; ARGS='--largest 16777216', ARGS='-k "u4 and 1048576"', ARGS='--benchmark-json results.json'
bench: $(READY)
	$(PYTHON) -m pytest benchmarks --benchmark-only --benchmark-max-time 0.1 --benchmark-warmup on \
		--benchmark-warmup-iterations 2 --benchmark-columns min,median,rounds --benchmark-sort name -q $(ARGS)

# torch and polars, which the benchmarks compare with where they are installed.
bench-peers: $(READY)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[bench]'

# Throughput over sizes into a file, and the picture of it: make throughput ARGS='--target cpu --json FILE'
throughput: $(READY)
	$(PYTHON) -m benchmarks.throughput $(ARGS)

# What docs/ shows, from the newest throughput file of each machine.
pictures: $(READY)
	$(PYTHON) -m benchmarks.pictures --out docs benchmarks/results/throughput-*.json

# One side-by-side run against what people use today; ARGS='--only "cpu sort"', ARGS='--json results.json'
compare: $(READY)
	$(PYTHON) -m benchmarks.compare $(ARGS)

# Many ordinary calls against the best peer, a few minutes; ARGS='--quick', ARGS='--only "sum f4" --json results.json'
sweep: $(READY)
	$(PYTHON) -m benchmarks.sweep $(ARGS)

# The PTX of usual kernels that comes with the package, after these were changed: some minutes, and no card
ptx: $(READY)
	$(PYTHON) -m benchmarks.ptx

# The site, with an API reference, into build/site. What the documents show and link to is checked by `make test`.
docs: $(READY)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(PYTHON) -m docs.site.stage build/pages
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build -f docs/site/mkdocs.yml
	@echo "the site: build/site/index.html"

# The npm package, packed and not published: build/gpusort-VERSION.tgz, of what lies in build/web.
web: $(READY)
	@$(PYTHON) -m web.pack build/web

# The page of examples/web, into build/page: static files.
page: $(READY)
	@$(PYTHON) -m examples.web.build build/page

# Whether README's table of platforms is what the last `make test` has shown.
platforms: $(READY)
	@$(PYTHON) -m web.platforms build/tests.xml

# Whether tests fail where one operator, condition or statement is another one, half an hour: make mutate ARGS='--count 10 --seed 1'
mutate: $(READY)
	$(PYTHON) -m tests.mutate $(ARGS)

# Apart from `test`, which would take twice as long with it: most of the tests are interpreters in Python.
coverage: $(READY)
	$(PYTHON) -m pytest -n $(JOBS) --dist $(DIST) --benchmark-disable --cov --cov-report=term-missing --cov-report=html $(ARGS)
	@echo "lines in their place: htmlcov/index.html"

clean:
	rm -rf build dist *.egg-info src/*.egg-info typings/on-path/*.egg-info htmlcov .coverage .coverage.* coverage.xml
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	find src tests benchmarks examples typings -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt tests/web/package-lock.json .ci/setup .ci/packages .ci/vulkan .ci/web .ci/pyodide .ci/native
	@.ci/setup $(VENV) && { .ci/web "$(CURDIR)/$(PYTHON)" & .ci/vulkan $(PYTHON); wait; }
	@touch $@

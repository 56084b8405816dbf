# `make demo` and `make test` do all set-up by themselves, in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What `make demo` needs with the page in the browser; and all, as the tests need it.
FOR_DEMO := $(VENV)/installed-for-demo
INSTALLED := $(VENV)/installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SQVAE := $(BIN)/sqvae
RUN := demo/run
JOBS ?= 2

# The data sets that tests, benchmarks and results find by name, where they are at hand.
SQVAE_DATA ?= $(abspath $(wildcard ../shared/data))
ifneq ($(SQVAE_DATA),)
export SQVAE_DATA
endif

.PHONY: commands-docs crash crash-docs fuzz fuzz-docs demo demo-docs docs dropin-docs results results-docs test test-slow check benchmark format lock hashes readme-picture vectors-docs clean

# Train on real digits, measure, turn the test pictures into codes and back, and say what came of it.
demo: $(FOR_DEMO)
	rm -rf demo
	$(SQVAE) train demo --out $(RUN)
	$(SQVAE) evaluate $(RUN)
	$(SQVAE) encode $(RUN) demo -o demo/codes.safetensors
	$(SQVAE) decode $(RUN) demo/codes.safetensors -o demo/decoded
	$(SQVAE) inspect $(RUN)

# What the documentation shows of the demo.
demo-docs: demo
	mkdir -p docs/demo
	cp $(RUN)/results-test.md docs/demo/results.md
	cp $(RUN)/results-test.png $(RUN)/results-test.json $(RUN)/rates-test.png $(RUN)/curves.png docs/demo/

# What the documentation says of the commands, from what their help says.
commands-docs: $(FOR_DEMO)
	$(BIN)/python -m sqvae.cli.reference docs/commands.md

# The picture of the README, from the records of figure 5.
readme-picture: $(FOR_DEMO)
	$(BIN)/python scripts/readme_picture.py

# The documentation as a site, in docs/_build/html.
docs: $(INSTALLED)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

# The tables of the guide for users of other quantizers: a few minutes.
dropin-docs: $(INSTALLED)
	$(BIN)/python examples/dropin_vector_quantize.py --out docs/dropin-vector-quantize.md
	$(BIN)/python examples/dropin_diffusers.py --out docs/dropin-diffusers.md
	$(BIN)/python examples/dropin_residual.py --out docs/dropin-residual.md

# The table of the guide to vectors: a few minutes.
vectors-docs: $(INSTALLED)
	$(BIN)/python examples/semantic_ids.py --steps 1000 --out docs/vectors-digits.md

# All runs that docs/results.md shows: more than a day on two cores, and goes on where it was interrupted.
RESULTS := -o docs/results --runs runs/results --page docs/results.md
results: $(INSTALLED)
	$(SQVAE) reproduce every-budget --only steps=1000 $(RESULTS)
	$(SQVAE) reproduce every-budget --only part=whole --only rate=8e-3 --only rate=3e-3 \
		--only sq-vae-1 --only vq-vae-ema-closed --only vq-vae-ema-reset-closed $(RESULTS)
	$(SQVAE) reproduce every-budget --only mnist --only steps=15620 --only steps=31240 $(RESULTS)
	$(SQVAE) reproduce figure-2 $(RESULTS)
	$(SQVAE) reproduce figure-5 --only mnist $(RESULTS)
	$(SQVAE) reproduce figure-5 --only fashion-mnist --only k=64 --only k=256 --only d=64 $(RESULTS)
	$(SQVAE) reproduce table-2 figure-6 --data cifar10 $(RESULTS)
	$(SQVAE) reproduce table-2 --data cifar10 --only sq-vae-4 $(RESULTS)
	$(SQVAE) reproduce table-2 figure-7 --data cifar10 --download $(RESULTS)
	$(SQVAE) reproduce figure-10 --data cifar10 --download $(RESULTS)
	$(SQVAE) reproduce generation --download $(RESULTS)
	$(BIN)/python -m benchmarks.compression --runs runs/results --out docs/benchmarks-compression.md
	$(SQVAE) reproduce table-4 figure-4 --data camvid $(RESULTS)
	$(SQVAE) reproduce table-5 --only mnist $(RESULTS)
	$(SQVAE) reproduce encoder-inputs $(RESULTS)
	$(SQVAE) reproduce table-3 table-9 table-10 figure-8 --only librispeech $(RESULTS)
	$(SQVAE) reproduce figure-5 --scale paper --only mnist --only k=128 --only d=64 --only sq-vae-1 --only vq-vae-ema $(RESULTS)

# The page alone, from the records that are there.
results-docs: $(INSTALLED)
	$(SQVAE) reproduce --no-run $(RESULTS)

test: check
	$(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile -m "not slow"

# The few tests that take long: real compilers, large files, real kills of many processes.
test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Mutated files of every format that is read, for so many seconds; the same numbers are the same mutations.
SECONDS ?= 600
FIRST ?= 0
fuzz: $(INSTALLED)
	$(BIN)/python -m robustness.fuzz --seconds $(SECONDS) --first $(FIRST)

# Every command that writes, killed so many times, and met with full disks where one may mount them.
KILLS ?= 200
crash: $(INSTALLED)
	$(BIN)/python -m robustness.crash --kills $(KILLS)

# What the documentation shows of both: about an hour.
fuzz-docs: $(INSTALLED)
	$(BIN)/python -m robustness.fuzz --mutations 10000 --out docs/robustness-fuzz.md

crash-docs: $(INSTALLED)
	$(BIN)/python -m robustness.crash --kills 200 --out docs/robustness-crash.md

benchmark: $(INSTALLED)
	$(BIN)/python -m benchmarks.quantizers --out docs/benchmarks.md
	$(BIN)/python -m benchmarks.training --out docs/benchmarks-training.md
	$(BIN)/python -m benchmarks.speech --out docs/benchmarks-speech.md
	$(BIN)/python -m benchmarks.sampling --out docs/benchmarks-sampling.md
	$(BIN)/python -m benchmarks.exporting --out docs/benchmarks-export.md
	$(BIN)/python -m benchmarks.checks --out docs/benchmarks-checks.md

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Exact versions of everything, for each supported Python and system, from the ranges in pyproject.toml; and the hashes of
# what is installed, but for torch and the CUDA packages that some of its builds need: which build it is, the machine says.
COMPILE := $(VENV)-lock/bin/uv pip compile --quiet --universal --prerelease explicit --python-version 3.10 --no-annotate \
	--custom-compile-command "make lock"
lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --upgrade --all-extras --output-file constraints.txt constraints.in pyproject.toml
	$(MAKE) hashes

hashes:
	test -d $(VENV)-lock || $(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --generate-hashes --constraint constraints.txt $(BUILDS_OF_TORCH) --extra demo --extra explore \
		--output-file requirements-demo.txt constraints.in pyproject.toml
	$(COMPILE) --generate-hashes --constraint constraints.txt $(BUILDS_OF_TORCH) --all-extras \
		--output-file requirements.txt constraints.in pyproject.toml
	rm -rf $(VENV)-lock

BUILDS_OF_TORCH = $(shell sed -nE 's/^((nvidia|cuda)-[^=]*|torch|triton)==.*/--no-emit-package \1/p' constraints.txt | sort -u)

$(FOR_DEMO): pyproject.toml constraints.txt requirements-demo.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --no-deps --requirement requirements-demo.txt
	$(PIP) --constraint constraints.txt torch
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

$(INSTALLED): $(FOR_DEMO) requirements.txt
	$(PIP) --require-hashes --no-deps --requirement requirements.txt
	touch $@

clean:
	rm -rf $(VENV) demo docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

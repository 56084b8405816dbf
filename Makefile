# `make demo` and `make test` do all set-up by themselves, in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
SQVAE := $(BIN)/sqvae
RUN := demo/run

.PHONY: demo demo-docs mnist-docs test check benchmark format clean

# Train on real digits, measure, turn the test pictures into codes and back, and say what came of it.
demo: $(INSTALLED)
	rm -rf demo
	$(SQVAE) train demo --out $(RUN)
	$(SQVAE) evaluate $(RUN)
	$(SQVAE) encode $(RUN) demo -o demo/codes.safetensors
	$(SQVAE) decode $(RUN) demo/codes.safetensors -o demo/decoded
	$(SQVAE) inspect $(RUN)

# What the documentation shows of the demo, and of five epochs of the paper's MNIST.
demo-docs: demo
	$(call document,$(RUN),docs/demo)

mnist-docs: $(INSTALLED)
	rm -rf runs/mnist-5-epochs
	$(SQVAE) train mnist --epochs 5 --out runs/mnist-5-epochs
	$(call document,runs/mnist-5-epochs,docs/mnist-5-epochs)

define document
mkdir -p $(2)
cp $(1)/results-test.md $(2)/results.md
cp $(1)/results-test.png $(1)/results-test.json $(1)/curves.png $(2)/
endef

test: check
	$(BIN)/python -m pytest

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

benchmark: $(INSTALLED)
	$(BIN)/python -m benchmarks.quantizers --out docs/benchmarks.md
	$(BIN)/python -m benchmarks.training --out docs/benchmarks-training.md

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[demo,hub,benchmark,test]'
	touch $@

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

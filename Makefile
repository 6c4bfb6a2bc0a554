# The two commands most people need: `make run` and `make test`. Both install what is missing first.

MODEL ?= smollm2-135m-instruct
PROMPT ?= Why is the sky blue?
export MODEL PROMPT

DOPPLER := build/release/doppler

.DEFAULT_GOAL := help
.PHONY: help run test build models setup format check clean

help: ## show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 16
	@echo; echo 'Variables: MODEL and PROMPT for `make run`; WGPU_NATIVE_DIR, DOPPLER_WEBGPU, DOPPLER_CACHE (README.md).'

run: build ## set up, build, fetch the model and answer PROMPT
	@$(DOPPLER) pull "$$MODEL" >/dev/null
	@$(DOPPLER) run "$$MODEL" --chat "$$PROMPT" --temperature 0 --max-tokens 200

test: ## set up, build everything, fetch their models and run all tests
	@tools/setup.sh build test
	@tools/build.sh release
	@tools/models.sh
	@tools/test.sh release

build: setup ## build the program: build/release/doppler
	@tools/build.sh release doppler

models: build ## fetch the models that the tests use
	@tools/models.sh

setup: ## install missing packages and the WebGPU library
	@tools/setup.sh build

format: ## format the C++ sources
	@tools/setup.sh check
	@tools/format.sh

check: ## formatting, include rule, shell scripts
	@tools/setup.sh check
	@tools/check.sh

clean: ## remove what was built; models and the WebGPU library stay
	rm -rf build

# Thin on purpose: CMake presets do the work (CMakePresets.json).
.DEFAULT_GOAL := help
.PHONY: help setup build demo test bench check format format-check includes tidy asan tsan clang fuzz accuracy clean

TERRACE := build/release/terrace

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is needed with apt
	@scripts/setup.sh

build: setup ## build/release/terrace
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --target terrace

demo: build ## generate clicks, train a DeepFM on them, show the result
	@scripts/demo.sh $(TERRACE)

test: setup ## every test, release build
	@cmake --preset release --log-level=WARNING && cmake --build --preset release
	@ctest --preset release

bench: setup ## every benchmark
	@cmake --preset release --log-level=WARNING && cmake --build --preset release
	@scripts/bench.sh build/release

accuracy: build ## AUC of every example config on real data, where it is present
	@scripts/accuracy.py $(TERRACE)

check: format-check includes clang asan tsan fuzz tidy ## all that CI checks beside the tests

format: ## rewrite the sources in the project's format
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

format-check:
	@git ls-files '*.h' '*.cc' | xargs clang-format --dry-run --Werror

includes: ## who may include whom
	@scripts/check_includes.py

tidy: ## clang-tidy over the sources
	@scripts/tidy.sh build/clang

# What trains for minutes to show an AUC says nothing about memory.
asan: ## the tests under address and undefined-behaviour sanitizers
	@cmake --preset asan --log-level=WARNING && cmake --build --preset asan
	@ctest --preset asan -E 'Learn|Docs'

tsan: ## the tests of what has threads, under the thread sanitizer
	@cmake --preset tsan --log-level=WARNING
	@cmake --build --preset tsan --target base_test data_test train_test
	@ctest --preset tsan -L 'base|data|train'

clang: ## build with clang: thread-safety annotations are errors
	@cmake --preset clang --log-level=WARNING && cmake --build --preset clang

fuzz: clang ## a short run of every fuzz target
	@scripts/fuzz.sh build/clang

clean:
	rm -rf build

# Thin on purpose: CMake presets do the work (CMakePresets.json).
.DEFAULT_GOAL := help
.PHONY: help setup build demo test bench bench-build bench-peers bench-train bench-parse bench-lr \
        bench-index bench-disk bench-tiers bench-rows bench-snapshots check format format-check includes tidy asan tsan clang fuzz crash accuracy clean

TERRACE := build/release/terrace

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is needed with apt
	@scripts/setup.sh

build: setup ## build/release/terrace
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --target terrace

demo: build ## train a DeepFM on generated clicks, kill and resume it, then a model larger than memory
	@scripts/demo.sh $(TERRACE)

test: setup ## every test, release build
	@cmake --preset release --log-level=WARNING && cmake --build --preset release
	@ctest --preset release

# Each runs us and a peer on the same work and writes build/bench/NAME.json.
BENCHES := train parse lr index disk tiers rows snapshots

bench: $(BENCHES:%=bench-%) ## every benchmark, then one table of all results
	@bench/report.py

bench-build: setup
	@cmake --preset release --log-level=WARNING && cmake --build --preset release --target terrace benches

bench-peers: ## PyTorch, FBGEMM, polars and Vowpal Wabbit, from PyPI into build/peers
	@scripts/bench_peers.sh

bench-train: bench-build bench-peers ## DeepFM examples/s against PyTorch and FBGEMM
	@bench/train.py

bench-parse: bench-build bench-peers ## Criteo text to hashed batches against polars
	@bench/parse.py

bench-lr: bench-build bench-peers ## logistic regression from a text file against Vowpal Wabbit
	@bench/lr.py

bench-index: bench-build ## key index against boost::unordered_flat_map
	@bench/index.py

bench-disk: ## disk store against RocksDB and LMDB: 20 minutes, 40 GB of disk
	@scripts/setup.sh librocksdb-dev liblmdb-dev
	@$(MAKE) --no-print-directory bench-build
	@bench/disk.py

bench-tiers: ## training through two tiers against memory alone and RocksDB: 40 minutes, 60 GB of disk
	@scripts/setup.sh librocksdb-dev
	@$(MAKE) --no-print-directory bench-build
	@bench/tiers.py

bench-rows: bench-build ## admission, expiry and codecs: what they save and cost; 10 minutes
	@bench/rows.py

bench-snapshots: bench-build ## snapshots of a 5 GB model while it is trained: 3 minutes, 25 GB of disk
	@bench/snapshots.py

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

TESTS := base_test device_test data_test table_test model_test tier_test checkpoint_test train_test \
         cli_test e2e_test crash_test terrace

# What trains for minutes to show an AUC says nothing about memory errors; sanitizers need memory of
# their own, so runs with a budget cannot keep it. The longest test of snapshot faults takes minutes.
asan: ## the tests under address and undefined-behaviour sanitizers
	@cmake --preset asan --log-level=WARNING && cmake --build --preset asan --target $(TESTS)
	@TERRACE_TIER_CASES=40 TERRACE_RESUME_CASES=12 ctest --preset asan \
	  -E 'Learn|Docs|MemoryReport|^Tiers\.|^TrainCrash\.|^EvalCommand\.|^SnapshotFaults\.AnyOp'

tsan: ## the tests of what has threads, under the thread sanitizer
	@cmake --preset tsan --log-level=WARNING
	@cmake --build --preset tsan --target base_test data_test train_test tier_test
	@TERRACE_TIER_CASES=20 TERRACE_RESUME_CASES=8 ctest --preset tsan -L 'base|data|train' \
	  -E '^SnapshotFaults'
	@ctest --preset tsan -R '^RowSaver'
	@ctest --preset tsan -R '^(DiskThreads|DiskModel.Tiny|DiskFault.*Background)'

clang: ## build all with clang: thread-safety annotations are errors
	@cmake --preset clang --log-level=WARNING && cmake --build --preset clang

fuzz: ## build the program with clang, and a short run of every fuzz target
	@cmake --preset clang --log-level=WARNING && cmake --build --preset clang --target terrace fuzz
	@scripts/fuzz.sh build/clang

crash: setup ## kill a writer of a store 2,000 times and a training run 500 times; look at what is left
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --target crash_test
	@TERRACE_CRASH_KILLS=2000 TERRACE_TRAIN_CRASH_KILLS=500 \
	  build/release/crash_test --gtest_brief=1

clean:
	rm -rf build

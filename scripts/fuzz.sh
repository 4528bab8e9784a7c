#!/usr/bin/env bash
# Runs each fuzz target of a clang build for a number of inputs (FUZZ_RUNS) from its corpus on, the
# same ones each time unless FUZZ_SEED is another.
set -euo pipefail
build=$1
found=0
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
for target in "$build"/tests/fuzz/*_fuzz; do
  [ -x "$target" ] || continue
  found=$((found + 1))
  name=$(basename "$target")
  echo "fuzz: $name"
  mkdir "$new/$name"
  "$target" -seed="${FUZZ_SEED:-1}" -runs="${FUZZ_RUNS:-20000}" -max_total_time=120 \
    -timeout=20 -rss_limit_mb=1024 -print_final_stats=0 -verbosity=0 \
    "$new/$name" "$(dirname "$0")/../tests/fuzz/corpus/${name%_fuzz}"
done
[ "$found" -gt 0 ] || { echo "fuzz: no targets in $build/tests/fuzz" >&2; exit 1; }

#!/usr/bin/env bash
# Runs every benchmark program of a release build; arguments after the build folder go to each.
set -euo pipefail
build=$1
shift
mkdir -p build/bench
for program in "$build"/bench/*_bench; do
  name=$(basename "$program" _bench)
  echo "== $name"
  "$program" --benchmark_out="build/bench/$name.json" --benchmark_out_format=json "$@"
done

#!/usr/bin/env bash
# Makes a click log of a known hidden model, looks at it, and trains a DeepFM on it.
set -euo pipefail
terrace=$1
work=build/demo
mkdir -p "$work"
say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "terrace ${*}"; "$terrace" "$@"; }

[ -s "$work/train.csv.gz" ] || run data gen "$work/train.csv.gz" --format csv --examples 1000000 --slots 8 \
  --features 500 --dense 4
[ -s "$work/test.csv.gz" ] || run data gen "$work/test.csv.gz" --format csv --examples 100000 --slots 8 \
  --features 500 --dense 4 --part test
run data info "$work/test.csv.gz"
run train examples/demo.toml --set "data.train=$work/train.csv.gz" \
  --set "data.test=$work/test.csv.gz" --summary "$work/summary.json"

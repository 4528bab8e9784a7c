#!/usr/bin/env bash
# Makes a click log of a known hidden model, looks at it, and trains a DeepFM on it. Trains it again
# with snapshots, kills that run and resumes it. Then trains a model almost seven times as large as
# its memory, and the same one in memory. Both pairs are equal bit for bit.
set -euo pipefail
terrace=$1
work=build/demo
mkdir -p "$work"
say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "terrace ${*}"; "$terrace" "$@"; }
title() { printf '\n== %s\n' "$*"; }

title 'A click log and a DeepFM'
[ -s "$work/train.csv.gz" ] || run data gen "$work/train.csv.gz" --format csv --examples 1000000 --slots 8 \
  --features 500 --dense 4
[ -s "$work/test.csv.gz" ] || run data gen "$work/test.csv.gz" --format csv --examples 100000 --slots 8 \
  --features 500 --dense 4 --part test
run data info "$work/test.csv.gz"
run train examples/demo.toml --set "data.train=$work/train.csv.gz" \
  --set "data.test=$work/test.csv.gz" --summary "$work/summary.json"

title 'The same run, killed after its second snapshot, and resumed'
rm -rf "$work/snapshots"
snapshots=(--set "data.train=$work/train.csv.gz" --set "data.test=$work/test.csv.gz"
  --set "snapshot.dir=$work/snapshots" --set snapshot.every=100)
say "terrace train examples/demo.toml ${snapshots[*]}"
"$terrace" train examples/demo.toml "${snapshots[@]}" --quiet >/dev/null &
pid=$!
while kill -0 $pid 2>/dev/null && [ ! -d "$work/snapshots/000000000200" ]; do sleep 0.01; done
say "kill -9 $pid"
kill -9 $pid && wait $pid 2>/dev/null || true
run train examples/demo.toml "${snapshots[@]}" --resume --summary "$work/resumed.json"
run snapshot list "$work/snapshots"
python3 - "$work/summary.json" "$work/resumed.json" <<'EOF'
import json
import sys

whole, resumed = (json.load(open(path)) for path in sys.argv[1:])
same = whole["model_digest"] == resumed["model_digest"]
print(f"\nkilled, and resumed after batch {resumed.get('resumed_from', 'none')}: "
      + ("the same model, bit for bit" if same else "the models DIFFER"))
sys.exit(not same)
EOF

title 'A model of 1 GiB in a process of 150 MiB: rows that do not fit live on disk'
run train examples/larger_than_memory.toml --summary "$work/tiers.json"
title 'The same model in memory'
run train examples/larger_than_memory.toml --set tiers.disk.path= --set tiers.memory.budget=0 \
  --summary "$work/memory.json"
python3 - "$work/tiers.json" "$work/memory.json" <<'EOF'
import json
import sys

tiers, memory = (json.load(open(path)) for path in sys.argv[1:])
same = tiers["model_digest"] == memory["model_digest"]
print(f"\nthrough the SSD: {tiers['peak_rss'] >> 20} MiB of memory; without it: "
      f"{memory['peak_rss'] >> 20} MiB; "
      + ("the same model, bit for bit" if same else "the models DIFFER"))
sys.exit(not same)
EOF

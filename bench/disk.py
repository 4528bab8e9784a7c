#!/usr/bin/env python3
"""Our disk store, RocksDB and LMDB on the same work, and the device alone as the limit.

100 M keys with rows of 64 bytes, 1 GB of memory, one calling thread. A batch of K is K draws made
distinct, and the distinct keys are what counts; a cycle is a get and a put of the same keys. All rows
that are read are checked. No engine's put is a commit: write-ahead logs and syncs are off.

Memory: each engine has a budget for caches, indexes and write buffers, reads and writes past the page
cache, and runs in a cgroup of the budget, a quarter for its allocator and 256 MB for the batches.
LMDB has no cache but the page cache: its cgroup has no quarter on top. FBGEMM's options keep a hash
index of all keys outside of any cache, and build it with 130 bytes a key: that cgroup has 4 budgets.

Peers load sorted keys in bulk, their quickest way; we load random keys by puts. Then come uniform
puts, so that no store is read in the fresh state of a bulk load, and only then the cases.
"Settled": when no merge or compaction is due any more.

The limit of a get is a loop of direct reads by io_uring of as many random pages of a file as large,
sorted, near ones joined. Data is in $TERRACE_BENCH_DIR (default build/bench/disk), up to 40 GB.
"""
import argparse
import json
import os
import shutil
import subprocess
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import report
from disk_cgroup import MemoryLimit
from report import Case, run_json, say

NAMES = {"rocksdb": "RocksDB, tuned", "fbgemm": "RocksDB, FBGEMM's options", "lmdb": "LMDB"}
LAWS = ("uniform", "zipf:0.9", "zipf:0.99", "zipf:1.05")
BATCHES = (10_000, 100_000, 1_000_000)
BATCH = 100_000
INDEX_BYTES_A_KEY = 2.6  # of the small budget: fences, filters and index of the logs


@dataclass
class Size:
    rows: int
    memory: int
    puts: str      # before the cases
    seconds: int   # a phase

    @property
    def need_bytes(self):
        return int(self.rows * 400)


FULL = Size(100_000_000, 10**9, "10M", 6)
QUICK = Size(10_000_000, 128 * 10**6, "3M", 3)


def phase(kind, law, batch, limit):
    return f"{kind},{law},{batch},{limit}"


class Run:
    """Runs engines and keeps what they print: lines by (engine, phase)."""

    def __init__(self, base, size):
        self.base = base
        self.size = size
        self.lines = {}
        self.can_limit = True

    def __call__(self, engine, phases, memory=None, name=None, seed=0):
        name = name or engine
        memory = memory or self.size.memory
        argv = [report.PROGRAMS / "disk_bench", engine, self.base / name, "--rows", self.size.rows,
                "--memory", memory, "--seed", seed]
        for text in phases:
            argv += ["--phase", text]
        say(f"{name}: {len(phases)} phases")
        with self.limit(engine, memory) as limit:
            # An arena a thread would cost the peers' teams of threads memory, and wins no time.
            lines = run_json(limit.argv(argv) if limit else argv, MALLOC_ARENA_MAX="2")
        for line in lines:
            self.lines.setdefault((name, line["phase"]), []).append(line)

    def limit(self, engine, memory):
        if engine == "raw" or not self.can_limit:
            return nullcontext()
        room = {"fbgemm": 3 * memory, "lmdb": 0}.get(engine, memory // 4)
        try:
            return MemoryLimit(memory + room + 256 * 10**6)
        except OSError as error:
            say(f"no cgroups here ({error}): budgets are not enforced, and LMDB is left out, which "
                "has no budget of its own")
            self.can_limit = False
            return nullcontext()

    def peer(self, engine, phases, **more):
        """As a call; a peer that does not get through is left out of the table, loudly."""
        try:
            self(engine, phases, **more)
        except subprocess.CalledProcessError as error:
            say(f"{engine} FAILED with {error.returncode} (-9 or 137: over its memory)")

    def drop(self, *names):
        for name in names:
            shutil.rmtree(self.base / name, ignore_errors=True)

    def best(self, engine, text, what="keys_per_s", least=False):
        found = [line[what] for line in self.lines.get((engine, text), []) if what in line]
        return (min if least else max)(found) if found else None

    def settled(self, engine, i, what):
        lines = self.lines.get((engine, "settle"), [])
        return lines[i][what] if i < len(lines) else None


def measure(run, size):
    def timed(kind, law, batch=BATCH, seconds=size.seconds):
        return phase(kind, law, batch, f"{seconds}s")

    start = ["load", "settle", phase("put", "uniform", BATCH, size.puts), "settle"]
    key_cases = [timed("get", "uniform"), timed("cycle", "uniform"), timed("cycle", "zipf:0.99")]
    every = ([timed(kind, law) for kind in ("get", "put", "cycle") for law in LAWS]
             + [timed(kind, "uniform", batch) for kind in ("get", "cycle") for batch in BATCHES
                if batch != BATCH])
    end = ["settle", "reopen"]
    raw = [timed("get", "uniform", batch) for batch in BATCHES]

    run("raw", raw)
    run("ours", start + every + [timed("get", "absent"), timed("get2", "uniform")] + end)
    run.peer("rocksdb", start + every + end)
    # Another turn of each for what matters most: the machine is not the same all the time.
    run("raw", raw)
    run("ours", key_cases, seed=1)
    run.peer("rocksdb", key_cases, seed=1)
    buffers = run.lines["ours", "load"][0]["buffer_bytes"]
    run.drop("ours", "rocksdb")

    small = int(size.rows * INDEX_BYTES_A_KEY) + buffers
    run("ours", ["load", "settle", phase("put", "uniform", BATCH, f"{size.rows * 0.4 / 1e6}M"),
                 "settle"], memory=small, name="small")
    run.drop("small")

    # Without reopen: one thread builds its hash index, for the memory's sake, and takes a minute.
    run.peer("fbgemm", start + [timed("get", "uniform"), timed("get", "zipf:0.99"),
                                *(timed("cycle", law) for law in LAWS), "settle"])
    run.drop("fbgemm")
    if run.can_limit:
        run.peer("lmdb", ["load", "settle", timed("put", "uniform"), "settle",
                          *key_cases] + end)
        run.drop("lmdb")


def title(kind, law, batch):
    law = law.replace("zipf:", "Zipf ").replace("absent", "absent keys")
    return f"{kind}, {law}, batch {report.short(batch)}"


def against_peers(run, name, unit, value, scale=1, limit=None, less_is_better=False):
    """A case for each peer that has a value, the best peer first."""
    ours = value("ours")
    if ours is None:
        return []
    peers = [(value(peer), peer) for peer in NAMES if value(peer) is not None]
    peers.sort(reverse=not less_is_better)
    if not peers:
        return [Case(name, unit, ours / scale, limit=limit, less_is_better=less_is_better)]
    return [Case(name, unit, ours / scale, peer / scale, NAMES[who], limit, less_is_better)
            for peer, who in peers]


def rates(run, size):
    cases = [*against_peers(run, "load", "k rows/s", lambda e: run.best(e, "load"), 1e3)]
    shapes = [(kind, law, BATCH) for kind in ("get", "put", "cycle") for law in LAWS]
    shapes += [(kind, "uniform", batch) for kind in ("get", "cycle") for batch in BATCHES
               if batch != BATCH]
    shapes.append(("get", "absent", BATCH))
    for kind, law, batch in shapes:
        text = phase(kind, law, batch, f"{size.seconds}s")
        limit = run.best("raw", text)
        cases += against_peers(run, title(kind, law, batch), "k keys/s",
                               lambda e: run.best(e, text), 1e3, limit and limit / 1e3)
    one = run.best("rocksdb", phase("get", "uniform", BATCH, f"{size.seconds}s"))
    two = run.best("ours", phase("get2", "uniform", BATCH, f"{size.seconds}s"))
    cases.append(Case(title("get", "uniform", BATCH) + ", two callers", "k keys/s", two / 1e3,
                      one and one / 1e3, "RocksDB, tuned: a team of threads"))
    return cases


def costs(run, size):
    cases = []
    for kind, law in (("get", "uniform"), ("cycle", "uniform"), ("cycle", "zipf:0.99")):
        text = phase(kind, law, BATCH, f"{size.seconds}s")
        cases += against_peers(run, "CPU: " + title(kind, law, BATCH), "us/key",
                               lambda e: run.best(e, text, "cpu_us", True), less_is_better=True)

    def longest(engine, text):
        found = [line["max_ms"] / line["p50_ms"] for line in run.lines.get((engine, text), [])]
        return min(found) if found else None

    for law in ("uniform", "zipf:0.99"):
        text = phase("cycle", law, BATCH, f"{size.seconds}s")
        cases += against_peers(run, "longest / median: " + title("cycle", law, BATCH), "times",
                               lambda e: longest(e, text), less_is_better=True)
    for name, i, what in (("write amplification, uniform puts, settled", 1, "write_amplification"),
                          ("space / live rows, after uniform puts", 1, "space_amplification"),
                          ("space / live rows, after all cases", 2, "space_amplification")):
        cases += against_peers(run, name, "times", lambda e: run.settled(e, i, what),
                               less_is_better=True)
    cases += against_peers(run, "reopen", "s", lambda e: run.best(e, "reopen", "seconds", True),
                           less_is_better=True)
    cases += against_peers(run, "peak resident memory", "MB",
                           lambda e: run.best(e, "settle", "peak_rss"), 1e6, less_is_better=True)
    return cases


def small_budget(run):
    name = f"write amplification, uniform puts, settled, {INDEX_BYTES_A_KEY} B/key of index"
    return [Case(name, "times", run.settled("small", 1, "write_amplification"),
                 run.settled("fbgemm", 1, "write_amplification"),
                 "RocksDB, FBGEMM's options, full budget", less_is_better=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 M rows in 128 MB, 3 s a phase")
    size = QUICK if parser.parse_args().quick else FULL
    base = Path(os.environ.get("TERRACE_BENCH_DIR", report.OUT / "disk")).resolve()
    base.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(base).free
    if free < size.need_bytes:
        parser.exit(1, f"{base} has {free / 1e9:.0f} GB free; {size.need_bytes / 1e9:.0f} GB are "
                       "needed: make room, or set TERRACE_BENCH_DIR\n")
    run = Run(base, size)
    run.drop("raw", "ours", "small", *NAMES)
    try:
        measure(run, size)
    finally:
        run.drop("raw", "ours", "small", *NAMES)
        (base / "lines.json").write_text(json.dumps(list(run.lines.values())))
    cases = rates(run, size) + costs(run, size) + small_budget(run)
    for case in cases:
        case.case = "disk: " + case.case
    report.publish("disk", cases)


if __name__ == "__main__":
    main()

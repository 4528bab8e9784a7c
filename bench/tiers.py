#!/usr/bin/env python3
"""Training through two tiers against memory alone, the device, an exact LRU and RocksDB.

Every run trains on the same batches, made on the way: Zipf 1.05 over all rows, batches of 4,096. All
rows exist before the first batch (but in the growing run), and the first batches warm the tiers up
without being measured (after 300 batches of criteo a tenth more rows still come from disk than after
1,000). More batches come after the measured ones, so that these are not trained while nothing is pulled. Digests of the trained models are compared: a run that differs is an error.

Model bytes are rows x (key, weights, optimizer state). A budget is that of the whole process, where
it can be: a model "8x" has 8 times as many bytes as tiers.memory.budget. Where batches under way and
the net alone do not leave room in it, the budget is for rows: so many of them are in memory.

- criteo: 26 slots, 13 dense columns, dim 16, net of 400-400-400, in memory, 8x and 32x.
- ads100: 20 slots of 5 values, dim 8, net of 64-32, in memory and 8x. "Busiest" is the stage that
  works the longest; the limit of pull, in rows from disk a second of its own time, is a loop of raw
  reads of as many rows at once as a window brings (disk_bench raw). Stage times are of the whole run, warm-up too.
- the same run with RocksDB, tuned, as the lower tier, with the same memory.
- growth: new keys all the time, until the table has passed its number of rows.

Data is in $TERRACE_BENCH_DIR (default build/bench/tiers). All that the runs print is in lines.json
there.
"""
import argparse
import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import report
from goals import Goal, conclude
from report import Case, run_json, say

BATCH = 4096
ROW_BYTES = {"criteo": 144, "ads100": 80}  # with the key
DRAWS = {"ads100": BATCH * 100}
LEAST_BUDGET = {"criteo": 300e6, "ads100": 230e6}  # below, batches leave no room for rows


@dataclass
class Size:
    criteo_rows: int
    ads_rows: int
    warmup: dict      # batches, by shape
    batches: dict     # that are measured
    cooldown: dict    # after these, while rows of still later ones would come
    growth_rows: int  # to pass
    growth_budget: int
    raw_seconds: int

    @property
    def need_bytes(self):
        return int(2.2 * 80 * max(self.growth_rows, 3 * self.ads_rows))


FULL = Size(48_000_000, 64_000_000, {"criteo": 1000, "ads100": 100},
            {"criteo": 300, "ads100": 80}, {"criteo": 150, "ads100": 30}, 300_000_000, 2 << 30, 6)
QUICK = Size(4_000_000, 6_000_000, {"criteo": 40, "ads100": 40},
             {"criteo": 30, "ads100": 30}, {"criteo": 20, "ads100": 10}, 20_000_000, 640 << 20, 2)
FRESH = 0.3  # of draws: about half of a batch's distinct keys


@dataclass
class TierCase(Case):
    more: dict = field(default_factory=dict)

    def as_json(self):
        return {**super().as_json(), **self.more}


class Run:
    """Runs cases and keeps what they print, by name."""

    def __init__(self, base, size):
        self.base = base
        self.size = size
        self.lines = {}

    def __call__(self, name, argv, program="tiers_bench"):
        say(f"{name} ...")
        # An arena a thread would cost teams of threads memory, and wins no time.
        line = run_json([report.PROGRAMS / program, *argv], MALLOC_ARENA_MAX="2")[0]
        self.lines[name] = line
        if "examples_per_s" in line:
            busy = ", ".join(f"{stage} {time['busy']:.1f}" for stage, time in line["stages"].items())
            say(f"  {report.short(line['examples_per_s'])} examples/s, hit rate "
                f"{line['hit_rate']:.1%}, peak memory {line['peak_rss'] / 1e6:.0f} MB; "
                f"{line['run']['seconds']:.1f} s, busy: {busy}")
        return line

    def train(self, name, shape, rows, memory=None, store="ours"):
        """memory: settings of the tiers, or None for a run in memory."""
        argv = ["--shape", shape, "--rows", rows, "--prefill", "--warmup", self.size.warmup[shape],
                "--batches", self.size.batches[shape], "--cooldown", self.size.cooldown[shape],
                "--store", store]
        if memory is not None:
            argv += [*memory, f"tiers.disk.path={self.base / 'store'}"]
        try:
            return self(name, argv)
        finally:
            shutil.rmtree(self.base / "store", ignore_errors=True)


def memory_of(shape, rows, share):
    """Settings for 1/share of the model in memory, and what that is a share of."""
    budget = rows * ROW_BYTES[shape] // share
    if budget >= LEAST_BUDGET[shape]:
        return [f"tiers.memory.budget={budget}"], "budget"
    # A fifth for the disk tier would hold little more than the fences of so many pages.
    return ["--memory-rows", rows // share, "tiers.memory.budget=1000000000",
            f"tiers.disk.memory={max(budget * 2 // 5, 16 << 20)}", "train.window=44"], "rows"


def check_digest(line, same_as):
    if line["digest"] != same_as["digest"]:
        raise SystemExit(f"tiers: the model of {line['shape']} over {line['store']} differs from "
                         "the one trained in memory")


def facts(line):
    names = ("hit_rate", "digest", "budget", "peak_rss", "model_bytes", "rows", "rows_in_memory",
             "longest_gap", "stages")
    return {name: line[name] for name in names if name in line}


def criteo(run, goals):
    rows = run.size.criteo_rows
    memory = run.train("criteo in memory", "criteo", rows)
    rates = [memory["examples_per_s"]]
    cases = []
    for share, most in ((8, 1.3), (32, 2)):
        settings, of = memory_of("criteo", rows, share)
        line = run.train(f"criteo {share}x", "criteo", rows, settings)
        check_digest(line, memory)
        # The CPU's speed moves within minutes: the run in memory is done again.
        again = ["--shape", "criteo", "--rows", rows, "--prefill", "--warmup", 50, "--batches",
                 run.size.batches["criteo"], "--no-digest"]
        rates.append(run(f"criteo in memory after {share}x", again)["examples_per_s"])
        rate = sum(rates[-2:]) / 2
        name = f"criteo, model {share}x the memory ({of})"
        cases.append(TierCase(name, "k examples/s", line["examples_per_s"] / 1e3, rate / 1e3,
                              "the same, all in memory, before and after", more=facts(line)))
        goals.append(Goal(f"{name}: time over in memory", rate / line["examples_per_s"], most))
    return cases


def busiest(line):
    return max(line["stages"].items(), key=lambda stage: stage[1]["busy"])


def ads(run, goals):
    rows = run.size.ads_rows
    settings, of = memory_of("ads100", rows, 8)
    memory = run.train("ads100 in memory", "ads100", rows)
    line = run.train("ads100 8x", "ads100", rows, settings)
    check_digest(line, memory)
    name = f"ads100, model 8x the memory ({of})"
    cases = [TierCase(name, "k examples/s", line["examples_per_s"] / 1e3,
                      memory["examples_per_s"] / 1e3, "the same, all in memory", more=facts(line))]

    stage, time = busiest(line)
    over = line["run"]["seconds"] / time["busy"]
    cases.append(TierCase(f"{name}: wall time over that of the busiest stage", "times", over,
                          limit=1, less_is_better=True, more={"stage": stage}))
    goals.append(Goal(f"{name}: wall time over that of the busiest stage, {stage}", over, 1.15))

    read = line["run"]["from_disk"]
    a_window = read // line["windows"]["windows"]
    raw = run("raw reads", ["raw", run.base / "raw", "--rows", rows, "--row-bytes",
                            line["disk_row_bytes"], "--memory", 1, "--phase",
                            f"get,uniform,{a_window},{run.size.raw_seconds}s"], "disk_bench")
    shutil.rmtree(run.base / "raw", ignore_errors=True)
    pull = TierCase(f"{name}: pull", "k rows/s", read / line["stages"]["pull"]["busy"] / 1e3,
                    limit=raw["keys_per_s"] / 1e3, more={"rows_a_window": a_window})
    cases.append(pull)
    goals.append(Goal(f"{name}: pull over raw reads", pull.limit_share, 0.8, at_least=True))

    lru = run("exact LRU", ["--shape", "ads100", "--rows", rows, "--warmup",
                            run.size.warmup["ads100"], "--batches", run.size.batches["ads100"], "--lru", line["rows_in_memory"]])
    misses = Case(f"{name}: rows that are not in memory", "% of lookups",
                  100 * (1 - line["hit_rate"]), 100 * (1 - lru["hit_rate"]),
                  "exact LRU of as many rows", less_is_better=True)
    cases.append(misses)
    goals.append(Goal(f"{name}: rows read over an LRU's", misses.ours / misses.peer, 1))
    return cases + rocksdb(run, goals, name, settings, line)


def rocksdb(run, goals, name, settings, ours):
    try:
        line = run.train("ads100 8x over RocksDB", "ads100", run.size.ads_rows, settings, "rocksdb")
    except subprocess.CalledProcessError:
        say("the run over RocksDB did not get through and is LEFT OUT (is librocksdb-dev there?)")
        return []
    check_digest(line, ours)
    case = TierCase(f"{name}: lower tier", "k examples/s", ours["examples_per_s"] / 1e3,
                    line["examples_per_s"] / 1e3, "RocksDB, tuned, as the lower tier",
                    more={"peer_run": facts(line)})
    goals.append(Goal(f"{name}: examples/s over those with RocksDB", case.ratio, 4, at_least=True))
    return [case]


def growth(run, goals):
    size = run.size
    # Beside the new keys, batches bring the first ones of the law that were never drawn: few.
    batches = int(1.02 * size.growth_rows / (FRESH * DRAWS["ads100"]))
    line = run("growth", ["--shape", "ads100", "--rows", 1_000_000, "--fresh", FRESH, "--batches",
                          batches, "--no-digest", f"tiers.memory.budget={size.growth_budget}",
                          # Half: filters tell that a key is new without a read.
                          f"tiers.disk.memory={size.growth_budget // 2}",
                          f"tiers.disk.path={run.base / 'store'}"])
    shutil.rmtree(run.base / "store", ignore_errors=True)
    points = series(line["timeline"])
    plot_text(points)
    name = f"growth to {line['rows'] / 1e6:.0f} M rows in {size.growth_budget / 2**30:.1f} GiB"
    cases = [TierCase(name, "k examples/s", line["examples_per_s"] / 1e3, more=facts(line)),
             TierCase(f"{name}: longest pause between batches", "s", line["longest_gap"],
                      limit=line["median_gap"], less_is_better=True)]
    goals.append(Goal(f"{name}: longest pause between batches, s", line["longest_gap"], 1))
    middle, last = (mean_disk_rate(points, line["rows"] / 1e6, *part) for part in ((1, 2), (2, 3)))
    if middle and last:
        # Examples/s times rows from disk an example: what is left when the hit rate is taken out.
        cases.append(TierCase(f"{name}: rows from disk, last third against the one before",
                              "k rows/s", last, middle, "the same run, a third of its rows earlier"))
        goals.append(Goal(f"{name}: rows from disk a second, last third over the one before",
                          last / middle, 0.9, at_least=True))
    return cases


@dataclass
class Point:
    """A second or so of a run."""
    seconds: float     # since its start
    rows: float        # M
    examples: float    # k a second
    hits: int          # of the windows planned meanwhile; there may be none
    lookups: int
    longest: float     # pause
    reads: float       # k a second
    from_disk: float   # k rows a second
    merges: float      # MB a second, read and written


def series(timeline):
    def point(a, b):
        k_seconds = (b["seconds"] - a["seconds"]) * 1e3

        def rate(*names):
            return sum(b[name] - a[name] for name in names) / k_seconds
        return Point(b["seconds"], b["rows"] / 1e6, rate("examples"), b["hits"], b["lookups"],
                     b["longest"], rate("page_reads"), b["from_disk"] / k_seconds,
                     rate("merge_bytes_read", "merge_bytes_written") / 1e3)
    return [point(a, b) for a, b in zip(timeline, timeline[1:])]


def mean_disk_rate(points, rows, first, end):
    """k rows from disk a second while the table had first/3 to end/3 of its rows."""
    rates = [p.from_disk for p in points if first / 3 <= p.rows / rows < end / 3]
    return sum(rates) / len(rates) if rates else 0


def plot_text(points, lines=24, width=30):
    """A line for each part of the run: means, and the longest pause."""
    if not points:
        return
    most = max(p.examples for p in points)
    print(f"\n{'time':>7}  {'rows':>8}  {'examples/s':>10}  {'':{width}}  {'hit rate':>8}  "
          f"{'longest pause':>13}  {'from disk':>10}  {'an example':>10}  {'reads/s':>8}  {'merges':>8}")
    step = max(1, -(-len(points) // lines))
    for i in range(0, len(points), step):
        part = points[i:i + step]
        rate, reads, disk, merges = (
            sum(getattr(p, name) for p in part) / len(part)
            for name in ("examples", "reads", "from_disk", "merges"))
        hits = sum(p.hits for p in part) / max(1, sum(p.lookups for p in part))
        print(f"{part[-1].seconds:>5.0f} s  {part[-1].rows:>6.1f} M  {rate:>8.1f} k  "
              f"{'#' * round(rate / most * width):{width}}  {hits:>8.1%}  "
              f"{max(p.longest for p in part):>11.2f} s  {disk:>6.0f} k/s  "
              f"{disk / max(rate, 1e-9):>10.1f}  {reads:>6.0f} k  {merges:>3.0f} MB/s")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small tables, two minutes")
    parser.add_argument("--programs", type=Path, help="directory of the bench programs")
    parts = {"criteo": criteo, "ads100": ads, "growth": growth}
    parser.add_argument("--only", choices=parts, action="append", help="one part; nothing is written")
    args = parser.parse_args()
    size = QUICK if args.quick else FULL
    report.PROGRAMS = args.programs or report.PROGRAMS
    base = Path(os.environ.get("TERRACE_BENCH_DIR", report.OUT / "tiers")).resolve()
    base.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(base).free
    if free < size.need_bytes:
        parser.exit(1, f"{base} has {free / 1e9:.0f} GB free; {size.need_bytes / 1e9:.0f} GB are "
                       "needed: make room, or set TERRACE_BENCH_DIR\n")
    run = Run(base, size)
    goals = []
    cases = []
    try:
        for name in args.only or parts:
            cases += parts[name](run, goals)
    finally:
        shutil.rmtree(base / "store", ignore_errors=True)
        (base / "lines.json").write_text(json.dumps(run.lines))
    conclude("tiers", cases, goals, partly=bool(args.only))


if __name__ == "__main__":
    main()

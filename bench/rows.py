#!/usr/bin/env python3
"""What admission, expiry and codecs save, and what they cost.

- stream: a DeepFM of dim 8 over keys that drift and are mostly seen once. Keeping every key against
  admission by count and expiry of unseen rows: rows and memory in memory alone, bytes on disk
  through the tiers, and the AUC on what comes right after the training data. "Growth" is from the
  middle of the run to its end.
- codecs: the DeepFM of MovieLens-1M with each codec and rounding, each seed against fp32 with the
  same seed. Data is looked for as scripts/accuracy.py does; without it generated data stands in.
- speed: training with int8 rows against fp32, in memory, and through the disk tier with as much
  memory.

Stores are in $TERRACE_BENCH_DIR (default build/bench/rows). All summaries are in lines.json there;
the stream's plot is build/bench/rows.svg.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import report
from goals import Goal, conclude
from report import ROOT, Case, run_json, say
from tiers import BATCH, LEAST_BUDGET, ROW_BYTES

DATA = Path(os.environ.get("ACCURACY_DATA", ROOT.parent / "shared" / "data")) / "ml1m"

STREAM = """
seed = 1
[data]
format = "synthetic"
[data.synthetic]
train_examples = {examples}
test_examples = {test}
slots = {slots}
features = 50_000
zipf = 0.7
dense = 0
one_off = {one_off}
drift = {drift}
[tables.main]
dim = 8
lr = 0.05
[model]
kind = "deepfm"
hidden = [64, 32]
[train]
batch = {batch}
"""
# Where no real data is.
GENERATED = """
seed = 1
[data]
format = "synthetic"
[data.synthetic]
train_examples = 1_000_000
test_examples = 200_000
slots = 8
features = 5000
dense = 0
[tables.main]
dim = 16
lr = 0.02
[model]
kind = "deepfm"
hidden = [128, 64]
[train]
batch = 1024
"""
SLOTS = 10
ONE_OFF = 0.25
ADMITTED = 3  # occurrences

CODECS = [  # name, settings of the table, most that the AUC may lose
    ("fp32", {}, None),
    ("bf16", {"weight_codec": "bf16"}, None),
    ("bf16, nearest", {"weight_codec": "bf16", "rounding": "nearest"}, None),
    ("fp16", {"weight_codec": "fp16"}, None),
    ("fp16, nearest", {"weight_codec": "fp16", "rounding": "nearest"}, None),
    ("int16", {"weight_codec": "int16"}, 0.0002),
    ("int16, nearest", {"weight_codec": "int16", "rounding": "nearest"}, None),
    ("int8", {"weight_codec": "int8"}, 0.001),
    ("int8, nearest", {"weight_codec": "int8", "rounding": "nearest"}, None),
    ("int8, state bf16", {"weight_codec": "int8", "state_codec": "bf16"}, None),
]


@dataclass
class Size:
    examples: int  # of the stream
    test: int
    drift: int     # examples after which a value's place is another's
    unseen: int    # batches after which a row goes, and what is known of a key without one
    budget: int    # of the process, where the stream goes through tiers
    seeds: int     # of a codec's runs
    turns: int
    seconds: float
    tier_rows: int
    warmup: int    # batches through the tiers
    batches: int


FULL = Size(12_000_000, 1_000_000, 4_000_000, 100, 144 << 20, 4, 6, 2, 32_000_000, 100, 60)
QUICK = Size(2_000_000, 200_000, 1_000_000, 100, 128 << 20, 1, 2, 1, 4_000_000, 30, 20)


class Run:
    """Runs `terrace train` and the bench programs, and keeps what they report, by name."""

    def __init__(self, base, size):
        self.base = base
        self.size = size
        self.lines = {}

    def train(self, name, config, **sets):
        say(f"{name} ...")
        summary = self.base / "summary.json"
        argv = [report.TERRACE, "train", config, "--quiet", "--summary", summary]
        for key, value in sets.items():
            argv += ["--set", f"{key.replace('__', '.')}={value}"]
        try:
            subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "MALLOC_ARENA_MAX": "2"})
        finally:
            shutil.rmtree(self.base / "store", ignore_errors=True)
        line = json.loads(summary.read_text())
        self.lines[name] = line
        say(f"  AUC {line['auc']:.5f}, {report.short(line['rows'])} rows, "
            f"{report.short(line['examples_per_second'])} examples/s, peak memory "
            f"{line['peak_rss'] / 1e6:.0f} MB")
        return line

    def program(self, name, program, argv):
        try:
            line = run_json([report.PROGRAMS / program, *argv], MALLOC_ARENA_MAX="2")[0]
        finally:
            shutil.rmtree(self.base / "store", ignore_errors=True)
        self.lines[name] = line
        return line


def table_sets(settings):
    return {f"tables__main__{key}": value for key, value in settings.items()}


def at(timeline, name, examples):
    """A figure when so many examples were trained, between the points of the timeline."""
    points = [(0, 0)] + [(p["examples"], p[name]) for p in timeline]
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if x1 >= examples and x1 > x0:
            return y0 + (y1 - y0) * (examples - x0) / (x1 - x0)
    return points[-1][1]


def growth(timeline, name):
    """From the middle of the run to its end."""
    end = timeline[-1]["examples"]
    return timeline[-1][name] - at(timeline, name, end / 2)


def stream(run, goals):
    size = run.size
    config = run.base / "stream.toml"
    config.write_text(STREAM.format(examples=size.examples, test=size.test, drift=size.drift,
                                    slots=SLOTS, one_off=ONE_OFF, batch=BATCH))
    # The one-off keys of a period, and those that have a row or wait for one.
    keys = int(2.5 * size.unseen * BATCH * SLOTS * ONE_OFF)
    few = table_sets({"admission__by": "count", "admission__count": ADMITTED,
                      "admission__keys": keys,
                      "admission__forget": size.unseen, "life__unseen": size.unseen})
    tiers = {"tiers__memory__budget": size.budget, "tiers__disk__path": run.base / "store"}
    all_memory = run.train("stream, every key, in memory", config)
    few_memory = run.train("stream, few keys, in memory", config, **few)
    all_disk = run.train("stream, every key, tiers", config, **tiers)
    few_disk = run.train("stream, few keys, tiers", config, **few, **tiers)
    for tiered, memory in ((all_disk, all_memory), (few_disk, few_memory)):
        if tiered["model_digest"] != memory["model_digest"]:
            raise SystemExit("rows: the model trained through tiers differs from the one in memory")

    curves = [("rows", "M rows", 1e6, all_memory, few_memory, "rows_in_memory"),
              ("memory", "MB", 1e6, all_memory, few_memory, "rss"),
              ("disk", "MB", 1e6, all_disk, few_disk, "disk_bytes")]
    plot_text(curves)
    (report.OUT / "rows.svg").write_text(plot_svg(curves))
    say("written: build/bench/rows.svg")

    once = ONE_OFF * SLOTS * size.examples / all_memory["rows"]
    say(f"{once:.0%} of all keys were drawn once by the generator's one_off")
    rule = f"count {ADMITTED}, unseen {size.unseen}"
    cases = []
    for name, unit, scale, every, few_line, of in curves:
        ours, peer = (line["timeline"][-1][of] / scale for line in (few_line, every))
        cases.append(Case(f"stream, {rule}: {name} at the end", unit, ours, peer, "every key",
                          less_is_better=True))
        ours, peer = (growth(line["timeline"], of) for line in (few_line, every))
        goals.append(Goal(f"stream: growth of {name} in the second half over keeping every key's",
                          ours / peer, 0.1))
    cases.append(Case(f"stream, {rule}: AUC", "AUC", few_memory["auc"], all_memory["auc"],
                      "every key", limit=all_memory["best_auc"]))
    goals.append(Goal("stream: AUC that is lost", all_memory["auc"] - few_memory["auc"], 0.0005))
    for name, ours, peer in (("in memory", few_memory, all_memory), ("tiers", few_disk, all_disk)):
        cases.append(Case(f"stream, {rule}, {name}: speed", "k examples/s",
                          ours["examples_per_second"] / 1e3, peer["examples_per_second"] / 1e3,
                          "every key"))
    return cases


def codecs(run, goals):
    sets = {}
    config = ROOT / "examples" / "movielens" / "deepfm.toml"
    name = "MovieLens-1M"
    if (DATA / "train.csv.gz").exists():
        sets = {"data__train": DATA / "train.csv.gz", "data__test": DATA / "test.csv.gz"}
    else:
        say(f"no data: {DATA} is not here (set ACCURACY_DATA); GENERATED data stands in")
        config = run.base / "generated.toml"
        config.write_text(GENERATED)
        name = "generated"
    found = {codec: [] for codec, _, _ in CODECS}
    for seed in range(1, run.size.seeds + 1):
        for codec, settings, most in CODECS:
            # Seeds differ by more than the goals: more of them where there is one.
            if codec != "fp32" and most is None and seed > (run.size.seeds + 1) // 2:
                continue
            found[codec].append(run.train(f"{name}, {codec}, seed {seed}", config, seed=seed,
                                          **sets, **table_sets(settings)))
    print(f"\n{'weights':18} {'AUC':>8} {'to fp32':>9} {'+-':>8} {'bytes/row':>9} "
          f"{'examples/s':>10}")
    cases = []
    for codec, settings, most in CODECS:
        lines = found[codec]
        losses = [base["auc"] - line["auc"] for base, line in zip(found["fp32"], lines)]
        error = stdev(losses) / math.sqrt(len(losses)) if len(losses) > 1 else 0
        auc = mean(line["auc"] for line in lines)
        speed = max(line["examples_per_second"] for line in lines)
        row_bytes = 8 + row_payload(16 + 1, settings)
        print(f"{codec:18} {auc:8.5f} {0 - mean(losses):+9.5f} {error:8.5f} {row_bytes:9} "
              f"{speed:10,.0f}", flush=True)
        if codec == "fp32":
            continue
        cases.append(Case(f"{name}, {codec}, {row_bytes} bytes a row: AUC", "AUC", auc,
                          auc + mean(losses), "fp32, same seeds"))
        if most is not None:
            goals.append(Goal(f"{name}, {codec}: AUC that is lost, mean of {len(lines)} seeds",
                              mean(losses), most))
    return cases


def row_payload(numbers, settings):
    """Of AdaGrad rows: weights and as many numbers of state, each a multiple of 4 bytes."""
    def part(codec):
        size = {"fp32": 4, "fp16": 2, "bf16": 2, "int16": 2, "int8": 1}[codec]
        if codec.startswith("int"):  # a scale; the linear weight is a float
            return -(-size * (numbers - 1) // 4) * 4 + 8
        return -(-size * numbers // 4) * 4
    return part(settings.get("weight_codec", "fp32")) + part(settings.get("state_codec", "fp32"))


INT8 = ["tables.main.weight_codec=int8"]


def speed(run, goals):
    cases = []
    for shape in ("ads100", "criteo"):
        best = {"fp32": 0, "int8": 0}
        for _ in range(run.size.turns):
            for codec, sets in (("fp32", []), ("int8", INT8)):
                line = run.program(f"{shape}, {codec}", "train_bench",
                                   [shape, run.size.seconds, *sets])
                say(f"  {shape:7} {codec} {line['mean']:10,.0f} examples/s")
                best[codec] = max(best[codec], line["mean"])
        case = Case(f"{shape} in memory, int8 weights", "k examples/s", best["int8"] / 1e3,
                    best["fp32"] / 1e3, "fp32")
        cases.append(case)
        goals.append(Goal(f"{shape} in memory: int8 over fp32, examples/s", case.ratio, 0.9,
                          at_least=True))
    return cases + disk_speed(run, goals)


def disk_speed(run, goals):
    size = run.size
    rows = size.tier_rows
    # An eighth of the fp32 model, whatever the codec; less would leave no room beside batches.
    budget = int(max(LEAST_BUDGET["ads100"], rows * ROW_BYTES["ads100"] / 8))
    argv = ["--shape", "ads100", "--rows", rows, "--prefill", "--warmup", size.warmup, "--batches",
            size.batches, "--no-digest",
            f"tiers.memory.budget={budget}", f"tiers.disk.path={run.base / 'store'}"]
    lines = {}
    for codec, sets in (("fp32", []), ("int8", INT8),
                        ("int8, state bf16", INT8 + ["tables.main.state_codec=bf16"])):
        line = lines[codec] = run.program(f"ads100 through tiers, {codec}", "tiers_bench",
                                          argv + sets)
        say(f"  ads100 through tiers, {codec}: {line['examples_per_s']:,.0f} examples/s, hit rate "
            f"{line['hit_rate']:.1%}, {line['disk_row_bytes']} bytes a row on disk, "
            f"pull busy {line['stages']['pull']['busy'] / line['run']['seconds']:.0%}")
    cases = [Case(f"ads100 through tiers, {codec} weights", "k examples/s",
                  line["examples_per_s"] / 1e3, lines["fp32"]["examples_per_s"] / 1e3,
                  "fp32, same memory") for codec, line in lines.items() if codec != "fp32"]
    goals.append(Goal("ads100 through tiers: int8 over fp32, examples/s", cases[0].ratio, 1,
                      at_least=True))
    return cases


def plot_text(curves, lines=12, width=24):
    """Each figure over the examples of the run: every key, and few."""
    for name, unit, scale, every, few, of in curves:
        most = max(p[of] for p in every["timeline"] + few["timeline"])
        end = every["timeline"][-1]["examples"]
        print(f"\n{name:>10} {'every key':>11} {'':{width}}  {'few':>9}")
        for i in range(1, lines + 1):
            x = end * i / lines
            a, b = at(every["timeline"], of, x), at(few["timeline"], of, x)
            bars = ["#" * round(y / most * width) for y in (a, b)]
            print(f"{x / 1e6:8.1f} M {a / scale:8.1f} {unit[:2]} {bars[0]:{width}} "
                  f"{b / scale:8.1f} {unit[:2]} {bars[1]}")
    print(flush=True)


def plot_svg(curves):
    """A panel for each figure, lines over examples."""
    width, height, left, top = 260, 180, 60, 40
    step = left + width + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{step * len(curves) + 10}" '
             f'height="{top + height + 60}" font-family="sans-serif" font-size="13">',
             '<rect width="100%" height="100%" fill="white"/>']
    for i, (name, unit, scale, every, few, of) in enumerate(curves):
        x0, y0 = left + i * step, top + height
        most = max(p[of] for p in every["timeline"] + few["timeline"])
        end = max(line["timeline"][-1]["examples"] for line in (every, few))
        parts.append(f'<text x="{x0}" y="{top - 14}">{name}, {unit}</text>')
        parts.append(f'<path d="M{x0} {top}V{y0}H{x0 + width}" fill="none" stroke="#888"/>')
        parts.append(f'<text x="{x0 - 6}" y="{top + 10}" text-anchor="end">'
                     f'{report.short(most / scale)}</text>')
        parts.append(f'<text x="{x0 + width}" y="{y0 + 16}" text-anchor="end">'
                     f'{end / 1e6:.0f} M examples</text>')
        for line, colour in ((every, "#c1121f"), (few, "#2a6f97")):
            points = " ".join(f"{x0 + p['examples'] / end * width:.1f},"
                              f"{y0 - p[of] / most * height:.1f}" for p in line["timeline"])
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" '
                         'stroke-width="2"/>')
    parts.append(f'<text x="{left}" y="{top + height + 44}">'
                 '<tspan fill="#c1121f">every key</tspan> '
                 '<tspan fill="#2a6f97">admission and expiry</tspan></text></svg>')
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, five minutes")
    parts = {"stream": stream, "codecs": codecs, "speed": speed}
    parser.add_argument("--only", choices=parts, action="append",
                        help="one part; no rows.json is written")
    args = parser.parse_args()
    base = Path(os.environ.get("TERRACE_BENCH_DIR", report.OUT / "rows")).resolve()
    base.mkdir(parents=True, exist_ok=True)
    run = Run(base, QUICK if args.quick else FULL)
    goals = []
    cases = []
    try:
        for name in args.only or parts:
            cases += parts[name](run, goals)
    finally:
        (base / "lines.json").write_text(json.dumps(run.lines))
    conclude("rows", cases, goals, partly=bool(args.only))


if __name__ == "__main__":
    main()

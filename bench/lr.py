#!/usr/bin/env python3
"""Logistic regression from a text file to a trained model, against Vowpal Wabbit, on the same rows.

The rows are Criteo-shaped clicks of `terrace data gen` with categories of 8 hex digits: 13 integers,
used as log(1 + x), and 26 categories. Each side reads the text format of its own, from the page
cache, in one pass: ours whole command (process start to end, bench/configs/lr.toml); the peer's
parser and learner threads without the start of Python, 2^22 weights, the fastest of three ways to
update: a first round finds it, then both sides have as many turns and the best of them counts. Log
losses are progressive (each example before it is learnt from) and of 100 k test rows;
there the peer has its best way. Ours has no collisions of features, the peer has some.
"""
import json
import math
import subprocess
import tempfile
import time
from pathlib import Path

import report
from report import Case, run_json, say

EXAMPLES = {"train": 1_500_000, "test": 100_000}
SCREENING = 2  # rounds of all ways of the peer
TURNS = 8
WAYS = {  # of the peer to update, with learning rates that suit them
    "adaptive, normalised, invariant": ["-l", "0.2"],
    "adaptive": ["--adaptive", "-l", "0.05"],
    "plain SGD": ["--sgd", "-l", "0.05"],
}


class Category(dict):
    """Number of a value in a slot -> 8 hex digits, as in the real files."""

    def __init__(self, slot):
        super().__init__()
        self.slot = slot

    def __missing__(self, value):
        mixed = ((int(value) * 26 + self.slot + 1) * 0x9E3779B97F4A7C15) % 2**64
        mixed = ((mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93) % 2**64
        self[value] = f"{mixed >> 32:08x}"
        return self[value]


class Number(dict):
    """Text of an integer -> the peer's feature."""

    def __init__(self, column):
        super().__init__()
        self.column = column

    def __missing__(self, value):
        self[value] = f"{self.column}:{math.log1p(int(value)):.4g}"
        return self[value]


def write_files(part, ours, peer):
    say(f"writing {ours} and {peer}")
    categories = [Category(slot) for slot in range(26)]
    numbers = [Number(column) for column in range(13)]
    rows = subprocess.Popen(
        [report.TERRACE, "data", "gen", "-", "--format", "criteo", "--part", part,
         "--examples", str(EXAMPLES[part])],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with open(f"{ours}.part", "w") as tsv, open(f"{peer}.part", "w") as vw:
        for row in rows.stdout:
            cells = row.rstrip("\n").split("\t")
            keys = [known[cell] for known, cell in zip(categories, cells[14:])]
            values = [known[cell] for known, cell in zip(numbers, cells[1:14])]
            tsv.write("\t".join(cells[:14] + keys) + "\n")
            label = "1" if cells[0] == "1" else "-1"
            vw.write(f"{label} |i {' '.join(values)} |c {' '.join(keys)}\n")
    if rows.wait() != 0:
        raise RuntimeError("terrace data gen failed")
    Path(f"{ours}.part").rename(ours)
    Path(f"{peer}.part").rename(peer)


def files(part):
    """The same rows for us and for the peer."""
    ours, peer = report.OUT / f"lr_{part}.tsv", report.OUT / f"lr_{part}.vw"
    if not (ours.exists() and peer.exists()):
        write_files(part, ours, peer)
    return ours, peer


def train_ours(folder, train, test=None):
    """Seconds of the whole command, and its summary."""
    summary = folder / "summary.json"
    argv = [report.TERRACE, "train", report.ROOT / "bench/configs/lr.toml", "--quiet",
            "--summary", summary, f"--set=data.train={train}"]
    if test is not None:
        argv.append(f"--set=data.test={test}")
    start = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start, json.loads(summary.read_text())


def run_peer(file, *options):
    return run_json([report.PEER_PYTHON, report.ROOT / "bench/peers/lr_vw.py", "-d", file,
                     "--loss_function", "logistic", "-b", "22", *options])[-1]


def losses(folder, train, test):
    """{side: (progressive, test)}, outside the clock."""
    summary = train_ours(folder, train[0], test[0])[1]
    found = {"ours": (summary["train_loss"], summary["logloss"])}
    for way, options in WAYS.items():
        model = folder / "model.vw"
        progressive = run_peer(train[1], *options, "-f", model)["loss"]
        found[way] = progressive, run_peer(test[1], "-t", "-i", model)["loss"]
    return found


def main():
    report.OUT.mkdir(parents=True, exist_ok=True)
    train, test = files("train"), files("test")
    with tempfile.TemporaryDirectory() as folder:
        found = losses(Path(folder), train, test)
        fastest = min(WAYS, key=lambda way: min(
            run_peer(train[1], *WAYS[way])["seconds"] for _ in range(SCREENING)))
        say(f"the peer's fastest way: {fastest}")
        times = []
        for i in range(TURNS):
            times.append((train_ours(Path(folder), train[0])[0],
                          run_peer(train[1], *WAYS[fastest])["seconds"]))
            say(f"turn {i + 1} of {TURNS}, seconds: ours {times[-1][0]:.2f}, "
                f"peer {times[-1][1]:.2f}")
    ours, peer = (min(side) for side in zip(*times))
    name = "Vowpal Wabbit 9.11, " + fastest
    cases = [Case("logistic regression from text", "examples/s", EXAMPLES["train"] / ours,
                  EXAMPLES["train"] / peer, name)]
    for i, kind in enumerate(("progressive", f"on {EXAMPLES['test'] // 1000} k test rows")):
        way = min(WAYS, key=lambda w: found[w][i])
        cases.append(Case(f"logistic regression, loss {kind}", "log loss", found["ours"][i],
                          found[way][i], "Vowpal Wabbit 9.11, " + way, less_is_better=True))
    report.publish("lr", cases)


if __name__ == "__main__":
    main()

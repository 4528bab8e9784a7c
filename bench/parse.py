#!/usr/bin/env python3
"""Criteo text in a file (in the page cache) to hashed batches, against polars doing the same.

"1 core" is one core in truth: reader and parser threads of both sides are pinned to core 0. The
limit is what read() alone needs on one core to hand over the bytes. Where a sample of the real data
is found in $ACCURACY_DATA (default: ../shared/data beside the project), it is measured too. Last, a
DeepFM is trained from the text, to see that reading does not hold training up.
"""
import gzip
import json
import os
import subprocess
import tempfile
from pathlib import Path

import report
from report import Case, run_json, say

MEGABYTES = 300
ROUNDS = 3
PIN = ["taskset", "-c", "0"]
DATA = Path(os.environ.get("ACCURACY_DATA", report.ROOT.parent / "shared" / "data"))


def generated_file():
    path = report.OUT / "parse_generated.tsv"
    if not path.exists():
        say(f"writing {path}")
        subprocess.run([report.PROGRAMS / "parse_bench", "write", path, str(MEGABYTES)], check=True)
    return path


def sample_file():
    """The real sample, repeated; None if it is not here."""
    parts = sorted(DATA.glob("criteo_*/train.tsv.gz"))
    if not parts:
        say(f"no real Criteo sample: {DATA}/criteo_* is not here (set ACCURACY_DATA)")
        return None
    path = report.OUT / "parse_sample.tsv"
    if not path.exists():
        say(f"writing {path} from {len(parts)} samples in {DATA}")
        text = b"".join(gzip.decompress(part.read_bytes()) for part in parts)
        temporary = path.with_suffix(".part")
        temporary.write_bytes(text * -(-MEGABYTES * 1_000_000 // len(text)))
        temporary.rename(path)
    return path


def speed(argv, **env):
    found = run_json(argv, **env)[-1]
    return found["bytes"] / found["seconds"] / 1e6


def ours(path, threads, shuffle=0):
    pin = PIN if threads == 1 else []
    return speed([*pin, report.PROGRAMS / "parse_bench", "read", path, threads, shuffle])


def polars(path, mode, threads):
    pin = PIN if threads == 1 else []
    return speed([*pin, report.PEER_PYTHON, report.ROOT / "bench/peers/parse_polars.py", path, mode],
                 POLARS_MAX_THREADS=str(threads))


def measure(name, path):
    """The best of several rounds, in which everybody has a turn."""
    best = {}

    def keep(what, value):
        best[what] = max(best.get(what, 0), value)
    for i in range(ROUNDS):
        for mode in ("eager", "lazy", "streaming"):
            keep("bytes", speed([*PIN, report.PROGRAMS / "parse_bench", "bytes", path]))
            keep("shuffled", ours(path, 2, 100_000))
            for threads in (1, 2):
                keep(f"ours {threads}", ours(path, threads))
                keep(f"polars {threads}", polars(path, mode, threads))
        say(f"{name}, round {i + 1} of {ROUNDS}, MB/s so far: " +
            ", ".join(f"{what} {value:.0f}" for what, value in best.items()))

    def scaling(who):
        return best[f"{who} 2"] / best[f"{who} 1"]
    peer = "polars, best of 3 modes"
    return [
        Case(f"{name}, 1 core", "MB/s", best["ours 1"], best["polars 1"], peer, best["bytes"]),
        Case(f"{name}, 2 threads", "MB/s", best["ours 2"], best["polars 2"], peer,
             2 * best["bytes"]),
        Case(f"{name}, 2 threads / 1 core", "times", scaling("ours"), scaling("polars"), peer, 2),
        Case(f"{name}, 2 threads, shuffled", "MB/s", best["shuffled"]),
    ]


def end_to_end(path):
    say("training a DeepFM from the text")
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        settings = {"data.train": path, "data.slots": '["C1..C26"]', "train.batch": 4096,
                    "model.hidden": [400, 400, 400], "train.max_batches": 100}
        subprocess.run(
            [report.TERRACE, "train", report.ROOT / "examples/criteo/deepfm.toml", "--quiet",
             "--summary", summary, *(f"--set={key}={value}" for key, value in settings.items())],
            check=True, stdout=subprocess.DEVNULL)
        found = json.loads(summary.read_text())
    stages = found["stages"]
    say("busy seconds: " + ", ".join(f"{name} {time['busy']:.2f}" for name, time in stages.items())
        + f"; bottleneck: {found['bottleneck']}")
    return [
        Case("DeepFM trained from text", "examples/s", found["examples_per_second"]),
        Case("DeepFM from text: read busy / train busy", "share",
             stages["read"]["busy"] / stages["train"]["busy"]),
    ]


def main():
    report.OUT.mkdir(parents=True, exist_ok=True)
    generated = generated_file()
    cases = measure("Criteo-like text", generated)
    sample = sample_file()
    if sample is not None:
        cases += measure("Criteo sample", sample)
    report.publish("parse", cases + end_to_end(generated))


if __name__ == "__main__":
    main()

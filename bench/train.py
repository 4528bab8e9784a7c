#!/usr/bin/env python3
"""Training speed: the same DeepFM, optimizers and batches of 4,096 in memory, here and in PyTorch.

Scouts each peer mode (eager, FBGEMM; each plain and compiled; 1 thread and all), then lets the best
one and us take turns. Each side's figure is the best of its turns' means.
"""
import os

from report import PEER_PYTHON, PROGRAMS, ROOT, Case, publish, run_json, say

SHAPES = ("criteo", "ads100", "ads500")
TURNS = 3
SECONDS = 4
SCOUT_SECONDS = 1.5


def ours(shape, seconds=SECONDS, *sets):
    result = run_json([PROGRAMS / "train_bench", shape, seconds, *sets])[0]
    say(f"  {shape:7} terrace                    {result['mean']:10,.0f} examples/s")
    return result


def peer(shape, mode, compiled, threads, seconds):
    argv = [PEER_PYTHON, ROOT / "bench/peers/deepfm_torch.py", "--shape", shape, "--mode", mode,
            "--threads", threads, "--seconds", seconds, "--batches", 12]
    result = run_json(argv + (["--compile"] if compiled else []), PYTHONWARNINGS="ignore")[0]
    say(f"  {shape:7} {result['mode']:15} {threads} thread{'s' if threads > 1 else ' '} "
        f"{result['mean']:10,.0f} examples/s")
    return result


def scout(shape):
    """The fastest mode of the peers on this machine."""
    found = []
    for mode in ("eager", "fbgemm"):
        for compiled in (False, True):
            for threads in sorted({1, os.cpu_count()}):
                result = peer(shape, mode, compiled, threads, SCOUT_SECONDS)
                found.append((result["mean"], mode, compiled, threads))
    return max(found)[1:]


def compare(shape):
    say(f"{shape}: which peer is fastest?")
    best = scout(shape)
    say(f"{shape}: turns")
    mine, theirs = [], []
    for _ in range(TURNS):
        mine.append(ours(shape))
        theirs.append(peer(shape, *best, SECONDS))
    mine = max(mine, key=lambda r: r["mean"])
    theirs = max(theirs, key=lambda r: r["mean"])
    # With the large net nothing but its products counts; with a small one the rows' lines do.
    limit = mine["sgemm_limit" if shape == "criteo" else "limit"]
    say(f"{shape}: distinct keys {mine['distinct']:.0%}; cores busy {mine['cpu']:.0%}; the train "
        f"stage waited {mine['wait']:.0%}; dedup was busy {mine['dedup_busy']:.0%}, plan "
        f"{mine['plan_busy']:.0%}; sgemm {mine['gflops']:.0f} GFLOPS, random lines "
        f"{mine['mlines']:.0f} M/s")
    name = f"{theirs['mode']}, {theirs['threads']} threads (torch {theirs['torch'].split('+')[0]})"
    return Case(f"train {shape}, batch 4096", "examples/s", mine["mean"], theirs["mean"], name,
                limit)


def main():
    cases = [compare(shape) for shape in SHAPES]
    say("other batch sizes")
    for batch in (1, 64, 1024, 65536):
        result = ours("ads100", 3, f"train.batch={batch}")
        cases.append(Case(f"train ads100, batch {batch}", "examples/s", result["mean"]))
    publish("train", cases)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Snapshots of a 5 GB model while it is trained: how long they take, for how long training stands
still, and what is written, after 1 %, 10 % and all of the rows changed.

The peer is what a snapshot costs where training stops for it: a loop that writes all rows to a file
and syncs it, in the same run. The limit is the time in which the device takes the rows that changed,
past the page cache and with nothing else going on.
"""
import shutil
import tempfile
from pathlib import Path

import report
from report import Case, run_json, say

ROWS = 37_000_000


def main():
    say("37 M rows of 136 bytes; four snapshots while training goes on")
    place = Path(tempfile.mkdtemp(prefix="snapshots-", dir=report.ROOT / "build"))
    try:
        lines = list(run_json([report.PROGRAMS / "snapshot_bench", "--rows", str(ROWS), "--dir",
                               str(place)]))
    finally:
        shutil.rmtree(place)
    plain = lines[0]
    cases = []
    for one in lines[1:]:
        if one["what"] == "settle":
            continue
        name = "first" if one["what"] == "first" else f"{one['share']:.0%} marked"
        name += f", {one['rows'] / 1e6:.2f} M rows"
        changed = one["rows"] * one["row_bytes"]
        cases += [
            Case(f"{name}: time", "s", one["seconds"], plain["seconds"], "write all, stopped",
                 plain["direct"] * changed / plain["bytes"], less_is_better=True),
            Case(f"{name}: training stands still, in all", "ms", 1e3 * one["pause"],
                 1e3 * plain["seconds"], "write all, stopped", less_is_better=True),
            Case(f"{name}: longest batch", "ms", 1e3 * one["longest_batch"], 1e3 * one["batch"],
                 "usual batch", less_is_better=True),
            Case(f"{name}: bytes written", "MB", one["bytes"] / 1e6, plain["bytes"] / 1e6,
                 "all rows", changed / 1e6, less_is_better=True),
        ]
    report.publish("snapshots", cases)


if __name__ == "__main__":
    main()

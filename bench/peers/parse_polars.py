#!/usr/bin/env python3
"""Criteo text to hashed columns by polars: reads the file once and prints {bytes, seconds} as JSON.

The same result as our batches: a 64-bit hash of each of the 26 categories, log(1 + x) of the 13
integers as floats, the label. Threads are set by POLARS_MAX_THREADS.
"""
import argparse
import json
import os
import time

import polars as pl

INTEGERS = [f"I{i}" for i in range(1, 14)]
CATEGORIES = [f"C{i}" for i in range(1, 27)]
SCHEMA = {"label": pl.UInt8, **dict.fromkeys(INTEGERS, pl.Int32),
          **dict.fromkeys(CATEGORIES, pl.String)}
CSV = dict(separator="\t", has_header=False, schema=SCHEMA, quote_char=None)
COLUMNS = [
    pl.col("label").cast(pl.Float32),
    *(pl.col(i).fill_null(0).cast(pl.Float32).clip(0).log1p() for i in INTEGERS),
    *(pl.col(c).hash(seed=i) for i, c in enumerate(CATEGORIES)),
]


def eager(path):
    return pl.read_csv(path, **CSV).select(COLUMNS)


def lazy(path):
    return pl.scan_csv(path, **CSV).select(COLUMNS).collect()


def streaming(path):
    return pl.scan_csv(path, **CSV).select(COLUMNS).collect(engine="streaming")


MODES = {f.__name__: f for f in (eager, lazy, streaming)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("mode", choices=MODES)
    args = parser.parse_args()
    start = time.perf_counter()
    rows = MODES[args.mode](args.file).height
    seconds = time.perf_counter() - start
    print(json.dumps({"bytes": os.path.getsize(args.file), "seconds": seconds, "rows": rows}))


if __name__ == "__main__":
    main()

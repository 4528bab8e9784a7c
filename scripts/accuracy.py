#!/usr/bin/env python3
"""Trains the example configs on real data and prints a table of AUC and speed.

Data is looked for in $ACCURACY_DATA (default: ../shared/data beside the project): ml1m/, criteo_tb80k/,
criteo_kaggle19k/, each with train and test files. What is absent is said and left out.
Exits with 1 if a result is below its floor.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = pathlib.Path(os.environ.get("ACCURACY_DATA", ROOT.parent / "shared" / "data"))
CASES = [  # config, data folder, extension, least AUC
    ("movielens/lr", "ml1m", "csv.gz", 0.786),
    ("movielens/fm", "ml1m", "csv.gz", 0.808),
    ("movielens/widedeep", "ml1m", "csv.gz", 0.808),
    ("movielens/deepfm", "ml1m", "csv.gz", 0.816),
    ("movielens/dcnv2", "ml1m", "csv.gz", 0.816),
    ("movielens/dlrm", "ml1m", "csv.gz", 0.816),
    ("criteo/lr", "criteo_tb80k", "tsv.gz", 0.700),
    ("criteo/deepfm", "criteo_tb80k", "tsv.gz", 0.715),
    ("criteo/dcnv2", "criteo_tb80k", "tsv.gz", 0.715),
    ("criteo/dlrm", "criteo_tb80k", "tsv.gz", 0.700),
    ("criteo/lr", "criteo_kaggle19k", "tsv.gz", 0.700),
    ("criteo/deepfm", "criteo_kaggle19k", "tsv.gz", 0.740),
    ("criteo/dcnv2", "criteo_kaggle19k", "tsv.gz", 0.740),
    ("criteo/dlrm", "criteo_kaggle19k", "tsv.gz", 0.740),
]


def run(terrace, config, folder, extension):
    with tempfile.TemporaryDirectory() as scratch:
        summary = pathlib.Path(scratch) / "summary.json"
        subprocess.run(
            [terrace, "train", str(ROOT / "examples" / f"{config}.toml"), "--quiet",
             "--set", f"data.train={folder}/train.{extension}",
             "--set", f"data.test={folder}/test.{extension}", "--summary", str(summary)],
            check=True, stdout=subprocess.DEVNULL)
        return json.loads(summary.read_text())


def main():
    terrace = sys.argv[1]
    failed = False
    print(f"{'config':<20} {'data':<18} {'AUC':>8} {'floor':>6} {'log loss':>9} {'epochs':>6} "
          f"{'seconds':>8} {'examples/s':>10}")
    for config, name, extension, floor in CASES:
        folder = DATA / name
        if not (folder / f"train.{extension}").exists():
            print(f"{config:<20} {name:<18} no data: {folder} is not here (set ACCURACY_DATA)")
            continue
        s = run(terrace, config, folder, extension)
        failed |= s["auc"] < floor
        print(f"{config:<20} {name:<18} {s['auc']:8.5f} {floor:6.3f} {s['logloss']:9.5f} "
              f"{s['epochs']:6d} {s['seconds']:8.1f} {s['examples_per_second']:10,.0f}"
              f"{'   BELOW' if s['auc'] < floor else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Vowpal Wabbit on a text file: runs its own command line (parser thread + learner thread, one pass,
no cache) and prints {seconds, loss} as JSON. The clock starts after Python and the library are loaded.
"""
import json
import re
import sys
import time

import vowpalwabbit


def main():
    start = time.perf_counter()
    workspace = vowpalwabbit.Workspace(arg_list=sys.argv[1:], enable_logging=True)
    workspace.finish()
    seconds = time.perf_counter() - start
    loss = re.search(r"average loss = ([\d.]+)", "\n".join(workspace.get_log()))
    print(json.dumps({"seconds": seconds, "loss": float(loss[1])}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Find-or-create of 100 k keys among 20 M rows of 64 bytes, against boost::unordered_flat_map.

Both sides hold the rows. "Rows touched" changes one float of each row found, as training does; else
neither side looks at its rows. The peer has the better of two ways to hold rows (in its slots, or
positions of rows in an array) for each case, and the system's huge pages by glibc.malloc.hugetlb
where a case says so; by default it has none. The limit is the time of prefetched random reads of
64-byte lines from huge pages, as many as a key needs: a line of the index, and one of the row, which
begins with the key.
"""
import report
from report import Case, run_json, say

ROUNDS = 2
PEERS = ("map of rows", "map of positions")
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
SHARES = ("0", "0.01", "0.1")


def run(name, **env):
    """{(who, what): the least value of all rounds}."""
    best = {}
    for i in range(ROUNDS):
        say(f"{name}, round {i + 1} of {ROUNDS}")
        for line in run_json([report.PROGRAMS / "index_bench"], **env):
            key = line["who"], line["what"]
            best[key] = min(best.get(key, line["value"]), line["value"])
    return best


def lookups(found, name):
    cases = []
    for what, lines, rows in (("find", 2, ""), ("touch", 2, ", rows touched")):
        for share in SHARES:
            peer = min(PEERS, key=lambda p: found[p, f"{what} {share}"])
            cases.append(Case(
                f"find or create, {float(share):.0%} new{rows}{name}", "ns/key",
                found["ours", f"{what} {share}"], found[peer, f"{what} {share}"],
                f"boost flat_map, {peer}", lines * found["machine", "line"], less_is_better=True))
    return cases


def growth(found):
    names = {"grow": ("grow from empty to 20 M rows", "ns/row", None),
             "slowest / median": ("grow: slowest batch / median batch", "times", None),
             "bytes": ("memory above the rows, at 20 M rows", "bytes/row", 16)}
    cases = []
    for what, (case, unit, limit) in names.items():
        peer = min(PEERS, key=lambda p: found[p, what])
        cases.append(Case(case, unit, found["ours", what], found[peer, what],
                          f"boost flat_map, {peer}", limit, less_is_better=True))
    return cases


def main():
    plain = run("default pages")
    huge = run("huge pages for the peer", **HUGE)
    report.publish("index",
                   lookups(plain, "") + growth(plain) + lookups(huge, ", peer on huge pages"))


if __name__ == "__main__":
    main()

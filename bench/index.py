#!/usr/bin/env python3
"""Find-or-create of 100 k keys among 20 M rows of 64 bytes, against boost::unordered_flat_map.

Both sides hold the rows: the peer in its slots, or in an array whose positions it maps. "Rows touched"
changes one float of each row found, as training does; else neither side looks at its rows. The peer
has the system's huge pages, by glibc.malloc.hugetlb, where a case says so; by default it has none. The limit is the time of prefetched random reads of
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


def lookups(found, what, shares, name=""):
    cases = []
    for share in shares:
        for peer in PEERS:
            cases.append(Case(
                f"find or create, {float(share):.0%} new, {peer}{name}", "ns/key",
                found["ours", f"{what} {share}"], found[peer, f"{what} {share}"],
                f"boost flat_map, {peer}", 2 * found["machine", "line"], less_is_better=True))
    return cases


def growth(found):
    names = {"grow": ("grow from empty to 20 M rows", "ns/row"),
             "slowest / median": ("grow: slowest batch / median batch", "times"),
             "bytes": ("memory above the rows, at 20 M rows", "bytes/row")}
    cases = []
    for what, (case, unit) in names.items():
        peer = min(PEERS, key=lambda p: found[p, what])
        cases.append(Case(case, unit, found["ours", what], found[peer, what],
                          f"boost flat_map, {peer}", less_is_better=True))
    return cases


def main():
    plain = run("default pages")
    huge = run("huge pages for the peer", **HUGE)
    report.publish("index", lookups(plain, "find", SHARES)
                   + lookups(plain, "touch", SHARES[:1], ", rows touched")
                   + lookups(huge, "find", SHARES[:1], ", peer on huge pages")
                   + lookups(huge, "touch", SHARES[:1], ", touched, peer on huge pages")
                   + growth(plain))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What the benchmarks share: cases, their table, and build/bench/NAME.json.

As a program: prints one table of all results in build/bench (the last thing `make bench` does);
with --docs also writes that table and its plot into docs/performance.md and docs/performance.svg.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "bench"
PROGRAMS = ROOT / "build" / "release" / "bench"
TERRACE = ROOT / "build" / "release" / "terrace"
PEER_PYTHON = ROOT / "build" / "peers" / "bin" / "python"


@dataclass
class Case:
    """One line of a result. `ours` and `peer` are in `unit`; ratio > 1: we are better."""
    case: str
    unit: str
    ours: float
    peer: float | None = None
    peer_name: str = ""
    limit: float | None = None  # what the machine permits at most, in the same unit
    less_is_better: bool = False
    ratio: float | None = field(init=False, default=None)
    limit_share: float | None = field(init=False, default=None)

    def __post_init__(self):
        if self.peer is not None:
            self.ratio = self.peer / self.ours if self.less_is_better else self.ours / self.peer
        if self.limit is not None:
            share = self.limit / self.ours if self.less_is_better else self.ours / self.limit
            self.limit_share = share

    def as_json(self):
        names = ("case", "unit", "ours", "peer", "peer_name", "ratio", "limit", "limit_share")
        return {name: asdict(self)[name] for name in names}


def short(x):
    """Three significant digits, with k or M."""
    if x is None:
        return "-"
    if abs(x) >= 1e6:
        return f"{x / 1e6:.3g} M"
    if abs(x) >= 1e4:
        return f"{x / 1e3:.3g} k"
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}"


HEADER = ("case", "unit", "ours", "peer", "ratio", "limit", "of limit", "peer's name")


def cells(case):
    return (case["case"], case["unit"], short(case["ours"]), short(case["peer"]),
            "-" if case["ratio"] is None else f"{case['ratio']:.2f}x", short(case["limit"]),
            "-" if case["limit_share"] is None else f"{case['limit_share']:.0%}",
            case["peer_name"] or "-")


def table(cases):
    rows = [HEADER, *map(cells, cases)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]

    def line(row):
        parts = (c.rjust(w) if 2 <= i <= 6 else c.ljust(w)
                 for i, (c, w) in enumerate(zip(row, widths)))
        return "  ".join(parts).rstrip()
    return "\n".join([line(rows[0]), "  ".join("-" * w for w in widths), *map(line, rows[1:])])


def publish(name, cases):
    """Prints the table and writes build/bench/NAME.json."""
    found = [case.as_json() for case in cases]
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")
    print(f"\n{table(found)}\n\nwritten: build/bench/{name}.json", flush=True)


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_json(argv, **env):
    """Runs a program that prints JSON objects, one a line; its messages pass through."""
    out = subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, **env}).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def machine():
    name = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":")[1].strip()
            break
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{os.cpu_count()} cores ({name}), {memory:.0f} GiB"


def markdown(cases):
    lines = ["| " + " | ".join(HEADER) + " |", "|---|---|" + "---:|" * 5 + "---|"]
    return "\n".join(lines + ["| " + " | ".join(cells(c)) + " |" for c in cases])


def plot(cases):
    """Horizontal bars: how many times the peer's speed, and the share of the limit.

    Of a case with several peers the first, which is the best one."""
    first = {}
    for case in cases:
        first.setdefault(case["case"], case)
    shown = [c for c in first.values() if c["ratio"] is not None or c["limit_share"] is not None]
    row, left, width, most = 22, 470, 460, 6
    scale = width / most  # longer bars are cut
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 160}" '
             f'height="{row * len(shown) + 60}" font-family="sans-serif" font-size="13">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{left}" y="20" fill="#333">times the peer (bar), share of the limit (right)'
             '</text>']
    for i, case in enumerate(shown):
        y = 34 + i * row
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{case["case"]}</text>')
        if case["ratio"] is not None:
            bar = min(case["ratio"], most) * scale
            parts.append(f'<rect x="{left}" y="{y + 1}" width="{bar:.0f}" height="{row - 5}" '
                         'fill="#2a6f97"/>')
            parts.append(f'<text x="{left + bar + 5:.0f}" y="{y + 14}">{case["ratio"]:.2f}x</text>')
        if case["limit_share"] is not None:
            parts.append(f'<text x="{left + width + 150}" y="{y + 14}" text-anchor="end" '
                         f'fill="#b5651d">{case["limit_share"]:.0%} of limit</text>')
    bottom = 34 + len(shown) * row
    parts.append(f'<line x1="{left + scale:.0f}" y1="28" x2="{left + scale:.0f}" y2="{bottom}" '
                 'stroke="#c1121f" stroke-dasharray="4 3"/>')
    parts.append(f'<text x="{left + scale:.0f}" y="{bottom + 15}" text-anchor="middle" '
                 'fill="#c1121f">the peer</text></svg>')
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", action="store_true", help="write docs/performance.{md,svg} too")
    args = parser.parse_args()
    cases = []
    order = ("train", "lr", "parse", "index")
    for path in sorted(OUT.glob("*.json"), key=lambda p: (order + (p.stem,)).index(p.stem)):
        cases += json.loads(path.read_text())
    if not cases:
        sys.exit("no results in build/bench; run `make bench` first")
    print(f"\n{table(cases)}\n\n{machine()}")
    if not args.docs:
        return
    (ROOT / "docs" / "performance.svg").write_text(plot(cases))
    page = ROOT / "docs" / "performance.md"
    begin, end = "<!-- results -->\n", "<!-- end of results -->"
    head, rest = page.read_text().split(begin)
    tail = rest.split(end)[1]
    page.write_text(f"{head}{begin}{markdown(cases)}\n\nMeasured on {machine()}.\n{end}{tail}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks who includes whom.

A folder of src/ includes only the folders below it (RULES). Our headers include only our headers,
the standard library and the operating system; third-party headers belong in .cc files. A *_simd.cc
file is compiled for several instruction sets, so it includes only headers without inline functions
that other files could share (SIMD_ALLOWED), lest the linker keep the wrong copy.
"""
import pathlib
import re
import sys

RULES = {
    "base": [],
    "device": ["base"],
    "data": ["base"],
    "cluster": ["base"],
    "table": ["base", "device"],
    "model": ["base", "device"],
    "tier": ["base", "device", "table"],
    "checkpoint": ["base", "device", "table", "tier", "model"],
    "publish": ["base", "table", "tier", "checkpoint"],
    "train": ["base", "device", "data", "table", "tier", "model", "cluster", "checkpoint"],
    "serve": ["base", "device", "data", "table", "tier", "model", "checkpoint", "publish"],
    "cli": None,  # anything
}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
SYSTEM_HEADER = re.compile(r"^([a-z_]+|(sys|linux|netinet|arpa)/[a-z_]+\.h|[a-z]+\.h)$")
SIMD_ALLOWED = re.compile(r"^(cmath|cstdint|cstddef|cstring|immintrin\.h)$")
# Nor does this one share any where it is defined before: all of its functions are static then.
INLINE_ALL = {"xxhash.h": "XXH_INLINE_ALL"}


def problems(path, root):
    folder = path.relative_to(root).parts[0]
    if folder not in RULES:
        yield f"{path}: folder {folder} is not in scripts/check_includes.py; add its rule"
        return
    allowed = RULES[folder]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        where = f"{path}:{number}"
        if quote == '"':
            target = name.split("/")[0]
            if not (root / name).exists():
                yield f'{where}: "{name}" is not a file of src/; write includes as "folder/file.h"'
            elif allowed is not None and target != folder and target not in allowed:
                yield (f"{where}: {folder} may not include {target} "
                       f"(may: {', '.join(allowed) or 'nothing'})")
        elif path.suffix == ".h" and not SYSTEM_HEADER.match(name):
            yield f"{where}: third-party header <{name}> in a header; include it in a .cc file"
        elif (path.name.endswith("_simd.cc") and not SIMD_ALLOWED.match(name)
              and f"#define {INLINE_ALL.get(name)}" not in path.read_text()):
            yield f"{where}: <{name}> in a *_simd.cc file; its inline functions would be shared"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent / "src"
    found = [p for path in sorted(root.rglob("*")) if path.suffix in (".h", ".cc", ".cu")
             and not path.name.endswith("_test.cc") for p in problems(path, root)]
    print("\n".join(found) if found else "include rules hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

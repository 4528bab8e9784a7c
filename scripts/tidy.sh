#!/usr/bin/env bash
# clang-tidy over the sources that changed since a base (TIDY_BASE), or over all of them.
set -euo pipefail
build=$1
files=$(git ls-files 'src/*.cc' | grep -v '_test\.cc$' | grep -v '_simd\.cc$')
if [ -n "${TIDY_BASE:-}" ]; then
  files=$(git diff --name-only --diff-filter=d "$TIDY_BASE" -- $files)
fi
[ -z "$files" ] && exit 0
printf '%s\n' $files | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$build" 2>/dev/null

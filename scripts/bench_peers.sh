#!/usr/bin/env bash
# Puts the programs that the benchmarks compare with into build/peers: PyTorch, FBGEMM, polars,
# Vowpal Wabbit. The product needs none of them.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/peers
# fbgemm_gpu has one build for each release of torch. Without torchrec, which would bring another.
packages=(torch==2.14.0 fbgemm-gpu-cpu==1.9.0 numpy==2.4.6 polars==2.1.0 vowpalwabbit==9.11.9)
stamp="$venv/installed"
if [[ ! -f $stamp || $(cat "$stamp") != "${packages[*]}" ]]; then
  echo "installing the peers into $venv (about 6 GB, once): ${packages[*]}"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
  echo "${packages[*]}" > "$stamp"
fi

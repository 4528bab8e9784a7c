#!/usr/bin/env bash
# Installs the Debian packages that building and testing need, and those named as arguments. Does
# nothing when they are there.
set -euo pipefail

packages=(
  g++ clang clang-format clang-tidy libclang-rt-14-dev cmake ninja-build ccache make pkg-config git
  python3 python3-venv python3-numpy
  libcli11-dev libspdlog-dev libfmt-dev libtomlplusplus-dev nlohmann-json3-dev libxxhash-dev
  liburing-dev libopenblas-dev libzstd-dev zlib1g-dev
  libgtest-dev libgmock-dev librapidcheck-dev libbenchmark-dev libboost1.81-dev
  "$@"
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

run=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: these packages are missing; install them as root: ${missing[*]}" >&2
    exit 1
  }
  run=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -qq
"${run[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

#!/usr/bin/env bash
# tools/build.sh PRESET [TARGET...]: configures build/PRESET if that was not done yet, and builds the targets (all
# without one). CXX names the compiler; without it the newest suitable g++ is taken.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/lib.sh
. tools/lib.sh

preset=${1:?a preset wanted: release, dev, asan or clang}
shift
dir=build/$preset

# Prints the first g++ of version 12 or later.
find_gxx() {
  local name major
  for name in g++ g++-15 g++-14 g++-13 g++-12; do
    have "$name" || continue
    major=$("$name" -dumpversion | cut -d. -f1)
    if [ "$major" -ge 12 ]; then
      printf '%s\n' "$name"
      return 0
    fi
  done
  die "g++ 12 or later wanted, got $(g++ -dumpversion 2>/dev/null || echo none); install g++-12"
}

check_cmake() {
  have cmake || die "cmake 3.25 or later wanted, none found; install cmake (\`make setup\`)"
  local version
  version=$(cmake --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
  [ "$(printf '3.25\n%s\n' "$version" | sort -V | head -n 1)" = 3.25 ] ||
    die "cmake 3.25 or later wanted, got $version; use Debian 12 or later, or \`pip install cmake\`"
}

configured_for() { grep -qxF "WGPU_NATIVE_DIR:PATH=$1" "$dir/CMakeCache.txt" 2>/dev/null && [ -f "$dir/build.ninja" ]; }

webgpu=${WGPU_NATIVE_DIR:+$(realpath "$WGPU_NATIVE_DIR")}
if ! configured_for "$webgpu"; then
  check_cmake
  if [ "$preset" != clang ] && [ -z "${CXX:-}" ]; then
    CXX=$(find_gxx)
    export CXX
  fi
  cmake --preset "$preset" -DWGPU_NATIVE_DIR:PATH="$webgpu" >"$log" 2>&1 || {
    cat "$log" >&2
    die "the build could not be configured: what is missing stands above; \`make setup\` installs it"
  }
fi
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
cmake --build "$dir" --parallel "$(nproc)" "${targets[@]}"

#!/usr/bin/env bash
# tools/test.sh PRESET [CTEST ARGUMENT...]: runs the tests of build/PRESET. ctest's summary comes last.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:?a preset wanted: release, dev, asan or clang}
shift
# Where `doppler pull` puts the models, said once for every test that reads them.
cache=${DOPPLER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/doppler}
export DOPPLER_MODELS=${DOPPLER_MODELS:-$cache/models}
exec ctest --preset "$preset" --parallel "$(nproc)" --progress "$@"

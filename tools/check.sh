#!/usr/bin/env bash
# Every check that reads the sources and runs nothing: formatting, include rule, shell scripts.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

failed=0
tools/format.sh --check || failed=1
python3 tools/check_includes.py || failed=1
shellcheck -x tools/*.sh .ci/run && echo "shellcheck: the scripts are clean" || failed=1
if grep -rnE 'TEST_CASE\("[^"]*;' tests; then
  echo "a test case's name must not hold ';': ctest would cut it there" >&2
  failed=1
fi
exit $failed

#!/usr/bin/env bash
# tools/format.sh [--check]: formats every C++ file with clang-format 22, or names those that are not formatted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

find_clang_format() {
  local name
  for name in clang-format-22 clang-format; do
    if "$name" --version 2>/dev/null | grep -q 'version 22\.'; then
      printf '%s\n' "$name"
      return 0
    fi
  done
  echo "[format] clang-format 22 wanted, not found; install clang-format-22 (\`make check\` does on Debian)" >&2
  exit 1
}

formatter=$(find_clang_format)
mapfile -d '' files < <(git ls-files -z --cached --others --exclude-standard -- 'include/*.h' 'src/*.h' 'src/*.cc' \
  'tests/*.h' 'tests/*.cc' 'fuzz/*.cc' 'bench/*.cc')
existing=()
for file in "${files[@]}"; do
  [ ! -f "$file" ] || existing+=("$file")
done
case ${1:-} in
--check)
  # shellcheck disable=SC2016 # $0 and $1 are the inner shell's
  bad=$(printf '%s\0' "${existing[@]}" | xargs -0 -n 1 -P "$(nproc)" sh -c \
    '"$0" --dry-run -Werror "$1" >/dev/null 2>&1 || echo "$1"' "$formatter" | sort)
  if [ -n "$bad" ]; then
    printf '[format] not formatted; tools/format.sh does it:\n%s\n' "$bad" >&2
    exit 1
  fi
  echo "format: ${#existing[@]} files are formatted"
  ;;
'') printf '%s\0' "${existing[@]}" | xargs -0 -n 16 -P "$(nproc)" "$formatter" -i ;;
*)
  echo "[format] --check or nothing wanted, got '$1'" >&2
  exit 2
  ;;
esac

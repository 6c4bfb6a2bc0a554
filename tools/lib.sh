# shellcheck shell=bash
# Shared by the scripts of this folder: messages and the log of what they run. Sourced from the repository's root.

mkdir -p build 2>/dev/null || {
  echo "[setup] a writable folder wanted, $PWD is not; clone the repository where you may write" >&2
  exit 1
}
# shellcheck disable=SC2034 # read by the scripts that source this
log=build/setup.log

say() { printf '[setup] %s\n' "$*" >&2; }
die() {
  printf '[setup] %s\n' "$*" >&2
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# Whether the log matches an extended regular expression.
log_has() { grep -qE "$1" "$log"; }

# Whether what was run met a full disk. The log lies on that disk, so it may be silent about it.
disk_full() {
  log_has "No space left on device|Disk quota exceeded|enough free space" ||
    [ "$(df -Pk . | awk 'NR == 2 { print $4 }')" -lt 30000 ]
}

# The line of the log that most likely says what went wrong.
log_last_error() { { grep -E '^(E|ERROR|error): ?' "$log" || tail -n 1 "$log"; } | tail -n 1; }

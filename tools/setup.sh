#!/usr/bin/env bash
# Installs what a part of the project needs and is missing here; does nothing where nothing is missing.
#   tools/setup.sh build            compiler, libraries, the pinned WebGPU library
#   tools/setup.sh test check clang software Vulkan drivers; formatter and shell linter; second compiler
# WGPU_NATIVE_DIR=<folder with webgpu.h, wgpu.h, libwgpu_native.so> takes that copy instead of the pinned one.
# DOPPLER_SKIP_APT=1 leaves packages alone: for systems that get them by other means.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/lib.sh
. tools/lib.sh

build_packages=(
  g++ cmake ninja-build pkgconf mold ccache python3 python3-pip ca-certificates libvulkan1
  libfmt-dev libexpected-dev nlohmann-json3-dev libsimdjson-dev libcli11-dev libssl-dev libutf8proc-dev
  libpcre2-dev doctest-dev
)
test_packages=(mesa-vulkan-drivers chromium-common) # lavapipe; SwiftShader
check_packages=(git clang-format-22 shellcheck)
clang_packages=(clang-22)

webgpu_version=0.32.0 # PyPI wgpu: wgpu-native 29 and its headers
declare -A webgpu_sha256=(
  [x86_64]=6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568
  [aarch64]=00454ba1bc794d38c8365f4ad29f381b88ce0a7f115133bfaa6f1dfad7eb2764
)
webgpu_dir=third_party/webgpu

# Prints those of its arguments that are not installed.
missing_packages() {
  local installed package
  # Packages dpkg has never heard of make dpkg-query fail; they are missing as well.
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxF "$package installed" <<<"$installed" || printf '%s\n' "$package"
  done
}

# Runs apt-get as root.
apt() {
  local root=()
  [ "$(id -u)" = 0 ] || root=(sudo)
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    -y -qq "$@" >>"$log" 2>&1 </dev/null
}

apt_failure() { # PACKAGE...
  if disk_full; then
    die "packages wanted, the disk is full; free about 2 GB and run this again"
  elif log_has "Temporary failure resolving|Could not resolve|Could not connect|Unable to connect|Network is unreachable"; then
    die "packages wanted ($*), Debian's archive does not answer; check the network and run this again"
  elif log_has "Unable to locate package|has no installation candidate"; then
    die "packages wanted, this system lacks: $(grep -oE "(Unable to locate package|Package '?[^ ']+'? has no)[^,]*" "$log" |
      sed -E "s/Unable to locate package //; s/Package '?([^ ']+).*/\1/" | sort -u | tr '\n' ' ' | sed 's/ $//'); use Debian 12, or install them by other means and set DOPPLER_SKIP_APT=1"
  fi
  die "packages wanted ($*), apt-get failed: $(log_last_error); see $log"
}

install_packages() { # PACKAGE...
  [ "${DOPPLER_SKIP_APT:-0}" != 1 ] || return 0
  have apt-get || die "apt-get wanted (Debian 12), not found; install the likes of: $* and set DOPPLER_SKIP_APT=1"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] || have sudo ||
    die "packages wanted, but neither root nor sudo is at hand; as root: apt-get install -y --no-install-recommends ${missing[*]}"
  say "installing ${#missing[@]} packages: ${missing[*]}"
  : >"$log"
  # The lists may be absent or old: fetch them only if that turns out to be so.
  if apt install --no-install-recommends "${missing[@]}"; then return 0; fi
  : >"$log"
  apt update || apt_failure "${missing[@]}"
  apt install --no-install-recommends "${missing[@]}" || apt_failure "${missing[@]}"
}

# WGPU_NATIVE_DIR must hold what the build and the program look for.
check_own_webgpu() {
  local file
  for file in webgpu.h wgpu.h; do
    [ -f "$WGPU_NATIVE_DIR/$file" ] ||
      die "$file wanted in WGPU_NATIVE_DIR=$WGPU_NATIVE_DIR, not there; unset it to fetch the pinned copy"
  done
  [ -f "$WGPU_NATIVE_DIR/libwgpu_native.so" ] || [ -f "$WGPU_NATIVE_DIR/libwgpu_native-release.so" ] ||
    die "libwgpu_native.so wanted in WGPU_NATIVE_DIR=$WGPU_NATIVE_DIR, not there; unset it to fetch the pinned copy"
}

fetch_webgpu() {
  if [ -n "${WGPU_NATIVE_DIR:-}" ]; then check_own_webgpu && return 0; fi
  local machine sha256 stamp folder wheel got
  machine=$(uname -m)
  sha256=${webgpu_sha256[$machine]:-}
  [ -n "$sha256" ] || die "a WebGPU library for $machine wanted, none is pinned; set WGPU_NATIVE_DIR to a copy of wgpu-native 29"
  stamp="wgpu $webgpu_version $sha256"
  [ "$(cat "$webgpu_dir/PINNED" 2>/dev/null)" != "$stamp" ] || return 0
  say "fetching the WebGPU library (wgpu $webgpu_version, 3.5 MB)"
  have python3 || die "python3 wanted, not found; install python3 and python3-pip"
  mkdir -p third_party
  folder=$(mktemp -d "third_party/.webgpu-XXXXXX")
  # shellcheck disable=SC2064 # the folder's name of now
  trap "rm -rf '$PWD/$folder'" EXIT
  : >"$log"
  TMPDIR="$PWD/$folder" python3 -m pip download -qq --no-input --disable-pip-version-check --no-cache-dir --no-deps \
    --only-binary=:all: --dest "$folder" "wgpu==$webgpu_version" >>"$log" 2>&1 || pip_failure "wgpu==$webgpu_version"
  wheel=$(find "$folder" -maxdepth 1 -name '*.whl')
  got=$(sha256sum "$wheel" | cut -d' ' -f1)
  if [ "$got" != "$sha256" ]; then
    rm -f "$wheel"
    die "${wheel##*/} with SHA-256 $sha256 wanted, got $got; it was deleted: run this again, and check which package index pip uses"
  fi
  python3 -m zipfile --extract "$wheel" "$folder/unpacked" >>"$log" 2>&1 || pip_failure "wgpu==$webgpu_version"
  mkdir "$folder/webgpu"
  mv "$folder"/unpacked/wgpu/resources/{webgpu.h,wgpu.h} "$folder/webgpu/"
  mv "$folder/unpacked/wgpu/resources/libwgpu_native-release.so" "$folder/webgpu/libwgpu_native.so"
  cp "$folder"/unpacked/wgpu-*.dist-info/licenses/LICENSE "$folder/webgpu/LICENSE.wgpu-py"
  printf '%s\n' "$stamp" >"$folder/webgpu/PINNED"
  rm -rf "$webgpu_dir"
  mv "$folder/webgpu" "$webgpu_dir"
  rm -rf "$folder"
  trap - EXIT
}

pip_failure() { # WHAT
  if log_has "No module named pip"; then
    die "pip wanted to fetch $1, this python3 has none; install python3-pip"
  elif disk_full; then
    die "$1 wanted in $PWD/third_party, the disk is full; free space and run this again"
  elif log_has "connection broken|NewConnectionError|Temporary failure in name resolution|Could not fetch URL|Read timed out|ProxyError"; then
    die "$1 wanted, the package index does not answer; check the network and \`python3 -m pip config list\`"
  fi
  die "$1 wanted, pip failed: $(log_last_error); see $log"
}

packages=()
for part in "$@"; do
  case $part in
  build) packages+=("${build_packages[@]}") ;;
  test) packages+=("${test_packages[@]}") ;;
  check) packages+=("${check_packages[@]}") ;;
  clang) packages+=("${clang_packages[@]}") ;;
  *) die "one of build, test, check, clang wanted, got '$part'" ;;
  esac
done
[ ${#packages[@]} -eq 0 ] || install_packages "${packages[@]}"
case " $* " in *" build "*) fetch_webgpu ;; esac

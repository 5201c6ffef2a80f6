#!/bin/sh
# Builds TARGETs with sanitizers: tests/build_sanitized.sh tsan|asan TARGET...
# asan is AddressSanitizer and UndefinedBehaviorSanitizer by clang, for the tests and the fuzzers alike, so that what
# both are made of is compiled once.
set -eu
cd "$(dirname "$0")/.."
folder=build/$1
case $1 in
  tsan) set -- -DSTEPSCOPE_SANITIZE=thread -- "$@" ;;
  asan)
    compiler=
    for name in clang++-16 clang++-17 clang++-18 clang++-19 clang++; do
      if command -v "$name" >/dev/null 2>&1; then compiler=$name; break; fi
    done
    if [ -z "$compiler" ]; then
      echo "tests/build_sanitized.sh: no clang++ was found" >&2
      echo "hint: apt-get install -y clang-16 libclang-rt-16-dev" >&2
      exit 2
    fi
    set -- -DCMAKE_CXX_COMPILER="$compiler" -DSTEPSCOPE_FUZZ=ON \
      -DSTEPSCOPE_SANITIZE=address,undefined,fuzzer-no-link -- "$@"
    ;;
  *) echo "tests/build_sanitized.sh: asan or tsan, not '$1'" >&2; exit 2 ;;
esac
options=
while [ "$1" != -- ]; do options="$options $1"; shift; done
shift 2  # and the kind
mkdir -p "$folder"
# shellcheck disable=SC2086  # options hold no blanks
cmake -S . -B "$folder" -G Ninja -DSTEPSCOPE_TESTS=ON -DSTEPSCOPE_PYTHON=OFF -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS_DEBUG="-O1 -g1" $options >/dev/null
ninja -C "$folder" -j2 "$@" >"$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }

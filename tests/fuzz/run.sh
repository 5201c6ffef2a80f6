#!/bin/sh
# The segment reader, the hub's messages and the TCP server under libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer:
# tests/fuzz/run.sh [RUNS]
# New inputs are kept in build/fuzz/corpus, corpus_hub and corpus_web, a failing one in build/fuzz/failed-*; give that to
# build/fuzz/.../reader_fuzz, hub_fuzz or web_fuzz.
set -eu
cd "$(dirname "$0")/../.."
runs=${1:-20000}
compiler=
for name in clang++-16 clang++-17 clang++-18 clang++-19 clang++; do
  if command -v "$name" >/dev/null 2>&1; then compiler=$name; break; fi
done
if [ -z "$compiler" ]; then
  echo "tests/fuzz: no clang++ was found" >&2
  echo "hint: apt-get install -y clang-16 libclang-rt-16-dev" >&2
  exit 2
fi
cmake -S . -B build/fuzz -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DSTEPSCOPE_FUZZ=ON -DSTEPSCOPE_PYTHON=OFF \
  -DSTEPSCOPE_SANITIZE=address,undefined,fuzzer-no-link >/dev/null
ninja -C build/fuzz -j2 reader_fuzz hub_fuzz web_fuzz >build/fuzz/build.log 2>&1 || { cat build/fuzz/build.log; exit 1; }
mkdir -p build/fuzz/corpus build/fuzz/corpus_hub build/fuzz/corpus_web
build/fuzz/tests/fuzz/reader_fuzz -runs="$runs" -max_total_time=40 -max_len=512 -print_final_stats=0 \
  -artifact_prefix=build/fuzz/failed- build/fuzz/corpus tests/fuzz/corpus
build/fuzz/tests/fuzz/hub_fuzz -runs="$runs" -max_total_time=40 -max_len=4096 -print_final_stats=0 \
  -artifact_prefix=build/fuzz/failed-hub- build/fuzz/corpus_hub tests/fuzz/corpus_hub
# Each input is a connection, so there are fewer of them in the time.
exec build/fuzz/tests/fuzz/web_fuzz -runs="$runs" -max_total_time=10 -max_len=2048 -print_final_stats=0 \
  -artifact_prefix=build/fuzz/failed-web- build/fuzz/corpus_web tests/fuzz/corpus_web

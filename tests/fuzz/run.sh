#!/bin/sh
# The segment reader, the hub's messages and the TCP server under libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer:
# tests/fuzz/run.sh [RUNS]
# New inputs are kept in build/fuzz/corpus, corpus_hub and corpus_web, a failing one in build/fuzz/failed-*; give that to
# build/asan/.../reader_fuzz, hub_fuzz or web_fuzz.
set -eu
cd "$(dirname "$0")/../.."
runs=${1:-20000}
tests/build_sanitized.sh asan reader_fuzz hub_fuzz web_fuzz
mkdir -p build/fuzz/corpus build/fuzz/corpus_hub build/fuzz/corpus_web
build/asan/tests/fuzz/reader_fuzz -runs="$runs" -max_total_time=40 -max_len=512 -print_final_stats=0 \
  -artifact_prefix=build/fuzz/failed- build/fuzz/corpus tests/fuzz/corpus
build/asan/tests/fuzz/hub_fuzz -runs="$runs" -max_total_time=40 -max_len=4096 -print_final_stats=0 \
  -artifact_prefix=build/fuzz/failed-hub- build/fuzz/corpus_hub tests/fuzz/corpus_hub
# Each input is a connection, so there are fewer of them in the time.
exec build/asan/tests/fuzz/web_fuzz -runs="$runs" -max_total_time=10 -max_len=2048 -print_final_stats=0 \
  -artifact_prefix=build/fuzz/failed-web- build/fuzz/corpus_web tests/fuzz/corpus_web

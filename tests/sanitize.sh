#!/bin/sh
# Ring, recorder and the hub with its nodes under ThreadSanitizer, then the first two and the agent, which gives hostile
# bytes a meaning, under AddressSanitizer with UndefinedBehaviorSanitizer (that of the hub is in the fuzzers: hub_fuzz).
# Not under ThreadSanitizer: tests that fork and then start threads, which it does not support, and the one in which
# threads and the reader order themselves through pread and pwrite, which it does not see; the same protocol over memory
# (ThreadAgainstAReaderOfTheSameMemory) is its test there.
set -eu
cd "$(dirname "$0")/.."

tests/build_sanitized.sh tsan ring_test recorder_test hub_test
tests/build_sanitized.sh asan ring_test recorder_test agent_test
export TSAN_OPTIONS=halt_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_leaks=1
build/tsan/ring_test --gtest_brief=1 --gtest_filter=-Writer.ThreadAgainstTheRealReader
build/tsan/recorder_test --gtest_brief=1 --gtest_filter=-KillNine.*:RecorderFork.*
build/tsan/hub_test --gtest_brief=1 --gtest_filter='Link.*:Handshake.*:Strangers.*-*Trickle*'
build/asan/ring_test --gtest_brief=1
build/asan/recorder_test --gtest_brief=1
# Starting anew at every event once maps a segment each time, which AddressSanitizer makes slow; again and again is the
# same code.
build/asan/agent_test --gtest_brief=1 --gtest_filter=-RestartTest.AtEveryEventOnceFindsTheSameSteps

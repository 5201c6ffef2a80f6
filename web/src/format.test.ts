import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytes,
  clock,
  digits,
  duration,
  grouped,
  ms,
  percent,
  readable,
  safe,
  shell,
  span,
  steps,
  withUnit,
} from "./format.ts";

test("what was not measured is a dash, zero is zero", () => {
  for (const words of [digits, ms, duration, span, percent, bytes, grouped]) {
    assert.equal(words(null), "-");
    assert.equal(words(undefined), "-");
    assert.equal(words(NaN), "-");
    assert.match(words(0), /^0/);
  }
  assert.equal(withUnit(null, "ms"), "-");
});

test("durations read as on the card", () => {
  assert.equal(duration(0.24123), "0.241 ms");
  assert.equal(duration(2.4051), "2.41 ms");
  assert.equal(duration(9.996), "10.0 ms");
  assert.equal(duration(38.12), "38.1 ms");
  assert.equal(duration(99.96), "100 ms");
  assert.equal(duration(999.6), "1.00 s");
  assert.equal(duration(71_234), "71.2 s");
  assert.equal(ms(12_345.6), "12,346");
});

test("shares, bytes and spans", () => {
  assert.equal(percent(0.0712), "7.1 %");
  assert.equal(percent(0.0996), "10 %");
  assert.equal(percent(1), "100 %");
  assert.equal(bytes(1023), "1023 B");
  assert.equal(bytes(1.5 * 1024 ** 3), "1.5 GB");
  assert.equal(bytes(999.6 * 1024), "1.0 MB");
  assert.equal(span(3.14), "3.1 s");
  assert.equal(span(119), "119 s");
  assert.equal(span(600), "10.0 min");
  assert.equal(span(7200), "2.0 h");
});

test("names of strangers", () => {
  assert.equal(safe("a\u001b[31mb\u202ec\nd"), "a\ufffd[31mb\ufffdc\ufffdd");
  assert.equal(shell(["python", "a b.py", "it's"]), `python 'a b.py' 'it'\\''s'`);
  assert.equal(readable("input_ms"), "input");
  assert.equal(readable("rank_seconds"), "rank seconds");
});

test("places", () => {
  assert.equal(steps(3, 3), "step 3");
  assert.equal(steps(1200, 4000), "steps 1,200 to 4,000");
  assert.equal(steps(null, null), "-");
  assert.equal(clock(null), "-");
  assert.equal(clock("nonsense"), "-");
  assert.equal(grouped(1234567), "1,234,567");
});

// Cards as whole texts: src/report/snapshots/. STEPSCOPE_UPDATE=1 writes them anew; then read the
// difference.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <sstream>

#include "report/report.h"
#include "report/run_fixture.h"
#include "report/snapshot.h"
#include "report/text.h"

namespace stepscope::report {
namespace {

constexpr CardStyle kPlain{.colour = false, .unicode = true, .width = 80};
constexpr CardStyle kAscii{.colour = false, .unicode = false, .width = 80};
constexpr CardStyle kColour{.colour = true, .unicode = true, .width = 80};

std::string without_colour(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b')
      i = text.find('m', i);
    else
      out += text[i];
  }
  return out;
}

void expect_fits(const std::string& text, int width) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(columns(line), width) << line;
    EXPECT_FALSE(line.ends_with(' ')) << "trailing blank: " << line;
    for (const char c : line)
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << line;
    EXPECT_EQ(valid_utf8(line), line);
  }
}

TEST(Card, Snapshots) {
  for (const fixture::Case& c : fixture::all_cases()) {
    const Summary s = summarize(c.run, c.findings);
    expect_snapshot(c.name, card(s, kPlain));
    expect_snapshot(c.name + ".ascii", card(s, kAscii));
  }
  const fixture::Case c = fixture::one_rank();
  expect_snapshot("input_bound.colour", card(summarize(c.run, c.findings), kColour));
}

TEST(Card, ColourAddsOnlyColourAndAsciiIsAscii) {
  for (const fixture::Case& c : fixture::all_cases()) {
    const Summary s = summarize(c.run, c.findings);
    EXPECT_EQ(without_colour(card(s, kColour)), card(s, kPlain)) << c.name;
    for (const char byte : card(s, kAscii)) EXPECT_GE(byte, 0) << c.name;
    for (const CardStyle& style : {kPlain, kAscii}) expect_fits(card(s, style), 80);
  }
}

TEST(Card, FirstLineIsTheVerdictInSeverityWords) {
  const fixture::Case c = fixture::four_ranks();
  const std::string text = card(summarize(c.run, c.findings), kPlain);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "INPUT_BOUND  11 % of each step waits for data  (rank 2 worst)  warning, possible");
}

// Whatever names, titles and reasons hold, the card keeps its form.
TEST(Card, HostileWordsKeepTheForm) {
  const auto seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const std::vector<std::string> pieces = {
      "\x1b[31m",
      "\n",
      "\r",
      "\t",
      "\x07",
      std::string(1, '\0'),
      "\xff\xfe",
      "\xc3",
      "\xe2\x80\xae",
      "\xe2\x80\x8b",
      "\xe6\xbc\xa2\xe5\xad\x97",
      "\xf0\x9f\x94\xa5",
      "e\xcc\x81",
      " ",
      "  ",
      "/",
      "a",
      "word",
      "{}",
      "%s",
      "'",
      "averyveryverylongwordwithoutanyblankthatdoesnotfitonalineofeightycolumnsatallnotevenclose"};
  const auto word = [&] {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += pieces[random() % pieces.size()];
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    fixture::Case c = fixture::all_cases()[static_cast<size_t>(round) % 7];
    c.run.name = word();
    c.run.folder = "/" + word();
    c.run.notices = {word(), word()};
    c.run.unobserved = {word()};
    c.run.nodes.front().cores_limit_reason = word();
    c.run.nodes.front().job_memory_bytes = {};
    c.run.nodes.front().job_memory_bytes.not_measured = word();
    for (RankHistory& r : c.run.ranks)
      r.raw.back().user_phase_ns = {{word(), 100'000'000}, {word(), 200'000'000}};
    c.findings.front().title = word();
    c.findings.front().advice = {{word(), 0.5, word(), word()}};
    c.findings.front().evidence = {{word(), 1e300, word()}, {word(), -1, "ms"}};
    const Summary s = summarize(c.run, c.findings);
    for (const CardStyle& style :
         {kPlain, kAscii, CardStyle{false, true, 60}, CardStyle{false, true, 120}})
      expect_fits(card(s, style), style.width);
    EXPECT_EQ(without_colour(card(s, kColour)), card(s, kPlain));
    if (HasFailure()) break;
  }
}

TEST(Style, AsksEnvironmentAndStream) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) unsetenv(name);
  EXPECT_FALSE(style_for(0).unicode);
  setenv("LANG", "en_US.UTF-8", 1);
  EXPECT_TRUE(style_for(0).unicode);
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(style_for(0).unicode);
  setenv("LC_ALL", "C.utf8", 1);
  EXPECT_TRUE(style_for(0).unicode);
  unsetenv("LC_ALL");
  FILE* file = std::tmpfile();
  setenv("TERM", "xterm", 1);
  EXPECT_FALSE(style_for(fileno(file)).colour);  // not a terminal
  std::fclose(file);
  EXPECT_FALSE(style_for(-1).colour);
}

}  // namespace
}  // namespace stepscope::report

#include "model/settings.h"

#include <gtest/gtest.h>

namespace stepscope {
namespace {

using Map = std::map<std::string, std::string>;

Result<Settings> from_toml(std::string_view text) {
  return load_settings({}, {}, text, "stepscope.toml");
}

TEST(Settings, DefaultsAreThoseOfTheDiagnosis) {
  const Settings settings;
  const auto all = settings.effective();
  EXPECT_EQ(all.at("input_warning"), "0.1");
  EXPECT_EQ(all.at("optimizer_critical"), "0.4");
  EXPECT_EQ(all.at("min_steady_steps"), "20");
  EXPECT_EQ(all.at("memory_creep_bytes"), "67108864");
  EXPECT_EQ(all.at("shm_share"), "0.05");
}

TEST(Settings, EffectiveValuesReadBackTheSame) {
  Settings settings;
  for (const auto& [key, value] : Settings().effective())
    ASSERT_TRUE(settings.set(key, value)) << key;
  EXPECT_EQ(settings.effective(), Settings().effective());
}

TEST(Settings, FlagBeatsVariableBeatsFile) {
  const std::string_view toml = "input_warning = 0.11\nh2d_warning = 0.12\nsync_warning = 0.13\n";
  const Map environment = {{"STEPSCOPE_H2D_WARNING", "0.22"}, {"STEPSCOPE_SYNC_WARNING", "0.23"}};
  const auto settings =
      load_settings({{"sync_warning", "0.33"}}, environment, toml, "stepscope.toml");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->input_warning, 0.11);
  EXPECT_EQ(settings->h2d_warning, 0.22);
  EXPECT_EQ(settings->sync_warning, 0.33);
}

TEST(Settings, UnknownKeyNamesTheNearest) {
  Settings settings;
  const Status status = settings.set("input-warnings", "0.2");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("input-warnings"), std::string::npos);
  EXPECT_EQ(status.error().hint, "did you mean input_warning?");

  const auto flags = load_settings({{"warmup", "3"}}, {}, "", "");
  ASSERT_FALSE(flags);
  EXPECT_NE(flags.error().message.find("--set warmup=3"), std::string::npos);
  EXPECT_EQ(flags.error().hint, "did you mean warmup_steps?");
}

TEST(Settings, ValuesOutOfRangeOrUnreadableAreErrors) {
  Settings settings;
  for (const char* bad : {"20", "-0.1", "nan", "inf", "", "ten", "0.2x", "20%", "0x1"}) {
    const Status status = settings.set("input_warning", bad);
    ASSERT_FALSE(status) << bad;
    EXPECT_NE(status.error().message.find("input_warning"), std::string::npos);
    EXPECT_NE(status.error().message.find('"' + std::string(bad) + '"'), std::string::npos);
    EXPECT_NE(status.error().hint.find("from 0 to 1"), std::string::npos);
  }
  for (const char* bad : {"0", "-3", "2.5", "1e3", "99999999999999999999"})
    EXPECT_FALSE(settings.set("min_steady_steps", bad)) << bad;
  EXPECT_FALSE(settings.set("segment_kb", "8"));
  EXPECT_EQ(settings.effective(), Settings().effective());
  EXPECT_TRUE(settings.set("warmup_steps", "0"));
  EXPECT_TRUE(settings.set("input_warning", " 1 "));
}

TEST(Settings, OtherVariablesAreLeftAlone) {
  const Map environment = {{"STEPSCOPE", "0"},          {"STEPSCOPE_SEGMENTS", "/dev/shm/x"},
                           {"STEPSCOPE_RUN_ID", "abc"}, {"STEPSCOPE_INPUT_WARNING", ""},
                           {"INPUT_WARNING", "0.9"},    {"STEPSCOPE_input_warning", "0.9"}};
  const auto settings = load_settings({}, environment, "", "");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->effective(), Settings().effective());

  const auto bad = load_settings({}, {{"STEPSCOPE_SEGMENT_KB", "many"}}, "", "");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("STEPSCOPE_SEGMENT_KB"), std::string::npos);
  EXPECT_NE(bad.error().message.find("\"many\""), std::string::npos);
}

TEST(Settings, TomlTakesCommentsQuotesAndWindowsLines) {
  const auto settings = from_toml(
      "\xEF\xBB\xBF# thresholds\r\n\r\n input_warning=0.15 # ours\r\n\"h2d_warning\" = '0.25'\r\n"
      "memory_creep_bytes = 33_554_432\nwarmup_steps = \"3\"   # quoted");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->input_warning, 0.15);
  EXPECT_EQ(settings->h2d_warning, 0.25);
  EXPECT_EQ(settings->memory_creep_bytes, 33554432);
  EXPECT_EQ(settings->warmup_steps, 3);
}

TEST(Settings, TomlErrorsNameFileAndLine) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"\nimput_warning = 0.1\n", "stepscope.toml:2: unknown setting \"imput_warning\""},
      {"input_warning 0.1", "stepscope.toml:1: no \"=\""},
      {"[diagnosis]\n", "stepscope.toml:1: a section"},
      {"input_warning = \"0.1", "stepscope.toml:1: the quote"},
      {"input_warning = \"0.1\" 3", "stepscope.toml:1: \"3\" after the value"},
      {"input_warning =  # none", "stepscope.toml:1: no value"},
      {" = 3", "stepscope.toml:1: no key"},
      {"input_warning = 0.1\ninput_warning = 0.2",
       "stepscope.toml:2: \"input_warning\" stands twice"},
      {"# a\n# b\ninput_warning = much", "stepscope.toml:3: setting input_warning: \"much\""},
  };
  for (const auto& c : cases) {
    const auto settings = from_toml(c.text);
    ASSERT_FALSE(settings) << c.text;
    EXPECT_TRUE(settings.error().message.starts_with(c.says)) << settings.error().message;
    EXPECT_FALSE(settings.error().hint.empty());
  }
}

}  // namespace
}  // namespace stepscope

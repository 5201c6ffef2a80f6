#include "serve/api.h"

#include <gtest/gtest.h>

namespace stepscope::serve {
namespace {

class ApiTest : public testing::Test {
 protected:
  Reply ask(const std::string& method, const std::string& target, const std::string& body = "") {
    return route(api_, {method, target, body});
  }
  std::vector<ControlWord> words_;
  report::CardStyle style_;
  report::ViewQuery query_;
  Api api_{.health = [] { return "health"; },
           .summary =
               [](report::JsonForm form, bool fresh) {
                 const std::string text = form == report::JsonForm::kPretty    ? "summary"
                                          : form == report::JsonForm::kCompact ? "compact"
                                                                               : "brief";
                 return text + (fresh ? ", fresh" : "");
               },
           .card =
               [this](const report::CardStyle& style) {
                 style_ = style;
                 return "card";
               },
           .status =
               [this](const report::CardStyle& style) {
                 style_ = style;
                 return "status";
               },
           .control = [this](ControlWord word) { words_.push_back(word); },
           .view = [this](const report::ViewQuery& query) -> Result<std::string> {
             query_ = query;
             if (query.words.contains("bad"))
               return Error{"bad= is not understood", "leave it out"};
             return query.view;
           },
           .tick =
               [](std::optional<int64_t> since) {
                 return since ? "tick since " + std::to_string(*since) : "tick";
               }};
};

TEST_F(ApiTest, Routes) {
  EXPECT_EQ(ask("GET", "/v1/health").body, "health");
  EXPECT_EQ(ask("GET", "/v1/summary?x=1").body, "summary");
  EXPECT_EQ(ask("GET", "/v1/card?colour&ascii&width=120").body, "card");
  EXPECT_TRUE(style_.colour);
  EXPECT_FALSE(style_.unicode);
  EXPECT_EQ(style_.width, 120);
  EXPECT_EQ(ask("GET", "/v1/summary?compact").body, "compact");
  EXPECT_EQ(ask("GET", "/v1/summary?compact&fresh").body, "compact, fresh");
  EXPECT_EQ(ask("GET", "/v1/summary?brief").body, "brief");
  EXPECT_EQ(ask("GET", "/v1/status?width=100").body, "status");
  EXPECT_EQ(style_.width, 100);
  EXPECT_EQ(ask("GET", "/v1/card?width=-5&width=99999999999").status, 200);
  EXPECT_EQ(style_.width, 80);
}

TEST_F(ApiTest, TickTakesAStep) {
  EXPECT_EQ(ask("GET", "/v1/tick").body, "tick");
  EXPECT_EQ(ask("GET", "/v1/tick?since=12").body, "tick since 12");
  EXPECT_EQ(ask("GET", "/v1/tick?since=x").status, 400);
  EXPECT_EQ(ask("GET", "/v1/tick?from=1").status, 400);
}

TEST_F(ApiTest, ControlTakesKnownWordsOnly) {
  EXPECT_EQ(ask("POST", "/v1/control", R"({"word": "off"})").status, 200);
  EXPECT_EQ(ask("POST", "/v1/control", R"({"word": "on"})").status, 200);
  EXPECT_EQ(words_, (std::vector{ControlWord::kOff, ControlWord::kOn}));
  for (const char* body : {"", "{", "[]", "{}", R"({"word": 1})", R"({"word": "explode"})"})
    EXPECT_EQ(ask("POST", "/v1/control", body).status, 400) << body;
  EXPECT_EQ(words_.size(), 2u);
}

TEST_F(ApiTest, AnythingElseIsAnError) {
  EXPECT_EQ(ask("GET", "/").status, 404);
  EXPECT_EQ(ask("GET", "").status, 404);
  EXPECT_EQ(ask("GET", "/v1/control").status, 405);
  EXPECT_EQ(ask("DELETE", "/v1/summary").status, 405);
  EXPECT_EQ(ask("GET", "/v1/../etc/passwd\x1b[0m").status, 404);
}

}  // namespace
}  // namespace stepscope::serve

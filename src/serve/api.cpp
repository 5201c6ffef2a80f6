#include "serve/api.h"

#include <boost/json.hpp>
#include <optional>

#include "base/text.h"

namespace stepscope::serve {
namespace json = boost::json;
namespace {

constexpr int kMinWidth = 40, kMaxWidth = 500;

report::CardStyle style_of(std::string_view query) {
  report::CardStyle style;
  for (const std::string_view word : split(query, '&')) {
    if (word == "colour") style.colour = true;
    if (word == "ascii") style.unicode = false;
    constexpr std::string_view kWidth = "width=";
    if (!word.starts_with(kWidth)) continue;
    const auto width = parse_number<int>(word.substr(kWidth.size()));
    if (width && *width >= kMinWidth && *width <= kMaxWidth) style.width = *width;
  }
  return style;
}

std::optional<ControlWord> control_word(std::string_view body) {
  json::error_code failed;
  const json::value value = json::parse(json::string_view(body.data(), body.size()), failed);
  if (failed || !value.is_object()) return std::nullopt;
  const json::value* word = value.get_object().if_contains("word");
  if (word == nullptr || !word->is_string()) return std::nullopt;
  if (word->get_string() == "on") return ControlWord::kOn;
  if (word->get_string() == "off") return ControlWord::kOff;
  if (word->get_string() == "write") return ControlWord::kWrite;
  return std::nullopt;
}

}  // namespace

Reply route(const Api& api, const Request& request) {
  const std::string_view target = request.target;
  const size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  const std::string_view query =
      question == std::string_view::npos ? "" : target.substr(question + 1);
  const bool control = path == "/v1/control";
  constexpr std::string_view kBase = "/v1/";
  const std::string_view name = path.starts_with(kBase) ? path.substr(kBase.size()) : "";
  const bool is_view = report::is_view(name);
  if (!control && !is_view && path != "/v1/health" && path != "/v1/summary" && path != "/v1/card" &&
      path != "/v1/status" && path != "/v1/tick")
    return error_reply(404, "nothing at " + printable(path, 200),
                       "GET /v1/health, summary, status, card, tick, " + report::view_names());
  const std::string_view wanted = control ? "POST" : "GET";
  if (request.method != wanted)
    return error_reply(405, printable(request.method, 40) + " is not for " + std::string(path),
                       "use " + std::string(wanted));
  if (is_view) {
    auto made = api.view({std::string(name), query_words(query)});
    if (!made) return error_reply(400, made.error().message, made.error().hint);
    return {200, "application/json", std::move(*made)};
  }
  if (path == "/v1/health") return {200, "application/json", api.health()};
  if (path == "/v1/summary") {
    const auto words = query_words(query);
    const auto form = words.contains("brief")     ? report::JsonForm::kBrief
                      : words.contains("compact") ? report::JsonForm::kCompact
                                                  : report::JsonForm::kPretty;
    return {200, "application/json", api.summary(form, words.contains("fresh"))};
  }
  if (path == "/v1/status") return {200, "text/plain; charset=utf-8", api.status(style_of(query))};
  if (path == "/v1/card") return {200, "text/plain; charset=utf-8", api.card(style_of(query))};
  if (path == "/v1/tick") {
    constexpr std::string_view kSince = "since=";
    std::optional<int64_t> since;
    if (query.starts_with(kSince)) since = parse_number<int64_t>(query.substr(kSince.size()));
    if (!since && !query.empty())
      return error_reply(400, printable(query, 200) + " is not since=STEP",
                         "GET /v1/tick?since=100");
    return {200, "application/json", api.tick(since)};
  }
  const auto word = control_word(request.body);
  if (!word)
    return error_reply(400, "the body names no known word",
                       R"(send {"word": "on"}, "off" or "write")");
  api.control(*word);
  return {200, "application/json", "{}\n"};
}

}  // namespace stepscope::serve

#include "serve/api.h"

#include <boost/json.hpp>
#include <optional>

#include "base/text.h"

namespace stepscope::serve {
namespace json = boost::json;
namespace {

constexpr int kMinWidth = 40, kMaxWidth = 500;

Reply error(int status, std::string message, std::string hint) {
  return {status, "application/json",
          json::serialize(json::object{{"error", std::move(message)}, {"hint", std::move(hint)}}) +
              "\n"};
}

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
  if (!control && path != "/v1/health" && path != "/v1/summary" && path != "/v1/card" &&
      path != "/v1/status")
    return error(404, "nothing at " + printable(path, 200),
                 "GET /v1/health, /v1/summary, /v1/status or /v1/card");
  const std::string_view wanted = control ? "POST" : "GET";
  if (request.method != wanted)
    return error(405, printable(request.method, 40) + " is not for " + std::string(path),
                 "use " + std::string(wanted));
  if (path == "/v1/health") return {200, "application/json", api.health()};
  if (path == "/v1/summary") return {200, "application/json", api.summary(query != "compact")};
  if (path == "/v1/status") return {200, "text/plain; charset=utf-8", api.status(style_of(query))};
  if (path == "/v1/card") return {200, "text/plain; charset=utf-8", api.card(style_of(query))};
  const auto word = control_word(request.body);
  if (!word)
    return error(400, "the body names no known word", R"(send {"word": "on"}, "off" or "write")");
  api.control(*word);
  return {200, "application/json", "{}\n"};
}

}  // namespace stepscope::serve

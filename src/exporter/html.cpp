// The page as one file: script, style and icon inside, and beside them what the API would answer of the run
// (web/src/recorded.ts picks from it). Nothing outside is asked for, and a content security policy says so.
//
//   <script type="application/json" id="stepscope-run">
//     {"summary": {...}, "series": [the job's, then of some ranks], "ranks": [in pieces], "heatmaps": [one a value],
//      "resources": {...}, "events": {...}}
#include <sys/random.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "exporter/exporter.h"
#include "report/json_text.h"
#include "report/report.h"
#include "report/text.h"
#include "report/views.h"

namespace stepscope::exporter {
namespace {

using Words = std::map<std::string, std::string>;
constexpr size_t kMaxAsset = 8 << 20;
constexpr size_t kSingleRanks = 32;       // steps of each rank up to here, of none above
constexpr int64_t kPageOfRanks = 1000;    // report::RanksQuery::kMaxRows
constexpr size_t kFineHeatmapRanks = 16;  // above: fewer columns

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string escaped(std::string text) {
  for (const auto& [what, with] :
       {std::pair{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}})
    text = replaced(std::move(text), what, with);
  return text;
}

// JSON in which no byte can end or begin an element, or a comment: these stand in its texts only, where an escape
// means the same.
std::string inert(std::string json) {
  for (const auto& [what, with] : {std::pair{"<", "\\u003c"},
                                   {">", "\\u003e"},
                                   {"&", "\\u0026"},
                                   {"\u2028", "\\u2028"},
                                   {"\u2029", "\\u2029"}})
    json = replaced(std::move(json), what, with);
  return json;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain)
      out += c;
    else
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

// What the page is made of; our own files, of which none holds the end of its element.
struct Assets {
  std::string script, style, icon;
};

Result<Assets> assets_of(const std::string& page_folder) {
  const Error none{"the page is not part of this installation of stepscope",
                   "./dev build makes it; without it: --to perfetto, or stepscope show"};
  if (page_folder.empty()) return none;
  Assets assets;
  for (const std::string& name : list_folder(page_folder + "/assets")) {
    std::string* to = name.ends_with(".js")    ? &assets.script
                      : name.ends_with(".css") ? &assets.style
                      : name.ends_with(".svg") ? &assets.icon
                                               : nullptr;
    if (to == nullptr) continue;
    auto content = read_file(page_folder + "/assets/" + name, kMaxAsset);
    if (!content) return content.error();
    const std::string text = to == &assets.icon ? "" : lower_case(*content);
    const bool ends_early = text.find("</script") != std::string::npos ||
                            text.find("</style") != std::string::npos ||
                            text.find("<!--") != std::string::npos;
    if (!to->empty() || ends_early)
      return Error{"the page in " + page_folder + " is not what this version was built with",
                   "install stepscope again"};
    *to = std::move(*content);
  }
  if (assets.script.empty() || assets.style.empty()) return none;
  return assets;
}

// Of one file, so that nothing but its own script runs in it.
std::string nonce() {
  std::string bytes(16, '\0'), out;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  for (const char c : bytes) {
    out += static_cast<char>('a' + (static_cast<unsigned char>(c) >> 4));
    out += static_cast<char>('a' + (static_cast<unsigned char>(c) & 15));
  }
  return out;
}

class Views {
 public:
  Views(const RunHistory& run, const std::vector<Finding>& findings, Output& out)
      : run_(run), findings_(findings), out_(out) {}

  void write(const report::Summary& summary) {
    out_.write("{\"summary\":" + inert(report::to_json(summary, report::JsonForm::kCompact)));
    begin("series");
    add("series", {{"points", "2000"}});
    if (run_.ranks.size() > 1 && run_.ranks.size() <= kSingleRanks)
      for (const RankHistory& rank : run_.ranks)
        add("series", {{"points", "500"}, {"rank", std::to_string(rank.rank)}});
    ranks(summary);
    heatmaps(summary);
    out_.write("],\"resources\":" + view("resources", {{"points", "500"}}));
    out_.write(",\"events\":" + view("events", {}) + "}");
  }

 private:
  std::string view(const std::string& name, const Words& words) const {
    auto answer = report::view(run_, findings_, {name, words});
    return answer ? inert(std::string(trim(*answer))) : "null";
  }
  void begin(const char* list) {
    if (!first_list_) out_.write("]");
    first_list_ = false;
    first_ = true;
    out_.write(std::string(",\"") + list + "\":[");
  }
  void add(const std::string& name, const Words& words) {
    if (!first_) out_.write(",\n");
    first_ = false;
    out_.write(view(name, words));
  }

  std::vector<std::string> kinds_of_rows(const report::Summary& summary) const {
    if (summary.node_count > 1) return {"rank", "node"};
    return {"rank"};
  }

  void ranks(const report::Summary& summary) {
    begin("ranks");
    for (const std::string& by : kinds_of_rows(summary)) {
      const int64_t rows = by == "rank" ? std::ssize(run_.ranks) : summary.node_count;
      for (int64_t offset = 0; offset == 0 || offset < rows; offset += kPageOfRanks)
        add("ranks", {{"by", by},
                      {"sort", "rank"},
                      {"offset", std::to_string(offset)},
                      {"limit", std::to_string(kPageOfRanks)}});
    }
  }

  void heatmaps(const report::Summary& summary) {
    begin("heatmaps");
    std::vector<std::string> values = {"late", "total"};
    for (const report::PhaseRow& phase : summary.phases)
      if (phase.mean_ms.value_or(0) > 0) values.push_back(phase.name);
    const std::string columns = run_.ranks.size() <= kFineHeatmapRanks ? "400" : "240";
    for (const std::string& by : kinds_of_rows(summary))
      for (const std::string& value : values)
        add("heatmap", {{"value", value}, {"by", by}, {"columns", columns}, {"rows", "64"}});
  }

  const RunHistory& run_;
  const std::vector<Finding>& findings_;
  Output& out_;
  bool first_list_ = true, first_ = true;
};

}  // namespace

Status write_html(const RunHistory& run, const std::vector<Finding>& findings,
                  const std::string& page_folder, Output& out) {
  const auto assets = assets_of(page_folder);
  if (!assets) return assets.error();
  const std::string own = nonce();
  if (own.empty()) return Error{"the system gives no random bytes", ""};
  const report::Summary summary = report::summarize(run, findings);
  const std::string card = report::card(summary, {.colour = false, .unicode = true, .width = 80});
  const std::string title =
      escaped(report::visible(summary.verdict.code + ": " + summary.name, true));
  out.write(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
      "'nonce-" +
      own + "'; style-src 'nonce-" + own +
      "'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
      title + "</title>\n<link rel=\"icon\" href=\"data:image/svg+xml," +
      percent_encoded(assets->icon) + "\">\n<style nonce=\"" + own + "\">\n" + assets->style +
      "</style>\n</head>\n<body>\n<div id=\"page\"></div>\n<noscript><pre>" + escaped(card) +
      "</pre></noscript>\n<script type=\"application/json\" id=\"stepscope-run\">\n");
  Views(run, findings, out).write(summary);
  out.write("\n</script>\n<script type=\"module\" nonce=\"" + own + "\">\n" + assets->script +
            "</script>\n</body>\n</html>\n");
  return ok();
}

}  // namespace stepscope::exporter

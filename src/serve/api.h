// What the API answers, version 1. It computes nothing: every body comes from the functions that it
// is given.
//
//   GET  /v1/health            JSON: the run, its state, what each rank does now
//   GET  /v1/summary[?compact|brief&fresh] JSON: summary.json of this moment, which may be a second ago; compact: on
//                              one line; brief: and without what has an entry a rank; fresh: with all that is
//                              recorded by now
//   GET  /v1/card[?colour&ascii&width=N]   text
//   GET  /v1/status[?...]      text: what `stepscope status` prints; as for the card
//   GET  /v1/series, ranks, ...  JSON: report/views.h; the query's words are the view's
//   GET  /v1/tick[?since=STEP] JSON: what has become of the run since that step
//   POST /v1/control           {"word": "on"} or {"word": "off"}: recording in every rank;
//                              {"word": "write"}: the summary's files now
// Errors are JSON, {"error": ..., "hint": ...}, with status 400, 404 or 405.
//
// Thread safety: pure but for the functions given. Invariant: any request gets a reply.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "report/report.h"
#include "report/views.h"
#include "serve/request.h"

namespace stepscope::serve {

enum class ControlWord { kOn, kOff, kWrite };

struct Api {
  std::function<std::string()> health;
  std::function<std::string(report::JsonForm, bool fresh)> summary;
  std::function<std::string(const report::CardStyle&)> card, status;
  std::function<void(ControlWord)> control;
  std::function<Result<std::string>(const report::ViewQuery&)> view;
  std::function<std::string(std::optional<int64_t> since_step)> tick;
};

Reply route(const Api& api, const Request& request);

}  // namespace stepscope::serve

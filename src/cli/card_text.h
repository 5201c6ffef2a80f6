// The card of a run folder for a stream: as the agent wrote it, or rendered again where the stream
// can show more or less.
#pragma once

#include <string>

#include "base/result.h"
#include "report/report.h"

namespace stepscope::cli {

struct CardText {
  std::string text;
  std::string warning;  // what is wrong with the folder although there is a card; empty: nothing
};

// Ended runs: summary.txt if the stream takes it as it is, else from run.db; live ones: from the
// agent, else run.db.
Result<CardText> card_of(const std::string& run_folder, int fd);

// summary.json's text, of this moment for a live run.
Result<std::string> summary_of(const std::string& run_folder,
                               report::JsonForm form = report::JsonForm::kPretty);

// What `stepscope status` shows: of this moment for a live run, also before its first step.
Result<std::string> status_of(const std::string& run_folder, int fd);
// The API's "card" or "status" with the words for the style.
std::string target_of(const std::string& path, const report::CardStyle& style);
// Of an ended run as it was found when it ended (by this version; else, and of what is stored of a live one, found now).
Result<report::Summary> stored_summary(const std::string& run_folder);

}  // namespace stepscope::cli

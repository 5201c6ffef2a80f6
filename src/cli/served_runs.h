// The runs that a TCP server shows: of one folder, or all below some. A live one is asked through
// its agent's (or hub's) Unix socket; one that has ended is read from its folder, and kept until its
// files change.
//
// Thread safety: every function may be called by several threads; a run is read by one of them.
// Invariant: what can be asked for is what a list of the folders gave. No word of a request becomes a
// path.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/ended_run.h"
#include "web/metrics.h"
#include "web/site.h"

namespace stepscope::cli {

class ServedRuns final : public web::Site {
 public:
  // only: that run's folder alone, and its API at /v1 too. Else those below the places.
  explicit ServedRuns(std::string only) : only_(std::move(only)) {}
  explicit ServedRuns(std::vector<std::string> places) : places_(std::move(places)) {}

  serve::Reply answer(const serve::Request& request) override;
  std::optional<std::string> live_run(std::string_view path) override;
  Result<Now> now(const std::string& key, std::optional<int64_t> since) override;
  Result<std::string> summary(const std::string& key) override;

  // URL-safe, and the same for a folder at any time.
  static std::string key_of(const std::string& folder);

  // Of every run served, live ones and the newest first, at most this many.
  static constexpr size_t kMaxMeasured = 100;
  std::vector<exporter::Family> metrics(bool per_rank);
  void leave_out_rank_metrics() { rank_metrics_ = false; }

 private:
  struct Known {
    std::string stamp;  // of its files
    std::shared_ptr<const boost::json::value> summary;
  };

  // An answer of a live run that whoever asks the same a moment later gets too: fifty browsers cost
  // an agent or hub what one does.
  struct Shared {
    std::mutex asking;  // held while the run is asked: the others wait for its answer
    std::optional<serve::Reply> reply;
    int64_t until_ns = 0;
  };
  struct Measured {
    std::string folder;
    bool live = false;
    std::shared_ptr<const boost::json::value> summary;
  };
  std::vector<std::string> folders() const;
  std::optional<std::string> folder_of(std::string_view key);
  std::string only_key() const;
  serve::Reply of_run(const std::string& folder, const serve::Request& request);
  std::optional<serve::Reply> ask_live(const std::string& folder, const serve::Request& request);
  std::optional<serve::Reply> share_live(const std::string& folder, const serve::Request& request);
  Result<std::shared_ptr<const EndedRun>> stored(const std::string& folder);
  std::shared_ptr<const boost::json::value> summary_value(const std::string& folder, bool live,
                                                          report::JsonForm form);
  serve::Reply list();
  serve::Reply compare(const std::string& query);
  std::vector<Measured> newest_first(report::JsonForm form);

  std::string only_;
  std::vector<std::string> places_;
  bool rank_metrics_ = true;
  std::mutex mutex_;  // of what follows; never held while a run is asked or read
  std::map<std::string, std::string, std::less<>> folders_by_key_;
  std::map<std::string, Known> known_;
  std::list<std::pair<std::string, std::shared_ptr<Shared>>> shared_;  // the last asked for first
  std::mutex reading_;                                                 // of the list
  std::list<std::pair<std::string, std::shared_ptr<const EndedRun>>>
      stored_;  // the last used first
};

}  // namespace stepscope::cli

// The words of a query, each asked for once by the view that knows it; what is left over is nobody's and an error.
//
// Thread safety: one owner. Invariant: the first error stands; after it every value is its default.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/history.h"
#include "report/pieces.h"
#include "report/views.h"

namespace stepscope::report {

class ViewWords {
 public:
  explicit ViewWords(const ViewQuery& query) : view_(query.view), words_(query.words) {}

  std::optional<std::string> text(std::string_view key);
  int64_t number(std::string_view key, int64_t absent, int64_t least, int64_t most);
  std::string one_of(std::string_view key,
                     std::initializer_list<std::string_view> words);  // absent: the first
  std::optional<int32_t> rank(const RunHistory& run);
  StepRange range();
  void refuse(std::string_view key, std::string_view value, const std::string& hint);

  // After all words were asked for.
  Status done();

 private:
  std::string view_;
  std::map<std::string, std::string> words_;
  std::string known_;  // for the hint
  std::optional<Error> error_;
};

}  // namespace stepscope::report

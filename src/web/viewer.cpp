#include "web/viewer.h"

namespace stepscope::web {

Text Outbox::take() {
  if (tick_) {
    gap_ = false;
    return std::exchange(tick_, nullptr);
  }
  if (summary_) return std::exchange(summary_, nullptr);
  if (!ending_ || ended_) return nullptr;
  ended_ = true;
  return std::make_shared<const std::string>(R"({"type":"end"})");
}

}  // namespace stepscope::web

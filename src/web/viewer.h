// One WebSocket of live frames, as a feed sees it. A frame that cannot be sent at once waits; a newer
// one takes its place, and says that steps were left out. So a slow reader costs one frame of each
// kind, whatever it does.
//
// Thread safety: none; the server's thread. Lifetime: shared by its feed and what is outstanding.
#pragma once

#include "web/site.h"

namespace stepscope::web {

class Viewer {
 public:
  static constexpr size_t kMaxClientMessage = 1024;

  virtual ~Viewer() = default;
  virtual void tick(const Text& plain, const Text& with_gap) = 0;
  virtual void summary(const Text& text) = 0;
  virtual void end() = 0;    // says so, once what waits was sent, and hangs up
  virtual void close() = 0;  // at once
};

// What of the frames of a viewer waits, and which is next.
class Outbox {
 public:
  void tick(const Text& plain, const Text& with_gap) {
    if (tick_) gap_ = true;  // the one that waited will not be sent
    tick_ = gap_ ? with_gap : plain;
  }
  void summary(const Text& text) { summary_ = text; }
  void end() { ending_ = true; }

  // The next frame; empty when there is none.
  Text take();
  bool over() const { return ended_; }  // the frame that says so was taken

 private:
  Text tick_, summary_;
  bool gap_ = true;  // what a new viewer has not seen was left out
  bool ending_ = false, ended_ = false;
};

}  // namespace stepscope::web

// What the card must say about the recording itself, in sentences.
//
// Thread safety: none. Bounded: kMaxNotices from here.
#pragma once

#include <string>

#include "model/history.h"

namespace stepscope::agent {

inline constexpr size_t kMaxNotices = 20;

void note(RunHistory& run, const std::string& text);  // once
// One notice a run, of what was dropped up to now in all ranks. Idempotent.
void note_drops(RunHistory& run);

}  // namespace stepscope::agent

// What `hub` and `serve` need of the system as processes that serve until they are told to stop.
//
// Thread safety: for the main thread, before others begin.
#pragma once

#include <csignal>

namespace stepscope::cli {

// SIGTERM, SIGINT, SIGHUP, SIGQUIT: blocked from here on, to be asked for; a peer that is gone is an
// error of write.
sigset_t block_stopping_signals();
bool is_told_to_stop(const sigset_t& stopping);

void raise_descriptor_limit();  // one a peer

}  // namespace stepscope::cli
